"""Counted runs: which points they can afford, and when they have told all they can."""

from __future__ import annotations

import ctypes
import shutil
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from perfdiff.build.built import Built
from perfdiff.collect.hosts import machine
from perfdiff.config import CountersConfig
from perfdiff.records.schema import Note, Phase, Point, Run, Totals

LEAST_ROUNDS = 2  # tell whether counts repeat
MOST_ROUNDS = 6  # of counts that depend on how threads met: enough for ranks alone to tell two sides apart

# When a virtual machine collects garbage, and what it need not allocate, hangs on what its compilers have done by then, and what collecting
# takes is told by a clock: more runs would not make these repeat.
_BY_CHANCE = frozenset(("collecting_ns", "collections", "heap_bytes"))

_STATIC_TLS = "glibc.rtld.optional_static_tls=16384"
_ADDR_NO_RANDOMIZE, _ASK = 0x0040000, 0xFFFFFFFF  # personality(2)


def steering(config: CountersConfig, environment: Mapping[str, str]) -> dict[str, str]:
    """Return what a counted process is told: its caches, and room for a core in each thread's static data, which plug-ins lack."""
    tunables = filter(None, (environment.get("GLIBC_TUNABLES"), _STATIC_TLS))
    return {"PERFDIFF_PMU": machine.memory(config).setting(), "GLIBC_TUNABLES": ":".join(tunables)}


def affordable(points: Sequence[Point], runs: Sequence[Run], budget_s: float, sides: int, plain_runs: float) -> tuple[Point, ...]:
    """Return the points whose counted runs fit into the budget, cheapest first chosen, in their own order.

    Plain ones of `runs` tell how long a point takes; what is to be run there takes as long as so many `plain_runs` on each side.
    """
    took_ns = _took_ns(points, runs)
    left_ns = budget_s * 1e9
    chosen = set()
    for point in shortest_first(points, runs):
        left_ns -= took_ns[point.id] * plain_runs * sides
        if left_ns < 0:
            break
        chosen.add(point.id)
    return tuple(point for point in points if point.id in chosen)


def shortest_first(points: Sequence[Point], runs: Sequence[Run]) -> list[Point]:
    """Return the points in the order of how long a plain run of each takes."""
    took_ns = _took_ns(points, runs)
    return sorted(points, key=lambda point: took_ns[point.id])


def plain_s(points: Sequence[Point], runs: Sequence[Run]) -> float:
    """Return how many seconds a plain run of each of the points takes together."""
    return sum(_took_ns(points, runs).values()) / 1e9


def plain_s_by_point(points: Sequence[Point], runs: Sequence[Run], sides: int) -> dict[int, float]:
    """Return how many seconds plain runs of so many sides take, one after the other, by point."""
    return {point: sides * ns / 1e9 for point, ns in _took_ns(points, runs).items()}


def share(some: Sequence[Point], points: Sequence[Point], runs: Sequence[Run]) -> float:
    """Return the share of the plain runs' time of all `points` that runs of `some` points take."""
    took_ns = _took_ns(points, runs)
    return sum(took_ns[point.id] for point in some) / sum(took_ns.values())


def _took_ns(points: Sequence[Point], runs: Sequence[Run]) -> dict[int, float]:
    """Return how long a plain run takes by point, as a rule, for one of them may have waited for other work; 0 where there is none."""
    plain = {point.id: [run.took_ns for run in runs if run.phase is Phase.PLAIN and run.point == point.id] for point in points}
    return {point: float(np.median(walls)) if walls else 0.0 for point, walls in plain.items()}


def repeats(totals: Totals, runs: Sequence[Run]) -> bool:
    """Return whether every count was the same in all runs of a point and side, so that more runs would tell nothing new."""
    key = {run.id: (run.point, run.side) for run in runs}
    seen: dict[tuple[object, ...], tuple[float, ...]] = {}
    columns = np.column_stack([totals.calls, *(sums for name, sums in totals.other.items() if name not in _BY_CHANCE)])
    for run, function, row in zip(totals.run.tolist(), totals.function.tolist(), columns, strict=True):
        counted = tuple(np.nan_to_num(row, nan=-1.0).tolist())
        if seen.setdefault((*key[run], function), counted) != counted:
            return False
    return True


def left_out(points: Sequence[Point], chosen: Sequence[Point], budget_s: float, slowdown: float, *, is_of_time: bool) -> tuple[Note, ...]:
    """Say which points were not counted because they would take too long: `slowdown` times as long as plain ones.

    The budget `is_of_time` where less of the comparison's time was left than counts may take.
    """
    missing = [point.label for point in points if point not in chosen]
    if not missing:
        return ()
    which = f"{missing[0]} was" if len(missing) == 1 else f"{len(missing)} of {len(points)} workload points ({missing[0]}, …) were"
    text = (
        f"{which} not counted: counted runs take about "
        f"{slowdown:.0f} times as long, and all together may take {budget_s:.3g} s; "
        f"{'give the comparison more with --time' if is_of_time else 'raise counters.budget_s'} to count them"
    )
    return (Note("partly-counted", text),)


def left_plain(built: Iterable[Built]) -> tuple[Note, ...]:
    """Say which objects could not be built over the software PMU, so that nothing they do is counted."""
    plain = dict.fromkeys(f"{uncounted.file} ({uncounted.reason})" for build in built for uncounted in build.uncounted)
    if not plain:
        return ()
    names = list(plain)
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return (Note("partly-uncounted", f"not everything is counted: {names[0]}{more} had to be built as usual"),)


def failed(why: str) -> Note:
    """Say that work was not counted, and why."""
    return Note("not-counted", f"basic blocks, cache misses and shared lines were not counted: {why}")


def fixes_layout() -> bool:
    """Return whether programs can be started without random addresses, which containers may forbid."""
    if shutil.which("setarch") is None:
        return False
    personality = ctypes.CDLL(None, use_errno=True).personality
    personality.argtypes, personality.restype = (ctypes.c_ulong,), ctypes.c_int
    mine = personality(_ASK)
    allowed: bool = mine >= 0 and personality(mine | _ADDR_NO_RANDOMIZE) >= 0
    if allowed:
        personality(mine)
    return allowed
