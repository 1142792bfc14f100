"""ELF files and archives as a comparison of machine code reads them: sections, symbols and relocations, each checked against the file.

pyelftools reads headers; symbols and relocations, of which there are tens of thousands, are taken as arrays. What is damaged raises
`DamagedElfError` and nothing else, whatever its bytes are.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

X86_64, AARCH64 = "EM_X86_64", "EM_AARCH64"
OBJECT, PROGRAM, LIBRARY = "ET_REL", "ET_EXEC", "ET_DYN"

WRITE, ALLOC, EXECUTE, MERGE, STRINGS, THREAD = 0x1, 0x2, 0x4, 0x10, 0x20, 0x400  # SHF_*
NO_TYPE, DATA, FUNCTION, SECTION, FILE, COMMON, TLS, INDIRECT = 0, 1, 2, 3, 4, 5, 6, 10  # STT_*
LOCAL = 0  # STB_LOCAL
UNDEFINED, RESERVED, ABSOLUTE, COMMON_SECTION, EXTENDED = 0, 0xFF00, 0xFFF1, 0xFFF2, 0xFFFF  # SHN_*

ELF_MAGIC, ARCHIVE_MAGIC = b"\x7fELF", b"!<arch>\n"
_LTO = (".gnu.lto_", ".llvm.lto")
_NO_BITS, _RELA, _REL, _SYMBOLS, _EXTENDED_INDICES = "SHT_NOBITS", "SHT_RELA", "SHT_REL", "SHT_SYMTAB", "SHT_SYMTAB_SHNDX"
_SYMBOL = np.dtype([("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"), ("size", "<u8")])
_RELOCATION = np.dtype([("offset", "<u8"), ("type", "<u4"), ("symbol", "<u4"), ("addend", "<i8")])
_HEADER_BYTES, _SECTION_BYTES, _MEMBER_BYTES = 64, 64, 60
# Linkers let a name be the end of another one. So often as this no name is shared; a made-up file could ask for gigabytes of names.
_MOST_SHARING = 64
# What pyelftools raises on headers that contradict each other; it was not written for files of strangers.
_RAISED = (
    ELFError, struct.error, ValueError, LookupError, TypeError, AttributeError, AssertionError, ArithmeticError, MemoryError,
    RecursionError, OSError, EOFError,
)  # fmt: skip


class DamagedElfError(Exception):
    """A file is no ELF file that can be taken apart; the text says why."""


@dataclass(frozen=True, slots=True)
class Symbol:
    """An entry of the symbol table. `section` is an index into `Elf.sections`, or one of the reserved indices."""

    name: str
    kind: int
    is_local: bool
    section: int
    value: int
    size: int


@dataclass(frozen=True, slots=True)
class Relocation:
    """A place (`offset` into its section) that the linker fills in: with `symbol` (an index) and `addend`, in the way of `kind`."""

    offset: int
    kind: int
    symbol: int
    addend: int


@dataclass(frozen=True, slots=True)
class ElfSection:
    """A section; `content` is empty where the file holds none of it (`.bss`), `size` and `entry` are in bytes."""

    name: str
    kind: str
    flags: int
    address: int
    size: int
    entry: int
    content: bytes
    relocations: tuple[Relocation, ...]
    raw_relocations: bytes

    @property
    def is_code(self) -> bool:
        """Return whether the processor executes it."""
        return bool(self.flags & EXECUTE)

    @property
    def is_merged(self) -> bool:
        """Return whether the linker joins equal constants or strings of it."""
        return bool(self.flags & MERGE) and self.entry > 0


@dataclass(frozen=True, slots=True)
class Elf:
    """What is loaded of an ELF file (`sections` by their index, those that are not loaded left out), and its symbols."""

    kind: str
    machine: str
    sections: dict[int, ElfSection]
    symbols: tuple[Symbol, ...]
    needed: tuple[str, ...]
    has_lto: bool


def read(content: bytes) -> Elf:
    """Take an ELF file apart; raise DamagedElfError where that cannot be done, and for 32 bits and big-endian machines."""
    try:
        return _read(content)
    except _RAISED as error:
        raise DamagedElfError(f"damaged ({type(error).__name__})") from error


def members(content: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the names and contents of an archive's files; ends where the archive is damaged. Thin archives hold none."""
    at, names = len(ARCHIVE_MAGIC), b""
    while at + _MEMBER_BYTES <= len(content):
        header = content[at : at + _MEMBER_BYTES]
        digits, at = header[48:58].strip(), at + _MEMBER_BYTES
        if not digits.isdigit() or header[58:60] != b"`\n":
            return
        body = content[at : at + int(digits)]
        at += int(digits) + int(digits) % 2
        name = header[:16].rstrip()
        if name == b"//":
            names = body
        elif name.startswith(b"#1/") and name[3:].isdigit():
            length = int(name[3:])
            yield _text(body[:length].rstrip(b"\0")), body[length:]
        elif name.startswith(b"/") and name[1:].isdigit():
            yield _text(names[int(name[1:]) :].partition(b"/\n")[0]), body
        elif name not in (b"/", b"/SYM64/"):
            yield _text(name.removesuffix(b"/")), body


