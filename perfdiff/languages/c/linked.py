"""The programs and shared objects of two built trees, side by side."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from filecmp import cmp
from pathlib import Path

from perfdiff.languages.c import elf, loaded
from perfdiff.languages.c.built_files import BuiltFiles

_DEFINED = frozenset((elf.DATA, elf.FUNCTION, elf.TLS, elf.INDIRECT))
_NUMBER = re.compile(r"\.\d+(?=\.|$)")
_MOST_BYTES = 1 << 30  # of one program


@dataclass(frozen=True, slots=True)
class LinkedPrograms:
    """How the linked files of two trees compare: `same_bytes` where all that is loaded is the same, else `differs` says of what they lack.

    `differs` leaves code and data aside, which objects tell: it names files of one side alone, other libraries, other sets of symbols.
    """

    same_bytes: bool
    differs: tuple[str, ...]


def compare(base: Path, head: Path, files: tuple[BuiltFiles, BuiltFiles], renames: Mapping[str, str]) -> LinkedPrograms:
    """Compare the linked files of two trees; base's symbols are called by their name in `renames` where they have one there."""
    before, after = frozenset(files[0].programs), frozenset(files[1].programs)
    differs = [f"{name}: only in base" for name in sorted(before - after)] + [f"{name}: only in head" for name in sorted(after - before)]
    unlike = [
        name
        for name in sorted(before & after)
        if not (cmp(base / name, head / name, shallow=False) or loaded.are_alike(base / name, head / name, (base, head)))
    ]
    for name in unlike:
        differs += [f"{name}: {says}" for says in _link_differences(base / name, head / name, renames)]
    return LinkedPrograms(bool(before) and before == after and not unlike, tuple(differs))


def _link_differences(base: Path, head: Path, renames: Mapping[str, str]) -> Iterator[str]:
    try:
        first, second = _read(base), _read(head)
    except elf.DamagedElfError as error:
        yield str(error)
        return
    if first.needed != second.needed:
        yield "linked with other libraries"
    before, after = _symbols(first, renames), _symbols(second, {})
    yield from sorted({f"symbol {name or '(nameless)'}" for name, _, _ in (before - after) + (after - before)})


def _read(path: Path) -> elf.Elf:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise elf.DamagedElfError("too large to be compared")
        return elf.read(path.read_bytes())
    except OSError as error:
        raise elf.DamagedElfError(f"cannot be read ({error})") from error


def _symbols(file: elf.Elf, renames: Mapping[str, str]) -> Counter[tuple[str, int, int]]:
    """Return the names, kinds and sizes of what a linked file defines; variables of functions without their numbers."""
    symbols: Counter[tuple[str, int, int]] = Counter()
    for symbol in file.symbols:
        if symbol.kind in _DEFINED and symbol.section != elf.UNDEFINED:
            head, dot, tail = symbol.name.partition(".")
            symbols[_NUMBER.sub("", renames.get(head, head) + dot + tail), symbol.kind, symbol.size] += 1
    return symbols
