"""Exact sums per run: how many calls, what they cost in all, their squares, the least and the most."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from perfdiff.records.schema import Floats, SampleTable
from perfdiff.records.sketches.exact import exact_sums, rounded


@dataclass(frozen=True, slots=True)
class Moment:
    """A metric of a run's calls where it is present: `rows` of them that stand for `weight` calls, and sums of cost times weight.

    Sums are whole numbers of 2⁻¹⁰⁷⁴ (`sketches.exact`), so that they are the same however the rows were dealt to parts.
    """

    rows: int
    weight: int
    total: int
    squares: int
    least: float
    most: float

    def merged(self, other: Moment) -> Moment:
        """Return the moment of the calls of both."""
        return Moment(
            self.rows + other.rows,
            self.weight + other.weight,
            self.total + other.total,
            self.squares + other.squares,
            min(self.least, other.least),
            max(self.most, other.most),
        )

    @property
    def calls(self) -> float:
        """Return how many calls the rows stand for."""
        return rounded(self.weight)

    @property
    def sum(self) -> float:
        """Return the sum over all calls."""
        return rounded(self.total)

    @property
    def mean(self) -> float:
        """Return the mean of a call, NaN where there is none."""
        return self.total / self.weight if self.weight else float("nan")

    @property
    def variance(self) -> float:
        """Return the variance of calls about their mean, NaN where there is none; sums do not cancel, squares are floats.

        So it is known to one part in 10¹⁵ of the squared mean.
        """
        if not self.weight:
            return float("nan")
        return max(0.0, (self.squares * self.weight - self.total**2) / self.weight**2)


@dataclass(frozen=True, slots=True)
class Moments:
    """The moments of a function's calls by run and metric; `rows` and `weight` of each run, whatever is present in them."""

    rows: Mapping[int, int] = field(default_factory=dict)
    weight: Mapping[int, int] = field(default_factory=dict)
    of: Mapping[tuple[int, str], Moment] = field(default_factory=dict)

    @classmethod
    def of_table(cls, table: SampleTable) -> Moments:
        """Return the moments of a table's rows."""
        runs, place, rows = np.unique(table.run, return_inverse=True, return_counts=True)
        weight = exact_sums(table.weight, place, len(runs))
        found = {}
        for name, values in table.metrics.items():
            for run, moment in zip(runs.tolist(), _moments(values, table.weight, place, len(runs)), strict=True):
                if moment.rows:
                    found[run, name] = moment
        return cls(dict(zip(runs.tolist(), rows.tolist(), strict=True)), dict(zip(runs.tolist(), weight, strict=True)), found)

    def merged(self, other: Moments) -> Moments:
        """Return the moments of the calls of both."""
        found = dict(self.of)
        for key, moment in other.of.items():
            found[key] = found[key].merged(moment) if key in found else moment
        return Moments(_added(self.rows, other.rows), _added(self.weight, other.weight), found)


def _moments(values: Floats, weight: Floats, place: np.ndarray[tuple[int], np.dtype[np.int64]], count: int) -> list[Moment]:
    present = np.isfinite(values)
    if not present.all():
        values, weight, place = values[present], weight[present], place[present]
    ones = bool((weight == 1.0).all())
    rows = np.bincount(place, minlength=count)
    cost = values if ones else values * weight
    least, most = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(least, place, values)
    np.maximum.at(most, place, values)
    sums = (exact_sums(each, place, count) for each in (weight, cost, cost * values))
    columns = zip(rows.tolist(), *sums, least.tolist(), most.tolist(), strict=True)
    return [Moment(*row) for row in columns]


def _added(first: Mapping[int, int], second: Mapping[int, int]) -> dict[int, int]:
    return {key: first.get(key, 0) + second.get(key, 0) for key in [*first, *(key for key in second if key not in first)]}
