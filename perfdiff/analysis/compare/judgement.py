"""When a difference of one metric counts: beyond chance, beyond the machine's own noise, and large enough to matter."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from perfdiff.analysis.claims import Claim, claim
from perfdiff.analysis.compare.compared import Comparison, StratumContrast
from perfdiff.analysis.policy import POLICY
from perfdiff.config import CompareConfig

_NO_EFFECTS: Mapping[int, float] = {}


class Direction(Enum):
    """Where a metric went, beyond doubt."""

    UP = 1
    NONE = 0
    DOWN = -1


@dataclass(frozen=True, slots=True)
class Judgement:
    """The judgement on one metric. `open` says why there is no answer, None if there is one."""

    direction: Direction
    open: Claim | None = None


def smallest(config: CompareConfig, *, suspect: bool) -> float:
    """Return the smallest effect that counts (log scale): of unchanged code only one that its place in the program cannot make."""
    return math.log1p(POLICY.smallest(config.min_effect, is_laid_out_anew=not suspect))


def judge(  # noqa: PLR0913 (what is seen, how surely, and how it is judged)
    comparison: Comparison, q: float, config: CompareConfig, *, resolved: bool, suspect: bool, effects: Mapping[int, float] = _NO_EFFECTS
) -> Judgement:
    """Judge a comparison. `resolved`: the difference is above the clock's resolution; `suspect`: the function itself changed.

    `effects` are the smallest ones of interest at points that have one of their own, beside that of the function.

    `q` is that of the minimum-effect test. The interval is the one that is told; `p` is against no effect at all, where noise is so large
    that the smallest effect of interest is none beside it.
    """
    worst, ratio = comparison.worst, comparison.ratio
    if worst is None or ratio is None:
        return Judgement(Direction.NONE, claim("no-equal-inputs" if comparison.disjoint else "too-few-runs"))
    if worst.contrast.runs < POLICY.min_runs:
        return Judgement(Direction.NONE, claim("few-runs-a-side", base=worst.contrast.runs_base, head=worst.contrast.runs_head))
    least = math.exp(smallest(config, suspect=suspect))
    is_beyond = ratio.low > least or ratio.high < 1 / least
    if is_beyond and q <= config.fdr and comparison.p <= POLICY.evidence and resolved and worst.material:
        return Judgement(Direction.UP if worst.contrast.effect > 0 else Direction.DOWN)
    return Judgement(Direction.NONE, _open(comparison, config, effects))


def hidden(own: Comparison, config: CompareConfig) -> float:
    """Return by how much of its cost a function may be slower for all that a comparison tells, at most; all of it where runs are few."""
    if own.overall is None or own.overall.runs < POLICY.min_runs:
        return 1.0
    return math.expm1(min(max(own.floor, own.overall.interval(config.confidence)[1]), 50.0))


def _open(comparison: Comparison, config: CompareConfig, effects: Mapping[int, float]) -> Claim | None:
    """Tell why an effect of interest cannot be excluded, None where it can.

    It must be excluded in each material stratum by itself, not in their pool, which hides what only the largest inputs show
    (intersection-union test: Berger 1982).
    """

    def least_of(stratum: StratumContrast) -> float:
        return math.log1p(config.min_effect if stratum.point is None else effects.get(stratum.point, config.min_effect))

    bounds = [(stratum.contrast.interval(config.confidence)[1], stratum) for stratum in comparison.strata if stratum.material]
    highest, open_ = max(bounds, key=lambda bound: bound[0] - least_of(bound[1]), default=(0.0, None))
    if open_ is None or highest <= (least := least_of(open_)):
        return None
    if comparison.floor > least:
        return claim("base-differs-from-itself", share=math.expm1(comparison.floor), least=math.expm1(least))
    if open_.contrast.effect > least:
        return claim("not-beyond-chance", ratio=math.exp(open_.contrast.effect), stratum=open_.name)
    return claim("not-excluded", ratio=math.exp(highest), stratum=open_.name)
