"""Services of workloads: started before a run on ports of their own, ready when it begins, and ended after it, whatever they started."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from perfdiff import processes, temporary
from perfdiff.collect.execution.executor import Command, Executor, Purpose, shell_text
from perfdiff.collect.serving import links, loopback
from perfdiff.collect.serving.links import OwnDelay
from perfdiff.collect.serving.loopback import ANSWER_S
from perfdiff.collect.serving.served import Served, Service, ServiceLog, died
from perfdiff.config import FOLDER, PLACE, PORT, PROJECT, SERVICE_PLACE, TCP, ServiceConfig, ServiceLink
from perfdiff.errors import ServiceError, ServiceFailedError, StoreError, WorkloadError
from perfdiff.records.schema import Note

SHOWN_BYTES = 2000  # of what a service printed, in a message
_ATTEMPTS = 3  # to find ports that nobody takes between our look and the service's
_LOOK_S = 0.005  # between two looks whether a service is ready


@dataclass(frozen=True, slots=True)
class Situation:
    """A run that needs services: its command with and without probes, its parameters, and the services' names, None for all.

    `client` are the variables of a command that is none of the revision's, but perfdiff's own; what it takes is no cost of theirs.
    `patience` multiplies the times that services may take: counted ones are slow. Of runs at the same time, each has a `seat`, at which it
    finds those services that stay from run to run.
    """

    command: Command
    chore: Command
    values: Mapping[str, float | str]
    client: Mapping[str, str] | None = None
    names: tuple[str, ...] | None = None
    patience: float = 1.0
    seat: int = 0


@dataclass(slots=True)
class Services:
    """Starts the services of runs, and keeps those that go on from run to run until it is closed.

    `environment` is that of services outside the revisions, `project` the folder of the configuration, `logs` where the log of a service
    is left when a run fails.
    """

    configs: Sequence[ServiceConfig] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    project: Path = Path()
    logs: Path = Path()
    links: Mapping[str, ServiceLink] = field(default_factory=dict)  # to services that are made worse to reach, by their names
    seed: int = 0
    notes: dict[Note, None] = field(default_factory=dict)
    _kept: dict[tuple[str, int], Service] = field(default_factory=dict)  # by name and seat
    _standing: ExitStack = field(default_factory=ExitStack)
    _started: int = 0
    _own_delay: OwnDelay | None = None  # of a proxy

    def close(self) -> None:
        """End the services that still run."""
        self._kept.clear()
        self._standing.close()

    @contextmanager
    def around(self, situation: Situation, executor: Executor) -> Iterator[Served]:
        """Have the services of a run ready for the length of a `with` block; raise WorkloadError where one is not, or fails."""
        wanted = [config for config in self.configs if situation.names is None or config.name in situation.names]
        up: list[Service] = []
        with ExitStack() as stack:
            try:
                for config in sorted(wanted, key=lambda config: not config.is_kept):
                    up.append(self._ready(config, situation, up, stack, executor))
                    if config.setup:
                        executor.execute(_chore(up, config.setup, "setup", situation))
                    if config.teardown:
                        stack.push(_at_end(executor, _chore(up, config.teardown, "teardown", situation)))
                    up[-1] = self._far(up[-1], situation, stack)
                command = situation.command if situation.client is None else replace(situation.command, environment=situation.client)
                yield Served(_with_places(command, command.text, up, {}), tuple(up), situation.client is None)
            except WorkloadError as error:
                dead = next((service for service in up if not service.is_alive), None)
                if dead is None or isinstance(error, ServiceError):
                    self._leave_logs(error, up)
                    raise
                ended = died(dead, situation.command.where, str(error))
                self._leave_logs(ended, up)
                raise ended from error

    def _ready(self, config: ServiceConfig, situation: Situation, up: Sequence[Service], stack: ExitStack, executor: Executor) -> Service:
        """Return a service that is ready, started unless it is kept and was; `stack` ends it if it is not kept."""
        earlier = self._kept.get((config.name, situation.seat))
        if earlier is not None:
            if not earlier.is_alive:
                raise died(earlier, situation.command.where)
            return earlier
        for attempt in range(1, _ATTEMPTS + 1):
            with ExitStack() as fresh:
                service = fresh.enter_context(self._running(config, situation, up, executor))
                if _becomes_ready(service, situation.patience):
                    (self._standing if config.is_kept else stack).push(fresh.pop_all())
                    if config.is_kept:
                        self._kept[config.name, situation.seat] = service
                        self._tell_of_state(config)
                    return service
                is_alive, error = service.is_alive, _not_ready(service, situation)
            if attempt == _ATTEMPTS or is_alive or not any(map(loopback.is_taken, _ports(service))):
                break
        self._leave_logs(error, [*up, service])
        raise error

    def _far(self, service: Service, situation: Situation, stack: ExitStack) -> Service:
        """Return a service with a proxy before it where it is made worse to reach for this run; `stack` ends the proxy."""
        link = self.links.get(service.config.name)
        if link is None:
            return service
        if link.parameter in situation.values:
            link = replace(link, delay_s=float(situation.values[link.parameter]) / 1e3)
        if link.is_near:
            return service
        if self._own_delay is None:
            self._own_delay = links.own_delay()
        settings = links.settings(link, self._own_delay, self.seed + self._started)
        self._started += 1
        return replace(service, proxy=stack.enter_context(links.proxied(service.config.name, int(service.places[PORT]), settings)))

    @contextmanager
    def _running(self, config: ServiceConfig, situation: Situation, up: Sequence[Service], executor: Executor) -> Iterator[Service]:
        """Install and start a service in a fresh folder, and end it when the block is left."""
        folder = temporary.make(f"perfdiff-{config.name}-")  # short, as names of sockets in it have 107 bytes at most
        try:
            with ExitStack() as stack:
                try:
                    service = self._begun(config, situation, folder, up, executor, stack)
                except OSError as error:
                    raise StoreError.about(folder, error) from error
                try:
                    yield service
                finally:
                    self._stop(service, situation.patience)
        finally:
            temporary.remove(folder)

    def _begun(  # noqa: PLR0913, PLR0917 (what a service is made of)
        self,
        config: ServiceConfig,
        situation: Situation,
        folder: Path,
        up: Sequence[Service],
        executor: Executor,
        stack: ExitStack,
    ) -> Service:
        """Install and start a service whose process ends with `stack`."""
        self._started += 1
        mark = f"{os.getpid()}-{self._started}-{config.name}"
        ports = loopback.free_ports(1 + len(config.ports))
        places = {FOLDER: str(folder), **dict(zip((PORT, *config.ports), map(str, ports), strict=True))}
        values = {**({} if config.is_kept else situation.values), PROJECT: str(self.project), **places}
        start = self._outside(situation, folder) if config.outside else situation.command
        start = replace(start, where=f"service {config.name} of {situation.command.where}", cpus=None if config.is_kept else start.cpus)
        own = {f"{config.name}.{name}": place for name, place in places.items()}
        if config.install:
            install = start if config.outside else replace(situation.chore, where=start.where)
            install = replace(install, where=f"install of {start.where}", purpose=Purpose.SERVICE)
            executor.execute(_with_places(install, config.install, up, values, own))
        command = _with_places(start, config.command, up, values, own)
        variables = {name: _filled(text, {**_places(up), **own}, values) for name, text in config.environment.items()}
        command = replace(command, environment={**command.environment, **variables, processes.MARK: mark})
        log = ServiceLog(re.compile(config.ready_line.encode()) if config.ready_line else None)
        with processes.bound(command.cpus):
            process = stack.enter_context(_running(command))
        assert process.stdout is not None, "what a service prints goes to a pipe"
        threading.Thread(target=log.follow, args=(process.stdout,), daemon=True).start()
        return Service(config, places, mark, command, process, log)

    def _outside(self, situation: Situation, folder: Path) -> Command:
        return replace(situation.command, directory=folder, environment=self.environment, fixed_layout=False, features={})

    def _stop(self, service: Service, patience: float) -> None:
        """Ask a service to end; what does not is killed, and told."""
        config, number = service.config, signal.Signals[f"SIG{service.config.stop}"]
        if not processes.stop(service.process.pid, service.mark, number, config.timeout_s * patience):
            text = (
                f"service {config.name} did not end within {config.timeout_s * patience:g} s of {number.name} and was killed at the end of "
                "runs: name the signal that ends it in 'stop', or give it less time with timeout_s"
            )
            self.notes[Note("service-killed", text)] = None

    def _tell_of_state(self, config: ServiceConfig) -> None:
        """Tell that runs find in a service what those before left, where nothing lays that anew."""
        if not config.setup and not config.teardown:
            text = (
                f"service {config.name} goes on from run to run, and nothing lays its data anew: what a run leaves there, as rows or full "
                "caches, the next one finds; say what lays it in 'setup', or keep = \"run\""
            )
            self.notes[Note("service-state", text)] = None

    def _leave_logs(self, error: WorkloadError, up: Sequence[Service]) -> None:
        """Add to an error what services printed last, if it does not tell already, and leave all that is kept of it in files."""
        texts = [text for text in self._printed(up) if text not in error.detail]
        error.detail = "\n\n".join(filter(None, (error.detail, *texts)))

    def printed(self, served: Served) -> str:
        """Return what the services of a run printed last, and leave all that is kept of it in files; raise StoreError."""
        return "\n\n".join(self._printed(served.services))

    def _printed(self, up: Sequence[Service]) -> Iterator[str]:
        for service in up:
            text = bytes(service.log.text)
            if not text.strip():
                continue
            path = self.logs / f"service-{service.config.name}.log"
            try:
                self.logs.mkdir(parents=True, exist_ok=True)
                path.write_bytes(text)
            except OSError as failure:
                raise StoreError.about(self.logs, failure) from failure
            shown = _end(text).decode(errors="replace").strip()
            yield f"service {service.config.name} printed (more of it in {path}):\n{shown}"


def _end(text: bytes) -> bytes:
    """Return the end of what a service printed, from the beginning of a line on where one is in it."""
    if len(text) <= SHOWN_BYTES:
        return text
    end = text[-SHOWN_BYTES:]
    return end.partition(b"\n")[2] or end


def _chore(up: Sequence[Service], text: str, what: str, situation: Situation) -> Command:
    """Return a setup or teardown of the last service that is up, which runs in the revision's tree."""
    service = up[-1]
    chore = replace(situation.chore, where=f"{what} of service {service.config.name}, {situation.command.where}", purpose=Purpose.SERVICE)
    return _with_places(chore, text, up, {**situation.values, **service.places})


