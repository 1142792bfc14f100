"""The code and data of one object file, symbol by symbol, with all addresses resolved to names.

Each symbol becomes an `Atom`: a digest of its bytes in which every reference is written as what it leads to. A named symbol is written
by its name, so that it may move, grow or change without changing those who refer to it. What has no name is written by its content:
string literals, constants, jump tables, the tables of exception handlers, variables of functions (`count.0`), whose number may change.

References by the place in a section are resolved to the symbol there. Compilers may point beside what they mean (`table[c - 'A']` as
`table-260`, loop ends, section anchors of AArch64); such references also refer to the section as a whole (`section .rodata`).
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from perfdiff.languages.c import elf
from perfdiff.languages.c.elf import Elf, ElfSection, Relocation, Symbol
from perfdiff.languages.c.instructions import near_references, operand_ends
from perfdiff.languages.c.section_layout import SectionLayout, SymbolSpan

STATIC, WHOLE = "static ", "section "  # begin the names of atoms that are no symbols of the whole program
MACHINES = frozenset((elf.X86_64, elf.AARCH64))

_CODE_ABSOLUTE = {elf.X86_64: frozenset((10, 11)), elf.AARCH64: frozenset[int]()}  # R_X86_64_32, 32S: may carry an index's bias
_RELATIVE = {elf.X86_64: frozenset((2, 4, 24)), elf.AARCH64: frozenset((260, 261, 262))}  # PC32, PLT32, PC64; PREL64, 32, 16
_SHORT_WORDS, _SHORT, _LONG = frozenset((2, 10, 11, 258, 261)), 4, 8  # words of four bytes: PC32, 32, 32S; ABS32, PREL32
_PADDING = {elf.X86_64: frozenset(b"\x66\x2e\x0f\x1f\x00\x40\x44\x80\x84\x90\xcc"), elf.AARCH64: frozenset(b"\x1f\x20\x03\xd5\x00")}
_NAMELESS = re.compile(r"$|\.L|\$[xdt](?:\.|$)")  # labels of compilers, and AArch64's marks of code and data
_NUMBER = re.compile(r"\.\d+(?=\.|$)")
_ANY = ".#"  # stands for the number of a function's variable
# In these the order of symbols means nothing to the program; others are walked through from end to end (constructors, init calls).
_ORDERLESS = re.compile(r"\.(?:l?text|l?rodata|l?data|l?bss|s?data|s?bss|tdata|tbss)(?:\.|$)")
_IGNORED = re.compile(r"\.(?:eh_frame$|note|gcc_except_table|comment|llvm_addrsig|gnu\.build)")
_HANDLERS = ".gcc_except_table"
# Bytes read again and again, for each byte of the file: nameless data that many refer to. Beyond, a file is not worth the time.
_MOST_READ, _RELOCATION_COST = 200, 64
_DEEPEST = 40  # nameless data that leads to nameless data; deeper ones are compared by their place


@dataclass(frozen=True, slots=True)
class Atom:
    """A symbol, or a whole section's named data: `digest` of its content with references by name, and the names of the atoms these mean."""

    name: str
    is_code: bool
    digest: bytes
    references: frozenset[str]


@dataclass(frozen=True, slots=True)
class ObjectCode:
    """An object file taken apart: its atoms by name, and digests of what has no name and whose order counts, by section."""

    atoms: Mapping[str, Atom]
    ordered: Mapping[str, bytes]


def family(name: str) -> str:
    """Return the symbol that a symbol was made of: `scan` of `scan.constprop.0`, `scan.cold` and `scan._omp_fn.1`."""
    plain = name.removeprefix(STATIC)
    return plain[:1] + plain[1:].partition(".")[0]


def raw_digest(file: Elf, root: bytes) -> bytes:
    """Return a digest of all that is loaded of a file, byte by byte, and of its symbols; the tree's own path `root` counts as a token."""
    digest = hashlib.blake2b(digest_size=16)
    for index, section in sorted(file.sections.items()):
        if not section.name.startswith(".note"):
            words = (index, section.name, section.kind, section.flags, section.address, section.size)
            digest.update(repr(words).encode())
            digest.update(_without_root(section.content, root))
            digest.update(section.raw_relocations)
    if file.kind == elf.OBJECT:
        for symbol in file.symbols:
            digest.update(repr(symbol).encode("utf-8", "surrogateescape"))
    return digest.digest()


