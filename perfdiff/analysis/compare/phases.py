"""Phases of a run: calls while a function warms up are told from later ones, and each is compared with its like."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from perfdiff import units
from perfdiff.models.annotation import PHASE, STEADY, STEADY_CODE, Annotation
from perfdiff.models.warmup import LEAST_SHARE, STEADY_SHARE, WarmUp, joined, warm_up
from perfdiff.records.schema import Feature, Origin, SampleTable, Side

METRIC = "self_ns"  # the time by which phases are told apart
# By what first calls are told from later ones where nothing is compared: what is made or loaded once may take little time and much memory.
_TELLING = (METRIC, "alloc_bytes")
_WARMING = 1
_SEVERAL = re.compile(r"first (\d[\d,.]*(?:e\d+)?) calls")


@dataclass(frozen=True, slots=True)
class PhasedTables:
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


def phased(base: SampleTable, head: SampleTable) -> PhasedTables:
    """Tell the phases of two tables apart."""
    warm_ups = {table.side: warm for table in (base, head) if METRIC in table.metrics and (warm := warm_up(table, METRIC)) is not None}
    longest = joined(list(warm_ups.values()))
    if longest is None or not all(_has_both(table, longest.calls) for table in (base, head)):
        return PhasedTables(base, head, warm_ups)
    return PhasedTables(_with_phase(base, longest.calls), _with_phase(head, longest.calls), warm_ups)


def with_phase(table: SampleTable, *, always: bool = False) -> SampleTable:
    """Return one side's table with a feature for the phase if its calls warm up; with `always`, also if all of them are steady."""
    warming = joined([warm_up(table, metric) for metric in _TELLING if metric in table.metrics])
    if warming is None:
        return _with_phase(table, 0) if always else table
    return _with_phase(table, warming.calls)


def with_phase_as_learnt(table: SampleTable, annotation: Annotation) -> SampleTable:
    """Return one side's table with the phases that an annotation of its function has: as many first calls of each thread as it tells.

    They are not looked for anew: a few runs show no warm-up for sure, and calls that cost what the annotation says of first ones would be
    held against what it says of later ones. Where it tells of later calls alone, they are.
    """
    conditions = [condition for scope in annotation.scopes for condition in scope.conditions if condition.feature == PHASE]
    labels = [label for condition in conditions for label in condition.labels]
    first = [_calls_of(label) for label in labels if label != STEADY]
    return _with_phase(table, first[0]) if first and first[0] else with_phase(table, always=True)


def _has_both(table: SampleTable, calls: int) -> bool:
    return LEAST_SHARE <= float(np.mean(table.call <= calls)) <= 1 - STEADY_SHARE


def _label(calls: int) -> str:
    return f"first {units.times(calls)} calls" if calls > 1 else "first call"


def _calls_of(label: str) -> int:
    """Return how many calls a phase has by its label, 0 where that is none of ours."""
    if label == _label(1):
        return 1
    several = _SEVERAL.fullmatch(label)
    return int(float(several[1].replace(",", ""))) if several else 0


def _with_phase(table: SampleTable, calls: int) -> SampleTable:
    labels = {int(STEADY_CODE): STEADY, _WARMING: _label(calls)}
    column = np.where(table.call <= calls, float(_WARMING), STEADY_CODE)
    features = (Feature(PHASE, Origin.DERIVED, True, labels), *table.features)
    return replace(table, features=features, values=np.column_stack([column, table.values]))
