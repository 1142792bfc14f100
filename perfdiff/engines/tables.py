"""Where tasks have sample tables from: they load them where they can, and are sent them where they cannot."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b

import numpy as np

from perfdiff.engines.engine import Engine
from perfdiff.engines.processes import Processes
from perfdiff.engines.serial import Serial
from perfdiff.records.recorded import Samples, TablesInMemory
from perfdiff.records.schema import Side

# A loader that is larger holds tables itself.
_PATH_BYTES = 2**20


def chosen(engine: Engine | None, items: int) -> Engine:
    """Return the engine that was given, or this machine's processes if there are enough `items` for them, else the serial one."""
    wanted = engine or Processes()
    return wanted if items >= wanted.least else Serial()


def with_tables(engine: Engine, batches: Sequence[Sequence[int]], samples: Samples) -> Iterator[Samples]:
    """Yield for each batch of functions a loader of their tables that works wherever the engine's tasks run."""
    if isinstance(engine, Serial) or not batches:
        return (samples for _ in batches)
    if not _is_small(samples) or not engine.agree(functools.partial(_seal, samples, batches[0][0])):
        return (_in_memory(samples, batch) for batch in batches)
    return (samples for _ in batches)


def _is_small(samples: Samples) -> bool:
    """Return whether a loader takes little to send: a path, not the tables themselves."""
    from joblib.externals.loky.backend.reduction import dumps

    return len(dumps(samples)) <= _PATH_BYTES


def _in_memory(samples: Samples, functions: Sequence[int]) -> TablesInMemory:
    """Return a loader that has the tables of some functions with it."""
    return TablesInMemory(table for function in functions for side in Side if (table := samples(function, side)) is not None)


def _seal(samples: Callable[[int, Side], object], function: int) -> str:
    """Return a digest of a function's times on both sides, by which another machine's file is known to be the same."""
    content = blake2b(digest_size=16)
    for side in Side:
        table = samples(function, side)
        for name, values in sorted(getattr(table, "metrics", {}).items()):
            content.update(name.encode() + np.ascontiguousarray(values).tobytes())
    return content.hexdigest()
