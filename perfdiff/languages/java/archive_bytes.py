"""Archives of class files, held against each other entry by entry; only when these were written may differ, and what they are."""

from __future__ import annotations

import lzma
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BytesIO
from operator import attrgetter

ARCHIVES = (".jar", ".war", ".ear", ".zip")
MOST_BYTES = 1 << 28  # of all entries that differ, of one side: larger ones are read in seconds
_DEEPEST = 3  # archives in archives: what servers deploy holds libraries
# `bz2` raises OSError.
_BROKEN = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, OSError, RuntimeError, NotImplementedError, struct.error, EOFError, ValueError)
_PIECE = 1 << 20  # of an entry that is unpacked at once
_LOCAL_BYTES, _LOCAL_MAGIC = 30, b"PK\3\4"
_DESCRIBED, _UTF8 = 0x8, 0x800  # flags: the sizes follow behind the entry; its name's encoding
_DESCRIPTIONS = (12, 16, 20, 24)  # bytes of such
_TOLD = attrgetter(
    *("orig_filename", "compress_type", "comment", "flag_bits", "create_system", "create_version", "extract_version"),
    *("internal_attr", "external_attr"),
)
_TIMES = (0x5455, 0x000A)  # extra fields: of Unix and of NTFS

AreAlike = Callable[[bytes, bytes], bool]


def are_alike(base: bytes, head: bytes, are_alike_classes: AreAlike) -> bool:
    """Return whether two archives have the same entries in the same order, class files compared by a function, and times left out."""
    try:
        return _ArchiveComparison(are_alike_classes).of_archives(base, head, 0)
    except _BROKEN:
        return False


class _ArchiveComparison:
    """Two archives, and those in them, at work."""

    def __init__(self, are_alike_classes: AreAlike) -> None:
        self._are_alike_classes, self._room = are_alike_classes, MOST_BYTES

    def of_archives(self, base: bytes, head: bytes, depth: int) -> bool:
        """Return whether two archives that lie in `depth` others are alike; raise what damaged ones raise."""
        with zipfile.ZipFile(BytesIO(base)) as first, zipfile.ZipFile(BytesIO(head)) as second:
            before, after = first.infolist(), second.infolist()
            packed, packed_in_head = list(_packed(base, first)), list(_packed(head, second))
            is_same = first.comment == second.comment and list(map(_described, before)) == list(map(_described, after))
            if not is_same or _before_entries(base, first) != _before_entries(head, second):
                return False
            for info, other, entry, entry_in_head in zip(before, after, packed, packed_in_head, strict=True):
                if (entry, info.CRC, info.file_size) == (entry_in_head, other.CRC, other.file_size):
                    continue
                self._room -= max(info.file_size, other.file_size)
                if entry.extra != entry_in_head.extra or self._room < 0:
                    return False
                if not self._of_entries(info.filename, _unpacked(first, info), _unpacked(second, other), depth):
                    return False
            return True

    def _of_entries(self, name: str, base: bytes, head: bytes, depth: int) -> bool:
        if base == head:
            return True
        if name.endswith(ARCHIVES) and depth < _DEEPEST:
            return self.of_archives(base, head, depth + 1)
        return name.endswith(".class") and self._are_alike_classes(base, head)


@dataclass(frozen=True, slots=True)
class _PackedEntry:
    """An entry as it is packed, and what is said of it there but for its time."""

    extra: list[tuple[int, bytes]]
    data: bytes


def _unpacked(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """Return what an entry holds; raise BadZipFile where that is more than the archive says, before all of it is there."""
    parts, left = [], info.file_size + 1
    with archive.open(info) as file:
        while left and (part := file.read(min(left, _PIECE))):
            parts.append(part)
            left -= len(part)
    if left != 1:
        raise zipfile.BadZipFile
    return b"".join(parts)


def _described(info: zipfile.ZipInfo) -> tuple[object, ...]:
    """Return all that is said of an entry but for its time, size and place."""
    return (*_TOLD(info), _without_times(info.extra))


def _without_times(extra: bytes) -> list[tuple[int, bytes]]:
    fields, at = [], 0
    while at < len(extra):
        kind, size = struct.unpack_from("<HH", extra, at)
        if kind not in _TIMES:
            fields.append((kind, extra[at + 4 : at + 4 + size]))
        at += 4 + size
    return fields


def _before_entries(content: bytes, archive: zipfile.ZipFile) -> bytes:
    """Return what stands before the first entry, such as a script."""
    return content[: min((entry.header_offset for entry in archive.infolist()), default=archive.start_dir)]


def _packed(content: bytes, archive: zipfile.ZipFile) -> Iterator[_PackedEntry]:
    """Yield the entries as they are packed; raise BadZipFile where anything is between them, or they say something else there."""
    entries = archive.infolist()
    ends = [*(entry.header_offset for entry in entries[1:]), archive.start_dir]
    for info, end in zip(entries, ends, strict=False):
        header = content[info.header_offset : info.header_offset + _LOCAL_BYTES]
        flags, method, name_size, extra_size = (*struct.unpack_from("<2H", header, 6), *struct.unpack_from("<2H", header, 26))
        name_at = info.header_offset + _LOCAL_BYTES
        start = name_at + name_size + extra_size
        name = content[name_at : name_at + name_size].decode("utf-8" if flags & _UTF8 else "cp437")
        rest = end - (start + info.compress_size)
        if not header.startswith(_LOCAL_MAGIC) or (name, flags, method) != (info.orig_filename, info.flag_bits, info.compress_type):
            raise zipfile.BadZipFile
        if rest not in (_DESCRIPTIONS if flags & _DESCRIBED else (0,)):
            raise zipfile.BadZipFile
        yield _PackedEntry(_without_times(content[name_at + name_size : start]), content[start : start + info.compress_size])
