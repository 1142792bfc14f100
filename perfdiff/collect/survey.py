"""Choose what to measure: which functions get probes, how often they are sampled, which conditions are watched.

The survey build counts and times every function, roughly. Its numbers are never reported; they only decide, within the overhead budget,
what the timed build records.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from perfdiff.languages.protocol import Counterpart
from perfdiff.records import plan
from perfdiff.records.schema import Change, Edges, Floats, Phase, Run, Side, Totals

PROBE_NS = 30.0  # a timed call with three features (scripts/bench probe); the budget is kept with this figure
COUNTED_NS = 10.0  # a call that is only counted (same script)
BRANCH_NS = 1.0  # one outcome of one condition
BRANCH_SHARE = 0.25  # of the budget that conditions may use
WATCHED = 32  # conditions of a function at most: more cells than its features have would cost more than the call is worth
PASSED_NS = 1.5  # a call that passes the probe's gate without a look (same script)
MOVED_SHARE = 0.02  # an unchanged function is probed when its own time moves by more of a run's CPU than this …
HOT_SHARE = 0.10  # … or when it holds more of it than this on either side: slow state made elsewhere shows here
SAMPLING_ERROR = 0.05  # of a run's CPU time, one standard deviation: from the smallest effect of interest on, few timed calls mislead
BEARABLE = 4.0  # of a run's CPU time: where timing all calls of a function adds more (tiny recursive ones), they are sampled all the same
READING_SHARE = 0.25  # of a run's CPU time that reading texts and files may take; no call's time holds it, but runs and caches do
DETAIL_NS = 100_000.0  # from this mean length on, reading the counters of a call (about 2 µs, events included) stays below 2 %


Conditions = Mapping[tuple[Side, int], Sequence[str]]  # texts by side and function


class Priority(IntEnum):
    """Who is served first when the budget is short."""

    SUSPECT = 0
    CALLER = 1
    MOVED = 2
    ANCESTOR = 3


class Rate(NamedTuple):
    """One call in `period` is timed. The others are counted, by their callers, or are `passing`: only their sum is known."""

    period: int
    passing: bool

    @property
    def ns(self) -> float:
        """Return what the probe costs a call, on average."""
        if self.period == 1:
            return PROBE_NS
        return PROBE_NS / self.period + (PASSED_NS if self.passing else COUNTED_NS)


# What hot functions may come down to, in this order: fewer timed calls, then estimated callers.
COUNTED_RATES = (Rate(1, passing=False), *(Rate(period, passing=False) for period in (4, 16, 64, 256)))
PASSING_RATES = tuple(Rate(period, passing=True) for period in (16, 64, 256))


@dataclass(frozen=True, slots=True)
class Budget:
    """What probes may do: add `overhead` to the CPU time of a run, keep `samples` calls of a function; `events` are counted, too."""

    overhead: float
    samples: int
    events: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    """How one function is measured; `detail`: CPU time, faults and switches as well; `far`: texts and files are read."""

    id: int
    priority: Priority
    rate: Rate
    detail: bool
    far: bool
    branches: Mapping[Side, tuple[int, ...]]

    def entry(self, reservoir: int) -> plan.Entry:
        """Return what its probe does in the timed build, where up to `reservoir` calls a run are kept."""
        return plan.Entry.timed(period=self.rate.period, passing=self.rate.passing, detail=self.detail, reservoir=reservoir)


@dataclass(frozen=True, slots=True)
class Survey:
    """What the survey saw, as arrays over cells; a cell is one point on one side.

    `calls`, `self_ns`, `wall_ns`: function id -> (cells,) medians over rounds; `reading_ns`: what reading the texts and files of a call
    takes, and `lengths` (cells, 2, classes): how many calls are of which length, and their time in ns, the least of all rounds, as what
    was disturbed once is not long; `cpu_ns` (cells,) CPU time of the plain build; `executions`: (side, function id) -> outcomes
    per call of each of its conditions; `edges`: pairs (caller, callee) that occurred.
    """

    cells: tuple[tuple[int, Side], ...]
    cpu_ns: Floats
    calls: Mapping[int, Floats]
    self_ns: Mapping[int, Floats]
    wall_ns: Mapping[int, Floats]
    lengths: Mapping[int, Floats]
    reading_ns: Mapping[int, Floats]
    executions: Mapping[tuple[Side, int], Floats]
    edges: frozenset[tuple[int, int]]

    @property
    def ran(self) -> frozenset[int]:
        """Return the functions that were called at least once."""
        return frozenset(self.calls)


def summarise(
    runs: Sequence[Run],
    totals: Totals,
    edges: Edges,
    lengths: Mapping[tuple[int, int], Floats],
    executions: Mapping[tuple[Side, int], Floats],
) -> Survey:
    """Return the survey's numbers from its runs (phases plain and survey); `lengths` by run and function, as an assembly gives them."""
    cells = tuple(sorted({(run.point, run.side) for run in runs}))
    place = {cell: i for i, cell in enumerate(cells)}
    cpu: list[list[float]] = [[] for _ in cells]
    rounds: list[list[int]] = [[] for _ in cells]
    for run in runs:
        if run.phase is Phase.PLAIN:
            cpu[place[run.point, run.side]].append(run.cpu_ns)
        else:
            rounds[place[run.point, run.side]].append(run.id)
    reading_ns = totals.other["reading_ns"] / np.maximum(totals.other["read"], 1.0)
    by_function: dict[int, dict[int, Floats]] = {}
    long_calls: dict[int, dict[int, Floats]] = {}
    rows = np.column_stack([totals.calls, totals.self_ns, totals.wall_ns, reading_ns])
    for run_id, function, row in zip(totals.run.tolist(), totals.function.tolist(), rows, strict=True):
        by_function.setdefault(function, {})[run_id] = row
        long_calls.setdefault(function, {})[run_id] = lengths[run_id, function]
    medians = {function: _over_rounds(seen, rounds, np.median) for function, seen in by_function.items()}
    least = {function: _over_rounds(seen, rounds, np.min) for function, seen in by_function.items()}
    return Survey(
        cells=cells,
        cpu_ns=np.array([np.median(values) if values else np.nan for values in cpu]),
        calls={function: table[:, 0] for function, table in medians.items()},
        self_ns={function: table[:, 1] for function, table in medians.items()},
        wall_ns={function: table[:, 2] for function, table in medians.items()},
        reading_ns={function: table[:, 3] for function, table in least.items()},
        lengths={function: _over_rounds(seen, rounds, np.min) for function, seen in long_calls.items()},
        executions=executions,
        edges=frozenset(zip(edges.caller.tolist(), edges.callee.tolist(), strict=True)),
    )


