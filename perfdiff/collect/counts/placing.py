"""Counting places: every point of all workloads once, in a build whose compiler counts lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from perfdiff import units
from perfdiff.build.built import Built
from perfdiff.collect.runs import runfeatures
from perfdiff.collect.runs.collector import Collector
from perfdiff.collect.runs.schedule import Slot
from perfdiff.errors import MeasurementError
from perfdiff.records.arrays import Ints
from perfdiff.records.places import Place, PlaceCounts, together
from perfdiff.records.schema import Note, Phase, Point, Side

# A run that counts lines takes 1.3 times as long as a plain one, as a rule; one whose threads count the same lines, ten times. Reading the
# counts adds tenths of a second for each hundred files.
USUAL_SLOWDOWN = 4.0
FEWEST_POINTS = 2  # from which on something can be said of growth

_MOST_NAMED = 3  # of files that are not counted


def counted(collector: Collector, side: Side, built: Built, points: Iterable[Point], advance: Callable[[str], None]) -> PlaceCounts:
    """Return how often each place of a side's placed build ran, and what describes its runs; the side's target has the places.

    `points` may end early: each is asked for when the run of the one before is over. One is run twice, which tells counts that repeat from
    those that do not.

    Raises MeasurementError where no line is counted or none ran; WorkloadError, RecordingError, StoreError.
    """
    reader = collector.targets[Phase.PLACED, side].places
    if reader is None or not reader.places:
        raise MeasurementError("no line of the project is counted" + _because(built), slug="no-places")
    columns: list[Ints] = []
    features: list[Mapping[str, float]] = []
    lost: list[int] = []
    ran: list[Point] = []
    for point in points:
        [run] = collector.count_places([Slot(Phase.PLACED, point, side, 0)])
        ran.append(point)
        columns.append(run.counts)
        features.append(run.features)
        lost += [len(ran) - 1] if run.lost else []
        advance(f"{point.label} on {side}")
    raw = np.array(columns, dtype=np.float64).reshape(-1, len(reader.places)).T
    places, counts, instances = together(reader.places, raw)
    if not counts.any():
        raise MeasurementError(
            "no counted line of the project ran at any point: let the workloads run the programs that the build makes" + _because(built),
            slug="no-places",
        )
    again = len(ran) // 2
    [repeated] = collector.count_places([Slot(Phase.PLACED, ran[again], side, 1)])
    unsteady = np.flatnonzero(together(reader.places, repeated.counts[:, None].astype(np.float64))[1][:, 0] != counts[:, again])
    return PlaceCounts(
        points=tuple(ran),
        places=places,
        counts=counts,
        features=runfeatures.columns(features),
        sources=reader.sources,
        notes=(*built.notes, *_uncounted(built), *_lost([ran[number] for number in lost]), *_unsteady(places, unsteady)),
        unsteady=tuple(unsteady.tolist()),
        lost=tuple(lost),
        instances=instances,
    )


def failed(why: str) -> Note:
    """Say that it was not counted how often lines ran, and why."""
    return Note("lines-not-counted", f"it was not counted how often each line ran: {why}")


def _because(built: Built) -> str:
    return f": {built.uncounted[0].file}: {built.uncounted[0].reason}" if built.uncounted else ""


def _uncounted(built: Built) -> tuple[Note, ...]:
    """Return which files have no counters."""
    if not built.uncounted:
        return ()
    named = units.listed([f"{uncounted.file}: {uncounted.reason}" for uncounted in built.uncounted], _MOST_NAMED, ";")
    return (Note("places-uncounted", f"the lines of these files are not counted: {named}"),)


def _lost(points: Sequence[Point]) -> tuple[Note, ...]:
    """Return at which points processes were killed, or still running, before they could write their counts."""
    if not points:
        return ()
    return (
        Note(
            "places-lost",
            f"some processes ended without writing their counts at {len(points)} points, first at {points[0].label}: what they ran is not "
            "counted; let them end by themselves, or by SIGTERM",
        ),
    )


def _unsteady(places: Sequence[Place], unsteady: Ints) -> tuple[Note, ...]:
    """Return how many places ran another number of times when a point was repeated."""
    if not len(unsteady):
        return ()
    first = places[int(unsteady[0])]
    return (
        Note(
            "places-unsteady",
            f"{len(unsteady)} lines ran another number of times when a point was run again, first {first.file}:{first.line}: their counts "
            "hang on threads, time or chance",
        ),
    )
