"""Profiles for pprof, as Go's runtime, Parca, Pyroscope and many others write them: messages in protocol buffers' wire format.

https://github.com/google/pprof/blob/main/proto/profile.proto
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence

from perfdiff.records.bounds import BoundError
from perfdiff.records.results.series import NANOSECONDS
from perfdiff.records.sampled.samples import FunctionSamples, by_function

FORM = "pprof"
MAGIC = b"\x1f\x8b"
LARGEST_BYTES = 256_000_000  # of a profile that is no longer compressed
_TYPES, _SAMPLES, _LOCATIONS, _FUNCTIONS, _STRINGS, _DEFAULT = 1, 2, 4, 5, 6, 14  # fields of `Profile`
_UNITS = {"nanoseconds": "ns", "microseconds": "us", "milliseconds": "ms", "seconds": "s"}
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5  # wire types
_FIXED = {_FIXED64: 8, _FIXED32: 4}

Message = Mapping[int, Sequence[int | bytes]]


def read(content: bytes) -> FunctionSamples:
    """Return what a compressed profile holds of the type that it shows by default, the last one where it names none.

    Raise ValueError and the like where it is damaged.
    """
    profile = _message(_inflated(content))
    strings = [_content(text).decode(errors="replace") for text in profile[_STRINGS]]
    types = [(strings[_number(kind, 1)], strings[_number(kind, 2)]) for kind in _messages(profile, _TYPES)]
    default = strings[_number(profile, _DEFAULT)]
    column = next((place for place, (name, _) in enumerate(types) if name == default), len(types) - 1)
    functions = {_number(function, 1): strings[_number(function, 2)] for function in _messages(profile, _FUNCTIONS)}
    locations = {_number(location, 1): _innermost(location, functions) for location in _messages(profile, _LOCATIONS)}
    stacks = ((_packed(sample, 1), _packed(sample, 2)) for sample in _messages(profile, _SAMPLES))
    own = by_function((locations[stack[0]], float(amounts[column])) for stack, amounts in stacks if stack)
    unit = _UNITS.get(types[column][1])
    return FunctionSamples(f"{FORM}, {types[column][0]}", own, NANOSECONDS[unit] if unit else None)


def _innermost(location: Message, functions: Mapping[int, str]) -> str:
    """Return the function of a location, of inlined ones the innermost; its address where it has none."""
    lines = _messages(location, 4)
    return next((functions[_number(line, 1)] for line in lines), f"[unknown at {_number(location, 3):#x}]")


def _inflated(content: bytes) -> bytes:
    stream = zlib.decompressobj(wbits=31)
    plain = stream.decompress(content, LARGEST_BYTES)
    if stream.unconsumed_tail:
        raise BoundError(f"it has more than {LARGEST_BYTES:,} bytes when it is decompressed")
    if not stream.eof:
        raise ValueError("it ends in the middle")
    return plain


def _message(content: bytes) -> Message:
    fields: dict[int, list[int | bytes]] = {}
    place = 0
    while place < len(content):
        key, place = _varint(content, place)
        kind = key & 7
        if kind == _VARINT:
            value, place = _varint(content, place)
            fields.setdefault(key >> 3, []).append(value)
            continue
        length, place = _varint(content, place) if kind == _BYTES else (_FIXED.get(kind, len(content)), place)
        if place + length > len(content):
            raise ValueError(f"field {key >> 3} is of wire type {kind}, or longer than its message")
        fields.setdefault(key >> 3, []).append(content[place : place + length])
        place += length
    return fields


def _messages(message: Message, field: int) -> Iterator[Message]:
    return (_message(_content(value)) for value in message.get(field, ()))


def _number(message: Message, field: int) -> int:
    """Return a number of a message, 0 where it is left out."""
    value = message.get(field, (0,))[-1]
    if not isinstance(value, int):
        raise TypeError(f"field {field} is no number")
    return value


def _content(value: int | bytes) -> bytes:
    if not isinstance(value, bytes):
        raise TypeError("a number stands where a text or a message should")
    return value


def _packed(message: Message, field: int) -> list[int]:
    """Return the numbers of a field, packed or one by one; those above 63 bits are negative."""
    numbers: list[int] = []
    for value in message.get(field, ()):
        place = 0
        if isinstance(value, int):
            numbers.append(value)
        while isinstance(value, bytes) and place < len(value):
            number, place = _varint(value, place)
            numbers.append(number)
    return [number - 2**64 if number >= 2**63 else number for number in numbers]


def _varint(content: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 70:
        byte = content[place]
        place += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, place
    raise ValueError("a number has more than 64 bits")