def _over_rounds(by_run: Mapping[int, Floats], rounds: Sequence[Sequence[int]], summary: Callable[..., Floats]) -> Floats:
    """Return what is known of a function in each run, summed up by cell; where it was not called, all is 0."""
    absent = np.zeros_like(next(iter(by_run.values())))
    return np.array([summary([by_run.get(run_id, absent) for run_id in ids] or [absent], axis=0) for ids in rounds])


def choose(survey: Survey, pairs: Mapping[int, Counterpart], conditions: Conditions, budget: Budget) -> tuple[Choice, ...]:
    """Return the functions to measure, within the overhead of the plain build's CPU time at every point where that is possible.

    Suspects are measured whatever they cost, at worst at the slowest rate that tells their time: leaving out the guilty one is worse than a
    slower run. Where few calls hold it, that is every call. Only functions that call no other candidate may be passing: a callee must find
    its caller on the stack.
    `conditions[side, id]` are the texts of those that can be watched. With events, counters are read of short calls, too, where few
    enough of them are sampled: a call of some ns has no CPU time of its own, but it has instructions.
    """
    priorities = _priorities(survey, pairs)
    callers = {caller for caller, callee in survey.edges if callee in priorities}
    possible = {function: COUNTED_RATES if function in callers else COUNTED_RATES + PASSING_RATES for function in priorities}
    rates = {function: _telling(survey, function, offered) for function, offered in possible.items()}
    costs = {function: np.stack([_cost(survey, function, rate) for rate in rates[function]]) for function in priorities}
    spent = np.zeros(len(survey.cells))
    choices: list[tuple[int, Rate]] = []
    # The cheap first: they cost next to nothing, and a hot suspect that exceeds the budget alone must not push out its callers.
    for function in sorted(priorities, key=lambda each: (priorities[each], float(costs[each][0].max()), each)):
        fits = np.all(spent + costs[function] <= budget.overhead * (1 - BRANCH_SHARE), axis=1)
        if fits.any():
            spent += costs[function][fits.argmax()]
            choices.append((function, rates[function][fits.argmax()]))
        elif priorities[function] is Priority.SUSPECT:
            choices.append((function, rates[function][-1]))
    legible = _legible(survey, choices, budget.samples)
    watched = _watched(survey, [function for function, _ in choices], conditions, budget.overhead * BRANCH_SHARE)
    return tuple(
        Choice(
            id=function,
            priority=priorities[function],
            rate=rate,
            detail=_mean_ns(survey, function) * (rate.period if budget.events else 1) >= DETAIL_NS,
            far=function in legible,
            branches={side: watched.get((side, function), ()) for side in Side},
        )
        for function, rate in choices
    )


