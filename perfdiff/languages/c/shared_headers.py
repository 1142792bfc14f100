"""Headers of C++'s standard library that many translation units include, parsed once for all of these.

Most of what libclang parses of a unit of C++ is the standard library's. Here a unit gets precompiled those headers of it that it includes
itself, in its own files, and no others: it sees no name that it would not see. Which they are is guessed from the text, and compared after
the parse with what was included. A standard header means the same wherever it stands, unless a file of the unit defines a macro by a name
that occurs in its code, or asks for one of its macros before it includes any. Where any of this does not hold, or the parse tells an error,
the unit is parsed as it stands.
"""

from __future__ import annotations

import functools
import os
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clang import cindex
from clang.cindex import CursorKind

from perfdiff.languages.c import front, lexer
from perfdiff.languages.c.cursors import Cursor, TreeFiles, bound, children, is_null, native, spelling

_LEAST = 4  # units that must share headers: to precompile these takes as long as to parse two units
_TOO_MANY_HEADERS = 2  # units that must have included fewer: a single one may be what is unlike the others
_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>)', re.MULTILINE)
_STANDARD = re.compile(r"[a-z_]+")  # headers of C, which end in .h, ask for macros that programs set
_WORD = re.compile(rb"[A-Za-z_]\w*")
_INCLUSION = CursorKind.INCLUSION_DIRECTIVE.value
_MACRO = CursorKind.MACRO_DEFINITION.value
_EXPANSION = CursorKind.MACRO_INSTANTIATION.value
_FOLDERS = ("-I", "-iquote")

_Key = tuple[tuple[str, ...], frozenset[str]]  # a unit's arguments, and the headers that it gets precompiled


@dataclass(frozen=True, slots=True)
class _Precompiled:
    """Standard headers in a file that libclang loads; `words` are all that their code consists of."""

    headers: frozenset[str]
    file: Path
    words: frozenset[bytes]


class SharedHeaders:
    """Parses the units of a batch; `folder` takes the precompiled headers, none of them a file of the tree."""

    def __init__(self, units: Sequence[front.Unit], files: TreeFiles, folder: Path) -> None:
        self._files, self._folder = files, folder
        self._shares: dict[front.Unit, frozenset[str] | None] = {}
        self._precompiled: dict[_Key, _Precompiled | None] = {}
        self._in_vain = Counter[_Key]()
        self._included: dict[_Key, frozenset[str]] = {}  # by all units that were not parsed so
        alike: dict[tuple[str, ...], dict[front.Unit, frozenset[str]]] = defaultdict(dict)
        include = _Includes()
        for unit in units:
            if "c++" in unit.arguments:
                alike[unit.arguments][unit] = include.standard(unit)
        for sets in alike.values():
            self._shares |= _shares(sets)

    def parse(self, unit: front.Unit) -> Any:
        """Return the parsed `clang.cindex.TranslationUnit`, as `front.parse` does."""
        while (headers := self._shares.get(unit)) is not None:
            key = (unit.arguments, headers)
            if key not in self._precompiled:
                self._precompiled[key] = self._precompile(unit, headers)
            precompiled = self._precompiled[key]
            parsed, included = (None, headers) if precompiled is None else _parse_with(precompiled, unit)
            if parsed is not None:
                return parsed
            self._take_note(key, included)
            if self._shares.get(unit) == headers:
                break
        return front.parse(unit)

    def _take_note(self, key: _Key, included: frozenset[str]) -> None:
        """Take note that a unit was not parsed with headers, of which it includes some: the second time others get only those.

        The text of units names headers that stand in conditions, such as those of a test framework's own implementation.
        """
        arguments, headers = key
        self._in_vain[key] += 1
        self._included[key] = self._included.get(key, headers) & included
        if self._in_vain[key] >= _TOO_MANY_HEADERS and self._included[key] < headers:
            fewer = self._included[key] or None
            self._shares |= {unit: fewer for unit, share in self._shares.items() if unit.arguments == arguments and share == headers}
        elif self._in_vain[key] == _LEAST:
            self._precompiled[key] = None

    def _precompile(self, unit: front.Unit, headers: frozenset[str]) -> _Precompiled | None:
        self._folder.mkdir(exist_ok=True)
        source = self._folder / f"{len(self._precompiled)}.hpp"
        source.write_text("".join(f"#include <{header}>\n" for header in sorted(headers)), encoding="utf-8")
        file = source.with_suffix(".pch")
        try:
            parsed = front.parse_headers(source, unit)
            included = [inclusion.include.name for inclusion in parsed.get_includes()]
            if _has_errors(parsed) or any(self._files.relative(name, unit.directory) is not None for name in included):
                return None
            parsed.save(str(file))
        except (cindex.TranslationUnitLoadError, cindex.TranslationUnitSaveError):
            return None
        words = (_words(os.path.realpath(unit.directory / name)) for name in included)
        return _Precompiled(headers, file, frozenset[bytes]().union(*words))


