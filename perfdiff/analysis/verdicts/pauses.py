"""Pauses that fall into whichever call is made just then, such as a garbage collector's: a change moves them to other functions."""

from __future__ import annotations

from collections.abc import Iterable

from perfdiff.analysis.compare.compared import Comparison
from perfdiff.analysis.findings import EndToEnd, is_mean
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.sums.ledger import Ledger
from perfdiff.config import CompareConfig
from perfdiff.records.schema import Side


def moved_pauses(own: Comparison, ledger: Ledger, ends: Iterable[EndToEnd], config: CompareConfig) -> bool:
    """Return whether what an unchanged function takes more is made of pauses that other functions had before.

    Some of its calls take it: a typical one is not known to take longer, and surely gained less than all of them in the mean. And no run
    is longer: wherever the function takes more, whole runs without probes exclude that they gained so much.
    """
    if own.worst is None or own.overall is None or not is_mean(own.worst.name):
        return False
    typical, mean = (contrast.interval(config.confidence) for contrast in (own.overall, own.worst.contrast))
    if typical[0] > 0 or typical[1] >= mean[0]:
        return False
    base, head = (ledger.at_points("self_ns", side, own.function) for side in Side)
    extra_ns = {point: more for point, more in zip(ledger.points, head - base, strict=True) if more >= _least(ledger, point)}
    most_ns = {end.point.id: (end.ratio.high - 1.0) * end.base_ns for end in ends if end.ratio is not None}
    return bool(extra_ns) and all(point in most_ns and most_ns[point] < more for point, more in extra_ns.items())


def _least(ledger: Ledger, point: int) -> float:
    """Return the least that is a part of a run worth a word."""
    return POLICY.material * ledger.cost_ns(point)
