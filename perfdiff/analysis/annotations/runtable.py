"""Runs as rows of a sample table, with the parameters of their workloads as features, so that annotations may be learnt of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from perfdiff.records.schema import Experiment, Feature, Origin, Run, SampleTable, Side


def of_runs(experiment: Experiment, runs: Sequence[Run], costs: Sequence[float], side: Side, metric: str = "wall_ns") -> SampleTable:
    """Return a table with a row for each run, and a feature for each parameter of the workloads."""
    parameters = {point.id: point.parameters for point in experiment.points if point.id in {run.point for run in runs}}
    features, columns = [], []
    for name in dict.fromkeys(name for values in parameters.values() for name in values):
        values = [parameters[run.point].get(name) for run in runs]
        texts = sorted({value for value in values if isinstance(value, str)})
        features.append(Feature(name, Origin.WORKLOAD, bool(texts), dict(enumerate(texts))))
        columns.append([np.nan if value is None else float(texts.index(str(value)) if texts else value) for value in values])
    number = len(runs)
    nothing = np.zeros((number, 0))
    return SampleTable(
        function=0,
        side=side,
        metrics={metric: np.array(costs, dtype=np.float64)},
        features=tuple(features),
        values=np.column_stack(columns) if columns else nothing,
        branches=(),
        executed=nothing,
        taken=nothing,
        run=np.array([run.id for run in runs]),
        point=np.array([run.point for run in runs]),
        thread=np.zeros(number, dtype=np.int64),
        call=np.zeros(number, dtype=np.int64),
        weight=np.ones(number),
    )
