"""What is told of a cost that the first calls of a run have and later ones have not."""

from __future__ import annotations

from collections.abc import Iterator

from perfdiff import units
from perfdiff.analysis.compare.firstcall import FirstCalls
from perfdiff.analysis.findings import Cause, Evidence


def one_off(first: FirstCalls | None, least_ns: float, lines: str) -> Iterator[tuple[float, Cause]]:
    """Yield the first calls of a run as a cause, with what they explain, where they take so much more at least."""
    if first is None or first.extra_ns < least_ns or least_ns <= 0:
        return
    base, head, later_base, later_head = map(units.duration, (first.base_ns, first.head_ns, first.later_base_ns, first.later_head_ns))
    which = "first call of a run takes" if first.calls == 1 else f"first {units.count(first.calls)} calls of a run take, each,"
    once = "something is done once, such as loading, imports or compilation of hot code"
    says = f"its {which} {head}, {base} before, and later calls take {later_head}, {later_base} before: {once}{lines}"
    yield first.extra_ns, Cause("first-calls", says, (Evidence("self_ns", first.base_ns, first.head_ns),))
