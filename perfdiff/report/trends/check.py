"""The outcome of a check against saved trends, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from perfdiff.analysis.trends.assertions import CheckedTrends, GrowthAssertion, Ruling, SavedExponent
from perfdiff.report import wording as names
from perfdiff.report.blocks import Block, Cell, Column, Items, Sentence, Table, Tone
from perfdiff.report.json_text import finite
from perfdiff.report.printable import shortened
from perfdiff.report.sentences.catalogue import say
from perfdiff.report.terminal import render_blocks
from perfdiff.report.trends import wording
from perfdiff.report.wording import ABSENT, plural

SCHEMA = "perfdiff.check-trends/1"

_ORDER = list(Ruling)
_TONES = {Ruling.VIOLATED: Tone.REGRESSION, Ruling.OPEN: Tone.INCONCLUSIVE, Ruling.LESS: Tone.IMPROVEMENT}
_MOST_NAMES = 3
_LONGEST = 80  # characters of a line that a sentence quotes


def text(checked: CheckedTrends, *, width: int = 100, colour: bool = False) -> str:
    """Return the answer in sentences, then a line for each assertion, then what could not be judged."""
    return render_blocks(list(_blocks(checked)), width=width, colour=colour)


def answer(checked: CheckedTrends) -> str:
    """Return what became of the trends in one sentence or two."""
    judged, total = len(checked.judged), len(checked.assertions)
    revision, missing = names.revision(checked.revision), total - judged
    left = f" {plural(missing, 'assertion')} could not be judged." if missing and judged else ""
    if not judged:
        return f"Not judged: none of {plural(total, 'assertion')} on growth could be held against {revision}."
    if violated := checked.those(Ruling.VIOLATED):
        return f"Violated: {len(violated)} of {plural(judged, 'assertion')} on growth, on {revision}; {_violation(violated[0])}.{left}"
    if still := len(checked.those(Ruling.OPEN)):
        return f"Inconclusive: {still} of {plural(judged, 'assertion')} on growth, on {revision}, none violated for certain.{left}"
    return (
        f"Nothing that was judged grows by a higher power on {revision} than on {names.revision(checked.saved)}: {judged} of {total}.{left}"
    )


def json_document(checked: CheckedTrends) -> dict[str, Any]:
    """Return what `check --format json` writes of trends; what is absent is None."""
    document = {
        "schema": SCHEMA,
        "verdict": checked.verdict.value,
        "revision": {"rev": checked.revision.rev, "commit": checked.revision.commit},
        "saved": {"rev": checked.saved.rev, "commit": checked.saved.commit},
        "assertions": [_assertion(each) for each in _ordered(checked)],
        "notes": [{"slug": note.slug, "text": note.text} for note in checked.notes],
    }
    result: dict[str, Any] = finite(document)
    return result


def _ordered(checked: CheckedTrends) -> list[GrowthAssertion]:
    return sorted(checked.assertions, key=lambda each: _ORDER.index(each.ruling))


def _blocks(checked: CheckedTrends) -> Iterator[Block]:
    yield Sentence(answer(checked), _TONES.get(checked.verdict, Tone.STRONG))
    ordered = _ordered(checked)
    for each in checked.those(Ruling.VIOLATED)[1:_MOST_NAMES]:
        yield Sentence(f"{_violation(each)}.")
    if less := checked.those(Ruling.LESS):
        told = ", ".join(f"{each.name} ({_now(each)})" for each in less)
        yield Sentence(f"Grows by a lower power than saved: {told}. Save the trends anew, so that the gain is kept.")
    judged = [each for each in ordered if each.ruling is not Ruling.NOT_JUDGED]
    if judged:
        yield _table(judged)
    reasons = tuple(f"{each.name}: {say(each.reason)}" for each in ordered if each.reason)
    if reasons:
        yield Items("No answer", reasons)
    partly = tuple(f"{each.name}: {each.found:,} of {each.places:,}" for each in judged if each.saved and each.found < each.places)
    if partly:
        yield Items("Lines found again", partly)
    if checked.notes:
        yield Items("Notes", tuple(f"{note.text} ({note.slug})" for note in checked.notes))


def _violation(each: GrowthAssertion) -> str:
    line = f"`{shortened(each.place.text, _LONGEST)}`" if each.place else ABSENT
    says = each.fit.says if each.fit else ABSENT
    if each.saved is None:
        return f"{each.name}, {line}, grows as {says}: exponent {_now(each)}, a higher power than any that was saved"
    at = f", most often {line} at {wording.where(each.place)}" if each.place else ""
    return f"{each.name} grows as {says}: exponent {_now(each)}, saved {_saved(each.saved)}{at}"


def _table(judged: Sequence[GrowthAssertion]) -> Table:
    columns = (
        Column("cluster"),
        Column("verdict"),
        Column("exponent"),
        Column("saved"),
        Column("over"),
        Column("growth"),
        Column("largest cost", right=True, minor=True),
        Column("lines", right=True, minor=True),
    )
    return Table("", columns, tuple(_row(each) for each in judged))


def _row(each: GrowthAssertion) -> tuple[Cell, ...]:
    tone = _TONES.get(each.ruling, Tone.PLAIN)
    return (
        Cell(each.name, code=True),
        Cell(each.ruling.value, tone),
        Cell(_now(each), tone),
        Cell(_saved(each.saved) if each.saved else "new"),
        Cell(each.fit.feature if each.fit else ABSENT),
        Cell(each.fit.says if each.fit else ABSENT),
        Cell(ABSENT if each.largest is None else wording.amount(each.largest)),
        Cell(f"{each.found or each.places:,}"),
    )


def _now(each: GrowthAssertion) -> str:
    return wording.exponent(each.fit) if each.fit else ABSENT


def _saved(saved: SavedExponent) -> str:
    return f"{saved.b:.2f} [{saved.ci[0]:.2f}, {saved.ci[1]:.2f}]"


def _assertion(each: GrowthAssertion) -> dict[str, Any]:
    place, fit, saved = each.place, each.fit, each.saved
    return {
        "cluster": each.name,
        "new": saved is None and each.ruling is Ruling.VIOLATED,
        "verdict": each.ruling.value,
        "reason": say(each.reason),
        "feature": fit.feature if fit else saved.feature if saved else None,
        "saved": {"b": saved.b, "ci_b": list(saved.ci)} if saved else None,
        "measured": {"b": fit.b, "ci_b": list(fit.ci_b), "says": fit.says, "largest": each.largest} if fit else None,
        "limit": each.limit,
        "place": {"function": place.function, "file": place.file, "line": place.line, "text": place.text} if place else None,
        "places": each.places,
        "found": each.found,
    }
