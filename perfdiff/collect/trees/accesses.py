"""Which paths the processes of a run open, list and ask after: a supervisor of the system calls that name them."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import secrets
import select
import shlex
import socket
import struct
import sys
import threading
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from perfdiff.collect.trees import reported
from perfdiff.collect.trees.system_calls import Kind, PathCall, SystemCallTable, machine

_RECEIVE, _SEND = 0xC0502100, 0xC0182101  # ioctl(2) on the listener: take a report, let its call go on
_REPORT = struct.Struct("=QIIiIQ6Q")  # `struct seccomp_notif`: id, thread, flags, number, architecture, instruction, arguments
_ANSWER = struct.Struct("=QqiI")  # `struct seccomp_notif_resp`: id, value, error, flags
_GOES_ON = 1
_ENDED_MEANWHILE = (errno.ENOENT, errno.EINTR)  # whose call it was has ended, or a signal came: no report is lost
_FROM_HERE = 0xFFFFFF9C  # AT_FDCWD, of which only the low half counts
_LONGEST_PATH, _PAGE = 4096, 4096
_MOST_LINKS = 40  # that the kernel follows in a path
_WAKE_S = 0.1  # between two looks whether the run has ended


@dataclass(frozen=True, slots=True)
class Accesses:
    """The paths that a run met, absolute and without links, links that it followed among them.

    `opened` gives for each path how often the one process opened it that did so most, counted anew where a process becomes another program;
    `ran` are programs, `listed` folders whose names were read, `moved` what was given another name, by its old one, and `asked` all other
    paths that were named, whether they are there or not. `ranks` are the priorities and policies that processes asked the kernel for.
    """

    opened: dict[str, int]
    ran: frozenset[str]
    listed: frozenset[str]
    moved: frozenset[str]
    asked: frozenset[str]
    ranks: frozenset[int] = frozenset()


class Supervisor:
    """Has a command's system calls reported, from its start to the end of all its processes."""

    def __init__(self) -> None:
        """Listen on a socket of a name that nobody guesses; raise OSError where there is none."""
        self._name = f"perfdiff-{secrets.token_hex(16)}"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.bind("\0" + self._name)
        self._socket.listen(1)
        self._socket.settimeout(_WAKE_S)
        self._machine = machine()
        self._paths = _Paths()
        self._is_whole = False
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def command(self, text: str) -> str:
        """Return the shell command that runs `text` with its calls reported, or just `text` on a machine whose calls are not known."""
        if self._machine is None:
            return text
        words = [sys.executable, "-I", "-S", str(Path(reported.__file__)), self._name, "/bin/sh", "-c", text]
        return "exec " + shlex.join(words)

    def begin(self) -> None:
        """Begin to take reports."""
        self._thread.start()

    def end(self) -> Accesses | None:
        """Return what the command met, once it has ended; None where calls were not reported, or may have shown more than they say."""
        self._ended.set()
        self._thread.join()
        self._socket.close()
        return self._paths.accesses() if self._is_whole and not self._paths.is_blind else None

    def _look(self) -> None:
        if self._machine is None:
            return
        with contextlib.suppress(OSError):
            connection = self._connection()
            if connection is None:
                return
            with connection:
                connection.send(struct.pack("=I", self._machine.seccomp) + self._machine.filter)
                _, listeners, _, _ = socket.recv_fds(connection, 1, 1)
            if listeners:
                try:
                    self._is_whole = self._take(listeners[0], self._machine)
                finally:
                    os.close(listeners[0])

    def _connection(self) -> socket.socket | None:
        """Return the connection of the command that was started, None where it ended without; those of other users are refused."""
        while True:
            try:
                connection, _ = self._socket.accept()
                break
            except TimeoutError:
                if self._ended.is_set():
                    return None
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        _, user, _ = struct.unpack("3i", credentials)
        if user == os.getuid():
            return connection
        connection.close()
        return None

    def _take(self, listener: int, of: SystemCallTable) -> bool:
        """Take reports until all processes have ended, or the run's command has; return False where the kernel refuses to go on.

        Linux before 5.5 reports calls and cannot let them go on. The run must not wait for that: closing the listener fails its calls.
        """
        control, waiting = ctypes.CDLL(None, use_errno=True).ioctl, select.poll()
        waiting.register(listener, select.POLLIN)
        report = ctypes.create_string_buffer(_REPORT.size)
        while True:
            events = waiting.poll(int(_WAKE_S * 1e3))
            if any(event & select.POLLHUP for _, event in events):
                return True
            if not events:
                if self._ended.is_set():
                    return True
                continue
            ctypes.memset(report, 0, _REPORT.size)
            if control(listener, ctypes.c_ulong(_RECEIVE), report):
                if ctypes.get_errno() in _ENDED_MEANWHILE:
                    continue
                return False
            number, thread, _, call, architecture, _, *arguments = _REPORT.unpack(report.raw)
            self._paths.add(of.call(call, architecture), thread, arguments)
            answer = ctypes.create_string_buffer(_ANSWER.pack(number, 0, 0, _GOES_ON), _ANSWER.size)
            if control(listener, ctypes.c_ulong(_SEND), answer) and ctypes.get_errno() not in _ENDED_MEANWHILE:
                return False


