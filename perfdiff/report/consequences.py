"""What a comparison means for who uses the program, as blocks and as JSON: budgets, and what head costs at the inputs in use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from perfdiff import units
from perfdiff.analysis.annotations.consequences import BudgetFinding, BudgetStanding, Consequences
from perfdiff.report import usage, wording
from perfdiff.report.blocks import Block, Cell, Column, Sentence, Table, Tone
from perfdiff.report.printable import printable

_COLUMNS = (Column("cost"), Column("budget"), Column("head", right=True), Column("standing"))
_TONES = {
    BudgetStanding.KEPT: Tone.PLAIN,
    BudgetStanding.EXCEEDED: Tone.REGRESSION,
    BudgetStanding.OPEN: Tone.INCONCLUSIVE,
    BudgetStanding.UNKNOWN: Tone.INCONCLUSIVE,
}


def blocks(consequences: Consequences) -> Iterator[Block]:
    """Yield what stands right behind the answer of a comparison: sentences, what is worst first, and the tables behind them."""
    yield from _sentences(consequences)
    if consequences.budgets:
        yield Table("Budgets", _COLUMNS, tuple(map(_row, consequences.budgets)))
    if consequences.in_use:
        yield from usage.tables(consequences.in_use)


def _sentences(consequences: Consequences) -> Iterator[Sentence]:
    for standing in (BudgetStanding.EXCEEDED, BudgetStanding.OPEN, BudgetStanding.UNKNOWN):
        for finding in consequences.some(standing):
            yield Sentence(said(finding), _TONES[standing])
    within = len(consequences.some(BudgetStanding.KEPT))
    if within:
        yield Sentence(f"{wording.plural(within, 'budget')} of {len(consequences.budgets)} kept.")
    if consequences.in_use:
        yield Sentence(usage.answer(consequences.in_use))
    if consequences.unweighed:
        yield Sentence(f"What head costs in use is not known: {printable(consequences.unweighed)}.", Tone.INCONCLUSIVE)


def said(finding: BudgetFinding) -> str:
    """Return how a budget stands in one sentence."""
    budget = f"{finding.budget.subject}: {finding.budget.says}"
    match finding.standing:
        case BudgetStanding.KEPT:
            return printable(f"Budget kept: {budget}; it is {_cost(finding)}.")
        case BudgetStanding.EXCEEDED:
            return printable(f"Over budget: {budget}; it is {_cost(finding)}.")
        case BudgetStanding.OPEN:
            return printable(f"Budget open: {budget}; it is {_cost(finding)}, so that more runs would have to decide.")
        case BudgetStanding.UNKNOWN:
            return printable(f"Budget not known: {budget}; {finding.reason}.")


def budgets_json(consequences: Consequences) -> list[dict[str, Any]]:
    """Return the budgets for programs; costs are in ns, bytes or numbers, None where they are not known."""
    return [
        {
            "subject": finding.budget.subject,
            "budget": finding.budget.says,
            "limit": finding.budget.limit,
            "unit": finding.budget.unit,
            "standing": finding.standing.value,
            "cost": dict(zip(("value", "low", "high"), finding.cost, strict=True)) if finding.cost else None,
            "reason": finding.reason or None,
        }
        for finding in consequences.budgets
    ]


def _row(finding: BudgetFinding) -> tuple[Cell, ...]:
    budget = finding.budget
    standing = f"{finding.standing.value}: {finding.reason}" if finding.reason else finding.standing.value
    cost = _cost(finding) if finding.cost else "–"
    return (
        Cell(printable(budget.subject), code=True),
        Cell(printable(budget.says)),
        Cell(cost),
        Cell(printable(standing), _TONES[finding.standing]),
    )


def _cost(finding: BudgetFinding) -> str:
    assert finding.cost is not None, "what is known has a cost"
    value, low, high = (units.quantity(figure, finding.budget.unit) for figure in finding.cost)
    return f"{value} [{low}, {high}]"
