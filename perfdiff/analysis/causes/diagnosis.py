"""Why a cost grew: what can explain it, by how much of it that explains, each with its numbers and the changed lines behind it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from perfdiff.analysis.blame.guilt import Attribution, Blame, ExtraKind, Guilt
from perfdiff.analysis.blame.links import LinkKind, is_named_in
from perfdiff.analysis.causes.citation import DEPENDENCY, because, cited_lines, citing, depends
from perfdiff.analysis.causes.outside import (
    calling_often,
    entering,
    kernel_calls,
    left,
    library_calls,
    likeliest,
    more_queries,
    prolonged,
    queries,
    slower,
    taken_ns,
)
from perfdiff.analysis.causes.timed import one_off, time_only, waiting
from perfdiff.analysis.claims import Claim, claim
from perfdiff.analysis.compare.studied import Study
from perfdiff.analysis.counts.library import Departure
from perfdiff.analysis.counts.memory import (
    MemoryEvidence,
    compared,
    contended,
    contention,
    divided,
    executed_more,
    executes,
    is_beyond_sharing,
    is_denser,
    locality,
    missed_more,
    ordered,
    work,
)
from perfdiff.analysis.counts.objects import memory_causes
from perfdiff.analysis.counts.own_work import work_finding, works_more
from perfdiff.analysis.counts.suspects import CALLS_OF
from perfdiff.analysis.findings import Cause, CauseFigure, CountFinding, MetricFinding
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.sums.calls import reached
from perfdiff.analysis.sums.ledger import Ledger
from perfdiff.analysis.sums.rates import calls_per_call, extra_calls_ns, grew, label_of_most, per_call, run_at, too_short
from perfdiff.config import CompareConfig
from perfdiff.models.annotation import RISING
from perfdiff.models.prices import DEAREST_NS, LEAST_NS
from perfdiff.models.workcounter import WORK_METRICS
from perfdiff.records.differences import is_decorated_anew
from perfdiff.records.schema import Change, FunctionInfo, Side

# Means of fewer bytes a call are no larger block: allocators give no less.
LEAST_BLOCK = 16.0
# Causes by the counter that grew.
_GREW = {
    "alloc_bytes": "more-allocation",
    "alloc_count": "more-allocation",
    "lock_wait_ns": "lock-wait",
    "lock_hold_ns": "lock-hold",
    "page_faults": "page-faults",
    "switches": "switches",
}
_OUTSIDE = frozenset(("more-queries", "system-calls", "library-calls", "library-time"))
_BESIDE = _OUTSIDE | {"more-allocation", "more-memory", "garbage-collection"}  # told although the class of the cost changed
_OF_SHARING = frozenset(("lock-wait", "lock-hold", "locality"))


@dataclass(frozen=True, slots=True)
class Patient:
    """A guilty function: its comparisons and findings, the extra cost put down to it, and count metrics that alone make it guilty.

    `places` are where its cost may show in counts: the function itself first, then others that its change makes slower.
    """

    study: Study
    metrics: Mapping[str, MetricFinding]
    attribution: Attribution
    ledger: Ledger
    config: CompareConfig
    grown: tuple[str, ...] = ()
    places: tuple[MemoryEvidence, ...] = ()

    @property
    def info(self) -> FunctionInfo:
        """Return the function."""
        return self.study.info


@dataclass(frozen=True, slots=True)
class Explanation:
    """A cause with the extra cost that it can explain, ns in one run of each point."""

    ns: float
    cause: Cause


def diagnose(patient: Patient) -> tuple[Cause, ...]:
    """Return the causes of a guilty function's extra cost, what explains most of it first; then facts that explain none of it."""
    info, lines = patient.info, cited_lines(patient.info)
    shared = [contention(place, counter, through, because(info)) for place, counter, through in _contended(patient)]
    if patient.grown:
        grown = (_grown(metric, patient, lines) for metric in patient.grown if metric in _GREW)
        return (*shared, *_dependency(info), *_done_once(patient, lines), *grown, *_worked(patient, lines))
    guilt = patient.attribution.guilt.get(info.id)
    if guilt is None:  # named by elimination: its own calls are slower, and no extra cost of a run could be put down to it
        return (*shared, *_dependency(info), *(_done_once(patient, lines) or ([] if shared else _unexplained(patient))))
    waiting = _waiting(patient, guilt)
    explanations = [*_more_calls(patient, guilt, lines), *_through_data(patient, guilt, lines), *_own(patient, guilt, lines)]
    telling = sorted(
        (explanation for explanation in explanations if explanation.ns > POLICY.telling * guilt.total_ns),
        key=lambda explanation: -explanation.ns,
    )
    # Threads that share data wait for each other longer than the fetches take: where nothing else explains the time, or only what comes of
    # that, this does.
    is_silent = not all(explanation.cause.name in _OF_SHARING for explanation in telling)
    causes = [
        *(explanation.cause for explanation in waiting if explanation.ns or not is_silent),
        *_dependency(info),
        *(explanation.cause for explanation in telling),
    ]
    causes = causes or _unexplained(patient)
    return (*causes, *_also(patient, causes))


