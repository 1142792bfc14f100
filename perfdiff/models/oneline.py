"""The one-line form of annotations, for a comment above the function: `@Time~Norm(2ms*path_length(path), 1ms)` (HotCloud §2)."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from decimal import Decimal

from perfdiff.models.annotation import Annotation, Factors, Scope, Term, Trend, product_text
from perfdiff.models.costs import CostReader
from perfdiff.models.distribution import Binomial, Exponential, Normal
from perfdiff.models.growth import growth_class, order
from perfdiff.models.notation import CALL, LOGARITHMS, METRIC, RESERVED, decimal, exact, quoted, shortest, spelt
from perfdiff.models.reader import Reader
from perfdiff.records.metrics import METRICS

# Metrics as the paper names them, and in its manner; all others go by their own names.
NAMES = {
    "wall_ns": "Time",
    "self_ns": "OwnTime",
    "cpu_ns": "CpuTime",
    "alloc_bytes": "Memory",
    "alloc_count": "Allocations",
    "callee_calls": "Calls",
    "lock_wait_ns": "LockWait",
    "lock_hold_ns": "LockHold",
    "page_faults": "PageFaults",
    "switches": "Switches",
}
_METRICS = {name: metric for metric, name in NAMES.items()}
# Powers of ten of the units, the largest first.
_UNITS: dict[str, dict[str, int]] = {"ns": {"s": 9, "ms": 6, "us": 3, "ns": 0}, "bytes": {"GB": 9, "MB": 6, "kB": 3, "B": 0}, "count": {}}
_READ = re.compile(r"(ns|us|µs|ms|s|GB|MB|kB|B)\b")


def print_line(annotation: Annotation) -> str:
    """Return an annotation of one scope as `@Metric~cost`; `parse_line` reads its cost back to the last digit.

    ValueError where there are several scopes: they take the full form.
    """
    if len(annotation.scopes) != 1 or annotation.scopes[0].conditions:
        raise ValueError(f"{annotation.function} has several scopes")
    (scope,) = annotation.scopes
    metric = METRICS.get(annotation.metric)
    units = _UNITS[metric.unit if metric else "count"]
    symbols = {name: _operand(name) for name in annotation.features}
    with exact():
        return f"@{NAMES.get(annotation.metric) or spelt(annotation.metric, METRIC)}~{_cost(scope, symbols, units)}"


def parse_line(text: str, *, function: str = "") -> Annotation:
    """Return the annotation of `function` that a line holds; AnnotationSyntaxError where it cannot be read.

    The line tells the cost alone: calls, quality and ranges are unknown.
    """
    reader = Reader(text)
    reader.need("@")
    name = reader.name(METRIC, "a metric")
    reader.need("~")
    features: dict[str, None] = {}

    def operand() -> str:
        symbol = reader.name(CALL, "a number or a feature")
        features[symbol] = None
        return symbol

    def measure() -> Decimal:
        value = reader.decimal()
        unit = reader.match(_READ)
        powers = {"µs": 3} | _UNITS["ns"] | _UNITS["bytes"]
        return value.scaleb(powers[unit]) if unit else value

    with exact():
        terms, sigma, distribution = CostReader(reader, operand, measure).cost()
    reader.skip()
    if reader.at < len(text):
        reader.fail("the end")
    kind = growth_class(max((term.factors for term in terms), key=order))
    scope = Scope(kind, terms, sigma, 1.0, 0, distribution=distribution, trend=Trend.MEAN)
    return Annotation(function, _METRICS.get(name, name), kind, (scope,), tuple(features), {}, {}, math.nan, math.nan, 0)


def _operand(name: str) -> str:
    word = re.match(r"\w*", name)
    return name if re.fullmatch(CALL, name) and word and word.group() not in RESERVED.union(LOGARITHMS) else quoted(name)


def _cost(scope: Scope, symbols: dict[str, str], units: dict[str, int]) -> str:
    match scope.scatter:
        case Normal(sigma, relative):
            spread = [_amount(decimal(sigma), units)] if sigma or not relative else []
            spread += [shortest(decimal(relative) * 100) + "%"] if relative else []
            return f"Norm({_sum(_exact(scope.terms), symbols, units)}, {' + '.join(spread)})"
        case Exponential(mean):
            lowered = [(value if factors else value - decimal(mean), factors) for value, factors in _exact(scope.terms)]
            return f"{_sum(lowered, symbols, units)} + Exp(1/{_amount(decimal(mean), units)})"
        case Binomial(chance, None):
            return f"Binom(({_sum(_exact(scope.terms), symbols, units)})/{shortest(chance)}, {shortest(chance)})"
        case Binomial(chance, trials, start, step):
            before = f"{_amount(decimal(start), units)} + " if start else ""
            return before + (f"{_amount(decimal(step), units)}*" if step != 1 else "") + f"Binom({trials}, {shortest(chance)})"


def _exact(terms: Sequence[Term]) -> list[tuple[Decimal, Factors]]:
    return [(decimal(term.coefficient), term.factors) for term in terms]


def _sum(terms: Sequence[tuple[Decimal, Factors]], symbols: dict[str, str], units: dict[str, int]) -> str:
    text = ""
    for value, factors in terms:
        if not value and len(terms) > 1:
            continue
        sign = (" - " if text else "-") if value < 0 else (" + " if text else "")
        text += sign + product_text(_amount(abs(value), units), factors, symbols)
    return text or "0"


def _amount(value: Decimal, units: dict[str, int]) -> str:
    """Return an amount in the largest unit that it fills, or the smallest."""
    if not value or not units:
        return shortest(value)
    unit = next((unit for unit, power in units.items() if abs(value) >= Decimal(10) ** power), list(units)[-1])
    return shortest(value.scaleb(-units[unit])) + unit
