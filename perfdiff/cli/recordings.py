"""Recordings of many revisions, one after the other, for commands that look at history."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from perfdiff import configuration
from perfdiff.cli import comparison
from perfdiff.config import CompareConfig
from perfdiff.configuration import Overrides
from perfdiff.errors import MeasurementError
from perfdiff.progress import Progress

if TYPE_CHECKING:
    from perfdiff.analysis.history import Recording
    from perfdiff.revisions.lineage import Wanted


def recorded(wanted: Wanted, directory: Path, cache: Path, overrides: Overrides, progress: Progress) -> list[Recording]:
    """Record the revisions, oldest first, each with all functions that its workloads call; the same tree is measured once.

    A revision that does not build or run is left out with its reason; where that happens to all, the last failure is raised.
    """
    asked = comparison.request((), directory, cache, overrides, progress)
    from perfdiff import pipeline
    from perfdiff.revisions.lineage import lineage, revision
    from perfdiff.revisions.repository import find_repository

    repository = find_repository(asked.repository)
    found: list[Recording] = []
    failure: MeasurementError | None = None
    names = lineage(repository, wanted)
    for number, name in enumerate(names, 1):
        progress.note(f"{name} ({number} of {len(names)})")
        try:
            recording = pipeline.record(replace(asked, revisions=(name,)), progress)
        except MeasurementError as error:
            failure = error
            found.append((revision(repository, name), f"{error} [{error.slug}]"))
        else:
            found.append((recording.experiment.base, recording))
    if failure is not None and all(isinstance(recording, str) for _, recording in found):
        raise failure
    return found


def limits(directory: Path, overrides: Overrides) -> CompareConfig:
    """Return when a difference counts, by the configuration that holds in `directory`."""
    return configuration.load(directory.absolute(), overrides=overrides, environment=os.environ, measuring=False).compare