def _done_once(patient: Patient, lines: Claim | None) -> list[Cause]:
    """Return the first calls of a run as a cause where these take more by what is of interest, though all calls together do not tell."""
    least_ns = patient.config.min_effect * float(patient.attribution.run_ns.sum())
    return [cause for _, cause in one_off(patient.study.first, least_ns, lines)]


def _worked(patient: Patient, lines: Claim | None) -> Iterator[Cause]:
    """Tell of the work that alone makes a function guilty, its atomic operations first, then of what it calls outside."""
    for counters, tell in ((("atomics",), ordered), (WORK_METRICS, work), (("divisions",), divided)):
        if patient.places and not patient.places[0].counts.keys().isdisjoint(counter for counter in counters if counter in patient.grown):
            yield tell(patient.places[0], lines)
    departures = patient.places[0].departures if patient.places else ()
    for leaving in (queries(departures), kernel_calls(departures), library_calls(departures)):
        if any(f"{CALLS_OF}{departure.name}" in patient.grown for departure in leaving):
            yield left(patient.info, leaving)


def _waiting(patient: Patient, guilt: Guilt) -> list[Explanation]:
    """Return where a change makes a function wait for other cores or nodes, with no time explained where the fetches alone are too few.

    It is told first: waiting stretches whatever else a call does, but nothing else makes it wait. Fetches are enough where they explain
    the time, or where so many alone are a regression: what a busy machine adds to a wait, such as for a thread that holds a lock and has
    lost its CPU, is no reason for another cause.
    """
    explanations = []
    for place, counter, through in _contended(patient):
        seen = place.counts[counter]
        at = patient.attribution.points.index(seen.point.id) if seen.point.id in patient.attribution.points else None
        extra_ns = guilt.total_ns if at is None else float(guilt.ns[at])
        cause = contention(place, counter, through, because(patient.info))
        is_enough = seen.explains(extra_ns) or counter in contended(place.info.id, place.counts, patient.ledger, patient.config)
        explanations.append(Explanation(seen.most_ns if is_enough else 0.0, cause))
    return explanations


def _contended(patient: Patient) -> Iterator[tuple[MemoryEvidence, str, str | None]]:
    """Yield where the change makes a function wait for other cores or nodes, by which counter, and its name where it is another one."""
    for place in patient.places:
        for counter in LEAST_NS:
            if counter in place.counts and is_denser(place.counts[counter], patient.config):
                yield place, counter, None if place.info.id == patient.info.id else place.info.name


def _dependency(info: FunctionInfo) -> Iterator[Cause]:
    if info.change is Change.AFFECTED:
        yield Cause(DEPENDENCY, depends(info))


def _more_calls(patient: Patient, guilt: Guilt, lines: Claim | None) -> Iterator[Explanation]:
    """Tell of calls that are made more often, by the function itself or by unchanged ones through what it writes.

    All that more calls of a function take may be its doing; beside calls that it makes itself, which is seen, others explain no more than
    was put down to them.
    """
    shown = [blame for blame in guilt.blames if blame.extra is ExtraKind.CALLS]
    more = [blame for blame in shown if blame.total_ns > 0]
    gained, whole = sum(blame.total_ns for blame in more), sum(blame.total_ns for blame in shown)
    is_direct = any(blame.kind is LinkKind.CALLS and blame.total_ns > POLICY.telling * guilt.total_ns for blame in more)
    for blame in more:
        explained = blame.total_ns * max(whole, 0.0) / gained  # where others are called less often instead
        if blame.kind is LinkKind.CALLS or not is_direct:
            explained = max(explained, extra_calls_ns(blame.at, patient.ledger))
        tell = _by_itself if blame.kind is LinkKind.CALLS else _by_others
        yield Explanation(min(guilt.total_ns, explained), tell(patient, blame, lines))


