"""Which cost a text means: `parse`, `parse.time` and `json.c:parse.alloc_bytes` name a function and a metric of its calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from perfdiff.records.function_names import is_named
from perfdiff.records.metrics import METRICS
from perfdiff.records.schema import FunctionInfo

TIME, OWN_TIME = "wall_ns", "self_ns"
_ALIASES = {"time": TIME, "own": OWN_TIME, "cpu": "cpu_ns"}


def readings(subject: str) -> Iterator[tuple[str, str | None]]:
    """Yield a name with the metric that may be meant: all of a text with none, and what stands before a metric's name with that."""
    yield subject, None
    name, dot, last = subject.rpartition(".")
    metric = _ALIASES.get(last, last if last in METRICS and METRICS[last].per_call else None)
    if name and dot and metric:
        yield name, metric


def named(subject: str, functions: Sequence[FunctionInfo]) -> tuple[tuple[FunctionInfo, ...], str]:
    """Return the functions that a text may mean, none or several where it is wrong, and the metric, time where none is named."""
    for name, metric in readings(subject):
        meant = tuple(info for info in functions if is_named(name, info.name, info.file))
        if meant:
            return meant, metric or TIME
    return (), TIME
