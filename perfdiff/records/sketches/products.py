"""Cross products of candidate terms per run: least squares over all calls, with the run as the unit, without the calls.

For columns X (n, k), cost y and weights w of a run's calls, XᵀWX, XᵀWy, yᵀWy and Σw are all that least squares and its errors clustered by
run need. They are floats, which are added in the order of parts: merged in another order they agree to some 1e-13, not to the last digit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from perfdiff.records.schema import Floats, SampleTable

Term = tuple[str, str]  # a feature and what is done to it: x, log, xlogx, x2 or x3; of the intercept ("", "1")

INTERCEPT: Term = ("", "1")
SHAPES = ("x", "log", "xlogx", "x2", "x3")


@dataclass(frozen=True, slots=True)
class Solution:
    """Coefficients (k,) of terms over all calls, their covariance (k, k) clustered by run, and the share of variance explained."""

    terms: tuple[Term, ...]
    coefficients: Floats
    covariance: Floats
    r2: float

    @property
    def errors(self) -> Floats:
        """Return the standard error of each coefficient (k,)."""
        return np.asarray(np.sqrt(np.maximum(np.diag(self.covariance), 0.0)))


@dataclass(frozen=True, slots=True)
class Products:
    """XᵀWX (k + 1, k + 1) by run, whose last row and column are the cost's; `terms` name the others."""

    terms: tuple[Term, ...]
    of: Mapping[int, Floats] = field(default_factory=dict)

    @classmethod
    def of_table(cls, table: SampleTable, metric: str, transformed: Callable[[str, Floats], Floats]) -> Products:
        """Return the products of a table's rows where the metric and all numeric features are present.

        `transformed(shape, column)` is what annotations make of a feature.
        """
        names = [(place, each.name) for place, each in enumerate(table.features) if not each.category]
        terms = (INTERCEPT, *((name, shape) for _, name in names for shape in SHAPES))
        cost = table.metrics[metric]
        values = table.values[:, [place for place, _ in names]]
        present = np.flatnonzero(np.isfinite(cost) & np.isfinite(values).all(axis=1))
        order = present[np.argsort(table.run[present], kind="stable")]
        runs, first = np.unique(table.run[order], return_index=True)
        columns = [np.ones(len(order))]
        for column in values[order].T:
            columns += [transformed(shape, column) for shape in SHAPES]
        rows = np.column_stack([*columns, cost[order]])
        weight = table.weight[order]
        found = {}
        for run, start, end in zip(runs.tolist(), first.tolist(), [*first[1:].tolist(), len(order)], strict=True):
            own = rows[start:end]
            found[run] = own.T @ (own * weight[start:end, None])
        return cls(terms, found)

    def merged(self, other: Products) -> Products:
        """Return the products of the calls of both, which have the same terms."""
        found = dict(self.of)
        for run, matrix in other.of.items():
            found[run] = found[run] + matrix if run in found else matrix
        return Products(self.terms, found)

    def solve(self, terms: Sequence[Term]) -> Solution:
        """Return the least squares of cost on some terms over all calls of all runs.

        Errors are clustered by run: A⁻¹(Σ sᵣsᵣᵀ)A⁻¹ · R/(R-1) with the scores sᵣ = XᵣᵀWᵣ(y - Xβ) (Liang and Zeger 1986).
        """
        places = [self.terms.index(term) for term in terms]
        parts = [self.of[run] for run in sorted(self.of)]
        whole = np.sum(parts, axis=0)
        scale = np.sqrt(np.maximum(np.diag(whole)[places], np.finfo(float).tiny))  # columns of x³ and 1 stand beside each other
        inverse = np.linalg.pinv(whole[np.ix_(places, places)] / np.outer(scale, scale), hermitian=True)
        solution = inverse @ (whole[places, -1] / scale)
        scores = [(part[places, -1] - part[np.ix_(places, places)] @ (solution / scale)) / scale for part in parts]
        spread = np.sum([np.outer(score, score) for score in scores], axis=0)
        runs = len(parts)
        covariance = inverse @ spread @ inverse * (runs / max(runs - 1, 1))
        return Solution(tuple(terms), solution / scale, covariance / np.outer(scale, scale), _explained(whole, places, solution / scale))


def _explained(whole: Floats, places: Sequence[int], solution: Floats) -> float:
    """Return the share of the variance about the mean that a solution explains."""
    about = whole[-1, -1] - whole[0, -1] ** 2 / whole[0, 0]
    left = whole[-1, -1] - 2 * solution @ whole[places, -1] + solution @ whole[np.ix_(places, places)] @ solution
    return float(1 - left / about) if about > 0 else 0.0
