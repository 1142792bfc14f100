"""Archives of class files, held against each other entry by entry; only when these were written may differ, and what they are."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from io import BytesIO

ARCHIVES = (".jar", ".war", ".ear", ".zip")
MOST_BYTES = 1 << 28  # of all entries that differ, of one side: larger ones are read in seconds
_DEEPEST = 3  # archives in archives: what servers deploy holds libraries
_BROKEN = (zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError, struct.error, EOFError, ValueError)
_LOCAL_BYTES, _LOCAL_MAGIC = 30, b"PK\3\4"
_DESCRIBED = 0x8  # the entry's sizes follow behind it
_DESCRIPTIONS = (12, 16, 20, 24)  # bytes of such
_TIMES = (0x5455, 0x000A)  # extra fields: of Unix and of NTFS

Differing = frozenset[str]
Compared = Callable[[bytes, bytes], Differing | None]


def compare(base: bytes, head: bytes, compared: Compared) -> Differing | None:
    """Return what differs in two archives, as `compared` tells of two class files; None where anything else does."""
    return _compare(base, head, compared, [MOST_BYTES], 0)


def _compare(base: bytes, head: bytes, compared: Compared, room: list[int], depth: int) -> Differing | None:
    try:
        with zipfile.ZipFile(BytesIO(base)) as first, zipfile.ZipFile(BytesIO(head)) as second:
            before, after = first.infolist(), second.infolist()
            if first.comment != second.comment or list(map(_described, before)) != list(map(_described, after)):
                return None
            packed = list(_packed(base, first)), list(_packed(head, second))
            found: set[str] = set()
            if packed[0][:1] != packed[1][:1]:  # what stands before the first entry: a script
                return None
            for one, other, (extra, data), (extra_in_head, data_in_head) in zip(before, after, packed[0][1:], packed[1][1:], strict=True):
                if extra != extra_in_head:
                    return None
                if (data, one.CRC, one.file_size) == (data_in_head, other.CRC, other.file_size):
                    continue
                room[0] -= max(one.file_size, other.file_size)
                if room[0] < 0:
                    return None
                differing = _entry(one.filename, first.read(one), second.read(other), compared, room, depth)
                if differing is None:
                    return None
                found |= differing
            return frozenset(found)
    except _BROKEN:
        return None


def _entry(name: str, base: bytes, head: bytes, compared: Compared, room: list[int], depth: int) -> Differing | None:
    if base == head:
        return frozenset()
    if name.endswith(".class"):
        return compared(base, head)
    return _compare(base, head, compared, room, depth + 1) if name.endswith(ARCHIVES) and depth < _DEEPEST else None


def _described(one: zipfile.ZipInfo) -> tuple[object, ...]:
    """Return all that is said of an entry but for its time, size and place."""
    return (
        one.orig_filename,
        one.compress_type,
        one.comment,
        one.flag_bits,
        one.create_system,
        one.create_version,
        one.extract_version,
        one.internal_attr,
        one.external_attr,
        _without_times(one.extra),
    )


def _without_times(extra: bytes) -> list[tuple[int, bytes]]:
    found, at = [], 0
    while at < len(extra):
        kind, size = struct.unpack_from("<HH", extra, at)
        if kind not in _TIMES:
            found.append((kind, extra[at + 4 : at + 4 + size]))
        at += 4 + size
    return found


def _packed(content: bytes, archive: zipfile.ZipFile) -> Iterator[tuple[list[tuple[int, bytes]], bytes]]:
    """Yield what stands before the first entry, and the entries as they are packed; raise BadZipFile where anything is between them.

    With each comes what is said of it there, but for its time.
    """
    entries = archive.infolist()
    ends = [*(one.header_offset for one in entries[1:]), archive.start_dir]
    yield [], content[: entries[0].header_offset if entries else archive.start_dir]
    for one, end in zip(entries, ends, strict=False):
        header = content[one.header_offset : one.header_offset + _LOCAL_BYTES]
        flags, method, name_size, extra_size = (*struct.unpack_from("<2H", header, 6), *struct.unpack_from("<2H", header, 26))
        name_at = one.header_offset + _LOCAL_BYTES
        start = name_at + name_size + extra_size
        name = content[name_at : name_at + name_size].decode("utf-8" if flags & 0x800 else "cp437")
        rest = end - (start + one.compress_size)
        if not header.startswith(_LOCAL_MAGIC) or (name, flags, method) != (one.orig_filename, one.flag_bits, one.compress_type):
            raise zipfile.BadZipFile
        if rest not in (_DESCRIPTIONS if flags & _DESCRIBED else (0,)):
            raise zipfile.BadZipFile
        yield _without_times(content[name_at + name_size : start]), content[start : start + one.compress_size]
