"""Known costs: regressions that people accepted, each up to a ratio and for a reason, no longer make the verdict."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date

from perfdiff.analysis.acceptances import Acceptance
from perfdiff.analysis.claims import Claim, claim
from perfdiff.analysis.compare.shares import ALLOCATION
from perfdiff.analysis.findings import RUN, Findings, FunctionFinding, Ratio, Verdict
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.verdicts.conclusion import ProgramFindings, first_conclusion, reserved
from perfdiff.analysis.verdicts.doubt import WORK
from perfdiff.analysis.verdicts.evidence import Evidence
from perfdiff.analysis.verdicts.rules import Conclusion
from perfdiff.analysis.verdicts.wholeruns import WholeRuns
from perfdiff.config import CompareConfig
from perfdiff.models.prices import LEAST_NS

# The ratio of a regression that no single call of the function shows, because it is new or its change makes others slower: whole runs
# with what is put down to it over whole runs of base.
WHOLE = "whole_run"
TIMES = ("wall_ns", "self_ns", RUN, WHOLE)


def apply(findings: Findings, accepted: Sequence[Acceptance], today: date, config: CompareConfig) -> Findings:
    """Return the findings with accepted regressions marked, the verdict on what is left, and notes on every entry that plays a part.

    `config` is what the findings were concluded by. A regression is accepted where each of its `claims` is: the entry's ratio is reached,
    not passed. As both are estimates, the intervals decide: it is passed where the whole interval of the new ratio lies above that of the
    accepted one.
    """
    live = [entry for entry in accepted if entry.holds(today)]
    functions = tuple(_marked(finding, live, findings) for finding in findings.functions)
    notes = tuple(_notes(functions, accepted, findings, today))
    conclusion = Conclusion(findings.verdict, findings.sentence, findings.rung, findings.excluded, findings.rules)
    if conclusion.verdict is Verdict.REGRESSION and any(finding.accepted for finding in functions):
        program = _unaccepted(functions, findings, config)
        conclusion = reserved(_whole(program, functions), program)
    return replace(
        findings,
        functions=functions,
        verdict=conclusion.verdict,
        sentence=conclusion.sentence,
        rung=conclusion.rung,
        excluded=conclusion.excluded,
        rules=conclusion.rules,
        notes=(*findings.notes, *notes),
    )


def claims(finding: FunctionFinding, findings: Findings) -> dict[str, Ratio]:
    """Return the ratios that make a function a regression, by metric: one time at most, each kind of allocation, else contended lines."""
    least = 1 + findings.min_effect
    ratios = {}
    time = next((metric for metric in TIMES if (ratio := figure(finding, metric, findings)) and ratio.low > _least(metric, least)), None)
    for metric in ([time] if time else []) + [metric for metric in ALLOCATION if finding.info.change.is_suspect]:
        ratio = figure(finding, metric, findings)
        if ratio is not None and ratio.low > _least(metric, least):
            ratios[metric] = ratio
    if ratios:
        return ratios
    return {counter: count.ratio for counter, count in finding.counts.items() if counter in {*LEAST_NS, *WORK} and count.grew}


def _least(metric: str, least: float) -> float:
    """Return from which ratio on a metric speaks for a regression; of whole runs a small share is much (`POLICY.material`)."""
    return 1 + POLICY.material if metric == WHOLE else least


def figure(finding: FunctionFinding, metric: str, findings: Findings) -> Ratio | None:
    """Return the ratio of a metric of a function, None where there is none."""
    if metric == WHOLE:
        return _of_whole_runs(finding, findings)
    if metric == RUN:
        wall = finding.metrics.get("wall_ns")
        return wall.total if wall else None
    if metric in finding.counts:
        return finding.counts[metric].ratio
    metric_finding = finding.metrics.get(metric)
    return metric_finding.ratio if metric_finding else None


def _of_whole_runs(finding: FunctionFinding, findings: Findings) -> Ratio | None:
    """Return whole runs' ratio by one function. It has no interval: less than the smallest effect of interest more is the same."""
    base = sum(end.base_ns for end in findings.end_to_end)
    if base <= 0:
        return None
    value = 1 + finding.extra_ns / base
    return Ratio(value, value, value * (1 + findings.min_effect), 0, 0)


def _marked(finding: FunctionFinding, live: Sequence[Acceptance], findings: Findings) -> FunctionFinding:
    if finding.verdict is not Verdict.REGRESSION:
        return finding
    own = [entry for entry in live if entry.is_of(finding.info)]
    asked = claims(finding, findings)
    granting = [next((entry for entry in own if _grants(entry, metric, finding, findings)), None) for metric in asked]
    granted = tuple(entry for entry in granting if entry is not None)
    return replace(finding, accepted=granted) if granted and len(granted) == len(asked) else finding


