"""What files of the tree told, kept by their content, so that one which is the same in base and head, or was met before, is read once.

An entry is `<folder>/<two digits>/<key>.json`; the key covers the content, and what reads it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable
from hashlib import blake2b
from pathlib import Path
from typing import TypeVar

from perfdiff.languages import stored
from perfdiff.records import entry

T = TypeVar("T")


class TextCache:
    """Texts by content. `reader` are the files of the code that makes them: what another version of it told is never used."""

    def __init__(self, folder: Path | None, reader: Iterable[Path]) -> None:
        self._folder = folder
        self._code = code(reader)

    def text(self, content: bytes) -> str | None:
        """Return what is kept of a content, None where nothing can be read; its age is the time since it was used."""
        path = self._path(content)
        with contextlib.suppress(OSError, ValueError):
            if path is not None:
                text = path.read_text(encoding="utf-8")
                os.utime(path)
                return text
        return None

    def keep(self, content: bytes, text: str) -> None:
        """Keep what a content told; where that cannot be written, it is read again the next time."""
        path = self._path(content)
        with contextlib.suppress(OSError):
            if path is not None:
                entry.write(path, text)

    def value(self, kind: type[T], content: bytes, read: Callable[[], T]) -> T:
        """Return the value that is kept of a content; where none is, the one that `read` returns, which is kept."""
        value = stored.parsed(kind, self.text(content))
        if value is None:
            value = read()
            self.keep(content, stored.text(value))
        return value

    def _path(self, content: bytes) -> Path | None:
        if self._folder is None:
            return None
        key = blake2b(content, digest_size=16, key=self._code).hexdigest()
        return self._folder / key[:2] / f"{key[2:]}.json"


def code(files: Iterable[Path]) -> bytes:
    """Return a digest of the files of some code, by their names and contents."""
    digest = blake2b(digest_size=16)
    for path in sorted(files):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.digest()
