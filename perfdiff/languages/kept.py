"""What files of the tree told, kept by their content, so that one which is the same in base and head, or was met before, is read once.

An entry is `<folder>/<two digits>/<key>.json`; the key covers the content, and what reads it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path

from perfdiff.records import entry


class TextCache:
    """Texts by content. `reader` are the files of the code that makes them: what another version of it told is never used."""

    def __init__(self, folder: Path | None, reader: Iterable[Path]) -> None:
        self._folder = folder
        code = blake2b(digest_size=16)
        for path in sorted(reader):
            code.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
        self._code = code.digest()

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

    def _path(self, content: bytes) -> Path | None:
        if self._folder is None:
            return None
        key = blake2b(content, digest_size=16, key=self._code).hexdigest()
        return self._folder / key[:2] / f"{key[2:]}.json"
