"""Run one workload point once: its time, its CPU, what it printed, and what else the machine did meanwhile."""

from __future__ import annotations

import io
import math
import os
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import IO, Protocol

from perfdiff import processes, units
from perfdiff.build.holdings import SOURCE
from perfdiff.collect.execution import held_shell, kernel
from perfdiff.collect.execution.echoes import NO_ECHOES, Echoes
from perfdiff.collect.execution.guard import Guard, Limits, missing_bytes
from perfdiff.collect.execution.holding import HoldingCounter
from perfdiff.collect.execution.outputs import Stream
from perfdiff.collect.execution.printed import Patterns, PrintedNumbers
from perfdiff.collect.execution.shell_words import in_the_shells_place
from perfdiff.collect.execution.tasks import TaskCounter
from perfdiff.collect.execution.terminals import KIND, Keyboard, chunk_of, terminal
from perfdiff.config import TEMPLATE_COMMAND
from perfdiff.errors import DiskFilledError, RunFailedError, RunTimeoutError, StoreError, StraysError, WorkloadError
from perfdiff.languages.installed import installed
from perfdiff.languages.traits import Complaint
from perfdiff.records.behaviour import Behaviour, Concurrency
from perfdiff.records.exchanges import Exchanges
from perfdiff.records.kernel_use import KernelUse
from perfdiff.records.requests import RequestTimes

_NOT_FOUND = 127  # what the shell says of a program that is not there
_ABSENT_FILE = ("No such file or directory", *(words for traits in installed() if (words := traits.running.absent_file)))
TAIL_BYTES = 4000  # of what a workload printed last, shown when it fails
_NAMES_LEFT = 8  # of processes that a run left: more tell no more


class Purpose(StrEnum):
    """What a command is run for."""

    RUN = "run"
    SETUP = "setup"
    PREPARE = "prepare"
    LISTING = "listing"
    CHECK = "check"
    SERVICE = "service"


@dataclass(frozen=True, slots=True)
class Command:
    """A command of the user's, ready to run: through the shell, in `directory`, with exactly this environment.

    With `fixed_layout`, the programs' addresses are the same in every run. `features` are patterns of numbers that are looked for in its
    output: only where there are any is it looked at, as that takes time on which a program that prints may wait. It is ended where what it
    `needs` is gone, and bound to `cpus` where some are given. What it prints on standard output is kept in the file `kept_output`, where
    one is given, and what it reads on standard input comes from the file `input`, where one is given, else there is nothing to read. `own`
    is the folder of its build, whose path does not count in what it prints, and `echoes` is what shows no work there. With a `keyboard`,
    its standard streams are a terminal, but for such a file.
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
    kept_output: Path | None = None
    input: Path | None = None
    own: Path | None = None
    echoes: Echoes = NO_ECHOES
    keyboard: Keyboard | None = None

    @property
    def by_hand(self) -> str:
        """Say how a user runs it as it is run here: a tree may have an environment of its own beside it."""
        says, active = f"run it by hand in {self.directory}", self.environment.get("VIRTUAL_ENV")
        is_beside = active is not None and self.directory.is_relative_to(Path(active).with_name(SOURCE))
        return f"{says}, with {active}/bin first on PATH" if is_beside else says


@dataclass(frozen=True, slots=True)
class Execution:
    """What one run cost, and did. `output` digests standard output; `load` and `steal` are None where the run was too short to tell.

    `max_rss_bytes` is the most memory that one of its processes had, not a number where the kernel does not tell of the program alone;
    `held_bytes` the most that all of them were seen to have together, None where the run was too short to look at it often enough.
    `wall_ns` is its time by the clock, without `delay_ns`, which its process waited for a CPU as far as the kernel tells; what its children
    waited is in it.
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
    behaviour: Behaviour | None = None
    concurrency: Concurrency | None = None
    delay_ns: float = 0.0
    held_bytes: float | None = None
    kernel: KernelUse | None = None


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
        machine, waited = kernel.machine_ticks(), kernel.waited_us()
        with _running(command) as run:
            run.wait()
        now_waited = kernel.waited_us()
        (execution,) = _executions([run], machine)
        if waited is None or now_waited is None:
            return execution
        return replace(execution, waited=min(1.0, 1e3 * (now_waited - waited) / run.elapsed_ns))

    def execute_together(self, commands: Sequence[Command], cpus: Collection[int]) -> list[Execution]:
        """Run commands at the same time; none waits for its turn longer than the kernel's slice, some milliseconds."""
        machine = kernel.machine_ticks()
        # Marks tell which of the runs a process belongs to that has left it.
        marked = [
            replace(command, environment={**command.environment, processes.MARK: f"run {place}"}) for place, command in enumerate(commands)
        ]
        with ExitStack() as stack:
            with processes.bound(cpus):
                runs = [stack.enter_context(_running(command)) for command in marked]
            waiting = [threading.Thread(target=run.wait, daemon=True) for run in runs]
            for thread in waiting:
                thread.start()
            for thread in waiting:
                thread.join()
            strays = processes.end_strays([*runs[0].others, *(run.process.pid for run in runs)])
            executions = _executions(runs, machine)
            if strays and any(command.purpose is not Purpose.LISTING for command in commands):  # no listing is asked what it cost
                raise StraysError(units.listed(sorted(set(strays)), _NAMES_LEFT))
        return executions


