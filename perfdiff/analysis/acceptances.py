"""Known costs that people accepted: what the file of a project says of them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from perfdiff.records.schema import FunctionInfo


@dataclass(frozen=True, slots=True)
class Acceptance:
    """A known cost: head's `ratio` over base of one metric of a function, `low` to `high`, was accepted for a `reason`.

    `base` and `head` name the revisions it was seen between. It holds up to and including the day `until`, for ever where that is None.
    """

    function: str
    file: str
    metric: str
    ratio: float
    low: float
    high: float
    reason: str
    base: str = ""
    head: str = ""
    day: date | None = None
    until: date | None = None

    def holds(self, today: date) -> bool:
        """Return whether it has not expired."""
        return self.until is None or today <= self.until

    def is_of(self, info: FunctionInfo) -> bool:
        """Return whether it speaks of a function, whose parameters may be left out."""
        return self.file in ("", info.file) and self.function in (info.name, info.name.partition("(")[0])
