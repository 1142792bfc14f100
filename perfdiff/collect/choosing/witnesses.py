"""Which cases of suites are run: those that are the best witnesses of what changed, as many as fit in the time of a comparison."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True, slots=True)
class CaseCandidate:
    """A case that may be run: `run_s` seconds for a run of all its points, which together make `calls` of functions that changed.

    What it adds to runs of others, `added_s`, is less where it shares their process; None: as much. One that `seems_slower` in head, by the
    seconds that it took when it was listed, comes before all others.
    """

    run_s: float
    calls: Mapping[int, float] = field(default_factory=dict)
    added_s: float | None = None
    seems_slower: bool = False

    @property
    def cost_s(self) -> float:
        """Return how many seconds running it adds."""
        return self.run_s if self.added_s is None else self.added_s


def chosen(candidates: Sequence[CaseCandidate], affordable_s: float) -> tuple[int, ...]:
    """Return the places of the cases that are run, the most telling first; their runs take `affordable_s` together, but there is one.

    How well a case witnesses a function is how often it calls that in a second, of how often the best case does. The next case is the one
    that adds most to the best witnesses of all functions (greedy facility location: Nemhauser, Wolsey & Fisher 1978), and where none adds
    anything, the one that witnesses most. Where no case calls what changed, the shortest come first.
    """
    functions = sorted({function for candidate in candidates for function in candidate.calls})
    run_s = np.array([candidate.run_s for candidate in candidates])
    strength = _strengths(candidates, functions, run_s)
    total = strength.sum(axis=1)
    is_other = np.array([not candidate.seems_slower for candidate in candidates])
    order = [
        place for place in np.lexsort((run_s, -total, is_other)).tolist() if total[place] > 0.0 or not functions or not is_other[place]
    ]
    # Whether another one seems slower, and of gains, which only fall (Minoux 1978).
    bounds = [(is_other[place], -total[place], rank, place) for rank, place in enumerate(order)]
    best = np.zeros(len(functions))
    places: list[int] = []
    left_s = affordable_s
    while bounds:
        _, _, rank, place = heapq.heappop(bounds)
        cost_s = candidates[place].cost_s
        if cost_s > left_s and places:
            continue
        gain = np.maximum(strength[place] - best, 0.0).sum()
        bound = (is_other[place], -gain, rank, place)
        if bounds and bound > bounds[0]:
            heapq.heappush(bounds, bound)
            continue
        places.append(place)
        left_s -= cost_s
        best = np.maximum(best, strength[place])
    return tuple(places)


def _strengths(candidates: Sequence[CaseCandidate], functions: Sequence[int], run_s: np.ndarray) -> np.ndarray:
    """Return (candidates, functions): calls a second of those of the case that makes most of them."""
    calls = np.array([[candidate.calls.get(function, 0.0) for function in functions] for candidate in candidates])
    rates = calls.reshape(len(candidates), len(functions)) / run_s[:, None]
    return np.asarray(rates / rates.max(axis=0, initial=np.finfo(float).tiny))
