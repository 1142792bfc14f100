"""What is loaded of programs and shared objects, byte by byte: what the kernel and the dynamic linker get of a file that is run.

It is told by the segments, not by sections: code, data, relocations, libraries asked for, the order of constructors, and what lies between
them. Left out are tables that nothing loads (sections, names for debuggers), and the digest that the linker gives each program of its own.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path

from perfdiff.languages.c.elf import ELF_MAGIC

_64_BITS_LITTLE_ENDIAN = b"\2\1"
_LOAD, _NOTE = 1, 4  # PT_*
_BUILD_ID = (3, b"GNU\0")  # NT_GNU_BUILD_ID
_HEADER_BYTES, _SEGMENT_BYTES, _NOTE_BYTES = 64, 56, 12
_SECTIONS_AT = ((40, 48), (58, 64))  # where the header tells of the table of sections
_MOST_BYTES = 1 << 30  # of one file


def are_alike(base: Path, head: Path, trees: tuple[Path, Path]) -> bool:
    """Return whether the same is loaded of two linked files; in their texts the paths of their own `trees` count as one."""
    images = [_image(path, os.fsencode(tree)) for path, tree in zip((base, head), trees, strict=True)]
    return images[0] is not None and images[0] == images[1]


def _image(path: Path, root: bytes) -> list[bytes] | None:
    """Return the header, the list of segments and the loaded ones of a file; None of one that is damaged, or has none, as objects have."""
    try:
        with path.open("rb") as file:
            if file.read(len(ELF_MAGIC)) != ELF_MAGIC or path.stat().st_size > _MOST_BYTES:
                return None
        content = bytearray(path.read_bytes())
        return _loaded(content, root)
    except (OSError, OverflowError, struct.error):  # a table where no file reaches
        return None


def _loaded(content: bytearray, root: bytes) -> list[bytes] | None:
    if content[4:6] != _64_BITS_LITTLE_ENDIAN:
        return None
    [table], [count] = struct.unpack_from("<Q", content, 32), struct.unpack_from("<H", content, 56)
    segments = [struct.unpack_from("<IIQQQQ", content, table + _SEGMENT_BYTES * number) for number in range(count)]
    if any(start + length > len(content) for _, _, start, _, _, length in segments):
        return None
    for start, end in _SECTIONS_AT:
        content[start:end] = bytes(end - start)
    for start, end in [place for kind, _, at, _, _, length in segments if kind == _NOTE for place in _digests(content, at, at + length)]:
        content[start:end] = bytes(end - start)
    loaded = [content[start : start + length] for kind, _, start, _, _, length in segments if kind == _LOAD]
    if not loaded:
        return None
    parts = [content[:_HEADER_BYTES], content[table : table + _SEGMENT_BYTES * count], *loaded]
    return [bytes(part).replace(root, b"\0<tree>") for part in parts]


def _digests(content: bytearray, at: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield where digests of the program stand among the notes of a segment."""
    while at + _NOTE_BYTES <= end:
        name, size, kind = struct.unpack_from("<III", content, at)
        text, body = at + _NOTE_BYTES, at + _NOTE_BYTES + -(-name // 4) * 4
        if body + size > end:
            return
        if (kind, bytes(content[text : text + name])) == _BUILD_ID:
            yield body, body + size
        at = body + -(-size // 4) * 4
