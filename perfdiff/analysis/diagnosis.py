"""Why a cost grew: evidence in a fixed order, each with its numbers and the changed lines behind it (methods §5)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from perfdiff import units
from perfdiff.analysis.attribution import Attribution, Blame
from perfdiff.analysis.findings import Cause, Evidence, MetricFinding
from perfdiff.analysis.ledger import Ledger
from perfdiff.analysis.links import LinkKind, changed_lines
from perfdiff.analysis.study import Study
from perfdiff.records.schema import METRICS, Change, FunctionInfo

# A cause must explain at least this part of the function's extra cost to be told, and a counter grow by as much to be evidence.
TELLING = 0.2
SHOWN_LINES = 4
_GREW = {
    "alloc_bytes": ("more-allocation", "it allocates {head} a call, {base} before"),
    "alloc_count": ("more-allocation", "it makes {head} allocations a call, {base} before"),
    "lock_wait_ns": ("lock-wait", "it waits {head} a call for locks, {base} before"),
    "lock_hold_ns": ("lock-hold", "it holds locks for {head} a call, {base} before"),
    "page_faults": ("page-faults", "it takes {head} page faults a call, {base} before"),
    "switches": ("switches", "it is switched out {head} times a call, {base} before"),
}


@dataclass(frozen=True, slots=True)
class Patient:
    """A guilty function: its comparisons and findings, the extra cost put down to it, and count metrics that alone make it guilty."""

    study: Study
    metrics: Mapping[str, MetricFinding]
    attribution: Attribution
    ledger: Ledger
    heavier: tuple[str, ...] = ()

    @property
    def info(self) -> FunctionInfo:
        """Return the function."""
        return self.study.info


def diagnose(patient: Patient) -> tuple[Cause, ...]:
    """Return the causes of a guilty function's extra cost, likeliest first."""
    info = patient.info
    guilt = patient.attribution.guilt.get(info.id)
    blames = [blame for blame in guilt.blames if blame.total_ns > TELLING * guilt.total_ns] if guilt and not patient.heavier else []
    lines = cited_lines(info)
    causes = [*_dependency(info), *_more_calls(patient, blames, lines)]
    if any(blame.kind is LinkKind.OWN and blame.at == info.id for blame in blames):
        causes += [*_more_work(info, patient.metrics, lines), *_counters(patient)]
    causes += _through_data(info, blames, patient.attribution, lines)
    causes += _allocation(patient, lines)
    return tuple(causes or _only_time(patient, lines))


def cited_lines(info: FunctionInfo) -> str:
    """Return the changed lines of a function as they are cited in a sentence, or ""."""
    changed = changed_lines(info)
    if not changed or info.head is None or info.change is Change.ADDED:
        return ""
    shown = "; ".join(f"{line}: `{text}`" for line, text in changed[:SHOWN_LINES])
    more = f" and {len(changed) - SHOWN_LINES} more" if len(changed) > SHOWN_LINES else ""
    return f" ({info.head.file}, line {shown}{more})"


def _dependency(info: FunctionInfo) -> Iterator[Cause]:
    if info.change is Change.AFFECTED:
        what = ", ".join(info.culprits) or "something it depends on"
        why = f" ({'; '.join(info.reasons)})" if info.reasons else ""
        yield Cause("dependency", f"its text is the same, but {what} changed{why}")


def _more_calls(patient: Patient, blames: list[Blame], lines: str) -> Iterator[Cause]:
    info = patient.info
    for blame in blames:
        if blame.kind is not LinkKind.CALLS:
            continue
        place = int(np.argmax(blame.ns))
        callee = patient.attribution.web.functions[blame.at]
        base, head = calls_per_call(info.id, blame.at, patient.ledger, place)
        part = patient.attribution.parts[place]
        column = patient.ledger.place[blame.at]
        runs = float(part.calls_base[column]), float(part.calls_head[column])
        # Where calls lead to calls of the same function again, a small change of the rate is a large one of the number.
        if blame.at == info.id or (base and head / base < math.sqrt(runs[1] / max(runs[0], 1.0))):
            said = (
                f"the recursion goes further: {units.count(runs[1])} calls of `{callee.name}` a run, {units.count(runs[0])} before{lines}"
            )
            yield Cause("deeper-recursion", said, (Evidence(f"calls of {callee.name} a run", *runs),))
        else:
            said = f"each call of `{info.name}` calls `{callee.name}` {times(head)}, {times(base)} before{lines}"
            yield Cause("more-calls", said, (Evidence(f"calls of {callee.name}", base, head),))


