"""Commands of the user's, builds and workloads: started so that nothing of them outlives their use, whatever they start themselves."""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from perfdiff import watchdog

MARK = watchdog.MARK  # the variable by which daemons are known that a command of an outer block left
_SET_CHILD_SUBREAPER, _GET_CHILD_SUBREAPER = 36, 37  # prctl(2)
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)
_CPU_CLOCK = 2  # of the kernel's three of a process: user and system time, in ns
_LOOK_S = 0.002  # between two looks whether processes have ended
_PAUSE_S = 0.01  # the same of commands, where the kernel does not tell
_GRACE_S = 0.05  # helpers that end with a program's first process, as those of Python's pools, do so within some milliseconds
_WAIT_S = 0.1  # without a look: a signal that another thread takes ends no wait of this one

# The shell stays above the command, whatever that is: a program that kills its parent kills no perfdiff. It outlives the group's signals.
_BELOW_SHELL = "trap : HUP INT QUIT TERM USR1 USR2; ( :; {command}\n)\nexit $?"

_leaders: set[int] = set()  # shells of commands that run
_adoption = threading.Lock()
_staying: dict[int, str] = {}  # processes that `running` may not kill, with their names


@dataclass(frozen=True, slots=True)
class Left:
    """What a command left: the names of processes that outlived it, and the CPU time of all that nobody waited for."""

    names: tuple[str, ...] = ()
    cpu_ns: float = 0.0


@contextmanager
def running(  # noqa: PLR0913 (three of them are the standard streams)
    command: str,
    folder: Path,
    environment: Mapping[str, str],
    *,
    stdout: int | None,
    stderr: int | None = subprocess.PIPE,
    stdin: int | None = subprocess.DEVNULL,
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a shell command in `folder` with exactly this environment, for the length of a `with` block; what is None is as it is here.

    The process is a shell above the command, which ends as that does: with 128 + N where a signal N ended it.

    When the block is left, in any way, its process group is killed, and so is what left the group: daemons are known by having become
    this process's children when their parents ended. Where this process is killed, its watchdog does so. Pipes stay open, for what is
    still in them. Blocks may stand in one another; an inner one leaves alone what bears the `MARK` of another.
    """
    process, mark = None, environment.get(MARK, "")
    watchdog.begin()
    with _adopting_orphans():
        mine = _children()
        try:
            with signals_held():  # what came meanwhile is raised when this block is left, with the process known
                process = subprocess.Popen(
                    ["/bin/sh", "-c", _BELOW_SHELL.format(command=command)],
                    cwd=folder,
                    env=dict(environment),
                    stdin=stdin,
                    stdout=stdout,
                    stderr=stderr,
                    start_new_session=True,
                )
                _leaders.add(process.pid)
                watchdog.watch(process.pid, mark)
            yield process
        finally:
            if process is not None:
                kill_group(process.pid)
                process.wait()
            left: set[int] = set()
            with adopting():
                while orphans := {child for child in _children() - mine - left if _mark(child) in ("", mark)}:
                    left |= {orphan for orphan in orphans if _kill(orphan) is None}
            _staying.update({stray: _name(stray) for stray in left})
            if process is not None:
                _leaders.discard(process.pid)
                watchdog.forget(process.pid)


@contextmanager
def adopting() -> Iterator[None]:
    """Be the only thread that ends children of this process and waits for them, until the block is left.

    What has lost its parent is anybody's until somebody has waited for it: where one thread takes such a process for its own, no other may.
    """
    with _adoption:
        yield


def children() -> frozenset[int]:
    """Return the ids of this process's children."""
    return _children()


def end_what_is_left(leader: int, others: Collection[int], mark: str) -> Left:
    """End what a command of `running` left, once its first process has ended; return what that is.

    `others` were children of this process before the command was started. Processes that are about to end by themselves, as helpers of
    one that has just ended, have `_GRACE_S` for that, and are not said to be left.
    """

    def orphans() -> set[int]:
        return {child for child in _children().difference((leader, *others), _leaders) if _mark(child) == mark}

    names: dict[int, str] = {}
    if not holds(lambda: not any(map(_is_running, orphans())), _GRACE_S, _LOOK_S):
        names |= {process: _name(process) for process in _with_those_below(orphans()) if _is_running(process)}
        kill_group(leader)
    cpu_ns, tried = 0.0, set[int]()
    with adopting():
        while remaining := orphans() - tried:
            tried |= remaining
            cpu_ns += sum(_kill(orphan) or 0.0 for orphan in remaining)
    return Left(tuple(sorted(names.values())), cpu_ns)


def end_strays(spared: Collection[int]) -> tuple[str, ...]:
    """End what commands left, whether it lives or not, but for children of this process that are `spared`; return the names.

    Of what has ended, or hides its environment, nobody can tell by its `MARK` which command left it. Nothing of a command is of this
    process's own session, in which helpers of its own are.
    """
    names = []
    while strays := {child for child in _children().difference(spared, _leaders, _staying, watchdog.processes()) if _is_elsewhere(child)}:
        names += [_name(stray) for stray in strays]
        for stray in strays:
            if _kill(stray) is None:
                _staying[stray] = _name(stray)
    return tuple(sorted(names))


def staying() -> tuple[str, ...]:
    """Return the names and numbers of processes that commands of `running` left, and that go on as they may not be killed."""
    there = _children()
    return tuple(f"{name} ({process})" for process, name in _staying.items() if process in there and _is_running(process))


def ends(commands: Sequence[subprocess.Popen[bytes]], timeout_s: float) -> Iterator[int]:
    """Yield the places of commands as they end, which are waited for together, until all have ended or the time is over.

    All waiting is done here, in the caller's thread: a signal's handler interrupts it wherever it stands.
    """
    deadline, running_ = time.monotonic() + timeout_s, dict(enumerate(commands))
    while running_:
        ended = [place for place, command in running_.items() if command.poll() is not None]
        for place in ended:
            del running_[place]
        yield from ended
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            return
        if not ended:
            _wait_for_one(running_.values(), min(left_s, _WAIT_S))


def succeeds(command: subprocess.Popen[bytes], timeout_s: float) -> bool:
    """Return whether a command ends within a time and exits 0."""
    return any(command.returncode == 0 for _ in ends([command], timeout_s))


def _wait_for_one(commands: Iterable[subprocess.Popen[bytes]], most_s: float) -> None:
    """Wait until one of the commands has ended, or so long; where the kernel does not tell (before Linux 5.3), for a pause."""
    with ExitStack() as stack:
        ends_ = select.poll()
        try:
            for command in commands:
                descriptor = os.pidfd_open(command.pid)
                stack.callback(os.close, descriptor)
                ends_.register(descriptor, select.POLLIN)
        except OSError:
            time.sleep(min(_PAUSE_S, most_s))
            return
        ends_.poll(math.ceil(most_s * 1e3))


@contextmanager
def bound(cpus: Collection[int] | None) -> Iterator[None]:
    """Bind this thread, and all that it starts, to some CPUs until the block is left; to none in particular where it is None."""
    if cpus is None:
        yield
        return
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, cpus)
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def family(leader: int, mark: str) -> frozenset[int]:
    """Return the process ids of a command: its own group, their descendants, and daemons that bear its mark."""
    return _with_those_below({child for child in _children() if child == leader or _mark(child) == mark})


