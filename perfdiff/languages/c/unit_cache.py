"""Facts of translation units on disk, so that a unit which is the same in base and head, or was met before, is parsed once.

An entry is two lines of JSON: the files that the unit was made of, then what it says. It is valid while every one of these files has the
same content, no other file of the tree has taken or lost one of their names (which could change what an `#include` finds), and headers that
were missing are missing still. The key
covers the rest: command, compiler's folders and target, depth, and the code that makes the facts. Functions and declarations of headers
are those of many units: what all units of one run say is written once, in a pack named by its content, and entries have their places there.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from perfdiff.languages.c import front
from perfdiff.languages.c.declarations import Dependency
from perfdiff.languages.c.unit import UnitFacts
from perfdiff.languages.digest import digest
from perfdiff.languages.kept import shape
from perfdiff.languages.protocol import FunctionDefinition
from perfdiff.records import entry

_VARIANTS = 8  # contents of one unit that are kept: a few revisions under comparison
_PACKS_OPEN = 4  # packs in memory: base's, head's, and those of the last comparisons with either

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _UnitEntry:
    """The facts of a unit; functions and dependencies are numbers in the pack."""

    pack: str
    file: str
    functions: tuple[int, ...]
    dependencies: tuple[int, ...]
    overrides: Mapping[str, tuple[str, ...]]
    problem: str | None


@dataclass(frozen=True, slots=True)
class _PackText:
    """A pack as it is read, each value still a text."""

    functions: list[msgspec.Raw]
    dependencies: list[msgspec.Raw]


class _PackValues(Generic[T]):
    """The values of one kind in a pack, each read when it is first asked for, and once for all units."""

    def __init__(self, kind: type[T], texts: Sequence[msgspec.Raw]) -> None:
        self._decoder, self._texts = msgspec.json.Decoder(kind), texts
        self._values: dict[int, T] = {}

    def at(self, numbers: Iterable[int]) -> Iterator[T]:
        """Yield values by their numbers; raise IndexError or DecodeError where the pack is damaged."""
        for number in numbers:
            if number not in self._values:
                self._values[number] = self._decoder.decode(self._texts[number])
            yield self._values[number]


class _PackWriter:
    """The texts of a pack that is being made, each once."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self._by_identity: dict[int, tuple[object, int]] = {}  # with the value, so that no other takes its identity

    def number(self, value: object) -> int:
        """Return the number of a value in the pack."""
        if id(value) not in self._by_identity:
            text = msgspec.json.encode(value)
            self._by_identity[id(value)] = value, self._numbers.setdefault(text, len(self._numbers))
        return self._by_identity[id(value)][1]

    def all(self) -> list[msgspec.Raw]:
        """Return the texts by number."""
        return [msgspec.Raw(text) for text in self._numbers]


