"""Causes that lie outside of the project's code: functions of libraries that a function calls more often, and through them the kernel."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

import numpy as np

from perfdiff.analysis.blame.texts import changed_lines
from perfdiff.analysis.causes.citation import because, cited
from perfdiff.analysis.claims import Claim, claim
from perfdiff.analysis.counts.library import Departure, method_name
from perfdiff.analysis.counts.queries import noun, prepares
from perfdiff.analysis.counts.suspects import CALLS_OF
from perfdiff.analysis.findings import Cause, CauseFigure
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.sums.ledger import Ledger
from perfdiff.analysis.sums.rates import per_call_at
from perfdiff.records.schema import FunctionInfo

_NEARLY = 0.9
TOLD = 2  # functions named in a sentence, those that may cost most
_SEVERAL = 2.0  # times as many are more than chance makes
_SENT = 0.5  # queries a call, from which on a function is one that sends them
_SHOWN_LINES = 2  # of a function's text that make a call


def queries(departures: Sequence[Departure]) -> tuple[Departure, ...]:
    """Return the calls that send requests to other processes, such as databases, and that grew in number."""
    return _sent(departure for departure in departures if departure.grew and departure.is_query)


def _sent(asked: Iterable[Departure]) -> tuple[Departure, ...]:
    """Return queries without those that prepare what others of them execute: a statement that is prepared and executed is one query."""
    departures = tuple(asked)
    return tuple(departure for departure in departures if not prepares(departure.name)) or departures


def kernel_calls(departures: Sequence[Departure]) -> tuple[Departure, ...]:
    """Return the system calls among what is called outside more often."""
    return tuple(departure for departure in departures if departure.grew and departure.enters_kernel and not departure.is_query)


def library_calls(departures: Sequence[Departure]) -> tuple[Departure, ...]:
    """Return the calls of other code that grew in number, without system calls and queries."""
    return tuple(departure for departure in departures if departure.grew and not departure.enters_kernel and not departure.is_query)


def likeliest(info: FunctionInfo, departures: Sequence[Departure]) -> tuple[Departure, ...]:
    """Return the calls that a sentence names, at most `TOLD`: of those that may cost alike first what the changed lines make.

    What a call costs is known only where it was timed. Calls in the place of others of the same name come behind those that nothing made
    before.
    """
    most = max((float(departure.dearest_ns.sum()) for departure in departures), default=0.0)
    alike = [departure for departure in departures if departure.dearest_ns.sum() >= POLICY.most * most]
    if any(departure.spans_ns.any() for departure in alike):
        return tuple(departures[:TOLD])
    changed = [text for _, text in changed_lines(info)]

    def rank(departure: Departure) -> tuple[bool, bool]:
        call = _calling(departure.name)
        return not any(call.search(text) for text in changed), departure.instead_of is not None

    return tuple(sorted(alike, key=rank)[:TOLD])


def taken_ns(info: FunctionInfo, departure: Departure, ledger: Ledger) -> float:
    """Return what a call of head takes itself in timed runs of the point that a departure is told at, ∞ where none was timed."""
    if departure.point.id not in ledger.points:
        return math.inf
    return per_call_at(departure.point.id, info.id, "self_ns", ledger)[1] or math.inf


def entering(departures: Sequence[Departure]) -> Claim | None:
    """Tell which system call a function makes more often that is called more often itself, None where there is none."""
    more = [departure for departure in departures if departure.enters_kernel and departure.head_run > departure.base_run]
    if not more:
        return None
    most = max(more, key=lambda departure: departure.head_run - departure.base_run)
    return claim("enters-kernel", name=most.name, base=most.base_run, head=most.head_run, at=most.point.label)


def left(info: FunctionInfo, departures: Sequence[Departure], own_ns: float = math.inf) -> Cause:
    """Tell how often a function calls others outside, all of them system calls, all queries, or none.

    `own_ns` is what a call of the function takes itself, where the first of them is called more often.
    """
    named = departures[:TOLD]
    often, lines = calling_often(named, own_ns), _calls_of(info, named[0].name)
    evidence = tuple(count for departure in named for count in _evidence(departure))
    if named[0].is_query:
        return Cause("more-queries", claim("more-queries", often=often, lines=lines), (_queries_a_call(named), *evidence))
    if named[0].enters_kernel:
        return Cause("system-calls", claim("system-calls", often=often, lines=lines), evidence)
    return Cause("library-calls", claim("library-calls", often=often, lines=lines), evidence)


def calling_often(named: Sequence[Departure], own_ns: float = math.inf) -> Claim:
    """Tell how often functions are called, per call and, where the caller is called more than once, in a run; of the first, how long.

    Counting stretches calls somewhat: where they take all that the caller takes itself, `own_ns` a call, that is what is told.
    """
    first, *others = named
    if first.is_query:
        return asking(named)
    return claim(
        "calls-outside",
        name=first.name,
        at=first.point.label,
        base=first.base,
        head=first.head,
        instead_of=first.instead_of,
        in_run=_in_one_run(first),
        head_ns=first.head_ns,
        is_all=first.head_ns is not None and first.head * first.head_ns > _NEARLY * own_ns,
        others=tuple(claim("and-calls", name=call.name, base=call.base, head=call.head, instead_of=call.instead_of) for call in others),
    )


def asking(named: Sequence[Departure], through: str | None = None, more: tuple[float, float] | None = None) -> Claim:
    """Tell how many queries a call sends: to a database one for each element is the commonest way to grow slow.

    With `through`, it calls that function as often as `more` says on base and on head, which sends them; else they are its own.
    """
    first = named[0]
    calls_base, calls_head = more or (1.0, 1.0)
    sums = _queries_a_call(named)
    return claim(
        "asks",
        name=first.name,
        through=through,
        requests=noun(first.name) == "requests",
        per_element=not through and _per_element(named),
        base=sums.base * calls_base,
        head=sums.head * calls_head,
        at=first.point.label,
        head_ns=first.head_ns,
        in_run=None if through else _in_one_run(first),
    )


def _in_one_run(departure: Departure) -> Claim | None:
    """Tell how often all calls of the caller in a run call another function, None where a run has one of them alone."""
    is_same = departure.head_run == departure.head
    return None if is_same else claim("in-one-run", base=departure.base_run, head=departure.head_run)


def _per_element(departures: Sequence[Departure]) -> bool:
    """Return whether how many a call sends grows with the points, and did not before."""
    base, head = (sum((getattr(departure, name) for departure in departures), np.zeros(1)) for name in ("base_rates", "head_rates"))
    sent = head[head > 0]
    return len(sent) > 1 and sent.max() >= _SEVERAL * sent.min() and base.max() < _SEVERAL * max(base.min(), 1.0)


def _queries_a_call(departures: Sequence[Departure]) -> CauseFigure:
    same = [departure for departure in departures if departure.point.id == departures[0].point.id]
    return CauseFigure("queries a call", sum(departure.base for departure in same), sum(departure.head for departure in same))


def more_queries(departures: Sequence[Departure], callee: str, calls: tuple[float, float], lines: Claim | None) -> Cause | None:
    """Tell how many queries a call sends through a function that it calls more often; None where that sends none."""
    sent = _sent(departure for departure in departures if departure.is_query and departure.head >= _SENT)
    if not sent:
        return None
    sums = _queries_a_call(sent)
    evidence = (
        CauseFigure("queries a call", sums.base * calls[0], sums.head * calls[1]),
        CauseFigure(f"calls of {callee}", *calls),
    )
    return Cause("more-queries", claim("more-queries", often=asking(sent, callee, calls), lines=lines), evidence)


def slower(departures: Sequence[Departure]) -> tuple[Departure, ...]:
    """Return the calls of other code that are as many as before and take longer each, the dearest first."""
    longer = [departure for departure in departures if departure.takes_longer and not departure.grew]
    return tuple(sorted(longer, key=lambda departure: (-departure.longer_ns.sum(), departure.name)))


def prolonged(info: FunctionInfo, departures: Sequence[Departure]) -> Cause:
    """Tell how much longer each call of functions outside takes."""
    named = departures[:TOLD]
    calls = tuple(
        claim("call-takes-longer", name=call.name, at=call.point.label, base_ns=call.base_ns, head_ns=call.head_ns or 0.0) for call in named
    )
    evidence = tuple(CauseFigure(f"time of {call.name}, ns a call", call.base_ns or 0.0, call.head_ns or 0.0) for call in named)
    return Cause("library-time", claim("library-time", calls=calls, lines=_calls_of(info, named[0].name)), evidence)


def _evidence(departure: Departure) -> tuple[CauseFigure, CauseFigure]:
    return (
        CauseFigure(f"{CALLS_OF}{departure.name}", departure.base, departure.head),
        CauseFigure(f"{CALLS_OF}{departure.name} a run", departure.base_run, departure.head_run),
    )


def _calls_of(info: FunctionInfo, name: str) -> Claim | None:
    """Cite the lines of head's code that make a call, the changed ones where some do; else what changed."""
    if info.head is None:
        return because(info)
    call = _calling(name)
    for lines in (changed_lines(info), info.head.code.items()):
        if making := [line for line in lines if call.search(line[1])]:
            return cited(info.head.file, making[:_SHOWN_LINES])
    return because(info)


def _calling(name: str) -> re.Pattern[str]:
    """Return what a call of a function outside looks like in the text of a program."""
    method = method_name(name)
    if method == "<init>":
        of = re.escape(name.removesuffix(".<init>").rpartition(".")[2].rpartition("$")[2])
        return re.compile(rf"\bnew\s+(?:[\w.]+\.)?{of}\b")
    before = r"(?<!\w)" if method != name else r"(?<![\w.>])"
    return re.compile(rf"{before}{re.escape(method)}\s*\(")
