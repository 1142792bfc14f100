"""The two ends of a bisect: whether the bad one is slower at all, and by what that is followed through the commits between."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from perfdiff import units
from perfdiff.analysis.findings import Findings, FunctionFinding, Verdict
from perfdiff.analysis.search.symptom import Symptom, callers, figures, interval, symptoms, whole_runs
from perfdiff.errors import MeasurementError, PerfdiffError, UsageError


@dataclass(frozen=True, slots=True)
class SearchSubject:
    """What a bisect is about: its ends by name; the function, which `named(name, file)` knows, and the metric where they were given."""

    good: str
    bad: str
    function: str | None
    named: Callable[[str, str], bool] | None
    metric: str | None = None

    def means(self, file: str, name: str) -> bool:
        """Return whether a function is the one asked for; where none was, any is."""
        return self.named is None or self.named(name, file)

    def functions(self, findings: Findings) -> list[FunctionFinding]:
        """Return the functions asked for; without one, those that got slower, the likeliest cause first."""
        if self.named is None:
            return sorted((finding for finding in findings.functions if finding.rank is not None), key=lambda finding: finding.rank or 0)
        return [finding for finding in findings.functions if self.means(finding.info.file, finding.info.name)]


def follow(findings: Findings, wanted: SearchSubject, sentence: str) -> Symptom:
    """Return the symptom that the search follows: what is slower at the bad end.

    Raise where nothing is, with the findings' `sentence` in words.
    """
    asked = wanted.functions(findings)
    if wanted.function and not asked:
        raise UsageError(
            f"'{wanted.function}' is no function that the comparison of {wanted.good} and {wanted.bad} looked at; "
            f"`perfdiff {wanted.good} {wanted.bad}` lists those that it did",
            slug="unknown-function",
        )
    seen: list[Symptom] = []
    for function in asked:
        for candidate in (function, *_standing_in(findings, function)):
            its_symptoms = symptoms(findings, candidate, wanted.metric)
            seen += its_symptoms
            slower = [symptom for symptom in its_symptoms if symptom.expected.effect > 0]
            if slower:
                return slower[0]
    if wanted.function is None and findings.verdict is Verdict.REGRESSION and (whole := whole_runs(findings)):
        return whole[0]
    if wanted.function is None and findings.verdict is Verdict.INCONCLUSIVE and (grown := _grown_work(findings, wanted)):
        return grown[0]
    raise _nothing_to_follow(findings, wanted, seen, sentence)


def standing(findings: Findings, wanted: SearchSubject) -> Verdict:
    """Return whether a commit is slower than the good one, in what is wanted; a function that is not looked at did not change."""
    asked = wanted.functions(findings)
    if wanted.metric is not None:
        every = asked if wanted.function else findings.functions
        slower = any(symptom.expected.effect > 0 for function in every for symptom in symptoms(findings, function, wanted.metric))
        return Verdict.REGRESSION if slower else Verdict.UNCHANGED
    if wanted.function is None:
        return findings.verdict
    verdicts = {function.verdict for function in asked}
    return next((verdict for verdict in (Verdict.REGRESSION, Verdict.INCONCLUSIVE) if verdict in verdicts), Verdict.UNCHANGED)


def _standing_in(findings: Findings, function: FunctionFinding) -> list[FunctionFinding]:
    """Return the callers of a function that one end lacks: its cost shows in them."""
    return [] if function.info.base and function.info.head else callers(findings, function)


def _nothing_to_follow(findings: Findings, wanted: SearchSubject, seen: list[Symptom], sentence: str) -> PerfdiffError:
    good, bad = wanted.good, wanted.bad
    if seen or (wanted.function is None and findings.verdict is Verdict.IMPROVEMENT):
        shown = f"{seen[0].says} is {figures(seen[0].expected)}" if seen else sentence
        return UsageError(
            f"{bad} is not slower than {good} but faster: {shown}; a bisect finds what got slower, so give an end that is",
            slug="ends-swapped",
        )
    about = f" in `{wanted.function}`" if wanted.function else ""
    about += f" by {wanted.metric}" if wanted.metric else ""
    if standing(findings, wanted) is Verdict.INCONCLUSIVE:
        return MeasurementError(
            f"whether {bad} is slower than {good}{about} stays open: {sentence}; add runs (--runs) or larger inputs, then bisect again",
            slug="ends-inconclusive",
        )
    return UsageError(
        f"{bad} is not slower than {good}{about}: {sentence}; both ends are good, or both are bad, so there is nothing to find",
        slug="ends-alike",
        detail=_ratios(findings, wanted),
    )


def _grown_work(findings: Findings, wanted: SearchSubject) -> list[Symptom]:
    """Return the functions that do more work by exact counts, the most first: a difference that no noise hides, if it does cost time."""
    grown = [symptom for function in findings.functions for symptom in symptoms(findings, function, wanted.metric)]
    return sorted(
        (symptom for symptom in grown if symptom.exact and symptom.expected.effect > 0), key=lambda symptom: -symptom.expected.effect
    )


def _ratios(findings: Findings, wanted: SearchSubject) -> str:
    """Return the ratio of each function asked for, a line each, and what does more work all the same."""
    lines = [
        f"{symptom.says}: {figures(symptom.expected)}; to look for it, add --function '{symptom.name}'"
        for symptom in _grown_work(findings, wanted)
    ]
    for function in wanted.functions(findings) if wanted.function else findings.functions:
        metric = function.metrics.get(wanted.metric or "wall_ns")
        if metric is not None and metric.overall is not None:
            lines.append(f"{function.info.name}: {metric.metric} {units.ratio(metric.overall.value)} {interval(metric.overall)}")
    return "\n".join(lines)