def take_apart(file: Elf, root: bytes, renames: Mapping[str, str]) -> ObjectCode:
    """Return the atoms of a relocatable file; symbols are called by their name in `renames` where they have one there."""
    return _Parts(file, root, renames).object_code()


def _without_root(content: bytes, root: bytes) -> bytes:
    return content.replace(root, b"\0<tree>") if root else content


@dataclass(frozen=True, slots=True)
class _Reading:
    """What was read of some bytes: lines that tell them, and the atoms they refer to."""

    says: str
    references: frozenset[str] = frozenset()


class _Parts:
    """An object file at work: its names, its sections' layouts, and what was read so far."""

    def __init__(self, file: Elf, root: bytes, renames: Mapping[str, str]) -> None:
        self._file, self._root, self._renames = file, root, renames
        self._shared = Counter(_NUMBER.sub("", symbol.name) for symbol in file.symbols if symbol.kind in (elf.FUNCTION, elf.INDIRECT))
        self._names = [self._name(symbol) for symbol in file.symbols]
        self._layouts = self._layout()
        self._pointed = self._places_pointed_to()
        self._handlers = self._exception_tables()
        self._read: dict[tuple[int, int, int, str], _Reading] = {}
        self._budget = _MOST_READ * sum(
            len(section.content) + _RELOCATION_COST * (1 + len(section.relocations)) for section in file.sections.values()
        )
        self._open: set[tuple[int, int, int, str]] = set()

    def object_code(self) -> ObjectCode:
        """Return the atoms, those of the same name joined."""
        atoms_by_name: dict[str, list[Atom]] = defaultdict(list)
        for atom in (*self._atoms(), *self._whole_sections(), *self._homeless()):
            atoms_by_name[atom.name].append(atom)
        ordered: dict[str, list[str]] = defaultdict(list)
        for index, layout in self._layouts.items():
            ordered[layout.section.name] += self._ordered(index, layout)
        return ObjectCode(
            atoms={name: _joined(atoms) for name, atoms in sorted(atoms_by_name.items())},
            ordered={name: _digest(*says) for name, says in sorted(ordered.items()) if says},
        )

    def _name(self, symbol: Symbol) -> str | None:
        """Return what a symbol is called in references; None where its name means nothing."""
        if _NAMELESS.match(symbol.name) or symbol.kind in (elf.SECTION, elf.FILE):
            return None
        head, dot, tail = symbol.name.partition(".")
        name = self._renames.get(head, head) + dot + tail
        if self._is_numbered(symbol):
            name = _NUMBER.sub(_ANY, name)
        elif symbol.kind in (elf.FUNCTION, elf.INDIRECT) and self._shared[_NUMBER.sub("", symbol.name)] == 1:
            name = _NUMBER.sub("", name)
        return STATIC + name if symbol.is_local else name

    def _is_numbered(self, symbol: Symbol) -> bool:
        return symbol.is_local and symbol.kind in (elf.DATA, elf.TLS) and _NUMBER.search(symbol.name) is not None

    def _layout(self) -> dict[int, SectionLayout]:
        layouts = {index: SectionLayout(section) for index, section in self._file.sections.items()}
        unsized: dict[int, set[tuple[int, str]]] = defaultdict(set)
        for symbol, name in zip(self._file.symbols, self._names, strict=True):
            layout = layouts.get(symbol.section)
            if name is None or layout is None or symbol.value > layout.section.size:
                continue
            if symbol.size:
                layout.spans.append(SymbolSpan(symbol.value, min(symbol.value + symbol.size, layout.section.size), name))
            else:
                unsized[symbol.section].add((symbol.value, name))
        for index, layout in layouts.items():
            places = sorted({span.start for span in layout.spans} | {start for start, _ in unsized[index]})
            for start, name in unsized[index]:
                after = bisect_right(places, start)
                layout.spans.append(SymbolSpan(start, places[after] if after < len(places) else layout.section.size, name))
            layout.spans.sort()
            layout.starts = [span.start for span in layout.spans]
            layout.offsets = [relocation.offset for relocation in layout.section.relocations]
            if layout.section.is_code:
                code, starts = layout.section.content, frozenset(layout.starts)
                layout.near = list(near_references(self._file.machine, code, starts, frozenset(layout.offsets)))
                layout.near_offsets = [reference.offset for reference in layout.near]
        return layouts

    def _places_pointed_to(self) -> dict[int, list[int]]:
        """Return the places in each section that code certainly refers to by its section."""
        places: dict[int, set[int]] = defaultdict(set)
        for layout in self._layouts.values():
            if layout.section.is_code:
                for relocation in layout.section.relocations:
                    symbol = self._file.symbols[relocation.symbol]
                    aims = self._aims(layout.section, relocation)
                    if symbol.kind == elf.SECTION and len(aims) == 1:
                        places[symbol.section].add(symbol.value + aims[0])
        return {index: sorted(pointed) for index, pointed in places.items()}

    def _exception_tables(self) -> dict[tuple[int, int], list[tuple[int, int, int]]]:
        """Return the stretch of the handlers' table (section, start, end) of each function that has one, by the function's place."""
        pairs: list[tuple[tuple[int, int], tuple[int, int]]] = []
        for layout in self._layouts.values():
            function = None
            for relocation in layout.section.relocations if layout.section.name == ".eh_frame" else ():
                symbol = self._file.symbols[relocation.symbol]
                target, place = self._layouts.get(symbol.section), (symbol.section, symbol.value + relocation.addend)
                if target is not None and target.section.is_code:
                    function = place
                elif target is not None and target.section.name.startswith(_HANDLERS) and function is not None:
                    pairs.append((function, place))
        starts = sorted({place for _, place in pairs})
        tables: dict[tuple[int, int], list[tuple[int, int, int]]] = defaultdict(list)
        for function, (section, start) in pairs:
            after = bisect_right(starts, (section, start))
            end = starts[after][1] if after < len(starts) and starts[after][0] == section else self._layouts[section].section.size
            tables[function].append((section, start, end))
        return tables

    def _aims(self, section: ElfSection, relocation: Relocation) -> tuple[int, ...]:
        """Return the distances from its symbol that a relocation in code may mean."""
        if self._file.machine == elf.X86_64 and relocation.kind in _RELATIVE[elf.X86_64]:
            return tuple(relocation.addend + end for end in operand_ends(section.content, relocation.offset))
        return (relocation.addend,)

    def _data_aims(self, section: ElfSection, relocation: Relocation, origin: int) -> tuple[int, ...]:
        """Return the distances from its symbol that a relocation in data may mean, from its own place or from its table's start."""
        if relocation.kind not in _RELATIVE[self._file.machine] or section.name.startswith(_HANDLERS):
            return (relocation.addend,)
        from_table = relocation.addend - (relocation.offset - origin)
        if self._is_into_code(relocation) and section.name.startswith(".rodata"):
            return (from_table,)
        target = self._layouts.get(self._file.symbols[relocation.symbol].section)
        is_inside = target is not None and 0 <= from_table < target.section.size
        return (relocation.addend, from_table) if is_inside else (relocation.addend,)

    def _atoms(self) -> Iterator[Atom]:
        for index, layout in self._layouts.items():
            if _IGNORED.match(layout.section.name):
                continue
            for span in layout.spans:
                reading = self._stretch(index, span.start, span.end, span.name)
                handlers = [self._stretch(*table, span.name) for table in self._handlers.get((index, span.start), ())]
                yield _atom(span.name, layout.section, [reading, *handlers])

    def _whole_sections(self) -> Iterator[Atom]:
        for index, layout in self._layouts.items():
            if not layout.section.is_code and not layout.section.is_merged and layout.spans:
                inner = sorted({(span.name, self._stretch(index, span.start, span.end, span.name)) for span in layout.spans}, key=repr)
                readings = [_Reading(f"{name} {reading.says}", reading.references) for name, reading in inner]
                yield _atom(WHOLE + layout.section.name, layout.section, readings)

    def _homeless(self) -> Iterator[Atom]:
        """Yield symbols that lie in no section: common variables and plain numbers."""
        for symbol, name in zip(self._file.symbols, self._names, strict=True):
            if name is not None and symbol.section in (elf.ABSOLUTE, elf.COMMON_SECTION):
                yield Atom(name, False, _digest(f"{symbol.section} {symbol.size} {symbol.value}"), frozenset())

    def _ordered(self, index: int, layout: SectionLayout) -> list[str]:
        """Return what of a section counts as it stands: all of it, or the code in it that no symbol names."""
        section = layout.section
        if _IGNORED.match(section.name) or section.is_merged:
            return []
        if not _ORDERLESS.match(section.name):
            return [self._stretch(index, 0, section.size, section.name).says]
        gaps = self._gaps(layout) if section.is_code else ()
        return [self._stretch(index, start, end, section.name).says for start, end in gaps]

    def _gaps(self, layout: SectionLayout) -> Iterator[tuple[int, int]]:
        """Yield the stretches of code that no symbol names, padding left out."""
        reached = 0
        for span in (*layout.spans, SymbolSpan(layout.section.size, layout.section.size, "")):
            if span.start > reached and not set(layout.section.content[reached : span.start]) <= _PADDING[self._file.machine]:
                yield reached, span.start
            reached = max(reached, span.end)

    def _stretch(self, index: int, start: int, end: int, owner: str) -> _Reading:
        """Read the bytes of a section from `start` to `end`, which belong to the function or variable `owner`."""
        key = (index, start, end, owner)
        if key in self._read:
            return self._read[key]
        if key in self._open or len(self._open) > _DEEPEST:
            return _Reading(f"again {start - end}")
        self._budget -= len(self._layouts[index].section.content[start:end]) + _RELOCATION_COST * len(
            self._layouts[index].relocations(start, end)
        )
        if self._budget < 0:
            raise elf.DamagedElfError("too entangled to be taken apart")
        self._open.add(key)
        reading = self._read[key] = self._read_stretch(self._layouts[index], start, end, owner)
        self._open.discard(key)
        return reading

    def _read_stretch(self, layout: SectionLayout, start: int, end: int, owner: str) -> _Reading:
        section, says, references = layout.section, [], set[str]()
        content = bytearray(section.content[start:end])
        for near in layout.near_references(start, end):
            span = layout.at(near.target)
            if span is not None:
                content[near.offset - start : near.offset - start + near.width] = bytes(near.width)
                says.append(f"{near.offset - start} near {near.kept} {span.name}")
                references.add(span.name)
        for relocation in layout.relocations(start, end):
            target = self._target(section, relocation, start, owner)
            says.append(f"{relocation.offset - start} {relocation.kind} {target.says}")
            references |= target.references
        body = _without_root(bytes(content), self._root) if not section.is_code else bytes(content)
        size = "" if section.content else f" of {end - start} empty bytes"
        return _Reading(f"{_digest(body, *says).hex()}{size}", frozenset(references - {owner}))

    def _target(self, section: ElfSection, relocation: Relocation, origin: int, owner: str) -> _Reading:
        """Read what a relocation leads to; `origin` is where the stretch starts from which distances in data count."""
        symbol, name = self._file.symbols[relocation.symbol], self._names[relocation.symbol]
        if name is not None and not self._is_numbered(symbol):
            return _Reading(f"{name}{relocation.addend:+}", frozenset((name,)))
        loose = section.is_code and relocation.kind in _CODE_ABSOLUTE[self._file.machine]
        if symbol.kind != elf.SECTION:
            place = self._place(symbol.section, symbol.value, owner, loose=loose)
            return _Reading(f"{place.says}{relocation.addend:+}", place.references)
        aims = self._aims(section, relocation) if section.is_code else self._data_aims(section, relocation, origin)
        readings = [self._place(symbol.section, symbol.value + aim, owner, loose=loose) for aim in aims]
        return _Reading(" or ".join(reading.says for reading in readings), frozenset().union(*(reading.references for reading in readings)))

    def _place(self, index: int, place: int, owner: str, *, loose: bool) -> _Reading:
        """Read what lies at a place of a section; a `loose` reference may mean a place some way behind."""
        layout = self._layouts.get(index)
        if layout is None:
            return _Reading(f"section {index} {place:+}")
        section = layout.section
        if section.is_merged and 0 <= place < section.size:
            return _Reading(_digest(_without_root(_constant(section, place), self._root)).hex())
        span = layout.at(place)
        if span is None:
            return self._nameless(index, place, owner, loose=loose)
        if section.is_code:
            return _Reading(f"{span.name}{place - span.start:+}", frozenset((span.name,)))
        return self._variable(index, span, place, loose=loose)

    def _variable(self, index: int, span: SymbolSpan, place: int, *, loose: bool) -> _Reading:
        """Read a reference to a place in a variable, made by its section."""
        layout, offset = self._layouts[index], place - span.start
        whole = frozenset((WHOLE + layout.section.name,))
        if self._file.machine == elf.AARCH64:  # what is meant stands in the instructions, as a distance from what the relocation names
            return _Reading(f"{place} {_digest(*(f'{variable.start} {variable.name}' for variable in layout.spans)).hex()}", whole)
        around = whole if loose or offset else frozenset[str]()
        if _ANY in span.name:
            content = self._stretch(index, span.start, span.end, span.name)
            return _Reading(f"{span.name}{offset:+} {content.says}", content.references | around)
        return _Reading(f"{span.name}{offset:+}", around | {span.name})

    def _nameless(self, index: int, place: int, owner: str, *, loose: bool) -> _Reading:
        """Read what lies at a place that no symbol names: a jump table of `owner`, or all up to what certainly is something else."""
        layout = self._layouts[index]
        if not 0 <= place <= layout.section.size:
            return _Reading(f"{layout.section.name} {place:+}", frozenset((WHOLE + layout.section.name,)))
        limit = layout.following(place)
        if layout.section.is_code:
            return self._stretch(index, place, limit, owner)
        end = self._jump_table_end(index, place, limit, owner)
        if end is None and (loose or self._file.machine == elf.AARCH64):
            end = layout.section.size
        elif end is None:
            tables = (relocation.offset for relocation in layout.relocations(place, limit) if self._leads_inside(relocation, place))
            end = next((offset for offset in tables if offset > place), limit)
        stretch = self._stretch(index, place, end, owner)
        return _Reading(f"nameless {stretch.says}", stretch.references)

    def _jump_table_end(self, index: int, place: int, limit: int, owner: str) -> int | None:
        """Return where the jump table of `owner` ends that starts at a place; None where none does."""
        pointed = self._pointed.get(index, [])
        after = bisect_right(pointed, place)
        words = self._layouts[index].relocations(place, min(limit, pointed[after]) if after < len(pointed) else limit)
        first = self._aim_in_code(words[0], place) if words and words[0].offset == place else None
        if first is None or family(first.name) != family(owner):
            return None
        end = place
        for relocation in words:
            # That of a case which cannot be may lead behind the function.
            if relocation.offset != end or not self._is_into_code(relocation):
                break
            end += _SHORT if relocation.kind in _SHORT_WORDS else _LONG
        return end

    def _leads_inside(self, relocation: Relocation, origin: int) -> bool:
        """Return whether a word of data leads into the middle of a function: it is part of some jump table."""
        if relocation.kind in _RELATIVE[self._file.machine]:
            return self._is_into_code(relocation)
        span = self._aim_in_code(relocation, origin)
        return span is not None and span.start != self._file.symbols[relocation.symbol].value + relocation.addend

    def _is_into_code(self, relocation: Relocation) -> bool:
        layout = self._layouts.get(self._file.symbols[relocation.symbol].section)
        return layout is not None and layout.section.is_code

    def _aim_in_code(self, relocation: Relocation, origin: int) -> SymbolSpan | None:
        """Return the function that a word of data leads into."""
        if not self._is_into_code(relocation):
            return None
        symbol = self._file.symbols[relocation.symbol]
        distance = relocation.offset - origin if relocation.kind in _RELATIVE[self._file.machine] else 0
        return self._layouts[symbol.section].at(symbol.value + relocation.addend - distance)


