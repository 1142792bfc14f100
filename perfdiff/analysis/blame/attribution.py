"""Move guilt from where the extra cost shows to the change that causes it, over the call tree and through shared data."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from perfdiff.analysis.blame.changes import ChangeParts
from perfdiff.analysis.blame.guilt import Attribution, Blame, ExtraKind, Guilt
from perfdiff.analysis.blame.links import (
    BlameLink,
    LinkKind,
    Web,
    behind_inputs,
    behind_new_calls,
    behind_some_new_calls,
    behind_state,
    introducers,
)
from perfdiff.analysis.blame.netting import Transfer, move, netted
from perfdiff.analysis.blame.parts import take_apart
from perfdiff.analysis.blame.resampling import Drawn, blocks_of, draw, intervals, scaled
from perfdiff.analysis.claims import Claim, claim
from perfdiff.analysis.compare.compared import Comparison
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.stats.inference import contrasts_at_point
from perfdiff.analysis.stats.runs import Group
from perfdiff.analysis.sums.ledger import Ledger
from perfdiff.records.arrays import Bools, Floats
from perfdiff.records.differences import is_decorated_anew
from perfdiff.records.schema import Change, Feature


@dataclass(frozen=True, slots=True)
class Resample:
    """How intervals of guilt are drawn."""

    seed: int = 1
    confidence: float = 0.95


@dataclass(frozen=True, slots=True)
class CostBreakdown:
    """Extra cost taken apart, with the sums and the ties between functions that it was taken apart by."""

    ledger: Ledger
    web: Web
    parts: tuple[ChangeParts, ...]


def attribute(
    ledger: Ledger,
    web: Web,
    comparisons: Mapping[int, Comparison],
    proved: Mapping[int, int],
    resample: Resample = Resample(),
) -> Attribution:
    """Put the extra cost of all functions down to the changes that cause it.

    `comparisons` are those of self time by function. `proved` says of which functions a different cost at equal inputs is
    beyond doubt: 1 slower, -1 faster; differences of the others are noise.
    """
    parts = tuple(take_apart(point, ledger, web.functions, comparisons) for point in ledger.points)
    blames: list[Blame] = []
    lost: dict[int, Floats] = {}
    workload = np.zeros(len(parts))
    for function in ledger.ids:
        grown = comparisons[function].grown if function in comparisons else ()
        cost = _cost(function, ledger, web, parts, proved)
        inputs = _inputs(function, ledger, web, parts, grown)
        calls = _calls(function, ledger, web, parts, grown)
        blames += [*cost.blames, *inputs.blames, *calls.blames]
        rest = cost.rest if grown else cost.rest + calls.rest
        workload = workload + (inputs.rest + calls.rest if grown else inputs.rest)
        if grown and not inputs.blames and not web.functions[function].change.is_suspect and proved.get(function, 0) <= 0:
            workload = workload + _beyond_base(function, ledger, parts)
        if rest.any():
            lost[function] = rest
    run_ns = np.array([ledger.cost_ns(point) for point in ledger.points])
    credit = _credits(ledger, web, parts, proved)
    net, transfers = netted(_by_suspect(blames, ledger, parts, web), credit, web)
    sure = _with_intervals(net, transfers, credit, CostBreakdown(ledger, web, parts), resample)
    noises = sums_noise([its_guilt.family for its_guilt in sure.values()], ledger)
    guilt = {suspect: replace(its_guilt, noise=noise) for (suspect, its_guilt), noise in zip(sure.items(), noises, strict=True)}
    return Attribution(ledger.points, run_ns, guilt, lost, workload, parts, web)


def unattributed(ledger: Ledger, web: Web) -> Attribution:
    """Return the attribution of an experiment before anybody is blamed: what a run costs, and who calls whom."""
    run_ns = np.array([ledger.cost_ns(point) for point in ledger.points])
    return Attribution(ledger.points, run_ns, {}, {}, np.zeros(len(ledger.points)), (), web)


@dataclass(frozen=True, slots=True)
class Apportionment:
    """Blames for a part of a function's extra cost, and the `rest` (points,) that has none."""

    blames: list[Blame]
    rest: Floats


