"""Plain bisection over the graph of commits, for evidence that is exact: each answer settles all that a commit holds, or all others."""

from __future__ import annotations

from collections.abc import Collection, Sequence


def next_commit(held: Sequence[frozenset[int]], suspects: frozenset[int], skipped: Collection[int]) -> int | None:
    """Return the suspect whose answer leaves about as many suspects either way, None where no answer can tell them apart.

    `held[i]` are the commits that commit `i` holds, itself included; the culprit is the only suspect without which nothing is bad.
    `skipped` have no answer.
    """
    sizes = {number: len(held[number] & suspects) for number in suspects if number not in skipped}
    telling = [number for number, size in sizes.items() if size < len(suspects)]
    return min(telling, key=lambda number: (abs(2 * sizes[number] - len(suspects)), number), default=None)


def narrowed(held: Sequence[frozenset[int]], suspects: frozenset[int], number: int, *, is_bad: bool) -> frozenset[int]:
    """Return the suspects that are left when commit `number` turned out bad or good."""
    return suspects & held[number] if is_bad else suspects - held[number]
