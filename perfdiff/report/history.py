"""A function over revisions, as text and as JSON, for `log`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from perfdiff import units
from perfdiff.analysis.annotations.history import SAME_CALLS, Cost, Entry, History, Step
from perfdiff.models.annotation import coefficients, term_names
from perfdiff.models.language import readable
from perfdiff.records import codec
from perfdiff.report import wording
from perfdiff.report.blocks import Block, Cell, Column, Fact, Facts, Items, Sentence, Table, Tone
from perfdiff.report.machines import recorders_table
from perfdiff.report.printable import printable_values, shortened
from perfdiff.report.sentences.catalogue import noted, say
from perfdiff.report.terminal import render_blocks

SCHEMA = "perfdiff.log/1"
_LONGEST_FORMULA = 60
_LONGEST_SUMMARY = 40
_LONGEST_REASON = 32
_NOTHING = 1e5  # a ratio beyond it is to a cost of nothing, which counts as a thousandth (`models.levels`)


def text(history: History, *, width: int = 100, colour: bool = False) -> str:
    """Return a table for each metric, oldest revision first, with what changed in words above."""
    clean: History = printable_values(history)
    return render_blocks(list(_blocks(clean)), width=width, colour=colour, all_rows=True)


def answer(history: History) -> str:
    """Return in a sentence where the costs of the function changed."""
    clean: History = printable_values(history)
    changes = _all_changes(clean)
    return f"{clean.function}: {'; '.join(changes)}" if changes else f"{clean.function}: {_no_change(clean)}"


def metrics_of(history: History) -> list[str]:
    """Return the metrics that some revision has."""
    return list(dict.fromkeys(metric for entry in history.entries for metric in entry.costs))


def _blocks(history: History) -> Iterator[Block]:
    yield Sentence(f"{history.function}  {history.file}", Tone.STRONG)
    changes = _all_changes(history)
    if changes:
        yield Items("Change points", tuple(changes))
    else:
        yield Sentence(_no_change(history))
    for metric in metrics_of(history):
        yield _table(history, metric)
    if history.reference:
        at = ", ".join(f"{name} = {units.count(value)}" for name, value in history.reference.items())
        yield Facts((Fact("costs at", at),))
    reasons = [f"{wording.revision(entry.revision)}: {say(entry.reason)}" for entry in history.entries if entry.reason]
    if reasons:
        yield Items("Without costs", tuple(reasons))
    machines = recorders_table(
        history.machines, [entry.machine for entry in history.entries], [entry.revision for entry in history.entries]
    )
    if machines is not None:
        yield machines
    if history.notes:
        yield Items("Notes", tuple(f"{note.text} ({note.slug})" for note in map(noted, history.notes)))


def _all_changes(history: History) -> list[str]:
    return [says for metric in metrics_of(history) for says in _changes(history, metric)]


def _no_change(history: History) -> str:
    return f"No change beyond what can be told over {wording.plural(len(history.entries), 'revision')}."


def _changes(history: History, metric: str) -> Iterator[str]:
    for entry in history.entries:
        cost = entry.costs.get(metric)
        if cost is not None and cost.step is not None:
            where = f" at {cost.step.stratum}" if cost.step.stratum else ""
            ratio = step_says(cost.step, metric)
            yield f"{wording.revision(entry.revision)}: {wording.metric_says(metric)} {ratio}, against {cost.step.since.rev}{where}"


def _table(history: History, metric: str) -> Table:
    columns = (
        Column("revision"),
        Column("", minor=True),
        Column("calls", right=True, minor=True),
        Column("cost a call", right=True),
        Column("growth"),
        Column("change"),
        Column("annotation", minor=True),
    )
    rows = tuple(_row(entry, entry.costs.get(metric), metric) for entry in history.entries)
    return Table(wording.metric_says(metric), columns, rows)


def _row(entry: Entry, cost: Cost | None, metric: str) -> tuple[Cell, ...]:
    name = Cell(wording.revision(entry.revision), code=True)
    summary = Cell(shortened(entry.revision.summary, _LONGEST_SUMMARY), Tone.MUTED)
    calls = Cell(wording.ABSENT if entry.calls is None else units.count(entry.calls))
    if cost is None:
        absent = Cell(wording.ABSENT)
        reason = shortened(say(entry.reason) or f"no {metric}", _LONGEST_REASON)
        return name, summary, calls, absent, absent, Cell(reason, Tone.INCONCLUSIVE), absent
    formula = "; ".join(wording.formulas(cost.annotation))
    change, tone = _change(entry, cost, metric)
    return (
        name,
        summary,
        calls,
        Cell(_cost(cost, metric)),
        Cell(cost.annotation.growth.value),
        Cell(change, tone),
        Cell(shortened(formula, _LONGEST_FORMULA), Tone.MUTED),
    )


def step_says(step: Step, metric: str) -> str:
    """Return a change as a ratio with its interval; none is told of a cost that was, or became, nothing."""
    if not 1 / _NOTHING < step.ratio.value < _NOTHING:
        return "from nothing" if step.ratio.value > 1 else "to nothing"
    return wording.interval(step.ratio, metric)


def _cost(cost: Cost, metric: str) -> str:
    if cost.low == cost.high or not math.isfinite(cost.high):
        return wording.call_cost(metric, cost.value)
    return f"{wording.call_cost(metric, cost.value)} [{wording.amount(metric, cost.low)}, {wording.amount(metric, cost.high)}]"


def _change(entry: Entry, cost: Cost, metric: str) -> tuple[str, Tone]:
    """Say what changed with a revision: the cost of a call, and how often it is called."""
    says, tone = [], Tone.PLAIN
    if cost.step is not None:
        says.append(step_says(cost.step, metric))
        tone = Tone.REGRESSION if cost.step.ratio.value > 1 else Tone.IMPROVEMENT
    if cost.broken:
        says.append(f"not comparable: {say(cost.broken)}")
        tone = Tone.INCONCLUSIVE
    before = entry.calls_before
    if before and entry.calls and not math.isclose(before, entry.calls, rel_tol=SAME_CALLS):
        says.append(f"called {units.ratio(entry.calls / before)} as often")
    return "; ".join(says), tone


def json_document(history: History) -> dict[str, Any]:
    """Return what `log --format json` writes; what is absent is None."""
    return {
        "schema": SCHEMA,
        "function": history.function,
        "file": history.file,
        "reference": dict(history.reference),
        "min_effect": history.config.min_effect,
        "confidence": history.config.confidence,
        "revisions": [_entry(entry) for entry in history.entries],
        "machines": [codec.encode(machine) for machine in history.machines],
        "notes": [{"slug": note.slug, "text": note.text} for note in map(noted, history.notes)],
    }


def _entry(entry: Entry) -> dict[str, Any]:
    return {
        "rev": entry.revision.rev,
        "commit": entry.revision.commit,
        "summary": entry.revision.summary,
        "reason": say(entry.reason) or None,
        "machine": entry.machine or None,
        "calls": entry.calls,
        "metrics": {metric: _metric(cost) for metric, cost in entry.costs.items()},
    }


def _metric(cost: Cost) -> dict[str, Any]:
    annotation, step = cost.annotation, cost.step
    terms = zip(term_names(annotation), coefficients(annotation).tolist(), strict=True)
    return {
        "class": annotation.cost_class.value,
        "annotation": readable(annotation),
        "coefficients": [{"term": term, "value": value} for term, value in terms],
        "cost": wording.known(cost.value),
        "ci": [wording.known(cost.low), wording.known(cost.high)],
        "n": annotation.n,
        "change": None
        if step is None
        else {"ratio": step.ratio.value, "ci": [step.ratio.low, step.ratio.high], "since": step.since.rev, "where": step.stratum},
        "broken": say(cost.broken) or None,
    }
