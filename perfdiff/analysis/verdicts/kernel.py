"""Whether whole runs of head ask more of the kernel than those of base, whichever runs are compared, and which functions do."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from perfdiff.analysis.counts.library import Departure
from perfdiff.analysis.findings import FunctionFinding
from perfdiff.analysis.kernel_use import KernelCaller, KernelFinding, KernelPoint, KernelRequest
from perfdiff.analysis.peaks import MemoryStanding
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.verdicts.memory import growth_lines
from perfdiff.records.kernel_use import KernelUse, LeftOpen
from perfdiff.records.schema import Phase, Point, Run, Side

# Functions of libraries that enter the kernel for a request, each time or once for many calls, by the last part of their names.
_READING = re.compile(r"(?:.*[.:])?(?:p?read\w*|recv\w*|f?getc|fgets|getline|getdelim|fscanf|fread|sendfile)")
_WRITING = re.compile(r"(?:.*[.:])?(?:p?write\w*|send\w*|f?put[cs]|v?f?printf|fflush|flush|fwrite|print)")
_OPENING = re.compile(r"(?:.*[.:])?(?:open\w*|f?d?open\w*|creat\w*|socket\w*|accept\w*|pipe\w*|dup\w*|mkstemp\w*|eventfd)")
_CLOSING = re.compile(r"(?:.*[.:])?f?p?close\w*")
_STARTING = re.compile(r"(?:.*[.:])?(?:pthread_create|std::thread\w*|start\w*)")
_COUNTED_IN = {
    Phase.PLAIN: tuple(map(KernelRequest, KernelUse.__slots__)),
    Phase.COUNTED: tuple(map(KernelRequest, LeftOpen.__slots__)),
}
_ENTERING = {
    KernelRequest.READS: _READING,
    KernelRequest.READ_BYTES: _READING,
    KernelRequest.WRITES: _WRITING,
    KernelRequest.WRITTEN_BYTES: _WRITING,
    KernelRequest.DESCRIPTORS: _OPENING,
    KernelRequest.THREADS: _STARTING,
}


def kernel_finding(points: Sequence[Point], runs: Sequence[Run]) -> KernelFinding | None:
    """Return what plain runs ask of the kernel, None where that is known of too few at each point."""
    judged = [
        judged
        for point in points
        for phase in _COUNTED_IN
        for judged in _at(point, phase, *(_of(runs, point, phase, side) for side in Side))
    ]
    if not judged:
        return None
    by_request = {request: [point for point in judged if point.request is request] for request in KernelRequest}
    lines = [(request, line) for request, own in by_request.items() if own for line in growth_lines(own, ("base", "head"))]
    return KernelFinding(tuple(judged), tuple(lines))


def with_callers(
    finding: KernelFinding | None, functions: Sequence[FunctionFinding], leaving: Mapping[int, Sequence[Departure]]
) -> KernelFinding | None:
    """Return a finding with the changed functions that call what asks for most more, those that call it most first."""
    if finding is None or finding.worst is None or finding.worst.request not in _ENTERING:
        return finding
    names, entering = _ENTERING[finding.worst.request], list[KernelCaller]()
    for function in functions:
        if function.info.change.is_suspect:
            for departure in leaving.get(function.info.id, ()):
                closes_less = names is _OPENING and departure.head_run < departure.base_run and _CLOSING.fullmatch(departure.name)
                if closes_less or (departure.grew and names.fullmatch(departure.name)):
                    entering.append(KernelCaller(function.info.name, departure.name, departure.base_run, departure.head_run))
    return replace(finding, callers=tuple(sorted(entering, key=lambda caller: -abs(caller.head - caller.base))))


def _of(runs: Sequence[Run], point: Point, phase: Phase, side: Side) -> list[KernelUse | LeftOpen]:
    own = (run for run in runs if (run.phase, run.point, run.side) == (phase, point.id, side))
    uses = (run.kernel if phase is Phase.PLAIN else run.left_open for run in own)
    return [use for use in uses if use is not None]


def _at(point: Point, phase: Phase, base: Sequence[KernelUse | LeftOpen], head: Sequence[KernelUse | LeftOpen]) -> Iterator[KernelPoint]:
    """Yield what runs of a phase show at a point, nothing where they are too few."""
    if min(len(base), len(head)) < (POLICY.runs_of_requests if phase is Phase.PLAIN else POLICY.runs_alike):
        return
    for request in _COUNTED_IN[phase]:
        before, after = ([getattr(use, request.value) for use in uses] for uses in (base, head))
        low, high = min(after) - max(before), max(after) - min(before)
        least = max(POLICY.memory * statistics.median_low(before), POLICY.least_requests[request.value])
        # Beyond all that the runs of each side differ by.
        more, less = (extra >= least + (high - low) for extra in (low, -high))
        standing = MemoryStanding.MORE if more else MemoryStanding.LESS if less else MemoryStanding.OPEN
        standing = MemoryStanding.NOT_MORE if standing is MemoryStanding.OPEN and high < least else standing
        yield KernelPoint(point, request, statistics.median_low(before), statistics.median_low(after), low, high, standing)
