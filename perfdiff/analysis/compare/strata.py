"""Strata of calls: a change of class shows only at large inputs, a slower mode only where its flag is set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from perfdiff import units
from perfdiff.models.annotation import PHASE, STEADY_CODE
from perfdiff.models.middle import quantiles
from perfdiff.records.arrays import Bools, Floats, Ints
from perfdiff.records.schema import Feature, Point, SampleTable

SIZE_GROUPS = 3
# Inputs within one point that spread less than this (95th over 5th percentile of cost) need no groups of their own.
SIZE_SPREAD = 2.0
MAX_MODES = 6  # values of a feature that make modes; more are a quantity, not a switch
MAX_SWITCHES = 3  # features looked at as switches: every stratum costs all others certainty
AFTER_WARM_UP, WHILE_WARMING = "calls after the warm-up", "the warm-up's "


@dataclass(frozen=True, slots=True)
class Stratum:
    """A subset of the calls of both sides: masks over the rows of their tables. `name` is "" for all calls.

    `narrows`: its name says more than a value of the main feature does. `point` is the id of the workload point that it is.
    """

    name: str
    base: Bools
    head: Bools
    narrows: bool = False
    point: int | None = None


@dataclass(frozen=True, slots=True)
class Switch:
    """A feature that takes few values on both sides, the `modes`, and varies within points; its values in the calls of each side."""

    feature: Feature
    modes: Floats
    base: Floats
    head: Floats


def stratify(
    base: SampleTable, head: SampleTable, sizes: tuple[Floats, Floats], points: Sequence[Point], switches: Sequence[Switch]
) -> list[Stratum]:
    """Return the strata of two tables: all calls, points, groups of size, values of their switches.

    `sizes` are the expected costs of each call (rows of base, rows of head); groups of size hold equal parts of the cost, so that many
    small calls do not hide a few large ones.
    """
    both = np.intersect1d(base.point, head.point)
    only = int(both[0]) if len(both) == 1 else None
    strata = [Stratum("", np.ones(len(base), bool), np.ones(len(head), bool), point=only)]
    if len(both) > 1:
        strata += [
            Stratum(point.label, base.point == point.id, head.point == point.id, point=point.id) for point in points if point.id in both
        ]
    strata += _by_size(base, sizes)
    strata += _by_switch(base, head, switches, _largest_point(points, base.point, sizes[0], both))
    return [stratum for stratum in strata if stratum.base.any() and stratum.head.any()]


def _by_size(base: SampleTable, sizes: tuple[Floats, Floats]) -> Iterator[Stratum]:
    if _spread_within_points(base.point, sizes[0]) < SIZE_SPREAD:
        return
    ordered = np.sort(np.concatenate(sizes))
    filled = np.cumsum(ordered)
    cuts = [float(ordered[np.searchsorted(filled, filled[-1] * k / SIZE_GROUPS)]) for k in range(1, SIZE_GROUPS)]
    groups = (np.digitize(sizes[0], cuts), np.digitize(sizes[1], cuts))
    names = ("small inputs", "medium inputs", "large inputs")
    for group in range(SIZE_GROUPS):
        yield Stratum(names[group], groups[0] == group, groups[1] == group)


def _spread_within_points(points: Ints, sizes: Floats) -> float:
    spreads = [quantiles(sizes[points == point], (0.05, 0.95)) for point in np.unique(points)]
    return max((float(high / low) for low, high in spreads if low > 0), default=1.0)


def _largest_point(points: Sequence[Point], of: Ints, sizes: Floats, both: Ints) -> Point | None:
    """Return the point with the largest inputs, where there are several."""
    if len(both) < 2:
        return None
    return max((point for point in points if point.id in both), key=lambda point: float(sizes[of == point.id].mean()))


def switched(base: SampleTable, head: SampleTable) -> Iterator[Switch]:
    """Yield the first `MAX_SWITCHES` features that are switches."""
    switches = 0
    for column, feature in enumerate(base.features):
        if switches == MAX_SWITCHES or feature not in head.features:
            continue
        values = (base.values[:, column], head.values[:, head.features.index(feature)])
        # A look at the first rows spares most quantities the sort of all.
        if len(np.unique(values[0][: 4 * MAX_MODES])) > MAX_MODES:
            continue
        if values[0].min() == values[0].max():  # as most are that pass
            continue
        modes = np.intersect1d(values[0][np.isfinite(values[0])], values[1][np.isfinite(values[1])])
        if not 2 <= len(modes) <= MAX_MODES or _follows_points(base.point, values[0]):
            continue
        switches += 1
        yield Switch(feature, modes, *values)


def _by_switch(base: SampleTable, head: SampleTable, switches: Sequence[Switch], largest: Point | None) -> Iterator[Stratum]:
    """Yield a stratum per value of each switch; another at the largest inputs alone.

    There, a mode that grew by another class shows, whose effects at all points differ too much to be one.
    """
    for switch in switches:
        for mode in switch.modes:
            name = _calls(switch.feature, mode)
            yield Stratum(name, switch.base == mode, switch.head == mode, narrows=True)
            if largest is not None:
                here = (base.point == largest.id, head.point == largest.id)
                at = f"{name} at {largest.label}"
                yield Stratum(at, (switch.base == mode) & here[0], (switch.head == mode) & here[1], narrows=True)


def is_of_a_phase(name: str) -> bool:
    """Return whether a stratum is the calls of a phase of the run."""
    return name.startswith((AFTER_WARM_UP, WHILE_WARMING))


def _calls(feature: Feature, mode: float) -> str:
    """Return which calls have a value of a switch, as a reader names them."""
    if feature.name == PHASE:
        return AFTER_WARM_UP if mode == STEADY_CODE else f"{WHILE_WARMING}{mode_name(feature, mode)}"
    return f"{feature.name} = {mode_name(feature, mode)}"


def _follows_points(points: Ints, values: Floats) -> bool:
    """Return whether a value, which may be infinite, is the same in all calls of each point."""
    return all(bool(np.all(values[points == point] == values[points == point][0])) for point in np.unique(points))


def mode_name(feature: Feature, value: float) -> str:
    """Return a value of a switch as the program names it."""
    return feature.labels.get(int(value), units.significant(float(value)))
