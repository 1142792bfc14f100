"""One profile for pprof: https://github.com/google/pprof/blob/main/proto/profile.proto, in protocol buffers' wire format, compressed.

Each quantity is there in base, in head, and as head less base; `-sample_index` chooses. The writer is thirty lines: what generates such
code from the description is a dependency of 1.5 MB.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator

import numpy as np

from perfdiff.report.document import Document, headline
from perfdiff.report.profiles.stacks import EXPORTED, METHOD, Stacks, call_stacks

_UNITS = {"ns": "nanoseconds", "count": "count"}
_DEFAULT = "time_head"
# Fields of `Profile`, and of the messages in it, by their numbers.
_SAMPLE_TYPE, _SAMPLE, _LOCATION, _FUNCTION, _STRING, _COMMENT, _DEFAULT_TYPE = 1, 2, 4, 5, 6, 13, 14
_ID, _LINE = 1, 4


class _StringTable:
    """The table of strings, whose first is empty."""

    def __init__(self) -> None:
        self._places = {"": 0}

    def place(self, text: str) -> int:
        """Return where a text stands in the table."""
        return self._places.setdefault(text, len(self._places))

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)


def render(document: Document) -> bytes:
    """Return the profile, with the answer and how stacks are made as its comments."""
    stacks, texts = call_stacks(document.findings, EXPORTED), _StringTable()
    parts = [
        *_types(stacks, texts),
        *_samples(stacks),
        *_functions(stacks, texts),
        *(_number(_COMMENT, texts.place(text)) for text in (f"{document.title}: {headline(document.findings)}", METHOD)),
        _number(_DEFAULT_TYPE, texts.place(_DEFAULT)),
    ]
    parts += [_bytes(_STRING, text.encode(errors="backslashreplace")) for text in texts]
    return gzip.compress(b"".join(parts), mtime=0)


def _types(stacks: Stacks, texts: _StringTable) -> Iterator[bytes]:
    for quantity in stacks.quantities:
        for side in ("base", "head", "difference"):
            kind, unit = texts.place(f"{quantity.name}_{side}"), texts.place(_UNITS[quantity.unit])
            yield _bytes(_SAMPLE_TYPE, _number(1, kind) + _number(2, unit))


def _samples(stacks: Stacks) -> Iterator[bytes]:
    whole = np.rint(stacks.own).astype(np.int64)
    values = np.concatenate([whole, whole[:, :, 1:] - whole[:, :, :1]], axis=2)
    for stack, row in enumerate(values.reshape(len(values), 3 * len(stacks.quantities)).tolist()):
        if any(row):
            locations = (place + 1 for place in reversed(stacks.chain(stack)))
            yield _bytes(_SAMPLE, _packed(1, locations) + _packed(2, row))


def _functions(stacks: Stacks, texts: _StringTable) -> Iterator[bytes]:
    """Yield a function for each frame, and a location with its line, which are numbered from 1."""
    for number, frame in enumerate(stacks.frames, start=1):
        yield _bytes(_LOCATION, _number(_ID, number) + _bytes(_LINE, _number(1, number) + _number(2, frame.line)))
        names = _number(2, texts.place(frame.name)) + _number(4, texts.place(frame.file))
        yield _bytes(_FUNCTION, _number(_ID, number) + names + _number(5, frame.line))


def _varint(value: int) -> bytes:
    """Return a number in groups of seven bits, the lowest first; a negative one as the 64 bits of its complement."""
    rest, groups = value % 2**64, bytearray()
    while rest >= 0x80:
        groups.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*groups, rest])


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _packed(field: int, values: Iterable[int]) -> bytes:
    return _bytes(field, b"".join(map(_varint, values)))
