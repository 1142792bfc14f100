"""What a cost is predicted to be at inputs that were not measured, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from perfdiff import units
from perfdiff.analysis.annotations.composition import CalleePart, Composition
from perfdiff.analysis.annotations.predicting import Extent, PredictedCosts
from perfdiff.models.annotation import CostClass
from perfdiff.models.extrapolation import LEVEL, Forecast, summary
from perfdiff.records.schema import Side
from perfdiff.report import wording
from perfdiff.report.blocks import Block, Cell, Column, Items, Sentence, Table, Tone
from perfdiff.report.printable import printable
from perfdiff.report.terminal import render_blocks

SCHEMA = "perfdiff.prediction/1"
_LEVERS = 5  # or callees, that a text names
_COLUMNS = (Column(""), Column("expected", right=True), Column(f"{100 * LEVEL:.0f} % of them", right=True), Column("growth"))


def text(predicted: PredictedCosts, *, width: int = 100, colour: bool = False) -> str:
    """Return the answer in a sentence, the costs of both sides, and what they rest on."""
    return render_blocks(list(_blocks(predicted)), width=width, colour=colour)


def answer(predicted: PredictedCosts) -> str:
    """Return the predicted cost in one sentence, or that it is not known."""
    forecasts = {side: forecast for side, forecast in predicted.sides.items() if forecast is not None}
    if not forecasts:
        return f"Not known: nothing like it was measured of {_subject(predicted)}."
    side, last = list(forecasts.items())[-1]
    cost = _cost(predicted, last) + ("" if predicted.is_written else f" in {side}")
    if predicted.ratio is not None:
        low, high = units.significant(predicted.ratio.low), units.significant(predicted.ratio.high)
        cost = f"{cost}, {units.ratio(predicted.ratio.value)} [{low}, {high}] of what it was"
    subject = _subject(predicted)
    return f"{subject[0].upper()}{subject[1:]}{_at(predicted)} {'take' if predicted.extent is Extent.CALLS else 'takes'} {cost}."


def json_document(predicted: PredictedCosts) -> dict[str, Any]:
    """Return what `predict --format json` writes; what is absent is None."""
    return {
        "schema": SCHEMA,
        "function": predicted.name,
        "metric": predicted.metric,
        "of": predicted.extent.value,
        "level": LEVEL,
        "inputs": dict(predicted.inputs),
        "typical": dict(predicted.typical),
        "ranges": {name: list(ends) for name, ends in predicted.ranges.items()},
        "sides": {side.value: _side(predicted.sides.get(side)) for side in Side},
        "changed": {side.value: _side(predicted.changed.get(side)) for side in Side},
        "ratio": dict(zip(("value", "low", "high"), predicted.ratio.figures, strict=True)) if predicted.ratio else None,
        "makeup": {side.value: _composition(predicted.composition.get(side)) for side in Side},
        "levers": {
            side.value: [{"function": lever.function, "share": lever.share} for lever in predicted.levers.get(side, ())] for side in Side
        },
    }


def _side(forecast: Forecast | None) -> dict[str, Any] | None:
    if forecast is None:
        return None
    return {
        "expected": forecast.expected,
        **dict(zip(("low", "high"), forecast.interval, strict=True)),
        **dict(zip(("single_low", "single_high"), forecast.call_interval, strict=True)),
        "classes": {kind.value: weight for kind, weight in forecast.classes.items()},
        "beyond": dict(forecast.beyond),
    }


def _composition(composition: Composition | None) -> dict[str, Any] | None:
    if composition is None:
        return None
    low, expected, high = summary(composition.draws)
    callees = [
        {
            "function": callee.function,
            "calls": callee.calls.expected,
            "calls_grow": _growth(callee.calls),
            "each": callee.each.expected,
            "each_grows": _growth(callee.each),
            "share": float(np.median(callee.draws)) / expected if expected else 0.0,
        }
        for callee in composition.callees
    ]
    own = composition.own.expected / expected if expected else 0.0
    return {"expected": expected, "low": low, "high": high, "own": own, "own_grows": _growth(composition.own), "callees": callees}


def _growth(forecast: Forecast) -> str:
    """Return the class by which a cost most likely grows."""
    return next(iter(forecast.classes)).value


def _blocks(predicted: PredictedCosts) -> Iterator[Block]:
    yield Sentence(answer(predicted), Tone.STRONG)
    rows = [_row(predicted, "annotated" if predicted.is_written else side.value, forecast) for side, forecast in predicted.sides.items()]
    rows += [_row(predicted, f"{side}, changed", forecast) for side, forecast in predicted.changed.items()]
    yield Table("", _COLUMNS, tuple(rows))
    if predicted.levers and (largest := list(_levers(predicted))):
        yield Items("What would change it most", tuple(largest))
    if predicted.composition:
        yield Items("What it is made of", tuple(_made_of(predicted)))
    if said := list(_grounds(predicted)):
        yield Items("What this rests on", tuple(said))


def _row(predicted: PredictedCosts, name: str, forecast: Forecast | None) -> tuple[Cell, ...]:
    if forecast is None:
        return Cell(name), Cell("not known"), Cell(""), Cell("")
    classes = list(forecast.classes.items())
    growth = ", ".join(f"{kind}{f' {wording.percent(weight)}' if len(classes) > 1 else ''}" for kind, weight in classes)
    return Cell(name), Cell(_cost(predicted, forecast)), Cell(_interval(predicted, forecast.call_interval)), Cell(growth)


def _grounds(predicted: PredictedCosts) -> Iterator[str]:
    """Yield how far beyond what was measured it lies, and what the inputs are that were not given."""
    beyond = {name: far for forecast in predicted.sides.values() if forecast for name, far in forecast.beyond.items()}
    for name, far in beyond.items():
        low, high = (units.count(end) for end in predicted.ranges[name])
        yield printable(
            f"{name} was measured from {low} to {high}: this is {units.significant(far, 2)} times beyond, where growth may change"
        )
    if predicted.typical:
        listed = ", ".join(f"{name} = {units.count(value)}" for name, value in predicted.typical.items())
        yield printable(f"not given, and taken as it typically is: {listed}")
    if predicted.is_written:
        yield "of an annotation alone: how well its growth is known is not in the file"


def _subject(predicted: PredictedCosts) -> str:
    name = printable(predicted.name)
    metric = "" if predicted.metric == "wall_ns" else f" ({wording.metric_says(predicted.metric)})"
    match predicted.extent:
        case Extent.RUN:
            return f"a run{metric}"
        case Extent.CALLS:
            return f"all calls of {name} in a run{metric}"
        case _:
            return f"a call of {name}{metric}"


def _at(predicted: PredictedCosts) -> str:
    return printable(f" at {', '.join(f'{name} = {value}' for name, value in predicted.inputs.items())}") if predicted.inputs else ""


def _levers(predicted: PredictedCosts) -> Iterator[str]:
    """Yield what halving the own time of a function saves on the last side, as a share of a run at the last measured point."""
    side = list(predicted.levers)[-1]
    for lever in predicted.levers[side][:_LEVERS]:
        yield printable(f"half the own time of {lever.function} saves {wording.percent(lever.share)} of a run of {side}")


def _made_of(predicted: PredictedCosts) -> Iterator[str]:
    """Yield the shares of a call's time on the last side, and how far they are from what calls of it take as a whole."""
    side, composition = list(predicted.composition.items())[-1]
    low, expected, high = summary(composition.draws)
    if not expected > 0:
        return
    yield f"{wording.percent(composition.own.expected / expected)} is its own, in {side} ({_growth(composition.own)})"
    for callee in composition.callees[:_LEVERS]:
        yield printable(f"{wording.percent(float(np.median(callee.draws)) / expected)} is {_callee(predicted, callee)}")
    whole = predicted.sides[side]
    if whole is not None and not (whole.interval[0] <= high and low <= whole.interval[1]):
        yield (
            f"together these are {_costs(predicted, expected, (low, high))}: {wording.percent(abs(expected / whole.expected - 1))} "
            f"{'more' if expected > whole.expected else 'less'} than calls of it take by themselves, as with caches, waiting or contention"
        )


def _callee(predicted: PredictedCosts, callee: CalleePart) -> str:
    """Return how often a callee is called, and what each call takes, with the growth of both where it is not the same everywhere."""
    time = wording.amount(predicted.metric, callee.each.expected)
    calls, cost = ("" if kind == CostClass.CONSTANT else f" ({kind})" for kind in (_growth(callee.calls), _growth(callee.each)))
    return f"{callee.function}, called {units.times(callee.calls.expected)} times{calls}, {time} each{cost}"


def _cost(predicted: PredictedCosts, forecast: Forecast) -> str:
    return _costs(predicted, forecast.expected, forecast.interval)


def _costs(predicted: PredictedCosts, expected: float, interval: tuple[float, float]) -> str:
    return f"{wording.amount(predicted.metric, expected)} [{_interval(predicted, interval)}]"


def _interval(predicted: PredictedCosts, ends: tuple[float, float]) -> str:
    low, high = (wording.amount(predicted.metric, end) for end in ends)
    return f"{low}, {high}"
