"""Guilt: extra cost that is attributed to a change, and its parts."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from perfdiff.analysis.blame.links import LinkKind
from perfdiff.records.schema import Floats


@dataclass(frozen=True, slots=True)
class Interval:
    """What guilt may be, ns in one run: `low` (points,), `total` from low to high over all points, and the totals in all `draws`."""

    low: Floats
    total: tuple[float, float]
    draws: Floats


class Extra(StrEnum):
    """What extra cost consists of."""

    COST = "cost"  # at equal inputs
    INPUTS = "inputs"  # of larger inputs
    CALLS = "calls"  # of more calls, with all that they call


@dataclass(frozen=True, slots=True)
class Blame:
    """Extra cost that shows at one function and is put down to another. `ns` (points,) per run; negative where cost was saved.

    `blur` (points,) is what it may be off, as far as probes resolve times; that of extra calls is negative where they are fewer. `caller`
    makes the extra calls.
    """

    at: int
    by: int
    kind: LinkKind
    ns: Floats
    blur: Floats
    extra: Extra = Extra.COST
    through: str = ""
    caller: int | None = None

    @property
    def total_ns(self) -> float:
        """Return the sum over the workload points."""
        return float(self.ns.sum())


@dataclass(frozen=True, slots=True)
class Guilt:
    """What a suspect's change costs after netting: `ns` (points,), the blames behind it, and work it shares with others.

    `gross` is the base cost (points,) that the extra cost is to be seen against. `moved` names the functions to or from which work
    moved, `set_off` (points,) is how much of it, `family` are those whose sums the cost is a difference of, without a test of its own: it
    must exceed their `noise` (points,), half an interval's width. `blur` (points,) is what probes cannot resolve. `interval` is what
    blocks drawn anew make of it, None where they are too few.
    """

    ns: Floats
    gross: Floats
    blames: tuple[Blame, ...]
    blur: Floats | float
    set_off: Floats
    moved: tuple[int, ...] = ()
    family: frozenset[int] = frozenset()
    noise: Floats | float = 0.0
    interval: Interval | None = None

    @property
    def total_ns(self) -> float:
        """Return the sum over the workload points."""
        return float(self.ns.sum())

    def own_ns(self, function: int, chosen: npt.NDArray[np.bool_]) -> float:
        """Return what a function's own calls cost more at the `chosen` points (points,)."""
        own = [blame.ns for blame in self.blames if blame.kind is LinkKind.OWN and blame.at == function]
        return float(sum(float(ns[chosen].sum()) for ns in own))

    @property
    def least_ns(self) -> Floats:
        """Return the lower end of what it costs, (points,), by runs drawn anew and, for sums without a test, by what they vary by."""
        tested = self.ns - self.noise
        return tested if self.interval is None else np.minimum(tested, self.interval.low)
