"""Annotations as Freud's statistics program writes and reads them: a file a function, named after it, a line a scope or cluster.

    R C [ mode == 1, size <= 100 ] T ~ [det= 9.98e-01 ] 5.33e+01 -2.1e+00*size +1.2e-01*size*log(size)
    CL[ 0.200000 ]: B( -1.000000 , 1500.000000 ), C( 1000.000000 )

Times are µs there, and `log` is to base 2. Of how calls scatter these lines tell nothing, so that scopes read from them have no σ.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import pairwise, product
from typing import NoReturn

from perfdiff.errors import AnnotationSyntaxError
from perfdiff.models.annotation import Annotation, Condition, CostClass, Factors, Operator, Scope, Term, Trend, blocks
from perfdiff.models.distribution import Binomial, Distribution, Exponential, Normal
from perfdiff.models.growth import growth_class, order
from perfdiff.models.notation import decimal, exact, quoted
from perfdiff.records.freud_blocks import freud_name


@dataclass(frozen=True, slots=True)
class _Metric:
    """A metric of Freud's: its letter in files, its name in the paper's figures, ours, and how many of our units one of its is."""

    letter: str
    name: str
    ours: str
    unit: int


_METRICS = (
    _Metric("T", "time", "wall_ns", 1000),
    _Metric("M", "mem", "alloc_bytes", 1),
    _Metric("L", "lock", "lock_hold_ns", 1000),
    _Metric("W", "wait", "lock_wait_ns", 1000),
    _Metric("p", "minor_page_faults", "page_faults", 1),
    _Metric("P", "major_page_faults", "major_page_faults", 1),
)
_TRENDS = {"C": Trend.MEAN, "M": Trend.MAIN_TREND, "*": Trend.LOWER_BOUND}
_LETTERS = {trend: letter for letter, trend in _TRENDS.items()}
_CLUSTER = "CL"  # the name of what no input tells, in the place of a feature

_NUMBER = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?"
_BOUND = rf"(?:{_NUMBER}|-?inf)"
_REGRESSION = re.compile(
    rf"R (?P<trend>[CM*]) \[ (?P<where>.+?) \] (?P<metric>[TMLWpP]) ~ \[det= ?(?P<det>{_NUMBER}|-?nan) \] (?P<sum>\S.*)"
)
_ALONE = re.compile(rf"CL\[ (?P<chance>{_NUMBER}) \]: B\( {_BOUND} , {_BOUND} \), C\( (?P<centre>{_NUMBER}) \)")
_CONDITION = re.compile(
    rf"(?P<name>\S+) (?:>\| (?P<above>{_NUMBER}) \| <= (?P<most>{_NUMBER})"
    rf"|(?P<operator><=|>|==|!=) (?P<value>{_NUMBER})(?: {_BOUND} {_BOUND})?)(?:, |$)"
)
_TERM = re.compile(rf"(?P<value>{_NUMBER})(?:\*(?P<product>\S+))?(?: |$)")
_CONSTANT = re.compile(rf"0 0 foo 0 (?P<value>{_NUMBER})")  # of a metric that hardly varies, in the place of a sum
# Factors of a product, each up to a star that does not stand ahead of a name.
_FACTORS = (
    (re.compile(r"(?P<name>.{1,1000}?)\*log\((?P=name)\)(?:\*|$)"), "xlogx"),
    (re.compile(r"log\((?P<name>[^*]+)\)(?:\*|$)"), "log"),
    (re.compile(r"(?P<name>\**[^*]+)\^2(?:\*|$)"), "x2"),
    (re.compile(r"(?P<name>\**[^*]+)\^3(?:\*|$)"), "x3"),
    (re.compile(r"(?P<name>\**[^*]+)(?:\*|$)"), "x"),
)
_SPELT = {"x": "{0}", "log": "log({0})", "xlogx": "{0}*log({0})", "x2": "{0}^2", "x3": "{0}^3"}


@dataclass(frozen=True, slots=True)
class _Line:
    """What a line of a file says: a scope of a metric, how well its regression explains its calls, and whether it is of a cluster."""

    metric: str
    scope: Scope
    det: float
    is_cluster: bool


def is_freuds(text: str) -> bool:
    """Return whether a text is a file of Freud's statistics program and none of annotations in their language."""
    return re.match(r"\s*(?:R [CM*] \[|CL\[ )", text) is not None