def _cost(survey: Survey, function: int, rate: Rate) -> Floats:
    """Return what probing a function costs at each cell, as a share of the plain build's CPU time."""
    return survey.calls[function] * rate.ns / survey.cpu_ns


def _telling(survey: Survey, function: int, offered: Sequence[Rate]) -> Sequence[Rate]:
    """Return the rates that tell the function's time; all, where each of these would make runs unbearably long."""
    telling = [rate for rate in offered if rate.period == 1 or _tells(survey, function, rate)]
    return telling if np.all(_cost(survey, function, telling[-1]) <= BEARABLE) else offered


def _tells(survey: Survey, function: int, rate: Rate) -> bool:
    """Return whether the timed calls tell the function's time, and with it that of its callers, of every run.

    Where each of n calls of length t is timed with probability 1/k and stands for k, the variance of the sum of their times is
    (k - 1) n t² (Horvitz and Thompson 1952). Fewer than k are missed in most runs, and their time is taken for their caller's own. So
    one in 256 is enough of many cheap calls, but not where expensive ones among them hold the time, as the outermost of a recursion do.
    """
    calls, ns = survey.lengths[function][:, 0], survey.lengths[function][:, 1]
    is_missed = calls < rate.period - 1
    variance = np.where(is_missed, 0.0, np.square(ns) * (rate.period - 1) / np.maximum(calls, 1.0)).sum(axis=1)
    missed = np.where(is_missed, ns, 0.0).sum(axis=1)
    return bool(np.all(np.hypot(np.sqrt(variance), missed) <= SAMPLING_ERROR * survey.cpu_ns))


def _legible(survey: Survey, choices: Iterable[tuple[int, Rate]], samples: int) -> set[int]:
    """Return the functions whose texts and files can be read at every call that is kept, the quickest first."""
    costs = {
        function: survey.reading_ns[function] * _taken(survey.calls[function] / rate.period, samples) / survey.cpu_ns
        for function, rate in choices
    }
    spent = np.zeros(len(survey.cells))
    found: set[int] = set()
    for function in sorted(costs, key=lambda each: (float(costs[each].max()), each)):
        if np.all(spent + costs[function] <= READING_SHARE):
            spent += costs[function]
            found.add(function)
    return found


def _taken(calls: Floats, samples: int) -> Floats:
    """Return how many of so many calls a reservoir of `samples` takes in, sooner or later, on average (Vitter 1985)."""
    more = np.maximum(calls / samples, 1.0)
    return np.where(calls <= samples, calls, samples * (1.0 + np.log(more)))


def _priorities(survey: Survey, pairs: Mapping[int, Counterpart]) -> dict[int, Priority]:
    """Say of every function worth a probe why it is."""
    found: dict[int, Priority] = {}
    for function in sorted(survey.ran & set(pairs)):
        change = pairs[function].change
        if change.is_suspect or pairs[function].followed:
            found[function] = Priority.SUSPECT
        elif change is Change.CALLER:
            found[function] = Priority.CALLER
        elif _moved(survey, function):
            found[function] = Priority.MOVED
    for function in _ancestors(survey.edges, found):
        if function in pairs:
            found.setdefault(function, Priority.ANCESTOR)
    return found


