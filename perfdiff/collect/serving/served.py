"""Services that are up for a run, and what a command that drives them costs each of the runs that it is for."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import IO

from perfdiff import processes
from perfdiff.collect.execution import kernel
from perfdiff.collect.execution.executor import Command, Execution, Executor
from perfdiff.collect.serving import links
from perfdiff.config import PORT, ServiceConfig
from perfdiff.errors import ServiceError, ServiceFailedError, WorkloadError
from perfdiff.records.exchanges import Exchanges

LOG_BYTES = 1 << 20  # kept of what a service prints: the end


@dataclass(slots=True)
class ServiceLog:
    """The end of what a service prints, and whether a line was seen that it prints when it is ready."""

    awaited: re.Pattern[bytes] | None
    text: bytearray = field(default_factory=bytearray)
    is_seen: bool = False
    _line: bytes = b""

    def follow(self, pipe: IO[bytes]) -> None:
        """Read a pipe to its end."""
        with pipe:
            while chunk := os.read(pipe.fileno(), 1 << 16):
                self.text += chunk
                del self.text[:-LOG_BYTES]
                if self.awaited is not None and not self.is_seen:
                    *lines, self._line = (self._line + chunk).split(b"\n")
                    self.is_seen = any(map(self.awaited.search, (*lines, self._line)))
                    self._line = self._line[-LOG_BYTES:]


@dataclass(frozen=True, slots=True)
class Service:
    """A service that was started: its ports and folder by the names of their places, and the mark that its processes bear."""

    config: ServiceConfig
    places: Mapping[str, str]
    mark: str
    command: Command
    process: subprocess.Popen[bytes]
    log: ServiceLog
    proxy: links.ProxyProcess | None = None

    @property
    def reached(self) -> Mapping[str, str]:
        """Return the service's port and folder as workloads reach them: through its proxy, if it has one."""
        return {**self.places, PORT: str(self.proxy.port)} if self.proxy else self.places

    @property
    def is_alive(self) -> bool:
        """Return whether some process of the service still runs."""
        return processes.is_alive(self.process.pid, self.mark)

    @property
    def family(self) -> frozenset[int]:
        """Return the ids of the service's processes."""
        return processes.family(self.process.pid, self.mark)

    @property
    def end(self) -> str:
        """Say how it ended."""
        status = self.process.poll() or 0
        if status < 0:
            return f"was killed by {processes.signal_name(-status)}"
        return f"exited {status}" if status else "ended"


@dataclass(frozen=True, slots=True)
class Served:
    """A command whose services are up, with their ports in their places."""

    command: Command
    services: Sequence[Service] = ()
    is_judged: bool = True

    def execute(self, executor: Executor) -> Execution:
        """Run the command; the CPU time and the memory of the revision's services are the run's as well. Raise WorkloadError."""
        (execution,) = executed([self], self.command, executor)
        return execution

    @property
    def family(self) -> frozenset[int]:
        """Return the processes of the revision's services."""
        judged = (service for service in self.services if not service.config.outside)
        return frozenset(process for service in judged for process in service.family)

    @property
    def processes(self) -> tuple[int, ...]:
        """Return the processes of all services."""
        return tuple(process for service in self.services for process in sorted(service.family))

    def spent(self, execution: Execution, before_ns: float) -> Execution:
        """Return a run with the CPU time of its services, less what they had spent before it; raise WorkloadError."""
        exchanges = self.exchanges()
        for service in self.services:
            if not service.is_alive:
                raise died(service, self.command.where)
        spent_ns = max(0.0, sum(map(processes.cpu_ns, self.family)) - before_ns)
        peak_bytes = max(map(processes.peak_rss_bytes, self.family), default=0.0)
        if self.is_judged:
            spent_ns, peak_bytes = execution.cpu_ns + spent_ns, max(execution.max_rss_bytes, peak_bytes)
        family = self.family
        held_bytes = max(peak_bytes, sum(map(kernel.shared_bytes, family))) if family else execution.held_bytes
        return replace(execution, cpu_ns=spent_ns, max_rss_bytes=peak_bytes, held_bytes=held_bytes, services=exchanges)

    def exchanges(self) -> dict[str, Exchanges]:
        """Return what has passed since this was last asked, by service; raise WorkloadError where one could not be reached."""
        return {service.config.name: service.proxy.take(self.command.where) for service in self.services if service.proxy}


def executed(served: Sequence[Served], command: Command, executor: Executor) -> list[Execution]:
    """Run a command that drives the services of several runs; return what it cost each of them, and raise WorkloadError."""
    services = [(run, service) for run in served for service in run.services]
    before = [sum(map(processes.cpu_ns, run.family)) for run in served]
    for run in served:
        run.exchanges()  # what services said to each other before is not the run's
    running = [(run, service) for run, service in services if service.process.poll() is None]  # others have left a daemon
    try:
        execution = executor.execute(replace(command, needs=lambda: all(service.process.poll() is None for _, service in running)))
    except WorkloadError as error:
        for run in served:
            run.exchanges()  # a service that could not be reached is the reason
        left = next(((run, service) for run, service in running if service.process.poll() is not None and service.is_alive), None)
        if left is not None and error.slug == "service-died":
            raise _went_on(left[1], left[0].command.where) from error
        raise
    return [run.spent(execution, before_ns) for run, before_ns in zip(served, before, strict=True)]


def died(service: Service, where: str, failure: str = "") -> ServiceFailedError:
    """Return the error that a service has ended, and what failed after that."""
    beside = f"; then {failure}" if failure else ""
    return ServiceFailedError(
        f"service {service.config.name}, '{service.command.text}', {service.end} during the run ({where}){beside}; run it by hand in "
        f"{service.command.directory}, and what drives it beside it",
        slug="service-died",
    )


def _went_on(service: Service, where: str) -> ServiceError:
    return ServiceError(
        f"service {service.config.name}, '{service.command.text}', {service.end} during the run ({where}), while processes that it started "
        "went on; let it stay in the foreground: without '&', and with the option by which it does not become a daemon",
        slug="service-died",
    )
