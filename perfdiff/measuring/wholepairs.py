"""Pairs of whole runs, by point: whose turn it is, and when there are enough."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import numpy as np

from perfdiff import units
from perfdiff.analysis.findings import EndToEnd, PointStanding
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.verdicts.seldom import runs_that_tell
from perfdiff.analysis.verdicts.wholeruns import WholeRuns, slower_by_far, whole_runs
from perfdiff.collect.runs import schedule
from perfdiff.collect.runs.schedule import Block, PairSource
from perfdiff.collect.runs.turns import Turns
from perfdiff.config import BUDGETS
from perfdiff.deadline import Deadline
from perfdiff.measuring.patience import Patience
from perfdiff.progress import Progress
from perfdiff.records.schema import Point, Run, Side
from perfdiff.request import Request
from perfdiff.statistics.pairs import FEWEST_PAIRS, MOST_PAIRS, next_look
from perfdiff.statistics.sides import logs, pairs_of

FIRST_SHARE = 0.5  # of the time that is left: as much is left for where the cost arises, and for what is still open then
_SHORTEST_S = 1e-3  # that a pair of runs takes
LONG_S = 1.0  # pairs that take so long are told of one by one; a look takes some milliseconds
CONFIRMED_S = 4.0  # that pairs may take which confirm a proof: what contradicts one in practice is a multiple, which few pairs show
# From this ratio on, five pairs that vary by 5 % show that head is slower by far at four points (their standard deviation; 0.1 % a look).
TOLD_BY_FEW = 1.5
# That more pairs may take before good news, so that slow runs which are rare are met: those of 100 ms have time for all, as runs of 40 ms
# make, and an answer that takes six to nine seconds without them still comes within 20.
SELDOM_S = 5.0
MOST_CONFIRMING = 20  # pairs: as many as two looks have


class WholeRunsAsked(Protocol):
    """What pairs of whole runs are made for."""

    @property
    def request(self) -> Request:
        """Return what was asked for, with the time that it may take."""
        ...

    @property
    def points(self) -> tuple[Point, ...]:
        """Return all points of its workloads."""
        ...

    @property
    def progress(self) -> Progress:
        """Return who is told how far it is."""
        ...


@dataclass(slots=True)
class WholePairs:
    """Makes pairs of runs of the plain builds within `budget_s`, and goes on where it ended each time that it is asked again.

    Several machines make as many pairs each as one would alone. Where the comparison's time is limited, the first part of the pairs takes
    no more than `FIRST_SHARE` of it, beyond the fewest that tell anything; points at which these would end too late have none. `of` says
    of which runs they are, where that is not all that there will be.
    """

    bench: WholeRunsAsked
    maker: PairSource
    budget_s: float
    of: str = ""
    was_halted: bool = False  # to leave time for where the cost arises
    has_first_words: bool = False  # what is known was said before the comparison is over
    _turns: Turns = field(init=False)
    _seldom_until: float | None = None  # when the time ends that looking for rare slow runs may take, once it has begun
    _looks_for_slow: bool = False  # all points are decided, and pairs are made to meet slow runs

    def __post_init__(self) -> None:
        self._turns = Turns(self.bench.points)

    def make(self, runs: list[Run]) -> None:
        """Add pairs to `runs` until every point is decided, or patience ends; raise WorkloadError or StoreError."""
        turns, maker, config = self._turns, self.maker, self.bench.request.config.measure
        deadline = self.bench.request.deadline
        patience = Patience(self.budget_s, min(config.first_look_s, deadline.left_s), ends_when_slower=config.fast)
        halt_s = (1 - FIRST_SHARE) * deadline.left_s if deadline.is_limited and not self.was_halted else -math.inf
        self.was_halted = False
        looks = {point.id: self._next_look(point) for point in turns.points}
        self.bench.progress.stage(f"comparing whole runs{self.of}", None)

        def pairs() -> Iterator[Block]:
            while not patience.is_over and (turns.open or self._look_for_slow_runs(runs, looks)):
                self._leave_out_what_ends_too_late(deadline)
                self.was_halted = deadline.left_s <= halt_s and turns.fewest >= FEWEST_PAIRS * maker.count
                if self.was_halted or not turns.open:
                    return
                yield self._block(self._next(patience, runs))

        for turn in maker.made(pairs()):
            point = turn.pair[0].point
            runs += [run for run, _ in turn.runs]
            turns.took(point, turn.seconds)
            if patience.is_over or point not in turns.open:  # of several machines the others make their pairs to the end
                continue
            if turns.pairs[point.id] == FEWEST_PAIRS * maker.count and self._is_slower_by_far(point, runs):
                patience.saw_slower_by_far()
            is_look, fewest = turns.pairs[point.id] >= looks[point.id], self._fewest(patience)
            tells_something = is_look or (turns.pairs[point.id] == fewest and patience.wants_fewest)
            if tells_something or turn.seconds >= LONG_S:
                self._tell(runs)
            if tells_something:
                standings = {place: end.standing for place, end in self._ends(runs).items()}
                if standings[point.id] is PointStanding.SLOWER:
                    patience.saw_slower_by_far() if self._is_slower_by_far(point, runs) else patience.saw_slower()
                if is_look and not self._wants_more(point, standings):
                    turns.close(point)
                self._looks_for_slow = False
                # What all points show together, as that head waits more, may leave open again what was decided.
                turns.open_again(*(point for point in turns.points if self._wants_more(point, standings)))
                looks[point.id] = self._next_look(point)
                if self.judged(runs).slower:
                    self._say_first(runs)
            patience.decide(turns.fewest < fewest, partial(self._missing_s, runs))
        self._say_first(runs)

    def _look_for_slow_runs(self, runs: list[Run], looks: dict[int, int]) -> bool:
        """Give a point more pairs where the news is good, but a workload has too few to have met slow runs that are rare; return whether.

        There is a look at them when one is due, or sooner if they are enough by then or time is over.
        """
        if not self.judged(runs).are_not_slower:
            return False
        point, missing = self._turns.cheapest_short_of(runs_that_tell(self.bench.request.config.compare) * self.maker.count)
        if self._seldom_until is None:
            self._seldom_until = time.monotonic() + min(SELDOM_S, FIRST_SHARE * self.bench.request.deadline.left_s)
        ahead = (self._seldom_until - time.monotonic()) * self.maker.count / max(self._turns.mean_s(point), _SHORTEST_S)
        more = min(missing, max(0, math.floor(ahead)), self._next_look(point) - self._turns.pairs[point.id])
        if more > 0:
            looks[point.id] = self._turns.pairs[point.id] + more
            self._turns.open_again(point)
        self._looks_for_slow = more > 0
        return more > 0

    def _next(self, patience: Patience, runs: Sequence[Run]) -> Point:
        """Return the point whose turn it is: where time is over one with too few pairs, or else the one that tells most for its seconds."""
        if patience.wants_fewest:
            return self._turns.next_short_of(self._fewest(patience))
        return self._telling(runs) or self._turns.next

    def _telling(self, runs: Sequence[Run]) -> Point | None:
        """Return the point whose first pairs will soonest show that head is slower by far, by those so far; None where none seems to.

        Each point has a pair before that.
        """
        if not self._turns.fewest:
            return None
        clear = [point for point in self._turns.open if _excess(point, runs) >= math.log(TOLD_BY_FEW)]
        return self._turns.soonest(clear, FEWEST_PAIRS * self.maker.count)

    def _is_slower_by_far(self, point: Point, runs: Sequence[Run]) -> bool:
        """Return whether head is slower at a point by so much that few pairs show it beyond doubt."""
        return point.id in {end.point.id for end in self.slower_by_far(runs)}

    def slower_by_far(self, runs: Sequence[Run]) -> tuple[EndToEnd, ...]:
        """Return the points at which few pairs show beyond doubt that head is slower."""
        return slower_by_far(self.bench.points, runs, self.bench.request.config.compare)

    def _tell(self, runs: list[Run]) -> None:
        """Tell what the runs so far show, or how many there are where these are too few."""
        so_far = self._so_far(runs) or f"too few yet ({max(self._turns.pairs.values())} of {FEWEST_PAIRS} pairs)"
        self.bench.progress.know(f"whole runs: {so_far}")

    def _so_far(self, runs: list[Run]) -> str:
        """Return what the runs so far show at the point where head seems slowest, "" where they are too few at each."""
        ends = [end for end in self.judged(runs).ends if end.ratio is not None]
        if not ends:
            return ""
        shown = max(ends, key=lambda end: (end.standing is PointStanding.SLOWER, end.low))
        decided = sum(end.standing is not PointStanding.OPEN for end in ends)
        ratio, points = shown.ratio, len(self._turns.points)
        assert ratio is not None, "those without are left out"
        at = f"{units.ratio(ratio.value)} [{ratio.low:.2f}, {ratio.high:.2f}] at {shown.point.label}, {ratio.runs_base} pairs"
        return f"{at}; {decided} of {points} points decided"

    def say_what_is_open(self, runs: list[Run]) -> None:
        """Report what the runs show if they leave the question open and no more will be made."""
        so_far = self._so_far(runs)
        if so_far and not self.has_first_words:
            self._say(f"open, {so_far}")

    def _say_first(self, runs: list[Run]) -> None:
        """Say once, as soon as pairs show it, that head is slower, or that it is not where every point is decided."""
        judged = self.judged(runs)
        if judged.slower:
            clearest = judged.slower[0]
            slowest = max(judged.ends, key=_mean_ratio)
            words = f"slower, {units.ratio(_mean_ratio(clearest))} at {clearest.point.label}"
            words += f", and as it seems {units.ratio(_mean_ratio(slowest))} at {slowest.point.label}" * (slowest is not clearest)
        elif judged.are_not_slower and len(judged.ends) == len(self._turns.points):
            words = f"not slower at any point, {units.ratio(judged.excluded)} and more are excluded"
        else:
            return
        if not self.has_first_words:
            self._say(words)
        self.has_first_words = True

    def _say(self, words: str) -> None:
        self.bench.progress.note(f"after {units.duration(1e9 * self.bench.request.deadline.spent_s)}, preliminary{self.of}: {words}")

    def _leave_out_what_ends_too_late(self, deadline: Deadline) -> None:
        """Close points at which the fewest pairs that tell anything would take longer than is left, unless they have these.

        One is left where no point has them yet.
        """
        if not deadline.is_limited:
            return
        turns, fewest = self._turns, FEWEST_PAIRS * self.maker.count
        missing_s = self._seconds(dict.fromkeys(turns.pairs, fewest))  # at points that were run
        for point in sorted(turns.open, key=lambda point: (turns.pairs[point.id] > 0, -turns.expected_s(point))):
            own_s = max(0, fewest - turns.pairs[point.id]) * turns.expected_s(point) / self.maker.count
            begun_s = own_s if turns.pairs[point.id] else 0.0
            if turns.open == (point,) and max(turns.pairs.values()) < fewest:
                return  # nothing tells more, and what pairs took may be amiss
            if own_s and not deadline.allows(missing_s - begun_s + own_s):
                turns.close(point)
                missing_s -= begun_s

    def _wants_more(self, point: Point, standings: Mapping[int, PointStanding]) -> bool:
        """Return whether a point is open and had fewer pairs than most."""
        return standings.get(point.id) is PointStanding.OPEN and self._turns.pairs[point.id] < MOST_PAIRS * self.maker.count

    def confirm(self, runs: list[Run]) -> Point | None:
        """Add pairs to `runs` for as long as the budget is; return a point at which head takes clearly longer, None where none does.

        A pair of each point comes first, the last point before all others. Then the point at which head seems to take longer by more than
        layout makes has more of them, or else the one with the longest runs. Raise WorkloadError or StoreError.
        """
        self.bench.progress.stage("confirming by whole runs", None)
        turns, started = self._turns, time.monotonic()

        def pairs() -> Iterator[Block]:
            for place, point in enumerate(reversed(self.bench.points)):
                if not place or time.monotonic() - started < self.budget_s:
                    yield self._block(point)
            while (point := self._doubtful(runs) or turns.longest) in turns.open:
                if time.monotonic() - started + turns.mean_s(point) > self.budget_s:
                    return
                yield self._block(point)

        for turn in self.maker.made(pairs()):
            point = turn.pair[0].point
            runs += [run for run, _ in turn.runs]
            turns.took(point, turn.seconds)
            if turns.pairs[point.id] == MOST_CONFIRMING:
                turns.close(point)
        return self.contradicting(runs)

    def contradicting(self, runs: list[Run]) -> Point | None:
        """Return a point at which head takes clearly longer, None where none does."""
        return next((end.point for end in self.judged(runs).slower), None) or self._doubtful(runs, closed=True)

    def _doubtful(self, runs: Sequence[Run], *, closed: bool = False) -> Point | None:
        """Return the point at which head takes longest beside base, if that is by more than layout makes; `closed` ones as well."""
        excess = [(_excess(point, runs), point) for point in (self.bench.points if closed else self._turns.open)]
        worst, point = max(excess, key=lambda candidate: candidate[0], default=(0.0, None))
        return None if POLICY.may_be_layout(worst) else point

    def would_decide(self, runs: list[Run]) -> bool:
        """Return whether nothing is slower yet, but what is open would be decided within the time that more pairs may take."""
        return not self.judged(runs).slower and 0 < self._missing_s(runs) <= BUDGETS * self.budget_s

    def judged(self, runs: list[Run]) -> WholeRuns:
        """Return the results of the whole runs so far."""
        return whole_runs(self.bench.points, runs, self.bench.request.config.compare)

    def _block(self, point: Point) -> Block:
        """Return the next pair of a point."""
        seed = self.bench.request.config.compare.seed
        return [schedule.whole_block([point], self._turns.begin(point), seed, may_link=not self._looks_for_slow)]

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


def _mean_ratio(end: EndToEnd) -> float:
    return end.head_ns / end.base_ns


def _excess(point: Point, runs: Sequence[Run]) -> float:
    """Return by how much head takes longer in the median of a point's pairs, as a logarithm, by CPU time or by the clock."""
    base, head = pairs_of(*([run for run in runs if (run.point, run.side) == (point.id, side)] for side in Side))
    return max((float(np.median(logs(head, cost) - logs(base, cost))) for cost in ("cpu_ns", "took_ns") if base), default=-math.inf)
