"""The inputs of many calls as a few bins of like ones, and how many calls each stands for if other runs had been recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from perfdiff.models.annotation import Annotation
from perfdiff.models.observations import columns_of
from perfdiff.records.arrays import Floats
from perfdiff.records.schema import SampleTable

_BINS = 20  # each with as much of the cost, so that rare and dear inputs have bins of their own
WAYS = 200  # to draw runs anew
FINE_BINS = 200  # where quantiles are asked for, so that each holds half a percent of the cost
CALLS_OF_BIN = 100  # that are drawn to know how calls scatter


@dataclass(frozen=True, slots=True)
class Population:
    """Bins of like inputs: the `inputs` of a call in the middle of each, and how many it stands for in each run, `weights` (bins, r)."""

    inputs: tuple[dict[str, float], ...]
    weights: Floats

    def anew(self, bins: Sequence[int], draws: int, seed: int) -> Floats:
        """Return the calls of some bins (draws, bins) with the runs drawn anew (bootstrap), in `WAYS` ways that take turns."""
        runs = self.weights.shape[1]
        times = np.random.default_rng(seed).multinomial(runs, np.full(runs, 1 / runs), size=WAYS)
        return np.asarray((times @ self.weights[list(bins)].T)[np.arange(draws) % WAYS])


def population(calls: SampleTable, annotation: Annotation, features: Sequence[str], number: int = _BINS) -> Population:
    """Return the calls in a `number` of bins of what an annotation says that they cost.

    `features` are told of each bin; calls without one are left out.
    """
    columns = columns_of(calls)
    used = [name for name in dict.fromkeys(features) if name in columns]
    complete = np.all([np.isfinite(columns[name]) for name in used], axis=0) if used else np.ones(len(calls), dtype=bool)
    rows = np.flatnonzero(complete)
    values = {name: columns[name][rows] for name in used}
    cost = np.maximum(annotation.predict(values), 0.0) if used else np.ones(len(rows))
    order = np.argsort(cost, kind="stable")
    calls_of_row = calls.weight[rows][order]
    load = np.cumsum(cost[order] * calls_of_row)
    bins = np.minimum((load / max(load.max(initial=0.0), 1e-300) * number).astype(np.int64), number - 1)
    places = np.unique(bins)
    runs, index = np.unique(calls.run[rows][order], return_inverse=True)
    weights = np.zeros((len(places), len(runs)))
    np.add.at(weights, (np.searchsorted(places, bins), index), calls_of_row)
    middles = [order[bins == place][(bins == place).sum() // 2] for place in places.tolist()]
    return Population(tuple({name: float(values[name][middle]) for name in used} for middle in middles), weights)
