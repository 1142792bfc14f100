"""Calls of a function as a feature of a run: trend-prof takes how often a line runs as one (§6.2.3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from perfdiff.records.places import PlaceCounts, PlaceExperiment
from perfdiff.records.schema import Floats

Named = Callable[[str, str], bool]  # whether a function is meant, by its name and file


def with_calls(experiment: PlaceExperiment, wanted: Mapping[str, Named]) -> PlaceExperiment:
    """Return the experiment with the calls of functions as features, `calls of NAME`, on all sides.

    Raises KeyError with the name of a function that no side has.
    """
    sides = {}
    for side, found in experiment.sides.items():
        sides[side] = replace(
            found, features={**found.features, **{f"calls of {name}": _calls(found, named) for name, named in wanted.items()}}
        )
    for name in wanted:
        if all(np.isnan(found.features[f"calls of {name}"]).all() for found in sides.values()):
            raise KeyError(name)
    return replace(experiment, sides=sides)


def _calls(found: PlaceCounts, named: Named) -> Floats:
    """Return how often functions were entered at each point (points,): the counts of their first lines; NaN where there is none."""
    entries: dict[tuple[str, str], int] = {}
    for number, place in enumerate(found.places):
        if named(place.function, place.file):
            entries.setdefault((place.file, place.function), number)
    if not entries:
        return np.full(len(found.points), np.nan)
    calls: Floats = found.counts[list(entries.values())].sum(axis=0)
    return calls
