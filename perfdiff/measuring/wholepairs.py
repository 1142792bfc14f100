"""Pairs of whole runs, by point: whose turn it is, and when there are enough."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

from perfdiff.analysis.findings import EndToEnd, PointStanding
from perfdiff.analysis.stats.pairs import MOST_PAIRS, next_look
from perfdiff.analysis.verdicts.wholeruns import WholeRuns, whole_runs
from perfdiff.collect import schedule
from perfdiff.collect.turns import Turns
from perfdiff.config import BUDGETS
from perfdiff.measuring.bench import Bench
from perfdiff.measuring.making import Block, PairMaker
from perfdiff.measuring.patience import Patience
from perfdiff.records.schema import Point, Run

CONFIRMED_S = 4.0  # that pairs may take which confirm a proof: what contradicts one in practice is a multiple, which few pairs show
MOST_CONFIRMING = 20  # pairs: as many as two looks have


@dataclass(slots=True)
class WholePairs:
    """Makes pairs of runs of the plain builds within `budget_s`, and goes on where it ended each time that it is asked again.

    Several machines make as many pairs each as one would alone.
    """

    bench: Bench
    maker: PairMaker
    budget_s: float
    _turns: Turns = field(init=False)

    def __post_init__(self) -> None:
        self._turns = Turns(self.bench.points)

    def make(self, runs: list[Run]) -> None:
        """Add pairs to `runs` until every point is decided, or patience ends; raise WorkloadError or StoreError."""
        turns, maker = self._turns, self.maker
        patience = Patience(self.budget_s, self.bench.request.config.measure.first_look_s)
        looks = {point.id: self._next_look(point) for point in turns.open}
        self.bench.progress.stage("comparing whole runs", None)

        def pairs() -> Iterator[Block]:
            while turns.open and not patience.is_over:
                point = turns.next_short_of(self._fewest(patience)) if patience.wants_fewest else turns.next
                yield self._block(point)

        for made in maker.made(pairs()):
            point = made.pair[0].point
            runs += [run for run, _ in made.runs]
            turns.took(point, made.seconds)
            if patience.is_over or point not in turns.open:  # of several machines the others make their pairs to the end
                continue
            is_look, fewest = turns.pairs[point.id] >= looks[point.id], self._fewest(patience)
            if is_look or (turns.pairs[point.id] == fewest and patience.wants_fewest):
                standing = self._ends(runs)[point.id].standing
                if standing is PointStanding.SLOWER:
                    patience.saw_slower()
                if is_look and (standing is not PointStanding.OPEN or turns.pairs[point.id] >= MOST_PAIRS * maker.count):
                    turns.close(point)
                looks[point.id] = self._next_look(point)
            patience.decide(turns.fewest < fewest, partial(self._missing_s, runs))

    def confirm(self, runs: list[Run]) -> None:
        """Add pairs of the point with the longest runs to `runs`, for as long as the budget is; raise WorkloadError or StoreError.

        A pair of each point shows first which that is, the last point before all others.
        """
        self.bench.progress.stage("confirming by whole runs", None)
        turns, started = self._turns, time.monotonic()

        def pairs() -> Iterator[Block]:
            for point in reversed(self.bench.points):
                if time.monotonic() - started < self.budget_s:
                    yield self._block(point)
            while time.monotonic() - started + turns.longest_s < self.budget_s:
                yield self._block(turns.longest)

        for made in self.maker.made(pairs()):
            runs += [run for run, _ in made.runs]
            turns.took(made.pair[0].point, made.seconds)
            if turns.pairs[made.pair[0].point.id] == MOST_CONFIRMING:
                return

    def would_decide(self, runs: list[Run]) -> bool:
        """Return whether nothing is slower yet, but what is open would be decided within the time that more pairs may take."""
        return not self.judged(runs).slower and 0 < self._missing_s(runs) <= BUDGETS * self.budget_s

    def judged(self, runs: list[Run]) -> WholeRuns:
        """Return the results of the whole runs so far."""
        return whole_runs(self.bench.points, runs, self.bench.request.config.compare)

    def _block(self, point: Point) -> Block:
        """Return the next pair of a point."""
        return [schedule.whole_block([point], self._turns.begin(point), self.bench.request.config.compare.seed)]

    def _ends(self, runs: list[Run]) -> dict[int, EndToEnd]:
        return {end.point.id: end for end in self.judged(runs).ends}

    def _missing_s(self, runs: list[Run]) -> float:
        """Return how many seconds the pairs would take that decide the open points, estimated from the runs so far."""
        return self._seconds({point: end.needed for point, end in self._ends(runs).items()})

    def _fewest(self, patience: Patience) -> int:
        """Return how many pairs each point gets even where time is over."""
        look_s = self._seconds(dict.fromkeys(self._turns.pairs, next_look(0) * self.maker.count))
        return patience.fewest(look_s) * self.maker.count

    def _seconds(self, needed: dict[int, int]) -> float:
        """Return how long it takes until the open points have so many pairs each, by point."""
        return self._turns.missing_s(needed) / self.maker.count

    def _next_look(self, point: Point) -> int:
        """Return the number of pairs of a point at which the next look is due."""
        return self.maker.count * next_look(self._turns.pairs[point.id] // self.maker.count)
