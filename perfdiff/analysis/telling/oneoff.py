"""What is told of a cost that the first calls of a run have and later ones have not."""

from __future__ import annotations

from collections.abc import Iterator

from perfdiff.analysis.claims import Claim, claim
from perfdiff.analysis.compare.firstcall import FirstCalls
from perfdiff.analysis.findings import Cause, Evidence


def one_off(first: FirstCalls | None, least_ns: float, lines: Claim | None) -> Iterator[tuple[float, Cause]]:
    """Yield the first calls of a run as a cause, with what they explain, where they take so much more at least."""
    if first is None or first.extra_ns < least_ns or least_ns <= 0:
        return
    says = claim(
        "first-calls",
        several=first.calls if first.calls > 1 else None,
        base_ns=first.base_ns,
        head_ns=first.head_ns,
        later_base_ns=first.later_base_ns,
        later_head_ns=first.later_head_ns,
        lines=lines,
    )
    yield first.extra_ns, Cause("first-calls", says, (Evidence("self_ns", first.base_ns, first.head_ns),))
