"""Who calls whom, at what cost on both sides: values that reports draw trees from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


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
class CallGraph:
    """Who calls whom, at what cost on both sides; functions by their ids."""

    costs: Mapping[int, CallCost]
    edges: tuple[CallEdge, ...]
