"""The lines of slower functions that run more often, with their growth, and what is told of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from perfdiff.analysis.causes.citation import cited_lines
from perfdiff.analysis.causes.timed import by_lines
from perfdiff.analysis.claims import Claim, claim, parts, replaced
from perfdiff.analysis.findings import FunctionFinding, Verdict
from perfdiff.analysis.linegrowth import LineGrowth
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.trends.lines import MatchedLines
from perfdiff.analysis.verdicts.case import Case
from perfdiff.config import CompareConfig
from perfdiff.records.schema import Change, FunctionInfo


def with_lines(
    functions: Sequence[FunctionFinding], cases: Sequence[Case], lines: MatchedLines | None, config: CompareConfig
) -> list[FunctionFinding]:
    """Return findings with the lines that run more often, of functions that are slower or open; one that grows steeper is in the sentence.

    A change may cost time in unchanged functions, which it calls more often or with larger inputs: their lines count as the guilty one's.
    Functions without a probe are not among the `cases`, and their time is their callers'. So are their lines, where no others grew: those
    of the likeliest cause, and of unchanged functions that are slower because of it.
    """
    if lines is None:
        return list(functions)
    case_by_function = {case.info.id: case for case in cases}
    unprobed = lines.beside([case.info for case in cases])
    findings = []
    for finding in functions:
        grown: tuple[LineGrowth, ...] = ()
        if finding.verdict in (Verdict.REGRESSION, Verdict.INCONCLUSIVE):
            own = lines.of([finding.info, *_shown_at(case_by_function.get(finding.info.id), case_by_function.values())])
            grown = lines.grown(own, min_effect=config.min_effect, seed=config.seed)
        if not grown and finding.verdict is Verdict.REGRESSION and (finding.rank == 1 or not finding.info.change.is_suspect):
            grown = lines.grown(unprobed, min_effect=config.min_effect, seed=config.seed)
        findings.append(_with_growth(finding, grown, lines) if grown else finding)
    return findings


def _with_growth(finding: FunctionFinding, grown: tuple[LineGrowth, ...], lines: MatchedLines) -> FunctionFinding:
    steeper = next((line for line in grown if line.is_steeper), None)
    finding = finding if steeper else by_lines(finding, grown)
    counts = lines.counts(finding.info, grown[0].point)
    finding = citing_what_runs(finding, counts)
    also = (*finding.also, steeper_line(steeper, finding.info, is_cited=is_cited(finding, steeper))) if steeper else finding.also
    return replace(finding, lines=grown, line_counts=counts, also=also)


def citing_what_runs(finding: FunctionFinding, counts: Mapping[int, float]) -> FunctionFinding:
    """Return a finding that cites, of many changed lines, those that run most often: the first ones of a function may run once a call."""
    first, telling = cited_lines(finding.info), cited_lines(finding.info, counts)
    if first is None or telling is None:
        return finding
    causes = tuple(replace(cause, says=replaced(cause.says, first, telling)) for cause in finding.causes)
    return replace(finding, causes=causes, happened=replaced(finding.happened, first, telling))


def _shown_at(case: Case | None, cases: Iterable[Case]) -> Iterator[FunctionInfo]:
    """Yield the other functions where a telling part of what a change costs shows."""
    if case is None or case.guilt is None:
        return
    for other in cases:
        ns = sum(blame.total_ns for blame in case.guilt.blames if blame.at == other.info.id)
        if other.info.id != case.info.id and ns > POLICY.telling * case.guilt.total_ns > 0:
            yield other.info


def is_cited(finding: FunctionFinding, line: LineGrowth) -> bool:
    """Return whether the cause that a function's sentence tells has the text of a line already."""
    within = parts(finding.causes[0].says) if finding.tells_cause and finding.causes else ()
    cited = (part.facts["texts"] for part in within if part.kind == "cites")
    return any(line.text in texts for texts in cited if isinstance(texts, tuple))


def steeper_line(line: LineGrowth, info: FunctionInfo, *, is_cited: bool = False) -> Claim:
    """Tell of a line that it grows by a higher power than before, without its text where that is cited already."""
    function = None if line.is_of(info) else line.function
    if line.is_new and not function and info.change is Change.AFFECTED:  # its text is the same: a condition of the preprocessor
        return claim("line-compiled-anew", line=line.line, text=line.text, head=line.head_says)
    says = {"base": line.base_says, "head": line.head_says}
    return claim("steeper-line", new=line.is_new, line=line.line, function=function, text=None if is_cited else line.text, **says)
