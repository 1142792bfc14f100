"""Facts of files on disk, so that a file which is the same in base and head, or was met before, is parsed once.

An entry is one line of JSON, `<folder>/<key>/<content>.json`. The key covers all that the facts are made of besides the content: the
file's path, the name under which it is imported, the depth of its features, the interpreter whose parser reads it, and the code that
makes the facts.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import platform
from hashlib import blake2b
from pathlib import Path
from typing import Any

from perfdiff.languages.digest import digest
from perfdiff.languages.python.facts import ClassFacts, FunctionFacts, Imported, ModuleFacts, References, VariableFacts
from perfdiff.languages.python.module import module_facts
from perfdiff.languages.python.sources import SourceFile
from perfdiff.languages.stored import function, plain
from perfdiff.records import entry

_VARIANTS = 8  # contents of one file that are kept: a few revisions under comparison


class ModuleCache:
    """Facts by what they are made of. Anything that cannot be read or written counts as absent."""

    def __init__(self, folder: Path, depth: int) -> None:
        self._folder, self._depth = folder, depth

    def facts(self, source: SourceFile) -> ModuleFacts:
        """Return the facts of a file, parsing it where they are not kept yet."""
        folder = self._folder / self._key(source)
        path = folder / f"{blake2b(source.data, digest_size=16).hexdigest()}.json"
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            facts = _facts(json.loads(path.read_text(encoding="utf-8")))
            os.utime(path)
            return facts
        facts = module_facts(source, self._depth)
        with contextlib.suppress(OSError):
            entry.write(path, json.dumps(plain(facts), separators=(",", ":")))
            for old in sorted(folder.glob("*.json"), key=lambda path: -path.stat().st_mtime)[_VARIANTS:]:
                old.unlink(missing_ok=True)
        return facts

    def _key(self, source: SourceFile) -> str:
        return digest([platform.python_version(), _code(), str(self._depth), source.file, source.module, str(source.is_package)])


@functools.cache
def _code() -> str:
    """Return a digest of the modules that make the facts: an entry of another version of them is never used."""
    return digest(path.read_text(encoding="utf-8") for path in sorted(Path(__file__).parent.glob("*.py")))


def _facts(values: list[Any]) -> ModuleFacts:
    file, module, is_package, functions, classes, variables, imports, problem = values
    return ModuleFacts(
        file,
        module,
        is_package,
        tuple(map(_function, functions)),
        tuple(map(_class, classes)),
        tuple(map(_variable, variables)),
        tuple(map(_imported, imports)),
        problem,
    )


def _function(values: list[Any]) -> FunctionFacts:
    definition, owner, decorators, references = values
    return FunctionFacts(function(definition), owner, tuple(decorators), _references(references))


def _class(values: list[Any]) -> ClassFacts:
    qualname, line, bases, fingerprint, summary, references = values
    return ClassFacts(qualname, line, tuple(bases), fingerprint, summary, _references(references))


def _variable(values: list[Any]) -> VariableFacts:
    name, owner, line, fingerprint, summary, references = values
    return VariableFacts(name, owner, line, fingerprint, summary, _references(references))


def _imported(values: list[Any]) -> Imported:
    return Imported(*values)


def _references(values: list[Any]) -> References:
    free, own, inherited, loose, imports, *others = values
    sets = (frozenset(one) for one in others)
    return References(frozenset(free), frozenset(own), frozenset(inherited), frozenset(loose), tuple(map(_imported, imports)), *sets)
