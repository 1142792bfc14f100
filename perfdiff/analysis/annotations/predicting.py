"""What a call, all calls of a function in a run, or a run as a whole costs at inputs that were not measured, on both sides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NoReturn

import numpy as np

from perfdiff import units
from perfdiff.analysis.annotations.annotating import MOST_ROWS, annotate_prepared, prepared
from perfdiff.analysis.annotations.composition import Composition, composed
from perfdiff.analysis.annotations.runtable import of_runs
from perfdiff.analysis.annotations.whatif import CostChange, Lever, changed_by, levers, varied_by, workload_ledger
from perfdiff.analysis.findings import Ratio
from perfdiff.analysis.stats.rows import thinned, without_features
from perfdiff.errors import UsageError
from perfdiff.models import spread
from perfdiff.models.annotation import PHASE, Annotation
from perfdiff.models.extrapolation import CostModel, Forecast, learnt, mixed, summary, written
from perfdiff.records.arrays import Floats
from perfdiff.records.recorded import RecordedExperiment
from perfdiff.records.schema import FunctionInfo, Phase, SampleTable, Side

TIME = "wall_ns"
Inputs = Mapping[str, float]


class Extent(StrEnum):
    """What a cost is of: one call of a function, all its calls in a run, or a run as a whole."""

    CALL = "call"
    CALLS = "calls of a run"
    RUN = "run"


@dataclass(frozen=True, slots=True)
class PredictionRequest:
    """What is to be predicted: a `metric` of calls of a function, or with `of_run` of all its calls in a run; of runs where it is None.

    Times are predicted as they would be with `changes`, too.
    """

    function: FunctionInfo | None
    metric: str
    of_run: bool
    inputs: Mapping[str, str]
    workload: str | None = None
    changes: tuple[CostChange, ...] = ()

    @property
    def extent(self) -> Extent:
        """Return whether the cost is that of a call, of all calls in a run, or of a run."""
        return Extent.RUN if self.function is None else Extent.CALLS if self.of_run else Extent.CALL


@dataclass(frozen=True, slots=True)
class PredictedCosts:
    """A prediction by side, None where no scope of a side holds at these inputs; `ratio` is head's expected cost over base's.

    `inputs` are those that were given, as they were written, `typical` those that annotations use besides, `ranges` the measured ones. A
    file of annotations has no sides, and stands as base's. `changed` are costs with the changes that were asked for, `levers` what would
    change runs most, `composition` what calls of a function are made of.
    """

    name: str
    metric: str
    extent: Extent
    inputs: Mapping[str, str]
    typical: Mapping[str, float]
    ranges: Mapping[str, tuple[float, float]]
    sides: Mapping[Side, Forecast | None]
    ratio: Ratio | None = None
    is_written: bool = False
    changed: Mapping[Side, Forecast] = field(default_factory=dict)
    levers: Mapping[Side, tuple[Lever, ...]] = field(default_factory=dict)
    composition: Mapping[Side, Composition] = field(default_factory=dict)


def predicted(recorded: RecordedExperiment, asked: PredictionRequest, *, seed: int) -> PredictedCosts:
    """Predict by what was recorded; raise UsageError where an input is none of what was asked for, or nothing was recorded of it."""
    tables = {side: table for side in recorded.sides if (table := _table(recorded, asked, side)) is not None and len(table)}
    if not tables:
        raise UsageError(
            f"no {asked.extent} of {_name(asked)} was timed: compare with --thorough, which times calls in any case",
            slug="nothing-to-predict",
        )
    given = _met({name: _number(name, text, list(tables.values()), seed) for name, text in asked.inputs.items()})
    models = {side: modelled(_name(asked), table, asked.metric, tuple(asked.inputs), seed) for side, table in tables.items()}
    prediction = _of(models, given, asked, _name(asked), seed)
    runs = {side: len(np.unique(table.run)) for side, table in tables.items()}
    prediction = replace(prediction, ratio=_ratio(prediction.sides, runs))
    if asked.changes:
        changed = {side: _changed(recorded, asked, side, forecast, given, seed) for side, forecast in prediction.sides.items() if forecast}
        prediction = replace(prediction, changed=changed)
    if asked.function is None:
        return replace(prediction, levers={side: levers(recorded.experiment, side, asked.workload) for side in tables})
    if asked.metric != TIME:
        return prediction
    at = [{**prediction.typical, **inputs} for inputs in given]
    parts = {side: _composed(recorded, asked, side, asked.function, at, seed) for side in tables}
    return replace(prediction, composition={side: whole for side, whole in parts.items() if whole is not None})


def _composed(  # noqa: PLR0913, PLR0917 (what is predicted, and at which inputs)
    recorded: RecordedExperiment, asked: PredictionRequest, side: Side, function: FunctionInfo, given: Sequence[Inputs], seed: int
) -> Composition | None:
    """Return what calls of a function are made of, where runs are known that sampled calls tell the inputs of."""
    samples, ledger = recorded.samples(function.id, side), workload_ledger(recorded.experiment, side, asked.workload)
    if samples is None or not ledger.points:
        return None

    def predict(table: SampleTable, version: int) -> Forecast | None:
        names = {feature.name for feature in table.features}
        within = [{name: value for name, value in inputs.items() if name in names} for inputs in given]
        if not set(asked.inputs) <= names:
            return None
        (metric,) = table.metrics
        return _forecast(modelled(function.name, table, metric, tuple(asked.inputs), seed), within, seed, version)

    return composed(recorded.experiment, ledger, side, function.id, samples, predict)


def _changed(  # noqa: PLR0913, PLR0917 (what is predicted, and at which inputs)
    recorded: RecordedExperiment, asked: PredictionRequest, side: Side, forecast: Forecast, given: Sequence[Inputs], seed: int
) -> Forecast:
    """Return a cost with the changes: by what runs that were measured take more or less with them, which grows as costs do.

    Where inputs are no parameters of workloads, they make the cost so many times as large as in most runs.
    """
    function = asked.function.id if asked.function else None
    both = changed_by(recorded.experiment, side, asked.changes, asked.workload, function)
    if both is None:
        return forecast
    deviation = varied_by(recorded.experiment, side, asked.changes, asked.workload, function)
    forecast = forecast.varied(deviation, np.random.default_rng(seed))
    if set(asked.inputs) <= {feature.name for feature in both[0].features}:
        names = tuple(asked.inputs)
        before, after = (_forecast(modelled(_name(asked), table, TIME, names, seed), given, seed) for table in both)
        if before is not None and after is not None:
            return forecast.plus(after.draws - before.draws)
    now, then = (table.metrics[TIME] for table in both)
    return forecast.times(float(np.median(then / np.maximum(now, 1.0))))


def by_annotations(annotations: Sequence[Annotation], asked: PredictionRequest, name: str, *, seed: int) -> PredictedCosts:
    """Predict by the annotation of a function's metric in a file; raise UsageError where it has none, or not with these inputs."""
    by_name = {f"{annotation.function}.{annotation.metric}": annotation for annotation in annotations}
    if (wanted := f"{name}.{asked.metric}") not in by_name:
        raise UsageError(f"the file has no annotation {wanted}; it has {units.listed(sorted(by_name), 10)}", slug="nothing-to-predict")
    annotation = by_name[wanted]
    given: dict[str, Floats] = {}
    labels = {
        label: code
        for scope in annotation.scopes
        for condition in scope.conditions
        for code, label in zip(condition.values, condition.labels, strict=False)
    }
    for feature, text in asked.inputs.items():
        if feature not in annotation.features:
            _refuse(feature, annotation.features)
        given[feature] = np.array([labels[text]]) if text in labels else _finite(feature, text, seed)
    return replace(_of({Side.BASE: written(annotation)}, _met(given), asked, name, seed), extent=Extent.CALL, is_written=True)


