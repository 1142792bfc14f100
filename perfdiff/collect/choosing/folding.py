"""Suspects without a probe, folded or unable to carry one: they are measured as part of the functions that call them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from perfdiff import units
from perfdiff.collect.choosing.subjects import Subjects
from perfdiff.collect.choosing.survey import Fold, ProbeSelection, Survey
from perfdiff.collect.recordings.assembly import Assembly
from perfdiff.languages.protocol import Counterpart
from perfdiff.records.arrays import Floats
from perfdiff.records.differences import ChangeReason, Entity, SkippedFunction, depends_reason, function_entity
from perfdiff.records.schema import Change, Edges, FoldedFunction, Note, Side, Totals
from perfdiff.records.testfiles import sources_first

_HAPPENED = {Change.CHANGED: "changed", Change.ADDED: "was added", Change.REMOVED: "was removed", Change.AFFECTED: "is affected"}
_SHOWN = 3  # names that a sentence lists before it only counts


def stood_in_for(subjects: Subjects, folds: Iterable[Fold]) -> Subjects:
    """Return the subjects with the hosts of folded functions affected by these: what they cost can only show there."""
    return _standing_in(subjects, {fold.id: fold.hosts for fold in folds})


def affected_by_unprobed(subjects: Subjects, exclude: Sequence[str]) -> Subjects:
    """Return the subjects with those affected that call suspects without a probe, by way of others without one as well."""
    return _standing_in(subjects, subjects.unprobed(exclude))


def _standing_in(subjects: Subjects, hosts: Mapping[int, Iterable[int]]) -> Subjects:
    """Return the subjects with `hosts` affected, by the function whose cost they hold, unless that is known."""
    pairs = dict(subjects.pairs)
    for function, above in hosts.items():
        definition, change = subjects.pairs[function].shown, subjects.pairs[function].change
        culprit = function_entity(definition.name)
        reason = depends_reason(f"holds {culprit}, which {_HAPPENED.get(change, 'is followed')} ({definition.file}:{definition.line})")
        for host in above:
            if culprit not in pairs[host].culprits:
                pairs[host] = _affected(pairs[host], culprit, reason)
    return replace(subjects, pairs=pairs)


def _affected(host: Counterpart, culprit: Entity, reason: ChangeReason) -> Counterpart:
    if host.change in (Change.ADDED, Change.REMOVED):
        return host
    change = host.change if host.change.is_suspect else Change.AFFECTED
    return replace(host, change=change, reasons=(*host.reasons, reason), culprits=(*host.culprits, culprit))


def folded(subjects: Subjects, selection: ProbeSelection, seen: Survey) -> tuple[FoldedFunction, ...]:
    """Return the folded functions with their hosts, for the analysis."""
    ids = {choice.id for choice in selection.choices} | {fold.id for fold in selection.folds}
    infos = {info.id: info for info in subjects.infos(ids)}
    return tuple(
        FoldedFunction(
            info=infos[fold.id],
            hosts=fold.hosts,
            call_ns=fold.call_ns,
            overhead=fold.overhead,
            base_calls=_calls(fold, seen, Side.BASE),
            head_calls=_calls(fold, seen, Side.HEAD),
        )
        for fold in selection.folds
    )


def _calls(fold: Fold, seen: Survey, side: Side) -> dict[int, float]:
    return {point: float(calls) for (point, at), calls in zip(seen.cells, fold.calls, strict=True) if at is side}


def unprobed(subjects: Subjects, exclude: Sequence[str], timed: Collection[int]) -> tuple[FoldedFunction, ...]:
    """Return what the analysis needs to know of suspects that cannot carry a probe, and whose callers are `timed`."""
    hosts = {id_: tuple(host for host in above if host in timed) for id_, above in subjects.unprobed(exclude).items()}
    infos = subjects.infos({id_ for id_, above in hosts.items() if above})
    return tuple(FoldedFunction(info, hosts[info.id], {}, {}, 0.0, 0.0, subjects.obstacle(info.id, exclude)) for info in infos)


def untimed(subjects: Subjects, selection: ProbeSelection) -> tuple[SkippedFunction, ...]:
    """Return the functions of which no times are told, folded or callers that did not fit the budget, with where these are."""
    return tuple(
        SkippedFunction(
            subjects.pairs[function].shown.name,
            subjects.pairs[function].shown.file,
            f"called, but too often for what a call takes to be timed by itself: its time counts as that of {_hosts(subjects, hosts)}",
        )
        for function, hosts in ({fold.id: fold.hosts for fold in selection.folds} | dict(selection.left_out)).items()
    )


def note(subjects: Subjects, folds: Sequence[Fold]) -> tuple[Note, ...]:
    """Tell which changed functions have no times of their own, those of tests last."""
    if not folds:
        return ()
    worst = max(folds, key=lambda fold: fold.overhead)
    folded = sources_first((subjects.pairs[fold.id].shown for fold in folds), lambda definition: definition.file)
    text = (
        f"no times are told of {_listed([definition.name for definition in folded])} alone, as probes would take up to "
        f"{100 * worst.overhead:.0f} % of a run: their time counts as that of their callers ({_hosts(subjects, worst.hosts)}), "
        "and what they count is exact"
    )
    return (Note("functions-folded", text),)


def _hosts(subjects: Subjects, hosts: Iterable[int]) -> str:
    return _listed([subjects.pairs[host].shown.name for host in hosts]) or "the whole run"


def _listed(names: Sequence[str]) -> str:
    return units.listed([f"`{name}`" for name in names], _SHOWN)


def with_folded(counted: Assembly, folds: Iterable[Fold]) -> Totals:
    """Return sums of counted runs in which hosts also have what the folded functions below them counted, which keep their own rows.

    Calls of a folded function are taken as alike: each caller gets its share of them. Where folded functions call each other, with
    shares P from callee to caller among them, what arrives at them is x = own + Pᵀx, and at a host the shares of it.
    """
    counts, edges, ids = counted.totals(), counted.edges(), sorted(fold.id for fold in folds)
    if not ids:
        return counts
    names = [name for name, values in counts.other.items() if np.isfinite(values).any()]
    table = np.column_stack([counts.other[name] for name in names]) if names else np.empty((len(counts.run), 0))
    for run in np.unique(counts.run):
        rows = {int(counts.function[row]): int(row) for row in np.flatnonzero(counts.run == run)}
        _pass_on(table, rows, _shares(edges, int(run), ids), ids)
    return replace(counts, other={**counts.other, **{name: table[:, i] for i, name in enumerate(names)}})


def _shares(edges: Edges, run: int, ids: Sequence[int]) -> Mapping[tuple[int, int], float]:
    """Return of each folded function which part of its calls each caller makes."""
    of_run = edges.run == run
    shares: dict[tuple[int, int], float] = {}
    for callee in ids:
        rows = np.flatnonzero(of_run & (edges.callee == callee))
        calls = edges.calls[rows].sum()
        shares |= {(callee, int(edges.caller[row])): float(edges.calls[row] / calls) for row in rows if calls > 0}
    return shares


def _pass_on(table: Floats, rows: Mapping[int, int], shares: Mapping[tuple[int, int], float], ids: Sequence[int]) -> None:
    inside = [function for function in ids if function in rows]
    among = np.array([[shares.get((callee, caller), 0.0) for caller in inside] for callee in inside]).reshape(len(inside), len(inside))
    own = np.array([table[rows[function]] for function in inside]).reshape(len(inside), table.shape[1])
    arriving = np.linalg.solve(np.eye(len(inside)) - among.T, own)
    for (callee, caller), share in shares.items():
        if callee in inside and caller in rows and caller not in inside:
            table[rows[caller]] += share * arriving[inside.index(callee)]
