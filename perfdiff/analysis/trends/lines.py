"""Which lines of functions run more often in head, and how that grows, from as few points as a comparison has."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from perfdiff import units
from perfdiff.analysis.linegrowth import LineGrowth
from perfdiff.analysis.trends.blocks import block_counts
from perfdiff.analysis.trends.counterparts import FEW, carried_over, counterparts
from perfdiff.analysis.trends.features import shared, varying
from perfdiff.models.annotation import CostClass
from perfdiff.models.laws import plain_power
from perfdiff.models.trend import LEAST_SHIFT, Interval, Law
from perfdiff.models.trendlines import fits
from perfdiff.records.arrays import Bools, Floats, Ints
from perfdiff.records.places import PlaceExperiment
from perfdiff.records.schema import FunctionInfo, Side, Source

MOST_LINES = 3
# Of the extra count of the line that grew most: what adds less is read in the source, where each line has its count.
_BESIDE = 0.1
# Half an exponent either way: a wider interval does not tell n from n², and the counts stand for themselves.
_TOLD_WITHIN = 0.5
# Of R²: features that explain a count to this digit alike are told apart by their order, parameters first.
_DIGITS = 3
_NOWHERE: Ints = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class LinePlaces:
    """The places (indices) of a part of the program on each side."""

    base: Ints
    head: Ints


@dataclass(frozen=True, slots=True)
class _Rows:
    """Lines of functions in head, in order: their first `places` (indices), counts (lines, points) on both sides, and which are new."""

    places: Ints
    before: Floats
    after: Floats
    is_new: Bools

    @property
    def extra(self) -> Floats:
        """Return how many times more often each line ran, (lines, points)."""
        return self.after - self.before


@dataclass(frozen=True, slots=True)
class MatchedLines:
    """How often lines ran on both sides, line by line.

    `before` (places of head, points) is what base counted of each, 0 where a place `is_new`; `blocks` are the counts of blocks (places,
    points) of each side, and `by_line` the places of each file's lines (indices).
    """

    experiment: PlaceExperiment
    before: Floats
    is_new: Bools
    blocks: Mapping[Side, Floats]
    by_line: Mapping[Side, Mapping[str, Mapping[int, Sequence[int]]]]

    def of(self, infos: Iterable[FunctionInfo]) -> LinePlaces:
        """Return the lines that belong to these functions."""
        infos = [*infos]
        base = (self._within(info.base, Side.BASE) for info in infos)
        head = (self._within(info.head, Side.HEAD) for info in infos)
        return LinePlaces(*(np.unique(np.concatenate([_NOWHERE, *places])) for places in (base, head)))

    def beside(self, infos: Iterable[FunctionInfo]) -> LinePlaces:
        """Return the lines that belong to none of these functions."""
        theirs = self.of(infos)
        every = (np.arange(len(self.experiment.sides[side].places)) for side in Side)
        return LinePlaces(*(np.setdiff1d(places, own) for places, own in zip(every, (theirs.base, theirs.head), strict=True)))

    def blocks_of(self, stretch: LinePlaces, side: Side) -> Floats:
        """Return how many blocks a part of the program executed on a side, (points,)."""
        return np.asarray(self.blocks[side][stretch.base if side is Side.BASE else stretch.head].sum(axis=0))

    def blocks_of_run(self, side: Side) -> Floats:
        """Return how many blocks whole runs executed on a side, (points,)."""
        return np.asarray(self.blocks[side].sum(axis=0))

    def grown(self, stretch: LinePlaces, *, min_effect: float, seed: int) -> tuple[LineGrowth, ...]:
        """Return which lines of a part run more often, the largest extra count first; of a block, whose lines run equally often, its first.

        At the point where most is added, a line must add `min_effect` of the blocks that the part executed before. How counts grow is told
        over the points of that workload.
        """
        rows = self._rows(stretch.head)
        if not len(rows.places):
            return ()
        point = int(np.argmax(np.maximum(rows.extra, 0.0).sum(axis=0)))
        before = self.blocks_of(stretch, Side.BASE)
        extra = np.where(_begin_blocks(rows), rows.extra[:, point], 0.0)
        least = max(FEW, min_effect * float(before[point]), _BESIDE * float(extra.max()))
        chosen = [row for row in np.argsort(-extra, kind="stable").tolist() if extra[row] > least][:MOST_LINES]
        telling = _Telling(self.experiment, point, seed, before if before.any() else self.blocks_of_run(Side.BASE))
        return tuple(telling.line(rows, row) for row in chosen)

    def counts(self, info: FunctionInfo, point: str) -> dict[int, float]:
        """Return how often each line of a function ran in head at the point of this label, by number."""
        counted = self.experiment.sides[Side.HEAD]
        column = next(number for number, candidate in enumerate(counted.points) if candidate.label == point)
        runs_by_line: dict[int, float] = defaultdict(float)
        for place in self._within(info.head, Side.HEAD).tolist():
            runs_by_line[counted.places[place].line] += float(counted.counts[place, column])
        return dict(runs_by_line)

    def _within(self, source: Source | None, side: Side) -> Ints:
        """Return the places (indices) that are code of a function."""
        if source is None:
            return _NOWHERE
        of_lines = self.by_line[side].get(source.file, {})
        return np.array([number for line in source.code for number in of_lines.get(line, ())], dtype=np.int64)

    def _rows(self, places: Ints) -> _Rows:
        """Return the lines of places; several places on one line, such as instances of a template, count together."""
        counted = self.experiment.sides[Side.HEAD]
        lines: dict[tuple[str, int], list[int]] = defaultdict(list)
        for number in places.tolist():
            lines[counted.places[number].file, counted.places[number].line].append(number)
        groups, points = list(lines.values()), len(counted.points)
        return _Rows(
            np.array([group[0] for group in groups], dtype=np.int64),
            np.array([self.before[group].sum(axis=0) for group in groups]).reshape(len(groups), points),
            np.array([counted.counts[group].sum(axis=0) for group in groups]).reshape(len(groups), points),
            np.array([self.is_new[group].all() for group in groups], dtype=np.bool_),
        )


def matched(experiment: PlaceExperiment | None) -> MatchedLines | None:
    """Return the counts of both sides line by line, None where lines were not counted."""
    experiment = experiment and experiment.complete
    if experiment is None or not experiment.points:
        return None
    before, is_new = carried_over(experiment, counterparts(experiment))
    blocks = {side: block_counts(counted) for side, counted in experiment.sides.items()}
    return MatchedLines(experiment, before, is_new, blocks, {side: counted.by_line() for side, counted in experiment.sides.items()})


def _begin_blocks(rows: _Rows) -> Bools:
    """Return which lines (lines,) do not merely go on with what the line before them does, on both sides."""
    begins = np.ones(len(rows.places), dtype=np.bool_)
    begins[1:] = (rows.after[1:] != rows.after[:-1]).any(axis=1) | (rows.before[1:] != rows.before[:-1]).any(axis=1)
    return begins


@dataclass(frozen=True, slots=True)
class _Telling:
    """Puts growth into words, over the workload of a `point` (index); `cost` (points,) is what a new line is held against."""

    experiment: PlaceExperiment
    point: int
    seed: int
    cost: Floats

    def line(self, rows: _Rows, row: int) -> LineGrowth:
        """Return what is told of a line of head."""
        place = self.experiment.sides[Side.HEAD].places[rows.places[row]]
        counts = np.stack([rows.before[row], rows.after[row], rows.before[row] if rows.before[row].any() else self.cost])
        feature, x, laws = self._best(counts)
        base, head, reference = (_exponent(law, own) for law, own in zip(laws, self._own(counts), strict=True))
        point = self.experiment.points[self.point]
        return LineGrowth(
            function=place.function,
            file=place.file,
            line=place.line,
            text=place.text,
            point=point.label,
            base=float(rows.before[row, self.point]),
            head=float(rows.after[row, self.point]),
            feature=feature,
            base_says=_says(x, self._own(counts)[0], laws[0]) if base else "",
            head_says=_says(x, self._own(counts)[1], laws[1]) if head else "",
            is_new=bool(rows.is_new[row]),
            is_steeper=bool(head and reference and head[0] > reference[1] + LEAST_SHIFT),
        )

    def _own(self, counts: Floats) -> Floats:
        """Return the columns of the point's own workload: others have other inputs, whatever their parameters are called."""
        points = self.experiment.points
        return counts[:, [point.workload == points[self.point].workload for point in points]]

    def _best(self, counts: Floats) -> tuple[str | None, Floats, Sequence[Law | None]]:
        """Return the feature that tells head's count best, its values, and the fits of all `counts` (counts, points) over it."""
        features = varying({name: self._own(x[None, :])[0] for name, x in shared(self.experiment).items()})
        own = self._own(counts)
        candidates = [(name, x, fits(name, x, own, seed=self.seed)) for name, x in features.items()]
        telling = [candidate for candidate in candidates if candidate[2][1] is not None]
        best = max(telling, key=lambda candidate: round(candidate[2][1].r2, _DIGITS) if candidate[2][1] else 0.0, default=None)
        return best or (None, np.empty(0), [None] * len(counts))


def _exponent(law: Law | None, counts: Floats) -> Interval | None:
    """Return the interval of a count's exponent, 0 of one that is the same everywhere; None where the points do not tell it."""
    if counts.any() and not np.ptp(counts):
        return 0.0, 0.0
    if law is None or law.growth is CostClass.NONE or law.ci_b[1] - law.ci_b[0] > 2 * _TOLD_WITHIN:
        return None
    return law.ci_b


def _says(x: Floats, counts: Floats, law: Law | None) -> str:
    """Return how a count grows, in words."""
    if law is None or not np.ptp(counts):
        return units.count(float(counts[0]))
    positive = x[np.isfinite(x) & (x > 0)]
    return plain_power(law.feature, float(np.log(law.a)), law.b, positive) if law.growth is CostClass.POWER else law.says
