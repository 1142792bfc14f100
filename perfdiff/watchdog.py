"""A process beside perfdiff that ends what that started, and clears its temporary folders, where it is killed and cannot do so itself."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import stat
import sys
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen

MARK = "PERFDIFF_SERVICE"  # the variable by which daemons are known that a command left
_OWN_MARK = "watchdog"  # by which it is taken for no daemon itself
_TRIES = 20  # processes may start others while they are ended
_STARTING = threading.Lock()
_started: dict[int, Popen[bytes]] = {}  # by the process that started it: children of a fork have one of their own


def watch(leader: int, mark: str) -> None:
    """Have a process's group, those below it, and daemons that bear its mark ended where this process ends before they are forgotten."""
    _tell(f"+{leader} {mark}\n")


def forget(leader: int) -> None:
    """Leave a process alone, as it has been ended."""
    _tell(f"-{leader}\n")


def clear(folder: Path) -> None:
    """Have a folder removed if this process ends before it asks to keep it."""
    _tell(f">{os.fsencode(folder).hex()}\n")


def keep(folder: Path) -> None:
    """Leave a folder alone, as it has been removed."""
    _tell(f"<{os.fsencode(folder).hex()}\n")


def remove(folder: Path) -> None:
    """Remove a folder as far as that can be done, with the parts that were made read-only, and however deep it is."""
    with contextlib.suppress(RecursionError):
        shutil.rmtree(folder, ignore_errors=True)
    if folder.is_symlink() or not folder.is_dir():
        return
    for place in reversed(_made_writable(folder)):
        with contextlib.suppress(OSError):
            for path in place.iterdir():
                with contextlib.suppress(OSError):
                    path.unlink()
            place.rmdir()


def _made_writable(folder: Path) -> list[Path]:
    """Return a folder and those in it, each behind the one that holds it; whoever removes them may write to all."""
    folders, open_ = [], [folder]
    while open_:
        place = open_.pop()
        folders.append(place)
        with contextlib.suppress(OSError):
            place.chmod(stat.S_IRWXU)
            open_ += [path for path in place.iterdir() if path.is_dir() and not path.is_symlink()]
    return folders


def begin() -> None:
    """Have it there."""
    _tell("")


def processes() -> frozenset[int]:
    """Return the watchdogs that this process started."""
    return frozenset(process.pid for process in _started.values())


def _tell(line: str) -> None:
    with _STARTING:
        if os.getpid() not in _started:
            _started.clear()
            _started[os.getpid()] = Popen(
                [sys.executable, "-I", "-S", __file__],
                cwd="/",
                env={MARK: _OWN_MARK},
                stdin=PIPE,
                stdout=DEVNULL,
                stderr=DEVNULL,
                start_new_session=True,
            )
        pipe = _started[os.getpid()].stdin
        assert pipe is not None, "it is told by a pipe"
        with contextlib.suppress(OSError):  # somebody has killed it
            os.write(pipe.fileno(), line.encode())


def _wait(lines: Iterable[bytes]) -> tuple[dict[int, str], set[Path]]:
    """Return the processes that are there, with their marks, and the folders to clear, once who tells of them has ended."""
    there: dict[int, str] = {}
    folders: set[Path] = set()
    for line in lines:
        what, _, mark = line[1:].decode().strip().partition(" ")
        match line[:1]:
            case b"+":
                there[int(what)] = mark
            case b"-":
                there.pop(int(what), None)
            case b">":
                folders.add(Path(os.fsdecode(bytes.fromhex(what))))
            case b"<":
                folders.discard(Path(os.fsdecode(bytes.fromhex(what))))
    return there, folders


def _left(there: Mapping[int, str]) -> set[int]:
    """Return the processes that are of these, below them, in their groups or bear their marks."""
    marks = {f"{MARK}={mark}".encode() for mark in there.values() if mark}
    parents: dict[int, int] = {}
    left: set[int] = set()
    for folder in Path("/proc").glob("[0-9]*"):
        number = int(folder.name)
        with contextlib.suppress(OSError):
            state, parent, group = (folder / "stat").read_text().rpartition(")")[2].split()[:3]
            parents[number] = int(parent)
            is_marked = bool(marks) and not marks.isdisjoint((folder / "environ").read_bytes().split(b"\0"))
            if state not in "ZX" and (number in there or int(group) in there or is_marked):
                left.add(number)
    while below := {number for number, parent in parents.items() if parent in left} - left:
        left |= below
    return left - {os.getpid()}


def _main() -> None:
    there, folders = _wait(sys.stdin.buffer)
    for _ in range(_TRIES):
        left = _left(there) if there else set()
        for number in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(number, signal.SIGKILL)
        if not left:
            break
    for folder in folders:
        remove(folder)


if __name__ == "__main__":
    for ending in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, signal.SIG_IGN)
    _main()
