"""How often and how much, as causes say it."""

from __future__ import annotations

from perfdiff import units
from perfdiff.analysis.blame.attribution import Attribution
from perfdiff.analysis.sums.ledger import Ledger
from perfdiff.analysis.sums.rates import most_of, per_call_at


def times(count: float) -> str:
    """Return how often something happens, in words; what nearly never does is told as such, as no reader counts zeros."""
    if count == 0:
        return "never"
    said = units.count(count) if count >= 0.001 else "less than 0.001"
    return "once" if said == "1" else f"{said} times"


def calls_per_run(function: int, attribution: Attribution, ledger: Ledger, place: int) -> tuple[float, float]:
    """Return the calls of a function on base and head, at the `place`-th point."""
    part, column = attribution.parts[place], ledger.place[function]
    return float(part.calls_base[column]), float(part.calls_head[column])


def amount(value: float, unit: str) -> str:
    """Return a mean of calls as people write it."""
    if unit == "bytes" and 0 < value < 1:
        return "less than 1 B"
    return units.quantity(value, unit) if value else "none"


def where(function: int, metric: str, ledger: Ledger) -> str:
    """Name the point that the figures of a metric belong to, where they are not those of all points."""
    point = most_of(function, metric, ledger)
    alike = len({per_call_at(each, function, metric, ledger) for each in ledger.points}) == 1
    return "" if point is None or alike or point not in ledger.labels else f" at {ledger.labels[point]}"
