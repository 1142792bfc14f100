"""The outcome of a check against annotations, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from perfdiff import units
from perfdiff.analysis.annotations.assertion import Assertion, AssertionStanding, Outside
from perfdiff.analysis.annotations.checking import Checked
from perfdiff.analysis.findings import Ratio
from perfdiff.report import wording
from perfdiff.report.blocks import Block, Cell, Column, Items, Sentence, Table, Tone
from perfdiff.report.printable import printable
from perfdiff.report.sentences.catalogue import noted, say
from perfdiff.report.terminal import render_blocks

SCHEMA = "perfdiff.check/1"

_ORDER = list(AssertionStanding)
_TONES = {
    AssertionStanding.VIOLATED: Tone.REGRESSION,
    AssertionStanding.OPEN: Tone.INCONCLUSIVE,
    AssertionStanding.FASTER: Tone.IMPROVEMENT,
}
_MOST_NAMES = 3
_OWN = "self_ns"


def text(checked: Checked, *, width: int = 100, colour: bool = False) -> str:
    """Return the answer in sentences, then a line for each assertion, then what could not be judged."""
    return render_blocks(list(_blocks(checked)), width=width, colour=colour)


def answer(checked: Checked) -> str:
    """Return what became of the annotations in one sentence or two."""
    judged, total, revision = len(checked.judged), len(checked.assertions), printable(wording.revision(checked.revision))
    violated, missing = len(checked.those(AssertionStanding.VIOLATED)), total - judged
    left = f" {wording.plural(missing, 'assertion')} could not be judged." if missing and judged else ""
    if not judged:
        return f"Not judged: none of {wording.plural(total, 'assertion')} could be held against {revision}."
    if violated:
        return f"Violated: {violated} of {wording.plural(judged, 'assertion')} on {revision}.{left}"
    if still := len(checked.those(AssertionStanding.OPEN)):
        return f"Inconclusive: {still} of {wording.plural(judged, 'assertion')} on {revision}, none violated for certain.{left}"
    return f"Every assertion that was judged holds on {revision}: {judged} of {total}.{left}"


def json_document(checked: Checked) -> dict[str, Any]:
    """Return what `check --format json` writes; what is absent is None."""
    return {
        "schema": SCHEMA,
        "verdict": checked.verdict.value,
        "revision": {"rev": checked.revision.rev, "commit": checked.revision.commit},
        "min_effect": checked.config.min_effect,
        "fdr": checked.config.fdr,
        "assertions": [_assertion(each) for each in _ordered(checked)],
        "unannotated": list(checked.unannotated),
        "notes": [{"slug": note.slug, "text": note.text} for note in map(noted, checked.notes)],
    }


def _ordered(checked: Checked) -> list[Assertion]:
    """Return the assertions in the order of interest: those violated by a function's own cost come before those of its callers."""
    inherited = _inherited(checked)

    def place(each: Assertion) -> tuple[int, bool, float]:
        return _ORDER.index(each.standing), id(each) in inherited, -(each.worst.low if each.worst else 0.0)

    return sorted(checked.assertions, key=place)


def _inherited(checked: Checked) -> set[int]:
    """Return the (ids of) violated assertions of times whose function keeps the one of its own time: a callee's cost shows there."""
    own = {each.annotation.function: each.standing for each in checked.assertions if each.annotation.metric == _OWN}
    keeps = (AssertionStanding.HOLDS, AssertionStanding.FASTER, AssertionStanding.NEGLIGIBLE)
    return {
        id(each)
        for each in checked.those(AssertionStanding.VIOLATED)
        if each.annotation.metric == "wall_ns" and own.get(each.annotation.function) in keeps
    }


def _blocks(checked: Checked) -> Iterator[Block]:
    yield Sentence(answer(checked), _TONES.get(checked.verdict, Tone.STRONG))
    inherited = _inherited(checked)
    ordered = _ordered(checked)
    for each in ordered[:_MOST_NAMES]:
        if each.standing is AssertionStanding.VIOLATED:
            yield Sentence(_violation(each, inherited=id(each) in inherited))
    faster = checked.those(AssertionStanding.FASTER)
    if faster:
        named = ", ".join(
            f"`{printable(each.annotation.function)}` ({each.annotation.metric}, {_ratio(each.overall, each)})" for each in faster
        )
        yield Sentence(f"Cheaper than annotated: {named}. Annotate anew, so that the gain is kept.")
    judged = [each for each in ordered if each.standing is not AssertionStanding.NOT_JUDGED]
    if judged:
        yield _table(judged)
    reasons = [f"`{printable(each.annotation.function)}` ({each.annotation.metric}): {say(each.reason)}" for each in ordered if each.reason]
    if reasons:
        yield Items("No answer", tuple(map(printable, reasons)))
    outside = [each for each in judged if each.outside is not None]
    if outside:
        yield Items("Beyond the annotated inputs", tuple(_outside(each, each.outside) for each in outside if each.outside))
    if checked.unannotated:
        yield Items("Without annotation", tuple(f"`{printable(name)}`" for name in checked.unannotated))
    if checked.notes:
        yield Items("Notes", tuple(printable(f"{note.text} ({note.slug})") for note in map(noted, checked.notes)))