def _met(values: Mapping[str, Floats]) -> list[Inputs]:
    """Return the inputs that are met, each as often, of the values of each; one where none of them varies."""
    most = max((len(column) for column in values.values()), default=1)
    return [{name: float(column[place % len(column)]) for name, column in values.items()} for place in range(most)]


def _forecast(model: CostModel, given: Sequence[Inputs], seed: int, version: int = 0) -> Forecast | None:
    """Return a cost at inputs that are each met as often; None where that of one is not known."""
    forecasts = [model.forecast(inputs, seed=seed, version=version) for inputs in given]
    complete = [forecast for forecast in forecasts if forecast is not None]
    return mixed(complete) if len(complete) == len(forecasts) else None


def _of(models: Mapping[Side, CostModel], given: Sequence[Inputs], asked: PredictionRequest, name: str, seed: int) -> PredictedCosts:
    sides = {side: _forecast(model, given, seed, place) for place, (side, model) in enumerate(models.items())}
    typical = {other: value for model in models.values() for other, value in model.annotation.typical.items() if other not in asked.inputs}
    ranges = {other: ends for model in models.values() for other, ends in model.ranges.items() if other in asked.inputs}
    return PredictedCosts(name, asked.metric, asked.extent, dict(asked.inputs), typical, ranges, sides)


