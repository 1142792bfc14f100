"""The system calls by which programs meet files, or ask to be run behind others, and the kernel's filter that reports them.

A filter of seccomp(2) hands these calls, and no others, to a supervisor (`SECCOMP_RET_USER_NOTIF`, Linux 5.0), who lets each go on
(`SECCOMP_USER_NOTIF_FLAG_CONTINUE`, Linux 5.5). That needs no rights and no tracer's hold on the processes, so that it works in
containers, and leaves debuggers to the program.
"""

from __future__ import annotations

import platform
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto


class Kind(Enum):
    """What a system call reveals to the program, a content, a list of names, or whether a file is there, or what it asks of the kernel."""

    OPEN = auto()  # a file's content
    LIST = auto()  # the names in a folder
    ASK = auto()  # whether a path is there, and what lies there
    RUN = auto()  # a program, whose content the kernel reads
    NAME = auto()  # whether a path is there, which from then on may lead to something else
    MOVE = auto()  # what lies at a path, all of a folder included, by another path from then on
    RANK = auto()  # which processes the kernel runs, or lets read and write, before others
    BLIND = auto()  # more than its arguments say


@dataclass(frozen=True, slots=True)
class PathCall:
    """A system call: the places, among its arguments, of the path that it names and of the descriptor that the path starts from.

    `other` has those of the second path, of a call that names two; `rank` is the place of what is asked of the kernel.
    """

    kind: Kind
    path: int | None = None
    folder: int | None = None
    other: PathCall | None = None
    rank: int | None = None


def _at_start(kind: Kind) -> PathCall:
    return PathCall(kind, path=0)


def _below(kind: Kind) -> PathCall:
    return PathCall(kind, path=1, folder=0)


_FROM_ONE_TO_OTHER = PathCall(Kind.MOVE, path=0, other=PathCall(Kind.NAME, path=1))
_FROM_ONE_TO_OTHER_BELOW = PathCall(Kind.MOVE, path=1, folder=0, other=PathCall(Kind.NAME, path=3, folder=2))


# Numbers on x86-64 and on aarch64, None where a machine has no such call.
_CALLS: tuple[tuple[str, int | None, int | None, PathCall], ...] = (
    ("open", 2, None, _at_start(Kind.OPEN)),
    ("creat", 85, None, _at_start(Kind.OPEN)),
    ("openat", 257, 56, _below(Kind.OPEN)),
    ("openat2", 437, 437, _below(Kind.OPEN)),
    ("truncate", 76, 45, _at_start(Kind.OPEN)),
    ("link", 86, None, _FROM_ONE_TO_OTHER),
    ("linkat", 265, 37, _FROM_ONE_TO_OTHER_BELOW),
    ("getdents", 78, None, PathCall(Kind.LIST, folder=0)),
    ("getdents64", 217, 61, PathCall(Kind.LIST, folder=0)),
    ("stat", 4, None, _at_start(Kind.ASK)),
    ("lstat", 6, None, _at_start(Kind.ASK)),
    ("newfstatat", 262, 79, _below(Kind.ASK)),
    ("statx", 332, 291, _below(Kind.ASK)),
    ("statfs", 137, 43, _at_start(Kind.ASK)),
    ("access", 21, None, _at_start(Kind.ASK)),
    ("faccessat", 269, 48, _below(Kind.ASK)),
    ("faccessat2", 439, 439, _below(Kind.ASK)),
    ("readlink", 89, None, _at_start(Kind.ASK)),
    ("readlinkat", 267, 78, _below(Kind.ASK)),
    ("getxattr", 191, 8, _at_start(Kind.ASK)),
    ("lgetxattr", 192, 9, _at_start(Kind.ASK)),
    ("listxattr", 194, 11, _at_start(Kind.ASK)),
    ("chdir", 80, 49, _at_start(Kind.ASK)),
    ("rename", 82, None, _FROM_ONE_TO_OTHER),
    ("renameat", 264, 38, _FROM_ONE_TO_OTHER_BELOW),
    ("renameat2", 316, 276, _FROM_ONE_TO_OTHER_BELOW),
    ("symlink", 88, None, PathCall(Kind.NAME, path=1)),
    ("symlinkat", 266, 36, PathCall(Kind.NAME, path=2, folder=1)),
    ("mkdir", 83, None, _at_start(Kind.ASK)),
    ("mkdirat", 258, 34, _below(Kind.ASK)),
    ("rmdir", 84, None, _at_start(Kind.ASK)),
    ("unlink", 87, None, _at_start(Kind.ASK)),
    ("unlinkat", 263, 35, _below(Kind.ASK)),
    ("chmod", 90, None, _at_start(Kind.ASK)),
    ("fchmodat", 268, 53, _below(Kind.ASK)),
    ("inotify_add_watch", 254, 27, PathCall(Kind.ASK, path=1)),
    ("execve", 59, 221, _at_start(Kind.RUN)),
    ("execveat", 322, 281, _below(Kind.RUN)),
    ("setpriority", 141, 140, PathCall(Kind.RANK, rank=2)),
    ("sched_setscheduler", 144, 119, PathCall(Kind.RANK, rank=1)),
    ("ioprio_set", 251, 30, PathCall(Kind.RANK, rank=2)),
    ("chroot", 161, 51, PathCall(Kind.BLIND)),
    ("mount", 165, 40, PathCall(Kind.BLIND)),
    ("name_to_handle_at", 303, 264, PathCall(Kind.BLIND)),
    ("open_by_handle_at", 304, 265, PathCall(Kind.BLIND)),
    ("io_uring_setup", 425, 425, PathCall(Kind.BLIND)),  # its requests are no system calls
)
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06  # instructions of the kernel's packet filter
_NUMBER_AT, _ARCHITECTURE_AT = 0, 4  # in `struct seccomp_data`
_ALLOW, _NOTIFY = 0x7FFF0000, 0x7FC00000
_OTHER_NUMBERS = 0x40000000  # from here on calls of x86-64's third interface


@dataclass(frozen=True, slots=True)
class SystemCallTable:
    """The calls of a kind of processor by their numbers, with the kernel's name of it and the number of seccomp(2)."""

    calls: Mapping[int, PathCall]
    architecture: int
    seccomp: int

    def call(self, number: int, architecture: int) -> PathCall:
        """Return the kind of a reported system call; one of another interface of the kernel may be of any kind."""
        path_call = self.calls.get(number) if architecture == self.architecture else None
        return path_call or PathCall(Kind.BLIND)

    @property
    def filter(self) -> bytes:
        """Return the filter that reports these calls, and all of other interfaces, as `struct sock_filter`s."""
        steps = [(_LOAD, 0, 0, _ARCHITECTURE_AT), (_EQUAL, 1, 0, self.architecture), (_RETURN, 0, 0, _NOTIFY), (_LOAD, 0, 0, _NUMBER_AT)]
        steps += [(_AT_LEAST, 0, 1, _OTHER_NUMBERS), (_RETURN, 0, 0, _NOTIFY)]
        for number in self.calls:
            steps += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _NOTIFY)]
        return b"".join(struct.pack("=HBBI", *step) for step in (*steps, (_RETURN, 0, 0, _ALLOW)))


def machine() -> SystemCallTable | None:
    """Return the calls of this machine, None of one whose numbers are not known."""
    match platform.machine():
        case "x86_64":
            return SystemCallTable({x86: call for _, x86, _, call in _CALLS if x86 is not None}, 0xC000003E, 317)
        case "aarch64":
            return SystemCallTable({arm: call for _, _, arm, call in _CALLS if arm is not None}, 0xC00000B7, 277)
        case _:
            return None
