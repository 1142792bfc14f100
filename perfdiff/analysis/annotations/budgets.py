"""What costs of head are against their budgets: at the inputs that ran, at given ones, and at those that programs in use met.

Each is made of draws, of other runs like these (bootstrap) or of what annotations do not know, so that it has an interval.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from perfdiff.analysis.annotations.annotating import MOST_ROWS, prepared
from perfdiff.analysis.annotations.consequences import BudgetFinding, BudgetStanding, Consequences
from perfdiff.analysis.annotations.predicting import PredictionRequest, predicted
from perfdiff.analysis.annotations.production import in_use, modelled_for
from perfdiff.analysis.annotations.subjects import TIME, named
from perfdiff.analysis.stats.rows import thinned
from perfdiff.config import RUN, CostBudget
from perfdiff.errors import UsageError
from perfdiff.models.extrapolation import Forecast, summary
from perfdiff.models.population import CALLS_OF_BIN, FINE_BINS, WAYS, population
from perfdiff.records.arrays import Floats, Ints
from perfdiff.records.metrics import metric_of
from perfdiff.records.recorded import RecordedExperiment
from perfdiff.records.schema import FunctionInfo, Phase, SampleTable, Side


def consequences(
    compared: RecordedExperiment | None, budgets: Sequence[CostBudget], recorded: RecordedExperiment | None, *, seed: int
) -> Consequences:
    """Return what a comparison means by its budgets, and by what was `recorded` of programs in use; nothing is known where nothing ran."""
    findings = tuple(held(budget, compared, recorded, seed=seed) for budget in budgets)
    if recorded is None:
        return Consequences(findings)
    try:
        return Consequences(findings, in_use(compared, recorded, seed=seed))
    except UsageError as error:
        return Consequences(findings, unweighed=str(error))


def held(budget: CostBudget, compared: RecordedExperiment | None, recorded: RecordedExperiment | None, *, seed: int) -> BudgetFinding:
    """Hold head against a budget, by what was compared, and by what was `recorded` in use where it is about that."""
    try:
        low, value, high = summary(_drawn(budget, compared, recorded, seed))
    except UsageError as error:
        return BudgetFinding(budget, BudgetStanding.UNKNOWN, reason=str(error))
    is_exceeded, is_kept = low > budget.limit, high <= budget.limit
    standing = BudgetStanding.EXCEEDED if is_exceeded else BudgetStanding.KEPT if is_kept else BudgetStanding.OPEN
    return BudgetFinding(budget, standing, (value, low, high))


def _drawn(budget: CostBudget, compared: RecordedExperiment | None, recorded: RecordedExperiment | None, seed: int) -> Floats:
    """Return what is held against the limit, by draws (d,); raise UsageError where it is not known."""
    if compared is None:
        raise UsageError("nothing was measured", slug="nothing-to-predict")
    info, metric = _subject(budget, compared)
    if budget.in_use:
        if info is None or recorded is None:
            raise UsageError("recordings in use are of functions, and --production names their folder", slug="nothing-to-predict")
        return _in_use(budget, compared, info, metric, recorded, seed)
    if budget.inputs:
        asked = PredictionRequest(info, metric, False, budget.inputs)
        forecast = predicted(compared, asked, seed=seed).sides.get(Side.HEAD)
        if forecast is None:
            raise UsageError("nothing like these inputs ran in head", slug="nothing-to-predict")
        return _statistic_of(forecast, budget.quantile)
    if info is None:
        return max(_of_runs(budget, compared, seed), key=lambda draws: float(np.median(draws)))
    table = _calls(compared, info, metric)
    return _anew(table.metrics[metric], table.weight, table.run, table.point, budget, seed)


def _subject(budget: CostBudget, compared: RecordedExperiment) -> tuple[FunctionInfo | None, str]:
    """Return the function, None for runs, and the metric that a budget is about; raise UsageError where that is not clear."""
    if budget.subject in (RUN, f"{RUN}.time"):
        info, metric = None, TIME
    else:
        meant, metric = named(budget.subject, compared.experiment.functions)
        if len(meant) != 1:
            raise UsageError(
                f"{len(meant)} functions of this name were measured" if meant else "no such function was measured", slug="unknown-function"
            )
        info = meant[0]
    unit = metric_of(metric).unit
    if unit != budget.unit:
        raise UsageError(f"its limit is in {budget.unit}, and {metric} in {unit}", slug="unknown-metric")
    return info, metric


def _calls(compared: RecordedExperiment, info: FunctionInfo, metric: str) -> SampleTable:
    """Return head's calls with a metric; raise UsageError where none were recorded."""
    for load in (compared.samples, compared.counts):
        table = load(info.id, Side.HEAD)
        if table is not None and metric in table.metrics and np.isfinite(table.metrics[metric]).any():
            return table.rows(np.flatnonzero(np.isfinite(table.metrics[metric])))
    raise UsageError(
        f"no call of {info.name} in head was recorded with {metric}; --thorough times calls in any case", slug="unknown-metric"
    )


