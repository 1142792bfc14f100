"""The part of the language that tells a cost: `Norm(400 + 12*n, 30)`, `500 + 20*n + Exp(1/3000)`, `64 + 4032*Binom(1, 0.05)`."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable
from decimal import Decimal

from perfdiff.models.annotation import Factors, Term
from perfdiff.models.distribution import Binomial, Distribution, Exponential, Normal
from perfdiff.models.notation import LOGARITHMS, decimal
from perfdiff.models.reader import Reader

_UNSIGNED = re.compile(r"[.\d]")
_INVERSE = re.compile(r"1\s*/")
_POWERS = {"2": "x2", "3": "x3"}
# Logarithms by what one of base 2 is multiplied with. `log` is Freud's, whose source takes it to base 2 (`log2` in its regressions).
_FUNCTION = re.compile(rf"({'|'.join(LOGARITHMS)})\s*\(")
_OF_BASE_2 = {"log": decimal(1.0), "log2": decimal(1.0), "ln": decimal(math.log(2)), "log10": decimal(math.log10(2))}
_Terms = list[tuple[Decimal, Factors]]
_Tail = tuple[str, Decimal] | None  # `Exp` or `Binom` at the end of a sum, with the factor before it


class CostReader:
    """Reads costs; `operand` takes a feature and returns its name, `measure` takes an amount of the metric."""

    def __init__(self, reader: Reader, operand: Callable[[], str], measure: Callable[[], Decimal]) -> None:
        self._reader = reader
        self._operand = operand
        self._measure = measure

    def cost(self) -> tuple[tuple[Term, ...], float, Distribution | None]:
        """Take the distribution of a cost: its expectation, standard deviation, and what else it is than `Norm` of these."""
        self._reader.skip()
        start = self._reader.at
        terms, sigma, distribution = self._cost()
        if not all(math.isfinite(value) for value in (sigma, *(term.coefficient for term in terms))):
            self._reader.fail("finite numbers", start)
        return terms, sigma, distribution

    def _cost(self) -> tuple[tuple[Term, ...], float, Distribution | None]:
        if self._reader.word("Norm"):
            self._reader.need("(")
            terms = self._closed_sum()
            self._reader.need(",")
            sigma, relative = self._spread()
            self._reader.need(")")
            return _terms(terms), sigma, Normal(sigma, relative) if relative else None
        self._reader.skip()
        start = self._reader.at
        lower, tail = self._sum()
        match tail:
            case ("Exp", factor) if factor == 1:
                mean = self._mean()
                return _terms(_raised(lower, mean)), float(mean), Exponential(float(mean))
            case ("Binom", step) if not [factors for _, factors in lower if factors]:
                return self._binomial(sum((value for value, _ in lower), Decimal(0)), step)
        return self._reader.fail("'Norm(…)', '… + Exp(…)' or '… + Binom(…)'", start)

    def _spread(self) -> tuple[float, float]:
        """Take `sigma`, `sigma + 5%` or `5%`."""
        first = self._measure()
        if self._reader.take("%"):
            return 0.0, float(first / 100)
        if not self._reader.take("+"):
            return float(first), 0.0
        second = self._reader.decimal()
        self._reader.need("%")
        return float(first), float(second / 100)

    def _mean(self) -> Decimal:
        """Take `(1/mean)` or `(rate)`."""
        self._reader.need("(")
        self._reader.skip()
        start = self._reader.at
        inverse = _INVERSE.match(self._reader.text, self._reader.at)
        self._reader.at = inverse.end() if inverse else self._reader.at
        value = self._measure() if inverse else self._reader.decimal("a rate")
        if float(value) < sys.float_info.min:  # below, its inverse is no float
            self._reader.fail("a rate above 0", start)
        self._reader.need(")")
        return value if inverse else decimal(1 / float(value))

    def _binomial(self, start: Decimal, step: Decimal) -> tuple[tuple[Term, ...], float, Distribution]:
        """Take `(trials, chance)`, or `((expected cost)/chance, chance)`."""
        self._reader.need("(")
        place = self._reader.at
        followed = self._reader.take("(") is not None
        if followed:
            terms = self._closed_sum()
            self._reader.need(")")
            self._reader.need("/")
            divisor = self._reader.decimal()
        else:
            trials = self._reader.natural("the number of trials")
        self._reader.need(",")
        chance = self._reader.checked(lambda value: 0 < value <= 1, "a chance")
        self._reader.need(")")
        if followed:
            if float(divisor) != chance or start != 0 or step != 1:
                self._reader.fail("'Binom((expected cost)/chance, chance)'", place)
            return _terms(terms), 0.0, Binomial(chance)
        if not step:
            self._reader.fail("a step other than 0", place)
        law = Binomial(chance, trials, float(start), float(step))
        return (Term(law.expected),), law.sigma, law

    def _closed_sum(self) -> _Terms:
        terms, tail = self._sum()
        return terms if tail is None else self._reader.fail("a sum of terms")

    def _sum(self) -> tuple[_Terms, _Tail]:
        """Take terms joined by + and -, up to `Exp` or `Binom`."""
        terms: _Terms = []
        sign = self._reader.take("-", "+")
        while True:
            coefficient = Decimal(-1 if sign == "-" else 1)
            factors: list[tuple[str, str]] = []
            while True:
                tail = self._reader.word("Exp", "Binom")
                if tail:
                    return terms, (tail, coefficient if not factors else Decimal(0))
                value = self._factor(factors)
                coefficient *= value
                if not math.isfinite(float(coefficient)):
                    self._reader.fail("a finite product")
                operator = self._reader.take("*", "/")
                while operator == "/":
                    factors.append((self._operand(), "inv"))
                    operator = self._reader.take("*", "/")
                if operator is None:
                    break
            terms.append((coefficient, tuple(factors)))
            sign = self._reader.take("-", "+")
            if sign is None:
                return terms, None

    def _factor(self, factors: list[tuple[str, str]]) -> Decimal:
        """Take a number, which is returned, or a transformed feature, which joins `factors`."""
        self._reader.skip()
        if _UNSIGNED.match(self._reader.text, self._reader.at):
            return self._measure()
        function = self._reader.match(_FUNCTION)
        if function:
            name = self._operand()
            self._reader.need(")")
            if factors and factors[-1] == (name, "x"):
                factors[-1] = (name, "xlogx")
            else:
                factors.append((name, "log"))
            return _OF_BASE_2[function[:-1].rstrip()]
        name = self._operand()
        power = self._reader.need("2", "3") if self._reader.take("^") else ""
        factors.append((name, _POWERS.get(power, "x")))
        return Decimal(1)


def _terms(terms: _Terms) -> tuple[Term, ...]:
    return tuple(Term(float(coefficient), factors) for coefficient, factors in terms)


def _raised(terms: _Terms, mean: Decimal) -> _Terms:
    """Return the terms of the expected cost: those of the lower edge and the mean delay."""
    if all(factors for _, factors in terms):
        return [(mean, ()), *terms]
    return [(value if factors else value + mean, factors) for value, factors in terms]