def _by_itself(patient: Patient, blame: Blame, lines: Claim | None) -> Cause:
    info, place = patient.info, int(np.argmax(blame.ns))
    callee = patient.attribution.web.functions[blame.at]
    base, head = calls_per_call(info.id, blame.at, patient.ledger, place)
    runs = patient.attribution.calls_per_run(blame.at, patient.ledger, place)
    # Where calls lead to calls of the same function again, a small change of the rate is a large one of the number.
    if blame.at == info.id or (_leads_back(blame.at, info.id, patient) and base and head / base < math.sqrt(runs[1] / max(runs[0], 1.0))):
        run = run_at(patient.attribution.points[place], patient.ledger)
        says = claim("deeper-recursion", function=callee.name, run=run, base=runs[0], head=runs[1], lines=lines)
        return Cause("deeper-recursion", says, (CauseFigure(f"calls of {callee.name} a run", *runs),))
    reached = next((place.departures for place in patient.places if place.info.id == blame.at), ())
    if asked := more_queries(reached, callee.name, (base, head), lines):
        return asked
    if not base and not head:
        says = claim("leads-to-calls", function=callee.name, base=runs[0], head=runs[1], lines=lines)
        return Cause("more-calls", says, (CauseFigure(f"calls of {callee.name} a run", *runs),))
    says = claim("calls-more", caller=info.name, function=callee.name, base=base, head=head, entering=entering(reached), lines=lines)
    return Cause("more-calls", says, (CauseFigure(f"calls of {callee.name}", base, head),))


def _leads_back(callee: int, caller: int, patient: Patient) -> bool:
    """Return whether calls of a function lead to calls of it again, or of its caller."""
    callees = patient.attribution.web.callees
    below = {callee} | reached(callees, callee)
    return caller in below or any(callee in callees.get(function, frozenset()) for function in below)


def _by_others(patient: Patient, blame: Blame, lines: Claim | None) -> Cause:
    web, info = patient.attribution.web, patient.info
    assert blame.caller is not None
    callee = web.functions[blame.at].name
    place = int(np.argmax(blame.ns))
    runs = patient.attribution.calls_per_run(blame.at, patient.ledger, place)
    is_own = blame.at == info.id
    says = claim(
        "others-call-more",
        link="decorators" if is_own and blame.kind is LinkKind.CALLEE and is_decorated_anew(info.reasons) else blame.kind,
        through=blame.through,
        caller=web.functions[blame.caller].name,
        function=None if is_own else callee,
        run=run_at(patient.attribution.points[place], patient.ledger),
        base=runs[0],
        head=runs[1],
        lines=lines,
    )
    return Cause("more-calls", says, (CauseFigure(f"calls of {callee} a run", *runs),))


def _own(patient: Patient, guilt: Guilt, lines: Claim | None) -> Iterator[Explanation]:
    """Tell why the function itself costs more at equal inputs."""
    info, metrics = patient.info, patient.metrics
    ns = sum(blame.total_ns for blame in guilt.blames if blame.kind is LinkKind.OWN and blame.at == info.id)
    if ns <= 0:
        return
    once = [Explanation(min(extra_ns, ns), cause) for extra_ns, cause in one_off(patient.study.first, POLICY.most * guilt.total_ns, lines)]
    yield from once
    time = metrics.get("wall_ns") or metrics.get("self_ns")
    grown = [Explanation(explained, _grown(metric, patient)) for metric in _GREW if (explained := _explains(metric, patient, ns))]
    if time is None or time.base is None or time.head is None:
        yield from grown
        if info.change is Change.ADDED:
            yield Explanation(ns, Cause("new-work", claim("new-work")))
        return
    before, after = time.base.growth, time.head.growth
    at_counted = guilt.own_ns(info.id, np.isin(patient.attribution.points, patient.places[0].points)) if patient.places else 0.0
    part = at_counted if at_counted > 0 else ns  # of the points that were counted: counts explain none of the others
    counted = [replace(explanation, ns=explanation.ns * ns / part) for explanation in _by_counts(patient, part, lines)]
    telling = [explanation for explanation in counted if explanation.ns > POLICY.telling * ns]
    if not once and time.class_changed and {before, after} <= set(RISING) and RISING.index(after) > RISING.index(before):
        evidence = tuple(item for explanation in counted for item in explanation.cause.evidence)
        beside = [explanation for explanation in telling if explanation.cause.name in _BESIDE]
        says = claim("class-change", base=before, head=after, feature=time.feature, work=_work(patient), lines=lines)
        yield Explanation(ns, Cause("class-change", says, evidence))
        yield from beside
    elif telling:
        yield from telling
    elif grown:
        first = max(grown, key=lambda explanation: explanation.ns)
        cited = replace(first, cause=citing(first.cause, lines))
        grown = [cited if explanation is first else explanation for explanation in grown]
    elif lines and not once:
        yield Explanation(ns, Cause("more-work", _longer(patient, lines)))
    yield from grown


