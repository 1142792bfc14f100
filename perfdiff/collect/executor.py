"""Run one workload point once: its time, its CPU, what it printed, and what else the machine did meanwhile."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import IO, Protocol

from perfdiff import processes, units
from perfdiff.build.jobs import SOURCE
from perfdiff.collect import complaints, held_shell
from perfdiff.collect.printed import Patterns, PrintedNumbers
from perfdiff.config import TEMPLATE_COMMAND
from perfdiff.errors import DiskFilledError, RunFailedError, StoreError, WorkloadError
from perfdiff.records.exchanges import Exchanges
from perfdiff.records.requests import RequestTimes

_OPERATORS = frozenset("();<>|&")  # of the shell, between commands
_SETTINGS = re.compile(r"(?:[A-Za-z_]\w*=[\w./:,+-]*\s+)+")  # of variables, ahead of a command
_BUILT_IN = frozenset(("echo", "false", "kill", "printf", "pwd", "test", "time", "true"))  # as programs not quite the same
_PROGRAM = re.compile(r"[\w./+-]+(?!\S)")
_NOT_FOUND = 127  # what the shell says of a program that is not there
_ABSENT_FILE = ("No such file or directory", "Could not open input file: ")  # the second one is PHP's
TAIL_BYTES = 4000  # of what a workload printed last, shown when it fails
MACHINE_WINDOW_S = 0.2  # /proc/stat counts in ticks of 10 ms; below 20 of them a share means nothing
WATCH_S = 0.1  # between two looks at the free space: a fast disk takes some 200 MB in this time
RESERVE_BYTES = 1e9  # a workload is stopped before it leaves less of the disk to everybody else …
RESERVE_SHARE = 0.05  # … or less than this part of a small disk; filesystems keep as much for root


class Purpose(StrEnum):
    """What a command is run for."""

    RUN = "run"
    SETUP = "setup"
    PREPARE = "prepare"
    LISTING = "listing"
    SERVICE = "service"


@dataclass(frozen=True, slots=True)
class Command:
    """A command of the user's, ready to run: through the shell, in `directory`, with exactly this environment.

    With `fixed_layout`, the programs' addresses are the same in every run. `features` are patterns of numbers that are looked for in its
    output: only where there are any is it looked at, as that takes time on which a program that prints may wait. It is ended where what it
    `needs` is gone, and bound to `cpus` where some are given.
    """

    text: str
    directory: Path
    environment: Mapping[str, str]
    timeout_s: float
    exit_codes: tuple[int, ...]
    where: str  # for messages: "head, sort n=1000"
    fixed_layout: bool = False
    purpose: Purpose = Purpose.RUN
    features: Patterns = field(default_factory=dict)
    needs: Callable[[], bool] | None = None
    cpus: Collection[int] | None = None

    @property
    def by_hand(self) -> str:
        """Say how a user runs it as it is run here: a tree may have an environment of its own beside it."""
        says, active = f"run it by hand in {self.directory}", self.environment.get("VIRTUAL_ENV")
        is_beside = active is not None and self.directory.is_relative_to(Path(active).with_name(SOURCE))
        return f"{says}, with {active}/bin first on PATH" if is_beside else says


@dataclass(frozen=True, slots=True)
class Execution:
    """What one run cost. `output` digests standard output; `load` and `steal` are None where the run was too short to tell.

    `wall_ns` is its time by the clock, without what its process waited for a CPU as far as the kernel tells; what its children waited is in
    it.
    `waited` is the share of its time in which some process waited for a CPU, None where the kernel does not tell, or where the run shared
    one by intent. `printed` are the numbers that it printed, by the names of the command's features: those on standard output, and of
    features that were not there those on standard error, as nobody knows which of the two was first.
    """

    wall_ns: float
    cpu_ns: float
    max_rss_bytes: float
    load: float | None
    steal: float | None
    output: str
    waited: float | None = None
    printed: Mapping[str, float] = field(default_factory=dict)
    services: Mapping[str, Exchanges] = field(default_factory=dict)
    requests: tuple[RequestTimes, ...] = ()


class Executor(Protocol):
    """The measuring seam: everything above it can be tested with an executor that runs nothing."""

    def execute(self, command: Command) -> Execution:
        """Run `command` to its end; raise WorkloadError where it fails, hangs or crashes."""
        ...

    def execute_together(self, commands: Sequence[Command], cpus: Collection[int]) -> list[Execution]:
        """Run commands at the same time on these CPUs: on one they take turns; raise WorkloadError where one of them does not succeed."""
        ...


class ProcessExecutor:
    """Runs commands so that nothing of them survives, and ends what takes too long or fills the disk."""

    def execute(self, command: Command) -> Execution:
        """Run `command` once. Its output is digested as it comes, never kept: a workload may print gigabytes."""
        machine, waited = _machine_ticks(), _waited_us()
        with _running(command) as run:
            run.wait()
        now_waited = _waited_us()
        (found,) = _executions([run], machine)
        if waited is None or now_waited is None:
            return found
        return replace(found, waited=min(1.0, 1e3 * (now_waited - waited) / run.elapsed_ns))

    def execute_together(self, commands: Sequence[Command], cpus: Collection[int]) -> list[Execution]:
        """Run commands at the same time; none waits for its turn longer than the kernel's slice, some milliseconds."""
        machine = _machine_ticks()
        with ExitStack() as stack:
            with processes.bound(cpus):
                runs = [stack.enter_context(_running(command)) for command in commands]
            waiting = [threading.Thread(target=run.wait, daemon=True) for run in runs]
            for thread in waiting:
                thread.start()
            for thread in waiting:
                thread.join()
        return _executions(runs, machine)


