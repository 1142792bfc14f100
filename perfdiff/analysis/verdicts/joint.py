"""All functions of a comparison, with what was decided on each so far: what the rules for all together ask."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from perfdiff.analysis.findings import FiredRule, Verdict
from perfdiff.analysis.verdicts.case import Case
from perfdiff.analysis.verdicts.evidence import Evidence
from perfdiff.analysis.verdicts.rules import Decision, Reason


@dataclass(frozen=True, slots=True)
class JointDecisions:
    """Functions and decisions on them, by id, with the evidence on the whole program.

    `waiting` names the suspects behind the lines that an unchanged function fetches from other threads.
    """

    cases: Mapping[int, Case]
    decisions: Mapping[int, Decision]
    evidence: Evidence
    waiting: Mapping[int, tuple[int, ...]]

    @property
    def regressions(self) -> list[Case]:
        """Return the functions that are slower so far."""
        return [self.cases[function] for function, decision in self.decisions.items() if decision.verdict is Verdict.REGRESSION]

    def names(self, functions: Iterable[int]) -> tuple[str, ...]:
        """Return functions' names."""
        return tuple(self.cases[function].info.name for function in functions)

    def by_rule(self, name: str) -> list[Case]:
        """Return the functions that a rule decided on."""
        return [self.cases[function] for function, decision in self.decisions.items() if decision.rule == name]


@dataclass(frozen=True, slots=True)
class JointRule:
    """One way to a verdict on functions together: whom it decides on, in place of what was decided before, and the reason for each."""

    name: str
    verdict: Verdict
    asks: str
    reasons: Callable[[JointDecisions], Mapping[int, Reason]]

    def applied(self, joint: JointDecisions) -> JointDecisions:
        """Return the same functions with its decisions."""
        decisions = dict(joint.decisions)
        for function, reason in self.reasons(joint).items():
            held = (*decisions[function].rules, FiredRule(self.name, self.asks))
            decisions[function] = Decision(self.verdict, reason.says, reason.grown, held)
        return replace(joint, decisions=decisions)