def _at_end(executor: Executor, command: Command) -> Callable[[type[BaseException] | None, object, object], bool]:
    """Return what runs a command when a block is left; where an error leaves it, that one is told."""

    def end(kind: type[BaseException] | None, _: object, __: object) -> bool:
        try:
            executor.execute(command)
        except WorkloadError:
            if kind is None:
                raise
        return False

    return end


def _places(up: Sequence[Service]) -> dict[str, str]:
    return {f"{service.config.name}.{name}": place for service in up for name, place in service.reached.items()}


def _with_places(
    command: Command, text: str, up: Sequence[Service], values: Mapping[str, float | str], own: Mapping[str, str] | None = None
) -> Command:
    """Return a command with the places of services in another text, and in variables."""
    places = {**_places(up), **(own or {})}
    variables = {f"PERFDIFF_{name.replace('.', '_').upper()}": place for name, place in places.items()}
    return replace(command, text=_filled(text, places, values, shlex.quote), environment={**command.environment, **variables})


def _filled(text: str, places: Mapping[str, str], values: Mapping[str, float | str], written: Callable[[str], str] = str) -> str:
    """Put ports, folders and values in the places of a text; braces that name nothing stay as they are."""

    def place(match: re.Match[str]) -> str:
        name = f"{match[1]}.{match[2]}"
        return written(places[name]) if name in places else match[0]

    def value(match: re.Match[str]) -> str:
        return written(str(values[match[1]])) if match[1] in values else match[0]

    return PLACE.sub(value, SERVICE_PLACE.sub(place, text))


