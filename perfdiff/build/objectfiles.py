"""What linkers see in object files, as far as it says whether these may change places in a link."""

from __future__ import annotations

import re
import struct
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

_ELF, _RELOCATABLE = b"\x7fELF", 1
_NM_TIMEOUT_S = 60.0  # it reads some 100 MB a second

# Sections whose pieces are used in the order of the link: constructors and destructors of globals, and tables that programs walk from
# `__start_NAME` to `__stop_NAME`, which linkers define for names that are C identifiers.
_ORDERED = re.compile(rb"\.(?:preinit_array|init_array|fini_array|ctors|dtors|init|fini)(?:\..*)?|[A-Za-z_][A-Za-z0-9_]*")
_INTERMEDIATE = b".gnu.lto_"  # the linker compiles it, in the order in which it comes
_ALLOCATED = 2  # SHF_ALLOC

# Inline functions of C++ and their like: as many copies as there are users, all the same by the language's rule.
_INLINE, _WEAK, _COMMON = "_Z", frozenset("VWu"), frozenset("C")


def is_object(content: bytes) -> bool:
    """Return whether a file's content is that of an ELF object to be linked."""
    return content.startswith(_ELF) and len(content) > 18 and struct.unpack_from(_order(content) + "H", content, 16)[0] == _RELOCATABLE


def keeps_its_place(content: bytes) -> bool:
    """Return whether what an object does depends on its place among others: it has constructors, tables, or is still to be compiled.

    One that cannot be read keeps its place as well.
    """
    try:
        return any(_ORDERED.fullmatch(name) or name.startswith(_INTERMEDIATE) for name in _sections(content))
    except (struct.error, IndexError, ValueError):
        return True


def _order(content: bytes) -> str:
    return ">" if content[5:6] == b"\2" else "<"


def _sections(content: bytes) -> Iterator[bytes]:
    """Yield the names of sections that become part of the program, and of those with intermediate code (ELF specification, ch. 1)."""
    order, wide = _order(content), content[4:5] == b"\2"
    table, size, count, names = (
        struct.unpack_from(order + ("Q" if wide else "I"), content, 40 if wide else 32)[0],
        *struct.unpack_from(order + "HHH", content, 58 if wide else 46),
    )
    if table == 0:
        return
    header = struct.Struct(order + ("IIQQQQ" if wide else "IIIIII"))
    headers = [header.unpack_from(content, table + size * index) for index in range(count or 1)]
    if count == 0:  # more than 65,279 sections: the first header says how many, as its size
        count = headers[0][5]
        headers = [header.unpack_from(content, table + size * index) for index in range(count)]
    if names == 0xFFFF:
        names = struct.unpack_from(order + "I", content, table + (40 if wide else 24))[0]
    start = headers[names][4]
    for name, _, flags, *_ in headers:
        begin = start + name
        text = content[begin : content.index(b"\0", begin)]
        if flags & _ALLOCATED or text.startswith(_INTERMEDIATE):
            yield text


def rivals(files: Sequence[Path], environment: Mapping[str, str]) -> frozenset[str] | None:
    """Return the files, or members of archives (`lib.a[part.o]`), that define what others define as well; None where `nm` does not tell.

    Which definition a program gets depends on the order of the link then. Inline functions of C++ do not count.
    """
    words = ["nm", "-A", "-P", "-g", "--defined-only", *map(str, files)]
    try:
        answer = subprocess.run(
            words, env=dict(environment), capture_output=True, text=True, errors="surrogateescape", timeout=_NM_TIMEOUT_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    definitions: dict[str, dict[str, str]] = {}
    for line in answer.stdout.splitlines():
        place, _, symbol = line.rpartition(": ")
        name, kind, *_ = symbol.split(" ")
        definitions.setdefault(name, {})[place] = kind
    return frozenset(
        place
        for name, kinds in definitions.items()
        if len(kinds) > 1 and not (name.startswith(_INLINE) and _WEAK.issuperset(kinds.values())) and not _COMMON.issuperset(kinds.values())
        for place in kinds
    )
