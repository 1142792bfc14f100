"""Ways through the calls of a program: which of some functions a function reaches first, down or up."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping


def callers(calls: Mapping[int, Iterable[int]]) -> dict[int, set[int]]:
    """Return who calls each function, from whom each one calls."""
    found: dict[int, set[int]] = {}
    for caller, callees in calls.items():
        for callee in callees:
            found.setdefault(callee, set()).add(caller)
    return found


def nearest(function: int, ways: Mapping[int, Collection[int]], wanted: Collection[int]) -> set[int]:
    """Return the first `wanted` functions on all ways from a function, itself where a way leads back to it.

    `ways` are the callees of each function, or its callers.
    """
    found: set[int] = set()
    seen = {function}
    waiting = [function]
    while waiting:
        for each in ways.get(waiting.pop(), ()):
            if each in wanted:
                found.add(each)
            elif each not in seen:
                seen.add(each)
                waiting.append(each)
    return found
