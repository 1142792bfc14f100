"""The path from a guilty change to where its cost shows, step by step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from perfdiff.analysis.blame.guilt import Blame, ExtraKind
from perfdiff.analysis.blame.links import LinkKind, is_named_in
from perfdiff.analysis.claims import Claim, claim
from perfdiff.analysis.findings import MetricFinding
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.sums.rates import calls_per_call, run_at, too_short
from perfdiff.analysis.verdicts.case import Case
from perfdiff.records.schema import Change, FunctionInfo

CHAIN_STEPS = 3  # places where the cost shows that a chain tells of


def chain(case: Case, metrics: Mapping[int, Mapping[str, MetricFinding]]) -> tuple[Claim, ...]:
    """Tell the way from a guilty change to where its cost shows; `metrics` are the findings by function and metric."""
    guilt = case.guilt
    if guilt is None:
        return ()
    steps: list[Claim] = []
    least = POLICY.material * sum(max(blame.total_ns, 0.0) for blame in guilt.blames)
    for blame in [blame for blame in joined(guilt.blames) if blame.total_ns > least][:CHAIN_STEPS]:
        steps += _way(blame, case, metrics)
    return tuple(steps)


def joined(blames: Iterable[Blame]) -> tuple[Blame, ...]:
    """Return the blames, those as one that end in the same extra calls or larger inputs: a second way there is no second cost.

    The way that is told is the first one's.
    """
    by_end: dict[tuple[object, ...], Blame] = {}
    for number, blame in enumerate(blames):
        key: tuple[object, ...] = (number,) if blame.extra is ExtraKind.COST else (blame.at, blame.caller, blame.extra)
        joint = by_end.get(key)
        by_end[key] = blame if joint is None else replace(joint, ns=joint.ns + blame.ns, blur=joint.blur + blame.blur)
    return tuple(by_end.values())


def _way(blame: Blame, case: Case, metrics: Mapping[int, Mapping[str, MetricFinding]]) -> list[Claim]:
    """Tell the way to one place where cost shows."""
    web = case.attribution.web
    at = web.functions[blame.at]
    changed, shown = claim("function", name=case.info.name, standing=case.info.change), _place(at)
    if blame.kind is LinkKind.OWN:
        return [claim("costs-itself", function=changed, costs=_per_call(metrics.get(at.id, {}), case, at), ns=blame.total_ns)]
    place = int(np.argmax(blame.ns))
    if blame.kind is LinkKind.CALLS:
        base, head = calls_per_call(case.info.id, at.id, case.ledger, place)
        first = claim("calls-per-call", function=changed, callee=shown, base=base, head=head)
        return [first, claim("costs-with-callees", function=shown, ns=blame.total_ns)]
    caller = web.functions[blame.caller] if blame.extra is ExtraKind.CALLS and blame.caller is not None else None
    is_near, leads_to = blame.kind in (LinkKind.CALLEE, LinkKind.ANCESTOR), _place(caller or at)
    start = claim(
        "starts",
        function=changed,
        link="reached" if blame.kind is LinkKind.CALLEE and not is_named_in(case.info, caller or at) else blame.kind,
        through=blame.through,
        leads_to=leads_to if is_near else None,
    )
    if caller is not None:
        base, head = case.attribution.calls_per_run(at.id, case.ledger, place)
        run = run_at(case.attribution.points[place], case.ledger)
        return [start, claim("calls-in-a-run", function=leads_to, callee=shown, base=base, head=head, run=run, ns=blame.total_ns)]
    if blame.extra is ExtraKind.INPUTS:
        return [start, claim("gets-larger-inputs", function=shown, ns=blame.total_ns)]
    costs = _per_call(metrics.get(at.id, {}), case, at)
    return [start, claim("costs-there", function=shown, link=None if is_near else blame.kind, costs=costs)]


def _place(info: FunctionInfo) -> Claim:
    return claim("function", name=info.name, standing="unchanged" if info.change in (Change.CALLER, Change.UNCHANGED) else info.change)


def _per_call(metrics: Mapping[str, MetricFinding], case: Case, at: FunctionInfo) -> Claim:
    """Return the own cost of a call on both sides, where the difference is largest."""
    own, place = metrics.get("self_ns"), case.ledger.place[at.id]
    part = max(case.attribution.parts, key=lambda part: part.head[place] - part.base[place])
    sides = ((part.base[place], part.calls_base[place]), (part.head[place], part.calls_head[place]))
    base_ns, head_ns = (float(ns / calls) if calls else None for ns, calls in sides)
    is_known = own is not None and own.ratio is not None and not own.ratio.is_unknown and not too_short(at.id, "self_ns", case.ledger)
    return claim("costs-a-call", base_ns=base_ns, head_ns=head_ns, ratio=own.ratio.value if own and own.ratio and is_known else None)
