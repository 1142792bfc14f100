"""How long a survey may take: with a probe in each function runs take longer the more calls they make, which nobody knows before.

Shorter runs tell how much longer that is at longer points of the same workload, which call the same functions as a rule.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from perfdiff import units
from perfdiff.records.schema import Note, Point

# So many plain runs of each point and side may a survey take: a run that counts and two that are timed, each of three times a plain one's
# time, which most surveys stay below by far …
MOST_PLAIN_RUNS = 10.0
LEAST_S = 30.0  # … or so many seconds, where that is more: half of them wait for a survey anyway (docs/studies/builds.md)
TALLY_SHARE = 0.5  # of that, for runs that only count calls
_SHOWN = 3


@dataclass(slots=True)
class SurveyTime:
    """What is left of a survey's `limit_s` for its `points`, shortest first.

    `plain_s` is what plain runs of all sides take by point, `slower` are those where head is.
    """

    points: Sequence[Point]
    plain_s: Mapping[int, float]
    slower: Collection[int]
    limit_s: float
    _spent_s: float = 0.0
    _slowdown: float = 1.0
    _tallied_s: dict[int, float] = field(default_factory=dict)

    @classmethod
    def of(cls, points: Sequence[Point], plain_s: Mapping[int, float], slower: Collection[int]) -> SurveyTime:
        """Return the time of a survey of points that take so long."""
        ordered = sorted(points, key=lambda point: plain_s[point.id])
        return cls(ordered, plain_s, slower, max(LEAST_S, MOST_PLAIN_RUNS * sum(plain_s.values())))

    def tallied(self, point: Point, seconds: float) -> None:
        """Note what runs that count calls took at a point."""
        self._tallied_s[point.id] = seconds
        self._spent_s += seconds
        if self.plain_s[point.id]:  # that of the longest point counts: what starting a process takes, shorter ones exaggerate
            self._slowdown = seconds / self.plain_s[point.id]

    def may_tally(self, point: Point, others: Sequence[Point]) -> bool:
        """Return whether there is time to count calls at a point, where that was done at `others`, or it is needed in any case."""
        expected_s = self._slowdown * self.plain_s[point.id]
        return self._is_needed(point, others) or self._spent_s + expected_s <= TALLY_SHARE * self.limit_s

    def timed(self, points: Sequence[Point], rounds: Mapping[int, int]) -> list[Point]:
        """Return the points, in their order, at which there is time to time calls in so many `rounds`: the shortest, and those needed."""
        chosen: list[Point] = []
        left_s = self.limit_s - self._spent_s
        for point in (point for point in self.points if point in points):
            needed_s = rounds[point.id] * self._tallied_s[point.id]
            if self._is_needed(point, chosen) or needed_s <= left_s:
                chosen.append(point)
                left_s -= needed_s
        return [point for point in points if point in chosen]

    def _is_needed(self, point: Point, others: Sequence[Point]) -> bool:
        """Return whether none of the others stands for a point: of its workload, and one where head is slower if it is so there."""
        alike = [other for other in others if other.workload == point.workload]
        return not alike or (point.id in self.slower and not any(other.id in self.slower for other in alike))


def note(left_out: Sequence[Point], limit_s: float) -> tuple[Note, ...]:
    """Tell which points the survey left out."""
    if not left_out:
        return ()
    where = units.listed([point.label for point in left_out], _SHOWN)
    text = (
        f"functions were chosen without runs at {where}: with a probe in each function these would take longer than "
        f"{units.duration(limit_s * 1e9)}; what is called there alone has no probe; --thorough asks them, too"
    )
    return (Note("survey-bounded", text),)
