"""What may make a function slower though nothing that was counted grew, and what its lines tell of it after all."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace

from perfdiff.analysis.claims import Claim, claim
from perfdiff.analysis.findings import Cause, FunctionFinding, LineGrowth
from perfdiff.analysis.telling.citation import cited_lines
from perfdiff.models.workcounter import is_bounded, work_counters
from perfdiff.records.schema import Change, FunctionInfo

TIME_ONLY = "time-only"  # name of the cause where time alone grew


def time_only(info: FunctionInfo, counted: Container[str]) -> Cause:
    """Return what is left as the cause where time alone grew: of code that changed also what its basic blocks are made of."""
    return Cause(TIME_ONLY, claim("time-only", suspects=_suspects(info, counted)))


def _suspects(info: FunctionInfo, counted: Container[str]) -> Claim:
    if not work_counters(counted):
        return claim("uncounted-work")
    if not is_bounded(counted):
        return claim("longer-lines")
    return claim("dearer-instructions", lines=cited_lines(info)) if info.change is Change.CHANGED else claim("machine")


def by_lines(finding: FunctionFinding, grown: tuple[LineGrowth, ...]) -> FunctionFinding:
    """Return a finding with the line of its own that gained most runs as the cause, where that is time alone.

    Blocks a call hide such a line where others, of callees without a probe too, run less often.
    """
    line = next((each for each in grown if each.is_of(finding.info)), None)
    if line is None or not finding.causes or finding.causes[0].name != TIME_ONLY:
        return finding
    says = claim(
        "line-runs-more",
        line=line.line,
        text=line.text,
        at=line.point,
        new=line.is_new,
        base=line.base,
        head=line.head,
        lines=cited_lines(finding.info),
    )
    return replace(finding, causes=(Cause("more-work", says), *finding.causes[1:]))
