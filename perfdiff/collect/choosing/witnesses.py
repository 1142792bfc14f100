"""Which cases of suites are run: those that are the best witnesses of what changed, as many as fit in the time of a comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True, slots=True)
class Candidate:
    """A case that may be run: `run_s` seconds for a run of all its points, which together make `calls` of functions that changed.

    What it adds to runs of others, `added_s`, is less where it shares their process; None: as much.
    """

    name: str
    run_s: float
    calls: Mapping[int, float] = field(default_factory=dict)
    added_s: float | None = None


def chosen(candidates: Sequence[Candidate], affordable_s: float) -> tuple[str, ...]:
    """Return the names of the cases that are run, the most telling first; their runs take `affordable_s` together, but there is one.

    How well a case witnesses a function is how often it calls that in a second, of how often the best case does. The next case is the one
    that adds most to the best witnesses of all functions (greedy facility location: Nemhauser, Wolsey & Fisher 1978), and where none adds
    anything, the one that witnesses most. Where no case calls what changed, the shortest come first.
    """
    functions = sorted({function for candidate in candidates for function in candidate.calls})
    run_s = np.array([candidate.run_s for candidate in candidates])
    added_s = np.array([candidate.run_s if candidate.added_s is None else candidate.added_s for candidate in candidates])
    strength = _strengths(candidates, functions, run_s)
    total = strength.sum(axis=1)
    best = np.zeros(len(functions))
    names: list[str] = []
    left = [index for index in range(len(candidates)) if total[index] > 0.0 or not functions]
    spent_s = 0.0
    while left:
        gains = np.maximum(strength[left] - best, 0.0).sum(axis=1)
        order = np.lexsort((run_s[left], -total[left], -gains))
        fitting = [left[place] for place in order if spent_s + added_s[left[place]] <= affordable_s]
        if not fitting and names:
            break
        index = fitting[0] if fitting else left[order[0]]
        names.append(candidates[index].name)
        spent_s += added_s[index]
        best = np.maximum(best, strength[index])
        left.remove(index)
    return tuple(names)


def _strengths(candidates: Sequence[Candidate], functions: Sequence[int], run_s: np.ndarray) -> np.ndarray:
    """Return (candidates, functions): calls a second of those of the case that makes most of them."""
    calls = np.array([[candidate.calls.get(function, 0.0) for function in functions] for candidate in candidates])
    rates = calls.reshape(len(candidates), len(functions)) / run_s[:, None]
    return np.asarray(rates / rates.max(axis=0, initial=np.finfo(float).tiny))
