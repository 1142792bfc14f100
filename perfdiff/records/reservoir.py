"""A bounded choice of a table's calls, run by run, that stands for all of them, in whatever parts and order they come."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from perfdiff.errors import RecordingError
from perfdiff.records.arrays import Bools, Floats, Ints
from perfdiff.records.exact import exact_sums, shares
from perfdiff.records.schema import Feature, SampleTable

# Calls of one function and side that models learn from at most: coefficients change by less than runs differ with more.
ROWS = 10_000
_PER_ROW = ("values", "executed", "taken", "run", "point", "thread", "call", "weight")
# Odd numbers of splitmix64 (Steele, Lea and Flood 2014), by which all 64 bits depend on all.
_STEP, _FIRST, _SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


@dataclass(frozen=True, slots=True)
class Reservoir:
    """At most `size` calls of each run, the same ones whatever order and parts the calls came in.

    A call's key follows from the seed and from which call of which run it is: an exponential waiting time at a rate of the calls it
    stands for. The smallest keys of a run stay, which is a sample without replacement, each call drawn by its weight (Efraimidis and
    Spirakis 2006); where all weights are equal every choice of calls is as likely. `offered` and `weight` are, by run, how many rows
    there were and the exact sum of their weights (`exact`).
    """

    size: int
    seed: int
    chosen: SampleTable | None = None
    keys: Floats = field(default_factory=lambda: np.zeros(0))
    offered: Mapping[int, int] = field(default_factory=dict)
    weight: Mapping[int, int] = field(default_factory=dict)

    def added(self, table: SampleTable, seed: int | None = None) -> Reservoir:
        """Return the reservoir after further calls of the function were offered; raise RecordingError where their columns differ.

        Calls that were numbered apart from the others of their run have a `seed` of their own.
        """
        if not len(table):
            return self
        keys = _keys(table, self.seed if seed is None else seed)
        runs, place, rows = np.unique(table.run, return_inverse=True, return_counts=True)
        weight = exact_sums(table.weight, place, len(runs))
        some = np.flatnonzero(self._may_stay(keys, runs, place, rows))
        other = Reservoir(
            self.size,
            self.seed,
            table.rows(some),
            keys[some],
            dict(zip(runs.tolist(), rows.tolist(), strict=True)),
            dict(zip(runs.tolist(), weight, strict=True)),
        )
        return self.merged(other)

    def merged(self, other: Reservoir) -> Reservoir:
        """Return the reservoir of what was offered to both, which have the size and the seed in common."""
        if self.chosen is None or other.chosen is None:
            both, keys = other.chosen or self.chosen, other.keys if self.chosen is None else self.keys
        else:
            both, keys = joined(self.chosen, other.chosen), np.concatenate([self.keys, other.keys])
        if both is None:
            return self
        cost = both.metrics[min(both.metrics)]  # tells calls apart whose processes gave them the same numbers
        order = np.lexsort((cost, both.call, both.thread, keys, both.run))
        runs = both.run[order]
        first = np.searchsorted(runs, runs, side="left")
        order = order[np.arange(len(order)) - first < self.size]
        order = order[np.lexsort((cost[order], both.call[order], both.thread[order], both.run[order]))]
        return Reservoir(
            self.size,
            self.seed,
            both.rows(order),
            keys[order],
            _added(self.offered, other.offered),
            _added(self.weight, other.weight),
        )

    def table(self) -> SampleTable | None:
        """Return the chosen calls, of each run as its calls are numbered; of a run that lost some, all stand for equally many.

        Their weights add up to those of all calls that were offered, exactly.
        """
        if self.chosen is None:
            return None
        runs, first, rows = np.unique(self.chosen.run, return_index=True, return_counts=True)
        weight = self.chosen.weight.copy()
        for run, start, count in zip(runs.tolist(), first.tolist(), rows.tolist(), strict=True):
            if count < self.offered[run]:
                weight[start : start + count] = shares(self.weight[run], count)
        return replace(self.chosen, weight=weight)

    def _may_stay(self, keys: Floats, runs: Ints, place: Ints, rows: Ints) -> Bools:
        """Return which of the calls (n,) are below the largest key that their run keeps now, or among the smallest of theirs."""
        bounds = np.full(len(runs), np.inf)
        if self.chosen is not None:
            chosen_runs = self.chosen.run
            for at, run in enumerate(runs.tolist()):
                low, high = np.searchsorted(chosen_runs, [run, run + 1])
                if high - low >= self.size:
                    bounds[at] = self.keys[low:high].max()
        many = np.flatnonzero((rows > 4 * self.size) & ~np.isfinite(bounds))
        if len(many):
            order = np.argsort(place, kind="stable")
            ends = np.cumsum(rows)
            for at in many.tolist():
                own = keys[order[ends[at] - rows[at] : ends[at]]]
                bounds[at] = np.partition(own, self.size - 1)[self.size - 1]
        stays: Bools = keys <= bounds[place]
        return stays


def quota(runs: int, rows: int = ROWS) -> int:
    """Return how many calls are kept of each run, at least one, if all runs together keep `rows`."""
    return max(1, rows // max(runs, 1))


def joined(first: SampleTable, *others: SampleTable) -> SampleTable:
    """Return the rows of tables of one function and side, one after the other; a metric that some lack is absent there.

    Raise RecordingError where their features or branches differ.
    """
    tables = (first, *others)
    for other in others:
        same = [(feature.name, feature.category) for feature in first.features] == [
            (feature.name, feature.category) for feature in other.features
        ]
        if not same or first.branches != other.branches:
            raise RecordingError(
                f"parts of the calls of function {first.function} in {first.side} have different columns; record them by one version of"
                " perfdiff and of the program",
                slug="parts-differ",
            )
    names = dict.fromkeys(name for table in tables for name in table.metrics)
    columns: dict[str, Any] = {name: np.concatenate([getattr(table, name) for table in tables]) for name in _PER_ROW}
    return replace(
        first,
        features=tuple(_feature(named) for named in zip(*(table.features for table in tables), strict=True)),
        metrics={name: np.concatenate([_metric(table, name) for table in tables]) for name in names},
        resolution_ns=max(table.resolution_ns for table in tables),
        **columns,
    )


def _metric(table: SampleTable, name: str) -> Floats:
    return table.metrics[name] if name in table.metrics else np.full(len(table), np.nan)


def _feature(named: tuple[Feature, ...]) -> Feature:
    """Return a feature with the labels that any part has."""
    first = named[0]
    return replace(first, labels={code: name for feature in named for code, name in feature.labels.items()}) if first.category else first


def _added(first: Mapping[int, int], second: Mapping[int, int]) -> dict[int, int]:
    return {key: first.get(key, 0) + second.get(key, 0) for key in [*first, *(key for key in second if key not in first)]}


def _keys(table: SampleTable, seed: int) -> Floats:
    """Return the keys (n,) of calls: -ln u / weight, with u in (0, 1) by a hash of the seed, run, thread and call."""
    hashed = np.full(len(table), seed & 0xFFFFFFFFFFFFFFFF, dtype=np.uint64)
    for column in (table.run, table.thread, table.call):
        hashed = _mixed(hashed + column.view(np.uint64) * _STEP + _STEP)
    even = (hashed >> np.uint64(11)).astype(np.float64) * 2.0**-53 + 2.0**-54
    with np.errstate(divide="ignore"):
        return np.asarray(-np.log(even) / table.weight)


def _mixed(bits: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    bits = (bits ^ (bits >> np.uint64(30))) * _FIRST
    bits = (bits ^ (bits >> np.uint64(27))) * _SECOND
    return bits ^ (bits >> np.uint64(31))
