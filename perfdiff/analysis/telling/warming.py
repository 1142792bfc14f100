"""What is told of functions whose first calls of a run cost more than later ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from perfdiff.analysis.claims import Claim, claim
from perfdiff.analysis.verdicts.case import Case
from perfdiff.records.schema import Side


def warming_note(cases: Sequence[Case]) -> Iterator[Claim]:
    """Yield a note that names the dearest functions that warm up, each with the longer of its two sides' warm-ups."""
    warming = sorted((case for case in cases if case.study.warm_up), key=lambda case: -_cost_ns(case))
    if warming:
        yield claim("warm-up", functions=tuple(map(_warms_up, warming)))


def _warms_up(case: Case) -> Claim:
    side, longest = max(case.study.warm_up.items(), key=lambda item: item[1].calls)
    alone = None if len(case.study.warm_up) == len(Side) else side
    return claim("warms-up", name=case.info.name, factor=longest.factor, calls=longest.calls, side=alone)


def _cost_ns(case: Case) -> float:
    column = case.ledger.place[case.info.id]
    return max(float(book.self_ns[:, column].mean()) for book in case.ledger.books.values())
