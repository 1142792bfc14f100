"""When a difference of one metric counts: beyond chance, beyond the machine's own noise, and large enough to matter."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

from perfdiff import units
from perfdiff.analysis.compare.comparison import Comparison
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.stats.inference import Contrast
from perfdiff.config import CompareConfig


class Direction(Enum):
    """Where a metric went, beyond doubt."""

    UP = 1
    NONE = 0
    DOWN = -1


@dataclass(frozen=True, slots=True)
class Judgement:
    """What can be said of one metric. `open` says what is missing for an answer, "" where there is one."""

    direction: Direction
    open: str = ""


def smallest(config: CompareConfig, *, suspect: bool) -> float:
    """Return the smallest effect that counts (log scale): of unchanged code only one that its place in the program cannot make."""
    return math.log1p(config.min_effect if suspect else max(config.min_effect, POLICY.layout_shift))


def judge(comparison: Comparison, q: float, config: CompareConfig, *, resolved: bool, suspect: bool) -> Judgement:
    """Judge a comparison. `resolved`: the difference is above the clock's resolution; `suspect`: the function itself changed.

    `q` is that of the minimum-effect test. The interval is the one that is told; `p` is against no effect at all, where noise is so large
    that the smallest effect of interest is none beside it.
    """
    worst, ratio = comparison.worst, comparison.ratio
    if worst is None or ratio is None:
        return Judgement(Direction.NONE, "its inputs in head have no equals in base" if comparison.disjoint else "too few runs: add runs")
    if not enough_runs(worst.contrast):
        return Judgement(Direction.NONE, f"only {worst.contrast.runs_base} and {worst.contrast.runs_head} runs: add runs")
    least = math.exp(smallest(config, suspect=suspect))
    is_beyond = ratio.low > least or ratio.high < 1 / least
    if is_beyond and q <= config.fdr and comparison.p <= POLICY.evidence and resolved and worst.material:
        return Judgement(Direction.UP if worst.contrast.effect > 0 else Direction.DOWN)
    return Judgement(Direction.NONE, _open(comparison, config))


def hidden(own: Comparison, config: CompareConfig) -> float:
    """Return by how much of its cost a function may be slower for all that a comparison tells, at most; all of it where runs are few."""
    if own.overall is None or not enough_runs(own.overall):
        return 1.0
    return math.expm1(min(max(own.floor, own.overall.interval(config.confidence)[1]), 50.0))


def enough_runs(seen: Contrast) -> bool:
    """Return whether a contrast rests on enough runs to conclude anything."""
    return seen.runs_base + seen.runs_head >= POLICY.min_runs


def _open(comparison: Comparison, config: CompareConfig) -> str:
    """Say why an effect of interest cannot be excluded, or return "" where it can.

    It must be excluded in each material stratum by itself, not in their pool, which hides what only the largest inputs show
    (intersection-union test: Berger 1982).
    """
    least = math.log1p(config.min_effect)
    bounds = [(each.contrast.interval(config.confidence)[1], each) for each in comparison.strata if each.material]
    highest, open_ = max(bounds, key=lambda bound: bound[0], default=(0.0, None))
    if open_ is None or highest <= least:
        return ""
    if comparison.floor > least:
        return (
            f"base against base differs by up to {units.significant(100 * math.expm1(comparison.floor))} %, more than the smallest effect "
            f"of interest, {units.significant(100 * config.min_effect)} %: add runs, larger inputs, or a quieter machine"
        )
    where = f" ({open_.name})" if open_.name else ""
    if open_.contrast.effect > least:
        return f"{units.ratio(math.exp(open_.contrast.effect))}{where} is not beyond chance: add runs"
    return f"up to {units.ratio(math.exp(highest))}{where} is not excluded: add runs"
