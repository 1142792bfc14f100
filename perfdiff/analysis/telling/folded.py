"""Folded functions by name: where their callers are slower through them, the guilt is theirs, though no call of theirs was timed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from perfdiff.analysis.counts.suspects import ExtraWork, suspects_by_counts
from perfdiff.analysis.findings import Cause, Evidence, FunctionFinding, Verdict
from perfdiff.analysis.sums.ledger import open_counts
from perfdiff.records.schema import Change, Experiment, Folded


def folded_suspects(experiment: Experiment) -> tuple[ExtraWork, ...]:
    """Return the folded functions that execute more in a run, most first."""
    alone = replace(experiment, functions=tuple(each.info for each in experiment.folded))
    counted = open_counts(alone) if experiment.folded else None
    return suspects_by_counts(counted, counted, alone.functions) if counted else ()


def named(functions: Sequence[FunctionFinding], experiment: Experiment, suspects: Sequence[ExtraWork]) -> list[FunctionFinding]:
    """Return findings in which guilty callers whose own text is the same stand behind the folded function that they are slower through."""
    if not experiment.folded:
        return list(functions)
    order = [each for finding in functions for each in _apart(finding, experiment.folded, suspects)]
    places = sorted((each for each in order if each.rank is not None), key=lambda each: each.rank or 0)
    rank = {id(each): place for place, each in enumerate(places, 1)}
    return [replace(each, rank=rank.get(id(each))) for each in order]


def _apart(finding: FunctionFinding, folded: Sequence[Folded], suspects: Sequence[ExtraWork]) -> Iterator[FunctionFinding]:
    guilty = _behind(finding, folded, suspects) if finding.rank is not None and finding.verdict is Verdict.REGRESSION else None
    if guilty is None:
        yield finding
        return
    host, name = finding.info.name, guilty.info.name
    work = next((each for each in suspects if each.function == guilty.info.id), None)
    yield replace(
        finding,
        info=guilty.info,
        reason=f"its calls are too short to be timed alone; its caller `{host}` is slower through it: {finding.reason}",
        calls_base=sum(guilty.base_calls.values()) or None,
        calls_head=sum(guilty.head_calls.values()) or None,
        metrics={},
        counts={},
        anomaly=None,
        causes=(*(_counted(work) if work else ()), *finding.causes),
        headline=f"`{name}`, whose calls are too short to be timed alone, makes its caller slower: {finding.headline}",
    )
    reason = f"its code is unchanged; it is slower because of `{name}`"
    yield replace(
        finding,
        reason=reason,
        extra_ns=0.0,
        extra_ci_ns=None,
        share=None,
        first=None,
        causes=(),
        chain=(),
        headline=f"`{host}`: {reason}",
    )


def _behind(finding: FunctionFinding, folded: Sequence[Folded], suspects: Sequence[ExtraWork]) -> Folded | None:
    """Return the folded function behind a slower caller: the only one, or the one that executes most more, or is called more.

    One whose own text changed comes before others that are only affected, by a type's size as a rule.
    """
    if finding.info.change is not Change.AFFECTED:
        return None
    held = [each for each in folded if finding.info.id in each.hosts and each.info.change.is_suspect]
    held = [each for each in held if each.info.change is not Change.AFFECTED] or held
    if len(held) < 2:
        return held[0] if held else None
    priced = {each.function: each.total_ns for each in suspects}
    most = max(held, key=lambda each: (priced.get(each.info.id, 0.0), _more_calls(each)))
    return most if priced.get(most.info.id, 0.0) > 0 or _more_calls(most) > 0 else None


def _more_calls(folded: Folded) -> float:
    return sum(folded.head_calls.values()) - sum(folded.base_calls.values())


def _counted(work: ExtraWork) -> tuple[Cause, ...]:
    evidence = tuple(Evidence(counter, base, head) for counter, (base, head) in work.by_counter.items() if head > base)
    return (Cause("more-work", f"it {work.says}", evidence),)
