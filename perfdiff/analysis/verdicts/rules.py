"""Ordered rules: each asks one question of what is known, and the first that finds a reason decides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from perfdiff.analysis.claims import Claim, claim
from perfdiff.analysis.findings import FiredRule, Rung, Verdict

Known = TypeVar("Known")


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a rule decides; `grown` are the count metrics that alone make a function a regression."""

    says: Claim
    grown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Decision:
    """The verdict on a function with its reason, and the `rules` that held, the last of which decided; `grown` as of the reason."""

    verdict: Verdict
    reason: Claim
    grown: tuple[str, ...] = ()
    rules: tuple[FiredRule, ...] = ()

    @property
    def rule(self) -> str:
        """Return the name of the rule that decided."""
        return self.rules[-1].name if self.rules else ""


@dataclass(frozen=True, slots=True)
class Rule(Generic[Known]):
    """A rule: the question that it asks of a subject of type `Known`, and a function that returns its reason, None if it does not hold."""

    name: str
    verdict: Verdict
    asks: str
    reason: Callable[[Known], Reason | Claim | None]

    def decision(self, reason: Reason | Claim) -> Decision:
        """Return the decision for a reason."""
        grounds = reason if isinstance(reason, Reason) else Reason(reason)
        return Decision(self.verdict, grounds.says, grounds.grown, (FiredRule(self.name, self.asks),))


def decided(rules: Sequence[Rule[Known]], facts: Known) -> Decision:
    """Return the decision of the first rule that finds a reason; the last one always does."""
    return next(rule.decision(reason) for rule in rules if (reason := rule.reason(facts)))


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The verdict on a comparison with its sentence, the rung of evidence below it, and from which ratio on slow-downs are excluded.

    `rules` are those that held: the one that decided, then those that took something back.
    """

    verdict: Verdict
    sentence: Claim
    rung: Rung
    excluded: float | None = None
    rules: tuple[FiredRule, ...] = ()

    @property
    def is_good_news(self) -> bool:
        """Return whether it says that nothing is slower."""
        return self.verdict in (Verdict.UNCHANGED, Verdict.IMPROVEMENT)

    def opened(self, why: Claim) -> Conclusion:
        """Return that nothing is decided, and why: what was concluded holds by time alone."""
        return Conclusion(Verdict.INCONCLUSIVE, claim("opened", why=why, by_time=self.sentence), self.rung)
