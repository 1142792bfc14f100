"""Processes of this machine, one a core, by joblib."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, TypeVar

from perfdiff.engines.engine import alone

T = TypeVar("T")
R = TypeVar("R")

# With fewer functions, of some 50 to 200 ms each, processes would take longer to start, 2 s, than they save.
PARALLEL_FROM = 40


@dataclass(frozen=True, slots=True)
class Processes:
    """The engine of one machine. Its processes stay for the next map."""

    least: int = PARALLEL_FROM
    processes: int = -1  # one a core

    def map(self, function: Callable[..., R], items: Iterable[T], *shared: object) -> Iterator[R]:
        """Yield `function(item, *shared)` of each item; what is shared is read once by each process."""
        from joblib import Parallel, delayed
        from joblib.externals.loky.backend.reduction import dumps

        content = bytes(dumps(shared))
        digest = blake2b(content, digest_size=16).digest()
        run = Parallel(n_jobs=self.processes, return_as="generator")
        results: Iterator[R] = run(delayed(_task)(function, item, digest, content) for item in items)
        return results

    def agree(self, load: Callable[[], str]) -> bool:
        """Return True: all processes run on this machine, and read the same files."""
        return True


def _task(function: Callable[..., R], item: object, digest: bytes, content: bytes) -> R:
    return alone(function, item, _shared(digest, _Bytes(content)))


class _Bytes(bytes):
    """Content that its digest stands for, so that looking it up compares nothing."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Bytes)

    def __hash__(self) -> int:
        return 0


@functools.lru_cache(maxsize=1)
def _shared(digest: bytes, content: _Bytes) -> Any:
    return pickle.loads(content)
