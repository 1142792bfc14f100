"""Programs that the linker optimises (`-flto`): which calls ask for it, and how a variant's units are compiled without it.

Each link of such a program compiles all of it anew, whatever changed. Units that are compiled by themselves can be kept instead.
"""

from __future__ import annotations

from collections.abc import Sequence

_ASKING = ("-flto", "-ffat-lto-objects", "-fno-fat-lto-objects")
# What clang refuses, or does in another way, without it.
_DEPENDING = ("-fsanitize=cfi", "-fwhole-program-vtables", "-fvirtual-function-elimination", "-fsplit-lto-unit")


def is_asked(arguments: Sequence[str]) -> bool:
    """Return whether a compiler call leaves a unit to the linker to be optimised, and could do without."""
    words = [word for word in arguments if word.startswith(("-flto", "-fno-lto"))]
    return bool(words) and words[-1] != "-fno-lto" and not any(word.startswith(_DEPENDING) for word in arguments)


def without(arguments: Sequence[str]) -> list[str]:
    """Return the words of a compiler call that optimises the unit by itself."""
    return [word for word in arguments if not word.startswith(_ASKING)]
