"""The text form of annotations, after Freud (§2.2, Figures 2, 9 and 11).

    sort.wall_ns(size, mode) {  // class = linear; n = 5000; r2 = 0.99; cv_r2 = 0.98
      int size = list->size;  // origin = field; range = 1 to 4000; typical = 2000; twins = bytes
      enum mode = arg.mode;  // codes = FAST 1
      [mode == FAST && size <= 100] Norm(53.3 - 2.1*size + 0.12*size*log2(size), 12.4);  // class = n log n; n = 3000; share = 0.6
      [mode != FAST] {
        {0.2} Norm(400, 12.4 + 5%);  // σ² = 12.4² + (5 % of the expected cost)²
        {0.8} 500 + 20*size + Exp(1/3000);
      }
    }

The language holds what predicts; the comments hold what is known beyond, and are read as well. Numbers are written with as many
digits as it takes to read the same number again; `fit` rounds them beforehand.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import count, groupby

from perfdiff.models.annotation import Annotation, Condition, Factors, Operator, Scope, Term, Trend, product_text
from perfdiff.models.distribution import Binomial, Exponential, Normal
from perfdiff.models.notation import (
    FUNCTION,
    LABEL,
    METRIC,
    PLACES,
    RESERVED,
    decimal,
    exact,
    finite,
    is_plain,
    quoted,
    shortest,
    six_digits,
    spelt,
)
from perfdiff.models.parser import Parser

_BOUNDS = (Operator.AT_MOST, Operator.ABOVE)


def print_annotation(annotation: Annotation) -> str:
    """Return the annotation with all that prediction and checking need: `parse` gives it back, equal."""
    return _printed(annotation, shortest, comments=True)


def print_all(annotations: Sequence[Annotation]) -> str:
    """Return the text of a file that holds the annotations, one behind the other."""
    return "\n".join(print_annotation(annotation) + "\n" for annotation in annotations)


def readable(annotation: Annotation) -> str:
    """Return the annotation as reports show it: six digits a number, and of the comments the shares of calls only."""
    return _printed(annotation, six_digits, comments=False)


def print_scope(annotation: Annotation, scope: Scope) -> str:
    """Return one scope of an annotation, `[conditions] {probability} distribution`, with the annotation's symbols."""
    features = _features(annotation)
    where = _conditions(scope.conditions, features, shortest)
    chance = f"{{{shortest(scope.probability)}}} " if scope.probability != 1 else ""
    return (f"[{where}] " if where else "") + chance + _cost(scope, _symbols_of(features), shortest)


def parse(text: str) -> Annotation:
    """Return the one annotation that `text` holds; AnnotationSyntaxError with line and column where it cannot be read."""
    parser = Parser(text)
    annotation = parser.annotation()
    parser.end()
    return annotation


def parse_all(text: str) -> list[Annotation]:
    """Return all annotations of a file; AnnotationSyntaxError with line and column where it cannot be read."""
    parser = Parser(text)
    annotations = []
    while not parser.at_end():
        annotations.append(parser.annotation())
    return annotations


@dataclass(frozen=True, slots=True)
class _FeatureSpelling:
    """How a feature is spelt: its symbol, the code behind each label of its conditions, the bound above which a branch is "true"."""

    name: str
    symbol: str
    codes: Mapping[str, float]
    true_above: float | None


def _printed(annotation: Annotation, number: Callable[[float | Decimal], str], *, comments: bool) -> str:
    features = _features(annotation)
    symbols = _symbols_of(features)
    head = f"{spelt(annotation.function, FUNCTION)}.{spelt(annotation.metric, METRIC)}({', '.join(symbols.values())}) {{"
    lines = [head + _comment(_quality(annotation)) if comments else head]
    for feature in features.values():
        line = f"  {_kind(feature, annotation)} {feature.symbol} = {_place(feature.name, annotation.origins.get(feature.name))};"
        lines.append(line + _comment(_facts(feature, annotation)) if comments else line)
    for conditions, group in groupby(annotation.scopes, key=lambda scope: scope.conditions):
        scopes = list(group)
        where = _conditions(conditions, features, number)
        nested = bool(where) and len(scopes) > 1
        costs = []
        for scope in scopes:
            chance = f"{{{number(scope.probability)}}} " if nested or scope.probability != 1 else ""
            behind = _comment(_learnt(scope)) if comments else _share(scope, annotation)
            costs.append(f"{chance}{_cost(scope, symbols, number)};{behind}")
        if nested:
            lines += [f"  [{where}] {{", *(f"    {cost}" for cost in costs), "  }"]
        else:
            lines += [f"  [{where}] {cost}" if where else f"  {cost}" for cost in costs]
    return "\n".join([*lines, "}"])


