"""Counts of lines on both sides, for reports that say which lines run more often."""

from __future__ import annotations

import itertools
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from perfdiff.collect.counts import counterparts, counting, placing
from perfdiff.collect.runs.collector import Collector
from perfdiff.errors import DiskFilledError, MeasurementError, RevisionError, StoreError
from perfdiff.measuring import variants
from perfdiff.measuring.bench import Bench
from perfdiff.measuring.site import Site, Variant
from perfdiff.records.places import PlaceExperiment
from perfdiff.records.schema import Note, Point, Run, Side


@dataclass(frozen=True, slots=True)
class LineCounts:
    """How often lines ran, or why that is not known."""

    experiment: PlaceExperiment | None = None
    notes: tuple[Note, ...] = ()


def affordable(bench: Bench, runs: Sequence[Run], points: Sequence[Point]) -> tuple[Point, ...]:
    """Return those of some points at which the budget allows counting lines; none if they are too few, or nobody reads lines."""
    config, is_wanted = bench.request.config.counters, not bench.request.followed
    points = counting.affordable(points, runs, config.budget_s, len(bench.sides), placing.USUAL_SLOWDOWN)
    return points if config.software and is_wanted and len(points) >= placing.FEWEST_POINTS else ()


def count(  # noqa: PLR0913, PLR0917 (what is counted where)
    bench: Bench,
    site: Site,
    collector: Collector,
    runs: Sequence[Run],
    points: Sequence[Point],
    files: Collection[str] | None = None,
) -> LineCounts:
    """Count how often lines run, at as many of some points as the budget allows, shortest first; of units that are the same in `files`.

    What fails costs lines alone, but for DiskFilledError and StoreError, which are raised: nothing can be kept then.
    """
    points = affordable(bench, runs, points)
    variant = variants.placed(bench, site, files) if points else None
    if variant is None or not variant.targets:
        return LineCounts(notes=variant.notes if variant else ())
    collector.targets = {**collector.targets, **variant.targets}
    try:
        line_counts = _counted(bench, collector, variant, counting.shortest_first(points, runs))
    except (DiskFilledError, StoreError):
        raise
    except (MeasurementError, RevisionError) as error:
        line_counts = LineCounts(notes=(placing.failed(str(error)),))
    return LineCounts(line_counts.experiment, (*variant.notes, *(note for note in line_counts.notes if note not in site.notes)))


def _counted(bench: Bench, collector: Collector, variant: Variant, points: Sequence[Point]) -> LineCounts:
    """Return how often each line ran on both sides, or nothing if head reached too few points in half of the budget."""
    advance = bench.progress.advance
    bench.progress.stage("counting lines", len(points) * len(bench.sides))
    end = time.monotonic() + bench.request.config.counters.budget_s / len(Side)
    in_time = itertools.takewhile(lambda _: time.monotonic() < end, points)
    head = placing.counted(collector, Side.HEAD, variant.built[Side.HEAD], in_time, advance)
    if len(head.points) < placing.FEWEST_POINTS:
        return LineCounts()
    base = placing.counted(collector, Side.BASE, variant.built[Side.BASE], head.points, advance)
    revisions = {Side.BASE: bench.pins.base.revision, Side.HEAD: bench.pins.head.revision}
    experiment = PlaceExperiment(revisions, {Side.BASE: base, Side.HEAD: head}, counterparts.heads(bench.pins, base, head))
    return LineCounts(experiment, tuple(dict.fromkeys((*base.notes, *head.notes))))
