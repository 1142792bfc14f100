"""Causes that lie outside of the project's code: functions of libraries that a function calls more often, and through them the kernel."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

import numpy as np

from perfdiff import units
from perfdiff.analysis.blame.texts import changed_lines
from perfdiff.analysis.counts.library import Departure, method_name
from perfdiff.analysis.counts.queries import noun, prepares
from perfdiff.analysis.counts.suspects import CALLS_OF
from perfdiff.analysis.findings import Cause, Evidence
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.sums.ledger import Ledger
from perfdiff.analysis.sums.rates import per_call_at
from perfdiff.analysis.telling.amounts import times
from perfdiff.analysis.telling.citation import because, excerpt
from perfdiff.records.schema import FunctionInfo

_NEARLY = 0.9
TOLD = 2  # functions named in a sentence, those that may cost most
_SEVERAL = 2.0  # times as many are more than chance makes
_SENT = 0.5  # queries a call, from which on a function is one that sends them
_SHOWN_LINES = 2  # of a function's text that make a call


def queries(departures: Sequence[Departure]) -> tuple[Departure, ...]:
    """Return what is sent more often to other processes, such as databases."""
    return _sent(each for each in departures if each.grew and each.is_query)


def _sent(asked: Iterable[Departure]) -> tuple[Departure, ...]:
    """Return queries without those that prepare what others of them execute: a statement that is prepared and executed is one query."""
    found = tuple(asked)
    return tuple(each for each in found if not prepares(each.name)) or found


def kernel_calls(departures: Sequence[Departure]) -> tuple[Departure, ...]:
    """Return the system calls among what is called outside more often."""
    return tuple(each for each in departures if each.grew and each.enters_kernel and not each.is_query)


def library_calls(departures: Sequence[Departure]) -> tuple[Departure, ...]:
    """Return what is called outside more often without being a system call, or a query, each time."""
    return tuple(each for each in departures if each.grew and not each.enters_kernel and not each.is_query)


def likeliest(info: FunctionInfo, departures: Sequence[Departure]) -> tuple[Departure, ...]:
    """Return the calls that a sentence names, at most `TOLD`: of those that may cost alike first what the changed lines make.

    What a call costs is known only where it was timed. Calls in the place of others of the same name come behind those that nothing made
    before.
    """
    most = max((float(each.dearest_ns.sum()) for each in departures), default=0.0)
    alike = [each for each in departures if each.dearest_ns.sum() >= POLICY.most * most]
    if any(each.spans_ns.any() for each in alike):
        return tuple(departures[:TOLD])
    changed = [text for _, text in changed_lines(info)]

    def rank(each: Departure) -> tuple[bool, bool]:
        call = _calling(each.name)
        return not any(call.search(text) for text in changed), each.instead_of is not None

    return tuple(sorted(alike, key=rank)[:TOLD])


def taken_ns(info: FunctionInfo, departure: Departure, ledger: Ledger) -> float:
    """Return what a call of head takes itself in timed runs of the point that a departure is told at, ∞ where none was timed."""
    if departure.point.id not in ledger.points:
        return math.inf
    return per_call_at(departure.point.id, info.id, "self_ns", ledger)[1] or math.inf


def entering(departures: Sequence[Departure]) -> str:
    """Say which system call a function makes more often that is called more often itself, as the clause of a sentence, or return ""."""
    more = [each for each in departures if each.enters_kernel and each.head_run > each.base_run]
    if not more:
        return ""
    most = max(more, key=lambda each: each.head_run - each.base_run)
    runs = f"{times(most.head_run)} in one run of {most.point.label}, {times(most.base_run)} before"
    return f"; through it `{most.name}` is called {runs}, each time a call of the kernel"


def left(info: FunctionInfo, departures: Sequence[Departure], who: str, own_ns: float = math.inf) -> Cause:
    """Say how often a function calls others outside, all of them system calls, all queries, or none; `who` begins the sentence.

    `own_ns` is what a call of the function takes itself, where the first of them is called more often.
    """
    told = departures[:TOLD]
    is_kernel = told[0].enters_kernel and not told[0].is_query
    says = f"{who}{often(told, own_ns)}{', each time a call of the kernel' if is_kernel else ''}{_cited(info, told[0].name)}"
    evidence = tuple(item for each in told for item in _evidence(each))
    if told[0].is_query:
        evidence = (_queries_a_call(told), *evidence)
        return Cause("more-queries", says, evidence)
    return Cause("system-calls" if is_kernel else "library-calls", says, evidence)


def often(told: Sequence[Departure], own_ns: float = math.inf) -> str:
    """Say how often functions are called, per call and, where the caller is called more than once, in a run; of the first, how long.

    Counting stretches calls somewhat: where they take all that the caller takes itself, `own_ns` a call, that is what is said.
    """
    first = told[0]
    if first.is_query:
        return asking(told)
    said = f"calls `{first.name}` {times(first.head)} a call at {first.point.label}, {_before(first)}"
    if first.head_ns is not None:
        is_all = first.head * first.head_ns > _NEARLY * own_ns
        said = f"{said}, {'nearly all of its time' if is_all else f'{units.duration(first.head_ns)} each'}"
    if first.head_run != first.head:
        said = f"{said} (in one run {units.count(first.head_run)} and {units.count(first.base_run)})"
    for each in told[1:]:
        said = f"{said}, and `{each.name}` {times(each.head)}, {_before(each)}"
    return said


def _before(each: Departure) -> str:
    """Say how often base made calls, or which others in their place."""
    return f"in place of `{each.instead_of}`" if each.instead_of else f"{times(each.base)} before"


def asking(told: Sequence[Departure], through: str = "", more: tuple[float, float] | None = None) -> str:
    """Say how many queries a call sends: to a database one for each element is the commonest way to grow slow.

    With `through`, it calls that function as often as `more` says on base and on head, which sends them; else they are its own.
    """
    first, what = told[0], noun(told[0].name)
    base, head = more or (1.0, 1.0)
    sums = _queries_a_call(told)
    sent = units.count(sums.base * base), units.count(sums.head * head)
    by = f"through `{through}`, `{first.name}`" if through else f"`{first.name}`"
    each = f", {units.duration(first.head_ns)} each" if first.head_ns is not None else ""
    element = "a query per element" if what == "queries" else "a request per element"
    lead = f"sends {element}" if not through and _per_element(told) else f"sends more {what}"
    runs = (
        "" if through or first.head_run == first.head else f" (in one run {units.count(first.head_run)} and {units.count(first.base_run)})"
    )
    return f"{lead}: {what} a call: {sent[0]} → {sent[1]} at {first.point.label} ({by}){each}{runs}"


def _per_element(told: Sequence[Departure]) -> bool:
    """Return whether how many a call sends grows with the points, and did not before."""
    base, head = (sum((getattr(each, name) for each in told), np.zeros(1)) for name in ("base_rates", "head_rates"))
    made = head[head > 0]
    return len(made) > 1 and made.max() >= _SEVERAL * made.min() and base.max() < _SEVERAL * max(base.min(), 1.0)


def _queries_a_call(told: Sequence[Departure]) -> Evidence:
    same = [each for each in told if each.point.id == told[0].point.id]
    return Evidence("queries a call", sum(each.base for each in same), sum(each.head for each in same))


def more_queries(departures: Sequence[Departure], callee: str, calls: tuple[float, float], lines: str) -> Cause | None:
    """Say how many queries a call sends through a function that it calls more often; None where that sends none."""
    told = _sent(each for each in departures if each.is_query and each.head >= _SENT)
    if not told:
        return None
    sums = _queries_a_call(told)
    evidence = (
        Evidence("queries a call", sums.base * calls[0], sums.head * calls[1]),
        Evidence(f"calls of {callee}", *calls),
    )
    return Cause("more-queries", f"it {asking(told, callee, calls)}{lines}", evidence)


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


def _evidence(each: Departure) -> tuple[Evidence, Evidence]:
    return (
        Evidence(f"{CALLS_OF}{each.name}", each.base, each.head),
        Evidence(f"{CALLS_OF}{each.name} a run", each.base_run, each.head_run),
    )


def _cited(info: FunctionInfo, name: str) -> str:
    """Cite the lines of head's code that make a call, the changed ones where some do; else what changed."""
    if info.head is None:
        return because(info)
    call = _calling(name)
    for lines in (changed_lines(info), info.head.code.items()):
        if making := [f"{line}: `{excerpt(text)}`" for line, text in lines if call.search(text)]:
            return f" ({info.head.file}, line {'; '.join(making[:_SHOWN_LINES])})"
    return because(info)


def _calling(name: str) -> re.Pattern[str]:
    """Return what a call of a function outside looks like in the text of a program."""
    method = method_name(name)
    if method == "<init>":
        of = re.escape(name.removesuffix(".<init>").rpartition(".")[2].rpartition("$")[2])
        return re.compile(rf"\bnew\s+(?:[\w.]+\.)?{of}\b")
    before = r"(?<!\w)" if method != name else r"(?<![\w.>])"
    return re.compile(rf"{before}{re.escape(method)}\s*\(")
