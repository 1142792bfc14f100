"""What functions call outside of the project's code, how much more often than before and how long it takes: libraries, and the kernel."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from perfdiff.analysis.counts.queries import is_query
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.sums.ledger import Book, Ledger, open_counts
from perfdiff.config import CompareConfig
from perfdiff.models.prices import DEAREST_NS, WORK_NS
from perfdiff.records.arrays import Floats, Ints
from perfdiff.records.schema import Experiment, LibraryCalls, Point

# Where threads meet, counts differ from run to run: six runs a side of which each of head's is above all of base's come so by chance once
# in 924 (all ways to choose six of twelve).
RANKED_RUNS = 6
# Telling of an event that a call begins or ends takes 50 to 100 ns (CPython 3.10 to 3.13), which is in its time: shorter calls have none.
_LEAST_TIMED_NS = 500.0
_LEAST_COUNTED = 0.8  # of what a call takes without counting it takes with it, at the least (docs/howto/python.md)
_QUALIFIED = re.compile(r"::|->|[. ]")

# Functions of the C library that are one system call each time. Those of which some calls stay in user mode are left out: stdio's buffers,
# locks, the clocks of the vDSO.
# fmt: off
_SYSTEM_CALLS = frozenset((
    "read", "pread", "pread64", "readv", "preadv", "preadv64", "write", "pwrite", "pwrite64", "writev", "pwritev", "pwritev64",
    "open", "open64", "openat", "openat64", "creat", "creat64", "close", "lseek", "lseek64", "dup", "dup2", "dup3", "pipe", "pipe2",
    "stat", "stat64", "fstat", "fstat64", "lstat", "lstat64", "fstatat", "fstatat64", "statx", "statfs", "statfs64", "fstatfs", "fstatfs64",
    "__xstat", "__xstat64", "__fxstat", "__fxstat64", "__lxstat", "__lxstat64", "access", "faccessat", "fcntl", "fcntl64", "ioctl", "flock",
    "fsync", "fdatasync", "sync", "syncfs", "truncate", "truncate64", "ftruncate", "ftruncate64", "fallocate", "fallocate64",
    "posix_fallocate", "posix_fallocate64", "posix_fadvise", "posix_fadvise64", "sendfile", "sendfile64", "splice", "tee", "vmsplice",
    "copy_file_range", "unlink", "unlinkat", "rename", "renameat", "renameat2", "link", "linkat", "symlink", "symlinkat", "readlink",
    "readlinkat", "mkdir", "mkdirat", "rmdir", "chmod", "fchmod", "fchmodat", "chown", "fchown", "lchown", "chdir", "fchdir", "utimensat",
    "futimens", "mmap", "mmap64", "munmap", "mprotect", "mremap", "madvise", "msync", "mlock", "munlock", "memfd_create",
    "poll", "ppoll", "select", "pselect", "epoll_create", "epoll_create1", "epoll_ctl", "epoll_wait", "epoll_pwait", "eventfd",
    "timerfd_create", "timerfd_settime", "timerfd_gettime", "signalfd", "inotify_init", "inotify_init1", "inotify_add_watch",
    "socket", "socketpair", "bind", "listen", "connect", "accept", "accept4", "shutdown", "send", "sendto", "sendmsg", "sendmmsg",
    "recv", "recvfrom", "recvmsg", "recvmmsg", "setsockopt", "getsockopt", "getsockname", "getpeername",
    "nanosleep", "clock_nanosleep", "usleep", "sleep", "sched_yield", "sched_setaffinity", "sched_getaffinity",
    "getpid", "getppid", "gettid", "getuid", "geteuid", "getgid", "getegid", "kill", "tgkill", "sigaction", "sigprocmask",
    "pthread_sigmask", "sigaltstack", "getrusage", "getrlimit", "getrlimit64", "setrlimit", "setrlimit64", "prlimit", "prlimit64",
    "times", "uname", "getrandom", "fork", "vfork", "execve", "wait", "waitpid", "wait3", "wait4", "waitid", "syscall",
))
# fmt: on


@dataclass(frozen=True, slots=True)
class Departure:
    """A function outside that one of the project calls itself.

    `base` and `head` are its calls per call of the caller, `base_run` and `head_run` those in one run, all at the `point` where
    head makes most more at equal calls, or else in all. `extra` (points,) are the calls that head certainly makes more in one run of each
    point of the counted ledger, at as many calls of the caller; 0 where it does not, or that is not sure. `repeats`: all runs of a side
    counted the same. `base_ns` and `head_ns` are what one call takes at that point, None where that was not timed, or is too
    short, `spans_ns` (points,) the same of head at each point, 0 where it is None; `longer_ns` (points,) is what head's calls take more in
    one run of each point because each of them takes longer. `base_rates` and `head_rates` (points,) are calls per call at each point.
    `instead_of` names the method of another type that base called as often, and head no more: `java.util.Queue.remove`.
    """

    name: str
    point: Point
    base: float
    head: float
    base_run: float
    head_run: float
    extra: Floats
    repeats: bool
    spans_ns: Floats
    longer_ns: Floats
    base_ns: float | None = None
    head_ns: float | None = None
    base_rates: Floats = field(default_factory=lambda: np.zeros(0))
    head_rates: Floats = field(default_factory=lambda: np.zeros(0))
    instead_of: str | None = None

    @property
    def takes_longer(self) -> bool:
        """Return whether each of its calls takes longer."""
        return bool(self.longer_ns.any())

    @property
    def grew(self) -> bool:
        """Return whether it is called more often."""
        return bool(self.extra.any())

    @property
    def enters_kernel(self) -> bool:
        """Return whether each of the calls is a system call."""
        return self.name in _SYSTEM_CALLS

    @property
    def is_query(self) -> bool:
        """Return whether each of the calls asks another process, such as a database, and waits for its answer."""
        return is_query(self.name)

    @property
    def least_ns(self) -> Floats:
        """Return the least that the extra calls take at each point, (points,); nothing where others were made in their place."""
        return self.extra * (0.0 if self.instead_of else WORK_NS[self._kind])

    @property
    def dearest_ns(self) -> Floats:
        """Return the most that the extra calls may explain at each point, (points,)."""
        return self.extra * np.maximum(DEAREST_NS[self._kind], self.spans_ns / _LEAST_COUNTED)

    @property
    def _kind(self) -> str:
        if self.is_query:
            return "queries"
        return "system_calls" if self.enters_kernel else "library_calls"


@dataclass(frozen=True, slots=True)
class _SideCalls:
    """One side's runs of a point: calls of each pair of caller and callee per call of the caller, `rates` (p, r), and medians (p,).

    `rate` is that of these, `sums` of the pair's calls in a run, `own_calls` of the caller itself. `spans` (p, r) is what one call takes in
    ns, NaN where none was timed.
    """

    rates: Floats
    rate: Floats
    sums: Floats
    own_calls: Floats
    spans: Floats

    def span(self, pair: int) -> float | None:
        """Return what one call of a pair takes in the run that other work disturbed least; None where that is not known."""
        timed = self.spans[pair][~np.isnan(self.spans[pair])]
        return float(timed.min()) if len(timed) and timed.min() >= _LEAST_TIMED_NS else None


def departures(experiment: Experiment, config: CompareConfig) -> dict[int, tuple[Departure, ...]]:
    """Return each function's calls that leave the project, those whose cost grew most first; empty if they were not counted.

    More calls are certain where the runs of each side counted the same, or are so many that their ranks tell the sides apart.
    """
    calls, counted = experiment.library, _callers(experiment)
    if calls is None or counted is None or not counted.points or not len(calls.run):
        return {}
    points = {point.id: point for point in experiment.points}
    is_counted = np.isin(calls.function, counted.ids)
    pairs, index = np.unique(np.column_stack([calls.function, calls.callee])[is_counted], axis=0, return_inverse=True)
    columns = np.array([counted.place[function] for function in pairs[:, 0].tolist()], np.int64)
    rows = {name: getattr(calls, name)[is_counted] for name in ("run", "function", "calls", "timed", "wall_ns")}
    chosen = LibraryCalls(callee=index.ravel(), names=calls.names, **rows)
    books = [counted.pair(point) for point in counted.points]
    sides = [(_side(base, chosen, columns), _side(head, chosen, columns)) for base, head in books]
    by_function: dict[int, list[Departure]] = {}
    grown = np.array([_grew(base, head, config) for base, head in sides])  # (points, p)
    extra = np.array([(head.rate - base.rate) * head.own_calls for base, head in sides])
    longer = np.array([_longer(base, head) for base, head in sides])
    for at in range(len(pairs)):
        gained = np.where(grown[:, at], extra[:, at], 0.0)
        spans = np.array([head.span(at) or 0.0 for _, head in sides])
        most = longer[:, at] if longer[:, at].any() else np.array([head.sums[at] - base.sums[at] for base, head in sides])
        place = int(np.argmax(gained * np.maximum(spans, 1.0) if gained.any() else most))
        base, head = sides[place]
        by_function.setdefault(int(pairs[at, 0]), []).append(
            Departure(
                name=calls.names[pairs[at, 1]],
                point=points[counted.points[place]],
                base=float(base.rate[at]),
                head=float(head.rate[at]),
                base_run=float(base.sums[at]),
                head_run=float(head.sums[at]),
                extra=gained,
                repeats=all(not np.ptp(side.rates[at]) for both in sides for side in both),
                spans_ns=spans,
                longer_ns=longer[:, at],
                base_ns=base.span(at),
                head_ns=head.span(at),
                base_rates=np.array([base.rate[at] for base, _ in sides]),
                head_rates=np.array([head.rate[at] for _, head in sides]),
            )
        )
    with_predecessors = {function: [_with_predecessor(call, its) for call in its] for function, its in by_function.items()}
    return {
        function: tuple(sorted(its, key=lambda call: (-call.dearest_ns.sum(), call.name))) for function, its in with_predecessors.items()
    }


def method_name(name: str) -> str:
    """Return the name of a function outside without the types, packages and modules that it is of."""
    return _QUALIFIED.split(name)[-1]


def _with_predecessor(departure: Departure, others: Sequence[Departure]) -> Departure:
    """Return a call with what it took the place of: one of the same name, of another type, that was made as often."""
    if not departure.grew or departure.base_rates.any():
        return departure
    for other in others:
        is_gone = other.name != departure.name and method_name(other.name) == method_name(departure.name) and not other.head_rates.any()
        if is_gone and np.allclose(other.base_rates, departure.head_rates, rtol=POLICY.least_work, atol=0.0):
            return replace(departure, instead_of=other.name)
    return departure


def _callers(experiment: Experiment) -> Ledger | None:
    """Return how often each function was called in counted runs."""
    if experiment.counts is None:
        return None
    folded = tuple(function.info for function in experiment.folded if not function.obstacle)
    counts = replace(experiment.counts, other={})
    return open_counts(replace(experiment, functions=(*experiment.functions, *folded), counts=counts))


def _side(book: Book, calls: LibraryCalls, columns: Ints) -> _SideCalls:
    """Return one side's calls; `calls.callee` numbers the pairs of caller and callee, `columns` (p,) are the callers' in the book."""
    place = {run.id: at for at, run in enumerate(book.runs)}
    sums, timed, spent = (np.zeros((len(columns), len(place))) for _ in range(3))
    rows = np.flatnonzero(np.isin(calls.run, list(place)))
    at = np.array([place[run] for run in calls.run[rows].tolist()], np.int64)
    for total, values in ((sums, calls.calls), (timed, calls.timed), (spent, calls.wall_ns)):
        np.add.at(total, (calls.callee[rows], at), values[rows])
    own_calls = book.calls[:, columns].T
    rates = np.divide(sums, own_calls, out=np.zeros_like(sums), where=own_calls > 0)
    spans = np.divide(spent, timed, out=np.full_like(spent, np.nan), where=timed > 0)
    return _SideCalls(rates, np.median(rates, axis=1), np.median(sums, axis=1), np.median(own_calls, axis=1), spans)


def _longer(base: _SideCalls, head: _SideCalls) -> Floats:
    """Return of each pair (p,) what head's calls take more in a run because each takes longer, 0 where they do not clearly."""
    before, after = (np.where(np.isnan(side.spans), bound, side.spans) for side, bound in ((base, np.inf), (head, -np.inf)))
    clear = after.min(axis=1) > POLICY.library_slower * np.maximum(before.max(axis=1), _LEAST_TIMED_NS)
    more = np.where(clear, after.min(axis=1) - before.min(axis=1), 0.0)
    longer: Floats = more * head.sums
    return longer


def _grew(base: _SideCalls, head: _SideCalls, config: CompareConfig) -> Floats:
    """Return of each pair (p,) whether head certainly makes more calls per call; a function that base does not run calls nothing there."""
    exact = (np.ptp(base.rates, axis=1) == 0) & (np.ptp(head.rates, axis=1) == 0)
    apart = (head.rates.min(axis=1) > base.rates.max(axis=1)) & (min(base.rates.shape[1], head.rates.shape[1]) >= RANKED_RUNS)
    least = np.where(exact, POLICY.least_work, config.min_effect)
    grew: Floats = (exact | apart) & (head.rate > base.rate * (1 + least)) & (head.own_calls > 0)
    return grew
