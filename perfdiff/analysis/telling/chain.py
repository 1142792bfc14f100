"""The path from a guilty change to where its cost shows, step by step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from perfdiff import units
from perfdiff.analysis.blame.guilt import Blame, Extra
from perfdiff.analysis.blame.links import LinkKind, is_named_in
from perfdiff.analysis.findings import MetricFinding
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.sums.rates import calls_per_call, one_run, too_short
from perfdiff.analysis.telling.amounts import calls_per_run, times
from perfdiff.analysis.verdicts.case import Case
from perfdiff.models.clock import RESOLUTION_NS
from perfdiff.records.schema import Change, FunctionInfo

CHAIN_STEPS = 3  # places where the cost shows that a chain tells of
_STARTS = {
    LinkKind.INPUTS: "hands larger inputs on",
    LinkKind.RETURN: "returns other values",
    LinkKind.MEMORY: "allocates more",
    LinkKind.CALLED: "makes calls that nobody made before",
    LinkKind.CALLEE: "is called by",
    LinkKind.ANCESTOR: "leads to",
}
# What a place does with what reaches it.
_MEETS = {
    LinkKind.DATA: "reads it",
    LinkKind.INPUTS: "reads it",
    LinkKind.RETURN: "works with them",
    LinkKind.MEMORY: "frees it",
    LinkKind.CALLED: "runs in them",
}


def chain(case: Case, metrics: Mapping[int, Mapping[str, MetricFinding]]) -> tuple[str, ...]:
    """Tell the way from a guilty change to where its cost shows; `metrics` are the findings by function and metric."""
    guilt = case.guilt
    if guilt is None:
        return ()
    steps: list[str] = []
    least = POLICY.material * sum(max(blame.total_ns, 0.0) for blame in guilt.blames)
    for blame in [blame for blame in joined(guilt.blames) if blame.total_ns > least][:CHAIN_STEPS]:
        steps += _way(blame, case, metrics)
    return tuple(steps)


def joined(blames: Iterable[Blame]) -> tuple[Blame, ...]:
    """Return the blames, those as one that end in the same extra calls or larger inputs: a second way there is no second cost.

    The way that is told is the first one's.
    """
    found: dict[tuple[object, ...], Blame] = {}
    for number, blame in enumerate(blames):
        key: tuple[object, ...] = (number,) if blame.extra is Extra.COST else (blame.at, blame.caller, blame.extra)
        kept = found.get(key)
        found[key] = blame if kept is None else replace(kept, ns=kept.ns + blame.ns, blur=kept.blur + blame.blur)
    return tuple(found.values())


def _way(blame: Blame, case: Case, metrics: Mapping[int, Mapping[str, MetricFinding]]) -> list[str]:
    """Tell the way to one place where cost shows."""
    web = case.attribution.web
    at = web.functions[blame.at]
    name, shown = f"`{case.info.name}` ({case.info.change})", f"`{at.name}` ({_standing(at)})"
    cost = f"{units.duration(blame.total_ns)} more in all"
    if blame.kind is LinkKind.OWN:
        return [f"{name} itself: {_per_call(metrics.get(at.id, {}), case, at)}, {cost}"]
    place = int(np.argmax(blame.ns))
    if blame.kind is LinkKind.CALLS:
        base, head = calls_per_call(case.info.id, at.id, case.ledger, place)
        return [f"{name} calls {shown} {times(head)} per call, {times(base)} before", f"{shown} and what it calls: {cost}"]
    caller = web.functions[blame.caller] if blame.extra is Extra.CALLS and blame.caller is not None else None
    start = _start(blame, is_named_in(case.info, caller or at))
    near = blame.kind in (LinkKind.CALLEE, LinkKind.ANCESTOR)
    if caller is not None:
        base, head = calls_per_run(at.id, case.attribution, case.ledger, place)
        run = one_run(case.attribution.points[place], case.ledger)
        first = f"{name} {start} `{caller.name}` ({_standing(caller)})" if near else f"{name} {start}"
        return [first, f"`{caller.name}` ({_standing(caller)}) calls {shown} {times(head)} in {run}, {times(base)} before: {cost}"]
    if blame.extra is Extra.INPUTS:
        return [f"{name} {start}", f"{shown} gets larger inputs: {cost}"]
    if near:
        return [f"{name} {start} {shown}", f"{shown}: {_per_call(metrics.get(at.id, {}), case, at)}"]
    return [f"{name} {start}", f"{shown} {_MEETS[blame.kind]}: {_per_call(metrics.get(at.id, {}), case, at)}"]


def _start(blame: Blame, is_named: bool) -> str:
    """Say what a change does, as the first step on the way to where cost shows."""
    if blame.kind is LinkKind.DATA:
        return f"writes {blame.through}"
    if blame.kind is LinkKind.CALLEE and not is_named:
        return "is reached from"
    return _STARTS[blame.kind]


def _standing(info: FunctionInfo) -> str:
    return "unchanged" if info.change in (Change.CALLER, Change.UNCHANGED) else str(info.change)


def _a_call(ns: float, calls: float) -> str:
    """Return what one of so many calls takes that take `ns` together."""
    if not calls:
        return "–"
    return units.duration(ns / calls) if ns >= RESOLUTION_NS * calls else f"less than {units.duration(RESOLUTION_NS)}"


def _per_call(metrics: Mapping[str, MetricFinding], case: Case, at: FunctionInfo) -> str:
    """Return the own cost of a call on both sides, where the difference is largest."""
    found = metrics.get("self_ns")
    place = case.ledger.place[at.id]
    part = max(case.attribution.parts, key=lambda part: part.head[place] - part.base[place])
    before, after = (_a_call(sums[place], calls[place]) for sums, calls in ((part.base, part.calls_base), (part.head, part.calls_head)))
    costs = f"{before} → {after} a call"
    if found is None or found.ratio is None or found.ratio.is_unknown or too_short(at.id, "self_ns", case.ledger):
        return costs
    return f"{costs} ({units.ratio(found.ratio.value)} at equal inputs)"