@dataclass(slots=True)
class _Running:
    """A command that was started, and what is known of it once it has ended."""

    command: Command
    process: subprocess.Popen[bytes]
    guard: Guard
    tasks: TaskCounter
    holding: HoldingCounter
    others: frozenset[int]  # children of this process before it was started
    started: int
    printed_on: Sequence[_Printed]  # standard output and standard error
    elapsed_ns: float = 0.0
    wall_ns: float = 0.0
    cpu_ns: float = 0.0
    max_rss_bytes: float = math.nan
    transfers: Mapping[str, int] = field(default_factory=dict)
    kernel: KernelUse | None = None
    left: processes.Left = field(default_factory=processes.Left)

    @property
    def complaint(self) -> str:
        """Return the end of what it printed to standard error; of a program that complains on standard output, of that."""
        output, errors = (printed.tail for printed in self.printed_on)
        return (errors if errors.strip() else output).decode(errors="replace")

    def wait(self) -> None:
        """Wait for its end, and end what it left; where somebody else waited, as the block was left before, nothing is known of it."""
        shell = self.process.pid
        try:
            ended = held_shell.ended_below(shell)
            self.guard.saw_the_end()
            if ended is None:
                os.kill(shell, signal.SIGCONT)
                os.waitid(os.P_PID, shell, os.WEXITED | os.WNOWAIT)
            first = ended.program if ended else shell
            delay_ns = kernel.delay_ns(first) if ended else 0.0
            self.elapsed_ns = (ended.at_ns if ended else float(time.perf_counter_ns())) - self.started
            self.transfers = kernel.transfers(first)
            code, usage = held_shell.taken_over(shell, first)
            self.left = processes.end_what_is_left(shell, self.others, self.command.environment.get(processes.MARK, ""))
        except (ChildProcessError, ProcessLookupError):
            return
        waited_for_ns = (usage.ru_utime + usage.ru_stime) * 1e9
        self.cpu_ns = waited_for_ns + self.left.cpu_ns
        self.wall_ns = max(self.elapsed_ns - delay_ns, min(waited_for_ns, self.elapsed_ns))
        if ended is not None:
            self.max_rss_bytes = usage.ru_maxrss * 1024.0
            if self.transfers:
                reads, writes, read_bytes, written_bytes = (self.transfers[name] for name in ("syscr", "syscw", "rchar", "wchar"))
                self.kernel = KernelUse(reads, writes, read_bytes, written_bytes, usage.ru_minflt + usage.ru_majflt)
        self.process.returncode = code

    def printed(self) -> Mapping[str, float]:
        """Return the numbers that it printed, once all of its output was read."""
        return {name: number for stream in reversed(self.printed_on) if stream.numbers for name, number in stream.numbers.close().items()}

    def behaviour(self) -> Behaviour:
        """Return what it did, once all of its output was read."""
        output, errors = (stream.text.shape() for stream in self.printed_on)
        names = self.left.names[:_NAMES_LEFT]
        return Behaviour(self.process.returncode, output, errors, None, self.transfers.get("wchar"), names, self.left.cpu_ns)


