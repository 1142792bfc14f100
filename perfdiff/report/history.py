"""A function over revisions, as text and as JSON, for `log`: what its calls cost, or how what it executes grows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from perfdiff import units
from perfdiff.analysis.annotations.history import SAME_CALLS
from perfdiff.analysis.series import ChangePoint, Cost, FunctionHistory, RevisionEntry
from perfdiff.models.annotation import Annotation, coefficients, term_names
from perfdiff.models.language import readable
from perfdiff.models.shift import ExponentShift
from perfdiff.models.trend import Law
from perfdiff.records import codec
from perfdiff.report import wording
from perfdiff.report.blocks import Block, Cell, Column, Fact, Facts, Items, Sentence, Table, Tone
from perfdiff.report.machines import recorders_table
from perfdiff.report.printable import printable_values, shortened
from perfdiff.report.sentences.catalogue import noted, say
from perfdiff.report.terminal import ALL, render_blocks
from perfdiff.report.trends import wording as growing

SCHEMA = "perfdiff.log/1"
_LONGEST_FORMULA = 60
_LONGEST_SUMMARY = 40
_LONGEST_REASON = 32
_NOTHING = 1e5  # a ratio beyond it is to a cost of nothing, which counts as a thousandth (`models.levels`)


def text(history: FunctionHistory, *, width: int = 100, colour: bool = False) -> str:
    """Return a table for each metric, oldest revision first, with what changed in words above."""
    clean: FunctionHistory = printable_values(history)
    return render_blocks(list(_blocks(clean)), width=width, colour=colour, rows=ALL)


def answer(history: FunctionHistory) -> str:
    """Return in a sentence where the costs of the function, or their growth, changed."""
    clean: FunctionHistory = printable_values(history)
    return f"{clean.function}: {'; '.join(_all_changes(clean)) or _no_change(clean)}"


def metrics_of(history: FunctionHistory) -> list[str]:
    """Return the metrics that some revision has."""
    return list(dict.fromkeys(metric for entry in history.entries for metric in entry.costs))


def _blocks(history: FunctionHistory) -> Iterator[Block]:
    yield Sentence(f"{history.function}  {history.file}", Tone.STRONG)
    changes = tuple(_all_changes(history))
    yield Items("Change points", changes) if changes else Sentence(_no_change(history))
    for metric in metrics_of(history):
        says = "how often lines of it run" if history.feature else wording.metric_says(metric)
        rows = tuple(_row(entry, entry.costs.get(metric), metric, history) for entry in history.entries)
        yield Table(says, _growth_columns(history) if history.feature else _COLUMNS, rows)
    if history.reference:
        at = ", ".join(f"{name} = {units.count(value)}" for name, value in history.reference.items())
        yield Facts((Fact("costs at", at),))
    machines = recorders_table(
        history.machines, [entry.machine for entry in history.entries], [entry.revision for entry in history.entries]
    )
    if machines is not None:
        yield machines
    yield from remarks(history)


def remarks(history: FunctionHistory) -> Iterator[Items]:
    """Yield why revisions have no costs, and notes."""
    reasons = tuple(f"{wording.revision(entry.revision)}: {say(entry.reason)}" for entry in history.entries if entry.reason)
    if reasons:
        yield Items("Without counts" if history.feature else "Without costs", reasons)
    if history.notes:
        yield Items("Notes", tuple(f"{note.text} ({note.slug})" for note in map(noted, history.notes)))


def _all_changes(history: FunctionHistory) -> list[str]:
    return [says for metric in metrics_of(history) for says in _changes(history, metric)]


def _no_change(history: FunctionHistory) -> str:
    of = "of growth" if history.feature else "beyond what can be told"
    return f"No change {of} over {wording.plural(len(history.entries), 'revision')}."


def _changes(history: FunctionHistory, metric: str) -> Iterator[str]:
    before = ""
    for entry in history.entries:
        cost = entry.costs.get(metric)
        if cost is None:
            continue
        if cost.step is not None:
            where = f" at {cost.step.stratum}" if cost.step.stratum else ""
            change = f"{step_says(cost.step, metric)}, against {cost.step.since.rev}{where}"
            of = f"{before} → {cost.law.says}, exponent" if isinstance(cost.law, Law) else wording.metric_says(metric)
            yield f"{wording.revision(entry.revision)}: {of} {change}"
        before = cost.law.says if isinstance(cost.law, Law) else ""


_COLUMNS = (
    Column("revision"),
    Column("", minor=True),
    Column("calls", right=True, minor=True),
    Column("cost a call", right=True),
    Column("growth"),
    Column("change"),
    Column("annotation", minor=True),
)


def _growth_columns(history: FunctionHistory) -> tuple[Column, ...]:
    return (
        *_COLUMNS[:2],
        Column(f"blocks at {history.at}", right=True),
        Column("growth"),
        Column(f"exponent over {history.feature}"),
        Column("change"),
    )


def _row(entry: RevisionEntry, cost: Cost | None, metric: str, history: FunctionHistory) -> tuple[Cell, ...]:
    named = Cell(wording.revision(entry.revision), code=True), Cell(shortened(entry.revision.summary, _LONGEST_SUMMARY), Tone.MUTED)
    calls = Cell(wording.ABSENT if entry.calls is None else units.count(entry.calls))
    absent = Cell(wording.ABSENT)
    if cost is None:
        reason = Cell(shortened(say(entry.reason) or f"no {metric}", _LONGEST_REASON), Tone.INCONCLUSIVE)
        return (*named, absent, absent, absent, reason) if history.feature else (*named, calls, absent, absent, reason, absent)
    change = Cell(*_change(entry, cost, metric))
    if isinstance(cost.law, Law):
        return (*named, Cell(growing.amount(cost.count)), Cell(cost.law.says), Cell(growing.exponent(cost.law)), change)
    formula = "; ".join(wording.formulas(cost.law))
    return (
        *named,
        calls,
        Cell(_cost(cost, metric)),
        Cell(cost.law.growth.value),
        change,
        Cell(shortened(formula, _LONGEST_FORMULA), Tone.MUTED),
    )


def step_says(step: ChangePoint, metric: str) -> str:
    """Return a change with its interval, of exponents or as a ratio; no ratio is told of a cost that was, or became, nothing."""
    if isinstance(step.change, ExponentShift):
        return f"{step.change.exponent:+.2f} [{step.change.ci[0]:.2f}, {step.change.ci[1]:.2f}]"
    if not 1 / _NOTHING < step.change.value < _NOTHING:
        return "from nothing" if step.is_rise else "to nothing"
    return wording.interval(step.change, metric)


def _cost(cost: Cost, metric: str) -> str:
    if cost.low == cost.high or not math.isfinite(cost.high):
        return wording.call_cost(metric, cost.value)
    return f"{wording.call_cost(metric, cost.value)} [{wording.amount(metric, cost.low)}, {wording.amount(metric, cost.high)}]"


def _change(entry: RevisionEntry, cost: Cost, metric: str) -> tuple[str, Tone]:
    """Say what changed with a revision: the cost of a call, and how often it is called."""
    says, tone = [], Tone.PLAIN
    if cost.step is not None:
        says.append(step_says(cost.step, metric))
        tone = Tone.REGRESSION if cost.step.is_rise else Tone.IMPROVEMENT
    if cost.broken:
        says.append(f"not comparable: {say(cost.broken)}")
        tone = Tone.INCONCLUSIVE
    before = entry.calls_before
    if before and entry.calls and not math.isclose(before, entry.calls, rel_tol=SAME_CALLS):
        says.append(f"called {units.ratio(entry.calls / before)} as often")
    return "; ".join(says), tone


def json_document(history: FunctionHistory) -> dict[str, Any]:
    """Return what `log --format json` writes, of growth with one metric, `growth`; what is absent is None."""
    timed = {
        "reference": dict(history.reference),
        "min_effect": history.config.min_effect,
        "confidence": history.config.confidence,
    }
    machines = {"machines": [codec.encode(machine) for machine in history.machines]}
    return {
        "schema": SCHEMA,
        "function": history.function,
        "file": history.file,
        **({"feature": history.feature, "at": history.at} if history.feature else timed),
        "revisions": [_entry(entry, is_timed=not history.feature) for entry in history.entries],
        **({} if history.feature else machines),
        "notes": [{"slug": note.slug, "text": note.text} for note in map(noted, history.notes)],
    }


def _entry(entry: RevisionEntry, *, is_timed: bool) -> dict[str, Any]:
    return {
        "rev": entry.revision.rev,
        "commit": entry.revision.commit,
        "summary": entry.revision.summary,
        "reason": say(entry.reason) or None,
        **({"machine": entry.machine or None} if is_timed else {}),
        "calls": entry.calls,
        "metrics": {
            metric: _metric(cost.law, cost) if isinstance(cost.law, Annotation) else _growth(cost.law, cost)
            for metric, cost in entry.costs.items()
        },
    }


def _metric(annotation: Annotation, cost: Cost) -> dict[str, Any]:
    step = cost.step
    terms = zip(term_names(annotation), coefficients(annotation).tolist(), strict=True)
    return {
        "class": annotation.cost_class.value,
        "annotation": readable(annotation),
        "coefficients": [{"term": term, "value": value} for term, value in terms],
        "cost": wording.finite(cost.value),
        "ci": [wording.finite(cost.low), wording.finite(cost.high)],
        "n": annotation.n,
        "change": step
        and {"ratio": step.ratio.value, "ci": [step.ratio.low, step.ratio.high], "since": step.since.rev, "where": step.stratum},
        "broken": cost.broken or None,
    }


def _growth(fit: Law, cost: Cost) -> dict[str, Any]:
    step = cost.step
    shift = step.change if step and isinstance(step.change, ExponentShift) else None
    return {
        "class": fit.growth.value,
        "says": fit.says,
        "exponent": cost.value,
        "ci": [cost.low, cost.high],
        "r2": fit.r2,
        "n": fit.n,
        "count": cost.count,
        "change": {"shift": shift.exponent, "ci": list(shift.ci), "since": step.since.rev} if step and shift else None,
    }