def _by_counts(patient: Patient, ns: float, lines: Claim | None) -> Iterator[Explanation]:
    """Tell of more work, or else of a cache that is missed more often, as far as they can explain the extra time `ns`.

    Queries and calls of the kernel come first, as each of them may cost as much as a thousand basic blocks.
    """
    counts = patient.places[0].counts if patient.places else {}
    departures = patient.places[0].departures if patient.places else ()
    yield from _departed(patient, queries(departures), ns)
    yield from _departed(patient, kernel_calls(departures), ns)
    if patient.places:
        yield from (Explanation(min(ns, most_ns), cause) for most_ns, cause in executed_more(patient.places[0], lines))
    yield from _departed(patient, _beyond_work(library_calls(departures), counts), ns)
    if longer := slower(departures):
        more_ns = sum(float(departure.longer_ns.sum()) for departure in longer)
        yield Explanation(min(ns, more_ns), prolonged(patient.info, longer))
    if patient.places:
        yield from (Explanation(min(ns, most_ns), cause) for most_ns, cause in memory_causes(patient.places[0], lines))
    if works_more(counts):
        return
    for misses in missed_more(counts, patient.config):
        if misses.explains(ns):
            yield Explanation(min(ns, misses.most_ns), locality(patient.places[0], misses.counter, lines))
            break


def _beyond_work(departures: Sequence[Departure], counts: Mapping[str, CountFinding]) -> tuple[Departure, ...]:
    """Return the calls that grew by more than the work that makes them: more of the same work is no other cause."""
    work_count = work_finding(counts)
    grown = work_count.head / work_count.base if work_count is not None and work_count.grew and work_count.base else 1.0
    return tuple(departure for departure in departures if departure.head > (1 + POLICY.telling) * grown * departure.base or grown == 1.0)


def _departed(patient: Patient, departures: Sequence[Departure], ns: float) -> Iterator[Explanation]:
    """Tell of calls that leave the project's code more often, as one cause."""
    if departures:
        likely = likeliest(patient.info, departures)
        cause = left(patient.info, likely, taken_ns(patient.info, likely[0], patient.ledger))
        yield Explanation(min(ns, sum(float(departure.dearest_ns.sum()) for departure in departures)), cause)


def _work(patient: Patient) -> Claim | None:
    """Tell how the work of a call grew, its own or what it calls outside, what may cost more; None where neither did."""
    place = patient.places[0] if patient.places else MemoryEvidence(patient.info, {})
    work_count = work_finding(place.counts)
    own_ns = work_count.most_ns if work_count is not None and work_count.grew else 0.0
    outside = likeliest(patient.info, _beyond_work([departure for departure in place.departures if departure.grew], place.counts))
    if sum(float(departure.dearest_ns.sum()) for departure in outside) > own_ns:
        return claim("it-does", does=calling_often(outside, taken_ns(patient.info, outside[0], patient.ledger)))
    return claim("works-at", counter=work_count.counter, **compared(work_count)) if work_count is not None and own_ns else None


def _longer(patient: Patient, lines: Claim | None) -> Claim:
    """Tell how much longer a call takes, by the ratio at equal inputs where calls can be timed, else by what they take in all.

    Where callees take a part that changes the ratio, it is that of the time without theirs.
    """
    own, whole = patient.metrics.get("self_ns"), patient.metrics.get("wall_ns")
    time = own or whole
    if time is None or time.ratio is None or time.ratio.is_unknown or too_short(patient.info.id, time.metric, patient.ledger):
        return claim("takes-longer", ratio=None, alone=False, lines=lines)
    is_alone = bool(own and whole and whole.ratio and not whole.ratio.low <= time.ratio.value <= whole.ratio.high)
    return claim("takes-longer", ratio=time.ratio.value, alone=is_alone, lines=lines)


def _explains(metric: str, patient: Patient, ns: float) -> float:
    """Return how much of the extra time `ns` the growth of a counter can explain, 0 where it did not clearly grow."""
    base, head = per_call(patient.info.id, metric, patient.ledger)
    if head <= base * (1 + POLICY.telling) or not grew(patient.info.id, metric, patient.ledger):
        return 0.0
    before, after = (patient.ledger.of_a_run(metric, side, patient.info.id).item() for side in Side)
    dearest = (after - before) * DEAREST_NS[metric]
    return min(dearest, ns) if dearest > POLICY.telling * ns else 0.0


def _grown(metric: str, patient: Patient, lines: Claim | None = None, is_beside: bool = False) -> Cause:
    base, head = per_call(patient.info.id, metric, patient.ledger)
    at = label_of_most(patient.info.id, metric, patient.ledger)
    says = claim("counter-grew", counter=metric, base=base, head=head, at=at, beside=is_beside, lines=lines)
    return Cause(_GREW[metric], says, (CauseFigure(metric, base, head),))