def _grants(entry: Acceptance, claim: str, finding: FunctionFinding, findings: Findings) -> bool:
    """Return whether an entry covers a claim; one on any time of a function covers all, which are parts of each other."""
    is_same = entry.metric == claim or {entry.metric, claim} <= set(TIMES)
    seen = figure(finding, entry.metric, findings)
    return is_same and seen is not None and seen.low <= entry.high


def _unaccepted(functions: Sequence[FunctionFinding], findings: Findings, config: CompareConfig) -> ProgramFindings:
    """Return a program without what was accepted: whole runs that are slower speak no more where accepted functions explain them."""
    runs = WholeRuns(findings.end_to_end).where(lambda end: end.judges)
    are_explained = _are_explained(runs, [finding for finding in functions if finding.accepted], config)
    others = [replace(finding, verdict=Verdict.UNCHANGED) if finding.accepted else finding for finding in functions]
    evidence = Evidence(
        WholeRuns() if are_explained else runs,
        met=findings.met,
        outside=findings.outside,
        witnessed=findings.behaviour,
        endless=findings.endless,
    )
    return ProgramFindings(others, evidence, config)


def _whole(program: ProgramFindings, functions: Sequence[FunctionFinding]) -> Conclusion:
    """Return the verdict on what nobody accepted; nothing is left of a program that alone is judged and whose runs are explained."""
    marked = [finding for finding in functions if finding.accepted]
    accepted = tuple(claim("of-accepted", name=finding.info.name, ratio=finding.accepted[0].ratio) for finding in marked)
    conclusion = first_conclusion(program)
    if conclusion.verdict is Verdict.UNCHANGED or (program.is_judged_alone and not program.runs.ends):
        return replace(conclusion, verdict=Verdict.UNCHANGED, sentence=claim("beyond-accepted", accepted=accepted))
    return replace(conclusion, sentence=claim("beside-accepted", concluded=conclusion.sentence, accepted=accepted))


def _are_explained(runs: WholeRuns, accepted: Sequence[FunctionFinding], config: CompareConfig) -> bool:
    """Return whether accepted functions account for slower whole runs, up to the smallest effect of interest.

    Both are estimates: the runs' lower bounds stand against the functions' upper ones. What is accepted by anything but time has no part of
    a run that could be told: it explains them all.
    """
    certain_ns = sum((end.low - 1) * end.base_ns for end in runs.slower)
    explained_ns = sum(_explained_ns(finding) for finding in accepted)
    return certain_ns <= explained_ns + sum((end.smallest(config) - 1) * end.base_ns for end in runs.slower)


def _explained_ns(finding: FunctionFinding) -> float:
    if any(entry.metric not in TIMES for entry in finding.accepted):
        return math.inf
    return finding.extra_ci_ns[1] if finding.extra_ci_ns else finding.extra_ns


def _notes(functions: Sequence[FunctionFinding], accepted: Sequence[Acceptance], findings: Findings, today: date) -> Iterator[Claim]:
    for finding in functions:
        if finding.accepted:
            granted = tuple(_granted(finding, entry, findings) for entry in dict.fromkeys(finding.accepted))
            yield claim("accepted", accepted=granted)
    for entry in accepted:
        if not entry.holds(today):
            yield claim("accepted-expired", entry=_entry(entry), until=str(entry.until), reason=entry.reason)
            continue
        mine = [finding for finding in functions if entry.is_of(finding.info)]
        if not mine and not any(entry.function == skipped.name for skipped in findings.skipped):
            yield claim("accepted-unmatched", entry=_entry(entry))
        for finding in mine:
            seen = figure(finding, entry.metric, findings)
            if finding.verdict is Verdict.REGRESSION and seen is not None and seen.low > entry.high:
                yield claim("accepted-exceeded", entry=_entry(entry), ratio=seen.value)


def _granted(finding: FunctionFinding, entry: Acceptance, findings: Findings) -> Claim:
    seen = figure(finding, entry.metric, findings)
    until = str(entry.until) if entry.until else None
    return claim("granted", entry=_entry(entry), ratio=seen.value if seen else None, until=until, reason=entry.reason)


def _entry(entry: Acceptance) -> Claim:
    return claim("entry", name=entry.function, metric=entry.metric, ratio=entry.ratio)
