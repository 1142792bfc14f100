"""What a profiler saw: how much of what it sampled fell to each function itself."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isfinite

# Lines move from revision to revision, and Rust's symbols end with a digest of what they were compiled with.
_LINE = re.compile(r":\d{1,9}(?=\)?$)")
_DIGEST = re.compile(r"::h[0-9a-f]{16}$")
_OFFSET = re.compile(r"\+0x[0-9a-f]+$")


@dataclass(frozen=True, slots=True)
class FunctionSamples:
    """One profile: how much was sampled of each function by itself, and what one of that is worth in ns, None where that is unknown."""

    form: str
    own: Mapping[str, float]
    unit_ns: float | None = None

    def __post_init__(self) -> None:
        if not all(isfinite(amount) and amount >= 0 for amount in self.own.values()):
            raise ValueError("a function has less than no samples")

    @property
    def total(self) -> float:
        """Return the sum of all samples of the profile."""
        return sum(self.own.values())


def by_function(stacks: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Return the sums of amounts by the function at the top of each stack, under the name that it has in every revision."""
    sums: dict[str, float] = {}
    for function, amount in stacks:
        name = stable(function)
        sums[name] = sums.get(name, 0.0) + amount
    return sums


def stable(function: str) -> str:
    """Return a function's name without what differs from build to build: lines, offsets, digests."""
    return _DIGEST.sub("", _OFFSET.sub("", _LINE.sub("", function.strip()))) or "(no name)"
