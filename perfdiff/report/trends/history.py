"""The growth of a function over revisions, as text and as JSON, for `log --metric growth`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from perfdiff.analysis.trends.growth_history import GrowthEntry, GrowthHistory
from perfdiff.models.shift import ExponentShift
from perfdiff.report import wording as names
from perfdiff.report.blocks import Block, Cell, Column, Items, Sentence, Table, Tone
from perfdiff.report.history import SCHEMA
from perfdiff.report.json_text import finite
from perfdiff.report.printable import printable_values, shortened
from perfdiff.report.sentences.catalogue import say
from perfdiff.report.terminal import render_blocks
from perfdiff.report.trends import wording
from perfdiff.report.wording import ABSENT, plural

METRIC = "growth"
_LONGEST_SUMMARY = 40
_LONGEST_REASON = 32


def text(history: GrowthHistory, *, width: int = 100, colour: bool = False) -> str:
    """Return a table, oldest revision first, with what changed in words above."""
    clean: GrowthHistory = printable_values(history)
    return render_blocks(list(_blocks(clean)), width=width, colour=colour, all_rows=True)


def answer(history: GrowthHistory) -> str:
    """Return in a sentence where the growth of the function changed."""
    clean: GrowthHistory = printable_values(history)
    return f"{clean.function}: {'; '.join(_changes(clean)) or _no_change(clean)}"


def json_document(history: GrowthHistory) -> dict[str, Any]:
    """Return what `log --metric growth --format json` writes: `perfdiff.log/1` with one metric, `growth`. What is absent is None."""
    document = {
        "schema": SCHEMA,
        "function": history.function,
        "file": history.file,
        "feature": history.feature,
        "at": history.at,
        "revisions": [_entry(entry) for entry in history.entries],
        "notes": [],
    }
    result: dict[str, Any] = finite(document)
    return result


def shift_says(shift: ExponentShift) -> str:
    """Return a shift of an exponent with its interval: `+1.00 [0.98, 1.02]`."""
    return f"{shift.exponent:+.2f} [{shift.ci[0]:.2f}, {shift.ci[1]:.2f}]"


def _entry(entry: GrowthEntry) -> dict[str, Any]:
    fit, step = entry.fit, entry.step
    change = None if step is None else {"shift": step.shift.exponent, "ci": list(step.shift.ci), "since": step.since.rev}
    growth = None
    if fit is not None:
        growth = {
            "class": fit.growth.value,
            "says": fit.says,
            "exponent": fit.b,
            "ci": list(fit.ci_b),
            "r2": fit.r2,
            "n": fit.n,
            "count": entry.largest,
            "change": change,
        }
    return {
        "rev": entry.revision.rev,
        "commit": entry.revision.commit,
        "summary": entry.revision.summary,
        "reason": say(entry.reason) or None,
        "calls": None,
        "metrics": {} if growth is None else {METRIC: growth},
    }


def _blocks(history: GrowthHistory) -> Iterator[Block]:
    yield Sentence(f"{history.function}  {history.file}", Tone.STRONG)
    changes = tuple(_changes(history))
    yield Items("Change points", changes) if changes else Sentence(_no_change(history))
    columns = (
        Column("revision"),
        Column("", minor=True),
        Column(f"blocks at {history.at}", right=True),
        Column("growth"),
        Column(f"exponent over {history.feature}"),
        Column("change"),
    )
    yield Table("how often lines of it run", columns, tuple(map(_row, history.entries)))
    reasons = tuple(f"{names.revision(entry.revision)}: {say(entry.reason)}" for entry in history.entries if entry.reason)
    if reasons:
        yield Items("Without counts", reasons)


def _row(entry: GrowthEntry) -> tuple[Cell, ...]:
    named = Cell(names.revision(entry.revision), code=True), Cell(shortened(entry.revision.summary, _LONGEST_SUMMARY), Tone.MUTED)
    if entry.fit is None or entry.largest is None:
        absent = Cell(ABSENT)
        return (*named, absent, absent, absent, Cell(shortened(say(entry.reason), _LONGEST_REASON), Tone.INCONCLUSIVE))
    change, tone = "", Tone.PLAIN
    if entry.step is not None:
        change = shift_says(entry.step.shift)
        tone = Tone.REGRESSION if entry.step.shift.exponent > 0 else Tone.IMPROVEMENT
    return (*named, Cell(wording.amount(entry.largest)), Cell(entry.fit.says), Cell(wording.exponent(entry.fit)), Cell(change, tone))


def _changes(history: GrowthHistory) -> Iterator[str]:
    before = ""
    for entry in history.entries:
        if entry.fit is None:
            continue
        if entry.step is not None:
            shift = f"exponent {shift_says(entry.step.shift)}, against {entry.step.since.rev}"
            yield f"{names.revision(entry.revision)}: {before} → {entry.fit.says}, {shift}"
        before = entry.fit.says


def _no_change(history: GrowthHistory) -> str:
    return f"No change of growth over {plural(len(history.entries), 'revision')}."
