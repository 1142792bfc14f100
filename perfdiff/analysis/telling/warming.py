"""What is told of functions whose first calls of a run cost more than later ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from perfdiff import units
from perfdiff.analysis.verdicts.case import Case
from perfdiff.records.schema import Note, Side

MOST_NAMED = 3


def warming_note(cases: Sequence[Case]) -> Iterator[Note]:
    """Yield a note that names the dearest functions that warm up, each with the longer of its two sides' warm-ups."""
    warming = sorted((case for case in cases if case.study.warm_up), key=lambda case: -_cost_ns(case))
    if not warming:
        return
    named = [f"`{case.info.name}` ({_says(case)})" for case in warming]
    text = (
        "first calls of a run cost more than later ones with the same inputs, as where code is compiled while it runs or caches fill;"
        f" they are compared apart: {units.listed(named, MOST_NAMED)}"
    )
    yield Note("warm-up", text)


def _says(case: Case) -> str:
    side, longest = max(case.study.warm_up.items(), key=lambda item: item[1].calls)
    of = "" if len(case.study.warm_up) == len(Side) else f", in {side}"
    return f"{units.significant(longest.factor, 2)} times as much in its first {units.times(longest.calls)}{of}"


def _cost_ns(case: Case) -> float:
    column = case.ledger.place[case.info.id]
    return max(float(book.self_ns[:, column].mean()) for book in case.ledger.books.values())
