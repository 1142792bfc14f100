"""What another tool measured: benchmarks with all repetitions that its file holds, and what it says of where they ran."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

NANOSECONDS: Mapping[str, float] = {
    "ns": 1.0, "us": 1e3, "µs": 1e3, "μs": 1e3, "ms": 1e6, "s": 1e9, "m": 6e10, "min": 6e10, "h": 3.6e12, "hr": 3.6e12, "day": 8.64e13
}  # fmt: skip
LONGEST_NS = 1e18  # thirty years
_NUMBER = re.compile(r"[+-]?(?:\d{1,18}(?:\.\d{1,18})?|\.\d{1,18})(?:[eE][+-]?\d{1,2})?")

Value = float | str


@dataclass(frozen=True, slots=True)
class BenchmarkSeries:
    """One benchmark with one choice of parameters: the ns of its repetitions, those of each process by themselves, in their order.

    Where a file `lacks` repetitions, or what tells how to read them, a single number stands for all of them.
    """

    name: str
    parameters: Mapping[str, Value]
    processes: tuple[tuple[float, ...], ...]
    lacks: str = ""

    def __post_init__(self) -> None:
        if not self.name or not any(self.processes):
            raise ValueError(f"benchmark '{self.name}' has no name or no times")
        if not all(0 <= ns <= LONGEST_NS for process in self.processes for ns in process):
            raise ValueError(f"benchmark '{self.name}' has a time that is no time")

    @property
    def repetitions(self) -> int:
        """Return how often it was repeated."""
        return sum(map(len, self.processes))


@dataclass(frozen=True, slots=True)
class ToolResults:
    """The benchmarks of one file of another tool's results.

    `context` says by name what decides how long things take, such as the processor; `remarks` are what speaks against comparing, as that a
    library was built for debugging. `unread` are benchmarks without a time, with why. Where `names_are_commands`, those of base and head
    may differ for the same benchmark.
    """

    tool: str
    series: tuple[BenchmarkSeries, ...]
    context: Mapping[str, str] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    unread: Mapping[str, str] = field(default_factory=dict)
    names_are_commands: bool = False


def number(value: object) -> float:
    """Return a number of a file; raise TypeError where it is none, OverflowError where it has no place in a float."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"'{str(value)[:40]}' is no number")
    return float(value)


def times(values: Iterable[object], unit: str) -> tuple[float, ...]:
    """Return times of a unit in ns; raise ValueError where one is no number, or the unit is not known."""
    if unit not in NANOSECONDS:
        raise ValueError(f"'{unit[:40]}' is no unit of time")
    return tuple(NANOSECONDS[unit] * number(value) for value in values)


def parameter(value: object) -> Value:
    """Return the value of a parameter: a number where it is one, or is written as one, else its text."""
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return float(value) if isinstance(value, float) else int(value)
    text = value if isinstance(value, str) else repr(value)
    if _NUMBER.fullmatch(text):
        return int(text) if re.fullmatch(r"[+-]?\d+", text) else float(text)
    return text


def positional(values: Iterable[object]) -> dict[str, Value]:
    """Return the values of parameters whose names a file does not hold."""
    return {f"argument {place}" if place > 1 else "argument": parameter(value) for place, value in enumerate(values, start=1)}
