"""How often each probe looks at a call, within the overhead that probes may have; suspects that no rate makes cheap enough are folded."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from perfdiff.collect.choosing.calling import nearest
from perfdiff.languages.protocol import ProbeCosts
from perfdiff.records.arrays import Floats

SAMPLING_ERROR = 0.05  # of a run's CPU time, one standard deviation: from the smallest effect of interest on, few timed calls mislead
BEARABLE = 4.0  # of a run's CPU time: what a function may add that is measured in any case, before its timed calls may mislead
# Of a run's CPU time, what suspects may add beyond the budget before they are folded. Some programs' probes cost twice what they do in
# others (scripts/bench overhead: inlining and registers lost); no run must grow by more than a quarter …
STRETCH = 0.10
MOST = 0.25  # … and by so much only for suspects with long calls: what is folded of these is not short, but what was to be told
LONG = 10.0  # probes: a call that lasts as long is told to a tenth, though a probe took twice what it is known to take
START_NS = 0.8e6  # at most, what the runtime takes to start in a process (docs/studies/probes.md): less hardly makes a short run longer


class Rate(NamedTuple):
    """One call in `period` is timed. The others are counted, by their callers, or are `passing`: only their sum is known.

    Those that are `marked` are counted without an entry on the shadow stack, which costs less. With `inner`, that holds for the outermost
    calls of a recursion, and one in `inner` of the calls inside it is timed; the others pass.
    """

    period: int
    passing: bool = False
    inner: int = 0
    marked: bool = False

    def ns(self, costs: ProbeCosts) -> float:
        """Return the probe's mean cost in ns per call, or per outermost call of a recursion."""
        if self.period == 1:
            return costs.timed_ns
        between = costs.passed_ns if self.passing else costs.marked_ns if self.marked else costs.counted_ns
        return costs.timed_ns / self.period + between

    def inner_ns(self, costs: ProbeCosts) -> float:
        """Return the probe's mean cost in ns per call inside a recursion."""
        return costs.timed_ns / self.inner + costs.passed_ns if self.inner else self.ns(costs)


# What hot functions may come down to, in this order: fewer timed calls, then estimated callers.
COUNTED_RATES = (Rate(1), *(Rate(period) for period in (4, 16, 64, 256)))
MARKED_RATES = (Rate(1), *(rate._replace(marked=True) for rate in COUNTED_RATES[1:]))
PASSING_RATES = tuple(Rate(period, passing=True) for period in (16, 64, 256))
# Of functions that call themselves: fewer inner calls are timed first, as outermost ones alone tell the sum.
RECURSIVE_RATES = (Rate(1), *(Rate(1, inner=inner) for inner in (16, 64, 256)), *(Rate(period, inner=256) for period in (4, 16, 64, 256)))


@dataclass(frozen=True, slots=True)
class Traffic:
    """The calls of one function at each of c cells, as the survey saw them.

    `calls` (c,), of these `inner` (c,) inside a call of the same function, by itself; `lengths` (c, 2, classes): how many calls are of
    which length, and their time in ns; `probe` is what one costs there.
    """

    calls: Floats
    inner: Floats
    lengths: Floats
    probe: ProbeCosts

    def cost(self, rate: Rate, cpu_ns: Floats) -> Floats:
        """Return the cost of probing at each cell, as a share of CPU time."""
        return ((self.calls - self.inner) * rate.ns(self.probe) + self.inner * rate.inner_ns(self.probe)) / cpu_ns

    def is_long(self, cpu_ns: Floats) -> bool:
        """Return whether calls as long as `LONG` probes hold half of the time of all at some cell; a part of a call counts as one, too."""
        ns = self._ns(cpu_ns)
        held = np.where(ns >= LONG * self.probe.timed_ns * self.lengths[:, 0], ns, 0.0).sum(axis=1)
        return bool(np.any(held > ns.sum(axis=1) / 2))

    def tells(self, rate: Rate, cpu_ns: Floats) -> bool:
        """Return whether the timed calls tell the function's time, and with it that of its callers, of every run.

        Where each of n calls of length t is timed with probability 1/k and stands for k, the variance of the sum of their times is
        (k - 1) n t² (Horvitz and Thompson 1952). Fewer than k are missed in most runs, and their time is taken for their caller's own. So
        one in 256 is enough of many cheap calls, but not where expensive ones among them hold the time, as the outermost of a recursion do.
        """
        if rate.period == 1:
            return True
        calls, ns = self.lengths[:, 0], self._ns(cpu_ns)
        is_missed = calls < rate.period - 1
        variance = np.where(is_missed, 0.0, np.square(ns) * (rate.period - 1) / np.maximum(calls, 1.0)).sum(axis=1)
        missed = np.where(is_missed, ns, 0.0).sum(axis=1)
        return bool(np.all(np.hypot(np.sqrt(variance), missed) <= SAMPLING_ERROR * cpu_ns))

    def _ns(self, cpu_ns: Floats) -> Floats:
        """Return the time (c, classes) of calls by length: all together last no longer than the run, whose probes in callees made them
        longer in the survey.
        """
        ns = self.lengths[:, 1]
        longer: Floats = np.maximum(ns.sum(axis=1) / cpu_ns, 1.0)
        return ns / longer[:, None]


@dataclass(frozen=True, slots=True)
class ProbeCandidate:
    """A function worth a probe. The lower its `rank`, the earlier it is served.

    A `required` one may exceed the budget, by so much that it is folded or, unless it `may_fold`, by whatever it takes.
    """

    traffic: Traffic
    rank: int
    required: bool
    may_fold: bool


