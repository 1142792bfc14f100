"""Recordings of many revisions, one after the other or several at the same time, for commands that look at history."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from perfdiff.cli import groups, requests, samples
from perfdiff.configuration import Overrides
from perfdiff.errors import MeasurementError, UsageError
from perfdiff.progress import Progress
from perfdiff.records import remote

if TYPE_CHECKING:
    from perfdiff.analysis.annotations.history import Recording
    from perfdiff.analysis.trends.growth_history import Counted
    from perfdiff.records.recorded import RecordedExperiment
    from perfdiff.records.relay import Relay
    from perfdiff.records.schema import Revision
    from perfdiff.request import Request
    from perfdiff.revisions.lineage import RevisionRange

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Recordings:
    """Revisions, oldest first, each with what was recorded of it; and the `relay` of machines that did so, where they are a cluster's."""

    found: list[Recording]
    relay: Relay | None = None


def recorded(wanted: RevisionRange, project: groups.ProjectOptions, overrides: Overrides, progress: Progress) -> Recordings:
    """Record the revisions, oldest first, each with all functions that its workloads call; see `_each`.

    The workers of a cluster record several at the same time.
    """
    from perfdiff import clustered, pipeline

    asked = requests.request((), project, overrides, progress)
    if asked.config.cluster.address is None:
        return Recordings(_each(wanted, asked, progress, lambda request: pipeline.record(request, progress)))
    from perfdiff.records.relay import repeated

    same = list(_same(wanted, asked))
    own = [revision for place, (revision, first) in enumerate(same) if place == first]
    relay = clustered.relay(asked, asked.config.cluster.address, [revision.rev for revision in own], progress)
    numbers = {first: number for number, first in enumerate(dict.fromkeys(first for _, first in same))}
    relay = repeated(relay, [numbers[first] for _, first in same])
    return Recordings([(revision, relay.recorded(place)) for place, (revision, _) in enumerate(same)], relay)


def alone(name: str | None, project: groups.ProjectOptions, overrides: Overrides, progress: Progress) -> Recordings:
    """Record one revision, the working tree where none is named."""
    from perfdiff import clustered, pipeline

    asked = requests.request((name,) if name else (), project, overrides, progress)
    if asked.config.cluster.address is None:
        recording = pipeline.record(asked, progress)
        return Recordings([(recording.experiment.base, recording)])
    relay = clustered.relay(asked, asked.config.cluster.address, [name], progress)
    outcome = relay.recorded(0)
    return Recordings([] if isinstance(outcome, str) else [(outcome.experiment.base, outcome)], relay)


def counted(wanted: RevisionRange, project: groups.ProjectOptions, overrides: Overrides, progress: Progress) -> list[Counted]:
    """Count the places of the revisions, oldest first; see `_each`."""
    from perfdiff import trending
    from perfdiff.records.schema import Side

    asked = requests.request((), project, overrides, progress)
    return _each(wanted, asked, progress, lambda request: trending.count(request, progress).sides[Side.BASE])


def _each(wanted: RevisionRange, asked: Request, progress: Progress, measure: Callable[[Request], T]) -> list[tuple[Revision, T | str]]:
    """Measure the revisions, oldest first.

    One that differs from the one before in nothing that is built or run has what was measured of that. One that does not build or run
    has the reason; where that happens to all, the last failure is raised.
    """
    outcomes: list[tuple[Revision, T | str]] = []
    failure: MeasurementError | None = None
    same = list(_same(wanted, asked))
    for place, (own, first) in enumerate(same):
        progress.note(f"{own.rev} ({place + 1} of {len(same)})")
        if first < place:
            outcomes.append((own, outcomes[first][1]))
            continue
        try:
            outcomes.append((own, measure(replace(asked, revisions=(own.rev,)))))
        except MeasurementError as error:
            failure = error
            outcomes.append((own, f"{error} [{error.slug}]"))
    if failure is not None and all(isinstance(result, str) for _, result in outcomes):
        raise failure
    return outcomes


def _same(wanted: RevisionRange, asked: Request) -> Iterator[tuple[Revision, int]]:
    """Yield the revisions, oldest first, each with the place of the first that differs from it in nothing that is built or run."""
    from perfdiff.revisions.history import changed_files, inert_files
    from perfdiff.revisions.lineage import lineage, revision
    from perfdiff.revisions.repository import find_repository

    repository = find_repository(asked.repository)
    is_inert = inert_files(repository, asked.config.build.overlay, asked.config.commands)
    before: Revision | None = None
    first = 0
    for place, name in enumerate(lineage(repository, wanted)):
        own = revision(repository, name)
        if before is None or not all(is_inert(file) for file in changed_files(repository, before.commit or "", own.commit or "")):
            first = place
        yield own, first
        before = own


def of_words(
    subjects: Sequence[str], project: groups.ProjectOptions, overrides: Overrides, progress: Progress, *, counts: bool = False
) -> RecordedExperiment:
    """Return the samples that the words mean, or measure the revision that they name; with `counts`, in counted runs as well."""
    paths = [remote.place(subject) for subject in subjects]
    if paths and any(samples.is_samples(path) for path in paths):
        if overrides.command is not None:
            raise UsageError("a command behind `--` runs a revision; samples are recorded already", slug="samples-apart")
        progress.stage("reading samples", None)
        return samples.load(paths)
    if len(subjects) > 1:
        raise UsageError(
            f"{' and '.join(subjects)} are two revisions: give one, or samples that exist; `perfdiff {' '.join(subjects)}` compares them",
            slug="bad-specification",
        )
    from perfdiff import pipeline

    asked = requests.request(tuple(subjects), project, overrides, progress)
    return pipeline.record(replace(asked, is_counted=counts), progress)
