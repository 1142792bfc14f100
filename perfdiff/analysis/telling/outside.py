"""Causes that lie outside of the project's code: functions of libraries that a function calls more often, and through them the kernel."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from perfdiff import units
from perfdiff.analysis.blame.texts import changed_lines
from perfdiff.analysis.counts.library import Departure
from perfdiff.analysis.counts.suspects import CALLS_OF
from perfdiff.analysis.findings import Cause, Evidence
from perfdiff.analysis.telling.citation import because, excerpt
from perfdiff.records.schema import FunctionInfo

_NEARLY = 0.9
TOLD = 2  # functions named in a sentence, those that may cost most
_SHOWN_LINES = 2  # of a function's text that make a call


def kernel_calls(departures: Sequence[Departure]) -> tuple[Departure, ...]:
    """Return the system calls among what is called outside more often."""
    return tuple(each for each in departures if each.grew and each.enters_kernel)


def library_calls(departures: Sequence[Departure]) -> tuple[Departure, ...]:
    """Return what is called outside more often without being a system call each time."""
    return tuple(each for each in departures if each.grew and not each.enters_kernel)


def entering(departures: Sequence[Departure]) -> str:
    """Say which system call a function makes more often that is called more often itself, as the clause of a sentence, or return ""."""
    more = [each for each in departures if each.enters_kernel and each.head_run > each.base_run]
    if not more:
        return ""
    most = max(more, key=lambda each: each.head_run - each.base_run)
    runs = f"{_times(most.head_run)} in one run of {most.point.label}, {_times(most.base_run)} before"
    return f"; through it `{most.name}` is called {runs}, each time a call of the kernel"


def left(info: FunctionInfo, departures: Sequence[Departure], who: str, own_ns: float = math.inf) -> Cause:
    """Say how often a function calls others outside, which are either all system calls or none; `who` begins the sentence.

    `own_ns` is what a call of the function takes itself, where the first of them is called more often.
    """
    told = departures[:TOLD]
    is_kernel = told[0].enters_kernel
    says = f"{who}{often(told, own_ns)}{', each time a call of the kernel' if is_kernel else ''}{_cited(info, told[0].name)}"
    evidence = tuple(item for each in told for item in _evidence(each))
    return Cause("system-calls" if is_kernel else "library-calls", says, evidence)


def often(told: Sequence[Departure], own_ns: float = math.inf) -> str:
    """Say how often functions are called, per call and, where the caller is called more than once, in a run; of the first, how long.

    Counting stretches calls somewhat: where they take all that the caller takes itself, `own_ns` a call, that is what is said.
    """
    first = told[0]
    said = f"calls `{first.name}` {_times(first.head)} a call at {first.point.label}, {_times(first.base)} before"
    if first.head_ns is not None:
        is_all = first.head * first.head_ns > _NEARLY * own_ns
        said = f"{said}, {'nearly all of its time' if is_all else f'{units.duration(first.head_ns)} each'}"
    if first.head_run != first.head:
        said = f"{said} (in one run {units.count(first.head_run)} and {units.count(first.base_run)})"
    for each in told[1:]:
        said = f"{said}, and `{each.name}` {_times(each.head)}, {_times(each.base)} before"
    return said


def slower(departures: Sequence[Departure]) -> tuple[Departure, ...]:
    """Return what is called outside as often as before and takes longer each time, what costs most first."""
    found = [each for each in departures if each.takes_longer and not each.grew]
    return tuple(sorted(found, key=lambda each: (-each.longer_ns.sum(), each.name)))


def prolonged(info: FunctionInfo, departures: Sequence[Departure], who: str) -> Cause:
    """Say how much longer each call of functions outside takes; `who` begins the sentence."""
    told = departures[:TOLD]
    said = [_took(each) for each in told]
    says = f"{who}calls {said[0]}{''.join(f', and {each}' for each in said[1:])}{_cited(info, told[0].name)}"
    evidence = tuple(Evidence(f"time of {each.name}, ns a call", each.base_ns or 0.0, each.head_ns or 0.0) for each in told)
    return Cause("library-time", says, evidence)


def _took(each: Departure) -> str:
    before = units.duration(each.base_ns) if each.base_ns is not None else "next to nothing"
    return f"`{each.name}`, which takes {units.duration(each.head_ns or 0.0)} a call at {each.point.label}, {before} before"


def _times(calls: float) -> str:
    if calls == 0:
        return "never"
    return "once" if calls == 1 else f"{units.count(calls)} times"


def _evidence(each: Departure) -> tuple[Evidence, Evidence]:
    return (
        Evidence(f"{CALLS_OF}{each.name}", each.base, each.head),
        Evidence(f"{CALLS_OF}{each.name} a run", each.base_run, each.head_run),
    )


def _cited(info: FunctionInfo, name: str) -> str:
    """Cite the lines of head's code that make a call, the changed ones where some do; else what changed."""
    if info.head is None:
        return because(info)
    call = re.compile(rf"(?<![\w.>]){re.escape(name.rpartition(' ')[2].rpartition('::')[2])}\s*\(")
    for lines in (changed_lines(info), info.head.code.items()):
        if making := [f"{line}: `{excerpt(text)}`" for line, text in lines if call.search(text)]:
            return f" ({info.head.file}, line {'; '.join(making[:_SHOWN_LINES])})"
    return because(info)
