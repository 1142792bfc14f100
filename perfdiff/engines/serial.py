"""One task after the other in this process: what is fastest for few functions, and what the other engines must equal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from perfdiff.engines.engine import alone

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Serial:
    """The engine that hands out nothing."""

    least: int = 0

    def map(self, function: Callable[..., R], items: Iterable[T], *shared: object) -> Iterator[R]:
        """Yield `function(item, *shared)` of each item."""
        return (alone(function, item, shared) for item in items)

    def agree(self, load: Callable[[], str]) -> bool:
        """Return True: the one process that works reads what this one reads."""
        return True