@dataclass(slots=True)
class Allotment:
    """Gives out the overhead.

    `cpu_ns` (c,) is the plain build's time at each cell, `calls` who calls whom, `rings` number the functions that call each other in
    circles, or themselves. Where `marks`, calls of others may be marked.
    """

    candidates: Mapping[int, ProbeCandidate]
    calls: Mapping[int, Collection[int]]
    rings: Mapping[int, int]
    cpu_ns: Floats
    budget: float
    marks: bool = False
    _offers: dict[tuple[int, Sequence[Rate]], _Offer] = field(default_factory=dict)

    def settle(self) -> tuple[dict[int, Rate], dict[int, float]]:
        """Return the rates of those that are probed, in the order in which they were served, and what folded suspects would have taken.

        Who is folded, or does not fit, may leave its callers as leaves, whose calls can pass the gate: the most expensive one goes first.
        What those take that are measured in any case makes nobody else fold.
        """
        probed = set(self.candidates)
        short = {function for function, candidate in self.candidates.items() if not candidate.traffic.is_long(self.cpu_ns)}
        folded: dict[int, float] = {}
        while True:
            rates = self._served(probed)
            if len(rates) < len(probed):
                probed = set(rates)
                continue
            costs = {function: self.candidates[function].traffic.cost(rate, self.cpu_ns) for function, rate in rates.items()}
            worst = self._too_dear(costs, short)
            if worst is None:
                return rates, folded
            probed.remove(worst)
            folded[worst] = float(costs[worst].max())

    def _too_dear(self, costs: Mapping[int, Floats], short: Set[int]) -> int | None:
        """Return the suspect to fold next, of those with `short` calls first, or None where they all can be borne."""
        bounded = {id_: self.candidates[id_] for id_ in costs if self.candidates[id_].may_fold or not self.candidates[id_].required}
        for most, among in ((self.budget + STRETCH, [function for function in bounded if function in short]), (MOST, list(bounded))):
            total = sum((costs[function] for function in among), np.zeros_like(self.cpu_ns))
            over = total > np.maximum(most, START_NS / self.cpu_ns)
            foldable = [function for function in among if bounded[function].required and costs[function][over].any()]
            if foldable:
                return max(foldable, key=lambda function: (float(costs[function][over].max()), function))
        return None

    def _served(self, probed: Set[int]) -> dict[int, Rate]:
        """Return the rates of all that fit, and the slowest of required ones that do not.

        The cheap first: they cost next to nothing, and a hot suspect that exceeds the budget alone must not push out its callers.
        """
        offers = {function: self._offer(function, probed) for function in probed}
        spent = np.zeros_like(self.cpu_ns)
        rates: dict[int, Rate] = {}
        for function in sorted(probed, key=lambda function: (self.candidates[function].rank, offers[function].dearest, function)):
            offer = offers[function]
            fits = np.all(spent + offer.costs <= self.budget, axis=1)
            if fits.any():
                spent += offer.costs[fits.argmax()]
                rates[function] = offer.rates[fits.argmax()]
            elif self.candidates[function].required:
                rates[function] = offer.rates[-1]
        return rates

    def _offer(self, function: int, probed: Set[int]) -> _Offer:
        """Return the rates that tell a function's time; all, where it is measured in any case and these would make runs unbearably long."""
        offered = self._possible(function, probed)
        if (function, offered) not in self._offers:
            candidate = self.candidates[function]
            telling = [rate for rate in offered if candidate.traffic.tells(rate, self.cpu_ns)]
            if not candidate.may_fold and not np.all(candidate.traffic.cost(telling[-1], self.cpu_ns) <= BEARABLE):
                telling = list(offered)
            costs = np.stack([candidate.traffic.cost(rate, self.cpu_ns) for rate in telling])
            self._offers[function, offered] = _Offer(telling, costs, float(costs[0].max()))
        return self._offers[function, offered]

    def _possible(self, function: int, probed: Set[int]) -> tuple[Rate, ...]:
        """Return what the places of a function's calls allow.

        A callee must find its caller on the stack, so that calls pass only where no probed function is called but the same one: then
        the outermost call stands for all of them. A mark tells callees their caller as well, but not which calls of a function are open.
        """
        callees = nearest(function, self.calls, probed)
        if function in callees:
            around = {other for other in probed if self.rings.get(other) == self.rings[function]}
            return RECURSIVE_RATES if around == {function} else COUNTED_RATES
        counted = MARKED_RATES if self.marks and function not in self.rings else COUNTED_RATES
        return counted if callees else (*counted, *PASSING_RATES)


class _Offer(NamedTuple):
    """Rates with their costs (rates, c), and the most that the first one takes."""

    rates: Sequence[Rate]
    costs: Floats
    dearest: float


def may_mark(costs: Iterable[ProbeCosts]) -> bool:
    """Return whether calls may be marked in a program whose probes have these costs: all of its calls have frames on the C stack."""
    return all(cost.marked_ns < math.inf for cost in costs)


def rings(calls: Mapping[int, Iterable[int]]) -> dict[int, int]:
    """Number the functions that call themselves, directly or through others: the same number for those that call each other."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    names = sorted({*calls, *(callee for callees in calls.values() for callee in callees)})
    place = {name: i for i, name in enumerate(names)}
    pairs = np.array([(place[caller], place[callee]) for caller, callees in calls.items() for callee in callees], np.int64).reshape(-1, 2)
    if not len(pairs):
        return {}
    graph = coo_array((np.ones(len(pairs), np.int8), (pairs[:, 0], pairs[:, 1])), shape=(len(names), len(names)))
    _, ring = connected_components(graph, directed=True, connection="strong")
    sizes = np.bincount(ring)
    return {name: int(ring[i]) for i, name in enumerate(names) if sizes[ring[i]] > 1 or name in calls.get(name, ())}
