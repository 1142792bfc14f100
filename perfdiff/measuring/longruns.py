"""Points whose runs take so long that calls are timed in one of each side, where shorter ones show already that head is slower.

What made head slower often does so out of all proportion at the largest inputs: runs of a tenth of a second in base last a minute in head.
"""

from __future__ import annotations

from collections.abc import Sequence

from perfdiff import units
from perfdiff.analysis.findings import EndToEnd
from perfdiff.collect.counts import counting
from perfdiff.collect.runs.schedule import SURVEY_ROUNDS
from perfdiff.records.schema import Note, Phase, Point, Run, Side

# So many budgets of whole runs may the survey and the fewest runs with probes take at all points together. Most comparisons stay far below;
# what takes longer would have an answer wait for minutes that is known but for who is guilty.
AFFORDED = 4.0
# So many seconds may they take where head is slower by far: who knows that and waits for where does so for no longer than attention lasts
# (Nielsen 1993, Usability Engineering, §5.5).
WHERE_S = 10.0
TIMED_SIZES = 2  # of the shortest points tell that a cost grows: calls are timed there in several runs
COUNTED_SIZES = 3  # tell how: counts, which are exact, are made there, and a third size is timed once
_SHOWN = 3


def spared(points: Sequence[Point], runs: Sequence[Run], slower: Sequence[EndToEnd], limit_s: float, fewest: int) -> tuple[Point, ...]:
    """Return the points, those with the longest runs, beyond what locating may take with `fewest` runs of each side with probes.

    None where head is not seen to be `slower` at one of the others.
    """
    afforded = counting.affordable(points, runs, limit_s, len(Side), 1 + SURVEY_ROUNDS + fewest)
    if {end.point.id for end in slower}.isdisjoint(point.id for point in afforded):
        return ()
    return tuple(point for point in points if point not in afforded)


def beyond_need(points: Sequence[Point], runs: Sequence[Run], far: Sequence[EndToEnd], fewest: int, sizes: int) -> tuple[Point, ...]:
    """Return the points, those with the longest runs, that are not needed to locate what makes head slower by `far` at shorter ones.

    Those that locating affords within `WHERE_S` are kept, as many as `sizes` at least, and as many as hold a point where head is slower by
    far.
    """
    ordered, telling = counting.shortest_first(points, runs), {end.point.id for end in far}
    first = next((place for place, point in enumerate(ordered) if point.id in telling), len(ordered))
    affordable = counting.affordable(points, runs, WHERE_S, len(Side), 1 + SURVEY_ROUNDS + fewest)
    needed = ordered[: max(len(affordable), sizes, first + 1)]
    return tuple(point for point in points if point not in needed)


def note(spared: Sequence[Point], runs: Sequence[Run]) -> tuple[Note, ...]:
    """Tell at which points calls are timed in one run of each side alone."""
    if not spared:
        return ()
    longest = max(run.wall_ns for run in runs if run.phase is Phase.PLAIN and run.point in {point.id for point in spared})
    where = units.listed([point.label for point in spared], _SHOWN)
    text = (
        f"runs at {where} take up to {units.duration(longest)}, and shorter ones show that head is slower: calls were timed there in one "
        "run of each side; --thorough times them as often as elsewhere"
    )
    return (Note("long-runs", text),)