def _cost(function: int, ledger: Ledger, web: Web, parts: tuple[ChangeParts, ...], proved: Mapping[int, int]) -> Apportionment:
    """Blame for a different cost at equal inputs: the function itself if it changed, else who is behind its state."""
    nothing = np.zeros(len(parts))
    ns = np.array([part.cost[ledger.place[function]] for part in parts])
    change = web.functions[function].change
    blur = np.array([part.cost_blur[ledger.place[function]] for part in parts])
    if change is Change.ADDED:
        return Apportionment(_introduced(function, ns, blur, web), nothing)
    # Slower in one stratum, yet not in sum, is nothing to put down to anyone.
    if change is not Change.REMOVED and ns.sum() * proved.get(function, 0) <= 0:
        return Apportionment([], nothing)
    shown = VisibleCost(function, ns, blur, ExtraKind.COST)
    makers = behind_some_new_calls(web, function)
    is_new = np.array([_is_partly_new(part, ledger.place[function]) for part in parts], bool) & (ns > 0)
    if not makers or not is_new.any():
        return _spread(_behind_cost(web, function), shown)
    own, new = (_spread(links, shown.at_points(where)) for links, where in ((_behind_cost(web, function), ~is_new), (makers, is_new)))
    return Apportionment([*own.blames, *new.blames], own.rest + new.rest)


def _is_partly_new(part: ChangeParts, place: int) -> bool:
    """Return whether so many of head's calls at a point are new that they can be what its calls cost more."""
    return bool(part.calls_base[place] > 0 and part.calls_head[place] > POLICY.partly_new * part.calls_base[place])


def _behind_cost(web: Web, function: int) -> list[BlameLink]:
    """Return who is behind a different cost at equal inputs.

    A suspect that is only laid out anew is so itself, unless its calls are mostly new, or it does more work: neither is a matter of layout.
    """
    own = [BlameLink(function, LinkKind.OWN, 1.0)]
    if not web.functions[function].change.is_suspect:
        return behind_state(web, function)
    if function not in web.laid_out_anew:
        return own
    others = behind_state(web, function) if function in web.works_more else behind_new_calls(web, function)
    return [link for link in others if link.suspect != function] or own


def _introduced(function: int, ns: Floats, blur: Floats, web: Web) -> list[Blame]:
    """Split the cost of an added function between it and the changed functions behind it: neither costs anything without the other."""
    callers = sorted(introducers(web, function))
    part = 2 if callers else 1
    own = Blame(function, function, LinkKind.OWN, ns / part, blur / part)
    share = part * max(len(callers), 1)
    return [own, *(Blame(function, caller, LinkKind.CALLS, ns / share, blur / share, ExtraKind.CALLS, caller=caller) for caller in callers)]


def _inputs(function: int, ledger: Ledger, web: Web, parts: tuple[ChangeParts, ...], grown: tuple[Feature, ...]) -> Apportionment:
    """Blame for larger inputs: who passes or stores them; the rest comes from the workload."""
    place = ledger.place[function]
    ns, blur = np.array([part.inputs[place] for part in parts]), np.array([part.inputs_blur[place] for part in parts])
    return _spread(behind_inputs(web, function, grown) if ns.any() else [], VisibleCost(function, ns, blur, ExtraKind.INPUTS))


def _beyond_base(function: int, ledger: Ledger, parts: tuple[ChangeParts, ...]) -> Floats:
    """Return what a function takes more, where its inputs are larger, than they are expected to cost by what base's ones did, (points,).

    It is as fast as before at equal inputs, as far as runs tell: then larger ones simply cost more than smaller ones let expect.
    """
    place = ledger.place[function]
    return np.array([max(float(part.cost[place]), 0.0) if part.frame.mix[place] > 1 else 0.0 for part in parts])


