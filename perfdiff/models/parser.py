"""The parser of annotations: recursive descent over the text form that `language` prints."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from perfdiff.models.annotation import ANNOTATED, Annotation, Condition, CostClass, Levels, Operator, Scope, Trend
from perfdiff.models.costs import CostReader
from perfdiff.models.growth import growth_class, order
from perfdiff.models.notation import FUNCTION, LABEL, METRIC, PLACES, RESERVED, exact
from perfdiff.models.reader import Reader

_FUNCTION = re.compile(rf'({FUNCTION})\.(?={METRIC}\(|")')
_DECLARED = re.compile(r"[A-Za-z_]\w*\s+[A-Za-z_]\w*\s*=(?!=)")
_PARAMETERS = re.compile(r"[^(){};\n]*")
_SYMBOL = re.compile(r"[A-Za-z_]\w*")
_PLAIN = r'[^;"\n]+'
_LISTED = r'[^;,"\n]+'
_WORDS = re.compile(r"[a-z]+(?: [a-z]+)*")
_Item = TypeVar("_Item")
_SIGNED = re.compile(r"[-.\d]")


@dataclass(slots=True)
class _FeatureDeclaration:
    """A declared feature and what its comment tells."""

    name: str
    origin: str | None
    codes: dict[str, float] = field(default_factory=lambda: {"true": 1.0, "false": 0.0})
    true_above: float | None = None
    limits: tuple[float, float] | None = None
    typical: float | None = None
    twins: tuple[str, ...] = ()


@dataclass(slots=True)
class _Quality:
    """What the comment of an annotation tells."""

    cost_class: CostClass | None = None
    n: int = 0
    r2: float = math.nan
    cv_r2: float = math.nan
    runs: int = 0
    points: int = 1
    level: float = 0.0
    spread: float = 0.0
    misfit: float = 0.0
    further: str | None = None

    @property
    def levels(self) -> Levels | None:
        """Return what is told of single runs."""
        return Levels(self.runs, self.points, self.level, self.spread, self.misfit) if self.runs else None


@dataclass(slots=True)
class _Learnt:
    """What the comment of a scope tells."""

    cost_class: CostClass | None = None
    n: int = 0
    share: float | None = None
    trimmed: float = 0.0
    sigma: float | None = None
    trend: Trend = Trend.MEAN


def _sets(target: object, name: str, read: Callable[[], object]) -> Callable[[], None]:
    return lambda: setattr(target, name, read())


class Parser:
    """Reads annotations one after another."""

    def __init__(self, text: str) -> None:
        self._reader = Reader(text)
        self._costs = CostReader(self._reader, self._operand, self._reader.decimal)
        self._features: dict[str, _FeatureDeclaration] = {}
        self._names: set[str] = set()
        self._parameters: frozenset[str] = frozenset()

    def at_end(self) -> bool:
        """Return whether nothing but white space and comments is left."""
        self._reader.skip()
        return self._reader.at == len(self._reader.text)

    def end(self) -> None:
        """Fail unless nothing is left."""
        if not self.at_end():
            self._reader.fail("the end")

    def annotation(self) -> Annotation:
        """Parse one annotation; sums of its numbers are exact."""
        with exact():
            return self._annotation()

    def _annotation(self) -> Annotation:
        function, metric = self._head()
        quality = _Quality()
        self._reader.comment(
            {
                "class": _sets(quality, "cost_class", self._cost_class),
                "n": _sets(quality, "n", lambda: self._reader.natural("the number of calls")),
                "r2": _sets(quality, "r2", self._reader.number),
                "cv_r2": _sets(quality, "cv_r2", self._reader.number),
                "runs": _sets(quality, "runs", lambda: self._reader.natural("the number of runs")),
                "points": _sets(quality, "points", lambda: self._reader.natural("the number of workload points")),
                "level": _sets(quality, "level", lambda: self._reader.checked(math.isfinite, "a finite number")),
                "spread": _sets(quality, "spread", self._deviation),
                "misfit": _sets(quality, "misfit", self._deviation),
                "further": _sets(quality, "further", lambda: self._reader.name(_LISTED, "a feature")),
            }
        )
        self._features, self._names = {}, set()
        while self._declaration():
            pass
        scopes = self._scopes()
        features = {feature.name: feature for feature in self._features.values()}
        return Annotation(
            function=function,
            metric=metric,
            cost_class=quality.cost_class or max((scope.cost_class for scope in scopes), key=list(CostClass).index),
            scopes=scopes,
            features=tuple(features),
            twins={name: feature.twins for name, feature in features.items() if feature.twins},
            ranges={name: feature.limits for name, feature in features.items() if feature.limits is not None},
            r2=quality.r2,
            cv_r2=quality.cv_r2,
            n=quality.n,
            origins={name: feature.origin for name, feature in features.items() if feature.origin is not None},
            typical={name: feature.typical for name, feature in features.items() if feature.typical is not None},
            levels=quality.levels,
            further=quality.further,
        )

    def _head(self) -> tuple[str, str]:
        """Take `function.metric(parameters) {`; a parameter without a declaration is a feature of its own name (Freud, Figure 8)."""
        self._reader.skip()
        plain = self._reader.match(_FUNCTION)
        quoted = None if plain else self._reader.string()
        if quoted is not None:
            self._reader.need(".")
        function = (
            plain[:-1] if plain else quoted if quoted is not None else self._reader.fail("an annotation, such as 'f.wall_ns(n) { … }'")
        )
        metric = self._reader.name(METRIC, "a metric")
        self._reader.need("(")
        self._parameters = frozenset(_SYMBOL.findall(self._reader.match(_PARAMETERS) or ""))
        self._reader.need(")")
        self._reader.need("{")
        return function, metric

    def _declaration(self) -> bool:
        """Take `int n = arg.n;` with its comment."""
        self._reader.skip()
        if not _DECLARED.match(self._reader.text, self._reader.at):
            return False
        self._reader.word()
        self._reader.skip()
        start = self._reader.at
        symbol = self._reader.word() or ""
        if symbol in RESERVED or symbol in self._features:
            self._reader.fail("a name that is not taken", start)
        self._reader.need("=")
        self._reader.skip()
        start = self._reader.at
        origin = next((origin for origin, place in PLACES.items() if self._reader.text.startswith(place, self._reader.at)), None)
        self._reader.at += len(PLACES[origin]) if origin else 0
        quoted = self._reader.string()
        name = quoted if quoted is not None else self._reader.name(_PLAIN, "a feature, such as 'arg.n' or 'list->size'")
        if name in self._names:
            self._reader.fail("a feature that is not declared above", start)
        feature = self._features[symbol] = _FeatureDeclaration(name, origin)
        self._names.add(name)
        self._reader.need(";")
        self._reader.comment(
            {
                "origin": _sets(feature, "origin", lambda: self._reader.name(LABEL, "an origin")),
                "range": _sets(feature, "limits", self._range),
                "typical": _sets(feature, "typical", self._reader.number),
                "codes": _sets(feature, "codes", lambda: feature.codes | dict(self._listed(self._code))),
                "true": _sets(feature, "true_above", self._above),
                "twins": _sets(feature, "twins", lambda: tuple(self._listed(lambda: self._reader.name(_LISTED, "a feature")))),
            }
        )
        return True

    def _deviation(self) -> float:
        return self._reader.checked(lambda value: 0 <= value < math.inf, "a standard deviation")

    def _range(self) -> tuple[float, float]:
        low = self._reader.number()
        if not self._reader.word("to"):
            self._reader.fail("'to'")
        return low, self._reader.number()

    def _above(self) -> float:
        if not self._reader.word("above"):
            self._reader.fail("'above'")
        return self._reader.number()

    def _code(self) -> tuple[str, float]:
        return self._reader.name(LABEL, "a name and its code, such as 'FAST 1'"), self._reader.number("a code")

    def _listed(self, item: Callable[[], _Item]) -> list[_Item]:
        items = [item()]
        while self._reader.take(","):
            items.append(item())
        return items

    def _cost_class(self) -> CostClass:
        self._reader.skip()
        start = self._reader.at
        word = self._reader.match(_WORDS)
        return CostClass(word) if word in ANNOTATED else self._reader.fail("a class: " + ", ".join(ANNOTATED), start)

    def _trend(self) -> Trend:
        self._reader.skip()
        start = self._reader.at
        word = self._reader.match(_WORDS)
        return Trend(word) if word in list(Trend) else self._reader.fail("one of " + ", ".join(Trend), start)

    def _scopes(self) -> tuple[Scope, ...]:
        """Take scopes up to the closing brace."""
        scopes: list[tuple[Scope, float | None]] = []
        while not self._reader.take("}"):
            conditions = self._conditions()
            start = self._reader.at
            if conditions and self._reader.take("{") and self._reader.take("{"):
                self._reader.at = start
                self._reader.need("{")
                while not self._reader.take("}"):
                    scopes.append(self._scope(conditions))
                self._reader.take(";")
            else:
                self._reader.at = start
                scopes.append(self._scope(conditions))
        if not scopes:
            self._reader.fail("a scope, such as 'Norm(400 + 12*n, 30);'", self._reader.at - 1)
        even = 1 / len({scope.conditions for scope, _ in scopes})
        return tuple(replace(scope, share=scope.probability * even if share is None else share) for scope, share in scopes)

    def _scope(self, conditions: tuple[Condition, ...]) -> tuple[Scope, float | None]:
        """Take `{probability} distribution;` with its comment; the share of records is None where no comment tells it."""
        probability = 1.0
        if self._reader.take("{"):
            probability = self._reader.checked(lambda value: 0 <= value <= 1, "a probability")
            self._reader.need("}")
        terms, sigma, distribution = self._costs.cost()
        self._reader.skip()
        if not self._reader.text.startswith("}", self._reader.at):
            self._reader.need(";")
        learnt = _Learnt()
        self._reader.comment(
            {
                "class": _sets(learnt, "cost_class", self._cost_class),
                "n": _sets(learnt, "n", lambda: self._reader.natural("the number of calls")),
                "share": _sets(learnt, "share", self._reader.number),
                "trimmed": _sets(learnt, "trimmed", self._reader.number),
                "sigma": _sets(learnt, "sigma", self._deviation),
                "trend": _sets(learnt, "trend", self._trend),
            }
        )
        scope = Scope(
            cost_class=learnt.cost_class or growth_class(max((term.factors for term in terms), key=order)),
            terms=terms,
            sigma=sigma if learnt.sigma is None else learnt.sigma,
            share=0.0,
            n=learnt.n,
            conditions=conditions,
            probability=probability,
            trimmed=learnt.trimmed,
            distribution=distribution,
            trend=learnt.trend,
        )
        return scope, learnt.share

    def _conditions(self) -> tuple[Condition, ...]:
        """Take `[a && b]`, if there is one."""
        if not self._reader.take("["):
            return ()
        conditions = [self._condition()]
        while self._reader.take("&&"):
            conditions.append(self._condition())
        self._reader.need("]")
        return tuple(conditions)

    def _condition(self) -> Condition:
        if self._reader.take("("):
            comparisons = [self._comparison()]
            joiner = "||" if comparisons[0].operator is Operator.IN else "&&"
            while self._reader.take(joiner):
                self._reader.skip()
                start = self._reader.at
                comparisons.append(self._comparison())
                if (comparisons[-1].feature, comparisons[-1].operator, bool(comparisons[-1].labels)) != (
                    comparisons[0].feature,
                    comparisons[0].operator,
                    bool(comparisons[0].labels),
                ):
                    self._reader.fail("a comparison like the first", start)
            self._reader.need(")")
            values = tuple(value for comparison in comparisons for value in comparison.values)
            return replace(comparisons[0], values=values, labels=tuple(label for comparison in comparisons for label in comparison.labels))
        denied = self._reader.take("!") is not None
        if self._reader.word("absent"):
            self._reader.need("(")
            symbol = self._symbol()
            self._reader.need(")")
            return Condition(self._features[symbol].name, Operator.PRESENT if denied else Operator.ABSENT)
        return self._truth(denied) if denied else self._comparison()

    def _truth(self, denied: bool) -> Condition:
        """Take the bare symbol of something true or false."""
        feature = self._features[self._symbol()]
        if feature.true_above is not None:
            condition = Condition(feature.name, Operator.ABOVE, (feature.true_above,), ("true",))
        else:
            condition = Condition(feature.name, Operator.IN, (feature.codes["true"],), ("true",))
        return condition.negated() if denied else condition

    def _comparison(self) -> Condition:
        self._reader.skip()
        start = self._reader.at
        feature = self._features[self._symbol()]
        compared = self._reader.take("<=", ">=", "==", "!=", "<", ">")
        match compared:
            case None:
                self._reader.at = start
                return self._truth(denied=False)
            case "==" | "!=":
                operator = Operator.IN if compared == "==" else Operator.NOT_IN
                return self._equality(feature, operator)
        bound = self._reader.number("a number")
        if compared in ("<", ">="):  # the largest number below
            bound = math.nextafter(bound, -math.inf)
        return Condition(feature.name, Operator.AT_MOST if compared in ("<", "<=") else Operator.ABOVE, (bound,))

    def _equality(self, feature: _FeatureDeclaration, operator: Operator) -> Condition:
        self._reader.skip()
        if _SIGNED.match(self._reader.text, self._reader.at):
            return Condition(feature.name, operator, (self._reader.number(),))
        start = self._reader.at
        label = self._reader.name(LABEL, "a number or a name")
        if label not in feature.codes:
            self._reader.fail(f"a name whose code stands behind '{feature.name}', as in '// codes = FAST 1'", start)
        return Condition(feature.name, operator, (feature.codes[label],), (label,))

    def _symbol(self) -> str:
        self._reader.skip()
        start = self._reader.at
        symbol = self._reader.word()
        if symbol is not None and symbol not in self._features and symbol in self._parameters - RESERVED:
            declared = next((feature for feature in self._features.values() if feature.name == symbol), None)
            self._features[symbol] = declared or _FeatureDeclaration(symbol, None)
        return symbol if symbol in self._features else self._reader.fail("a feature that is declared above", start)

    def _operand(self) -> str:
        """Take a feature and return its name."""
        return self._features[self._symbol()].name
