"""Trends, from revisions to findings: plain build → build with counters in every line → one run a point → clusters, growth, differences."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from perfdiff import storage
from perfdiff.analysis.trends.features import Named, with_calls
from perfdiff.analysis.trends.findings import TrendFindings
from perfdiff.analysis.trends.trending import analyse
from perfdiff.build.cache import BuildCache
from perfdiff.collect.built.workshop import Workshop
from perfdiff.collect.counts import counterparts, placing
from perfdiff.collect.execution.executor import ProcessExecutor
from perfdiff.collect.runs import workloads
from perfdiff.collect.runs.collector import Collector
from perfdiff.collect.runs.inputs import InputFiles
from perfdiff.collect.runs.suites import Suites
from perfdiff.collect.trees.upkeep import Upkeep
from perfdiff.errors import RecordingError, UsageError
from perfdiff.progress import Progress, Silent
from perfdiff.records import placestore
from perfdiff.records.places import PlaceCounts, PlaceExperiment
from perfdiff.records.schema import Phase, Side
from perfdiff.request import Request, places_key
from perfdiff.revisions.pins import Pin, resolve_some
from perfdiff.revisions.repository import find_repository


@dataclass(frozen=True, slots=True)
class _Bench:
    """What places are counted with."""

    request: Request
    cache: BuildCache
    room: Path
    progress: Progress

    def counted(self, side: Side, pin: Pin) -> PlaceCounts:
        """Build a revision, count its places at every point, and keep that."""
        request, config, executor = self.request, self.request.config, ProcessExecutor()
        room = self.room / side
        room.mkdir()
        workshop = Workshop({side: pin}, config.build, request.environment, self.cache, request.cache, room, request.packs, self.progress)
        plain = workshop.plain()
        built = workshop.placed(plain)
        with closing(Upkeep()) as upkeep, closing(request.services) as services:
            targets = {side: workshop.targets(Phase.PLAIN, plain, {}, {})[Phase.PLAIN, side]}
            configs, notes = Suites(targets, request.inherited, room, upkeep).expanded(config.workloads, executor, once=True)
            points = workloads.points(configs)
            self.progress.stage("counting", len(points))
            collector = Collector(
                targets=workshop.counting_lines(built),
                workloads={workload.name: workload for workload in configs},
                environment=request.inherited,
                executor=executor,
                room=room,
                seed=config.compare.seed,
                upkeep=upkeep,
                services=services,
                inputs=InputFiles.seen(request.repository, config.workloads),
                slow=self.progress.note,
            )
            counted = placing.counted(collector, side, built[side], points, self.progress.advance)
        with_notes = replace(counted, notes=(*counted.notes, *notes))
        placestore.save(_folder(request, pin), with_notes)
        return with_notes


def trends(
    request: Request,
    progress: Progress,
    *,
    alpha: float,
    calls: Mapping[str, Named] | None = None,
    instances: bool = False,
) -> TrendFindings:
    """Count the places of one revision or of two, and return their trends; raise PerfdiffError where that cannot be done.

    Of a single revision, or the working tree where none is named, the trends; of two, what differs as well. `calls` of functions are
    features. `instances` of templates are taken together, unless they are asked for.
    """
    experiment = count(request, progress, instances=instances)
    try:
        experiment = with_calls(experiment, calls or {})
    except KeyError as error:
        raise UsageError(f"no line of a function {error} was counted; name one as the report writes it", slug="unknown-function") from error
    progress.stage("analysing", None)
    compare = request.config.compare
    return analyse(experiment, min_effect=compare.min_effect, seed=compare.seed, alpha=alpha)


def count(request: Request, progress: Progress, *, instances: bool = False) -> PlaceExperiment:
    """Return how often each place of the revisions ran, of templates all `instances` together or each; raise PerfdiffError.

    What was counted before is not run again.
    """
    progress.stage("resolving revisions", None)
    repository, cache = find_repository(request.repository), request.cache
    with storage.in_use(cache, progress):
        apart, snapshots = request.config.own_files(request.repository), request.cache / "snapshots"
        pins, are_two = resolve_some(repository, request.revisions, snapshots=snapshots, apart=apart)
        sides = {Side.BASE: pins.base, Side.HEAD: pins.head} if are_two else {Side.BASE: pins.base}
        by_side = {side: _stored(_folder(request, pin), progress) for side, pin in sides.items()}
        if any(counted is None for counted in by_side.values()):
            with storage.at_work(cache, progress, wait_s=request.config.measure.wait_s) as room, BuildCache(cache) as builds:
                bench = _Bench(request, builds, room, progress)
                for side, pin in sides.items():
                    by_side[side] = by_side[side] or _stored(_folder(request, pin), Silent()) or bench.counted(side, pin)
        counts = _in_common({side: counted.apart if instances else counted for side, counted in by_side.items() if counted is not None})
        heads = counterparts.heads(pins, *counts.values()) if len(counts) > 1 else np.empty(0, dtype=np.int64)
    revisions = {side: pin.revision for side, pin in sides.items()}
    notes = dict.fromkeys((*pins.notes, *(note for counted in counts.values() for note in counted.notes)))
    return PlaceExperiment(revisions, counts, heads, tuple(notes))


def _in_common(counts: Mapping[Side, PlaceCounts]) -> Mapping[Side, PlaceCounts]:
    """Return counts at the points that all revisions have: benchmarks of a suite may be new, or fail in one of them."""
    points = [[point.label for point in side_counts.points] for side_counts in counts.values()]
    if all(labels == points[0] for labels in points):
        return counts
    numbered = [{side_counts.points[number].label: number for number in side_counts.known.tolist()} for side_counts in counts.values()]
    common = [label for label in numbered[0] if all(label in numbers for numbers in numbered)]
    return {
        side: side_counts.at(np.array([numbers[label] for label in common], dtype=np.int64))
        for (side, side_counts), numbers in zip(counts.items(), numbered, strict=True)
    }


def _folder(request: Request, pin: Pin) -> Path:
    return storage.places(request.cache, places_key(request, pin))


def _stored(folder: Path, progress: Progress) -> PlaceCounts | None:
    """Return what was counted before, None where there is nothing or it is damaged."""
    if not placestore.exists(folder):
        return None
    try:
        return placestore.load(folder)
    except RecordingError as error:
        progress.note(f"{error}; counting again")
        return None
