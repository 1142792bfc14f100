"""Until when a comparison measures, and what ends that early: its time is over, or a signal came."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum

# Of the time, what is left for the analysis and the reports: loading and running the analysis of a small comparison takes 1 to 2 s on a
# busy machine, and a promise of ±10 % leaves room for a longer one.
LEAST_RESERVE_S, RESERVE_SHARE = 2.0, 0.05
MOST_RESERVED = 0.5  # of a time that is shorter than all this
_AT_ONCE_S = 1e-6  # a timer of 0 is none


class Ending(StrEnum):
    """What ends a measurement before it is complete."""

    TIME = "time"
    INTERRUPTED = "interrupted"
    TERMINATED = "terminated"


class CutShortError(BaseException):
    """Measuring ends where it stands; whoever holds evidence catches this, and tells what is known so far."""

    def __init__(self, ending: Ending) -> None:
        super().__init__(ending)
        self.ending = ending


@dataclass(slots=True)
class Deadline:
    """How long a comparison may take in all, from when this is made: `time_s`, which may be set later; None: as long as it needs.

    `ending` is what ended measuring, `is_short` whether a stage was left out or ended for want of time: then evidence is missing.
    """

    time_s: float | None = None
    clock: Callable[[], float] = time.monotonic
    ending: Ending | None = None
    is_short: bool = False
    _started: float = field(init=False)
    _is_measuring: bool = False
    _has_measured: bool = False

    def __post_init__(self) -> None:
        self._started = self.clock()

    def __reduce__(self) -> tuple[type[Deadline], tuple[()]]:
        """Return how to make one for another process: its clock is another, and whoever sent it keeps the time."""
        return Deadline, ()

    @property
    def is_limited(self) -> bool:
        """Return whether somebody waits for the answer."""
        return self.time_s is not None

    @property
    def spent_s(self) -> float:
        """Return how many seconds the comparison has taken so far."""
        return self.clock() - self._started

    @property
    def remaining_s(self) -> float:
        """Return how many seconds are left until the answer is due, the analysis included; infinity where nobody waits for it."""
        return math.inf if self.time_s is None else self._started + self.time_s - self.clock()

    @property
    def left_s(self) -> float:
        """Return how many seconds measuring may still take."""
        if self.time_s is None:
            return math.inf
        reserve_s = max(LEAST_RESERVE_S, RESERVE_SHARE * self.time_s)
        return self.remaining_s - min(reserve_s, MOST_RESERVED * self.time_s)

    @property
    def is_cut(self) -> bool:
        """Return whether measuring was not completed."""
        return self.is_short or self.ending is not None

    @property
    def ended_by(self) -> Ending | None:
        """Return what ended measuring before it was complete, if anything did; what was left out was so for want of time."""
        return self.ending or (Ending.TIME if self.is_short else None)

    @property
    def is_answerable(self) -> bool:
        """Return whether measuring has begun, so that there may be an answer if it ends here."""
        return self._is_measuring or self._has_measured

    def allows(self, seconds: float) -> bool:
        """Return whether a step of some seconds would end in time."""
        is_in_time = seconds <= self.left_s
        self.is_short = self.is_short or not is_in_time
        return is_in_time

    def end(self, ending: Ending) -> None:
        """End measuring where it stands by CutShortError, for a signal's handler; where it has ended already, the answer is under way."""
        if self._is_measuring:
            self._is_measuring, self.ending = False, ending
            raise CutShortError(ending)

    def reached(self) -> None:
        """Stop watching the time, as measuring has ended: storing and reporting are not cut short."""
        self._is_measuring, self._has_measured = False, True

    @contextmanager
    def enforced(self) -> Iterator[None]:
        """Let measuring be ended for the length of a block, and end it by CutShortError when its time is over.

        That is raised by a signal's handler, in the main thread alone, so that it ends whatever is waited for or computed.
        """
        self._is_measuring = True
        has_timer = self.time_s is not None and threading.current_thread() is threading.main_thread()
        handler = signal.getsignal(signal.SIGALRM)
        try:
            if has_timer:
                signal.signal(signal.SIGALRM, lambda *_: self.end(Ending.TIME))
                signal.setitimer(signal.ITIMER_REAL, max(self.left_s, _AT_ONCE_S))
            yield
        finally:
            self.reached()
            if has_timer:
                signal.setitimer(signal.ITIMER_REAL, 0)
                signal.signal(signal.SIGALRM, handler)
