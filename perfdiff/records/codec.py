"""Frozen values to JSON and back, by their type annotations. Nothing is executed and no type is taken from the data."""

from __future__ import annotations

import functools
import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from perfdiff.errors import RecordingError
from perfdiff.records.earlier import CONVERTED

T = TypeVar("T")

_SHOWN = 200  # characters of what is wrong, which may hold a value as long as the file


def encode(value: Any) -> Any:
    """Return `value` (dataclasses, enums, mappings, tuples, frozensets, numbers, text, None) as JSON-able data."""
    if is_dataclass(value) and not isinstance(value, type):
        return {item.name: encode(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, frozenset):
        return [encode(item) for item in sorted(value)]
    if isinstance(value, tuple | list):
        return [encode(item) for item in value]
    return value


def decode(kind: type[T], data: Any, **given: Any) -> T:
    """Return the value of type `kind` that `encode` turned into `data`; raise RecordingError where it does not fit.

    `given` are fields of a dataclass that are stored elsewhere and taken as they are.
    """
    try:
        return _decode_fields(kind, data, given) if given else _decode(kind, data)  # type: ignore[no-any-return]
    except (KeyError, TypeError, ValueError, OverflowError, StopIteration) as error:
        raise RecordingError(f"the stored {kind.__name__} is damaged: {str(error)[:_SHOWN]}", slug="damaged-recording") from error


def _decode(kind: Any, data: Any) -> Any:  # noqa: PLR0911 - one return a kind of type
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return _decode_union(arguments, data)
    if origin is tuple:
        items = _expect(list, data)
        if arguments[0] is str and all(type(item) is str for item in items):  # as the lines of whole files are
            return tuple(items)
        return tuple(_decode(arguments[0], item) for item in items)
    if origin is frozenset:
        return frozenset(_decode(arguments[0], item) for item in _expect(list, data))
    if origin is not None and issubclass(origin, Mapping):
        return {_decode(arguments[0], key): _decode(arguments[1], item) for key, item in _expect(dict, data).items()}
    if is_dataclass(kind):
        convert = CONVERTED.get(kind)
        return _decode_fields(kind, convert(data) if convert else data, {})
    if issubclass(kind, Enum):
        return kind(data)
    if kind is float:
        return float(_expect(int | float, data))
    if kind is int and isinstance(data, str):  # a mapping's key
        return int(data)
    return _expect(kind, data)


def _decode_fields(kind: Any, data: Any, given: Mapping[str, Any]) -> Any:
    hints = _types_of_fields(kind)
    stored = {name: value for name, value in _expect(dict, data).items() if name in hints and name not in given}
    return kind(**{name: _decode(hints[name], value) for name, value in stored.items()}, **given)


@functools.cache
def _types_of_fields(kind: Any) -> Mapping[str, Any]:
    return get_type_hints(kind)  # evaluates the annotations' text each time, which takes longer than all the rest


def _decode_union(arguments: tuple[Any, ...], data: Any) -> Any:
    if data is None and type(None) in arguments:
        return None
    plain = [argument for argument in arguments if argument is not type(None)]
    if len(plain) == 1:
        return _decode(plain[0], data)
    if isinstance(data, dict):  # one of several dataclasses: that which has these fields
        classes: list[Any] = [kind for kind in plain if is_dataclass(kind)]
        return _decode(next(kind for kind in classes if _types_of_fields(kind).keys() == data.keys()), data)
    if isinstance(data, list):  # a tuple of any of these
        return tuple(_decode_union(arguments, item) for item in data)
    return _expect(float | str | int, data)


def _expect(kind: Any, data: Any) -> Any:
    if not isinstance(data, kind):
        raise TypeError(f"expected {kind}, found {type(data).__name__}")
    return data
