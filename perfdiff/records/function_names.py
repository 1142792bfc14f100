"""Which functions a name means that people wrote: `parse`, `json.c:parse`, with its scope and parameters or without, or a metric behind."""

from __future__ import annotations

from collections.abc import Iterator

from perfdiff.records.metrics import METRICS

_ALIASES = {
    "time": "wall_ns",
    "own": "self_ns",
    "cpu": "cpu_ns",
    "mem": "alloc_bytes",
    "lock": "lock_hold_ns",
    "wait": "lock_wait_ns",
}
_SCOPES = ("::", "\\", ".")  # what stands between a name and its scope, in one language or another


def is_named(given: str, name: str, file: str) -> bool:
    """Return whether what a user wrote, `NAME` or `FILE:NAME`, means a function; its parameters and scope may be left out."""
    folder, colon, bare = given.rpartition(":")
    if colon and not folder.endswith(":"):
        return file.endswith(folder) and is_named(bare, name, file)
    return any(whole == given or whole.endswith(tuple(f"{mark}{given}" for mark in _SCOPES)) for whole in (name, name.partition("(")[0]))


def readings(subject: str) -> Iterator[tuple[str, str | None]]:
    """Yield a name with the metric that may be meant: all of a text with none, and what stands before a metric's name with that."""
    yield subject, None
    name, dot, last = subject.rpartition(".")
    metric = _ALIASES.get(last, last if last in METRICS and METRICS[last].per_call else None)
    if name and dot and metric:
        yield name, metric
