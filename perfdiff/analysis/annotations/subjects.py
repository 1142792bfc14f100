"""Which cost a text means: `parse`, `parse.time` and `json.c:parse.alloc_bytes` name a function and a metric of its calls."""

from __future__ import annotations

from collections.abc import Sequence

from perfdiff.records.function_names import is_named, readings
from perfdiff.records.schema import FunctionInfo

TIME = "wall_ns"


def named(subject: str, functions: Sequence[FunctionInfo]) -> tuple[tuple[FunctionInfo, ...], str]:
    """Return the functions that a text may mean, none or several where it is wrong, and the metric, time where none is named."""
    for name, metric in readings(subject):
        meant = tuple(info for info in functions if is_named(name, info.name, info.file))
        if meant:
            return meant, metric or TIME
    return (), TIME