def _of_runs(budget: CostBudget, compared: RecordedExperiment, seed: int) -> Iterator[Floats]:
    """Yield the draws of each point's plain runs of head; raise UsageError where there are too few."""
    runs = [run for run in compared.experiment.runs if run.phase is Phase.PLAIN and run.side is Side.HEAD]
    by_point = {point: [run.took_ns for run in runs if run.point == point] for point in {run.point for run in runs}}
    if not by_point:
        raise UsageError("no whole run of head was made", slug="nothing-to-predict")
    for took_ns in by_point.values():
        yield _anew(np.array(took_ns), np.ones(len(took_ns)), np.arange(len(took_ns)), np.zeros(len(took_ns), np.int64), budget, seed)


def _anew(values: Floats, weights: Floats, run: Ints, point: Ints, budget: CostBudget, seed: int) -> Floats:  # noqa: PLR0913, PLR0917
    """Return a statistic of rows (n,) with the runs of each point drawn anew (d,)."""
    runs, first, place = np.unique(run, return_index=True, return_inverse=True)
    rng, times = np.random.default_rng(seed), np.zeros((WAYS, len(runs)))
    for of_point in np.unique(point):
        mine = np.flatnonzero(point[first] == of_point)
        if len(mine) < 2:
            raise UsageError("a single run of a point tells no spread", slug="nothing-to-predict")
        times[:, mine] = rng.multinomial(len(mine), np.full(len(mine), 1 / len(mine)), size=WAYS)
    return np.array([_statistic(values, weights * drawn[place], budget.quantile) for drawn in times])


def _statistic(values: Floats, weights: Floats, quantile: float | None) -> float:
    """Return the mean or a quantile of rows (n,) that stand for as many calls as their weights."""
    if quantile is None:
        return float(np.average(values, weights=weights))
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    return float(values[order[min(int(np.searchsorted(reached, quantile * reached[-1])), len(values) - 1)]])


def _statistic_of(forecast: Forecast, quantile: float | None) -> Floats:
    """Return the expected cost, or a quantile of single calls, by draws of what is not known of the expected one (d,)."""
    if quantile is None:
        return forecast.draws
    return np.asarray(forecast.draws + np.quantile(forecast.calls - forecast.draws, quantile))


def _in_use(  # noqa: PLR0913, PLR0917 (a cost, and what it is known by)
    budget: CostBudget, compared: RecordedExperiment, info: FunctionInfo, metric: str, recorded: RecordedExperiment, seed: int
) -> Floats:
    """Return a cost of head at the inputs of recorded calls, by draws of runs and of what head's annotation does not know (d,)."""
    meant, _ = named(budget.subject, recorded.experiment.functions)
    calls = recorded.samples(meant[0].id, recorded.sides[0]) if len(meant) == 1 else None
    if calls is None or not len(calls):
        raise UsageError("the recordings in use have no calls of it", slug="nothing-to-predict")
    calls = prepared(thinned(calls, MOST_ROWS))
    model = modelled_for(calls, info.name, _calls(compared, info, metric), metric, seed)
    bins = population(calls, model.annotation, model.annotation.features, FINE_BINS)
    forecasts = {place: forecast for place, inputs in enumerate(bins.inputs) if (forecast := model.forecast(inputs, seed=seed))}
    if not forecasts:
        raise UsageError("nothing like the inputs in use ran in head", slug="nothing-to-predict")
    weights = bins.anew(list(forecasts), WAYS, seed)
    expected = np.array([forecast.draws[:WAYS] for forecast in forecasts.values()])
    if budget.quantile is None:
        return np.asarray(np.einsum("db,bd->d", weights, expected) / weights.sum(axis=1))
    scatter = np.array([(forecast.calls - forecast.draws)[-CALLS_OF_BIN:] for forecast in forecasts.values()])
    return np.array(
        [
            _statistic((expected[:, [way]] + scatter).ravel(), np.repeat(weights[way], CALLS_OF_BIN), budget.quantile)
            for way in range(WAYS)
            if weights[way].any()
        ]
    )
