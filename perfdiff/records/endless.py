"""Cases of suites that end on base, and do not on head within many times as long."""

from __future__ import annotations

from dataclasses import dataclass

# A run of head that was given so many times as long as base's run takes: a busy machine, a cold cache or a turbo clock make a factor of a
# few, and the listing has given the same case up before.
LEAST_RATIO = 10.0


@dataclass(frozen=True, slots=True)
class EndlessCase:
    """A case, with its point, whose run takes base `base_s` seconds, and was ended on head after `limit_s`."""

    name: str
    base_s: float
    limit_s: float

    @property
    def ratio(self) -> float:
        """Return by which factor head is slower at least."""
        return self.limit_s / self.base_s

    @property
    def tells(self) -> bool:
        """Return whether the limit is so far beyond what base takes that chance makes no such difference."""
        return self.limit_s >= LEAST_RATIO * self.base_s
