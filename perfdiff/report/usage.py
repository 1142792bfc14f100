"""What head costs at the inputs that programs in use met, in words and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from perfdiff import units
from perfdiff.analysis.annotations.consequences import FunctionInUse, InUse
from perfdiff.analysis.findings import Ratio
from perfdiff.report import wording
from perfdiff.report.blocks import Block, Cell, Column, Items, Sentence, Table, Tone
from perfdiff.report.printable import printable

SCHEMA = "perfdiff.production/1"
_COLUMNS = (Column("function"), Column("of all in use", right=True), Column("head adds", right=True), Column("ratio", right=True))
_SHOWN = 10
_NOTED = 0.01  # a share of own time that is told of


def answer(costs: InUse) -> str:
    """Return the cost of head in use, in one or two sentences."""
    sentence = f"At the inputs in use head costs {_change(costs.ratio, -1.0)} of the own time that was recorded."
    most = costs.functions[0]
    total = costs.ratio.value - 1
    if not total or abs(most.adds.value) < _NOTED / 10:
        return sentence
    where = f", at {_where(most)}" if most.concentration else ""
    return f"{sentence} {wording.percent(abs(most.adds.value / total))} of that is {printable(most.name)}'s{where}."


def json_document(costs: InUse) -> dict[str, Any]:
    """Return what `predict --production --format json` writes; what is absent is None."""
    return {
        "schema": SCHEMA,
        "ratio": _ratio(costs.ratio),
        "unknown": costs.unknown,
        "runs": costs.runs,
        "functions": [_function(function) for function in costs.functions],
    }


def _function(function: FunctionInUse) -> dict[str, Any]:
    concentration = function.concentration
    return {
        "function": function.name,
        "file": function.file,
        "share": function.share,
        "ratio": _ratio(function.ratio),
        "adds": _ratio(function.adds),
        "concentration": None
        if concentration is None
        else {"feature": concentration.feature, "above": concentration.above, "calls": concentration.calls, "added": concentration.added},
        "beyond": [
            {"feature": beyond.feature, "largest": beyond.largest, "met": beyond.met, "calls": beyond.calls} for beyond in function.beyond
        ],
    }


def _ratio(ratio: Ratio) -> dict[str, float]:
    return dict(zip(("value", "low", "high"), ratio.figures, strict=True))


def blocks(costs: InUse) -> Iterator[Block]:
    """Yield the answer in a sentence, the functions that make it, and what is not known."""
    yield Sentence(answer(costs), Tone.STRONG)
    yield from tables(costs)


def tables(costs: InUse) -> Iterator[Block]:
    """Yield which functions make the difference in use, and what is not known."""
    rows = [
        (
            Cell(printable(function.name), code=True),
            Cell(wording.percent(function.share)),
            Cell(_change(function.adds, 0.0)),
            Cell(wording.interval(function.ratio)),
        )
        for function in costs.functions[:_SHOWN]
    ]
    yield Table("In use", _COLUMNS, tuple(rows))
    if grounds := list(_grounds(costs)):
        yield Items("What this rests on", tuple(grounds))


def _grounds(costs: InUse) -> Iterator[str]:
    yield f"{wording.plural(costs.runs, 'recorded run')}; intervals hold for other runs like these"
    if costs.unknown >= _NOTED:
        yield f"{wording.percent(costs.unknown)} of the own time in use is that of functions that were not compared, and taken as it was"
    for function in costs.functions:
        for beyond in function.beyond:
            yield printable(
                f"{wording.percent(beyond.calls)} of the calls of {function.name} have {beyond.feature} up to {units.count(beyond.met)}, "
                f"and {units.count(beyond.largest)} is the most that was measured: compare at such inputs, as with --param"
            )


def _where(function: FunctionInUse) -> str:
    concentration = function.concentration
    assert concentration is not None, "it is told where there is one"
    return printable(
        f"{concentration.feature} from {units.count(concentration.above)} on, {wording.percent(concentration.calls)} of its calls"
    )


def _change(ratio: Ratio, less: float) -> str:
    """Return a ratio, or what it is more than one, in percent with a sign: `+12 % [9, 15]`."""
    value, low, high = (100 * (figure + less) for figure in ratio.figures)
    return f"{value:+.1f} % [{low:+.1f}, {high:+.1f}]"
