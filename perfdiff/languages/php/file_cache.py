"""Facts of files, kept by content, so that a file which is the same in base and head, or was met before, is parsed once."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from perfdiff.languages.kept import TextCache
from perfdiff.languages.php.facts import ClassFacts, DeclaredKind, FileFacts, FunctionFacts, ImportFacts, References, ValueFacts
from perfdiff.languages.php.functions import file_facts
from perfdiff.languages.php.sources import SourceFile
from perfdiff.languages.stored import function, plain
from perfdiff.records.differences import Entity, EntityKind

T = TypeVar("T")


class FileCache:
    """Facts by what they are made of. Anything that cannot be read or written counts as absent."""

    def __init__(self, folder: Path | None, depth: int) -> None:
        self._kept, self._depth = TextCache(folder, Path(__file__).parent.glob("*.py")), depth

    def facts(self, source: SourceFile) -> FileFacts:
        """Return the facts of a file, parsing it where they are not kept yet."""
        content = f"{self._depth}\0{source.file}\0".encode(errors="surrogateescape") + source.data
        found = _told(self._kept.text(content))
        if found is None:
            found = file_facts(source, self._depth)
            self._kept.keep(content, json.dumps(plain(found), separators=(",", ":")))
        return found


def _told(text: str | None) -> FileFacts | None:
    if text is None:
        return None
    try:
        file, functions, classes, values, imports, strict, problem = json.loads(text)
        return FileFacts(
            file,
            _all(_function, functions),
            _all(_class, classes),
            _all(_value, values),
            _all(_import, imports),
            strict,
            problem,
        )
    except (ValueError, TypeError, KeyError):
        return None


def _all(make: Callable[[Any], T], values: list[Any]) -> tuple[T, ...]:
    return tuple(map(make, values))


def _import(values: list[Any]) -> ImportFacts:
    key, (kind, word, name), target, line = values
    return ImportFacts(key, Entity(EntityKind(kind), word, name), target, line)


def _function(values: list[Any]) -> FunctionFacts:
    definition, owner, name, returns, references = values
    return FunctionFacts(function(definition), owner, name, returns, _references(references))


def _class(values: list[Any]) -> ClassFacts:
    name, kind, line, parents, traits, aliases, fingerprint, summary = values
    return ClassFacts(name, kind, line, tuple(parents), tuple(traits), tuple(aliases), fingerprint, summary)


def _value(values: list[Any]) -> ValueFacts:
    kind, owner, name, line, fingerprint, summary, type_, references = values
    return ValueFacts(DeclaredKind(kind), owner, name, line, fingerprint, summary, type_, _references(references))


def _references(values: list[Any]) -> References:
    named = dict(zip((field.name for field in fields(References)), values, strict=True))
    return References(**{name: _set(value) for name, value in named.items()})


def _set(value: list[Any]) -> frozenset[Any]:
    return frozenset(tuple(one) if isinstance(one, list) else one for one in value)
