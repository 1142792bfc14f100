"""A lab: a Dask scheduler and workers as processes, on hosts of their own where this machine can make some."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import programs
import runtimes

ROOT = Path(__file__).parent.parent
START_S = 60.0
WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))  # each has hosts of its own
BRIDGE, NET = f"pdlab{WORKER}", f"10.213.{77 + WORKER}"
OFFSETS_S = (0, 86_400, 300)  # of the hosts' monotonic clocks


@functools.cache
def obstacle() -> str:
    """Return why hosts cannot be made here, "" where they can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    name = f"{BRIDGE}-probe"
    probe = f"ip netns add {name} && ip netns del {name} && unshare --time --monotonic 60 --uts --fork hostname {name}"
    tried = subprocess.run(["sh", "-c", probe], capture_output=True, text=True, check=False)
    return "" if tried.returncode == 0 else f"no network or time namespaces can be made: {tried.stderr.strip()}"


@dataclass
class Lab:
    """A scheduler with its address, and workers by their names."""

    folder: Path
    host: str = "127.0.0.1"
    options: tuple[str, ...] = ()
    scheme: str = "tcp"
    port: int = 0
    scheduler: subprocess.Popen[bytes] | None = None
    workers: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def address(self) -> str:
        return f"{self.scheme}://{self.host}:{self.port}"

    def start(self) -> None:
        """Start the scheduler."""
        with socket.create_server((self.host, self.port)) as free:  # the same one again, if it was started before
            self.port = free.getsockname()[1]
        self.scheduler = self._started(
            "scheduler", ["scheduler", "--host", self.address, "--no-dashboard", *self.options], without_perfdiff(self.folder)
        )

    def add(
        self, name: str, *, variables: Mapping[str, str] | None = None, prefix: tuple[str, ...] = (), resources: str = "perfdiff=1"
    ) -> None:
        """Start a worker with a cache folder of its own, in which the runtime library is compiled already."""
        cache = runtimes.lent_to(self.folder / name / "cache")
        own = environment() | {"PERFDIFF_CACHE": str(cache)} | dict(variables or {})
        command = ["worker", self.address, "--name", name, "--nthreads", "1", "--no-nanny", "--no-dashboard", *self.options]
        command += ["--local-directory", str(self.folder / name), *(["--resources", resources] if resources else [])]
        self.workers[name] = self._started(name, command, own, prefix)

    def add_alike(self, name: str, root: Path, *, variables: Mapping[str, str] | None = None) -> None:
        """Start a worker that sees its own cache at the path `root`, as others do at the same one; see `obstacle`."""
        own = self.folder / name / "cache"
        seen = ("unshare", "--mount", "sh", "-c", 'mount --bind "$0" "$1" && shift && exec "$@"', str(own), str(root))
        self.add(name, variables={"PERFDIFF_CACHE": str(root)} | dict(variables or {}), prefix=seen)

    def _started(
        self, name: str, command: list[str], variables: Mapping[str, str], prefix: tuple[str, ...] = ()
    ) -> subprocess.Popen[bytes]:
        (self.folder / name).mkdir(parents=True, exist_ok=True)
        with (self.folder / f"{name}.log").open("wb") as log:
            whole = [*prefix, sys.executable, "-m", "dask", *command]
            return subprocess.Popen(whole, env=dict(variables), stdout=log, stderr=log, cwd=self.folder, start_new_session=True)

    def wait(self) -> None:
        """Return when all workers are known to the scheduler."""
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            log = (self.folder / "scheduler.log").read_text()
            if all(f"name: {name}" in log or f"name: '{name}'" in log for name in self.workers):
                return
            time.sleep(0.1)
        raise TimeoutError("".join(path.read_text() for path in self.folder.glob("*.log")))

    def kill(self, name: str) -> None:
        """End a worker, or the scheduler, at once."""
        process = self.scheduler if name == "scheduler" else self.workers[name]
        assert process is not None
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def busy(self) -> list[int]:
        """Return the processes beside the workers: stations, and what they have started."""
        known = [process.pid for process in (*self.workers.values(), *([self.scheduler] if self.scheduler else []))]
        return [process for process in processes(str(self.folder / "w1")) if process not in known]

    def stop(self) -> None:
        """End all."""
        for process in (*self.workers.values(), *([self.scheduler] if self.scheduler else [])):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextmanager
def lab(folder: Path, host: str = "127.0.0.1", options: tuple[str, ...] = (), scheme: str = "tcp") -> Iterator[Lab]:
    """Start a scheduler for the length of a `with` block."""
    made = Lab(folder, host, options, scheme)
    folder.mkdir(parents=True)
    try:
        made.start()
        yield made
    finally:
        made.stop()


@contextmanager
def hosts(count: int) -> Iterator[tuple[str, list[tuple[str, ...]]]]:
    """Make so many hosts, each with a name, an address and a clock of its own; yield this one's address and what runs commands there."""

    def run(*words: str) -> None:
        subprocess.run(words, check=True, capture_output=True)

    with ExitStack() as stack:
        run("ip", "link", "add", BRIDGE, "type", "bridge")
        stack.callback(run, "ip", "link", "del", BRIDGE)
        run("ip", "addr", "add", f"{NET}.1/24", "dev", BRIDGE)
        run("ip", "link", "set", BRIDGE, "up")
        prefixes: list[tuple[str, ...]] = []
        for number in range(1, count + 1):
            name = f"{BRIDGE}h{number}"
            run("ip", "netns", "add", name)
            stack.callback(run, "ip", "netns", "del", name)
            run("ip", "link", "add", f"{name}a", "type", "veth", "peer", "name", "eth0", "netns", name)
            stack.callback(run, "ip", "link", "del", f"{name}a")  # at once; with its namespace it would go some time later
            run("ip", "link", "set", f"{name}a", "master", BRIDGE, "up")
            inside = ("ip", "netns", "exec", name)
            run(*inside, "ip", "addr", "add", f"{NET}.{number + 1}/24", "dev", "eth0")
            run(*inside, "ip", "link", "set", "eth0", "up")
            run(*inside, "ip", "link", "set", "lo", "up")
            offset = OFFSETS_S[number % len(OFFSETS_S)]
            names = (
                "unshare",
                "--time",
                "--monotonic",
                str(offset),
                "--uts",
                "--fork",
                "--kill-child",
                "sh",
                "-c",
                'hostname "$0"; exec "$@"',
            )
            prefixes.append((*inside, *names, f"lab{number}"))
        yield f"{NET}.1", prefixes


def without_perfdiff(folder: Path) -> dict[str, str]:
    """Return the variables of schedulers: what is called perfdiff there is nothing of ours."""
    (folder / "empty" / "perfdiff").mkdir(parents=True, exist_ok=True)
    (folder / "empty" / "perfdiff" / "__init__.py").touch()
    return environment() | {"PYTHONPATH": str(folder / "empty")}


def environment() -> dict[str, str]:
    """Return the variables of schedulers, workers and clients: with this checkout's perfdiff."""
    return programs.environment() | {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}


def processes(mark: str) -> list[int]:
    """Return the processes of this machine whose command line, or variables, hold a text."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdecimal() and int(entry.name) != os.getpid():
                told = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
                found += [int(entry.name)] * (mark.encode() in told)
    return found
