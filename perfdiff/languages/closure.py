"""All that follows from some keys, step by step: what declarations depend on, and what those depend on."""

from __future__ import annotations

from collections.abc import Callable, Iterable


def closure(keys: Iterable[str], following: Callable[[str], Iterable[str]]) -> set[str]:
    """Return the keys, and all that `following` gives for them and for what it gave."""
    reached, waiting = set[str](), set(keys)
    while waiting:
        key = waiting.pop()
        reached.add(key)
        waiting.update(following(key))
        waiting -= reached
    return reached
