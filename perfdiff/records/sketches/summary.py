"""All that is kept of the calls of one function on one side, however many there are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from perfdiff.records.schema import SampleTable
from perfdiff.records.sketches.moments import Moments
from perfdiff.records.sketches.quantiles import EMPTY, Quantiles
from perfdiff.records.sketches.reservoir import Reservoir

# Calls of one function and side that models learn from at most: coefficients change by less than runs differ with more.
RECORDS = 10_000


@dataclass(frozen=True, slots=True)
class Summary:
    """Exact sums by run, quantiles of each metric over all runs, and chosen calls of each run."""

    reservoir: Reservoir
    moments: Moments = field(default_factory=Moments)
    quantiles: Mapping[str, Quantiles] = field(default_factory=dict)

    def added(self, table: SampleTable) -> Summary:
        """Return the summary after one more part of the calls."""
        return Summary(
            self.reservoir.added(table),
            self.moments.merged(Moments.of_table(table)),
            _merged(self.quantiles, {name: Quantiles.of(values, table.weight) for name, values in table.metrics.items()}),
        )

    def merged(self, other: Summary) -> Summary:
        """Return the summary of the calls of both."""
        return Summary(self.reservoir.merged(other.reservoir), self.moments.merged(other.moments), _merged(self.quantiles, other.quantiles))


def summary(parts: Iterable[SampleTable], runs: int, *, seed: int = 0, records: int = RECORDS) -> Summary:
    """Return the summary of the parts of a function's calls on one side, which has so many runs; one part is in memory at a time."""
    found = Summary(Reservoir(quota(runs, records), seed))
    for part in parts:
        found = found.added(part)
    return found


def quota(runs: int, records: int = RECORDS) -> int:
    """Return how many calls of each of so many runs are kept."""
    return max(1, records // max(runs, 1))


def _merged(first: Mapping[str, Quantiles], second: Mapping[str, Quantiles]) -> dict[str, Quantiles]:
    return {name: first.get(name, EMPTY).merged(second.get(name, EMPTY)) for name in dict.fromkeys((*first, *second))}