def _features(annotation: Annotation) -> dict[str, _FeatureSpelling]:
    return {name: _spelling(name, symbol, annotation) for name, symbol in _symbols(annotation.features).items()}


def _symbols_of(features: Mapping[str, _FeatureSpelling]) -> dict[str, str]:
    return {feature.name: feature.symbol for feature in features.values()}


def _conditions(conditions: Sequence[Condition], features: Mapping[str, _FeatureSpelling], number: Callable[[float], str]) -> str:
    return " && ".join(_condition(condition, features[condition.feature], number) for condition in conditions)


def _symbols(features: tuple[str, ...]) -> dict[str, str]:
    """Return a short identifier per feature, its last word where that is unique."""
    symbols: dict[str, str] = {}
    for name in features:
        words = re.findall(r"[A-Za-z_][A-Za-z0-9_]*", name) or ["x"]
        candidates = [words[-1], "_".join(words)]
        taken = RESERVED | set(symbols.values())
        free = (symbol for symbol in candidates if symbol not in taken)
        symbols[name] = next(free, "") or next(symbol for i in count(2) if (symbol := f"{words[-1]}{i}") not in taken)
    return symbols


def _spelling(name: str, symbol: str, annotation: Annotation) -> _FeatureSpelling:
    codes: dict[str, float] = {}
    above = None
    for condition in (c for scope in annotation.scopes for c in scope.conditions if c.feature == name and c.labels):
        if condition.operator in _BOUNDS:
            above = condition.values[0] if above is None else above
        else:
            for label, code in zip(condition.labels, condition.values, strict=True):
                codes.setdefault(label, code)
    return _FeatureSpelling(name, symbol, codes, above)


def _kind(feature: _FeatureSpelling, annotation: Annotation) -> str:
    if feature.codes or feature.true_above is not None:
        return "bool" if set(feature.codes) <= {"true", "false"} else "enum"
    return "int" if all(bound.is_integer() for bound in annotation.ranges.get(feature.name, (0.5,))) else "double"


def _place(name: str, origin: str | None) -> str:
    prefix = PLACES.get(origin or "", "")
    ambiguous = not prefix and name.startswith(tuple(PLACES.values()))
    return prefix + (name if is_plain(name, without=";") and not ambiguous else quoted(name))


def _listed(name: str) -> str:
    return name if is_plain(name, without=";,") else quoted(name)


def _comment(items: Iterator[str]) -> str:
    text = "; ".join(items)
    return f"  // {text}" if text else ""


def _quality(annotation: Annotation) -> Iterator[str]:
    yield f"class = {annotation.cost_class.value}"
    yield f"n = {annotation.n}"
    yield from (f"{key} = {shortest(value)}" for key, value in (("r2", annotation.r2), ("cv_r2", annotation.cv_r2)) if finite(value))
    if annotation.further is not None:
        yield f"further = {_listed(annotation.further)}"
    if annotation.levels is not None:
        levels = annotation.levels
        yield f"runs = {levels.runs}; points = {levels.points}; level = {shortest(levels.mean)}"
        yield f"spread = {shortest(levels.spread)}; misfit = {shortest(levels.misfit)}"


def _facts(feature: _FeatureSpelling, annotation: Annotation) -> Iterator[str]:
    origin = annotation.origins.get(feature.name)
    if origin is not None and origin not in PLACES:
        yield f"origin = {spelt(origin, LABEL)}"
    if feature.name in annotation.ranges:
        low, high = annotation.ranges[feature.name]
        yield f"range = {shortest(low)} to {shortest(high)}"
    if feature.name in annotation.typical:
        yield f"typical = {shortest(annotation.typical[feature.name])}"
    if feature.codes:
        yield "codes = " + ", ".join(f"{spelt(label, LABEL)} {shortest(code)}" for label, code in feature.codes.items())
    if feature.true_above is not None:
        yield f"true = above {shortest(feature.true_above)}"
    if feature.name in annotation.twins:
        twins = annotation.twins[feature.name]
        yield "twins = " + ", ".join(map(_listed, twins))