class _Paths:
    """Puts together what calls name, as the thread that makes them sees it."""

    def __init__(self) -> None:
        self.is_blind = False
        self._opened: Counter[tuple[int, int, str]] = Counter()  # by process, program and path
        self._programs: Counter[int] = Counter()  # how many each process has become
        self._processes: dict[int, int] = {}  # by thread
        self._ran: set[str] = set()
        self._listed: set[str] = set()
        self._moved: set[str] = set()
        self._asked: set[str] = set()
        self._ranks: set[int] = set()
        self._links: dict[str, str | None] = {}
        self._resolved: dict[str, tuple[tuple[str, ...], str]] = {}
        self._read: Callable[..., int] = ctypes.CDLL(None, use_errno=True).process_vm_readv

    def accesses(self) -> Accesses:
        """Return all paths so far."""
        opened: dict[str, int] = {}
        for (_, _, path), times in self._opened.items():
            opened[path] = max(opened.get(path, 0), times)
        ran, listed, moved, asked = map(frozenset, (self._ran, self._listed, self._moved, self._asked))
        return Accesses(opened, ran, listed, moved, asked, frozenset(self._ranks))

    def add(self, call: PathCall, thread: int, arguments: list[int]) -> None:
        """Add a call; what its thread has ended or hides by then makes the whole run unknown, as it may have been anything."""
        if call.kind is Kind.BLIND:
            self.is_blind = True
            return
        if call.rank is not None:
            self._ranks.add(arguments[call.rank])
            return
        try:
            named = self._text(thread, arguments[call.path]) if call.path is not None else ""
            place = self._place(thread, arguments[call.folder] if call.folder is not None else _FROM_HERE, named)
        except OSError:
            self.is_blind |= Path(f"/proc/{thread}").exists()
            return
        if call.path is not None and not named:
            return  # it asks of a descriptor, whose file was opened
        links, path = self._resolve(place)
        self._asked.update(links)
        match call.kind:
            case Kind.LIST:
                self._listed.add(path)
            case Kind.MOVE:
                self._moved.add(path)
            case Kind.OPEN:
                process = self._process(thread)
                self._opened[process, self._programs[process], path] += 1
            case Kind.RUN:
                self._ran.update((path, *_interpreters(path)))
                self._programs[self._process(thread)] += 1
            case _:
                self._asked.add(path)
        if call.other is not None:
            self.add(call.other, thread, arguments)
        if call.kind is Kind.NAME:
            self._links.clear()
            self._resolved.clear()

    def _text(self, thread: int, address: int) -> str:
        """Return the path that stands at an address of a thread's memory; raise OSError."""
        text = bytearray()
        while len(text) < _LONGEST_PATH:
            size = _PAGE - (address + len(text)) % _PAGE
            piece = ctypes.create_string_buffer(size)
            here, there = _Piece(ctypes.addressof(piece), size), _Piece(address + len(text), size)
            if self._read(thread, ctypes.byref(here), 1, ctypes.byref(there), 1, 0) != size:
                raise OSError(ctypes.get_errno(), "a path could not be read")
            head, end, _ = piece.raw.partition(b"\0")
            text += head
            if end:
                break
        return os.fsdecode(bytes(text))

    @staticmethod
    def _place(thread: int, folder: int, named: str) -> str:
        """Return the absolute path that a thread means by a name; raise OSError."""
        if named.startswith("/"):
            for own, place in (("/proc/self", f"/proc/{thread}"), ("/proc/thread-self", f"/proc/{thread}")):
                if named == own or named.startswith(f"{own}/"):
                    return place + named[len(own) :]
            return named
        low = folder & 0xFFFFFFFF
        start = str(Path(f"/proc/{thread}/cwd" if low == _FROM_HERE else f"/proc/{thread}/fd/{low}").readlink())
        return f"{start}/{named}" if named else start

    def _resolve(self, place: str) -> tuple[tuple[str, ...], str]:
        """Return the links on the way along a path, and where it ends; what is not there stands as it is named."""
        if place not in self._resolved:
            links: list[str] = []
            at, rest = "", deque(place.split("/"))
            while rest:
                part = rest.popleft()
                if part in ("", "."):
                    continue
                if part == "..":
                    at = at.rpartition("/")[0]
                    continue
                target = self._target(f"{at}/{part}")
                if target is None or len(links) == _MOST_LINKS:
                    at = f"{at}/{part}"
                    continue
                links.append(f"{at}/{part}")
                at = "" if target.startswith("/") else at
                rest.extendleft(reversed(target.split("/")))
            self._resolved[place] = tuple(links), at or "/"
        return self._resolved[place]

    def _target(self, path: str) -> str | None:
        """Return where a link leads, None of what is none."""
        if path not in self._links or path.startswith("/proc/"):
            try:
                self._links[path] = str(Path(path).readlink())
            except OSError:
                self._links[path] = None
        return self._links[path]

    def _process(self, thread: int) -> int:
        if thread not in self._processes:
            with contextlib.suppress(OSError):
                lines = Path(f"/proc/{thread}/status").read_text().splitlines()
                self._processes[thread] = next(int(line.split()[1]) for line in lines if line.startswith("Tgid:"))
        return self._processes.get(thread, thread)


class _Piece(ctypes.Structure):
    _fields_ = (("start", ctypes.c_void_p), ("size", ctypes.c_size_t))


def _interpreters(program: str) -> tuple[str, ...]:
    """Return the program that the kernel runs a script by, none where a path leads to no script."""
    try:
        with Path(program).open("rb") as file:
            first = file.readline(_PAGE)
    except OSError:
        return ()
    words = first[2:].split() if first.startswith(b"#!") else []
    return (os.path.realpath(os.fsdecode(words[0])),) if words else ()
