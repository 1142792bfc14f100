"""The upper tail of whole runs: whether more of one side's runs are slow than chance makes, and how many may be that no run has met."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from perfdiff.records.arrays import Floats

_UPPER_QUARTILE, _LOWER_QUARTILE = 75, 25


@dataclass(frozen=True, slots=True)
class SlowRuns:
    """The slow runs of each side among `pairs` of runs; `chance` is the probability of such an excess of one side.

    `adds` is what slow runs add to head's usual run in the mean, beyond what they add to base's; `multiple` is how many usual runs the
    middle one of head's slow runs takes.
    """

    pairs: int
    base: int
    head: int
    chance: float
    adds: float
    multiple: float

    @property
    def facts(self) -> dict[str, float]:
        """Return the facts on slow runs for a sentence."""
        return {"base": self.base, "head": self.head, "pairs": self.pairs, "multiple": self.multiple}


def slow_runs(base: Floats, head: Floats, fence: float, least: float) -> SlowRuns:
    """Return the slow ones of pairs (n,), each run given as the logarithm of its cost by that of its side's usual run.

    A run is slow beyond the upper quartile of all runs by `fence` times the width of their middle half (Tukey 1977, §2D), and by `least` at
    least. Both sides have the same bound, so that it favours neither. The chance is McNemar's (1947), exact: of pairs in which one run
    alone is slow, it is as likely to be base's as head's. What slows both runs of a pair tells nothing.
    """
    low, high = np.percentile(np.concatenate([base, head]), (_LOWER_QUARTILE, _UPPER_QUARTILE))
    bound = max(float(high + fence * (high - low)), least)
    of_base, of_head = base > bound, head > bound
    head_alone, base_alone = int((of_head & ~of_base).sum()), int((of_base & ~of_head).sum())
    adds = float(np.where(of_head, np.expm1(head), 0.0).mean() - np.where(of_base, np.expm1(base), 0.0).mean())
    multiple = math.exp(float(np.median(head[of_head]))) if of_head.any() else 1.0
    chance = chance_of_so_many(head_alone, head_alone + base_alone)
    return SlowRuns(len(head), int(of_base.sum()), int(of_head.sum()), chance, adds, multiple)


def chance_of_so_many(count: int, of: int) -> float:
    """Return the probability that `count` or more of `of` things are of one kind, if both kinds are equally likely (sign test)."""
    return sum(math.comb(of, more) for more in range(count, of + 1)) / float(2**of)


def share_unseen(runs: int, confidence: float) -> float:
    """Return the largest share of runs that may be slow if none of `runs` was (exact; the rule of three approximates it)."""
    return 1 - (1 - confidence) ** (1 / runs) if runs else 1.0


def runs_to_see(share: float, confidence: float) -> int:
    """Return how many runs include a slow one with this confidence, if this share of runs is slow."""
    return math.ceil(math.log(1 - confidence) / math.log1p(-share))
