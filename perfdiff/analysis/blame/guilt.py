"""Guilt: extra cost that is attributed to a change, and its parts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from perfdiff.analysis.blame.changes import ChangeParts
from perfdiff.analysis.blame.links import LinkKind, Web, introducers
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.sums.ledger import Ledger
from perfdiff.records.arrays import Bools, Floats
from perfdiff.records.schema import Change

_EVIDENCE = tuple(LinkKind)


@dataclass(frozen=True, slots=True)
class Interval:
    """What guilt may be, ns in one run: `low` (points,), `total` from low to high over all points, and the totals in all `draws`."""

    low: Floats
    total: tuple[float, float]
    draws: Floats


class ExtraKind(StrEnum):
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
    extra: ExtraKind = ExtraKind.COST
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

    def own_ns(self, function: int, chosen: Bools) -> float:
        """Return what a function's own calls cost more at the `chosen` points (points,)."""
        own = [blame.ns for blame in self.blames if blame.kind is LinkKind.OWN and blame.at == function]
        return float(sum(float(ns[chosen].sum()) for ns in own))

    @property
    def least_ns(self) -> Floats:
        """Return the lower end of what it costs, (points,), by runs drawn anew and, for sums without a test, by what they vary by."""
        tested = self.ns - self.noise
        return tested if self.interval is None else np.minimum(tested, self.interval.low)


@dataclass(frozen=True, slots=True)
class Attribution:
    """All guilt by suspect, and what no suspect explains: function -> (points,) ns a run.

    `workload` (points,) is what larger inputs cost that no change passes or stores: the workload itself has grown. `cpu_parts` (points,) of
    what calls take longer are processor time, where threads wait at once for the rest.
    """

    points: tuple[int, ...]
    run_ns: Floats
    guilt: Mapping[int, Guilt]
    unattributed: Mapping[int, Floats]
    workload: Floats
    parts: tuple[ChangeParts, ...]
    web: Web
    cpu_parts: Floats | float = 1.0

    @property
    def is_by_cpu(self) -> bool:
        """Return whether extra costs count by their processor time at some point, as calls of several threads overlap there."""
        return bool(np.any(np.asarray(self.cpu_parts) < 1.0))

    def in_a_run(self, ns: Floats) -> float:
        """Return how much longer one run of each point takes together for an extra cost (points,), in ns: overlapping calls count once."""
        return float((ns * self.cpu_parts).sum())

    def interval_in_a_run(self, guilt: Guilt) -> tuple[float, float] | None:
        """Return the same of both ends of what a change may cost, None where runs are too few for it."""
        if guilt.interval is None:
            return None
        part = self.in_a_run(guilt.ns) / guilt.total_ns if guilt.total_ns and self.is_by_cpu else 1.0
        low, high = guilt.interval.total
        return part * low, part * high

    def adds(self, guilt: Guilt, effect: Floats) -> bool:
        """Return whether a change adds a cost that counts."""
        return guilt.total_ns > 0 and self.is_material(guilt.least_ns - guilt.blur, effect, guilt.gross)

    def may_add(self, guilt: Guilt, effect: Floats) -> bool:
        """Return whether a change adds a cost that would count, were it not for noise."""
        return guilt.total_ns > 0 and self.is_material(guilt.ns - guilt.blur, effect, guilt.gross)

    def saves(self, guilt: Guilt, effect: Floats) -> bool:
        """Return whether a change saves a cost that counts."""
        return guilt.total_ns < 0 and self.is_material(-guilt.ns - guilt.blur - guilt.noise, effect, guilt.gross)

    def is_material(self, ns: Floats, effect: Floats | float, against: Floats) -> bool:
        """Return whether a cost is, at some point, a material share of the run and more than `effect` of what it is seen against."""
        return bool(np.any(self.material_at(ns) & (ns > effect * against)))

    def material_at(self, ns: Floats) -> Bools:
        """Return the points at which a cost is a material share of the run, (points,)."""
        return np.asarray(ns >= POLICY.material * self.run_ns)

    def share(self, ns: float) -> float | None:
        """Return the part that `ns` has in all extra cost, or None where nothing got slower."""
        extra = sum(max(self.in_a_run(guilt.ns), 0.0) for guilt in self.guilt.values())
        extra += sum(max(self.in_a_run(rest), 0.0) for rest in self.unattributed.values())
        return min(max(ns / extra, 0.0), 1.0) if extra > 0 else None

    def names(self, functions: Iterable[int]) -> tuple[str, ...]:
        """Return functions' names."""
        return tuple(self.web.functions[function].name for function in functions)

    def calls_per_run(self, function: int, ledger: Ledger, place: int) -> tuple[float, float]:
        """Return the calls of a function on base and head, at the `place`-th point."""
        part, column = self.parts[place], ledger.place[function]
        return float(part.calls_base[column]), float(part.calls_head[column])

    def ranked(self, suspects: Iterable[int]) -> list[int]:
        """Return suspects by guilt; near ties by how directly the cost follows from the change.

        That is, functions whose own text changed before those that it only affects, then own cost, calls, data. An added function and its
        changed callers share its cost, but are one change: each stands where the whole of it would.
        """

        def order(suspect: int) -> tuple[float, bool, int, int]:
            guilt = self.guilt[suspect]
            strongest = max(guilt.blames, key=lambda blame: blame.total_ns)
            step = round(np.log(max(guilt.total_ns + self._others_part(guilt), 1.0)) / np.log1p(POLICY.tie))
            is_only_affected = self.web.functions[suspect].change is Change.AFFECTED
            return (-step, is_only_affected, _EVIDENCE.index(strongest.kind), suspect)

        return sorted(suspects, key=order)

    def _others_part(self, guilt: Guilt) -> float:
        """Return what others have of the cost of added functions that a suspect has a part of: as much again, where calls met it."""
        shared = sum(blame.total_ns for blame in guilt.blames if self._is_shared(blame))
        return min(max(shared, 0.0), max(guilt.total_ns, 0.0))

    def _is_shared(self, blame: Blame) -> bool:
        if self.web.functions[blame.at].change is not Change.ADDED:
            return False
        return blame.by != blame.at or bool(introducers(self.web, blame.at))
