"""When a difference of one metric counts: beyond chance, beyond the machine's own noise, and large enough to matter."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

from perfdiff import units
from perfdiff.analysis.compare.comparison import Comparison, tested
from perfdiff.analysis.policy import EVIDENCE, LAYOUT_SHIFT, MIN_RUNS
from perfdiff.analysis.stats.inference import Contrast
from perfdiff.config import CompareConfig

# Of all pairs of a base run and a head run, so many must agree on the direction: an effect carried by a few runs is theirs.
AGREEMENT = 0.8
RANK_DEVIATIONS = 2.33  # one in a hundred by chance, whatever the tails of the noise


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


def judge(comparison: Comparison, q: float, config: CompareConfig, *, resolved: bool, suspect: bool) -> Judgement:
    """Judge a comparison. `resolved`: the difference is above the clock's resolution; `suspect`: the function itself changed."""
    worst = comparison.worst
    if worst is None:
        return Judgement(Direction.NONE, "its inputs in head have no equals in base" if comparison.disjoint else "too few runs: add runs")
    if not enough_runs(worst.contrast):
        return Judgement(Direction.NONE, f"only {worst.contrast.runs_base} and {worst.contrast.runs_head} runs: add runs")
    least = math.log1p(config.min_effect if suspect else max(config.min_effect, LAYOUT_SHIFT))
    low, high = worst.contrast.interval(config.confidence, tested(comparison))
    beyond = low > least or high < -least
    if (
        beyond
        and q <= config.fdr
        and comparison.p <= EVIDENCE
        and resolved
        and worst.material
        and abs(worst.contrast.effect) > comparison.worst_floor
    ):
        if agree(worst.contrast):
            return Judgement(Direction.UP if worst.contrast.effect > 0 else Direction.DOWN)
        return Judgement(Direction.NONE, "the runs disagree: add runs, or run on a quieter machine")
    return Judgement(Direction.NONE, _open(comparison, config))


def enough_runs(seen: Contrast) -> bool:
    """Return whether a contrast rests on enough runs to conclude anything."""
    return seen.runs_base + seen.runs_head >= MIN_RUNS


def agree(seen: Contrast) -> bool:
    """Return whether the runs agree on the effect's direction, by more than chance lets ranks agree."""
    needed = min(1.0, max(AGREEMENT, 0.5 + RANK_DEVIATIONS * seen.chance))
    return (seen.agreement if seen.effect > 0 else 1 - seen.agreement) >= needed


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
