"""The lines of slower functions that run more often, with their growth, and what sentences say of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from perfdiff.analysis.findings import FunctionFinding, LineGrowth, Verdict
from perfdiff.analysis.policy import TELLING
from perfdiff.analysis.telling.citation import excerpt
from perfdiff.analysis.trends.lines import MatchedLines
from perfdiff.analysis.verdicts.case import Case
from perfdiff.config import CompareConfig
from perfdiff.records.schema import FunctionInfo


def with_lines(
    functions: Sequence[FunctionFinding], cases: Sequence[Case], lines: MatchedLines | None, config: CompareConfig
) -> list[FunctionFinding]:
    """Return findings with the lines that run more often, of functions that are slower or open; one that grows steeper is in the sentence.

    A change may cost time in unchanged functions, which it calls more often or with larger inputs: their lines count as the guilty one's.
    """
    if lines is None:
        return list(functions)
    known = {case.info.id: case for case in cases}
    return [
        _told(each, [each.info, *_shown_at(known.get(each.info.id), known.values())], lines, config)
        if each.verdict in (Verdict.REGRESSION, Verdict.INCONCLUSIVE)
        else each
        for each in functions
    ]


def _told(finding: FunctionFinding, infos: Sequence[FunctionInfo], lines: MatchedLines, config: CompareConfig) -> FunctionFinding:
    grown = lines.grown(infos, min_effect=config.min_effect, seed=config.seed)
    steeper = next((line for line in grown.lines if line.is_steeper), None)
    headline = f"{finding.headline}; {steeper_line(steeper, finding.info)}" if steeper else finding.headline
    return replace(finding, lines=grown.lines, line_counts=grown.counts, headline=headline)


def _shown_at(case: Case | None, cases: Iterable[Case]) -> Iterator[FunctionInfo]:
    """Yield the other functions where a telling part of what a change costs shows."""
    if case is None or case.guilt is None:
        return
    for other in cases:
        ns = sum(blame.total_ns for blame in case.guilt.blames if blame.at == other.info.id)
        if other.info.id != case.info.id and ns > TELLING * case.guilt.total_ns > 0:
            yield other.info


def steeper_line(line: LineGrowth, info: FunctionInfo) -> str:
    """Say of a line that it grows by a higher power than before, as the end of a sentence on a function."""
    elsewhere = "" if line.file == info.file and line.function in info.name else f" of `{line.function}`"
    before = "is new" if line.is_new else f"was {line.base_says}" if line.base_says else "did not before"
    return f"line {line.line}{elsewhere}, `{excerpt(line.text)}`, runs {line.head_says} times ({before})"
