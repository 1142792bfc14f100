"""What an engine is: it calls a function for each of many items, somewhere, and returns the results in order.

The numbers are the same wherever that is: a task depends on its item and on what is shared alone, runs on one thread of linear algebra,
and results are taken in the items' order, never as they come. Between machines that holds as far as their processors have the same vector
instructions, by which libraries of linear algebra choose how to add.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

from perfdiff.models.threads import one_thread

T = TypeVar("T")
R = TypeVar("R")


class Engine(Protocol):
    """Runs the work on single functions, or on parts of a table."""

    @property
    def least(self) -> int:
        """Return from how many functions on the work is worth handing out."""

    def map(self, function: Callable[..., R], items: Iterable[T], *shared: object) -> Iterator[R]:
        """Yield `function(item, *shared)` of each item, in the items' order.

        `function` is one of a module, items are read as they are needed. What a call raises is raised here, and calls that have not begun
        are dropped.
        """

    def agree(self, load: Callable[[], str]) -> bool:
        """Return whether `load` says the same wherever tasks may run as it does here."""


Engines = Callable[[], AbstractContextManager[Engine | None]]  # how one is had for as long as it is needed


def alone(function: Callable[..., R], item: Any, shared: Sequence[object]) -> R:
    """Call a function as a task: on one thread."""
    with one_thread():
        return function(item, *shared)