def _moved(survey: Survey, function: int) -> bool:
    """Return whether an unchanged function's own time differs between the sides, or is large on either."""
    by_cell = dict(zip(survey.cells, range(len(survey.cells)), strict=True))
    for point in {point for point, _ in survey.cells}:
        base, head = by_cell.get((point, Side.BASE)), by_cell.get((point, Side.HEAD))
        if base is None or head is None:
            continue
        cpu = min(survey.cpu_ns[base], survey.cpu_ns[head])
        self_ns = survey.self_ns[function]
        if abs(self_ns[head] - self_ns[base]) > MOVED_SHARE * cpu or max(self_ns[head], self_ns[base]) > HOT_SHARE * cpu:
            return True
    return False


def _ancestors(edges: Iterable[tuple[int, int]], functions: Iterable[int]) -> set[int]:
    """Return everything that calls `functions`, directly or not; guilt and netting follow these paths."""
    callers: dict[int, set[int]] = {}
    for caller, callee in edges:
        callers.setdefault(callee, set()).add(caller)
    seen: set[int] = set()
    open_ends = list(functions)
    while open_ends:
        for caller in callers.get(open_ends.pop(), set()) - seen - {0}:
            seen.add(caller)
            open_ends.append(caller)
    return seen


def _watched(survey: Survey, functions: Sequence[int], conditions: Conditions, budget: float) -> dict[tuple[Side, int], tuple[int, ...]]:
    """Return the conditions to watch per side and function, as long as their cost fits the budget.

    A condition that both sides have is watched on both or on none: what watching does to the compiler's code must not differ. First come
    those met nearest to once a call, which tell its modes apart; never met, a condition tells nothing.
    """
    offers: list[tuple[float, int, list[tuple[Side, int]], float]] = []
    for function in functions:
        for places in _paired(function, conditions):
            met = {(side, place): _met(survey, side, function, place) for side, place in places}
            if not any(met.values()):
                continue
            distance = min(abs(float(np.log(often))) for often in met.values() if often)
            cost = max(often * _calls_share(survey, side, function) * BRANCH_NS for (side, _), often in met.items())
            offers.append((distance, function, places, cost))
    spent = 0.0
    watched: dict[tuple[Side, int], list[int]] = {}
    for _, function, places, cost in sorted(offers):
        if spent + cost <= budget and all(len(watched.get((side, function), ())) < WATCHED for side, _ in places):
            spent += cost
            for side, place in places:
                watched.setdefault((side, function), []).append(place)
    return {key: tuple(sorted(chosen)) for key, chosen in watched.items()}


def _paired(function: int, conditions: Conditions) -> list[list[tuple[Side, int]]]:
    """Return the conditions of a function that all its sides have, by their texts: (side, place) of each."""
    sides = [side for side in Side if (side, function) in conditions]
    found: dict[tuple[str, int], list[tuple[Side, int]]] = {}
    for side in sides:
        seen: Counter[str] = Counter()
        for place, text in enumerate(conditions[side, function]):
            found.setdefault((text, seen[text]), []).append((side, place))
            seen[text] += 1
    return [places for places in found.values() if len(places) == len(sides)]


def _met(survey: Survey, side: Side, function: int, place: int) -> float:
    """Return how often a condition is met in a call."""
    per_call = survey.executions.get((side, function), np.empty(0))
    return float(per_call[place]) if place < len(per_call) else 0.0


def _calls_share(survey: Survey, side: Side, function: int) -> float:
    """Return the most calls of a function per ns of the plain build's CPU time at any cell of a side."""
    cells = [i for i, (_, at) in enumerate(survey.cells) if at is side]
    return float(np.max(survey.calls[function][cells] / survey.cpu_ns[cells]))


def _mean_ns(survey: Survey, function: int) -> float:
    """Return the mean length of a call over all cells in which it ran."""
    calls = float(np.sum(survey.calls[function]))
    return float(np.sum(survey.wall_ns[function])) / calls if calls else 0.0
