"""Whole runs of both sides beside each other: which were made as pairs, and by how much these differ."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from perfdiff.records.arrays import Floats
from perfdiff.records.schema import Run
from perfdiff.statistics.pairs import FEWEST_PAIRS, PairedDifference, paired_difference


def comparable(runs: Sequence[Run]) -> Sequence[Run]:
    """Return the runs that were made at the same time as the other run of their pair.

    All runs are returned if these are few, or fewer than the others.
    """
    together = [run for run in runs if run.together]
    return together if len(together) >= max(FEWEST_PAIRS, len(runs) / 2) else runs


def difference_of(base: Sequence[Run], head: Sequence[Run], cost: str) -> PairedDifference | None:
    """Return by how much runs differ in a cost, pair by pair: those of one block were made next to each other."""
    before, after = pairs_of(base, head)
    layouts, machines = (np.array([getattr(run, of) for run in after], dtype=np.int64) for of in ("layout", "machine"))
    return paired_difference(logs(before, cost), logs(after, cost), layouts, machines)


def pairs_of(base: Sequence[Run], head: Sequence[Run]) -> tuple[list[Run], list[Run]]:
    """Return the runs of both sides that were made next to each other, on one machine.

    Runs of one side that share a block, as all of a host do where hosts are many, are one draw: their mean stands for them.
    """
    before, after = (in_blocks(side) for side in (base, head))
    both = [block for block in after if block in before]
    return [_mean(before[block]) for block in both], [_mean(after[block]) for block in both]


def in_blocks(runs: Iterable[Run]) -> dict[tuple[int, int], list[Run]]:
    """Return runs by their machine and block."""
    by_block: dict[tuple[int, int], list[Run]] = {}
    for run in runs:
        by_block.setdefault((run.machine, run.block), []).append(run)
    return by_block


def _mean(runs: Sequence[Run]) -> Run:
    """Return a run that costs as much as the geometric mean of `runs`."""
    if len(runs) == 1:
        return runs[0]
    cpu_ns, wall_ns, peak = (math.exp(float(logs(runs, cost).mean())) for cost in ("cpu_ns", "wall_ns", "max_rss_bytes"))
    held = None if any(run.held_bytes is None for run in runs) else math.exp(float(logs(runs, "held_bytes").mean()))
    return replace(runs[0], cpu_ns=cpu_ns, wall_ns=wall_ns, max_rss_bytes=peak, held_bytes=held)


def logs(runs: Sequence[Run], cost: str) -> Floats:
    """Return the logarithms of a cost of runs (n,)."""
    return np.log([max(getattr(run, cost), 1.0) for run in runs])