def descendants(process: int) -> frozenset[int]:
    """Return the processes that descend from a process."""
    return _with_those_below({process}) - {process}


def _with_those_below(processes: set[int]) -> frozenset[int]:
    """Return processes and those that descend from them."""
    family, open_ = set[int](), processes
    while open_:
        family |= open_
        open_ = {child for parent in open_ for child in _children(parent)} - family
    return frozenset(family)


def stop(leader: int, mark: str, number: signal.Signals, timeout_s: float) -> bool:
    """Send a signal to all processes of a command of `running`; return whether they ended within the time."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)
    for process in family(leader, mark):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if os.getpgid(process) != leader:
                os.kill(process, number)
    return holds(lambda: not is_alive(leader, mark), timeout_s, _LOOK_S)


def is_alive(leader: int, mark: str) -> bool:
    """Return whether a command of `running` has a process that has not ended."""
    return any(map(_is_running, family(leader, mark)))


def holds(condition: Callable[[], bool], timeout_s: float, look_s: float) -> bool:
    """Return whether a condition holds within `timeout_s`; it is tested every `look_s` seconds."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(look_s)
    return True


def cpu_ns(process: int) -> float:
    """Return the CPU time of a process and of the children that it waited for, theirs in steps of a tick; 0 where it is gone."""
    try:
        own = time.clock_gettime_ns((~process << 3) | _CPU_CLOCK)
        ticks = [int(word) for word in _stat(process)[13:15]]
    except (OSError, ValueError):
        return 0.0
    return own + sum(ticks) * 1e9 / os.sysconf("SC_CLK_TCK")


def peak_rss_bytes(process: int) -> float:
    """Return the most memory that a process had, 0 where it is gone."""
    return 1024.0 * int(_status(process).get("VmHWM", "0").split()[0])


