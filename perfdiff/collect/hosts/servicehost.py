"""What the services of a project need of this machine: their programs, ports that are free, and that they become ready."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from perfdiff import temporary
from perfdiff.collect.execution.executor import Command, ProcessExecutor, Purpose
from perfdiff.collect.runs import workloads
from perfdiff.collect.serving import loopback
from perfdiff.collect.serving.services import Services, Situation
from perfdiff.config import ASSIGNMENT, SERVICE_PLACE, Config, ServiceConfig
from perfdiff.errors import PerfdiffError
from perfdiff.languages.check import Check

_FIXED_PORT = re.compile(r"(?:127\.0\.0\.1:|localhost:|0\.0\.0\.0:|--port[= ]|-p )(\d{2,5})\b")
_SUBSTITUTED = re.compile(r"\$\([^()]*\)|`[^`]*`")  # by the shell: what it starts there is no service
_OPERATOR = re.compile(r"[;&|()\n]")
_TRUE = "true"


def examine(config: Config | None, project: Path, cache: Path, variables: Mapping[str, str]) -> Iterator[Check]:
    """Yield what there is for the services of a project's configuration: each is started once, in a copy of the project, and ended."""
    if config is None or not config.services:
        return
    for service in config.services:
        yield _programs(service, project, variables)
        yield from _ports(service)
    startable = _startable(config)
    if startable:
        yield _started(config, startable, project, cache, variables)
    late = [service.name for service in config.services if service not in startable]
    if late:
        says = f"{_listed(late)}: started in the built trees of a comparison, and not tried here"
        yield Check("services", needed=False, found=True, says=says)


def _programs(service: ServiceConfig, project: Path, variables: Mapping[str, str]) -> Check:
    """Look for the program that a service's command is in the end; one of the tree may have to be built yet."""
    name = _program(service.command)
    if name and "/" not in name and shutil.which(name, path=variables.get("PATH")) is None and not (project / name).exists():
        says, remedy = f"{name}: not on PATH", "install it, or correct the command in [[service]]"
        return Check(f"service {service.name}", needed=True, found=False, says=says, remedy=remedy)
    return Check(f"service {service.name}", needed=True, found=True, says=f"{name or service.command} is there")


def _program(command: str) -> str | None:
    """Return the program that takes the shell's place by `exec`, or is all that the shell starts; None where neither is plain to see."""
    text, before = command, ""
    while text != before:
        text, before = _SUBSTITUTED.sub("", text), text
    _, replaces, last = text.rpartition("exec ")
    if not replaces and _OPERATOR.search(text):
        return None
    try:
        words = shlex.split(last)
    except ValueError:  # a quotation is not closed, as the shell will say
        return None
    return next((word for word in words if not ASSIGNMENT.match(word)), None)


def _ports(service: ServiceConfig) -> Iterator[Check]:
    """Yield the ports that a service has by number, in place of one that is handed out, where somebody else listens there."""
    for number in sorted({int(number) for text in service.starting for number in _FIXED_PORT.findall(text)}):
        if number <= 65535 and loopback.is_taken(number):
            says = f"port {number} is taken by another program"
            yield Check(f"service {service.name}", needed=True, found=False, says=says, remedy="write {port}, and it gets one that is free")


def _startable(config: Config) -> tuple[ServiceConfig, ...]:
    """Return the services that start without a build, and need none that does not."""
    startable: list[ServiceConfig] = []
    for service in config.services:
        others = {name for text in service.starting for name, _ in SERVICE_PLACE.findall(text)} - {service.name}
        if (service.outside or not config.build.command) and others <= {earlier.name for earlier in startable}:
            startable.append(service)
    return tuple(startable)


def _started(config: Config, wanted: Sequence[ServiceConfig], project: Path, cache: Path, variables: Mapping[str, str]) -> Check:
    """Start services until all are ready, with the data of the first point, and end them."""
    inherited = {name: value for name, value in variables.items() if not name.startswith("PERFDIFF_")}
    points = workloads.points(config.workloads, config.services)
    values = points[0].parameters if points else {}
    is_needed = all(service.outside for service in wanted)
    begun = time.monotonic()
    with temporary.folder("perfdiff-doctor-") as room:
        try:
            tree = project if is_needed else _copied(project, room / "tree")
            command = Command(_TRUE, tree, inherited, max(service.timeout_s for service in wanted), (0,), "doctor")
            chore = Command("", tree, inherited, command.timeout_s, (0,), "doctor", purpose=Purpose.SERVICE)
            names = tuple(service.name for service in wanted)
            with closing(Services(tuple(wanted), inherited, project, cache / "logs")) as services:
                with services.around(Situation(command, chore, values, names=names), ProcessExecutor()):
                    took_s = time.monotonic() - begun
                killed = [note.text for note in services.notes if note.slug == "service-killed"]
        except PerfdiffError as error:
            says, _, remedy = str(error).partition("; ")
            says = "\n".join(filter(None, (says, error.detail)))
            remedy = remedy or "start it by hand with the command that is shown"
            if not is_needed:
                remedy += "; comparisons start it in the tree of each revision, with what that is installed with"
            return Check("services", needed=is_needed, found=False, says=says, remedy=remedy)
    if killed:
        return Check("services", needed=False, found=False, says=killed[0].partition(": ")[0], remedy=killed[0].partition(": ")[2])
    return Check("services", needed=is_needed, found=True, says=f"{_listed(names)}: ready in {took_s:.1f} s, and ended")


def _copied(project: Path, tree: Path) -> Path:
    """Copy the files of a checkout that git knows, or does not ignore, as services may write where they run."""
    listed = subprocess.run(
        ["git", "-C", str(project), "ls-files", "-z", "--cached", "--others", "--exclude-standard"], capture_output=True, check=False
    )
    tree.mkdir()
    for name in filter(None, listed.stdout.decode(errors="surrogateescape").split("\0")):
        source, target = project / name, tree / name
        if source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
    return tree


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)