@dataclass(slots=True)
class _Running:
    """A command that was started, and what is known of it once it has ended."""

    command: Command
    process: subprocess.Popen[bytes]
    watch: _Watch
    started: int
    digest: hashlib.blake2b
    errors: bytearray  # the end of what it printed there
    output: bytearray
    numbers: Sequence[PrintedNumbers]  # on standard output and standard error, nothing where no features are looked for
    readers: Sequence[threading.Thread]
    elapsed_ns: float = 0.0
    wall_ns: float = 0.0
    cpu_ns: float = 0.0
    max_rss_bytes: float = 0.0

    @property
    def complaint(self) -> str:
        """Return the end of what it printed to standard error; of a program that complains on standard output, of that."""
        return (self.errors if self.errors.strip() else self.output).decode(errors="replace")

    def wait(self) -> None:
        """Wait for its end; where somebody else did so, as the block was left before, nothing is known of it."""
        shell = self.process.pid
        try:
            program = held_shell.ended_below(shell)
            self.elapsed_ns = float(time.perf_counter_ns() - self.started)
            delay_ns = held_shell.delay_ns(program) if program else 0.0
            os.kill(shell, signal.SIGCONT)
            os.waitid(os.P_PID, shell, os.WEXITED | os.WNOWAIT)
            if program is None:
                self.elapsed_ns = float(time.perf_counter_ns() - self.started)
            _, status, usage = os.wait4(shell, 0)
        except (ChildProcessError, ProcessLookupError):
            return
        self.cpu_ns = (usage.ru_utime + usage.ru_stime) * 1e9
        self.wall_ns = max(self.elapsed_ns - delay_ns, min(self.cpu_ns, self.elapsed_ns))
        self.max_rss_bytes = usage.ru_maxrss * 1024.0
        self.process.returncode = os.waitstatus_to_exitcode(status)

    def printed(self) -> Mapping[str, float]:
        """Return the numbers that it printed, once all of its output was read."""
        return {name: number for each in reversed(self.numbers) for name, number in each.close().items()}


@contextmanager
def _running(command: Command) -> Iterator[_Running]:
    """Start a command, and look after it until the block is left; raise WorkloadError or StoreError where it cannot be started."""
    if not command.directory.is_dir():
        raise tree_removed(command)
    missing = _missing_bytes(command.directory)
    if missing:
        raise StoreError(
            f"too little space is left in {command.directory} to run workloads: free {units.size(missing)} or more with "
            "`perfdiff cache prune`, or put the cache elsewhere with --cache",
            slug="disk-full",
        )
    digest, errors, output = hashlib.blake2b(digest_size=16), bytearray(), bytearray()
    numbers = [PrintedNumbers(command.features) for _ in ("output", "errors")] if command.features else []
    with ExitStack() as stack:
        with processes.bound(command.cpus):
            process = stack.enter_context(
                processes.running(held_shell.held(shell_text(command)), command.directory, command.environment, stdout=subprocess.PIPE)
            )
        started = time.perf_counter_ns()
        readers = [
            _reader(process.stdout, [digest.update, lambda chunk: _keep_tail(output, chunk), *(each.read for each in numbers[:1])]),
            _reader(process.stderr, [lambda chunk: _keep_tail(errors, chunk), *(each.read for each in numbers[1:])]),
        ]
        with _Watch(command, process.pid) as watch:
            yield _Running(command, process, watch, started, digest, errors, output, numbers, readers)


