"""A terminal for a run, which somebody who starts a program by hand has, and which a program may ask for."""

from __future__ import annotations

import errno
import os
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import IO

_SIZE = (24, 80)  # lines and columns
_LOCAL = 3  # the place of the local modes among a terminal's settings
_ENDS = b"\x04" * 256  # each ends one reading
KIND = "xterm-256color"  # where the user's environment names none, as in a job


class Keyboard(StrEnum):
    """What is typed at a terminal."""

    SILENT = "silent"  # nothing, so that who reads waits
    ENDS = "ends"  # that there is nothing more, so that who reads goes on


@dataclass(frozen=True, slots=True)
class Screen:
    """A pseudo terminal: a program prints on `descriptor`, and what it printed is read from `shown`."""

    descriptor: int
    shown: IO[bytes]


@contextmanager
def terminal(keyboard: Keyboard) -> Iterator[Screen]:
    """Open a terminal that controls no process; `shown` is left to who reads it."""
    reading, printing = os.openpty()
    try:
        termios.tcsetwinsize(printing, _SIZE)
        settings = termios.tcgetattr(printing)
        settings[_LOCAL] &= ~termios.ECHO
        termios.tcsetattr(printing, termios.TCSANOW, settings)
        if keyboard is Keyboard.ENDS:
            os.write(reading, _ENDS)
        yield Screen(printing, os.fdopen(reading, "rb"))
    finally:
        os.close(printing)


def chunk_of(pipe: IO[bytes], size: int) -> bytes:
    """Return the next bytes, `size` at most, none at the end, which a terminal without programs tells by an error."""
    try:
        read: bytes = pipe.read1(size)  # type: ignore[attr-defined]
    except OSError as error:
        if error.errno != errno.EIO:
            raise
        return b""
    return read