def times(count: float) -> str:
    """Return how often something happens, in words."""
    if count == 0:
        return "never"
    return "once" if count == 1 else f"{units.count(count)} times"


def calls_per_call(caller: int, callee: int, ledger: Ledger, place: int) -> tuple[float, float]:
    """Return calls of `callee` per call of `caller` on base and head, at the `place`-th point."""
    found = []
    for book in ledger.pair(ledger.points[place]):
        own = float(np.median(book.calls[:, ledger.place[caller]]))
        made = float(np.median(book.edges[:, ledger.place[callee], ledger.place[caller]]))
        found.append(made / own if own else 0.0)
    return found[0], found[1]


def _more_work(info: FunctionInfo, metrics: Mapping[str, MetricFinding], lines: str) -> Iterator[Cause]:
    found = metrics.get("wall_ns") or metrics.get("self_ns")
    if found is None or found.base is None or found.head is None:
        if info.change is Change.ADDED:
            yield Cause("new-work", "it is new, and nothing that it replaces cost as much")
        return
    if found.class_changed:
        yield Cause(
            "class-change",
            f"its cost was {found.base.cost_class} in {found.feature or 'its inputs'} and is now {found.head.cost_class}{lines}",
        )


def _counters(patient: Patient) -> Iterator[Cause]:
    for metric, (name, says) in _GREW.items():
        base, head = per_call(patient.info.id, metric, patient.ledger)
        if head > base * (1 + TELLING) and _matters(patient, metric, base, head):
            yield _grown(metric, name, says, (base, head))


def _grown(metric: str, name: str, says: str, values: tuple[float, float]) -> Cause:
    base, head = (units.quantity(value, METRICS[metric].unit) if value else "none" for value in values)
    return Cause(name, says.format(head=head, base=base), (Evidence(metric, *values),))


def _allocation(patient: Patient, lines: str) -> Iterator[Cause]:
    for metric in patient.heavier:
        name, says = _GREW[metric]
        cause = _grown(metric, name, says, per_call(patient.info.id, metric, patient.ledger))
        yield Cause(cause.name, cause.says + lines, cause.evidence)


def _matters(patient: Patient, metric: str, base: float, head: float) -> bool:
    """Return whether a counter's growth can be behind the time: waits must be a part of it; counts rise beyond chance."""
    if METRICS[metric].unit == "ns":
        before, after = per_call(patient.info.id, "wall_ns", patient.ledger)
        return head - base > TELLING * (after - before)
    found = patient.study.comparisons.get(metric)
    return found is None or found.overall is None or found.overall.p < 0.01


def per_call(function: int, metric: str, ledger: Ledger) -> tuple[float, float]:
    """Return a metric per call on base and head at the point where head has most of it."""
    best = (0.0, 0.0)
    for point in ledger.points:
        values = []
        for book in ledger.pair(point):
            sums = book.sums(metric)
            if sums is None:
                return 0.0, 0.0
            calls = float(np.median(book.calls[:, ledger.place[function]]))
            values.append(float(np.median(sums[:, ledger.place[function]])) / calls if calls else 0.0)
        if values[1] >= best[1]:
            best = (values[0], values[1])
    return best


def _through_data(info: FunctionInfo, blames: list[Blame], attribution: Attribution, lines: str) -> Iterator[Cause]:
    for blame in blames:
        victim = attribution.web.functions[blame.at]
        match blame.kind:
            case LinkKind.DATA:
                yield Cause("shared-data", f"it writes {blame.through}, which the slower, unchanged `{victim.name}` reads{lines}")
            case LinkKind.INPUTS:
                yield Cause("larger-inputs", f"it hands larger inputs to `{victim.name}`{lines}")
            case LinkKind.CALLEE | LinkKind.ANCESTOR:
                way = "called by" if blame.kind is LinkKind.CALLEE else "a caller of"
                yield Cause("nearest-change", f"it is the nearest change to the slower, unchanged `{victim.name}`: {way} it{lines}")
            case _:
                pass


def _only_time(patient: Patient, lines: str) -> list[Cause]:
    found = patient.metrics.get("self_ns") or patient.metrics.get("wall_ns")
    if lines and found is not None and found.ratio is not None:
        return [Cause("more-work", f"a call takes {units.ratio(found.ratio.value)} as long at equal inputs{lines}")]
    return [Cause("time-only", "its time grew and nothing that was counted did: machine, layout or I/O")]
