"""How long pairs of whole runs go on: by their budget, by what is still open, and by what is slower already."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from perfdiff.config import BUDGETS
from perfdiff.statistics.pairs import FEWEST_PAIRS, FIRST_LOOK

# Where head is slower by far, pairs of other points go on for as long again as it took to see that, for so many seconds at least: whoever
# has the answer waits for the rest no longer than for the answer.
AFTERWARDS_S = 5.0


@dataclass(slots=True)
class Patience:
    """Ends pairs of whole runs after `budget_s`, or after as much again at most where that will decide what is open.

    Long runs go on until there was a look at all points, if that takes no more than `first_look_s` in all. Once a point is slower, the
    others get just the pairs without which nothing can be said of them, within the budget, and where it is slower by far within
    `AFTERWARDS_S`, or none at all where that is what was asked for. Seconds count from when this was made.
    """

    budget_s: float
    first_look_s: float = 0.0
    ends_when_slower: bool = False
    is_over: bool = False
    _limit_s: float = field(init=False)
    _started: float = field(init=False)
    _is_slower: bool = False

    def __post_init__(self) -> None:
        self._limit_s, self._started = self.budget_s, time.monotonic()

    @property
    def wants_fewest(self) -> bool:
        """Return whether only points with too few pairs are still run."""
        return self._is_slower or self._spent_s > self._limit_s

    def fewest(self, look_s: float) -> int:
        """Return how many pairs each point gets even where time is over, if all have as many as a look needs in `look_s` from now."""
        is_in_time = not self._is_slower and self._spent_s + look_s <= self.first_look_s
        return FIRST_LOOK if is_in_time else FEWEST_PAIRS

    @property
    def _spent_s(self) -> float:
        return time.monotonic() - self._started

    def saw_slower(self) -> None:
        """Take note that a point is slower: what the answer will be is known."""
        self._is_slower = True

    def saw_slower_by_far(self) -> None:
        """Take note that a point is slower beyond doubt, and by more than few pairs can be wrong by."""
        spent_s = self._spent_s
        self._limit_s = min(self._limit_s, spent_s + max(spent_s, AFTERWARDS_S))
        self.saw_slower()

    def decide(self, has_too_few: bool, missing_s: Callable[[], float]) -> None:
        """Decide after a pair whether to go on: some point `has_too_few`, and the open ones need `missing_s` more, 0 if none is enough."""
        if self._is_slower:
            self.is_over = self.ends_when_slower or not has_too_few or self._spent_s > self._limit_s
        elif self._spent_s > self._limit_s and not has_too_few:
            spent_s, needed_s = self._spent_s, missing_s()
            if 0 < needed_s <= BUDGETS * self.budget_s - spent_s:
                self._limit_s = spent_s + needed_s
            else:
                self.is_over = True
