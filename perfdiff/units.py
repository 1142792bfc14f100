"""Quantities as people write them: `80 µs`, `1.2 MB`, `×5.7`, `one, two and 3 more`."""

from __future__ import annotations

import math
from collections.abc import Sequence

_TIME_STEPS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))
# From here on a reader counts digits.
_LONG = 1e6
_BYTE_STEPS = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))


def _scaled(value: float, steps: tuple[tuple[float, str], ...]) -> str:
    magnitude = abs(value)
    for size, name in steps:
        if magnitude >= size * 0.9995:
            return f"{significant(value / size)} {name}"
    size, name = steps[-1]
    return f"{significant(value / size)} {name}"


def significant(value: float, digits: int = 3) -> str:
    """Return `value` with at most `digits` significant digits, without an exponent where it can be avoided."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    if abs(value) >= 10**digits - 0.5:
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"


def duration(ns: float) -> str:
    """Return nanoseconds in the unit a person would choose."""
    return _scaled(ns, _TIME_STEPS)


def size(count: float) -> str:
    """Return bytes in the unit a person would choose."""
    return _scaled(count, _BYTE_STEPS)


def count(value: float) -> str:
    """Return a number of things."""
    return significant(value, 4)


def times(value: float, digits: int = 2) -> str:
    """Return how often something ran, long numbers with a power of ten: `42,000`, `5.0e9`."""
    if abs(value) < _LONG or not math.isfinite(value):
        return count(value)
    mantissa, power = f"{value:.{digits - 1}e}".split("e")
    return f"{mantissa}e{int(power)}"


def ratio(value: float) -> str:
    """Return a factor, such as `×5.7`."""
    return f"×{significant(value)}"


def quantity(value: float, unit: str) -> str:
    """Return `value` in `unit`, one of `ns`, `bytes`, `times` or `count`."""
    match unit:
        case "ns":
            return duration(value)
        case "bytes":
            return size(value)
        case "times":
            return times(value)
        case _:
            return count(value)


def listed(texts: Sequence[str], most: int, joint: str = ",") -> str:
    """Return the first `most` of some texts, behind each but the last the `joint`, and how many more there are."""
    shown, rest = f"{joint} ".join(texts[:most]), len(texts) - most
    return f"{shown}{'' if joint == ',' else joint} and {rest:,} more" if rest > 0 else shown
