"""A cost over inputs, be it timed call by call or counted run by run, in what is asked of it: does it hold, where did it change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, Protocol, TypeVar

from perfdiff.analysis.claims import Claim
from perfdiff.analysis.findings import Ratio
from perfdiff.config import CompareConfig
from perfdiff.models.annotation import Annotation
from perfdiff.models.shift import ExponentShift
from perfdiff.models.trend import Law
from perfdiff.records.schema import Machine, Note, Revision

GROWTH = "growth"  # the metric of costs that are counted and not timed: how often lines run, which is followed by its exponent


class Standing(StrEnum):
    """What became of an assertion."""

    VIOLATED = "violated"
    OPEN = "inconclusive"
    FASTER = "faster"
    LESS = "grows less"
    NEGLIGIBLE = "negligible"  # it may be exceeded, but the function is no material part of any run
    HOLDS = "holds"
    NOT_JUDGED = "not judged"


BETTER = (Standing.FASTER, Standing.LESS)


class _WithStanding(Protocol):
    @property
    def standing(self) -> Standing: ...


AssertionT = TypeVar("AssertionT", bound=_WithStanding)


@dataclass(frozen=True, slots=True)
class CheckedAssertions(Generic[AssertionT]):
    """A revision held against what was saved: annotations of functions, or the trends of the revision `saved`.

    `unannotated` are the functions that have calls and no annotation.
    """

    revision: Revision
    assertions: tuple[AssertionT, ...]
    notes: tuple[Note | Claim, ...]
    config: CompareConfig
    unannotated: tuple[str, ...] = ()
    saved: Revision | None = None

    @property
    def judged(self) -> tuple[AssertionT, ...]:
        """Return the assertions that have an answer, or that more runs or points would give one."""
        return tuple(assertion for assertion in self.assertions if assertion.standing is not Standing.NOT_JUDGED)

    @property
    def verdict(self) -> Standing:
        """Return how the whole stands: violated if any assertion is, not judged if none is, else it holds only if each has an answer."""
        if self.those(Standing.VIOLATED):
            return Standing.VIOLATED
        if not self.judged:
            return Standing.NOT_JUDGED
        return Standing.OPEN if self.those(Standing.OPEN, Standing.NOT_JUDGED) else Standing.HOLDS

    def those(self, *which: Standing) -> tuple[AssertionT, ...]:
        """Return the assertions with one of these standings."""
        return tuple(assertion for assertion in self.assertions if assertion.standing in which)


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """A change point: the cost is another than from the revision `since` on, a timed one at the inputs that `stratum` names, "" for all."""

    change: Ratio | ExponentShift
    since: Revision
    stratum: str = ""

    @property
    def ratio(self) -> Ratio:
        """Return how many times as much calls cost, where they are timed."""
        assert isinstance(self.change, Ratio)
        return self.change

    @property
    def is_rise(self) -> bool:
        """Return whether it costs more, or grows by a higher power."""
        return self.change.exponent > 0 if isinstance(self.change, ExponentShift) else self.change.value > 1


@dataclass(frozen=True, slots=True)
class Cost:
    """One metric of a function in one revision: the law that it follows, and a figure from `low` to `high`.

    Of a timed one the figure is the cost of a call at the history's reference input, as the history's first machine would have it; of a
    counted one the exponent, beside the `count` of a run at the largest input. `broken` says why it could not be held against the revisions
    before.
    """

    law: Annotation | Law
    value: float
    low: float
    high: float
    step: ChangePoint | None = None
    broken: Claim | None = None
    count: float = 0.0

    @property
    def annotation(self) -> Annotation:
        """Return the law of a timed cost."""
        assert isinstance(self.law, Annotation)
        return self.law


@dataclass(frozen=True, slots=True)
class RevisionEntry:
    """A revision: the function's calls in one run of each workload point, and its costs by metric; `reason` says why there are none.

    `calls_before` are those of the revision before on the same `machine`, which has a name where there are several.
    """

    revision: Revision
    calls: float | None = None
    costs: Mapping[str, Cost] = field(default_factory=dict)
    reason: Claim | None = None
    calls_before: float | None = None
    machine: str = ""


@dataclass(frozen=True, slots=True)
class FunctionHistory:
    """A function over revisions, oldest first; `reference` are the inputs that costs are told at.

    Growth is over `feature`, whose largest value was run at the point called `at`; both are "" where costs are timed.
    """

    function: str
    file: str
    entries: tuple[RevisionEntry, ...]
    config: CompareConfig
    reference: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[Note | Claim, ...] = ()
    machines: tuple[Machine, ...] = ()
    feature: str = ""
    at: str = ""
