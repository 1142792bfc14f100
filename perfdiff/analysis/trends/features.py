"""Features of whole runs, over which counts grow; calls of a function are one, as trend-prof takes how often a line runs (§6.2.3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from perfdiff.records.arrays import Floats
from perfdiff.records.places import PlaceCounts, PlaceExperiment
from perfdiff.records.schema import Side

Named = Callable[[str, str], bool]  # whether a function is meant, by its name and file


def with_calls(experiment: PlaceExperiment, wanted: Mapping[str, Named]) -> PlaceExperiment:
    """Return the experiment with the calls of functions as features, `calls of NAME`, on all sides.

    Raises KeyError with the name of a function that no side has.
    """
    sides = {}
    for side, counted in experiment.sides.items():
        sides[side] = replace(
            counted, features={**counted.features, **{f"calls of {name}": _calls(counted, named) for name, named in wanted.items()}}
        )
    for name in wanted:
        if all(np.isnan(counted.features[f"calls of {name}"]).all() for counted in sides.values()):
            raise KeyError(name)
    return replace(experiment, sides=sides)


def _calls(counted: PlaceCounts, named: Named) -> Floats:
    """Return how often functions were entered at each point (points,): the counts of their first lines; NaN where there is none."""
    entries: dict[tuple[str, str], int] = {}
    for number, place in enumerate(counted.places):
        if named(place.function, place.file):
            entries.setdefault((place.file, place.function), number)
    if not entries:
        return np.full(len(counted.points), np.nan)
    calls: Floats = counted.counts[list(entries.values())].sum(axis=0)
    return calls


def shared(experiment: PlaceExperiment) -> dict[str, Floats]:
    """Return the features (points,) that are the same on both sides."""
    base, head = (experiment.sides[side].features for side in Side)
    return {name: x for name, x in head.items() if name in base and np.array_equal(x, base[name], equal_nan=True)}


def varying(features: Mapping[str, Floats]) -> dict[str, Floats]:
    """Return the features that have several values above 0, over which a cost can grow."""
    return {name: x for name, x in features.items() if len(np.unique(x[np.isfinite(x) & (x > 0)])) > 1}
