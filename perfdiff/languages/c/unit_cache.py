"""Facts of translation units on disk, so that a unit which is the same in base and head, or was met before, is parsed once.

An entry is two lines of JSON: the files that the unit was made of, then its facts. It is valid while every one of these files has the
same content and no other file of the tree has taken or lost one of their names (which could change what an `#include` finds). The key
covers the rest: command, compiler's folders and target, depth, and the code that makes the facts.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from perfdiff.languages.c import front
from perfdiff.languages.c.unit import UnitFacts
from perfdiff.languages.digest import digest
from perfdiff.languages.kept import shape
from perfdiff.records import entry

_VARIANTS = 8  # contents of one unit that are kept: a few revisions under comparison


class UnitCache:
    """Entries `<folder>/<key>/<content>.json`. Anything that cannot be read or written counts as absent."""

    def __init__(self, folder: Path, tree: Path, depth: int) -> None:
        self._folder, self._tree, self._depth = folder, tree.resolve(), depth
        self._digests: dict[str, str | None] = {}
        self._names = _files_by_name(self._tree)

    def load(self, unit: front.Unit) -> UnitFacts | None:
        """Return the facts of a unit, or None where it has to be parsed."""
        for path in sorted(self._entries(unit).glob("*.json")):
            with (
                contextlib.suppress(OSError, ValueError, KeyError, TypeError, RecursionError, msgspec.DecodeError),
                path.open(encoding="utf-8") as lines,
            ):
                if self._is_valid(json.loads(lines.readline())):
                    facts = msgspec.json.decode(lines.readline(), type=UnitFacts)
                    os.utime(path)
                    return facts
        return None

    def store(self, unit: front.Unit, facts: UnitFacts) -> None:
        """Keep the facts of a unit; the oldest of too many variants goes."""
        made_of = {file: self._digest(file) for file in facts.files}
        header = {"files": made_of, "names": self._places_of_names(facts.files)}
        folder = self._entries(unit)
        with contextlib.suppress(OSError, UnicodeEncodeError):  # a file's name that is no UTF-8
            text = f"{json.dumps(header)}\n{msgspec.json.encode(facts).decode()}\n"
            entry.write(folder / f"{digest([json.dumps(header)])}.json", text)
            for old in sorted(folder.glob("*.json"), key=lambda path: -path.stat().st_mtime)[_VARIANTS:]:
                old.unlink(missing_ok=True)

    def _entries(self, unit: front.Unit) -> Path:
        file = str(unit.file.resolve().relative_to(self._tree))
        words = (word.replace(str(self._tree), ".") for word in (str(unit.directory.resolve()), *unit.arguments))
        return self._folder / digest([_code(), str(self._depth), file, *words])

    def _is_valid(self, header: Mapping[str, Any]) -> bool:
        files: Mapping[str, str] = header["files"]
        return all(self._digest(file) == known for file, known in files.items()) and header["names"] == self._places_of_names(files)

    def _places_of_names(self, files: Iterable[str]) -> dict[str, list[str]]:
        return {name: self._names.get(name, []) for name in sorted({Path(file).name for file in files})}

    def _digest(self, file: str) -> str | None:
        if file not in self._digests:
            try:
                self._digests[file] = hashlib.blake2b((self._tree / file).read_bytes(), digest_size=16).hexdigest()
            except OSError:
                self._digests[file] = None
        return self._digests[file]


def _files_by_name(tree: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for folder, folders, names in os.walk(tree):
        folders[:] = sorted(name for name in folders if name != ".git")
        for name in sorted(names):
            found[name].append(os.path.relpath(os.path.join(folder, name), tree))  # noqa: PTH118 - tens of thousands of files
    return found


@functools.cache
def _code() -> str:
    """Return a digest of what facts consist of, and of the modules that make them: an entry of another version is never used."""
    modules = sorted(Path(__file__).parent.glob("*.py"))
    return digest((shape(UnitFacts), *(path.read_text(encoding="utf-8") for path in modules)))
