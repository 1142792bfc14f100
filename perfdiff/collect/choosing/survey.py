"""Choose what to measure: which functions get probes, how often they are sampled, which conditions are watched.

The survey build counts and times every function, roughly. Its numbers are never reported; they only decide, within the overhead budget,
what the timed build records.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np

from perfdiff.collect.choosing.calling import callers, nearest
from perfdiff.collect.choosing.rates import START_NS, Allotment, ProbeCandidate, Rate, Traffic, may_mark, rings
from perfdiff.languages.protocol import Counterpart, ProbeCosts
from perfdiff.records import plan
from perfdiff.records.arrays import Floats
from perfdiff.records.schema import Change, Edges, Phase, Run, Side, Totals

BRANCH_SHARE = 0.25  # of the budget that conditions may use
WATCHED = 32  # conditions of a function at most: more cells than its features have would cost more than the call is worth
MOVED_SHARE = 0.02  # an unchanged function is probed when its own time moves by more of a run's CPU than this …
HOT_SHARE = 0.10  # … or when it holds more of it than this on either side: slow state made elsewhere shows here
# To keep a call takes so much beside its texts: for its inputs, its counters, and its record, in memory that is touched for the first time.
KEPT_NS = 300.0
CLOSE = 64  # callees of a kept call that are timed, at most, for its own time (PD_CLOSE_PASSING of the runtime)
ALONE_SHARE = 0.25  # of a run that keeping calls may take where one side is measured: single calls are what is asked for then
FEWEST_KEPT = 10  # calls of a function in a run, where keeping more takes too long: ten runs of them are a hundred at each point
LITTLE = 0.01  # of a run: of a function that with all it calls costs less of any …
FEWEST_OF_LITTLE = 2  # … fewer are enough, as exact sums say what it costs there
# From this mean length on, reading the counters of a call (about 2 µs, events included) stays below 2 %; as calls lie within each other,
# all together are read no more often than once in this time of a run's CPU.
DETAIL_NS = 100_000.0


Conditions = Mapping[tuple[Side, int], Sequence[str]]  # texts by side and function


class Priority(IntEnum):
    """Who is served first when the budget is short."""

    SUSPECT = 0
    CALLER = 1
    MOVED = 2
    ANCESTOR = 3


@dataclass(frozen=True, slots=True)
class Budget:
    """What probes may do: add `overhead` to the CPU time of a run, and keep `samples` calls of a function, which may take the share
    `keeping` of a run; `events` are counted, too.

    `costs` are those of probes, by language. With `folds`, suspects that exceed the overhead by far are folded into their callers.
    """

    overhead: float
    keeping: float
    samples: int
    costs: Mapping[str, ProbeCosts]
    events: bool = False
    folds: bool = True


@dataclass(frozen=True, slots=True)
class ProbeChoice:
    """How one function is measured: up to `samples` calls of a run are kept; `detail`: CPU time, faults and switches as well; `far`: texts
    and files are read.
    """

    id: int
    priority: Priority
    rate: Rate
    samples: int
    detail: bool
    far: bool
    branches: Mapping[Side, tuple[int, ...]]

    @property
    def entry(self) -> plan.ProbePlan:
        """Return the plan of its probe in the timed build."""
        return plan.ProbePlan.timed(detail=self.detail, reservoir=self.samples).paced(**self.rate._asdict())


@dataclass(frozen=True, slots=True)
class Fold:
    """A suspect without a probe in timed runs, whose time is that of its `hosts`, the nearest probed callers.

    `calls` by cell, `call_ns` the mean length of one, `overhead` what a probe would add to a run's CPU time at the slowest telling rate.
    """

    id: int
    hosts: tuple[int, ...]
    calls: Floats
    call_ns: float
    overhead: float


@dataclass(frozen=True, slots=True)
class ProbeSelection:
    """What is probed in timed runs, and what is folded into that; `left_out` are callers of suspects that did not fit the budget, with the
    nearest probed functions above them, whose time holds theirs.
    """

    choices: tuple[ProbeChoice, ...] = ()
    folds: tuple[Fold, ...] = ()
    left_out: Mapping[int, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Survey:
    """What the survey saw, as arrays over cells; a cell is one point on one side.

    `calls`, `self_ns`, `wall_ns`: function id -> (cells,) medians over rounds; `reading_ns`: what reading the texts and files of a call
    takes, and `lengths` (cells, 2, classes): how many calls are of which length, and their time in ns, the least of all rounds, as what
    was disturbed once is not long; `cpu_ns` (cells,) CPU time of the plain build; `executions`: (side, function id) -> outcomes
    per call of each of its conditions; `edges`: pairs (caller, callee) that occurred -> calls (cells,). `clocked`: a clock ends runs of the
    plain build.
    """

    cells: tuple[tuple[int, Side], ...]
    cpu_ns: Floats
    calls: Mapping[int, Floats]
    self_ns: Mapping[int, Floats]
    wall_ns: Mapping[int, Floats]
    lengths: Mapping[int, Floats]
    reading_ns: Mapping[int, Floats]
    executions: Mapping[tuple[Side, int], Floats]
    edges: Mapping[tuple[int, int], Floats]
    clocked: bool = False

    @property
    def ran(self) -> frozenset[int]:
        """Return the functions that were called at least once."""
        return frozenset(self.calls)

    @property
    def called(self) -> dict[tuple[int, Side], frozenset[int]]:
        """Return the same by point and side."""
        return {
            cell: frozenset(function for function, calls in self.calls.items() if calls[place] > 0) for place, cell in enumerate(self.cells)
        }


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
    edge_calls: dict[tuple[int, int], dict[int, Floats]] = {}
    for run_id, *pair, calls in zip(*(column.tolist() for column in (edges.run, edges.caller, edges.callee, edges.calls)), strict=True):
        edge_calls.setdefault((pair[0], pair[1]), {})[run_id] = np.array(calls)
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
        edges={pair: _over_rounds(seen, rounds, np.median) for pair, seen in edge_calls.items()},
        clocked=any(run.clocked for run in runs),
    )


def _over_rounds(by_run: Mapping[int, Floats], rounds: Sequence[Sequence[int]], summary: Callable[..., Floats]) -> Floats:
    """Return what is known of a function in each run, summed up by cell; where it was not called, all is 0."""
    absent = np.zeros_like(next(iter(by_run.values())))
    return np.array([summary([by_run.get(run_id, absent) for run_id in ids] or [absent], axis=0) for ids in rounds])


def choose(survey: Survey, pairs: Mapping[int, Counterpart], conditions: Conditions, budget: Budget) -> ProbeSelection:
    """Return the functions to measure, within the overhead of the plain build's CPU time at every point where that is possible.

    Suspects may exceed it, at worst at the slowest rate that tells their time; those that would exceed it by far are folded. So may hot
    functions where a clock ends runs, as nothing but their calls tells how fast the program is then. Where few calls hold a function's
    time, every call is timed. Calls pass the gate only in functions that call no other candidate, as a callee must find its caller on the
    stack.

    `conditions[side, id]` are the texts of those that can be watched. With events, counters are read of short calls, too, where few
    enough of them are sampled: a call of some ns has no CPU time of its own, but it has instructions.
    """
    priorities = _priorities(survey, pairs)
    allotment = _allotment(survey, pairs, priorities, budget)
    rates, folded = allotment.settle()
    costs = {function: allotment.candidates[function].traffic.probe for function in rates}
    samples, unread = _kept(survey, rates, costs, budget)
    detailed = _detailed(survey, rates, priorities, budget)
    branch_ns = {function: cost.branch_ns for function, cost in costs.items()}
    watched = _watched(survey, branch_ns, conditions, budget.overhead * BRANCH_SHARE)
    choices = tuple(
        ProbeChoice(
            id=function,
            priority=priorities[function],
            rate=rate,
            samples=samples[function],
            detail=function in detailed,
            far=function not in unread,
            branches={side: watched.get((side, function), ()) for side in Side},
        )
        for function, rate in rates.items()
    )
    above = callers(allotment.calls)

    def hosts(function: int) -> tuple[int, ...]:
        return tuple(sorted(nearest(function, above, rates)))

    folds = (
        Fold(
            id=function,
            hosts=hosts(function),
            calls=survey.calls[function],
            call_ns=_mean_ns(survey, function),
            overhead=overhead,
        )
        for function, overhead in folded.items()
    )
    left_out = {caller: hosts(caller) for caller, priority in priorities.items() if priority is Priority.CALLER and caller not in rates}
    return ProbeSelection(choices, tuple(folds), left_out)


def _allotment(survey: Survey, pairs: Mapping[int, Counterpart], priorities: Mapping[int, Priority], budget: Budget) -> Allotment:
    calls = _callees(survey.edges)
    around = rings(calls)
    inner = dict.fromkeys(priorities, np.zeros(len(survey.cells)))
    for (caller, callee), edge_calls in survey.edges.items():
        if callee in inner and callee in around and around[callee] == around.get(caller):
            inner[callee] = inner[callee] + edge_calls
    candidates = {
        function: ProbeCandidate(
            traffic=Traffic(
                survey.calls[function], inner[function], survey.lengths[function], budget.costs[pairs[function].shown.language]
            ),
            rank=priority,
            required=priority is Priority.SUSPECT or (survey.clocked and priority is Priority.MOVED),
            may_fold=budget.folds and priority is Priority.SUSPECT and not pairs[function].followed,
        )
        for function, priority in priorities.items()
    }
    marks = may_mark(budget.costs.values())
    return Allotment(candidates, calls, around, survey.cpu_ns, budget.overhead * (1 - BRANCH_SHARE), marks)


def _kept(
    survey: Survey, rates: Mapping[int, Rate], probes: Mapping[int, ProbeCosts], budget: Budget
) -> tuple[dict[int, int], frozenset[int]]:
    """Return how many calls of each function are kept in a run, and the functions whose texts and files are not read of these.

    No call's time holds what that takes, but runs and caches do. Of those that take most fewer calls are kept, and where these are the
    fewest already, their texts are not read. Of hundreds of functions ten calls each would take longer than a short run.
    """
    functions, close = list(rates), _close(survey, rates)
    whole = np.maximum.reduce([survey.cpu_ns, *survey.wall_ns.values()])  # as long as the survey's probes made it
    costly = np.array([np.any(survey.wall_ns[function] >= LITTLE * whole) for function in functions], dtype=bool)
    fewest = np.where(costly, FEWEST_KEPT, FEWEST_OF_LITTLE)
    unread: set[int] = set()
    timed, aside_ns, reading_ns = (
        np.array(rows).reshape(len(functions), len(survey.cells))
        for rows in (
            [survey.calls[function] / rates[function].period for function in functions],
            [KEPT_NS + close[function] * probes[function].timed_ns for function in functions],
            [survey.reading_ns[function] for function in functions],
        )
    )
    samples, most = np.full(len(functions), budget.samples), np.maximum(budget.keeping, START_NS / survey.cpu_ns)
    costs = (aside_ns + reading_ns) * _taken(timed, budget.samples) / survey.cpu_ns
    while True:
        over, may_take_less = costs.sum(axis=0) / most, (samples > fewest) | reading_ns.any(axis=1)
        if np.all(over <= 1) or not may_take_less.any():
            return dict(zip(functions, samples.tolist(), strict=True)), frozenset(unread)
        worst = int(np.argmax(np.where(may_take_less, costs[:, np.argmax(over)], -1.0)))
        if samples[worst] > fewest[worst]:
            samples[worst] = max(samples[worst] // 2, fewest[worst])
        else:
            unread.add(functions[worst])
            samples[worst], reading_ns[worst] = budget.samples, 0.0
        costs[worst] = (aside_ns[worst] + reading_ns[worst]) * _taken(timed[worst], int(samples[worst])) / survey.cpu_ns


def _close(survey: Survey, rates: Mapping[int, Rate]) -> dict[int, Floats]:
    """Return how many callees of a call (cells,) are timed for its own time where it is kept, beside those that are in any case."""
    called = {function: np.zeros(len(survey.cells)) for function in rates}
    for (caller, callee), calls in survey.edges.items():
        if caller in rates and callee != caller and callee in rates and rates[callee].period > 1:
            called[caller] += calls
    return {function: np.minimum(timed / np.maximum(survey.calls[function], 1.0), CLOSE) for function, timed in called.items()}


def _detailed(survey: Survey, rates: Mapping[int, Rate], priorities: Mapping[int, Priority], budget: Budget) -> set[int]:
    """Return the functions whose sampled calls have their counters read, suspects and the longest first."""
    lengths = {function: _mean_ns(survey, function) * (rate.period if budget.events else 1) for function, rate in rates.items()}
    reads = {function: np.minimum(survey.calls[function] / rate.period, budget.samples) for function, rate in rates.items()}
    most, read = np.maximum(survey.cpu_ns / DETAIL_NS, 1.0), np.zeros(len(survey.cells))
    detailed: set[int] = set()
    for function in sorted(lengths, key=lambda function: (priorities[function] is not Priority.SUSPECT, -lengths[function], function)):
        if lengths[function] >= DETAIL_NS and np.all(read + reads[function] <= most):
            read += reads[function]
            detailed.add(function)
    return detailed


def _taken(calls: Floats, samples: int) -> Floats:
    """Return how many of so many calls a reservoir of `samples` takes in, sooner or later, on average (Vitter 1985)."""
    more = np.maximum(calls / samples, 1.0)
    return np.where(calls <= samples, calls, samples * (1.0 + np.log(more)))


def _priorities(survey: Survey, pairs: Mapping[int, Counterpart]) -> dict[int, Priority]:
    """Say of every function worth a probe why it is."""
    priorities: dict[int, Priority] = {}
    for function in sorted(survey.ran & set(pairs)):
        change = pairs[function].change
        if change.is_suspect or pairs[function].followed:
            priorities[function] = Priority.SUSPECT
        elif change is Change.CALLER:
            priorities[function] = Priority.CALLER
        elif _moved(survey, function):
            priorities[function] = Priority.MOVED
    for function in _ancestors(survey.edges, priorities):
        if function in pairs:
            priorities.setdefault(function, Priority.ANCESTOR)
    return priorities


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
    above = callers(_callees(edges))
    seen: set[int] = set()
    open_ends = list(functions)
    while open_ends:
        for caller in above.get(open_ends.pop(), set()) - seen - {0}:
            seen.add(caller)
            open_ends.append(caller)
    return seen


def _callees(edges: Iterable[tuple[int, int]]) -> dict[int, set[int]]:
    """Return whom each function calls."""
    callees: dict[int, set[int]] = {}
    for caller, callee in edges:
        callees.setdefault(caller, set()).add(callee)
    return callees


def _watched(
    survey: Survey, branch_ns: Mapping[int, float], conditions: Conditions, budget: float
) -> dict[tuple[Side, int], tuple[int, ...]]:
    """Return the conditions to watch per side and function, as long as their cost fits the budget: `branch_ns` an outcome, by function.

    A condition that both sides have is watched on both or on none: what watching does to the compiler's code must not differ. First come
    those met nearest to once a call, which tell its modes apart; never met, a condition tells nothing.
    """
    offers: list[tuple[float, int, list[tuple[Side, int]], float]] = []
    for function in branch_ns:
        for places in _paired(function, conditions):
            met = {(side, place): _met(survey, side, function, place) for side, place in places}
            if not any(met.values()):
                continue
            distance = min(abs(float(np.log(often))) for often in met.values() if often)
            cost = max(often * _calls_share(survey, side, function) * branch_ns[function] for (side, _), often in met.items())
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
    places_by_text: dict[tuple[str, int], list[tuple[Side, int]]] = {}
    for side in sides:
        seen: Counter[str] = Counter()
        for place, text in enumerate(conditions[side, function]):
            places_by_text.setdefault((text, seen[text]), []).append((side, place))
            seen[text] += 1
    return [places for places in places_by_text.values() if len(places) == len(sides)]


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
