"""What code leads to, and all that follows from that, step by step: what declarations depend on, and what those depend on."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, KeysView
from dataclasses import dataclass, field
from typing import TypeVar

K = TypeVar("K", bound=Hashable)


@dataclass(slots=True)
class Links:
    """What a piece of code leads to: keys of declarations and functions, and names of data read and written."""

    uses: set[str] = field(default_factory=set)
    calls: set[str] = field(default_factory=set)
    reads: set[str] = field(default_factory=set)
    writes: set[str] = field(default_factory=set)


def closure(keys: Iterable[K], following: Callable[[K], Iterable[K]]) -> KeysView[K]:
    """Return the transitive closure of keys under `following`, the nearest first."""
    reached = dict.fromkeys(keys)
    waiting = deque(reached)
    while waiting:
        for key in following(waiting.popleft()):
            if key not in reached:
                reached[key] = None
                waiting.append(key)
    return reached.keys()
