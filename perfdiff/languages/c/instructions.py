"""What must be known of instructions to compare machine code without a disassembler.

Assemblers leave most references to the linker, as relocations with names. Two things they do not say: where an x86 instruction ends
whose operand is relative to its end, and which functions of the same section are called or pointed to by a distance alone. Both are
read off the bytes so that too much is found rather than too little: a place that is taken for a reference and is none makes equal code
differ at worst.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from perfdiff.languages.c.elf import AARCH64, X86_64

# x86: ModRM of an operand relative to the instruction pointer; opcodes with an immediate behind it, of one byte, or of two or four;
# then those of the maps behind 0F, VEX and EVEX that have one byte. `test` alone has one for two of its ModRM bytes.
_RELATIVE_MODRM, _MODRM_MASK = 0x05, 0xC7
_BYTE_BEHIND = frozenset((0x6B, 0x80, 0x83, 0xC0, 0xC1, 0xC6))
_WORD_BEHIND = frozenset((0x69, 0x81, 0xC7))
_TEST_BYTE, _TEST_WORD, _TEST_MODRM = 0xF6, 0xF7, frozenset((0x05, 0x0D))
_BYTE_BEHIND_PREFIXED = frozenset((0x70, 0x71, 0x72, 0x73, 0xA4, 0xAC, 0xBA, 0xC2, 0xC4, 0xC5, 0xC6))
_FIELD = 4

# AArch64: mask and value of the instruction, then lowest bit and number of bits of the distance in words (ADR's is in bytes, see below).
_ARM_BRANCHES = (
    (0x7C000000, 0x14000000, 0, 26),  # B, BL
    (0xFF000010, 0x54000000, 5, 19),  # B.cond
    (0x7E000000, 0x34000000, 5, 19),  # CBZ, CBNZ
    (0x7E000000, 0x36000000, 5, 14),  # TBZ, TBNZ
)
_ARM_ADR_MASK, _ARM_ADR, _ARM_ADR_FIELD = 0x9F000000, 0x10000000, 0x60FFFFE0

Words = Any  # numpy.ndarray of integers


@dataclass(frozen=True, slots=True)
class NearReference:
    """A distance in the code of a section, `width` bytes at `offset`, that leads to `target`, an offset into the same section.

    `kept` are the bits of these bytes that are not distance.
    """

    offset: int
    width: int
    target: int
    kept: int


def operand_ends(code: bytes, field: int) -> tuple[int, ...]:
    """Return how many bytes behind the start of its 4-byte field a relative operand of x86 may count from: at the instruction's end.

    That is 4, more where an immediate follows; all that are possible where the bytes ahead of the field do not decide it.
    """
    if field < 2 or code[field - 1] & _MODRM_MASK != _RELATIVE_MODRM:
        return (_FIELD,)
    opcode, before = code[field - 2], code[max(field - 6, 0) : field - 2].rjust(4, b"\0")
    is_test = code[field - 1] in _TEST_MODRM
    ends = {_FIELD}
    if opcode in _BYTE_BEHIND or (opcode == _TEST_BYTE and is_test):
        ends = {_FIELD + 1}
    elif opcode in _WORD_BEHIND or (opcode == _TEST_WORD and is_test):
        ends = {_FIELD + 2, _FIELD + 4}
    in_third_map = before[2:] == b"\x0f\x3a" or (before[1] == 0xC4 and before[2] & 0x1F == 3) or (before[0] == 0x62 and before[1] & 7 == 3)
    is_prefixed = before[3] == 0x0F or before[2] == 0xC5 or before[1] == 0xC4 or before[0] == 0x62 or before[2:] == b"\x0f\x38"
    if in_third_map or is_prefixed:  # or the end of the instruction before looks like it
        ends |= {_FIELD, _FIELD + 1} if in_third_map or opcode in _BYTE_BEHIND_PREFIXED else {_FIELD}
    return tuple(sorted(ends))


def near_references(machine: str, code: bytes, starts: frozenset[int], relocated: frozenset[int]) -> Iterator[NearReference]:
    """Yield what may be a reference by distance to one of `starts`, in order; not at the `relocated` offsets, which the linker fills in."""
    if not code or not starts:
        return
    find = {X86_64: _x86, AARCH64: _arm}[machine]
    references = find(code, np.fromiter(starts, dtype=np.int64, count=len(starts)))
    yield from sorted((reference for reference in references if reference.offset not in relocated), key=lambda reference: reference.offset)


def _x86(code: bytes, starts: Words) -> Iterator[NearReference]:
    bytes_ = np.frombuffer(code, dtype=np.uint8)
    jumps = np.isin(bytes_, (0xE8, 0xE9)) | ((bytes_ & _MODRM_MASK) == _RELATIVE_MODRM)
    jumps[1:] |= ((bytes_[1:] & 0xF0) == 0x80) & (bytes_[:-1] == 0x0F)
    short = (bytes_ == 0xEB) | ((bytes_ & 0xF0) == 0x70) | ((bytes_ & 0xFC) == 0xE0)
    for opcodes, width in ((jumps, _FIELD), (short, 1)):
        fields = np.flatnonzero(opcodes) + 1
        fields = fields[fields + width <= len(code)]
        distances = np.zeros(len(fields), dtype=np.int64)
        for byte in range(width):
            distances |= bytes_[fields + byte].astype(np.int64) << (8 * byte)
        targets = fields + width + _signed(distances, 8 * width)
        hits = np.isin(targets, starts)
        for field, target in zip(fields[hits].tolist(), targets[hits].tolist(), strict=True):
            yield NearReference(field, width, target, 0)


def _arm(code: bytes, starts: Words) -> Iterator[NearReference]:
    words = np.frombuffer(code[: len(code) - len(code) % 4], dtype="<u4").astype(np.int64)
    adr = _signed(((words >> 5 & 0x7FFFF) << 2) | (words >> 29 & 3), 21)
    kinds = [((words & _ARM_ADR_MASK) == _ARM_ADR, adr, _ARM_ADR_FIELD)]
    for mask, value, low, bits in _ARM_BRANCHES:
        field = ((1 << bits) - 1) << low
        kinds.append(((words & mask) == value, _signed((words & field) >> low, bits) * 4, field))
    for chosen, distances, field in kinds:
        targets = np.arange(len(words)) * 4 + distances
        for index in np.flatnonzero(chosen & np.isin(targets, starts)).tolist():
            yield NearReference(index * 4, 4, int(targets[index]), int(words[index]) & ~field)


def _signed(values: Words, bits: int) -> Words:
    return values - ((values >> (bits - 1) & 1) << bits)
