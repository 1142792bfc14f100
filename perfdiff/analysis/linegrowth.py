"""Lines that run more often: a value of the findings."""

from __future__ import annotations

from dataclasses import dataclass

from perfdiff.records.schema import FunctionInfo


@dataclass(frozen=True, slots=True)
class LineGrowth:
    """A line of head that runs more often: `base` and `head` times in one run of the workload `point` where most is added.

    `base_says` and `head_says` tell how that grows over `feature` ("n", "0.5·n²"), "" where the points do not tell; a line `is_new` where
    base has no such line. `is_steeper`: it grows by a higher power than before, or, a new one, than what its function did before.
    """

    function: str
    file: str
    line: int
    text: str
    point: str
    base: float
    head: float
    feature: str | None = None
    base_says: str = ""
    head_says: str = ""
    is_new: bool = False
    is_steeper: bool = False

    def is_of(self, info: FunctionInfo) -> bool:
        """Return whether it is code of a function, not of one inside it."""
        source = info.head
        return source is not None and self.file == source.file and self.line in source.code