class UnitCache:
    """Entries `<folder>/<key>/<content>.json`, packs `<folder>/<two digits>/<content>.json`.

    What cannot be read or written counts as absent.
    """

    def __init__(self, folder: Path, tree: Path, depth: int) -> None:
        self._folder, self._tree, self._depth = folder, tree.resolve(), depth
        self._digests: dict[str, str | None] = {}
        self._names = _files_by_name(self._tree)

    def load(self, unit: front.Unit) -> UnitFacts | None:
        """Return the facts of a unit, or None where it has to be parsed."""
        for path in sorted(self._entries(unit).glob("*.json")):
            with (
                contextlib.suppress(OSError, ValueError, KeyError, TypeError, IndexError, RecursionError, msgspec.DecodeError),
                path.open(encoding="utf-8") as lines,
            ):
                header = json.loads(lines.readline())
                if self._is_valid(header, unit):
                    stored = msgspec.json.decode(lines.readline(), type=_UnitEntry)
                    functions, dependencies = _pack(self._pack_path(stored.pack))
                    facts = UnitFacts(
                        stored.file,
                        tuple(functions.at(stored.functions)),
                        tuple(dependencies.at(stored.dependencies)),
                        stored.overrides,
                        tuple(header["files"]),
                        stored.problem,
                        tuple(header["missing"]),
                    )
                    os.utime(path)
                    return facts
        return None

    def store(self, all_facts: Mapping[front.Unit, UnitFacts]) -> None:
        """Keep the facts of units; the oldest of too many variants of one goes."""
        functions, dependencies = _PackWriter(), _PackWriter()
        numbers = {
            unit: (tuple(map(functions.number, facts.functions)), tuple(map(dependencies.number, facts.dependencies)))
            for unit, facts in all_facts.items()
        }
        text = msgspec.json.encode(_PackText(functions.all(), dependencies.all()))
        name = hashlib.blake2b(text, digest_size=16).hexdigest()
        with contextlib.suppress(OSError, UnicodeError):  # a file's name that is no UTF-8
            if all_facts:
                entry.write(self._pack_path(name), text.decode())
            for unit, facts in all_facts.items():
                self._store(unit, facts, _UnitEntry(name, facts.file, *numbers[unit], facts.overrides, facts.problem))

    def _store(self, unit: front.Unit, facts: UnitFacts, stored: _UnitEntry) -> None:
        made_of = {file: self._digest(file) for file in facts.files}
        names = self._places_of_names((*facts.files, *facts.missing))
        header = json.dumps({"files": made_of, "missing": facts.missing, "names": names})
        folder = self._entries(unit)
        entry.write(folder / f"{digest([header])}.json", f"{header}\n{msgspec.json.encode(stored).decode()}\n")
        for old in sorted(folder.glob("*.json"), key=lambda path: -path.stat().st_mtime)[_VARIANTS:]:
            old.unlink(missing_ok=True)

    def _pack_path(self, name: str) -> Path:
        return self._folder / name[:2] / f"{name[2:]}.json"

    def _entries(self, unit: front.Unit) -> Path:
        file = str(unit.file.resolve().relative_to(self._tree))
        words = (word.replace(str(self._tree), ".") for word in (str(unit.directory.resolve()), *unit.arguments))
        return self._folder / digest([_code(), str(self._depth), file, *words])

    def _is_valid(self, header: Mapping[str, Any], unit: front.Unit) -> bool:
        files: Mapping[str, str] = header["files"]
        missing: Sequence[str] = header["missing"]
        return (
            all(self._digest(file) == content for file, content in files.items())
            and header["names"] == self._places_of_names((*files, *missing))
            and not any((folder / name).is_file() for name in missing for folder in front.folders(unit))
        )

    def _places_of_names(self, files: Iterable[str]) -> dict[str, list[str]]:
        return {name: self._names.get(name, []) for name in sorted({Path(file).name for file in files})}

    def _digest(self, file: str) -> str | None:
        if file not in self._digests:
            try:
                self._digests[file] = hashlib.blake2b((self._tree / file).read_bytes(), digest_size=16).hexdigest()
            except OSError:
                self._digests[file] = None
        return self._digests[file]


@functools.lru_cache(_PACKS_OPEN)
def _pack(path: Path) -> tuple[_PackValues[FunctionDefinition], _PackValues[Dependency]]:
    """Return what a pack holds; its name is its content's digest, so that it never changes."""
    text = msgspec.json.decode(path.read_bytes(), type=_PackText)
    os.utime(path)
    return _PackValues(FunctionDefinition, text.functions), _PackValues(Dependency, text.dependencies)


def _files_by_name(tree: Path) -> dict[str, list[str]]:
    paths: dict[str, list[str]] = defaultdict(list)
    for folder, folders, names in os.walk(tree):
        folders[:] = sorted(name for name in folders if name != ".git")
        for name in sorted(names):
            paths[name].append(os.path.relpath(os.path.join(folder, name), tree))  # noqa: PTH118 - tens of thousands of files
    return paths


@functools.cache
def _code() -> str:
    """Return a digest of what facts consist of, and of the modules that make them: an entry of another version is never used."""
    modules = sorted(Path(__file__).parent.glob("*.py"))
    return digest((shape(UnitFacts), *(path.read_text(encoding="utf-8") for path in modules)))
