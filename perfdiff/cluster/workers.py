"""The workers of a Dask cluster that can be measured on, and why others cannot."""

from __future__ import annotations

import pkgutil
import platform
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from perfdiff import __version__
from perfdiff.cluster import PROTOCOL, RESOURCE
from perfdiff.cluster.tasks import submitted
from perfdiff.errors import MeasurementError, UsageError
from perfdiff.languages.check import Check

if TYPE_CHECKING:
    from distributed import Client, Future

CONNECT_S = 10.0  # a scheduler that does not answer for so long is not there
RETURN_LOOK_S = 0.5  # between two looks whether a scheduler is back
ASK_S = 60.0  # a worker that does not answer for so long cannot be measured on


@dataclass(frozen=True, slots=True)
class Worker:
    """A worker: its address, name and host; `obstacle` says why it cannot measure, "" if it can."""

    address: str
    name: str
    host: str
    obstacle: str = ""

    def __str__(self) -> str:
        return f"worker {self.name} at {self.host}"


@dataclass(frozen=True, slots=True)
class Examined:
    """A worker with what the doctor found there; nothing where it cannot be measured on at all."""

    worker: Worker
    checks: tuple[Check, ...]

    @property
    def can_measure(self) -> bool:
        """Return whether all that is needed is there."""
        return not self.worker.obstacle and all(check.found for check in self.checks if check.needed)


@contextmanager
def connected(address: str) -> Iterator[Client]:
    """Connect to a scheduler, with the usual configuration of Dask, for the length of a `with` block; raise MeasurementError."""
    try:
        from distributed import Client
    except ImportError as error:
        raise UsageError(
            "measuring on a cluster needs Dask, which is not installed here; run `pip install 'perfdiff[cluster]'`", slug="no-dask"
        ) from error
    try:
        client = Client(address, timeout=CONNECT_S, set_as_default=False)
    except (OSError, TimeoutError, ValueError, TypeError) as error:
        raise MeasurementError(
            f"no scheduler of Dask answers at {address}: {error}; start one with `dask scheduler`, or correct the address and, for tls://, "
            "Dask's configuration of certificates",
            slug="no-scheduler",
        ) from error
    try:
        yield client
    finally:
        client.close(timeout=CONNECT_S)


def returned(address: str, count: int, within_s: float, stack: ExitStack) -> tuple[Client, tuple[Worker, ...]]:
    """Return a client of a scheduler that was gone, closed with the stack, when `count` workers can be measured on, or some at last.

    Raise MeasurementError where nobody is there within the time.
    """
    deadline = time.monotonic() + within_s
    while True:
        is_last = time.monotonic() > deadline
        try:
            with ExitStack() as trial:
                client = trial.enter_context(connected(address))
                workers = looked_at(client)
                if sum(not worker.obstacle for worker in workers) >= (1 if is_last else count):
                    stack.enter_context(trial.pop_all())
                    return client, workers
        except MeasurementError:
            if is_last:
                raise
        if is_last:
            raise MeasurementError(f"no worker of {address} can measure", slug="no-workers")
        time.sleep(RETURN_LOOK_S)


def looked_at(client: Client) -> tuple[Worker, ...]:
    """Return the workers that declare our resource, the able ones first in the order of their names; raise MeasurementError of none."""
    seen = alive(client)
    ours = {address: worker for address, worker in seen.items() if worker["resources"].get(RESOURCE, 0) >= 1}
    if not ours:
        raise MeasurementError(
            f"no worker of {client.scheduler.address} declares the resource '{RESOURCE}' ({len(seen)} without it are there): start "
            f"workers with `dask worker {client.scheduler.address} --nthreads 1 --resources {RESOURCE}=1`",
            slug="no-workers",
        )
    addresses = list(ours)
    there = client.run_on_scheduler(platform.python_version)
    if there.split(".")[:2] != platform.python_version().split(".")[:2]:
        raise MeasurementError(
            f"the scheduler at {client.scheduler.address} runs Python {there}, not {platform.python_version()} as here, and cannot read "
            "what it passes on; start it with the same one",
            slug="scheduler-version",
        )
    versions = _asked(client, addresses, "perfdiff:__version__")
    protocols = _asked(client, addresses, "perfdiff.cluster:PROTOCOL")
    pythons = client.run(platform.python_version, workers=addresses, on_error="return")
    workers = []
    for address, worker in ours.items():
        obstacle = _obstacle(versions.get(address), protocols.get(address), pythons.get(address))
        workers.append(Worker(address, str(worker["name"]), str(worker["host"]), obstacle))
    return tuple(sorted(workers, key=lambda worker: (bool(worker.obstacle), worker.name)))


def examined(address: str) -> tuple[Examined, ...]:
    """Return what each worker of a cluster that declares our resource can measure, several at the same time; raise MeasurementError."""
    with connected(address) as client:
        workers = looked_at(client)
        asked = {worker: submitted(client, worker.address, "examined") for worker in workers if not worker.obstacle}
        return tuple(_examined(worker, asked.get(worker)) for worker in workers)


def _examined(worker: Worker, asked: Future | None) -> Examined:
    if asked is None:
        return Examined(worker, ())
    try:
        return Examined(worker, asked.result(timeout=ASK_S))
    except (OSError, TimeoutError, RuntimeError, subprocess.SubprocessError) as error:
        return Examined(replace(worker, obstacle=f"it does not answer ({type(error).__name__}: {error})"), ())


def alive(client: Client) -> Mapping[str, Any]:
    """Return the scheduler's information on its workers, by address; raise OSError if it does not answer."""
    workers: Mapping[str, Any] = client.scheduler_info(n_workers=-1)["workers"]
    return workers


def _asked(client: Client, addresses: Sequence[str], name: str) -> Mapping[str, Any]:
    """Return what a name means on workers: by the standard library alone, as perfdiff may not be there."""
    answers: Mapping[str, Any] = client.run(pkgutil.resolve_name, name, workers=list(addresses), on_error="return")
    return answers


def _obstacle(version: object, protocol: object, python: object) -> str:
    here = platform.python_version_tuple()[:2]
    if not isinstance(python, str):
        return f"it does not answer ({python})"
    if tuple(python.split(".")[:2]) != here:
        return f"it runs Python {python}, not {'.'.join(here)} as here"
    if not isinstance(version, str):
        return f"perfdiff is not installed there ({version})"
    if version != __version__:
        return f"perfdiff there is {version}, not {__version__} as here"
    if protocol != PROTOCOL:
        return "perfdiff there is of the same version, but speaks otherwise to clusters: install the same build"
    return ""
