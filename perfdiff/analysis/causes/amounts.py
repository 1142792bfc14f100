"""How often functions are called, and which point the figures of a cause are of."""

from __future__ import annotations

from perfdiff.analysis.blame.attribution import Attribution
from perfdiff.analysis.sums.ledger import Ledger
from perfdiff.analysis.sums.rates import most_of, per_call_at


def calls_per_run(function: int, attribution: Attribution, ledger: Ledger, place: int) -> tuple[float, float]:
    """Return the calls of a function on base and head, at the `place`-th point."""
    part, column = attribution.parts[place], ledger.place[function]
    return float(part.calls_base[column]), float(part.calls_head[column])


def point_of(function: int, metric: str, ledger: Ledger) -> str | None:
    """Name the point that the figures of a metric belong to, None where they are those of all points."""
    point = most_of(function, metric, ledger)
    alike = len({per_call_at(other, function, metric, ledger) for other in ledger.points}) == 1
    return None if point is None or alike else ledger.labels.get(point)
