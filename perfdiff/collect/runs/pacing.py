"""How often each probe of a program in use looks at a call: as often as the budget allows by what it was called for a while."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from perfdiff.collect.choosing.calling import nearest
from perfdiff.collect.choosing.rates import COUNTED_RATES, PASSING_RATES, Rate
from perfdiff.languages.protocol import ProbeCosts

SLOWEST = Rate(4096, passing=True)
BEGIN_LEAF, BEGIN = Rate(256, passing=True), Rate(64)  # before anything is known
LEAST_CPU_S = 0.05  # of a look: less says nothing of how often functions are called


@dataclass(frozen=True, slots=True)
class ProbeRates:
    """The rates of all probes, and what they add, as a share of CPU time."""

    rates: Mapping[int, Rate]
    overhead: float


def leaves(functions: Collection[int], calls: Mapping[int, Collection[int]]) -> frozenset[int]:
    """Return those that call none of `functions`, themselves included, as far as sources tell: their calls may pass without a look."""
    return frozenset(function for function in functions if not nearest(function, calls, set(functions)))


def beginning(functions: Collection[int], leaves: Collection[int]) -> dict[int, Rate]:
    """Return the rates of a program of which nothing is known yet."""
    return {function: BEGIN_LEAF if function in leaves else BEGIN for function in functions}


def paced(calls: Mapping[int, float], cpu_s: float, costs: Mapping[int, ProbeCosts], leaves: Collection[int], budget: float) -> ProbeRates:
    """Return the highest sampling rates that together stay within `budget`, a share of the `cpu_s` in which `calls` were made.

    Each function has its slowest rate first; then the cheap are served, as they cost next to nothing, and a hot one must not push them out.
    """
    cpu_ns = max(cpu_s, LEAST_CPU_S) * 1e9
    offers = {function: (Rate(1), *PASSING_RATES, SLOWEST) if function in leaves else COUNTED_RATES for function in costs}

    def share(function: int, rate: Rate) -> float:
        return calls.get(function, 0.0) * rate.ns(costs[function]) / cpu_ns

    rates = {function: offer[-1] for function, offer in offers.items()}
    spent = sum(share(function, rate) for function, rate in rates.items())
    for function in sorted(offers, key=lambda function: (share(function, Rate(1)), function)):
        others = spent - share(function, rates[function])
        fitting = next((rate for rate in offers[function] if others + share(function, rate) <= budget), rates[function])
        spent, rates[function] = others + share(function, fitting), fitting
    return ProbeRates(rates, spent)
