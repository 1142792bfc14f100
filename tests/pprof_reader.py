"""A reader of pprof's profiles, apart from the writer: protocol buffers' wire format, and the description of `profile.proto`."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from dataclasses import dataclass

Fields = dict[int, list[int | bytes]]


@dataclass(frozen=True)
class Profile:
    """A profile with all its references followed; a stack is its names, files and lines from the outermost frame on."""

    types: tuple[tuple[str, str], ...]
    samples: dict[tuple[tuple[str, str, int], ...], tuple[int, ...]]
    comments: tuple[str, ...]
    default: str
    strings: tuple[str, ...]


def read(content: bytes) -> Profile:
    """Return what a compressed profile says; raise where it is not as the format wants it."""
    fields = _message(gzip.decompress(content))
    strings = tuple(_content(value).decode() for value in fields[6])
    if strings[0]:
        raise ValueError("the first string must be empty")
    functions = {_single(each, 1): each for each in map(_message, map(_content, fields.get(5, [])))}
    locations = {_single(each, 1): each for each in map(_message, map(_content, fields.get(4, [])))}
    if 0 in functions or 0 in locations:
        raise ValueError("functions and locations are numbered from 1")

    def frame(location: int) -> tuple[str, str, int]:
        (line,) = map(_message, map(_content, locations[location][4]))
        function = functions[_single(line, 1)]
        return strings[_single(function, 2)], strings[_single(function, 4)], _single(line, 2)

    types = tuple((strings[_single(each, 1)], strings[_single(each, 2)]) for each in map(_message, map(_content, fields[1])))
    samples = {}
    for sample in map(_message, map(_content, fields.get(2, []))):
        stack = tuple(frame(location) for location in reversed(list(_packed(sample[1]))))
        values = tuple(value - 2**64 if value >= 2**63 else value for value in _packed(sample[2]))
        if len(values) != len(types) or stack in samples:
            raise ValueError(f"{stack} has {len(values)} values of {len(types)}, or is there twice")
        samples[stack] = values
    comments = tuple(strings[value] for value in fields.get(13, []) if isinstance(value, int))
    return Profile(types, samples, comments, strings[_single(fields, 14)], strings)


def _message(content: bytes) -> Fields:
    fields: Fields = {}
    place = 0
    while place < len(content):
        key, place = _varint(content, place)
        value, place = _varint(content, place)
        if key & 7 == 0:
            fields.setdefault(key >> 3, []).append(value)
        elif key & 7 == 2 and place + value <= len(content):
            fields.setdefault(key >> 3, []).append(content[place : place + value])
            place += value
        else:
            raise ValueError(f"field {key >> 3} is of wire type {key & 7}, or longer than its message")
    return fields


def _varint(content: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = content[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place


def _packed(values: list[int | bytes]) -> Iterator[int]:
    for content in map(_content, values):
        place = 0
        while place < len(content):
            value, place = _varint(content, place)
            yield value


def _content(value: int | bytes) -> bytes:
    if not isinstance(value, bytes):
        raise TypeError(f"{value} is a number where a message or text belongs")
    return value


def _single(fields: Fields, number: int) -> int:
    value = fields.get(number, [0])[-1]
    if not isinstance(value, int):
        raise TypeError(f"field {number} is no number")
    return value
