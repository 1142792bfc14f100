"""Why a function cannot carry a probe."""

from __future__ import annotations

import re
from collections.abc import Collection

CONSTANT = ("constexpr", "consteval")
INITIALISER = "it may be called while the program is compiled, for a constant's value"
INHERITED = (*CONSTANT, INITIALISER)  # these hold for functions inside as well
BY_MACRO = "its body comes from a macro"
_ATTRIBUTES = {
    "naked": "naked: it has no prologue that a probe could follow",
    "no_instrument_function": "its author asks that it is not instrumented",
    "interrupt": "an interrupt handler",
}
_COROUTINE = frozenset(("co_await", "co_yield", "co_return"))
_INTRINSIC = re.compile(r"_mm\d*_|__builtin_(?:ia32|neon|aarch64|altivec|vsx)_|v[a-z0-9]+_[usfp](?:8|16|32|64)$|vec_[a-z]+$")
# What must stand first in a body, where a probe would: local labels, and pragmas of arithmetic. Compilers do not blame the probe for it.
_FIRST = re.compile(
    rb"(?:\s|\\\r?\n|//[^\n]*\n|/\*(?:[^*]|\*(?!/))*\*/|\#[^\n]*\n)*"
    rb"(?:__label__\b|(?:\#[ \t]*pragma[ \t]+|_Pragma\s*\(\s*\"\s*)(?:STDC|clang[ \t]+fp|float_control)\b)"
)
# Assembler text without operands that names registers, such as those that arguments came in: a probe's call would change them.
_BARE_ASSEMBLER = re.compile(r'\b(?:__)?asm(?:__)?(?: (?:__)?(?:volatile|inline|goto)(?:__)?)* \( ((?:\w*"(?:[^"\\]|\\.)*" ?)+)\)')
_REGISTER = re.compile(r"%[a-z]|\b(?:[rxw]\d+|sp|lr)\b")
_IFUNC = re.compile(rb'\bifunc(?:__)?\s*\(\s*"(\w+)"')


def obstacle(head: Collection[str], body: Collection[str], *, has_place: bool, name: str, resolvers: Collection[str]) -> str | None:
    """Return why a function cannot carry a probe, or None.

    `head` are the tokens ahead of the body, `body` those of the body, both with those of the macros in them; `has_place` tells that
    the body's `{` stands in a file; `resolvers` are the functions that the dynamic linker calls to choose an implementation (`ifunc`).
    """
    words = {word.strip("_") for word in head}
    always_inlined = "always_inline" in words and any(map(_INTRINSIC.match, body))
    reasons = (
        (not has_place, BY_MACRO),
        *((keyword in head, keyword) for keyword in CONSTANT),
        *((attribute in words, reason) for attribute, reason in _ATTRIBUTES.items()),
        (not _COROUTINE.isdisjoint(body), "a coroutine: its frame outlives the call"),
        (name in resolvers, "it chooses an implementation while the program is being linked (ifunc)"),
        (_finds_registers(body), "its assembler text finds its arguments in registers"),
        (always_inlined, "always inlined around machine instructions, a few cycles long"),
    )
    return next((reason for holds, reason in reasons if holds), None)


def _finds_registers(body: Collection[str]) -> bool:
    if {"asm", "__asm", "__asm__"}.isdisjoint(body):
        return False
    return any(_REGISTER.search(text) for text in _BARE_ASSEMBLER.findall(" ".join(body)))


def first_statement(source: bytes, start: int) -> str | None:
    """Return why no probe can stand at the beginning of a body, at an offset in its file, or None."""
    return "it begins with what has to stand first in a body" if _FIRST.match(source, start) else None


def ifunc_resolvers(source: bytes) -> frozenset[str]:
    """Return the names of the ifunc resolvers that a file declares."""
    return frozenset(name.decode() for name in _IFUNC.findall(source))