def _also(patient: Patient, causes: list[Cause]) -> Iterator[Cause]:
    """Tell of more allocation, and of locks held longer, that do not explain the time."""
    cause_names = {cause.name for cause in causes}
    if "waits-outside" not in cause_names:
        yield from _waits(patient)
    base, head = per_call(patient.info.id, "alloc_bytes", patient.ledger)
    clear = head > base * (1 + POLICY.telling) and head - base >= LEAST_BLOCK and grew(patient.info.id, "alloc_bytes", patient.ledger)
    if clear and "more-allocation" not in cause_names:
        yield _grown("alloc_bytes", patient, is_beside=True)
    held = patient.metrics.get("lock_hold_ns")
    if (
        held is not None
        and held.ratio is not None
        and held.q < patient.config.fdr
        and held.ratio.low > 1 + POLICY.telling
        and "lock-hold" not in cause_names
    ):
        yield _grown("lock_hold_ns", patient, is_beside=True)


def _waits(patient: Patient) -> tuple[Cause, ...]:
    departures = [departure for place in patient.places for departure in place.departures]
    return (waiting(patient.study.waits, departures),) if patient.study.waits else ()


def _through_data(patient: Patient, guilt: Guilt, lines: Claim | None) -> Iterator[Explanation]:
    """Tell of other functions that are slower, or get larger inputs, through what this one does."""
    info, attribution = patient.info, patient.attribution
    for blame in guilt.blames:
        at = attribution.web.functions[blame.at]
        to = claim("named" if at.change.is_suspect else "named-unchanged", name=at.name)
        if blame.extra is ExtraKind.CALLS or blame.kind is LinkKind.OWN or at.id == info.id:
            continue
        if blame.extra is ExtraKind.INPUTS or blame.kind is LinkKind.INPUTS:
            cause = Cause("larger-inputs", claim("hands-larger-inputs", through=blame.through, to=to, lines=lines))
        elif blame.kind is LinkKind.RETURN:
            cause = Cause("returned-values", claim("returned-values", to=to, works=_works(patient, at), lines=lines))
        elif blame.kind is LinkKind.MEMORY:
            cause = Cause("more-allocation", claim("allocates-what-is-freed", to=to, works=_works(patient, at), lines=lines))
        elif blame.kind is LinkKind.CALLED:
            base, head = attribution.calls_per_run(at.id, patient.ledger, int(np.argmax(blame.ns)))
            cause = Cause("more-calls", claim("dearer-calls", to=to, base=base, head=head, lines=lines))
        elif blame.kind is LinkKind.DATA:
            cause = Cause("shared-data", claim("shared-data", through=blame.through, to=to, lines=lines))
        else:
            way = claim("called-through" if blame.kind is not LinkKind.CALLEE else "calls-it" if is_named_in(info, at) else "leads-to-it")
            cause = Cause("nearest-change", claim("nearest-change", to=to, way=way, lines=lines))
        yield Explanation(blame.total_ns, cause)


def _works(patient: Patient, at: FunctionInfo) -> Claim:
    """Tell what another function does more of, by its counts where they tell."""
    counts = next((place.counts for place in patient.places if place.info.id == at.id), {})
    work_count = work_finding(counts)
    if work_count is not None and work_count.grew:
        return executes(work_count)
    missed = missed_more(counts, patient.config)
    return claim("misses", counter=missed[0].counter, **compared(missed[0])) if missed else claim("is-slower")


def _unexplained(patient: Patient) -> list[Cause]:
    """Tell what grew most with the time, though it explains too little of it; only where nothing did, it may be the machine."""
    config = patient.config
    findings = [patient.metrics[metric] for metric in _GREW if metric in patient.metrics]
    grown = [
        (finding.ratio, finding.metric, finding.stratum)
        for finding in findings
        if finding.ratio and finding.q < config.fdr and finding.ratio.low > 1
    ]
    counts = patient.places[0].counts if patient.places else {}
    grown += [
        (count.ratio, count.counter, count.point.label) for count in counts.values() if count.grew and is_beyond_sharing(count, counts)
    ]
    if not grown and (waits := _waits(patient)):
        return list(waits)
    if not grown:
        return [time_only(patient.info, counts)]
    ratio, metric, stratum = max(grown, key=lambda growth: growth[0].low)
    return [Cause(_GREW.get(metric, "more-work"), claim("explains-little", counter=metric, ratio=ratio.value, stratum=stratum))]
