"""Ways through the calls of a program: which of some functions a function reaches first, down or up."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping


def callers(calls: Mapping[int, Iterable[int]]) -> dict[int, set[int]]:
    """Invert a call map: return the callers of each function, given the callees of each."""
    callers_of: dict[int, set[int]] = {}
    for caller, callees in calls.items():
        for callee in callees:
            callers_of.setdefault(callee, set()).add(caller)
    return callers_of


def nearest(function: int, ways: Mapping[int, Collection[int]], wanted: Collection[int]) -> set[int]:
    """Return the first `wanted` functions on all ways from a function, itself where a way leads back to it.

    `ways` are the callees of each function, or its callers.
    """
    nearest_wanted: set[int] = set()
    seen = {function}
    waiting = [function]
    while waiting:
        for neighbour in ways.get(waiting.pop(), ()):
            if neighbour in wanted:
                nearest_wanted.add(neighbour)
            elif neighbour not in seen:
                seen.add(neighbour)
                waiting.append(neighbour)
    return nearest_wanted
