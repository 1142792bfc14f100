"""Values as JSON knows them, for what is kept on disk: dataclasses are lists of their fields, or objects with these, sets are sorted."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")


def text(value: Any) -> str:
    """Return a value as one line of JSON."""
    return json.dumps(_plain(value), separators=(",", ":"))


def restored(kind: type[T], line: str) -> T:
    """Return the value of a type that a line holds; raise ValueError, TypeError or KeyError where it is damaged."""
    value: T = _reader(cast(Any, kind))(json.loads(line))
    return value


def parsed(kind: type[T], line: str | None) -> T | None:
    """Return the value of a type that a line holds, None where there is no line, or it is damaged."""
    try:
        return None if line is None else restored(kind, line)
    except (ValueError, TypeError, KeyError):
        return None


def _plain(value: Any) -> Any:
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    if isinstance(value, Mapping):
        return [[key, _plain(part)] for key, part in value.items()]
    if is_dataclass(value):
        return [_plain(getattr(value, field.name)) for field in fields(value)]
    return str(value) if isinstance(value, Path) else value


def _as_it_is(value: Any) -> Any:
    return value


@functools.cache
def _reader(kind: Any) -> Callable[[Any], Any]:
    """Return what makes a value of a type from what JSON has of it."""
    origin, parts = get_origin(kind), get_args(kind)
    if is_dataclass(kind):
        return _dataclass_reader(kind)
    if origin in (tuple, frozenset, Mapping):
        return _collection_reader(origin, parts)
    if origin is UnionType and NoneType in parts:
        [inner] = [_reader(part) for part in parts if part is not NoneType]
        return lambda value: None if value is None else inner(value)
    return kind if isinstance(kind, type) and issubclass(kind, (Enum, Path)) else _as_it_is


def _collection_reader(origin: Any, parts: tuple[Any, ...]) -> Callable[[Any], Any]:
    if origin is Mapping:
        key, inner = map(_reader, parts)
        return lambda pairs: {key(name): inner(value) for name, value in pairs}
    if origin is frozenset or parts[-1] is ...:
        inner = _reader(parts[0])
        return origin if inner is _as_it_is else lambda values: origin(map(inner, values))
    readers = tuple(map(_reader, parts))
    return lambda values: tuple(read(value) for read, value in zip(readers, values, strict=True))


def _dataclass_reader(kind: Any) -> Callable[[Any], Any]:
    types = get_type_hints(kind)
    readers = {field.name: _reader(types[field.name]) for field in fields(kind)}

    def read(told: Any) -> Any:
        values = [told[name] for name in readers] if isinstance(told, dict) else told
        return kind(*(read(value) for read, value in zip(readers.values(), values, strict=True)))

    return read