def _calls(function: int, ledger: Ledger, web: Web, parts: tuple[ChangeParts, ...], grown: tuple[Feature, ...]) -> Apportionment:
    """Blame for calls that the function makes more often per call of its own: itself if it changed, else who is behind it.

    What stands around a callee decides which calls reach it: one whose decorators changed is itself behind more calls by an unchanged
    function. So is one whose text changed, where nothing of the function is known to differ.
    """
    place = ledger.place[function]
    by_calls = np.array([part.by_calls[:, place] for part in parts])  # (points, callees)
    blur = np.array([part.calls_blur[:, place] for part in parts])
    if web.functions[function].change.is_suspect:
        links = behind_new_calls(web, function) or [BlameLink(function, LinkKind.CALLS, 1.0)]
    else:
        links = behind_inputs(web, function, grown) if grown else behind_state(web, function)
    callees = np.flatnonzero(by_calls.any(axis=0))
    spread = [
        _spread(
            _behind_calls_of(ledger.ids[i], function, links, web),
            VisibleCost(ledger.ids[i], by_calls[:, i], blur[:, i], ExtraKind.CALLS, function),
        )
        for i in callees
    ]
    return Apportionment(
        [blame for portion in spread for blame in portion.blames], sum((portion.rest for portion in spread), np.zeros(len(parts)))
    )


def _behind_calls_of(callee: int, function: int, links: list[BlameLink], web: Web) -> list[BlameLink]:
    if web.is_known_to_differ(function) or web.functions[callee].change is not Change.CHANGED:
        return links
    is_behind = is_decorated_anew(web.functions[callee].reasons) or web.functions[function].change.is_suspect
    return [BlameLink(callee, LinkKind.CALLEE, 1.0)] if is_behind else links


@dataclass(frozen=True, slots=True)
class VisibleCost:
    """Extra cost where it shows, before anybody is blamed; the fields are those of `Blame`."""

    at: int
    ns: Floats
    blur: Floats
    extra: ExtraKind
    caller: int | None = None

    def at_points(self, where: Bools) -> VisibleCost:
        """Return the part of the cost that shows at some points."""
        return replace(self, ns=np.where(where, self.ns, 0.0), blur=np.where(where, self.blur, 0.0))


def _spread(links: Iterable[BlameLink], cost: VisibleCost) -> Apportionment:
    blames = [
        Blame(cost.at, link.suspect, link.kind, cost.ns * link.weight, cost.blur * link.weight, cost.extra, link.through, cost.caller)
        for link in links
    ]
    return Apportionment(blames, np.zeros_like(cost.ns) if blames else cost.ns)


def _by_suspect(blames: Iterable[Blame], ledger: Ledger, parts: tuple[ChangeParts, ...], web: Web) -> dict[int, Guilt]:
    gathered: dict[int, list[Blame]] = {}
    for blame in blames:
        gathered.setdefault(blame.by, []).append(blame)
    guilt = {}
    for suspect, its_blames in gathered.items():
        gross = np.sum(
            [_seen_against(kind, at, ledger, parts, web) for kind, at in {(blame.kind, blame.at) for blame in its_blames}], axis=0
        )
        its_blames.sort(key=lambda blame: -blame.total_ns)
        ns = np.sum([blame.ns for blame in its_blames], axis=0)
        guilt[suspect] = Guilt(ns, gross, tuple(its_blames), _blur(its_blames), np.zeros_like(ns), family=_family(its_blames, web))
    return guilt


def _blur(blames: Iterable[Blame]) -> Floats | float:
    """Return what blames together may be off. Calls that one callee lost and another gained, below the same caller, are off by as much."""
    calls, others = (sum(blame.blur for blame in blames if (blame.extra is ExtraKind.CALLS) is of_calls) for of_calls in (True, False))
    return np.abs(calls) + others


def _family(blames: Iterable[Blame], web: Web) -> frozenset[int]:
    """Return the functions that only one side has, with the changed ones that call them, in or out of which their work may have moved."""
    alone = {blame.at for blame in blames if web.functions[blame.at].change in (Change.ADDED, Change.REMOVED)}
    return frozenset(alone.union(*(introducers(web, function) for function in alone)))


