"""Run one workload point once: its time, its CPU, what it printed, and what else the machine did meanwhile."""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

from perfdiff.errors import WorkloadError

TAIL_BYTES = 4000  # of standard error, shown when a workload fails
MACHINE_WINDOW_S = 0.2  # /proc/stat counts in ticks of 10 ms; below 20 of them a share means nothing


@dataclass(frozen=True, slots=True)
class Command:
    """A command of the user's, ready to run: through the shell, in `directory`, with exactly this environment."""

    text: str
    directory: Path
    environment: Mapping[str, str]
    timeout_s: float
    exit_codes: tuple[int, ...]
    where: str  # for messages: "head, sort n=1000"


@dataclass(frozen=True, slots=True)
class Execution:
    """What one run cost. `output` digests standard output; `load` and `steal` are None where the run was too short to tell."""

    wall_ns: float
    cpu_ns: float
    max_rss_bytes: float
    load: float | None
    steal: float | None
    output: str


class Executor(Protocol):
    """The measuring seam: everything above it can be tested with an executor that runs nothing."""

    def execute(self, command: Command) -> Execution:
        """Run `command` to its end; raise WorkloadError where it fails, hangs or crashes."""
        ...


class ProcessExecutor:
    """Runs commands as process groups of their own, so that nothing of them survives."""

    def execute(self, command: Command) -> Execution:
        """Run `command` once. Its output is digested as it comes, never kept: a workload may print gigabytes."""
        machine = _machine_ticks()
        started = time.perf_counter_ns()
        process = subprocess.Popen(
            command.text,
            shell=True,  # the user's own command line
            cwd=command.directory,
            env=dict(command.environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        expired = threading.Event()
        timer = threading.Timer(command.timeout_s, _expire, (expired, process.pid))
        digest, tail = hashlib.blake2b(digest_size=16), bytearray()
        readers = [
            threading.Thread(target=_drain, args=(process.stdout, digest.update), daemon=True),
            threading.Thread(target=_drain, args=(process.stderr, lambda chunk: _keep_tail(tail, chunk)), daemon=True),
        ]
        timer.start()
        try:
            for reader in readers:
                reader.start()
            _, status, usage = os.wait4(process.pid, 0)
            wall_ns = float(time.perf_counter_ns() - started)
        finally:
            timer.cancel()
            _kill(process.pid)  # whatever the command left running in its group
        process.returncode = os.waitstatus_to_exitcode(status)
        for reader in readers:
            reader.join()
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
        _require_success(command, process.returncode, expired.is_set(), tail.decode(errors="replace"))
        cpu_ns = (usage.ru_utime + usage.ru_stime) * 1e9
        load, steal = _foreign_load(machine, _machine_ticks(), wall_ns, cpu_ns)
        return Execution(wall_ns, cpu_ns, usage.ru_maxrss * 1024.0, load, steal, digest.hexdigest())


def _expire(expired: threading.Event, group: int) -> None:
    expired.set()
    _kill(group)


def _drain(pipe: IO[bytes], keep: Callable[[bytes], None]) -> None:
    while chunk := pipe.read1(1 << 16):  # type: ignore[attr-defined]
        keep(chunk)


def _keep_tail(tail: bytearray, chunk: bytes) -> None:
    tail += chunk
    del tail[:-TAIL_BYTES]


def _kill(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _require_success(command: Command, status: int, expired: bool, tail: str) -> None:
    if expired:
        raise WorkloadError(
            f"'{command.text}' did not end within {command.timeout_s:g} s ({command.where}); "
            "give it more time with timeout_s, or smaller parameters",
            slug="workload-timeout",
            detail=tail,
        )
    if status < 0 or status > 128:  # the shell reports a child's signal as 128 + number
        number = -status if status < 0 else status - 128
        name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
        raise WorkloadError(
            f"'{command.text}' was killed by {name} ({command.where}); run it by hand in a debugger, then compare again",
            slug="workload-crashed",
            detail=tail,
        )
    if status not in command.exit_codes:
        raise WorkloadError(
            f"'{command.text}' exited {status} ({command.where}); if that is its way to succeed, list it in exit_codes",
            slug="workload-failed",
            detail=tail,
        )


def _machine_ticks() -> tuple[int, int, int] | None:
    """Return (busy, stolen, all) ticks of all CPUs since boot, or None where the system does not tell."""
    try:
        numbers = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    except (OSError, ValueError):
        return None
    user, nice, system, idle, iowait, irq, softirq, steal = numbers
    busy = user + nice + system + irq + softirq
    return busy, steal, busy + idle + iowait + steal


def _foreign_load(
    before: tuple[int, int, int] | None, after: tuple[int, int, int] | None, wall_ns: float, cpu_ns: float
) -> tuple[float | None, float | None]:
    """Return (CPUs busy with others, share of time stolen) between two readings."""
    if before is None or after is None or wall_ns < MACHINE_WINDOW_S * 1e9:
        return None, None
    busy, stolen, total = (late - early for early, late in zip(before, after, strict=True))
    if total <= 0:
        return None, None
    cpus = os.cpu_count() or 1
    return max(0.0, busy / total * cpus - cpu_ns / wall_ns), stolen / total
