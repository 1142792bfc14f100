"""The workers of a Dask cluster, through a client that somebody connected."""

from __future__ import annotations

import pickle
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from perfdiff.engines.engine import alone
from perfdiff.errors import MeasurementError, PerfdiffError

T = TypeVar("T")
R = TypeVar("R")

# A handful of functions is analysed here before a cluster has their tables.
WORTH_SENDING = 20
# Tasks that are with the cluster at a time, for each of its threads: enough that nobody waits for the next, and no more tables than those
# are held in memory.
AHEAD = 4
SMALL = 2**16  # bytes of an item that goes by the scheduler, which takes one message less
LOOK_S = 5.0  # until the first look whether the workers are there of which a result is waited for, …
MOST_LOOK_S = 60.0  # … and at most between two: bringing a result begins anew after each
GONE_S = 30.0  # workers that are not there for so long do not come back
# Threads of linear algebra are limited for a process as a whole, so a worker's threads take turns, as Python's lock makes them anyway.
_ALONE = threading.Lock()


@dataclass(frozen=True, slots=True)
class ClusterEngine:
    """The engine of many machines. The client, a `distributed.Client`, is its owner's, who closes it.

    `workers` are the addresses of those that take part, all where none is named.
    """

    client: Any
    least: int = WORTH_SENDING
    workers: tuple[str, ...] = ()

    def map(self, function: Callable[..., R], items: Iterable[T], *shared: object) -> Iterator[R]:
        """Yield `function(item, *shared)` of each item; raise MeasurementError where the cluster is lost.

        A task whose worker is lost is made again by another; it depends on nothing but what it is given, so that its result is the same.
        """
        from joblib.externals.loky.backend.reduction import dumps

        waiting: deque[Any] = deque()
        try:
            who = [*self.workers] or None
            scattered = self.client.scatter(shared, workers=who, broadcast=True, hash=False) if shared else ()
            threads = self.client.nthreads()
            most = AHEAD * max(1, sum(threads[address] for address in who or threads if address in threads))
            call, called = _by_value(), bytes(dumps(function))
            for item in items:
                packed = bytes(dumps(item))
                if len(packed) > SMALL:  # past the scheduler, which holds what is part of a task
                    (packed,) = self.client.scatter([packed], workers=who, hash=False)
                waiting.append(self.client.submit(call, called, packed, *scattered, workers=who, pure=False))
                if len(waiting) >= most:
                    yield self._result(waiting.popleft())
            while waiting:
                yield self._result(waiting.popleft())
        except PerfdiffError:
            raise
        except _lost() as error:
            raise MeasurementError(
                f"the cluster at {self.client.scheduler.address} was lost while functions were analysed: {error};"
                " what was measured is kept: compare again, or without --cluster",
                slug="cluster-lost",
            ) from error
        finally:
            if waiting:
                self.client.cancel([*waiting])

    def _result(self, future: Any) -> Any:
        """Return the result of a task; raise TimeoutError where none of the workers is left that it may wait for.

        A nanny starts a lost worker again at another address, where nobody would take what was meant for the old one.
        """
        wait_s, seen = LOOK_S, time.monotonic()
        while True:
            try:
                return future.result(timeout=wait_s)
            except TimeoutError:
                if future.status in {"error", "cancelled"}:  # by now, or the task itself raised it
                    return future.result()
                if self._is_anybody_there():
                    seen = time.monotonic()
                elif time.monotonic() - seen > GONE_S:
                    raise TimeoutError("its workers are gone") from None
            wait_s = min(2 * wait_s, MOST_LOOK_S)

    def _is_anybody_there(self) -> bool:
        try:
            there = self.client.nthreads()
        except OSError as error:
            raise TimeoutError(f"its scheduler does not answer: {error}") from error
        return any(address in there for address in self.workers or there)

    def agree(self, load: Callable[[], str]) -> bool:
        """Return whether every worker reads what is read here, such as files that all of them share."""
        here = load()
        answers = self.client.run(_said, load, workers=[*self.workers] or None)
        return bool(answers) and all(said == here for said in answers.values())


def _by_value() -> Callable[..., Any]:
    """Return what workers call. A scheduler reads tasks, and may have no perfdiff: code of its own goes with them, and names ours."""

    # Within a function Dask sends the code of a function, elsewhere its name.
    def call(function: bytes, packed: bytes, *shared: Any) -> Any:
        import pkgutil

        return pkgutil.resolve_name("perfdiff.engines.cluster:task")(function, packed, *shared)

    return call


def task(function: bytes, packed: bytes, *shared: object) -> Any:
    """Call a pickled function with a pickled item and what is shared, on a worker."""
    with _ALONE:
        return alone(pickle.loads(function), pickle.loads(packed), shared)


def _said(load: Callable[[], str]) -> str | None:
    """Return what `load` says, None where this machine has not what it reads."""
    try:
        return load()
    except (OSError, PerfdiffError):
        return None


def _lost() -> tuple[type[BaseException], ...]:
    from concurrent.futures import CancelledError

    from distributed import CancelledError as Cancelled
    from distributed import KilledWorker
    from distributed.comm.core import CommClosedError

    return CancelledError, Cancelled, KilledWorker, CommClosedError, TimeoutError