def _ratio(sides: Mapping[Side, Forecast | None], runs: Mapping[Side, int]) -> Ratio | None:
    base, head = sides.get(Side.BASE), sides.get(Side.HEAD)
    if base is None or head is None or not base.draws.all():
        return None
    low, middle, high = summary(head.draws / base.draws)
    return Ratio(middle, low, high, runs[Side.BASE], runs[Side.HEAD])


def _name(asked: PredictionRequest) -> str:
    return asked.function.name if asked.function else "run"


def _table(recorded: RecordedExperiment, asked: PredictionRequest, side: Side) -> SampleTable | None:
    """Return the costs to learn from: calls as they were recorded, or runs with their parameters."""
    experiment = recorded.experiment
    if asked.function is not None and not asked.of_run:
        for load in (recorded.samples, recorded.counts):
            table = load(asked.function.id, side)
            if table is not None and asked.metric in table.metrics and np.isfinite(table.metrics[asked.metric]).any():
                return prepared(thinned(table, MOST_ROWS))
        return None
    phase = Phase.PLAIN if asked.function is None else Phase.TIMED
    points = {point.id: point for point in experiment.points if asked.workload in (None, point.workload)}
    runs = [run for run in experiment.runs if run.phase is phase and run.side is side and run.point in points]
    if asked.function is None:
        costs = [run.took_ns for run in runs]
    else:
        totals = experiment.totals
        column = totals.wall_ns if asked.metric == TIME else totals.self_ns
        mine = totals.function == asked.function.id
        by_run = dict(zip(totals.run[mine].tolist(), column[mine].tolist(), strict=True))
        runs = [run for run in runs if run.id in by_run]
        costs = [by_run[run.id] for run in runs]
    return of_runs(experiment, runs, costs, side, asked.metric) if runs else None


def _number(name: str, text: str, tables: Sequence[SampleTable], seed: int) -> Floats:
    """Return the value of an input, or the code of the category that a text names (1,), or values of an input that varies (k,)."""
    features = [feature for table in tables for feature in table.features if feature.name == name]
    if not features:
        _refuse(name, list(dict.fromkeys(feature.name for table in tables for feature in table.features)))
    codes = {label: code for feature in features for code, label in feature.labels.items()}
    if text in codes:
        return np.array([float(codes[text])])
    if features[0].category:
        raise UsageError(f"{name} is one of {', '.join(sorted(codes))}, not '{text}'", slug="unknown-input")
    return _finite(name, text, seed)


def _finite(name: str, text: str, seed: int) -> Floats:
    varying = spread.values(text, np.random.default_rng([seed, *name.encode()]))
    if varying is not None:
        return varying
    try:
        value = float(text)
    except ValueError:
        value = np.nan
    if not np.isfinite(value):
        raise UsageError(f"'{text}' is no number for {name}; write one such as 1000 or 1e6, or {spread.FORMS}", slug="unknown-input")
    return np.array([value])


def _refuse(name: str, inputs: Sequence[str]) -> NoReturn:
    raise UsageError(
        f"nothing is known of '{name}' where this cost was measured; it is told by {', '.join(inputs) or 'no input'}", slug="unknown-input"
    )


def modelled(function: str, table: SampleTable, metric: str, given: Sequence[str], seed: int) -> CostModel:
    """Return a model that predicts a metric of prepared calls from their inputs.

    The given ones alone count where the annotation of all leaves one of them out.
    """
    annotation = next(annotate_prepared(function, table, (metric,), seed=seed))
    used = set(annotation.features)
    if not set(given) <= used and not used <= set(given):
        others = {feature.name for feature in table.features} - {PHASE, *given}
        nothing = np.zeros((len(table), 0))
        table = replace(without_features(table, others), branches=(), executed=nothing, taken=nothing)
        annotation = next(annotate_prepared(function, table, (metric,), seed=seed))
    return learnt(annotation, table)