def parse_freuds(text: str, function: str, *, metric: str = "time") -> list[Annotation]:
    """Return the annotations of a file, one a metric, in our metrics and units; the file says nothing of its function.

    Clusters alone have no metric in the file: theirs is `metric`, by Freud's name. AnnotationSyntaxError with line and column where a
    line cannot be read. Of regressions with the same conditions, one of which Freud makes for each feature that it selects calls by,
    that one counts which explains most.
    """
    lines: dict[str, list[_Line]] = {}
    own = next(candidate for candidate in _METRICS if candidate.name == metric)
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            with exact():
                read = _read(line, number, own)
            lines.setdefault(read.metric, []).append(read)
    return [_annotation(function, name, _best(group)) for name, group in lines.items()]


def print_freuds(annotations: Sequence[Annotation]) -> str:
    """Return the file of one function that Freud reads; metrics that it does not know, and costs that inputs divide, are left out.

    Lost are how calls scatter, and conditions on what a call lacks, whose scopes are left out.
    """
    metrics = {metric.ours: metric for metric in _METRICS}
    with exact():
        rules = (rule for rule in annotations if rule.metric in metrics and _is_spelt(rule))
        return "".join(f"{line}\n" for rule in rules for line in _printed(rule, metrics[rule.metric]))


def _is_spelt(annotation: Annotation) -> bool:
    """Return whether Freud has a spelling for all that costs follow."""
    return all(function in _SPELT for scope in annotation.scopes for term in scope.terms for _, function in term.factors)


def converted(annotation: Annotation) -> Annotation:
    """Return an annotation of the paper's figures in our metrics and units: `time` in µs becomes `wall_ns`; others stay as they are."""
    metric = next((candidate for candidate in _METRICS if candidate.name == annotation.metric), None)
    if metric is None:
        return annotation
    scopes = tuple(_scaled(scope, metric.unit) for scope in annotation.scopes)
    return replace(annotation, metric=metric.ours, scopes=scopes)


def _scaled(scope: Scope, unit: int) -> Scope:
    if unit == 1:
        return scope
    with exact():
        terms = tuple(replace(term, coefficient=_times(term.coefficient, unit)) for term in scope.terms)
        return replace(scope, terms=terms, sigma=_times(scope.sigma, unit), distribution=_stretched(scope.distribution, unit))


def _stretched(law: Distribution | None, unit: int) -> Distribution | None:
    match law:
        case Normal(sigma, relative):
            return Normal(_times(sigma, unit), relative)
        case Exponential(mean):
            return Exponential(_times(mean, unit))
        case Binomial(chance, trials, start, step) if trials is not None:
            return Binomial(chance, trials, _times(start, unit), _times(step, unit))
    return None  # successes that are counted are no times


def _times(value: float, unit: int) -> float:
    return float(decimal(value) * unit)


def _read(line: str, number: int, own: _Metric) -> _Line:
    line = line.strip()

    def refuse(expected: str, at: int) -> NoReturn:
        raise AnnotationSyntaxError(number, at + 1, expected, quoted(line[at : at + 20]) if line[at:] else "the end of the line")

    alone = _ALONE.fullmatch(line)
    if alone:
        share = float(alone["chance"])
        if not 0 <= share <= 1:
            refuse("a probability", alone.start("chance"))
        centre = Term(float(Decimal(alone["centre"]) * own.unit))
        return _Line(own.ours, Scope(CostClass.CONSTANT, (centre,), 0.0, 0.0, 0, (), share), math.nan, True)
    match = _REGRESSION.fullmatch(line)
    if match is None:
        refuse("a line of Freud's, such as 'R C [ * ] T ~ [det= 0.99 ] 1.5 +2*n' or 'CL[ 0.5 ]: B( 0 , 9 ), C( 5 )'", 0)
    metric = next(candidate for candidate in _METRICS if candidate.letter == match["metric"])
    conditions, chance = _where(match["where"], lambda expected, at: refuse(expected, match.start("where") + at))
    sum_terms = _sum(match["sum"], metric.unit, lambda expected, at: refuse(expected, match.start("sum") + at))
    kind = growth_class(max((term.factors for term in sum_terms), key=order))
    scope = Scope(kind, sum_terms, 0.0, 0.0, 0, conditions, 1.0 if chance is None else chance, trend=_TRENDS[match["trend"]])
    return _Line(metric.ours, scope, float(match["det"]), chance is not None)


