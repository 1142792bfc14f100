"""Input files of workloads as runs find them: in the checkout, the same for both revisions."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from perfdiff.config import INPUT, WorkloadConfig
from perfdiff.errors import InputChangedError
from perfdiff.records.schema import Point

_FILES_KNOWN = 4096  # digests of input files that are kept while they are not written to

_Status = tuple[int, int, int]  # size, time of the last change in ns, inode


@dataclass(frozen=True, slots=True)
class InputFiles:
    """The input files of workloads in the folder `project` of the checkout.

    `statuses` are those from when measuring began, by the names of workload and file.

    Runs read them where they lie. The trees of both revisions would hold them as committed, which may differ, or not at all; copies in
    each tree would multiply corpora, and miss what inputs include from files beside them.
    """

    project: Path
    statuses: Mapping[tuple[str, str], _Status | None]

    @classmethod
    def seen(cls, project: Path, workloads: Sequence[WorkloadConfig]) -> InputFiles:
        """Return the input files of workloads as they are now."""
        return cls(project, {(workload.name, name): _status(project / name) for workload in workloads for name in workload.inputs})

    def path(self, point: Point) -> Path | None:
        """Return where the input file of a point lies, None where it has none."""
        name = str(point.parameters.get(INPUT))
        return self.project / name if (point.workload, name) in self.statuses else None

    def located(self, point: Point) -> Mapping[str, float | str]:
        """Return the parameters of a point, its input as the path by which runs find it."""
        path = self.path(point)
        return point.parameters if path is None else {**point.parameters, INPUT: str(path)}

    def require_unchanged(self, point: Point) -> None:
        """Raise InputChangedError where the input file of a point is not what it was."""
        path = self.path(point)
        if path is not None and _status(path) != self.statuses[point.workload, str(point.parameters[INPUT])]:
            raise InputChangedError(
                f"the input file of {point.label} was changed or removed while it was measured; leave it alone meanwhile, and where the "
                f'command writes to it let it work on a copy: setup = "cp {{{INPUT}}} copy"',
                slug="input-changed",
            )


NO_INPUTS = InputFiles(Path(), {})


def digest(project: Path, workloads: Sequence[WorkloadConfig]) -> str:
    """Return a digest of the names, sizes and contents of all input files of workloads; raise InputChangedError where one is gone."""
    whole = hashlib.blake2b(digest_size=16)
    for name in sorted({name for workload in workloads for name in workload.inputs}):
        status = _status(project / name)
        try:
            if status is None:
                raise FileNotFoundError
            content = _content_digest(project / name, status)
        except OSError as error:
            raise InputChangedError(
                f"the input file {name} cannot be read: {error.strerror or 'it is gone'}", slug="input-changed"
            ) from error
        for part in (os.fsencode(name), str(status[0]).encode(), content):
            whole.update(len(part).to_bytes(8, "little") + part)
    return whole.hexdigest()


@lru_cache(maxsize=_FILES_KNOWN)
def _content_digest(file: Path, _: _Status) -> bytes:
    """Return the digest of a file's contents; each comparison of a search asks for it, and inputs may be large."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, lambda: hashlib.blake2b(digest_size=16)).digest()


def _status(file: Path) -> _Status | None:
    """Return the status of a file, None where there is none."""
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns, status.st_ino
