"""Functions without a probe by name: where their callers are slower through them, the guilt is theirs, though no call was timed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from perfdiff.analysis.causes.citation import DEPENDENCY, cited_lines, citing
from perfdiff.analysis.claims import claim
from perfdiff.analysis.compare.shares import ALLOCATION
from perfdiff.analysis.counts.library import Departure
from perfdiff.analysis.counts.suspects import ExtraWork, work_by_counts
from perfdiff.analysis.findings import Cause, Evidence, FunctionFinding, Verdict
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.sums.ledger import open_counts
from perfdiff.records.schema import Change, Experiment, Folded


def folded_work(experiment: Experiment, leaving: Mapping[int, Sequence[Departure]]) -> tuple[ExtraWork, ...]:
    """Return the folded functions that execute more or less in a run, those that execute most more first.

    `leaving` are calls by function that leave the project's code.
    """
    alone = replace(experiment, functions=tuple(each.info for each in experiment.folded if not each.obstacle))
    counted = open_counts(alone) if alone.functions else None
    return work_by_counts(counted, counted, alone.functions, leaving) if counted else ()


def named(functions: Sequence[FunctionFinding], folded: Sequence[Folded], suspects: Sequence[ExtraWork]) -> list[FunctionFinding]:
    """Return findings in which guilty callers whose own text is the same stand behind the folded function that they are slower through."""
    order = _once([each for finding in functions for each in _apart(finding, folded, suspects)], folded)
    places = sorted((each for each in order if each.rank is not None), key=lambda each: each.rank or 0)
    rank = {id(each): place for place, each in enumerate(places, 1)}
    return [replace(each, rank=rank.get(id(each))) for each in order]


def _once(findings: Sequence[FunctionFinding], folded: Sequence[Folded]) -> list[FunctionFinding]:
    """Return findings in which a folded function stands once, as behind the caller that comes first, with what it adds in all callers.

    The bounds of the sum are the sums of the bounds, which is too wide where callers vary apart.
    """
    numbers = {each.info.id for each in folded}
    found: dict[object, FunctionFinding] = {}
    for each in findings:
        key = each.info.id if each.info.id in numbers else id(each)
        first = found.get(key)
        found[key] = each if first is None else _joined(first, each)
    return list(found.values())


def _joined(first: FunctionFinding, other: FunctionFinding) -> FunctionFinding:
    a, b = first.extra_ci_ns, other.extra_ci_ns
    return replace(
        first,
        extra_ns=first.extra_ns + other.extra_ns,
        extra_ci_ns=(a[0] + b[0], a[1] + b[1]) if a and b else None,
        share=None if first.share is None or other.share is None else first.share + other.share,
    )


def _apart(finding: FunctionFinding, folded: Sequence[Folded], suspects: Sequence[ExtraWork]) -> Iterator[FunctionFinding]:
    works = {each.function: each for each in suspects}
    guilty = _behind(finding, folded, works) if finding.rank is not None and finding.verdict is Verdict.REGRESSION else []
    if not guilty:
        yield finding
        return
    priced = [works[each.info.id].total_ns if each.info.id in works else 1.0 for each in guilty]
    for each, part in zip(guilty, priced, strict=True):
        yield _told(finding, each, works.get(each.info.id), part / sum(priced))
    names = tuple(each.info.name for each in guilty)
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


def _told(host: FunctionFinding, guilty: Folded, work: ExtraWork | None, part: float) -> FunctionFinding:
    """Return the finding on a folded function whose doing a `part` of its caller's extra cost is."""
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
        causes=_causes(host, guilty, work),
        happened=claim("happened-to-caller", obstacle=obstacle, name=name, happened=host.happened),
    )


def _causes(host: FunctionFinding, guilty: Folded, work: ExtraWork | None) -> tuple[Cause, ...]:
    """Return the causes of the host's extra cost as the guilty function's, what it executes more first, and where its own text changed.

    That the host depends on what changed is no cause beside the change itself.
    """
    lines = cited_lines(guilty.info)
    rest = [each for each in host.causes if each.name != DEPENDENCY or not lines]
    found = [*(_counted(work) if work else ()), *rest] or [Cause("changed", claim("changed", function=guilty.info.name))]
    return (citing(found[0], lines), *found[1:])


def _behind(finding: FunctionFinding, folded: Sequence[Folded], works: Mapping[int, ExtraWork]) -> list[Folded]:
    """Return the folded functions behind a slower caller, most first: those that execute more, else the only one, or the one called more.

    One whose own text changed comes before others that are only affected, by a type's size as a rule, and who makes the calls before who
    is called: more calls of a function are its caller's doing. What is executed says nothing of a caller that allocates more: only a
    change of the text does.
    """
    if finding.info.change is not Change.AFFECTED:
        return []
    held = [each for each in folded if finding.info.id in each.hosts and each.info.change.is_suspect]
    rewritten = [each for each in held if each.info.change is not Change.AFFECTED]
    if finding.rests_on in ALLOCATION:
        held, works = rewritten, {}
    held = rewritten or held
    working = sorted((each for each in held if each.info.id in works), key=lambda each: -works[each.info.id].total_ns)
    if working:
        least = POLICY.telling * works[working[0].info.id].total_ns
        return [each for each in working if works[each.info.id].total_ns >= least]
    if len(held) < 2:
        return held
    most = max(held, key=_more_calls)
    return [_caller_behind(most, held, finding)] if _more_calls(most) > 0 else []


def _caller_behind(called: Folded, held: Sequence[Folded], host: FunctionFinding) -> Folded:
    """Return the one of `held` that the further calls of `called` come from, `called` itself where none of them makes these.

    A caller does if it is called more by about as much itself, or if the host reaches `called` through such callers alone.
    """
    callers = [each for each in held if called.info.id in each.info.calls and each.info.id not in called.info.calls | {called.info.id}]
    if called.info.id in host.info.calls:
        callers = [each for each in callers if _more_calls(each) >= POLICY.most * _more_calls(called)]
    if not callers:
        return called
    rest = [each for each in held if each is not called]
    return _caller_behind(max(callers, key=_more_calls), rest, host)


def _more_calls(folded: Folded) -> float:
    return sum(folded.head_calls.values()) - sum(folded.base_calls.values())


def _counted(work: ExtraWork) -> tuple[Cause, ...]:
    evidence = tuple(Evidence(counter, base, head) for counter, (base, head) in work.by_counter.items() if head > base)
    name = "atomic-operations" if "atomics" in work.beyond_rewriting else "more-work"
    return (Cause(name, claim("it-does", does=work.says), evidence),)