def _learnt(scope: Scope) -> Iterator[str]:
    yield f"class = {scope.cost_class.value}"
    yield f"n = {scope.n}"
    yield f"share = {shortest(scope.share)}"
    if scope.trimmed:
        yield f"trimmed = {shortest(scope.trimmed)}"
    if scope.sigma != _implied(scope):
        yield f"sigma = {shortest(scope.sigma)}"
    if scope.trend is not Trend.MEAN:
        yield f"trend = {scope.trend.value}"


def _implied(scope: Scope) -> float | None:
    """Return the standard deviation that the distribution's own numbers tell."""
    match scope.distribution:
        case None:
            return scope.sigma
        case Exponential(mean):
            return mean
        case Binomial(_, trials) if trials is not None:
            return scope.distribution.sigma
    return None


def _share(scope: Scope, annotation: Annotation) -> str:
    share = [f"{scope.share:.1%} of calls"] if len(annotation.scopes) > 1 else []
    return _comment(iter([*share, *([scope.trend.value] if scope.trend is not Trend.MEAN else [])]))


def _condition(condition: Condition, feature: _FeatureSpelling, number: Callable[[float], str]) -> str:
    """Return a condition with its labels where their codes stand behind the feature, else with its numbers."""
    names = tuple(number(value) for value in condition.values)
    if condition.operator in _BOUNDS:
        names = ("true",) if condition.labels and condition.values[0] == feature.true_above else names
    elif condition.labels and [feature.codes.get(label) for label in condition.labels] == list(condition.values):
        names = tuple(spelt(label, LABEL) for label in condition.labels)
        if names == ("true",) and feature.true_above is not None:  # the bare symbol means the bound
            return f"{feature.symbol} {'==' if condition.operator is Operator.IN else '!='} true"
    text = Condition(condition.feature, condition.operator, condition.values, names).text(feature.symbol)
    return f"({text})" if condition.operator is Operator.NOT_IN and len(names) > 1 else text  # apart from those joined to it


def _cost(scope: Scope, symbols: Mapping[str, str], number: Callable[[float | Decimal], str]) -> str:
    """Return the distribution of a scope's cost without condition and probability."""
    match scope.scatter:
        case Normal(sigma, relative):
            with exact():
                parts = [number(sigma)] if sigma or not relative else []
                parts += [number(decimal(relative) * 100) + "%"] if relative else []
            return f"Norm({_sum(scope.terms, symbols, number)}, {' + '.join(parts)})"
        case Exponential(mean):
            with exact():
                lowered = [(decimal(t.coefficient) - (0 if t.factors else decimal(mean)), t) for t in scope.terms]
                return f"{_signed([(value, t.factors) for value, t in lowered], symbols, number)} + Exp(1/{number(mean)})"
        case Binomial(chance, None):
            return f"Binom(({_sum(scope.terms, symbols, number)})/{number(chance)}, {number(chance)})"
        case Binomial(chance, trials, start, step):
            before = f"{number(start)} + " if start else ""
            return before + (f"{number(step)}*" if step != 1 else "") + f"Binom({trials}, {number(chance)})"


def _sum(terms: tuple[Term, ...], symbols: Mapping[str, str], number: Callable[[float | Decimal], str]) -> str:
    return _signed([(term.coefficient, term.factors) for term in terms], symbols, number)


def _signed(terms: Sequence[tuple[float | Decimal, Factors]], symbols: Mapping[str, str], number: Callable[[float | Decimal], str]) -> str:
    text = ""
    for coefficient, factors in terms:
        negative = coefficient < 0
        magnitude = product_text(number(-coefficient if negative else coefficient), factors, symbols)
        text += (f" {'-' if negative else '+'} " if text else "-" * negative) + magnitude
    return text or "0"