def _constant(section: ElfSection, place: int) -> bytes:
    """Return the string or constant at a place of a section of such."""
    if not section.flags & elf.STRINGS:
        start = place - place % section.entry
        return section.content[start : start + section.entry] + bytes([place % section.entry % 256])
    if section.entry == 1:
        end = section.content.find(b"\0", place)
        return section.content[place : end if end >= 0 else section.size]
    end = place
    while any(section.content[end : end + section.entry]):
        end += section.entry
    return section.content[place:end]


def _atom(name: str, section: ElfSection, readings: Sequence[_Reading]) -> Atom:
    flags = section.flags & (elf.WRITE | elf.EXECUTE | elf.THREAD)
    references = frozenset().union(*(reading.references for reading in readings))
    return Atom(name, section.is_code, _digest(str(flags), *(reading.says for reading in readings)), references - {name})


def _joined(atoms: Sequence[Atom]) -> Atom:
    if len(atoms) == 1:
        return atoms[0]
    digest = _digest(*sorted(atom.digest for atom in atoms))
    return Atom(atoms[0].name, any(atom.is_code for atom in atoms), digest, frozenset().union(*(atom.references for atom in atoms)))


def _digest(*parts: str | bytes) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        data = part.encode("utf-8", "surrogateescape") if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.digest()