def sums_noise(families: Sequence[frozenset[int]], ledger: Ledger) -> list[Floats]:
    """Return what the sum of each family's own times may differ by for all that the runs tell, each (points,) ns a run."""
    columns = [[ledger.place[function] for function in sorted(family)] for family in families]
    nonempty = [place for place, members in enumerate(columns) if members]
    widths = np.zeros((len(families), len(ledger.points)))
    for at, point in enumerate(ledger.points if nonempty else ()):
        books = ledger.pair(point)
        sums = [np.array([book.self_ns[:, columns[place]].sum(axis=1) for place in nonempty]) for book in books]
        seen = contrasts_at_point(*(Group(sum_ns, book.blocks, book.machines) for sum_ns, book in zip(sums, books, strict=True)))
        widths[nonempty, at] = [contrast.half_width(POLICY.sums) if contrast else np.inf for contrast in seen]
    return list(widths)


def _seen_against(kind: LinkKind, at: int, ledger: Ledger, parts: tuple[ChangeParts, ...], web: Web) -> Floats:
    """Return the base cost (points,) that an extra cost is to be compared with.

    Its own, where a function got slower; that of all calls, where there are more of them; that of its callers, where it was added.
    """
    place = ledger.place[at]
    if web.functions[at].change is Change.ADDED:
        callers = [ledger.place[caller] for caller in web.callers.get(at, frozenset()) - {0, at}]
        return np.array([float(part.inclusive[callers].max(initial=0.0)) for part in parts])
    return np.array([float(part.inclusive[place] if kind is LinkKind.CALLS else part.base[place]) for part in parts])


def _credits(ledger: Ledger, web: Web, parts: tuple[ChangeParts, ...], proved: Mapping[int, int]) -> dict[int, Floats]:
    """Return what changed functions seem to save, proved or not: work moved out of them may hide in their noise."""
    credit = {}
    for function in ledger.ids:
        if web.functions[function].change.is_suspect and not proved.get(function):
            saved = np.array([min(part.cost[ledger.place[function]], 0.0) for part in parts])
            if saved.any():
                credit[function] = saved
    return credit


def _with_intervals(
    guilt: Mapping[int, Guilt], transfers: Sequence[Transfer], credited: Collection[int], breakdown: CostBreakdown, resample: Resample
) -> dict[int, Guilt]:
    """Return the guilt with its intervals: all of it again in every draw of the blocks."""
    ledger, parts = breakdown.ledger, breakdown.parts
    drawn = draw(ledger, [part.frame for part in parts], resample.seed)
    if drawn is None:
        return dict(guilt)
    ns = {suspect: np.sum([_drawn(blame, breakdown, drawn) for blame in its_guilt.blames], axis=0) for suspect, its_guilt in guilt.items()}
    left = {function: np.minimum(drawn.cost[:, :, ledger.place[function]], 0.0) for function in credited}
    for transfer in transfers:
        move(ns, left, transfer)
    interval_by_suspect = intervals(ns, blocks_of(ledger), resample.confidence)
    return {suspect: replace(its_guilt, interval=interval_by_suspect[suspect]) for suspect, its_guilt in guilt.items()}


def _drawn(blame: Blame, breakdown: CostBreakdown, drawn: Drawn) -> Floats:
    """Return a blame's extra cost in every draw, (draws, points)."""
    at, width = breakdown.ledger.place[blame.at], len(breakdown.ledger.ids)
    if blame.extra is ExtraKind.INPUTS:
        return scaled(np.array([part.inputs[at] for part in breakdown.parts]), blame.ns, drawn.inputs[:, :, at])
    if blame.extra is ExtraKind.COST or breakdown.web.functions[blame.at].change is Change.ADDED:
        return scaled(np.array([part.cost[at] for part in breakdown.parts]), blame.ns, drawn.cost[:, :, at])
    caller = breakdown.ledger.place[blame.caller] if blame.caller else width
    calls = np.array([part.frame.net[at, caller] for part in breakdown.parts])
    most = np.array([part.frame.most[at, caller] for part in breakdown.parts])
    drawn_ns = np.minimum(drawn.a_call[:, :, at], most) * calls
    return scaled(np.array([part.by_calls[at, caller] for part in breakdown.parts]), blame.ns, drawn_ns)


def unattributed_notes(attribution: Attribution) -> Iterator[Claim]:
    """Say which extra cost no change explains."""
    for function, ns in attribution.unattributed.items():
        if attribution.is_material(ns, 0.0, np.zeros_like(ns)):
            yield claim("unattributed", name=attribution.web.functions[function].name, ns=float(ns.sum()))
