"""What counted runs say, in words and tables: work apart from time, counters of a call, calls whose counters are not like base's."""

from __future__ import annotations

from collections.abc import Iterator

from perfdiff import units
from perfdiff.analysis.findings import CountFinding, Findings, FunctionFinding
from perfdiff.report import wording
from perfdiff.report.blocks import Cell, Column, Items, Table

WORK = "blocks"
# More names than this in one list are no longer read.
_NAMED = 8
_SEES = (
    "counts see work, in the project's own code, and do so on the noisiest machine; they do not see what waits for memory, other threads or "
    "the system: time decides what is slower, counts say why"
)


def work(findings: Findings) -> Items | None:
    """Return how the work of changed functions differs, counted in basic blocks, or None where nothing was counted."""
    counted = [each for each in findings.functions if WORK in each.counts]
    suspects = [each for each in counted if each.info.change.is_suspect]
    if not counted:
        return None
    differing = [each for each in suspects if each.counts[WORK].grew or each.counts[WORK].shrank]
    texts = [_work(each) for each in differing[:_NAMED]]
    if len(differing) > _NAMED:
        texts.append(f"and {len(differing) - _NAMED} more")
    alike = len(suspects) - len(differing)
    if alike:
        exact = all(each.counts[WORK].exact for each in suspects if each not in differing)
        same = "exactly the same work a call" if exact else "no clearly different work a call"
        texts.append(f"{wording.plural(alike, 'changed function')}{' besides' if differing else ''}: {same}")
    return Items("Work, counted in basic blocks", (*texts, _SEES))


def _work(finding: FunctionFinding) -> str:
    found = finding.counts[WORK]
    numbers = f"{units.count(found.head)} a call, {units.count(found.base)} before"
    return f"{finding.info.name}: {numbers} ({wording.interval(found.ratio, WORK)}; {found.point.label})"


def count_tables(finding: FunctionFinding) -> Iterator[Table]:
    """Yield the table of a function's counters, base and head, each at the point where they differ most."""
    rows = tuple(_row(found) for found in finding.counts.values() if found.base or found.head)
    if rows:
        columns = (
            Column("counter"),
            Column("base", right=True),
            Column("head", right=True),
            Column("ratio", right=True),
            Column("where they differ most", minor=True),
        )
        yield Table("Counts of a call, without probed callees'", columns, rows)


def _row(found: CountFinding) -> tuple[Cell, ...]:
    return (
        Cell(wording.counter_says(found.counter)),
        Cell(wording.amount(found.counter, found.base)),
        Cell(wording.amount(found.counter, found.head)),
        Cell(wording.interval(found.ratio, found.counter)),
        Cell(found.point.label),
    )
