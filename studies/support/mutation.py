"""Inputs that are almost right: valid ones with bytes, numbers, words or values changed, towards what readers get wrong."""

from __future__ import annotations

import copy
import json
import random
import re
import struct
from collections.abc import Sequence
from typing import Any

_EXTREMES = (0, 1, 2, 7, 8, 63, 64, 65, 255, 2**15, 2**16 - 1, 2**20, 2**31 - 1, 2**31, 2**32 - 1, 2**53, 2**63 - 1, 2**63, 2**64 - 1)
_WIDTHS = {1: "<B", 2: "<H", 4: "<I", 8: "<Q"}
_TOKEN = re.compile(r"[A-Za-z_]\w*|\d+(?:\.\d+)?|\s+|.", re.DOTALL)
_NUMBERS = (
    "0",
    "-1",
    "1e308",
    "1e-400",
    "1e999",
    "nan",
    "inf",
    "0x10",
    "9" * 30,
    "9" * 400,
    "9" * 5000,
    "1_000",
    ".5",
    "5.",
    "00",
    "-0",
    "1e",
    "١",
)
_OTHERS = (
    "",
    "\0",
    "\n",
    "\r",
    "\ufeff",
    "\ud7ff",
    "\U0010ffff",
    "'",
    '"',
    "\\",
    "\\u0000",
    "//",
    "#",
    "[[",
    "]]",
    "=",
    "{" * 3,
    "\x85",
    "\u2028",
)
_VALUES: tuple[object, ...] = (
    None,
    True,
    False,
    0,
    -1,
    2**20,
    2**31,
    2**63,
    2**64,
    10**400,
    1.5,
    1e308,
    -0.0,
    float("nan"),
    float("inf"),
    "",
    "x",
    "base",
    "\ud800",
    [],
    {},
    [[]],
    [None],
)
_MOST = 6  # changes of an input
_DEEP = 3000  # brackets within each other: more than an interpreter's stack takes


def changed_bytes(rng: random.Random, seeds: Sequence[bytes]) -> bytes:
    """Return a binary input: fields of 1 to 8 bytes set to extremes, spans cut, doubled, moved in from another input."""
    data = bytearray(rng.choice(seeds))
    for _ in range(rng.randint(1, _MOST)):
        if not data:
            break
        at = _place(rng, data)
        match rng.randrange(10):
            case 0 | 1 | 2 | 3:
                _set(rng, data, at & ~3, rng.choice((4, 8)))
            case 4:
                _set(rng, data, at, rng.choice((1, 2, 4)))
            case 5:
                data[at] ^= 1 << rng.randrange(8)
            case 6:
                del data[at : at + rng.choice((1, 4, 8, 16, rng.randrange(1, len(data) + 1)))]
            case 7:
                span = data[at : at + rng.choice((4, 8, 24, 64, 256))]
                data[at:at] = span * rng.randint(1, 3)
            case 8:
                other = rng.choice(seeds)
                start = rng.randrange(len(other))
                data[at : at + rng.choice((0, 8, 64))] = other[start : start + rng.choice((8, 64, 256))]
            case 9:
                del data[at:]
    return bytes(data)


def _place(rng: random.Random, data: bytearray) -> int:
    """Return a place, of a few at random one that holds something: most of a header is empty."""
    places = [rng.randrange(len(data)) for _ in range(4)]
    return next((at for at in places if data[at]), places[0])


def _set(rng: random.Random, data: bytearray, at: int, width: int) -> None:
    if at + width > len(data):
        return
    value = rng.choice(_EXTREMES) if rng.random() < 0.7 else rng.getrandbits(8 * width)
    near = struct.unpack_from(_WIDTHS[width], data, at)[0] + rng.choice((-8, -1, 1, 8))
    struct.pack_into(_WIDTHS[width], data, at, (value if rng.random() < 0.8 else near) % 2 ** (8 * width))


def changed_text(rng: random.Random, seeds: Sequence[str]) -> bytes:
    """Return a text input: words, numbers and signs dropped, doubled, exchanged, put in from another input, or made extreme."""
    tokens = _TOKEN.findall(rng.choice(seeds))
    for _ in range(rng.randint(1, _MOST)):
        if not tokens:
            break
        at = rng.randrange(len(tokens))
        match rng.randrange(9):
            case 0:
                del tokens[at : at + rng.choice((1, 1, 2, 8, len(tokens)))]
            case 1:
                tokens[at:at] = tokens[at : at + rng.choice((1, 2, 20))] * rng.choice((1, 1, 2, 50))
            case 2:
                other = rng.randrange(len(tokens))
                tokens[at], tokens[other] = tokens[other], tokens[at]
            case 3 | 4:
                tokens[at] = rng.choice(_NUMBERS)
            case 5:
                tokens[at] = rng.choice(_OTHERS)
            case 6:
                found = _TOKEN.findall(rng.choice(seeds))
                start = rng.randrange(len(found))
                tokens[at:at] = found[start : start + rng.choice((1, 3, 10))]
            case 7:
                tokens[at] = rng.choice(tokens)
            case 8 if rng.random() < 0.05:
                tokens[at] = rng.choice("[({") * _DEEP
            case _:
                tokens[at] += rng.choice(tokens)
    data = "".join(tokens).encode("utf-8", "surrogatepass")
    return changed_bytes(rng, [data]) if data and rng.random() < 0.05 else data


def changed_json(rng: random.Random, seeds: Sequence[str]) -> bytes:
    """Return a JSON document with values exchanged, dropped, renamed or made extreme; now and then no JSON any more."""
    if rng.random() < 0.1:
        return changed_text(rng, seeds)
    document = json.loads(rng.choice(seeds))
    for _ in range(rng.randint(1, _MOST)):
        _change(rng, document)
    return json.dumps(document, ensure_ascii=rng.random() < 0.5).encode("utf-8", "surrogatepass")


def _change(rng: random.Random, document: Any) -> None:
    """Change one value of a document, reached by a random way down."""
    node = document
    while True:
        keys = list(node) if isinstance(node, dict) else range(len(node))
        if not keys:
            return
        key = rng.choice(keys)
        below = node[key]
        if isinstance(below, dict | list) and below and rng.random() < 0.85:
            node = below
            continue
        match rng.randrange(6):
            case 0:
                del node[key]
            case 1 if isinstance(node, dict):
                node[rng.choice((*keys, "", "x", "1" * 20))] = node.pop(key)
            case 2 if isinstance(node, list):
                node.extend([below] * rng.choice((1, 2, 100)))
            case 3:
                node[key] = copy.deepcopy(node[rng.choice(keys)])
            case _:
                node[key] = copy.deepcopy(rng.choice(_VALUES))
        return