def _executions(runs: Sequence[_Running], machine: tuple[int, int, int] | None) -> list[Execution]:
    """Return what runs cost that have ended together; raise WorkloadError where one did not succeed."""
    for run in runs:
        for reader in run.readers:
            reader.join()
    for run in runs:
        _require_success(run.command, run.process.returncode, run.watch, run.complaint)
    load, steal = _foreign_load(machine, _machine_ticks(), max(run.elapsed_ns for run in runs), sum(run.cpu_ns for run in runs))
    return [
        Execution(run.wall_ns, run.cpu_ns, run.max_rss_bytes, load, steal, run.digest.hexdigest(), printed=run.printed()) for run in runs
    ]


def tree_removed(command: Command) -> WorkloadError:
    """Return the error that the folder of a command is not there."""
    return WorkloadError(
        f"{command.directory} is gone, where '{command.text}' is to run ({command.where}); let workloads keep their folder",
        slug="workload-removed-tree",
    )


def shell_text(command: Command) -> str:
    """Return what the shell is given to run a command."""
    text = _in_the_shells_place(command)
    return f"exec setarch -R /bin/sh -c {shlex.quote(text)}" if command.fixed_layout else text


def _in_the_shells_place(command: Command) -> str:
    """Return the text such that a program that is all the shell starts takes its place, other texts as they are.

    The kernel tells what the process waited for a CPU that was started, not what its children did, and `dash` stays above its last command.
    """
    words, text = shlex.shlex(command.text, punctuation_chars=True), command.text.strip()
    words.whitespace_split, words.commenters = True, ""
    try:
        if "\n" in text or any(set(word) <= _OPERATORS for word in words):
            return command.text
    except ValueError:  # quotes that do not end: the shell will say so
        return command.text
    settings = _SETTINGS.match(text)
    start = settings.end() if settings else 0
    program = _PROGRAM.match(text, start)
    if program is None or not _is_program(program.group(), command):
        return command.text
    return f"{text[:start]}exec {text[start:]}"


def _is_program(word: str, command: Command) -> bool:
    """Return whether a command's first word is that of a file to be executed, and not only of the shell's own."""
    if "/" in word:
        return os.access(command.directory / word, os.X_OK)
    return word not in _BUILT_IN and shutil.which(word, path=command.environment.get("PATH", os.defpath)) is not None


class _Watch:
    """Looks after a running command in a thread, and kills it when its time is over or the disk is nearly full."""

    def __init__(self, command: Command, group: int) -> None:
        self.expired = False
        self.filled = False
        self.forsaken = False
        self._command = command
        self._group = group
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> _Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _look(self) -> None:
        deadline = time.monotonic() + self._command.timeout_s
        while not self._ended.wait(min(WATCH_S, max(0.0, deadline - time.monotonic()))):
            self.expired = time.monotonic() >= deadline
            self.filled = bool(_missing_bytes(self._command.directory))
            self.forsaken = self._command.needs is not None and not self._command.needs()
            if self.expired or self.filled or self.forsaken:
                processes.kill_group(self._group)
                return


def _missing_bytes(folder: Path) -> int:
    """Return by how much the free space around `folder` falls short of what is left alone, 0 where it does not or nobody can tell."""
    try:
        disk = shutil.disk_usage(folder)
    except OSError:  # a workload may remove the folder it runs in
        return 0
    return max(0, int(min(RESERVE_BYTES, disk.total * RESERVE_SHARE)) - disk.free)


def _reader(pipe: IO[bytes] | None, keepers: Sequence[Callable[[bytes], None]]) -> threading.Thread:
    assert pipe is not None, "the command's output goes to pipes"
    reader = threading.Thread(target=_drain, args=(pipe, keepers), daemon=True)
    reader.start()
    return reader


def _drain(pipe: IO[bytes], keepers: Sequence[Callable[[bytes], None]]) -> None:
    with pipe:
        while chunk := pipe.read1(1 << 16):  # type: ignore[attr-defined]
            for keep in keepers:
                keep(chunk)


