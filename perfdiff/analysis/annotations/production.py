"""What head costs at the inputs that programs in use met: both sides' annotations, weighed by recorded calls.

Of each function that was compared, and that recordings have calls of, both sides' costs at the recorded inputs make a ratio, by which the
own time that it took in use changes. Recordings vary from host to host, so runs are drawn anew (bootstrap).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from perfdiff.analysis.annotations.annotating import MOST_ROWS, prepared
from perfdiff.analysis.annotations.consequences import Beyond, Concentration, FunctionInUse, InUse
from perfdiff.analysis.annotations.predicting import modelled
from perfdiff.analysis.findings import Ratio
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.stats.rows import thinned
from perfdiff.errors import UsageError
from perfdiff.models.extrapolation import DRAWS, CostModel, summary
from perfdiff.models.observations import columns_of
from perfdiff.models.population import population
from perfdiff.records.arrays import Floats
from perfdiff.records.recorded import RecordedExperiment
from perfdiff.records.schema import FunctionInfo, SampleTable, Side

METRIC = "self_ns"


def in_use(compared: RecordedExperiment | None, recorded: RecordedExperiment, *, seed: int) -> InUse:
    """Weigh a comparison by recordings of programs in use; raise UsageError where these have no function in common, or no time."""
    if compared is None or len(compared.sides) < len(Side):
        raise UsageError("recordings in use weigh calls that were measured of two versions, and there are none", slug="nothing-to-predict")
    experiment = recorded.experiment
    side = recorded.sides[0]
    of_side = np.isin(experiment.totals.run, [run.id for run in experiment.runs if run.side is side])
    totals = experiment.totals
    runs = len(np.unique(totals.run[of_side]))
    own_ns = {info.id: float(np.nansum(totals.self_ns[of_side & (totals.function == info.id)])) for info in experiment.functions}
    whole_ns = sum(own_ns.values())
    added, functions, asked = np.zeros(DRAWS), [], 0.0
    for info, same in _pairs(compared, recorded) if whole_ns > 0 else ():
        share = own_ns[info.id] / whole_ns
        table = recorded.samples(info.id, side)
        if share < POLICY.least_work or table is None or not len(table):
            continue
        drawn = _drawn(compared, same, prepared(thinned(table, MOST_ROWS)), share, seed)
        if drawn is not None:
            functions.append(drawn[0])
            added += drawn[1]
            asked += share
    if not functions:
        raise UsageError("the recordings in use have no calls of a function that was measured on both sides", slug="nothing-to-predict")
    functions.sort(key=lambda function: -abs(function.adds.value))
    return InUse(_ratio(1 + added, runs), tuple(functions), max(1.0 - asked, 0.0), runs)


def _pairs(compared: RecordedExperiment, recorded: RecordedExperiment) -> Iterator[tuple[FunctionInfo, FunctionInfo]]:
    """Yield each recorded function with the compared one of its name, and file where several are of one name."""
    by_name: dict[str, list[FunctionInfo]] = {}
    for info in compared.experiment.functions:
        by_name.setdefault(info.name, []).append(info)
    for info in recorded.experiment.functions:
        of_name = by_name.get(info.name, [])
        same = of_name if len(of_name) == 1 else [other for other in of_name if other.file == info.file]
        if same:
            yield info, same[0]


def _drawn(
    compared: RecordedExperiment, function: FunctionInfo, calls: SampleTable, share: float, seed: int
) -> tuple[FunctionInUse, Floats] | None:
    """Return a function in use, and what it adds to all own time, by draws (DRAWS,); None where one side has no calls to learn from."""
    models: dict[Side, CostModel] = {}
    for side in Side:
        table = compared.samples(function.id, side)
        if table is None or METRIC not in table.metrics or not np.isfinite(table.metrics[METRIC]).any():
            return None
        models[side] = modelled_for(calls, function.name, table, METRIC, seed)
    bins = population(calls, models[Side.HEAD].annotation, [name for model in models.values() for name in model.annotation.features])
    forecasts = [
        [model.forecast(inputs, seed=seed, version=version) for version, model in enumerate(models.values())] for inputs in bins.inputs
    ]
    answered = [place for place, of_bin in enumerate(forecasts) if all(of_bin)]
    if not answered:
        return None
    by_bin = [[forecast.draws for forecast in forecasts[place] if forecast] for place in answered]
    drawn = {side: np.array([draws[version] for draws in by_bin]) for version, side in enumerate(models)}
    weights = bins.anew(answered, DRAWS, seed)
    base, head = (np.einsum("db,bd->d", weights, drawn[side]) for side in Side)
    ratios = np.divide(head, base, out=np.ones(DRAWS), where=base > 0)
    runs = bins.weights.shape[1]
    at_work = FunctionInUse(
        function.name,
        function.file,
        share,
        _ratio(ratios, runs),
        _ratio(share * (ratios - 1), runs),
        _concentration([bins.inputs[place] for place in answered], bins.weights[answered].sum(axis=1), drawn, models[Side.HEAD]),
        tuple(_beyond(calls, models[Side.HEAD])),
    )
    return at_work, share * (ratios - 1)


def modelled_for(calls: SampleTable, function: str, table: SampleTable, metric: str, seed: int) -> CostModel:
    """Return what predicts a metric of a function from the inputs that its measured calls, in a table, and calls in use both have."""
    table = prepared(thinned(table, MOST_ROWS))
    in_both = tuple(name for name in columns_of(table) if name and name in columns_of(calls))
    return modelled(function, table, metric, in_both, seed)


def _ratio(draws: Floats, runs: int) -> Ratio:
    low, middle, high = summary(draws)
    return Ratio(middle, low, high, runs, runs)


def _concentration(inputs: list[dict[str, float]], calls: Floats, drawn: Mapping[Side, Floats], head: CostModel) -> Concentration | None:
    """Return above which value of head's first feature most of the difference lies; None where it has none, or that tells nothing."""
    if not head.annotation.features or head.annotation.features[0] not in inputs[0]:
        return None
    feature = head.annotation.features[0]
    values = np.array([of_bin[feature] for of_bin in inputs])
    apart = calls * np.median(drawn[Side.HEAD] - drawn[Side.BASE], axis=1)
    order = np.argsort(-values, kind="stable")
    reached = np.cumsum(apart[order]) / apart.sum() if apart.sum() else np.zeros(len(order))
    if not (reached >= POLICY.most_work).any():
        return None
    last = int(np.argmax(reached >= POLICY.most_work))
    share = float(calls[order[: last + 1]].sum() / calls.sum())
    return Concentration(feature, float(values[order[last]]), share, float(reached[last])) if share < reached[last] / 2 else None


def _beyond(calls: SampleTable, head: CostModel) -> Iterator[Beyond]:
    columns = columns_of(calls)
    for name in head.annotation.features:
        if name not in columns or name not in head.ranges:
            continue
        over = columns[name] > head.ranges[name][1]
        if over.any():
            yield Beyond(name, head.ranges[name][1], float(columns[name][over].max()), float(calls.weight[over].sum() / calls.weight.sum()))
