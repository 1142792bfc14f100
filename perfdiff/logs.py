"""Logs of commands that may print without end: the beginning and the end are kept, and what stands around the first error between them."""

from __future__ import annotations

import io
import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from perfdiff.languages.installed import installed
from perfdiff.languages.traits import ErrorLine

HEAD_BYTES = 250_000  # a build that configures itself says in these what it found
TAIL_BYTES = 1_000_000  # parallel builds go on and warn for long after their first error
_AHEAD_BYTES, _AROUND_BYTES = 8_000, 64_000  # 20 lines of a compiler's calls, and what they say
_READ_BYTES = 1 << 16
_LEAVING_S = 1.0  # for what is in the pipe still, if a process that may not be killed holds it open
_ERRORS = (
    ErrorLine(rb"^.+: (?:fatal )?error: .+$", b"error: "),
    ErrorLine(rb"^.+: undefined reference to .+$", b"undefined reference to "),
)
_ALL_ERRORS = (*_ERRORS, *(line for traits in installed() for line in traits.building.errors))
FIRST_ERROR = b"|".join(line.pattern for line in _ALL_ERRORS)
_FIRST_ERROR = re.compile(FIRST_ERROR, re.MULTILINE)
_HINTS = tuple(line.hint for line in _ALL_ERRORS)


@contextmanager
def bounded(file: Path) -> Iterator[int]:
    """Yield a descriptor to print to for the length of a block; `file` takes what is kept of that. Raise OSError."""
    with file.open("wb", buffering=0) as stream:
        reading, writing = os.pipe()
        log = _Log(stream)
        reader = threading.Thread(target=log.follow, args=(reading,), daemon=True)
        reader.start()
        try:
            yield writing
        finally:
            os.close(writing)
            reader.join(_LEAVING_S)
            log.close()


@dataclass(slots=True)
class _Log:
    """What is kept of a text while it comes: in `file` up to the bound as it is, in memory its end, and what is around its first error."""

    file: io.FileIO
    size: int = 0
    tail: bytearray = field(default_factory=bytearray)
    around: bytearray = field(default_factory=bytearray)  # what was passed last, and the first error in it, once there is one
    around_at: int | None = None  # where that begins in the text; None where there was no error yet
    is_closed: bool = False
    changing: threading.Lock = field(default_factory=threading.Lock)

    def follow(self, reading: int) -> None:
        """Read a pipe to its end, and close it."""
        with os.fdopen(reading, "rb", buffering=0) as pipe:
            while chunk := pipe.read(_READ_BYTES):
                with self.changing:
                    if self.is_closed:
                        return
                    self._add(chunk)

    def close(self) -> None:
        """Write what is kept of a text beyond the bound."""
        with self.changing:
            self.is_closed = True
            if self.size <= HEAD_BYTES + TAIL_BYTES:
                return
            with suppress(OSError):  # of a full disk
                self.file.truncate(HEAD_BYTES)
                self.file.seek(HEAD_BYTES)
                self.file.write(b"".join(self._behind_head()))

    def _behind_head(self) -> Iterator[bytes | bytearray]:
        tail_at, end = self.size - len(self.tail), HEAD_BYTES
        if self.around_at is not None:
            begin = max(self.around_at, HEAD_BYTES)
            around = self.around[begin - self.around_at :]
            yield from (_left_out(begin - end), around)
            end = begin + len(around)
        yield from (_left_out(tail_at - end), self.tail)

    def _add(self, chunk: bytes) -> None:
        room = max(0, HEAD_BYTES + TAIL_BYTES - self.size)
        with suppress(OSError):  # of a full disk: the command finds out by itself
            self.file.write(chunk[:room])
        ahead = max(0, HEAD_BYTES - self.size)
        self.size += len(chunk)
        if ahead:
            self.around = (self.around + chunk[:ahead])[-_AHEAD_BYTES:]
        self.tail += chunk[ahead:]
        if len(self.tail) >= TAIL_BYTES + _READ_BYTES:
            whole_lines = self.tail.rfind(b"\n", 0, len(self.tail) - TAIL_BYTES) + 1
            passed = self.tail[: whole_lines or -TAIL_BYTES]
            del self.tail[: len(passed)]
            self._pass(passed, self.size - len(self.tail))

    def _pass(self, text: bytearray, end: int) -> None:
        """Look for the first error in what is left out now, which ends at a place of the whole text."""
        if len(self.around) >= _AROUND_BYTES:
            return
        self.around += text
        if self.around_at is None:
            begin = end - len(self.around)
            error = _FIRST_ERROR.search(self.around) if any(hint in self.around for hint in _HINTS) else None
            start = max(0, (error.start() if error else len(self.around)) - _AHEAD_BYTES)
            del self.around[:start]
            self.around_at = begin + start if error else None
        del self.around[_AROUND_BYTES:]


def _left_out(count: int) -> bytes:
    return f"\n… {count:,} bytes are left out here …\n".encode() if count else b""