def _status(process: int) -> dict[str, str]:
    """Return the fields of proc_pid_status(5), nothing where the process is gone."""
    try:
        lines = Path(f"/proc/{process}/status").read_text(errors="replace").splitlines()
    except OSError:
        return {}
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def _stat(process: int) -> list[str]:
    """Return the fields of proc_pid_stat(5) behind the name, the state first; nothing where the process is gone."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _is_elsewhere(process: int) -> bool:
    """Return whether a process is of another session than this one."""
    try:
        return os.getsid(process) != os.getsid(0)
    except ProcessLookupError:
        return False


def is_stopped(process: int) -> bool:
    """Return whether a signal stopped a process, which is there."""
    return next(iter(_stat(process)), "") == "T"


def is_held(process: int) -> bool:
    """Return whether a signal stopped a process, and no other one waits until it goes on, but that a child has ended."""
    status = _status(process)
    pending = int(status.get("SigPnd", "0"), 16) | int(status.get("ShdPnd", "0"), 16)
    return status.get("State", "").startswith("T") and not pending & ~(1 << signal.SIGCHLD - 1)


def _is_running(process: int) -> bool:
    """Return whether a process is there and has not ended."""
    return next(iter(_stat(process)), "") not in ("Z", "X", "")


def _name(process: int) -> str:
    """Return the name of a process as the kernel has it, "" where it is gone."""
    try:
        return Path(f"/proc/{process}/comm").read_text(errors="replace").strip()
    except OSError:
        return ""


def _mark(process: int) -> str:
    """Return the mark that a process was started with, "" where it has none or cannot be read."""
    try:
        variables = Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
    except OSError:
        return ""
    prefix = f"{MARK}=".encode()
    return next((os.fsdecode(variable[len(prefix) :]) for variable in variables if variable.startswith(prefix)), "")


def send(leader: int, number: signal.Signals) -> None:
    """Send a signal to the process group of a command that `running` started; raise ProcessLookupError where it has ended."""
    os.killpg(leader, number)


def kill_group(leader: int) -> None:
    """Kill the process group of a command that `running` started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def signal_name(number: int) -> str:
    """Return the name of a signal, or `signal 40` of one that has none, as most of those for real time."""
    return signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"


def _kill(child: int) -> float | None:
    """Kill a child and wait for its end; return the CPU time in ns of it and of those that it waited for, 0 where somebody else waited.

    None where it did not end: one of another user, as of `sudo`, may not be killed, and may go on.
    """
    options = 0
    try:
        os.kill(child, signal.SIGKILL)
    except ProcessLookupError:
        pass
    except PermissionError:
        options = os.WNOHANG
    with contextlib.suppress(ChildProcessError):
        ended, _, usage = os.wait4(child, options)
        return 1e9 * (usage.ru_utime + usage.ru_stime) if ended == child else None
    return 0.0


def _children(parent: int | None = None) -> frozenset[int]:
    """Return the processes whose parent is this one, or another, as far as the kernel lists them."""
    children: set[int] = set()
    threads: list[Path] = []
    with contextlib.suppress(OSError):  # the process has ended
        threads += Path(f"/proc/{parent or 'self'}/task").glob("*/children")
    for thread in threads:
        with contextlib.suppress(OSError):  # the thread has ended
            children.update(map(int, thread.read_text().split()))
    return frozenset(children)


@contextmanager
def _adopting_orphans() -> Iterator[None]:
    """Make this process the parent of every descendant whose own parent ends; within another such block, it stays that."""
    prctl, before = ctypes.CDLL(None, use_errno=True).prctl, ctypes.c_int()
    prctl(_GET_CHILD_SUBREAPER, ctypes.byref(before), 0, 0, 0)
    prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        prctl(_SET_CHILD_SUBREAPER, before, 0, 0, 0)


@contextmanager
def signals_held() -> Iterator[None]:
    """Put off what a signal's handler would raise until the block is left.

    For moments in which an exception gets lost, or loses something: while a process is started and not known yet, or in callbacks of C.
    """
    if threading.current_thread() is not threading.main_thread():  # handlers run in the main thread alone
        yield
        return
    came: list[int] = []
    handlers = {number: signal.getsignal(number) for number in _ENDING}
    held = {number: handler for number, handler in handlers.items() if callable(handler)}
    for number in held:
        signal.signal(number, lambda number, _frame: came.append(number))
    try:
        yield
    finally:
        for number, handler in held.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(signal.Signals(came[0]))