def _shares(sets: dict[front.Unit, frozenset[str]]) -> dict[front.Unit, frozenset[str]]:
    """Return the headers that each unit gets precompiled, of the standard headers that each includes.

    Sets of headers are tried in the order of how many units include each; the one that saves most to parse is taken, then again one for
    the units that include less.
    """
    shares: dict[front.Unit, frozenset[str]] = {}
    rest = dict(sets)
    while len(rest) >= _LEAST:
        counts = Counter(header for headers in rest.values() for header in headers)
        frequent = sorted(counts, key=lambda header: (-counts[header], header))
        prefixes = [frozenset(frequent[: length + 1]) for length in range(len(frequent))]
        saved = {prefix: len(prefix) * sum(prefix <= headers for headers in rest.values()) for prefix in prefixes}
        best = max(prefixes, key=lambda prefix: saved[prefix], default=frozenset[str]())
        taken = [unit for unit, headers in rest.items() if best <= headers]
        if not best or len(taken) < _LEAST:
            break
        shares |= dict.fromkeys(taken, best)
        rest = {unit: headers for unit, headers in rest.items() if unit not in shares}
    return shares


def _parse_with(precompiled: _Precompiled, unit: front.Unit) -> tuple[Any | None, frozenset[str]]:
    """Return a parsed unit, or None where it may not be the same as without the precompiled headers, and which of these it includes."""
    try:
        parsed = front.parse_with(precompiled.file, unit)
    except cindex.TranslationUnitLoadError:
        return None, precompiled.headers
    nodes = children(parsed.cursor)
    included = precompiled.headers.intersection(spelling(node) for node in nodes if node._kind_id == _INCLUSION)
    defined = (bound(node, parsed) for node in nodes if node._kind_id == _MACRO and spelling(node).encode() in precompiled.words)
    is_the_same = (
        included == precompiled.headers
        and not _has_errors(parsed)
        and not any(node.location.file is not None and not node.location.is_in_system_header for node in defined)
        and not _asks_ahead(nodes, precompiled.headers, parsed)
    )
    return parsed if is_the_same else None, included


def _asks_ahead(nodes: Sequence[Cursor], headers: frozenset[str], parsed: Any) -> bool:
    """Return whether a unit names a macro of standard headers ahead of the first that it includes, where it is none as yet."""
    for node in nodes:
        if node._kind_id == _INCLUSION and spelling(node) in headers:
            return False
        if node._kind_id != _EXPANSION or is_null(definition := native.clang_getCursorReferenced(node)):
            continue
        if bound(definition, parsed).location.is_in_system_header and not bound(node, parsed).location.is_in_system_header:
            return True
    return False


def _has_errors(parsed: Any) -> bool:
    return any(problem.severity >= cindex.Diagnostic.Error for problem in parsed.diagnostics)


@functools.cache
def _words(file: str) -> frozenset[bytes]:
    return frozenset(_WORD.findall(lexer.uncommented(Path(file).read_bytes())))


class _Includes:
    """What files include by their text, whatever the conditions around it."""

    def __init__(self) -> None:
        self._named: dict[str, tuple[tuple[str, str], ...]] = {}

    def standard(self, unit: front.Unit) -> frozenset[str]:
        """Return the standard headers that a unit and the files it finds in the program's folders name."""
        roots = [str(folder) for folder in front.folders(unit, _FOLDERS)]
        standard, seen, waiting = set[str](), set[str](), [os.path.realpath(unit.file)]
        while waiting:
            file = waiting.pop()
            if file in seen:
                continue
            seen.add(file)
            for quoted, angled in self._includes(file):
                near = [os.path.dirname(file)] if quoted else []  # noqa: PTH120
                places = (os.path.join(folder, quoted or angled) for folder in (*near, *roots))  # noqa: PTH118 - a look at each for each include
                place = next(filter(self._is_file, places), None)
                if place is not None:
                    waiting.append(os.path.realpath(place))
                elif _STANDARD.fullmatch(angled):
                    standard.add(angled)
        return frozenset(standard)

    @functools.cache  # noqa: B019 - lives as long as a batch
    def _is_file(self, path: str) -> bool:
        return os.path.isfile(path)  # noqa: PTH113

    def _includes(self, file: str) -> tuple[tuple[str, str], ...]:
        if file not in self._named:
            names = _INCLUDE.findall(Path(file).read_bytes())
            self._named[file] = tuple((os.fsdecode(quoted), os.fsdecode(angled)) for quoted, angled in names)
        return self._named[file]
