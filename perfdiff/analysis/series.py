"""A cost over inputs, be it timed call by call or counted run by run, in what is asked of it: does it hold, where did it change."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, Protocol, TypeVar

from perfdiff.config import CompareConfig
from perfdiff.records.schema import Note, Revision


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


class _Judged(Protocol):
    @property
    def standing(self) -> Standing: ...


AssertionT = TypeVar("AssertionT", bound=_Judged)


@dataclass(frozen=True, slots=True)
class Checked(Generic[AssertionT]):
    """A revision held against what was saved: annotations of functions, or the trends of the revision `saved`.

    `unannotated` are the functions that have calls and no annotation.
    """

    revision: Revision
    assertions: tuple[AssertionT, ...]
    notes: tuple[Note, ...]
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
        """Return the assertions that stand so."""
        return tuple(assertion for assertion in self.assertions if assertion.standing in which)
