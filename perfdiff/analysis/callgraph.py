"""Who calls whom, at what cost on both sides: values that reports draw trees from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class CallCost:
    """What all calls of a function take in one run of each workload point: medians over runs, added up; `self_*` without probed callees."""

    self_base_ns: float
    self_head_ns: float
    base_ns: float
    head_ns: float


@dataclass(frozen=True, slots=True)
class CallEdge:
    """Calls of one function by another, summed as in `CallCost`, callees included. As `caller`, None is the start of a thread."""

    caller: int | None
    callee: int
    calls_base: float
    calls_head: float
    base_ns: float
    head_ns: float


@dataclass(frozen=True, slots=True)
class OwnCounts:
    """What functions count themselves, without probed callees, in one run of each counted point: base and head by function.

    These are medians over runs, added up over the points; `exact` if all runs of a side counted the same.
    """

    by_function: Mapping[int, tuple[float, float]]
    exact: bool


@dataclass(frozen=True, slots=True)
class CallGraph:
    """The calls between functions (by their ids), with their costs on both sides.

    `runs_ns` is what the same runs take as a whole in base and head, functions without probes included, None where nothing was timed.
    `counts` are of work, by counter.
    """

    costs: Mapping[int, CallCost]
    edges: tuple[CallEdge, ...]
    runs_ns: tuple[float, float] | None = None
    counts: Mapping[str, OwnCounts] = field(default_factory=dict)