def _where(text: str, refuse: Callable[[str, int], NoReturn]) -> tuple[tuple[Condition, ...], float | None]:
    """Return conditions, and the probability of a cluster that no input tells."""
    conditions: list[Condition] = []
    chance = None
    at = 0
    while text != "*" and at < len(text):
        match = _CONDITION.match(text, at)
        if match is None:
            refuse("a condition, such as 'n <= 5' or 'n >| 5 | <= 9'", at)
        name = match["name"]
        if match["above"] is not None:
            low, high = float(match["above"]), float(match["most"])
            conditions += [Condition(name, Operator.ABOVE, (low,)), Condition(name, Operator.AT_MOST, (high,))]
        elif name == _CLUSTER:
            chance = float(match["value"])
            if not 0 <= chance <= 1:
                refuse("a probability", match.start("value"))
        else:
            operator = {"<=": Operator.AT_MOST, ">": Operator.ABOVE, "==": Operator.IN, "!=": Operator.NOT_IN}[match["operator"]]
            conditions.append(Condition(name, operator, (float(match["value"]),)))
        at = match.end()
    return tuple(conditions), chance


def _sum(text: str, unit: int, refuse: Callable[[str, int], NoReturn]) -> tuple[Term, ...]:
    constant = _CONSTANT.fullmatch(text)
    if constant:
        return (Term(float(Decimal(constant["value"]) * unit)),)
    terms: list[Term] = []
    at = 0
    while at < len(text):
        match = _TERM.match(text, at)
        if match is None:
            refuse("a number, or one times a feature, such as '+2.5*n*log(n)'", at)
        coefficient = float(Decimal(match["value"]) * unit)
        if not math.isfinite(coefficient):
            refuse("a finite number", at)
        terms.append(Term(coefficient, _factors(match["product"] or "")))
        at = match.end()
    return tuple(terms)


def _factors(text: str) -> Factors:
    """Return the factors of a product, as of `a*log(a)*b^2`; stars ahead of a name belong to it, and stars alone are none."""
    factors: list[tuple[str, str]] = []
    at = 0
    while at < len(text):
        matches = ((pattern.match(text, at), function) for pattern, function in _FACTORS)
        match, function = next(((match, function) for match, function in matches if match), (None, ""))
        if match is None:
            break
        factors.append((match["name"], function))
        at = match.end()
    return tuple(factors)


def _best(lines: Sequence[_Line]) -> list[_Line]:
    """Return the lines without those that another of the same conditions explains better; modes of a mixture stand beside each other."""
    best: dict[object, _Line] = {}
    for place, line in enumerate(lines):
        key: object = place if line.is_cluster else line.scope.conditions
        if key not in best or line.det > best[key].det:
            best[key] = line
    return list(best.values())


def _annotation(function: str, metric: str, lines: Sequence[_Line]) -> Annotation:
    even = 1 / len({line.scope.conditions for line in lines})
    scopes = tuple(replace(line.scope, share=line.scope.probability * even) for line in lines)
    used = [name for scope in scopes for name in (*(condition.feature for condition in scope.conditions), *_names(scope))]
    det = lines[0].det if len(lines) == 1 else math.nan
    return Annotation(function, metric, _class_of(scopes), scopes, tuple(dict.fromkeys(used)), {}, {}, det, math.nan, 0)


def _class_of(scopes: Sequence[Scope]) -> CostClass:
    """Return the class of scopes as of fitted ones: their common one, unless they are modes, or borders of what they follow part them.

    Borders of other features may be those of an enum, whose values Freud parts by `<=`.
    """
    if any(scope.probability < 1 for scope in scopes):
        return CostClass.MIXTURE
    kinds = {scope.cost_class for scope in scopes}
    followed = {name for scope in scopes for name in _names(scope)}
    bounded = any(border.operator is Operator.AT_MOST and border.feature in followed for scope in scopes for border in scope.conditions)
    return CostClass.PIECEWISE if bounded or len(kinds) > 1 else kinds.pop()


