"""Whose turn it is: points of a workload that share the time of whole runs, as long as they are open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from perfdiff.records.schema import Point


@dataclass(slots=True)
class Turns:
    """Points with the pairs of runs that each had, and the seconds that those took.

    The open point that had least time is next: what is over in milliseconds is run more often than what takes seconds. Pairs that are
    begun and not over, as several machines have them, count as long as their point's others.
    """

    points: Sequence[Point]
    pairs: dict[int, int] = field(init=False)
    _begun: dict[int, int] = field(init=False)
    _spent_s: dict[int, float] = field(init=False)
    _closed: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.pairs = {point.id: 0 for point in self.points}
        self._begun = {point.id: 0 for point in self.points}
        self._spent_s = {point.id: 0.0 for point in self.points}

    @property
    def open(self) -> tuple[Point, ...]:
        """Return the points that are not closed."""
        return tuple(point for point in self.points if point.id not in self._closed)

    @property
    def next(self) -> Point:
        """Return the open point that had least time; the first one of those that had equally much."""
        return min(self.open, key=self._expected)

    def next_short_of(self, pairs: int) -> Point:
        """Return the open point that had least time of those with fewer `pairs`, or of all: where time is over, the others need none."""
        return min(self.open, key=lambda point: (self._begun[point.id] >= pairs, *self._expected(point)))

    def soonest(self, points: Sequence[Point], pairs: int) -> Point | None:
        """Return the open point that takes the least time to reach a number of `pairs`; None if all have reached it."""
        lacking = [point for point in points if point in self.open and self._begun[point.id] < pairs]
        return min(lacking, key=lambda point: (pairs - self._begun[point.id]) * self.expected_s(point), default=None)

    def cheapest_short_of(self, pairs: int) -> tuple[Point, int]:
        """Return a workload's point with the shortest runs, and how many pairs its points together lack if each is to have `pairs`.

        The workload is the one that has them soonest of those that lack some.
        """
        cheapest: dict[str, Point] = {}
        lacking: dict[str, int] = {}
        for point in self.points:
            name = point.workload
            cheapest[name] = min(cheapest.get(name, point), point, key=self.mean_s)
            lacking[name] = lacking.get(name, pairs) - self.pairs[point.id]
        name = min(cheapest, key=lambda name: (lacking[name] <= 0, lacking[name] * self.mean_s(cheapest[name])))
        return cheapest[name], lacking[name]

    @property
    def longest(self) -> Point:
        """Return the point whose pairs took longest; those that had none take no time that is known."""
        return max(self.points, key=self.mean_s)

    def mean_s(self, point: Point) -> float:
        """Return how many seconds a pair of a point took on average, 0 where it had none."""
        return self._spent_s[point.id] / max(self.pairs[point.id], 1)

    def expected_s(self, point: Point) -> float:
        """Return how many seconds a pair of a point should take: as long as it took, or as those of points that were run, 0 of none."""
        if self.pairs[point.id]:
            return self.mean_s(point)
        return sum(self._spent_s.values()) / max(sum(self.pairs.values()), 1)

    @property
    def fewest(self) -> int:
        """Return how many pairs every open point had at least."""
        return min((self.pairs[point.id] for point in self.open), default=0)

    def begin(self, point: Point) -> int:
        """Return how many pairs of a point were begun before, and count one more."""
        self._begun[point.id] += 1
        return self._begun[point.id] - 1

    def _expected(self, point: Point) -> tuple[float, int]:
        """Return the seconds of a point's pairs, also of those that are not over, and how many are not."""
        pairs, spent_s = self.pairs[point.id], self._spent_s[point.id]
        open_ = self._begun[point.id] - pairs
        return spent_s + (open_ * spent_s / pairs if pairs else 0.0), open_

    def took(self, point: Point, seconds: float) -> None:
        """Count one pair of a point that is over, and the time it took."""
        self.pairs[point.id] += 1
        self._spent_s[point.id] += seconds

    def close(self, *points: Point) -> None:
        """Let points have no more turns."""
        self._closed.update(point.id for point in points)

    def open_again(self, *points: Point) -> None:
        """Let points have turns again."""
        self._closed -= {point.id for point in points}

    def missing_s(self, needed: Mapping[int, int]) -> float:
        """Return how long the open points that were run would take to have as many pairs as are `needed` of each, by its id."""
        missing = {point.id: max(0, needed[point.id] - self.pairs[point.id]) for point in self.open if self.pairs[point.id]}
        return sum(more * self._spent_s[point] / self.pairs[point] for point, more in missing.items() if more)
