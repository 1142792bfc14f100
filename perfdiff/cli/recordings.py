"""Recordings of many revisions, one after the other, for commands that look at history."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from perfdiff import configuration
from perfdiff.cli import comparison
from perfdiff.config import CompareConfig
from perfdiff.configuration import Overrides
from perfdiff.errors import MeasurementError
from perfdiff.progress import Progress

if TYPE_CHECKING:
    from perfdiff.analysis.annotations.history import Recording
    from perfdiff.analysis.trends.growth_history import Counted
    from perfdiff.records.schema import Revision
    from perfdiff.request import Request
    from perfdiff.revisions.lineage import Wanted

T = TypeVar("T")


def recorded(wanted: Wanted, directory: Path, cache: Path, overrides: Overrides, progress: Progress) -> list[Recording]:
    """Record the revisions, oldest first, each with all functions that its workloads call; see `_each`."""
    from perfdiff import pipeline

    asked = comparison.request((), directory, cache, overrides, progress)
    return _each(wanted, asked, progress, lambda request: pipeline.record(request, progress))


def counted(wanted: Wanted, directory: Path, cache: Path, overrides: Overrides, progress: Progress) -> list[Counted]:
    """Count the places of the revisions, oldest first; see `_each`."""
    from perfdiff import trending
    from perfdiff.records.schema import Side

    asked = comparison.request((), directory, cache, overrides, progress)
    return _each(wanted, asked, progress, lambda request: trending.count(request, progress).sides[Side.BASE])


def _each(wanted: Wanted, asked: Request, progress: Progress, measure: Callable[[Request], T]) -> list[tuple[Revision, T | str]]:
    """Measure the revisions, oldest first.

    One that differs from the one before in nothing that is built or run has what was measured of that. One that does not build or run
    has the reason; where that happens to all, the last failure is raised.
    """
    from perfdiff.revisions.history import changed_files, inert_files
    from perfdiff.revisions.lineage import lineage, revision
    from perfdiff.revisions.repository import find_repository

    repository = find_repository(asked.repository)
    is_inert = inert_files(repository, asked.config.build.overlay, asked.config.commands)
    found: list[tuple[Revision, T | str]] = []
    failure: MeasurementError | None = None
    names = lineage(repository, wanted)
    for number, name in enumerate(names, 1):
        progress.note(f"{name} ({number} of {len(names)})")
        own = revision(repository, name)
        before, last = found[-1] if found else (None, "")
        if before is not None and all(is_inert(file) for file in changed_files(repository, before.commit or "", own.commit or "")):
            found.append((own, last))
            continue
        try:
            found.append((own, measure(replace(asked, revisions=(name,)))))
        except MeasurementError as error:
            failure = error
            found.append((own, f"{error} [{error.slug}]"))
    if failure is not None and all(isinstance(result, str) for _, result in found):
        raise failure
    return found


def limits(directory: Path, overrides: Overrides) -> CompareConfig:
    """Return when a difference counts, by the configuration that holds in `directory`."""
    return configuration.load(directory.absolute(), overrides=overrides, environment=os.environ, measuring=False).compare
