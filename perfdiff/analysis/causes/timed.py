"""Causes that time alone tells: first calls of a run, waiting, and what is left where nothing that was counted grew."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import replace

from perfdiff.analysis.causes.citation import cited_lines
from perfdiff.analysis.claims import Claim, claim
from perfdiff.analysis.compare.firstcall import FirstCalls
from perfdiff.analysis.compare.waits import Waits
from perfdiff.analysis.counts.library import Departure
from perfdiff.analysis.findings import Cause, CauseFigure, FunctionFinding
from perfdiff.analysis.linegrowth import LineGrowth
from perfdiff.models.workcounter import is_bounded, work_counters
from perfdiff.records.schema import Change, FunctionInfo

TIME_ONLY = "time-only"  # name of the cause where time alone grew


def one_off(first: FirstCalls | None, least_ns: float, lines: Claim | None) -> Iterator[tuple[float, Cause]]:
    """Yield the first calls of a run as a cause, with the ns that they explain, if they take at least `least_ns` more."""
    if first is None or first.extra_ns < least_ns or least_ns <= 0:
        return
    says = claim(
        "first-calls",
        several=first.calls if first.calls > 1 else None,
        base_ns=first.base_ns,
        head_ns=first.head_ns,
        later_base_ns=first.later_base_ns,
        later_head_ns=first.later_head_ns,
        lines=lines,
    )
    yield first.extra_ns, Cause("first-calls", says, (CauseFigure("self_ns", first.base_ns, first.head_ns),))


def waiting(waits: Waits, departures: Sequence[Departure]) -> Cause:
    """Tell how long a call waits, for the answers of which queries, where it sends some, and what part of the longer time that is."""
    says = claim(
        "waits-outside",
        queries=tuple(dict.fromkeys(departure.name for departure in departures if departure.is_query and departure.head > 0)),
        at=waits.point,
        base_ns=waits.base_ns,
        head_ns=waits.head_ns,
        part=waits.more_ns / waits.extra_ns if waits.extra_ns > waits.more_ns else None,
    )
    return Cause("waits-outside", says, (CauseFigure("waiting, ns a call", waits.base_ns, waits.head_ns),))


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
    line = next((growth for growth in grown if growth.is_of(finding.info)), None)
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