def _keep_tail(tail: bytearray, chunk: bytes) -> None:
    tail += chunk
    del tail[:-TAIL_BYTES]


def _remedy(command: Command, status: int, tail: str) -> str:
    """Return what helps where a workload ended with another code than those of success, by what it printed last."""
    if status == _NOT_FOUND and command.text.split()[0] == TEMPLATE_COMMAND.split()[0]:
        return "the workload's command in perfdiff.toml is still the example of `perfdiff init`: write there what runs your program"
    if status == _NOT_FOUND:
        return (
            f"install the program that was not found, or name it by its path in the built tree, {command.directory}; what only your "
            "checkout has needs `overlay` under [build]"
        )
    if any(words in tail for words in _ABSENT_FILE):
        return f"{command.by_hand}; a file that only your checkout has needs `overlay` under [build]"
    return f"{command.by_hand}, or list {status} in exit_codes if that is its way to succeed"


def _require_success(command: Command, status: int, watch: _Watch, tail: str) -> None:
    """Raise WorkloadError where a run did not end as it should; `status` is below 0 for a signal."""
    what = f"'{command.text}'"
    by_hand = command.by_hand
    if watch.expired:
        raise RunFailedError(
            f"{what} did not end within {command.timeout_s:g} s ({command.where}); give it more time with timeout_s, or smaller parameters",
            slug="workload-timeout",
            detail=tail,
        )
    if watch.forsaken:
        raise WorkloadError(
            f"{what} was ended ({command.where}), as it may wait for a service that is gone", slug="service-died", detail=tail
        )
    succeeded = status in command.exit_codes
    if watch.filled or (not succeeded and _missing_bytes(command.directory)):
        raise DiskFilledError(
            f"{what} filled the disk that holds {command.directory} ({command.where}); "
            "let it write less or elsewhere, or put the cache on a larger disk with --cache",
            slug="workload-filled-disk",
            detail=tail,
        )
    if succeeded:
        return
    number = -status if status < 0 else status - 128  # the shell reports a child's signal as 128 + number
    if 0 < number < signal.NSIG:
        why = ", perhaps for want of memory" if number == signal.SIGKILL else ""
        raise RunFailedError(
            f"{what} was killed by {processes.signal_name(number)}{why} ({command.where}); {by_hand}, in a debugger if need be",
            slug="workload-crashed",
            detail=tail,
        )
    if command.purpose is Purpose.LISTING:
        raise WorkloadError(
            f"{what} exited {status} ({command.where}), so that its benchmarks are not known; {by_hand}, and correct the selection or what "
            "it needs",
            slug="no-benchmarks",
            detail=tail,
        )
    if command.purpose is Purpose.SERVICE:
        raise WorkloadError(
            f"{what} exited {status} ({command.where}), but must exit 0; {by_hand}", slug="service-setup-failed", detail=tail
        )
    if command.purpose is not Purpose.RUN:
        raise WorkloadError(
            f"{what} exited {status} ({command.where}), but what a workload names as its {command.purpose} must exit 0; {by_hand}",
            slug="setup-failed" if command.purpose is Purpose.SETUP else "prepare-failed",
            detail=tail,
        )
    if complaint := complaints.read(tail):
        raise RunFailedError(
            f"{what} exited {status} ({command.where}): {complaint.says}; {complaint.remedy}", slug=complaint.slug, detail=tail
        )
    raise RunFailedError(
        f"{what} exited {status} ({command.where}); {_remedy(command, status, tail)}",
        slug="workload-failed",
        detail=tail,
    )


def _waited_us() -> int | None:
    """Return for how long, since boot, some process has waited for a CPU (pressure stall information), or None where nobody counts."""
    try:
        line = Path("/proc/pressure/cpu").read_text().split("\n", 1)[0]
        return int(line.rpartition("total=")[2])
    except (OSError, ValueError):
        return None


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
    before: tuple[int, int, int] | None, after: tuple[int, int, int] | None, elapsed_ns: float, cpu_ns: float
) -> tuple[float | None, float | None]:
    """Return (CPUs busy with others, share of time stolen) between two readings."""
    if before is None or after is None or elapsed_ns < MACHINE_WINDOW_S * 1e9:
        return None, None
    busy, stolen, total = (late - early for early, late in zip(before, after, strict=True))
    if total <= 0:
        return None, None
    cpus = os.cpu_count() or 1
    return max(0.0, busy / total * cpus - cpu_ns / elapsed_ns), stolen / total