class _Printed:
    """What a command prints in one place, read in a thread as it comes: its shape, its end, and numbers where some are looked for.

    A file `kept`, where one is given, gets all of it, and is closed behind that.
    """

    def __init__(self, pipe: IO[bytes] | None, command: Command, copy: IO[bytes] | None = None) -> None:
        assert pipe is not None, "the command's output goes to pipes"
        self.text, self.tail = Stream(command.own, command.echoes), bytearray()
        self.numbers = PrintedNumbers(command.features) if command.features else None
        self.reader = threading.Thread(target=self._drain, args=(pipe, copy), daemon=True)
        self.reader.start()

    def _drain(self, pipe: IO[bytes], copy: IO[bytes] | None) -> None:
        with pipe, copy or nullcontext():
            while chunk := chunk_of(pipe, 1 << 16):
                self.text.read(chunk)
                self.tail += chunk
                del self.tail[:-TAIL_BYTES]
                if self.numbers is not None:
                    self.numbers.read(chunk)
                if copy is not None:
                    copy.write(chunk)


@contextmanager
def _running(command: Command) -> Iterator[_Running]:
    """Start a command, and look after it until the block is left; raise WorkloadError or StoreError where it cannot be started."""
    if not command.directory.is_dir():
        raise tree_removed(command)
    if missing := missing_bytes(command.directory):
        raise StoreError(
            f"too little space is left in {command.directory} to run workloads: free {units.size(missing)} or more with "
            "`perfdiff cache prune`, or put the cache elsewhere with --cache",
            slug="disk-full",
        )
    with ExitStack() as stack:
        others = processes.children()
        own = stack.enter_context(ExitStack())  # what the program alone holds once it has been started
        screen = own.enter_context(terminal(command.keyboard)) if command.keyboard else None
        reading, printing = (subprocess.DEVNULL, subprocess.PIPE) if screen is None else (screen.descriptor, screen.descriptor)
        if command.input is not None:
            reading = own.enter_context(command.input.open("rb")).fileno()
        with processes.bound(command.cpus):
            process = stack.enter_context(
                processes.running(
                    held_shell.held(shell_text(command)),
                    command.directory,
                    command.environment if screen is None else {"TERM": KIND, **command.environment},
                    stdout=printing,
                    stderr=printing,
                    stdin=reading,
                )
            )
        started = time.perf_counter_ns()
        own.close()
        copy = None if command.kept_output is None else command.kept_output.open("wb")
        output, errors = (process.stdout, process.stderr) if screen is None else (screen.shown, io.BytesIO())
        printed_on = [_Printed(output, command, copy), _Printed(errors, command)]
        tasks = TaskCounter(process.pid, len(os.sched_getaffinity(process.pid)))
        holding, limits = HoldingCounter(process.pid), Limits(command.directory, command.timeout_s, command.needs)
        looking = (tasks, holding) if command.purpose is Purpose.RUN else ()
        with Guard(limits, process.pid, *looking) as guard:
            yield _Running(command, process, guard, tasks, holding, others, started, printed_on)


def _executions(runs: Sequence[_Running], machine: tuple[int, int, int] | None) -> list[Execution]:
    """Return what runs cost that have ended together; raise WorkloadError where one did not succeed."""
    for run in runs:
        for printed in run.printed_on:
            printed.reader.join()
    for run in runs:
        require_success(run.command, run.process.returncode, run.guard, run.complaint)
    elapsed_ns, cpu_ns = max(run.elapsed_ns for run in runs), sum(run.cpu_ns for run in runs)
    load, steal = kernel.foreign_load(machine, kernel.machine_ticks(), elapsed_ns, cpu_ns)
    return [_execution(run, load, steal) for run in runs]