def _read(content: bytes) -> Elf:
    if len(content) < _HEADER_BYTES:
        raise DamagedElfError("too short")
    file = ELFFile(BytesIO(content))
    if file.elfclass != 64 or not file.little_endian:
        raise DamagedElfError("not of a little-endian machine with 64 bits")
    count = file.num_sections()
    if count * _SECTION_BYTES > len(content) or file["e_shentsize"] not in (0, _SECTION_BYTES):
        raise DamagedElfError("its section headers lie outside of it")
    headers = list(file.iter_sections())
    contents = {index: _content(content, header) for index, header in enumerate(headers)}
    relocations: dict[int, bytes] = {}
    for index, header in enumerate(headers):
        if header["sh_type"] == _REL and file["e_type"] == OBJECT and _is_loaded(headers, header["sh_info"]):
            raise DamagedElfError("its relocations have no addends")
        if header["sh_type"] == _RELA and file["e_type"] == OBJECT:
            relocations[header["sh_info"]] = relocations.get(header["sh_info"], b"") + contents[index]
    symbols = _symbols(headers, contents)
    sections = {
        index: _section(header, contents[index], relocations.get(index, b""), len(symbols))
        for index, header in enumerate(headers)
        if _is_loaded(headers, index)
    }
    if not sections:
        raise DamagedElfError("no section headers")
    dynamic = [header for header in headers if header["sh_type"] == "SHT_DYNAMIC"]
    return Elf(
        kind=file["e_type"],
        machine=file["e_machine"],
        sections=sections,
        symbols=symbols,
        needed=tuple(tag.needed for header in dynamic[:1] for tag in header.iter_tags("DT_NEEDED")),  # in order
        has_lto=any(header.name.startswith(_LTO) for header in headers),
    )


def _is_loaded(sections: list[Any], index: int) -> bool:
    return 0 < index < len(sections) and bool(sections[index]["sh_flags"] & ALLOC)


def _content(content: bytes, section: Any) -> bytes:
    if section["sh_type"] in (_NO_BITS, "SHT_NULL"):
        return b""
    start, size = section["sh_offset"], section["sh_size"]
    if start + size > len(content):
        raise DamagedElfError("a section lies outside of it")
    return content[start : start + size]


def _section(section: Any, content: bytes, raw: bytes, symbols: int) -> ElfSection:
    table = np.frombuffer(raw[: len(raw) - len(raw) % _RELOCATION.itemsize], dtype=_RELOCATION)
    if len(table) and (int(table["symbol"].max()) >= max(symbols, 1) or int(table["offset"].max()) >= len(content)):
        raise DamagedElfError("a relocation leads out of it")
    table = table[np.argsort(table["offset"], kind="stable")]
    return ElfSection(
        name=section.name,
        kind=str(section["sh_type"]),
        flags=section["sh_flags"],
        address=section["sh_addr"],
        size=section["sh_size"],
        entry=section["sh_entsize"],
        content=content,
        relocations=tuple(
            Relocation(*row) for row in zip(*(table[name].tolist() for name in ("offset", "type", "symbol", "addend")), strict=True)
        ),
        raw_relocations=raw,
    )


def _symbols(sections: list[Any], contents: dict[int, bytes]) -> tuple[Symbol, ...]:
    tables = [index for index, header in enumerate(sections) if header["sh_type"] == _SYMBOLS]
    tables = tables or [index for index, header in enumerate(sections) if header["sh_type"] == "SHT_DYNSYM"]
    if not tables:
        return ()
    raw = contents[tables[0]]
    table = np.frombuffer(raw[: len(raw) - len(raw) % _SYMBOL.itemsize], dtype=_SYMBOL)
    names = contents.get(sections[tables[0]]["sh_link"], b"")
    homes = _homes(table, sections, contents, tables[0])
    columns = [table[column].tolist() for column in ("name", "info", "value", "size")]
    symbols, length = [], 0
    for name, info, value, size, home in zip(*columns, homes, strict=True):
        symbols.append(Symbol(_name(names, name), info & 0xF, info >> 4 == LOCAL, home, value, size))
        length += len(symbols[-1].name)
        if length > _MOST_SHARING * (len(names) + 1):
            raise DamagedElfError("its names overlap")
    return tuple(symbols)


def _homes(table: Any, sections: list[Any], contents: dict[int, bytes], index: int) -> list[int]:
    """Return the section of each symbol; where there are more sections than 16 bits count, they stand in a table of their own."""
    homes: list[int] = table["section"].astype(np.int64).tolist()
    for number, header in enumerate(sections):
        if header["sh_type"] == _EXTENDED_INDICES and header["sh_link"] == index:
            wide = np.frombuffer(contents[number][: 4 * len(homes)], dtype="<u4").tolist()
            if len(wide) != len(homes):
                raise DamagedElfError("its symbols lack sections")
            homes = [wide[at] if home == EXTENDED else home for at, home in enumerate(homes)]
    return homes


def _name(names: bytes, start: int) -> str:
    end = names.find(b"\0", start)
    return _text(names[start : end if end >= 0 else len(names)])


def _text(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")
