"""What the builds themselves show where other layouts of the same code do not: who times them by hand sees just that."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from perfdiff.analysis.claims import Claim, claim
from perfdiff.analysis.findings import EndToEnd, PointStanding
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.verdicts.ways import Runs, WaysApart, median_ratio, ways_apart
from perfdiff.config import CompareConfig
from perfdiff.records.arrays import Floats, Ints
from perfdiff.records.schema import Phase, Run, Side
from perfdiff.statistics.pairs import chance_of_a_look
from perfdiff.statistics.sides import comparable, logs, pairs_of

FEWEST = 3  # pairs of the builds themselves: fewer are one disturbed run
LAYOUTS = 8  # from so many on, one in ten at either end can be told
MOST = 0.8  # of the layouts lie between what is told of them


@dataclass(frozen=True, slots=True)
class _LayoutContrast:
    """What pairs show at a point: those of the builds themselves (n,), and the means of all layouts (k,), as logarithms."""

    end: EndToEnd
    built: Floats
    layouts: Floats

    @property
    def effect(self) -> float:
        """Return the median difference of the builds themselves, as a logarithm."""
        return float(np.median(self.built))


def ways_note(runs: Sequence[Run], ends: Sequence[EndToEnd], config: CompareConfig) -> Iterator[Claim]:
    """Yield a note where pairs made in one way differ from the others by more than the place of code makes, unless both are faster."""
    apart_at = ((end, _apart(end, runs, ends, config)) for end in ends)
    at_points = [(end, apart) for end, apart in apart_at if apart is not None and apart.worst(end.by) >= 1 / end.smallest(config)]
    ratios = [[median_ratio(way, end.by) for way in (apart.runs, apart.others)] for end, apart in at_points]
    shifts = [abs(math.log(here / there)) for (here, _), (there, _) in ratios]
    if not shifts:
        return
    worst = int(np.argmax(shifts))
    (end, apart), ((ratio, pairs), (other_ratio, others)) = at_points[worst], ratios[worst]
    yield claim(
        "ways-apart",
        way=apart.way,
        point=end.point.label,
        cost=end.cost,
        ratio=ratio,
        pairs=pairs,
        other_ratio=other_ratio,
        others=others,
        shift=POLICY.layout_shift,
    )


def layout_note(runs: Sequence[Run], ends: Sequence[EndToEnd], config: CompareConfig, flags: Sequence[str]) -> Iterator[Claim]:
    """Yield a note where the builds themselves differ by more than the place of code makes as a rule, and all layouts together do not.

    Where these are slower or faster beyond doubt, that is told only of builds that say the opposite. What is more than places make is none
    of theirs, and what was compiled with no `flags` at all was not compiled: it has no layouts.
    """
    if not flags:
        return
    of_places = (end for end in ends if _apart(end, runs, ends, config) is None)
    standing_out = [seen for end in of_places if (seen := _layout_contrast(end, runs)) is not None]
    worst = max(standing_out, key=lambda seen: (len(seen.built), abs(seen.effect)), default=None)
    if worst is None:
        return
    ratio = worst.end.ratio
    assert ratio is not None
    low, high = np.exp(np.quantile(worst.layouts, [(1 - MOST) / 2, (1 + MOST) / 2])).tolist()
    yield claim(
        "layout-decides",
        ratio=math.exp(worst.effect),
        cost=worst.end.cost,
        point=worst.end.point.label,
        pairs=len(worst.built),
        layouts=len(worst.layouts),
        mean=ratio.value,
        low=low,
        high=high,
    )


def few_layouts_note(runs: Sequence[Run], ends: Sequence[EndToEnd], config: CompareConfig) -> Iterator[Claim]:
    """Yield a note where runs are clearly slower, but in so few layouts that the place of code may make it."""
    layouts: dict[int, set[int]] = {}
    for run in runs:
        if run.phase is Phase.PLAIN:
            layouts.setdefault(run.point, set()).add(run.layout)
    is_open = (end for end in ends if end.standing is PointStanding.OPEN and end.low > end.smallest(config))
    labels = tuple(end.point.label for end in is_open if len(layouts[end.point.id]) < POLICY.layouts_known)
    if labels:
        yield claim("few-layouts", points=labels, known=POLICY.layouts_known, shift=POLICY.layout_shift)


def _layout_contrast(end: EndToEnd, runs: Sequence[Run]) -> _LayoutContrast | None:
    """Return what a point shows where its builds stand out, None where they do not or too little is known."""
    if end.ratio is None:
        return None
    base, head = _plain(end, runs)
    shifts, numbers = _shifts(comparable(base), comparable(head), end.by)
    built, built_in = _shifts(base, head, end.by)  # few pairs are of the builds themselves: those that were made apart count as well
    layouts = np.array([shifts[numbers == number].mean() for number in np.unique(numbers)])
    seen = _LayoutContrast(end, built[built_in == 0], layouts)
    if len(seen.built) < FEWEST or len(layouts) < LAYOUTS or POLICY.may_be_places(math.exp(abs(seen.effect))):
        return None
    is_told_already = PointStanding.SLOWER if seen.effect > 0 else PointStanding.FASTER
    outside = seen.effect > math.log(end.ratio.high) if seen.effect > 0 else seen.effect < math.log(end.ratio.low)
    return seen if outside and end.standing is not is_told_already else None


def _apart(end: EndToEnd, runs: Sequence[Run], ends: Sequence[EndToEnd], config: CompareConfig) -> WaysApart | None:
    """Return ways in which pairs of a point, one of `ends`, were made and differ."""
    return ways_apart(_plain(end, runs), end.by, chance_of_a_look(config.confidence, len(ends)))


def _plain(end: EndToEnd, runs: Sequence[Run]) -> Runs:
    """Return the plain runs of a point."""
    plain = [run for run in runs if run.phase is Phase.PLAIN and run.point == end.point.id]
    base, head = ([run for run in plain if run.side is side] for side in Side)
    return base, head


def _shifts(base: Sequence[Run], head: Sequence[Run], by: str) -> tuple[Floats, Ints]:
    """Return by how much the logarithms of a cost differ in each pair (n,), and the layouts of these (n,)."""
    before, after = pairs_of(base, head)
    return logs(after, by) - logs(before, by), np.array([run.layout for run in after], dtype=np.int64)
