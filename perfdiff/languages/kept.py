"""What files of the tree told, kept by their content, so that one which is the same in base and head, or was met before, is read once.

An entry is `<folder>/<two digits>/<key>.json`; the key covers the content, and what reads it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable
from hashlib import blake2b
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from perfdiff.records import entry

T = TypeVar("T")


def shape(kind: Any) -> str:
    """Return what values of a kind consist of, in depth: an entry whose values consisted of something else is never used."""
    return repr(msgspec.inspect.type_info(kind))


def encoded(value: object) -> str:
    """Return a value as one line of JSON; paths are texts."""
    return msgspec.json.encode(value, enc_hook=str).decode()


def decoded(kind: type[T], text: str) -> T:
    """Return the value of the type `kind` that `text` holds as JSON; raise ValueError where it holds none of that type."""
    try:
        return msgspec.json.decode(text, type=kind, dec_hook=lambda to, value: to(value))
    except (msgspec.DecodeError, RecursionError) as error:  # the latter where it is nested without end
        raise ValueError(str(error)) from error


class TextCache:
    """Texts by content. `reader` are the files of the code that makes them: what another version of it told is never used."""

    def __init__(self, folder: Path | None, reader: Iterable[Path], *, shape: str = "") -> None:
        self._folder = folder
        code = blake2b(shape.encode(), digest_size=16)
        for path in sorted(reader):
            code.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
        self._code = code.digest()

    def text(self, content: bytes) -> str | None:
        """Return the text that is kept for a content, None if there is none; reading it counts as a use."""
        path = self._path(content)
        with contextlib.suppress(OSError, ValueError):
            if path is not None:
                text = path.read_text(encoding="utf-8")
                os.utime(path)
                return text
        return None

    def keep(self, content: bytes, text: str) -> None:
        """Keep a text for a content; if it cannot be written, the content is parsed again the next time."""
        path = self._path(content)
        with contextlib.suppress(OSError):
            if path is not None:
                entry.write(path, text)

    def _path(self, content: bytes) -> Path | None:
        if self._folder is None:
            return None
        key = blake2b(content, digest_size=16, key=self._code).hexdigest()
        return self._folder / key[:2] / f"{key[2:]}.json"


class FactsCache(Generic[T]):
    """Values of one kind by content; nothing is kept where `folder` is None, and what cannot be read or written counts as absent."""

    def __init__(self, folder: Path | None, kind: type[T], reader: Iterable[Path]) -> None:
        self._kind, self._texts = kind, TextCache(folder, reader, shape=shape(kind))

    def facts(self, content: bytes, read: Callable[[], T]) -> T:
        """Return the facts of a content, from the cache or else by `read`."""
        text = self._texts.text(content)
        with contextlib.suppress(ValueError):
            if text is not None:
                return decoded(self._kind, text)
        facts = read()
        with contextlib.suppress(UnicodeEncodeError):  # a file's name that is no UTF-8
            self._texts.keep(content, encoded(facts))
        return facts
