"""Functions without a probe by name: where their callers are slower through them, the guilt is theirs, though no call was timed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from perfdiff.analysis.causes.citation import DEPENDENCY, because, cited_lines, citing
from perfdiff.analysis.claims import claim
from perfdiff.analysis.compare.shares import ALLOCATION
from perfdiff.analysis.counts.library import Departure
from perfdiff.analysis.counts.memory import SHARING, MemoryEvidence, contention, is_denser
from perfdiff.analysis.counts.suspects import ExtraWork, work_by_counts
from perfdiff.analysis.counts.tallies import count_all
from perfdiff.analysis.findings import Cause, CauseFigure, FunctionFinding, Verdict
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.sums.ledger import Ledger, open_counts
from perfdiff.config import CompareConfig
from perfdiff.records.schema import Change, Experiment, FoldedFunction

Sharing = Mapping[int, MemoryEvidence]  # folded functions whose threads get in each other's way, with what was counted of them


def folded_work(experiment: Experiment, leaving: Mapping[int, Sequence[Departure]]) -> tuple[ExtraWork, ...]:
    """Return the folded functions that execute more or less in a run, those that execute most more first.

    `leaving` are calls by function that leave the project's code.
    """
    counted = _counted_alone(experiment)
    return work_by_counts(counted, counted, [fold.info for fold in experiment.folded if not fold.obstacle], leaving) if counted else ()


def folded_sharing(experiment: Experiment, config: CompareConfig) -> Sharing:
    """Return the folded functions that fetch more lines which another thread had modified, per access."""
    counted = _counted_alone(experiment)
    counts = count_all(counted, {point.id: point for point in experiment.points}, config) if counted else {}
    infos = {fold.info.id: fold.info for fold in experiment.folded}
    return {
        function: MemoryEvidence(infos[function], tallied, experiment.spots)
        for function, tallied in counts.items()
        if "hitm" in tallied and is_denser(tallied["hitm"], config)
    }


def _counted_alone(experiment: Experiment) -> Ledger | None:
    """Return what was counted of folded functions, None where nothing was."""
    alone = replace(experiment, functions=tuple(fold.info for fold in experiment.folded if not fold.obstacle))
    return open_counts(alone) if alone.functions else None


def named(
    functions: Sequence[FunctionFinding], folded: Sequence[FoldedFunction], suspects: Sequence[ExtraWork], sharing: Sharing | None = None
) -> list[FunctionFinding]:
    """Return findings in which guilty callers whose own text is the same stand behind the folded function that they are slower through."""
    works = {work.function: work for work in suspects}
    order = _once([apart for finding in functions for apart in _apart(finding, folded, works, sharing or {})], folded)
    places = sorted((finding for finding in order if finding.rank is not None), key=lambda finding: finding.rank or 0)
    rank = {id(finding): place for place, finding in enumerate(places, 1)}
    return [replace(finding, rank=rank.get(id(finding))) for finding in order]


def _once(findings: Sequence[FunctionFinding], folded: Sequence[FoldedFunction]) -> list[FunctionFinding]:
    """Return findings in which a folded function stands once, as behind the caller that comes first, with what it adds in all callers.

    The bounds of the sum are the sums of the bounds, which is too wide where callers vary apart.
    """
    numbers = {function.info.id for function in folded}
    by_key: dict[object, FunctionFinding] = {}
    for finding in findings:
        key = finding.info.id if finding.info.id in numbers else id(finding)
        first = by_key.get(key)
        by_key[key] = finding if first is None else _joined(first, finding)
    return list(by_key.values())


def _joined(first: FunctionFinding, other: FunctionFinding) -> FunctionFinding:
    a, b = first.extra_ci_ns, other.extra_ci_ns
    return replace(
        first,
        extra_ns=first.extra_ns + other.extra_ns,
        extra_ci_ns=(a[0] + b[0], a[1] + b[1]) if a and b else None,
        share=None if first.share is None or other.share is None else first.share + other.share,
    )


def _apart(
    finding: FunctionFinding, folded: Sequence[FoldedFunction], works: Mapping[int, ExtraWork], sharing: Sharing
) -> Iterator[FunctionFinding]:
    is_guilty = finding.rank is not None and finding.verdict is Verdict.REGRESSION
    works = {function: work for function, work in works.items() if _explains(work, finding)}
    waiting = _waiting_behind(finding, folded, sharing) if is_guilty else []
    guilty = waiting or (_behind(finding, folded, works) if is_guilty else [])
    if not guilty:
        yield finding
        return
    fetched = {function: place.counts["hitm"].extra for function, place in sharing.items()} if waiting else {}
    priced = [fetched.get(culprit.info.id, works[culprit.info.id].total_ns if culprit.info.id in works else 1.0) for culprit in guilty]
    for culprit, part in zip(guilty, priced, strict=True):
        yield _folded_finding(
            finding, culprit, works.get(culprit.info.id), sharing.get(culprit.info.id) if waiting else None, part / sum(priced)
        )
    names = tuple(culprit.info.name for culprit in guilty)
    reason = claim("slower-through", names=names)
    yield replace(
        finding,
        reason=reason,
        extra_ns=0.0,
        extra_ci_ns=None,
        share=None,
        first=None,
        causes=(),
        chain=(),
        happened=claim("happened", name=finding.info.name, reason=reason),
        also=(),
    )


def _explains(work: ExtraWork, host: FunctionFinding) -> bool:
    """Return whether what a function counts more may take a material part of its caller's extra cost, at its dearest."""
    return float(work.dearest_ns.sum()) >= POLICY.material * host.extra_ns


