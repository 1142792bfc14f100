"""Annotations in their short form, a line above the function: `@Time~Norm(2ms*path_length(path), 1ms)` (HotCloud §2)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from perfdiff import units
from perfdiff.models.annotation import Annotation, Scope, factors_text
from perfdiff.models.distribution import Binomial, Exponential, Normal
from perfdiff.models.oneline import NAMES
from perfdiff.report import wording
from perfdiff.report.printable import printable


def text(annotations: Sequence[Annotation]) -> str:
    """Return the annotations of each function above its name: a line for each metric and scope, quantities with their units."""
    parts = []
    for function, group in groupby(annotations, key=lambda annotation: annotation.function):
        lines = [line for annotation in group for line in _lines(annotation)]
        parts.append("\n".join([*lines, printable(function)]) + "\n")
    return "\n".join(parts)


def _lines(annotation: Annotation) -> list[str]:
    unit = wording.metric_unit(annotation.metric)
    name = NAMES.get(annotation.metric, annotation.metric)
    lines = []
    for scope in annotation.scopes:
        condition = f"[{scope.condition}] " if scope.condition else ""
        chance = f"{{{units.significant(scope.probability)}}} " if scope.probability < 1 else ""
        lines.append(printable(f"@{name}~{condition}{chance}{_cost(scope, unit)}"))
    return lines


def _cost(scope: Scope, unit: str) -> str:
    match scope.scatter:
        case Normal(sigma, relative):
            spread = [_amount(sigma, unit)] if sigma or not relative else []
            spread += [wording.percent(relative)] if relative else []
            return f"Norm({_sum(scope, unit)}, {' + '.join(spread)})"
        case Exponential(mean):
            return f"{_sum(scope, unit)} - {_amount(mean, unit)} + Exp(1/{_amount(mean, unit)})"
        case Binomial(chance, None):
            return f"Binom(({_sum(scope, unit)})/{units.significant(chance)}, {units.significant(chance)})"
        case Binomial(chance, trials, start, step):
            return f"{_amount(start, unit)} + {_amount(step, unit)}*Binom({trials}, {units.significant(chance)})"


def _sum(scope: Scope, unit: str) -> str:
    text = ""
    for term in scope.terms:
        sign = (" - " if text else "-") if term.coefficient < 0 else (" + " if text else "")
        text += sign + "*".join(filter(None, [_amount(abs(term.coefficient), unit), factors_text(term.factors, {})]))
    return text or "0"


def _amount(value: float, unit: str) -> str:
    return units.quantity(value, unit).replace(" ", "").replace(",", "")
