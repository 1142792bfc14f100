"""What may make a function slower though nothing that was counted grew, and what its lines tell of it after all."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace

from perfdiff import units
from perfdiff.analysis.findings import Cause, FunctionFinding, LineGrowth
from perfdiff.analysis.telling.citation import cited_lines, excerpt
from perfdiff.models.workcounter import is_bounded, work_counters
from perfdiff.records.schema import Change, FunctionInfo

TIME_ONLY = "time-only"  # name of the cause where time alone grew


def time_only(info: FunctionInfo, counted: Container[str]) -> Cause:
    """Return what is left as the cause where time alone grew: of code that changed also what its basic blocks are made of."""
    return Cause(TIME_ONLY, f"its time grew and nothing that was counted did: {_suspects(info, counted)}, layout or I/O")


def _suspects(info: FunctionInfo, counted: Container[str]) -> str:
    if not work_counters(counted):
        return "more work, machine"
    if not is_bounded(counted):
        return "lines do more, machine"
    return f"dearer instructions in what changed{cited_lines(info)}, machine" if info.change is Change.CHANGED else "machine"


def by_lines(finding: FunctionFinding, grown: tuple[LineGrowth, ...]) -> FunctionFinding:
    """Return a finding with the line of its own that gained most runs as the cause, where that is time alone.

    Blocks a call hide such a line where others, of callees without a probe too, run less often.
    """
    line = next((each for each in grown if each.is_of(finding.info)), None)
    if line is None or not finding.causes or finding.causes[0].name != TIME_ONLY:
        return finding
    before = "never before" if line.is_new else f"{units.count(line.base)} before"
    gone = cited_lines(finding.info)
    says = f"its line {line.line}, `{excerpt(line.text)}`, runs {units.count(line.head)} times in one run of {line.point}, {before}{gone}"
    return replace(finding, causes=(Cause("more-work", says), *finding.causes[1:]))
