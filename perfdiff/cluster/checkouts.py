"""What stations have in place of the client's checkout."""

from __future__ import annotations

from perfdiff.cluster.protocol import Checkout
from perfdiff.request import Request
from perfdiff.revisions.bundles import SentFile
from perfdiff.revisions.overlay import overlay_files
from perfdiff.revisions.pins import Pin


def checkout(request: Request, pin: Pin) -> Checkout:
    """Return a revision's tree with those files of the user's checkout that the configuration names, and no revision need have."""
    repository, config = pin.repository, request.config
    top = repository.top or request.repository
    overlay = overlay_files(repository, config.build.overlay)
    project = request.repository.resolve()
    inputs = {project / name for workload in config.workloads for name in workload.inputs}
    within = sorted(file.relative_to(top) for file in inputs if file.is_relative_to(top))
    files = tuple(SentFile.read(top, file) for file in dict.fromkeys((*overlay, *within)))
    return Checkout(repository.name, repository.folder, pin.tree, files)