def _becomes_ready(service: Service, patience: float) -> bool:
    """Return whether all holds, in time, that a service says of being ready."""
    config, port = service.config, int(service.places[PORT])
    values = {**service.places}
    conditions: list[Callable[[], bool]] = []
    if config.ready_line:
        conditions.append(lambda: service.log.is_seen)
    for probe in config.probes:
        url = _filled(probe, {}, values)
        conditions.append((lambda: loopback.accepts(port)) if probe == TCP else lambda url=url: loopback.answers(url))  # type: ignore[misc]
    if config.ready_command:
        command = _filled(config.ready_command, {}, values, shlex.quote)
        conditions.append(lambda: _succeeds(command, service.command))

    def settled() -> bool:
        while conditions and conditions[0]():
            del conditions[0]
        return not conditions or not service.is_alive

    return processes.holds(settled, config.timeout_s * patience, _LOOK_S) and not conditions and service.is_alive


def _running(command: Command) -> AbstractContextManager[subprocess.Popen[bytes]]:
    text = shell_text(command)
    return processes.running(text, command.directory, command.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def _succeeds(text: str, of: Command) -> bool:
    """Return whether a command exits 0 in time."""
    with processes.running(text, of.directory, of.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        return processes.succeeds(process, ANSWER_S)


def _ports(service: Service) -> list[int]:
    return [int(service.places[name]) for name in (PORT, *service.config.ports)]


def _not_ready(service: Service, situation: Situation) -> ServiceFailedError:
    config, limit_s = service.config, service.config.timeout_s * situation.patience
    signs = [_sign(probe, service) for probe in config.probes]
    signs += [f"it prints a line like '{config.ready_line}'"] if config.ready_line else []
    signs += [f"'{config.ready_command}' exits 0"] if config.ready_command else []
    what = f"was not ready within {limit_s:g} s" if service.is_alive else f"{service.end} before it was ready"
    return ServiceFailedError(
        f"service {config.name}, '{service.command.text}', {what} ({situation.command.where}); it is when {' and '.join(signs)}: correct "
        "its command or what it waits for, or give it more time with timeout_s",
        slug="service-not-ready",
    )


def _sign(probe: str, service: Service) -> str:
    """Say what shows that a service is ready, and how it answers now where that is a URL."""
    if probe == TCP:
        return f"its port, {service.places[PORT]}, accepts connections"
    url = _filled(probe, {}, service.places)
    if not service.is_alive:
        return f"{url} answers"
    code = loopback.status(url)
    return f"{url} answers with a status below {loopback.NOT_READY} ({f'now it is {code}' if code else 'nobody answers there'})"