def _violation(each: Assertion, *, inherited: bool) -> str:
    metric, where = each.annotation.metric, f" at {printable(each.stratum)}" if each.stratum else ""
    runs = len(each.passed)
    passed = sum(passes for _, passes in each.passed)
    costs = f"{wording.call_cost(metric, each.annotated)} a call by its annotation, {wording.call_cost(metric, measured(each))} measured"
    why = "; its own time holds, so a callee costs more" if inherited else ""
    return (
        f"`{printable(each.annotation.function)}` costs {_ratio(each.worst, each)}{where} in {wording.metric_says(metric)}: {costs}; "
        f"{passed} of {runs} runs pass{why}."
    )


def measured(each: Assertion) -> float | None:
    """Return the cost of a call as measured, at the inputs that `annotated` holds for."""
    return None if each.annotated is None or each.worst is None else each.annotated * each.worst.value


def _ratio(ratio: Ratio | None, each: Assertion) -> str:
    return wording.interval(ratio, each.annotation.metric)


def _table(judged: Sequence[Assertion]) -> Table:
    columns = (
        Column("function"),
        Column("metric"),
        Column("verdict"),
        Column("measured / annotated", right=True),
        Column("where"),
        Column("runs pass", right=True),
        Column("calls", right=True, minor=True),
        Column("visible from", right=True, minor=True),
    )
    return Table("", columns, tuple(_row(each) for each in judged))


def _row(each: Assertion) -> tuple[Cell, ...]:
    tone = _TONES.get(each.standing, Tone.PLAIN)
    return (
        Cell(printable(each.annotation.function), code=True),
        Cell(each.annotation.metric),
        Cell(each.standing.value, tone),
        Cell(_ratio(each.worst, each), tone),
        Cell(printable(each.stratum) or "all calls"),
        Cell(f"{sum(passes for _, passes in each.passed)} of {len(each.passed)}"),
        Cell(f"{each.calls:,}"),
        Cell(f"×{each.visible:.2f}" if each.visible is not None else wording.ABSENT),
    )


def _outside(each: Assertion, outside: Outside) -> str:
    ends = " to ".join(units.count(end) for end in outside.annotated), " to ".join(units.count(end) for end in outside.seen)
    return (
        f"`{printable(each.annotation.function)}` ({each.annotation.metric}): {wording.percent(outside.share)} of calls not judged; "
        f"`{printable(outside.feature)}` is annotated from {ends[0]}, and was {ends[1]}"
    )


def _assertion(each: Assertion) -> dict[str, Any]:
    return {
        "function": each.annotation.function,
        "metric": each.annotation.metric,
        "verdict": each.standing.value,
        "reason": say(each.reason),
        "where": each.stratum,
        "annotated": wording.known(each.annotated),
        "measured": wording.known(measured(each)),
        "ratio": each.worst.value if each.worst else None,
        "ci": _interval(each.worst),
        "overall": {"ratio": each.overall.value, "ci": _interval(each.overall)} if each.overall else None,
        "p": each.p if each.q is not None else None,
        "q": each.q,
        "visible": wording.known(each.visible),
        "runs": len(each.passed),
        "runs_annotated": each.annotation.levels.runs if each.annotation.levels else None,
        "calls": each.calls,
        "pass_rate": each.pass_rate,
        "distance": each.distance,
        "outliers": each.outliers,
        "trimmed": each.trimmed,
        "outside": _outside_document(each.outside),
    }


def _outside_document(outside: Outside | None) -> dict[str, Any] | None:
    if outside is None:
        return None
    return {"share": outside.share, "feature": outside.feature, "annotated": list(outside.annotated), "seen": list(outside.seen)}


def _interval(ratio: Ratio | None) -> list[float] | None:
    return None if ratio is None else [ratio.low, ratio.high]