def _names(scope: Scope) -> Iterator[str]:
    return (name for term in scope.terms for name, _ in term.factors)


def _printed(annotation: Annotation, metric: _Metric) -> Iterator[str]:
    det = min(max(annotation.r2, 0.0), 1.0) if math.isfinite(annotation.r2) else 0.0
    for modes in blocks(annotation):
        wheres = list(_alternatives(modes[0].conditions))
        bounds = _bounds(modes)
        is_alone = len(modes) == len(annotation.scopes) and len(modes) > 1 and bounds is not None and not modes[0].conditions
        for place, scope in enumerate(modes):
            low, high = _in_units(bounds[place] if bounds else (-math.inf, math.inf), metric.unit)
            if is_alone:
                centre = float(decimal(scope.terms[0].coefficient) / metric.unit)
                yield f"CL[ {scope.probability:.6f} ]: B( {low:.6f} , {high:.6f} ), C( {centre:.6f} )"
                continue
            mode = [f"{_CLUSTER} == {scope.probability:.6f} {low:.6f} {high:.6f}"] if len(modes) > 1 else []
            for where in wheres:
                conditions = ", ".join([*where, *mode]) or "*"
                kind = f"R {_LETTERS[scope.trend]} [ {conditions} ] {metric.letter}"
                yield f"{kind} ~ [det= {det:.19e} ] {_written(scope.terms, metric.unit)}"


def _in_units(ends: tuple[float, float], unit: int) -> tuple[float, float]:
    """Return the ends of a cluster in Freud's units; below the first one stands -1 there, so that a cost of 0 is in it."""
    low, high = ends[0] / unit, ends[1] / unit
    return low if math.isfinite(low) else min(-1.0, high), high


def _bounds(modes: Sequence[Scope]) -> list[tuple[float, float]] | None:
    """Return between which costs each mode lies, none where modes follow inputs: borders divide the way between centres as σ do."""
    if any(term.factors for scope in modes for term in scope.terms):
        return None
    ranked = sorted(range(len(modes)), key=lambda place: modes[place].terms[0].coefficient)
    centres, deviations = [modes[place].terms[0].coefficient for place in ranked], [modes[place].sigma for place in ranked]
    borders = [-math.inf]
    for (low, high), (below, above) in zip(pairwise(centres), pairwise(deviations), strict=True):
        share = below / (below + above) if below + above else 0.5
        borders.append(min(max(low * (1 - share) + high * share, low), high))
    ends = zip(borders, [*borders[1:], math.inf], strict=True)
    return [pair for _, pair in sorted(zip(ranked, ends, strict=True))]


def _alternatives(conditions: Sequence[Condition]) -> Iterator[list[str]]:
    """Yield conditions as texts that must all hold; several where one asks for any of some values, none where a call must lack one."""
    choices: list[list[list[str]]] = []
    for condition in conditions:
        name = freud_name(condition.feature)
        match condition.operator:
            case Operator.AT_MOST | Operator.ABOVE:
                choices.append([[f"{name} {condition.operator} {math.floor(condition.values[0])}"]])  # integers there
            case Operator.IN:
                choices.append([[f"{name} == {value:.0f}"] for value in condition.values])
            case Operator.NOT_IN:
                choices.append([[f"{name} != {value:.0f}" for value in condition.values]])
            case Operator.PRESENT:
                continue
            case Operator.ABSENT:
                return
    for chosen in product(*choices):
        yield [text for texts in chosen for text in texts]


def _written(terms: Sequence[Term], unit: int) -> str:
    intercept = sum((decimal(term.coefficient) for term in terms if not term.factors), Decimal(0)) / unit
    parts = [f"{intercept:.19e}"]
    for term in terms:
        if term.factors:
            factors = "*".join(_SPELT[function].format(freud_name(name)) for name, function in term.factors)
            parts.append(f"{decimal(term.coefficient) / unit:+.19e}*{factors}")
    return " ".join(parts)
