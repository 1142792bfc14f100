"""Names of functions as their sources have them, whatever a template was instantiated with."""

from __future__ import annotations

import re

# What is no bracket: an operator's own signs, the namespace without a name, and arrows in what a template is instantiated with.
_VERBATIM = re.compile(r"operator(?:<=>|<<=|>>=|->\*|<<|>>|<=|>=|->|\(\)|<|>)|\(anonymous namespace\)|->")
_BESIDE = re.compile(r"\[abi:\w+\]|(?<=\))(?: const| volatile| &&?)+(?=::)")  # tags of the ABI; what stands behind a method's parameters
_DEPTH = {"<": 1, "(": 1, ">": -1, ")": -1}


def generic(name: str) -> str:
    """Return the readable name of what a template was instantiated to, without arguments and parameters; others as they are.

    `set::find` for `set<int>::find<char const*>`, `many::{lambda#1}::operator()` for `many<int>(int)::{lambda(int)#1}::operator()`. Of a
    name whose brackets do not match, what stands before the first that is not closed.
    """
    words: list[str] = []
    text = _BESIDE.sub("", name)
    depth = at = 0
    is_instance = False
    while at < len(text):
        verbatim = _VERBATIM.match(text, at)
        word = verbatim[0] if verbatim else text[at]
        at += len(word)
        depth += _DEPTH.get(word, 0)
        is_instance |= word == "<"
        if depth == 0 and word not in _DEPTH:
            words.append(word)
    return "".join(words).rstrip() if is_instance else name
