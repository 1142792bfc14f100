"""Phases of a run: calls while a function warms up are told from later ones, and each is compared with its like."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from perfdiff import units
from perfdiff.models.annotation import PHASE, STEADY, STEADY_CODE
from perfdiff.models.warmup import LEAST_SHARE, STEADY_SHARE, WarmUp, joined, warm_up
from perfdiff.records.schema import Feature, Origin, SampleTable, Side

METRIC = "self_ns"  # the time by which phases are told apart
_WARMING = 1


@dataclass(frozen=True, slots=True)
class Phased:
    """A function's tables of both sides, and how long its calls warm up on each, where they do.

    Where they do on either side, calls of both have a feature that tells the phase, which ends where the longer warm-up does: models of
    cost may take it as a mode, and comparisons as a stratum.
    """

    base: SampleTable
    head: SampleTable
    warm_up: Mapping[Side, WarmUp]

    @property
    def tables(self) -> tuple[SampleTable, SampleTable]:
        """Return base's and head's table."""
        return self.base, self.head


def phased(base: SampleTable, head: SampleTable) -> Phased:
    """Tell the phases of two tables apart."""
    found = {table.side: warm for table in (base, head) if METRIC in table.metrics and (warm := warm_up(table, METRIC)) is not None}
    longest = joined(list(found.values()))
    if longest is None or not all(_has_both(table, longest.calls) for table in (base, head)):
        return Phased(base, head, found)
    return Phased(_with_phase(base, longest.calls), _with_phase(head, longest.calls), found)


def with_phase(table: SampleTable, *, always: bool = False) -> SampleTable:
    """Return one side's table with the feature that tells the phase, where its calls warm up; `always`: else all of them are steady."""
    found = warm_up(table, METRIC) if METRIC in table.metrics else None
    if found is None:
        return _with_phase(table, 0) if always else table
    return _with_phase(table, found.calls)


def _has_both(table: SampleTable, calls: int) -> bool:
    return LEAST_SHARE <= float(np.mean(table.call <= calls)) <= 1 - STEADY_SHARE


def _with_phase(table: SampleTable, calls: int) -> SampleTable:
    labels = {int(STEADY_CODE): STEADY, _WARMING: f"first {units.times(calls)} calls" if calls > 1 else "first call"}
    column = np.where(table.call <= calls, float(_WARMING), STEADY_CODE)
    features = (Feature(PHASE, Origin.DERIVED, True, labels), *table.features)
    return replace(table, features=features, values=np.column_stack([column, table.values]))
