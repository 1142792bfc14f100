"""Lines of a file as stretches of neighbours."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

Stretch = tuple[int, int]  # first and last line


def stretches(lines: Iterable[int]) -> tuple[Stretch, ...]:
    """Return lines as stretches of neighbours, in order."""
    ordered = sorted(lines)
    if not ordered:
        return ()
    breaks = [(before, behind) for before, behind in pairwise(ordered) if behind != before + 1]
    firsts, lasts = [ordered[0], *(behind for _, behind in breaks)], [*(before for before, _ in breaks), ordered[-1]]
    return tuple(zip(firsts, lasts, strict=True))
