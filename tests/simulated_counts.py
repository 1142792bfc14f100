"""Calls with counters of known truth: inputs, threads, misses that scatter, lines that bounce as the scheduler has it.

What the software PMU counts of a call is exact in what the call itself does (blocks, loads, stores, allocations) and depends on chance in
what other threads did in between (HITM, and in part misses). The programs are drawn after those of AutoPerf's study.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np

from perfdiff.records.arrays import Floats, Ints
from perfdiff.records.schema import Change, Feature, FunctionInfo, Origin, SampleTable, Side

COUNTERS = (
    "blocks",
    "loads",
    "stores",
    "l1d_misses",
    "l2_misses",
    "llc_misses",
    "hitm",
    "hitm_false",
    "remote_dram",
    "alloc_bytes",
    "alloc_count",
)
L1D, L2, LLC = 32768.0, 1048576.0, 33554432.0
LINE = 64.0


class Edit(StrEnum):
    """What head changes; the first four are harmless."""

    NONE = "the same code"
    INPUTS = "new inputs"
    WORK = "2 % more blocks"
    STATE = "other machine state"
    FALSE_SHARING = "false sharing"
    TRUE_SHARING = "true sharing"
    REMOTE = "remote memory"
    LOCALITY = "worse locality"

    @property
    def harmless(self) -> bool:
        """Return whether no alarm is due."""
        return self in (Edit.NONE, Edit.INPUTS, Edit.WORK, Edit.STATE)

    @property
    def shared(self) -> bool:
        """Return whether it takes several threads to show."""
        return self in (Edit.FALSE_SHARING, Edit.TRUE_SHARING, Edit.REMOTE)

    @property
    def guilty(self) -> frozenset[str]:
        """Return the counters that tell the cause."""
        return {
            Edit.FALSE_SHARING: frozenset({"hitm", "hitm_false"}),
            Edit.TRUE_SHARING: frozenset({"hitm"}),
            Edit.REMOTE: frozenset({"remote_dram"}),
            Edit.LOCALITY: frozenset({"l1d_misses", "l2_misses", "llc_misses"}),
        }.get(self, frozenset())


@dataclass(frozen=True)
class Program:
    """A function: `calls` in a run, inputs n about `size` (`spread` as a logarithm), blocks `fixed` + `slope`·n.

    `bytes` are touched per n; `hidden` is the scatter of work that n does not explain; `spin` that of work that depends on the
    scheduler where several threads run; `bounce` HITM per block and further thread; `allocs` per call.
    """

    name: str
    calls: int
    size: float
    spread: float
    fixed: float
    slope: float
    bytes: float
    hidden: float
    spin: float
    bounce: float
    allocs: int


PROGRAMS = (
    Program("linear regression", 1, 2e5, 0.3, 40, 3, 8, 0.0, 0.0, 3e-4, 0),
    Program("histogram", 1, 3e5, 0.3, 900, 4, 3, 0.02, 0.0, 1e-4, 1),
    Program("reverse index", 20, 2e3, 0.8, 60, 11, 30, 0.15, 0.0, 5e-4, 12),
    Program("k-medoids", 50, 4e3, 0.5, 30, 6, 16, 0.05, 0.0, 2e-4, 0),
    Program("spin-lock pool", 50, 8, 0.2, 12, 1, 64, 0.0, 0.6, 4e-3, 0),
    Program("stats lock", 50, 100, 0.7, 25, 2, 8, 0.0, 0.2, 2e-3, 0),
    Program("row counter", 50, 600, 0.5, 20, 5, 40, 0.1, 0.0, 5e-4, 1),
    Program("ticket dispenser", 50, 4, 0.2, 9, 0, 0, 0.0, 0.0, 4e-3, 0),
)


@dataclass(frozen=True)
class Setting:
    """Which program, how many threads and runs, and how much worse a defect makes its counter, 10 to 1000 times."""

    program: Program
    threads: int
    runs: int = 20
    factor: float = 100.0
    point: int = 0


Make = Callable[[Setting, Edit, Floats, Ints, np.random.Generator], dict[str, Floats]]


def function(name: str = "f") -> FunctionInfo:
    """Return a changed function."""
    return FunctionInfo(1, name, "f.c", 1, "c", Change.CHANGED)


def pair(setting: Setting, edit: Edit, seed: int, make: Make | None = None) -> tuple[SampleTable, SampleTable]:
    """Return base's and head's calls."""
    rng = np.random.default_rng(seed)
    make = make or counts
    return _side(setting, Side.BASE, Edit.NONE, rng, make), _side(setting, Side.HEAD, edit, rng, make)


def joined(tables: list[SampleTable]) -> SampleTable:
    """Return one table of several with the same columns."""
    first = tables[0]
    names = ("values", "executed", "taken", "run", "point", "thread", "call", "weight")
    columns: dict[str, Any] = {name: np.concatenate([getattr(table, name) for table in tables]) for name in names}
    metrics = {name: np.concatenate([table.metrics[name] for table in tables]) for name in first.metrics}
    return replace(first, metrics=metrics, **columns)


def _side(setting: Setting, side: Side, edit: Edit, rng: np.random.Generator, make: Make) -> SampleTable:
    program = setting.program
    calls = program.calls * (setting.threads if program.calls == 1 else 1)
    first = 1000 * setting.point + (500 if side is Side.HEAD else 0)
    run = np.repeat(np.arange(setting.runs), calls)
    n = np.maximum(np.round(program.size * np.exp(program.spread * rng.standard_normal(len(run)))), 1.0)
    if edit is Edit.INPUTS:
        n = np.maximum(np.round(n * 1.4), 1.0)
    metrics = make(setting, edit, n, run, rng)
    none = np.zeros((len(run), 0))
    return SampleTable(
        function=1,
        side=side,
        metrics=metrics,
        features=(Feature("n", Origin.ARGUMENT), Feature("threads", Origin.SYSTEM), Feature("other", Origin.ARGUMENT)),
        values=np.column_stack([n, np.full(len(run), float(setting.threads)), rng.integers(0, 100, len(run)).astype(float)]),
        branches=(),
        executed=none,
        taken=none,
        run=run + first,
        point=np.full(len(run), setting.point),
        thread=np.tile(np.arange(calls) % setting.threads, setting.runs),
        call=np.tile(np.arange(calls), setting.runs),
        weight=np.ones(len(run)),
    )


def counts(setting: Setting, edit: Edit, n: Floats, run: Ints, rng: np.random.Generator) -> dict[str, Floats]:
    """Return what the software PMU counts."""
    program, threads = setting.program, setting.threads
    work = np.exp(program.hidden * rng.standard_normal(len(n)))
    if threads > 1:
        work *= 1 + program.spin * rng.gamma(0.7, 1.0, len(n))
    blocks = np.floor((program.fixed + program.slope * n) * work * (1.02 if edit is Edit.WORK else 1.0))
    loads, stores = np.floor(2.1 * blocks), np.floor(0.6 * blocks)
    lines = program.bytes * n / LINE
    l1d = _misses(lines, program.bytes * n, L1D, work, rng)
    l2 = _misses(lines, program.bytes * n, L2, work, rng)
    llc = _misses(lines, program.bytes * n, LLC, work, rng)
    bouncing = np.exp(0.7 * rng.standard_normal(setting.runs))[run]  # how the scheduler let the threads meet in a run
    hitm = program.bounce * blocks * (threads - 1) * bouncing
    false = 0.1 * hitm
    remote = 0.02 * llc if threads > 1 else 0.0 * llc
    if edit is Edit.STATE:
        hitm, false, llc = 0.7 * hitm, 0.7 * false, np.round(1.1 * llc)
    if edit is Edit.FALSE_SHARING:
        hitm, false = hitm * setting.factor, hitm * (setting.factor - 1)
    if edit is Edit.TRUE_SHARING:
        hitm = hitm * setting.factor
    if edit is Edit.REMOTE and threads > 1:
        llc = llc + np.round(0.005 * blocks)
        remote = llc * rng.uniform(0.6, 0.9, len(n))
    if edit is Edit.LOCALITY:
        more = np.round(0.02 * setting.factor**0.5 * blocks)
        l1d, l2, llc = l1d + more, l2 + more, llc + np.round(0.3 * more)
    hitm, false, remote = (_scattered(mean, rng) for mean in (np.minimum(hitm, loads), false, remote))
    l2 = np.maximum(l2, llc) + hitm
    return {
        "blocks": blocks,
        "loads": loads,
        "stores": stores,
        "l1d_misses": np.maximum(l1d + hitm, l2),
        "l2_misses": l2,
        "llc_misses": llc,
        "hitm": hitm,
        "hitm_false": np.minimum(false, hitm),
        "remote_dram": np.minimum(remote, llc),
        "alloc_bytes": 64.0 * program.allocs + np.where(program.allocs > 0, 8 * n, 0.0),
        "alloc_count": np.full(len(n), float(program.allocs)),
    }


def _misses(lines: Floats, touched: Floats, size: float, work: Floats, rng: np.random.Generator) -> Floats:
    """Return misses of a cache: none of what fits, every line of what does not, a few of either by what was there before."""
    return np.round(lines * (0.02 + 0.9 / (1 + (size / np.maximum(touched, 1.0)) ** 4)) * work) + rng.poisson(0.3, len(lines))


def _scattered(mean: Floats, rng: np.random.Generator) -> Floats:
    """Return over-dispersed counts: their deviation grows with their mean."""
    return rng.poisson(np.maximum(mean, 0.0) * rng.gamma(2.0, 0.5, len(mean))).astype(np.float64)


def times(setting: Setting, edit: Edit, n: Floats, run: Ints, rng: np.random.Generator) -> dict[str, Floats]:
    """Return what a machine without counters tells: times, faults, switches and waits, all of them noisy."""
    exact = counts(setting, edit, n, run, rng)
    slow = np.exp(0.04 * rng.standard_normal(setting.runs))[run] * np.exp(0.05 * rng.standard_normal(len(n)))
    dear = exact["hitm"] * 60 + exact["remote_dram"] * 80 + exact["l1d_misses"] * 2 + exact["l2_misses"] * 6 + exact["llc_misses"] * 60
    cpu = (exact["blocks"] * 1.2 + dear + 30) * slow
    struck = rng.random(len(n)) < np.minimum(cpu / 4e6 * setting.threads, 0.5)
    waited = np.where(struck, rng.gamma(1.5, 2e6, len(n)), 0.0)
    locks = (setting.threads - 1) * 0.02 * cpu * rng.gamma(0.5, 2.0, len(n))
    faults = rng.poisson(exact["alloc_bytes"] / 4096).astype(np.float64)
    return {
        "wall_ns": cpu + waited + locks,
        "cpu_ns": cpu + 2000 * struck,
        "page_faults": faults,
        "switches": struck.astype(np.float64),
        "lock_wait_ns": locks,
        "alloc_bytes": exact["alloc_bytes"],
    }