def _execution(run: _Running, load: float | None, steal: float | None) -> Execution:
    behaviour = run.behaviour()
    return Execution(
        run.wall_ns,
        run.cpu_ns,
        run.max_rss_bytes,
        load,
        steal,
        behaviour.output.exact,
        printed=run.printed(),
        behaviour=behaviour,
        concurrency=run.tasks.concurrency(run.cpu_ns / run.elapsed_ns) if run.elapsed_ns else None,
        delay_ns=run.elapsed_ns - run.wall_ns,
        kernel=run.kernel,
        held_bytes=run.holding.most_bytes(run.max_rss_bytes),
    )


def tree_removed(command: Command) -> WorkloadError:
    """Return the error that the folder of a command is not there."""
    return WorkloadError(
        f"{command.directory} is gone, where '{command.text}' is to run ({command.where}); let workloads keep their folder",
        slug="workload-removed-tree",
    )


def shell_text(command: Command) -> str:
    """Return the text that the shell is given to run a command."""
    text = in_the_shells_place(command.text, command.directory, command.environment.get("PATH", os.defpath))
    return f"exec setarch -R /bin/sh -c {shlex.quote(text)}" if command.fixed_layout else text


def _remedy(command: Command, status: int, tail: str) -> str:
    """Return what helps where a workload ended with another code than those of success, by what it printed last."""
    if status == _NOT_FOUND and command.text.split()[0] == TEMPLATE_COMMAND.split()[0]:
        return "the workload's command in perfdiff.toml is still the example of `perfdiff init`: write there what runs your program"
    if command.own is None:
        if status == _NOT_FOUND:
            return f"install the program that was not found, or name it by its path from {command.directory}"
        return f"{command.by_hand}, or give --exit-code {status} if that is its way to succeed"
    if status == _NOT_FOUND:
        return (
            f"install the program that was not found, or name it by its path in the built tree, {command.directory}; what only your "
            "checkout has needs `overlay` under [build]"
        )
    if any(words in tail for words in _ABSENT_FILE):
        return f"{command.by_hand}; a file that only your checkout has needs `overlay` under [build]"
    return f"{command.by_hand}, or list {status} in exit_codes if that is its way to succeed"


def _complaint(tail: str) -> Complaint | None:
    """Return what a runtime complains of at the end of standard error, None where nothing in it is known."""
    readers = (traits.running.complaint for traits in installed() if traits.running.complaint is not None)
    return next(filter(None, (read(tail) for read in readers)), None)


def require_success(command: Command, status: int, guard: Guard, tail: str) -> None:
    """Raise WorkloadError where a run did not end as it should; `status` is below 0 for a signal, `tail` what it printed last."""
    what = f"'{command.text}'"
    by_hand = command.by_hand
    if guard.expired:
        kind = RunTimeoutError if command.purpose is Purpose.RUN else RunFailedError
        raise kind(
            f"{what} did not end within {command.timeout_s:g} s ({command.where}); give it more time with timeout_s, or smaller parameters",
            slug="workload-timeout",
            detail=tail,
        )
    if guard.forsaken:
        raise WorkloadError(
            f"{what} was ended ({command.where}), as it may wait for a service that is gone", slug="service-died", detail=tail
        )
    succeeded = status in command.exit_codes
    if guard.filled or (not succeeded and missing_bytes(command.directory)):
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
    if command.purpose is Purpose.CHECK:
        raise WorkloadError(
            f"{what} exited {status} ({command.where}): by the workload's `check`, the run did not do its work; {by_hand}, with what the "
            "run prints on its standard input",
            slug="check-failed",
            detail=tail,
        )
    if command.purpose is not Purpose.RUN:
        raise WorkloadError(
            f"{what} exited {status} ({command.where}), but what a workload names as its {command.purpose} must exit 0; {by_hand}",
            slug="setup-failed" if command.purpose is Purpose.SETUP else "prepare-failed",
            detail=tail,
        )
    if complaint := _complaint(tail):
        raise RunFailedError(
            f"{what} exited {status} ({command.where}): {complaint.says}; {complaint.remedy}", slug=complaint.slug, detail=tail
        )
    raise RunFailedError(
        f"{what} exited {status} ({command.where}); {_remedy(command, status, tail)}",
        slug="workload-failed",
        detail=tail,
    )