def _folded_finding(
    host: FunctionFinding, guilty: FoldedFunction, work: ExtraWork | None, waiting: MemoryEvidence | None, part: float
) -> FunctionFinding:
    """Return the finding on a folded function whose doing a `part` of its caller's extra cost is; `waiting` where that is for others."""
    name, interval = guilty.info.name, host.extra_ci_ns
    obstacle = str(guilty.obstacle) if guilty.obstacle else None
    return replace(
        host,
        info=guilty.info,
        reason=claim("slows-caller", obstacle=obstacle, caller=host.info.name, reason=host.reason),
        calls_base=sum(guilty.base_calls.values()) or None,
        calls_head=sum(guilty.head_calls.values()) or None,
        extra_ns=part * host.extra_ns,
        extra_ci_ns=(part * interval[0], part * interval[1]) if interval else None,
        share=None if host.share is None else part * host.share,
        metrics={},
        counts={},
        anomaly=None,
        causes=_causes(host, guilty, work, waiting),
        happened=claim("happened-to-caller", obstacle=obstacle, name=name, happened=host.happened),
    )


def _causes(host: FunctionFinding, guilty: FoldedFunction, work: ExtraWork | None, waiting: MemoryEvidence | None) -> tuple[Cause, ...]:
    """Return the causes of the host's extra cost as the guilty function's, what it executes more first, and where its own text changed.

    That the host depends on what changed is no cause beside the change itself. Before all others comes that it waits for other threads:
    that stretches whatever else it does, and who waits for a lock by trying again executes more.
    """
    lines = cited_lines(guilty.info)
    rest = [cause for cause in host.causes if cause.name != DEPENDENCY or not lines]
    shared = [cause for cause in rest if cause.name in SHARING]
    others = [cause for cause in rest if cause.name not in SHARING]
    more = _counted(work) if work else ()
    if waiting is not None:
        return (contention(waiting, "hitm", None, because(guilty.info)), *more, *others)
    causes = [*shared, *more, *others] or [Cause("changed", claim("changed", function=guilty.info.name))]
    return (citing(causes[0], lines), *causes[1:])


def _waiting_behind(finding: FunctionFinding, folded: Sequence[FoldedFunction], sharing: Sharing) -> list[FoldedFunction]:
    """Return the folded functions that wait for other threads where that is why their caller is slower, those that fetch most first."""
    if finding.info.change is not Change.AFFECTED or SHARING.isdisjoint(cause.name for cause in finding.causes):
        return []
    held = [fold for fold in folded if finding.info.id in fold.hosts and fold.info.change.is_suspect and fold.info.id in sharing]
    lines = {fold.info.id: sharing[fold.info.id].counts["hitm"].extra for fold in held}
    least = POLICY.telling * max(lines.values(), default=0.0)
    return sorted((fold for fold in held if lines[fold.info.id] >= least), key=lambda fold: -lines[fold.info.id])


def _behind(finding: FunctionFinding, folded: Sequence[FoldedFunction], works: Mapping[int, ExtraWork]) -> list[FoldedFunction]:
    """Return the folded functions behind a slower caller, most first: those that execute more, else the only one, or the one called more.

    One whose own text changed comes before others that are only affected, by a type's size as a rule, and who makes the calls before who
    is called: more calls of a function are its caller's doing. What is executed says nothing of a caller that allocates more: only a
    change of the text does.
    """
    if finding.info.change is not Change.AFFECTED:
        return []
    held = [function for function in folded if finding.info.id in function.hosts and function.info.change.is_suspect]
    rewritten = [function for function in held if function.info.change is not Change.AFFECTED]
    if finding.rests_on in ALLOCATION:
        held, works = rewritten, {}
    held = rewritten or held
    working = sorted((function for function in held if function.info.id in works), key=lambda function: -works[function.info.id].total_ns)
    if working:
        least = POLICY.telling * works[working[0].info.id].total_ns
        return [function for function in working if works[function.info.id].total_ns >= least]
    if len(held) < 2:
        return held
    most = max(held, key=_more_calls)
    return [_caller_behind(most, held, finding)] if _more_calls(most) > 0 else []


def _caller_behind(called: FoldedFunction, held: Sequence[FoldedFunction], host: FunctionFinding) -> FoldedFunction:
    """Return the one of `held` that the further calls of `called` come from, `called` itself where none of them makes these.

    A caller does if it is called more by about as much itself, or if the host reaches `called` through such callers alone.
    """
    callers = [other for other in held if called.info.id in other.info.calls and other.info.id not in called.info.calls | {called.info.id}]
    if called.info.id in host.info.calls:
        callers = [other for other in callers if _more_calls(other) >= POLICY.most * _more_calls(called)]
    if not callers:
        return called
    rest = [other for other in held if other is not called]
    return _caller_behind(max(callers, key=_more_calls), rest, host)


def _more_calls(folded: FoldedFunction) -> float:
    return sum(folded.head_calls.values()) - sum(folded.base_calls.values())


def _counted(work: ExtraWork) -> tuple[Cause, ...]:
    evidence = tuple(CauseFigure(counter, base, head) for counter, (base, head) in work.by_counter.items() if head > base)
    name = "atomic-operations" if "atomics" in work.beyond_rewriting else "more-work"
    return (Cause(name, claim("it-does", does=work.says), evidence),)
