"""A function's recorded calls of both sides as they are compared, and what is learnt of the cost of calls."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from perfdiff.analysis.compare.clocks import clocks
from perfdiff.analysis.compare.mix import members
from perfdiff.analysis.compare.phases import PhasedTables, phased
from perfdiff.analysis.stats.inference import clear_shifts
from perfdiff.analysis.stats.rows import thinned, without_features
from perfdiff.config import CompareConfig
from perfdiff.models.annotation import Annotation
from perfdiff.models.fitting import fit
from perfdiff.records.arrays import Floats
from perfdiff.records.recorded import Samples
from perfdiff.records.schema import Origin, SampleTable, Side

# Rows that an annotation is learnt from at most, in whole runs' proportions: beyond, precision is that of the runs, not of the calls.
FIT_ROWS = 1000


def both_tables(function: int, samples: Samples) -> tuple[SampleTable, SampleTable] | None:
    """Return a function's tables of both sides with the inputs that both have, or None where one side has no calls."""
    base, head = samples(function, Side.BASE), samples(function, Side.HEAD)
    if base is None or head is None or not len(base) or not len(head):
        return None
    names = ({feature.name for feature in base.features}, {feature.name for feature in head.features})
    base, head = without_features(base, names[0] - names[1]), without_features(head, names[1] - names[0])
    no_inputs = _passed_with_other_values(base, head) | clocks([base, head])
    return without_features(base, no_inputs), without_features(head, no_inputs)


def phased_tables(function: int, samples: Samples) -> PhasedTables | None:
    """Return a function's tables of both sides as `both_tables` does, with the phases of its calls."""
    tables = both_tables(function, samples)
    return None if tables is None else phased(*tables)


def learn(table: SampleTable, metric: str, function: str, config: CompareConfig) -> Annotation:
    """Return the annotation of a metric learnt from (part of) a table."""
    return fit(thinned(table, FIT_ROWS), metric, seed=config.seed, function=function)


def _passed_with_other_values(base: SampleTable, head: SampleTable) -> set[str]:
    """Return the workload parameters, if any feature of the calls moved within a workload point.

    A parameter stands for the inputs of a call only as long as both sides derive them from it in the same way.
    """
    parameters = {feature.name for feature in base.features if feature.origin is Origin.WORKLOAD}
    return parameters if parameters and moved_inputs(base, head) else set()


def moved_inputs(base: SampleTable, head: SampleTable) -> bool:
    """Return whether any feature of the calls, other than the workload's parameters, moved within a workload point."""
    names = [feature.name for feature in base.features if feature.origin is not Origin.WORKLOAD]
    if not names:
        return False
    before, after = _run_means(base, names), _run_means(head, names)
    return any(clear_shifts(before[point], after[point]).any() for point in before.keys() & after.keys())


def _run_means(table: SampleTable, names: Sequence[str]) -> dict[int, Floats]:
    """Return, by point, the mean of each feature over each run's calls (features, runs), NaN where a run has no value."""
    of = members(table)
    place = {feature.name: column for column, feature in enumerate(table.features)}
    values = table.values[:, [place[name] for name in names]]
    order, first = of.grouped
    present = ~np.isnan(values[order])
    with np.errstate(invalid="ignore"):
        sums = np.add.reduceat(np.where(present, values[order], 0.0), first)
        means = sums / np.add.reduceat(present, first, dtype=np.float64)
    return {int(point): means[of.points == point].T for point in np.unique(of.points)}
