"""Objects that hold nothing but room: linked among a program's own, they move code and data to other places."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

# Functions and larger variables begin at multiples of 16 as a rule; finer steps would be rounded away.
_STEP = 16
# In front of all, as much as moves code through a whole page, and thereby through all lines and all sets of a first-level cache.
_PAGE = 4096
# Between objects, some lines: what moves objects against each other. More would make the program larger than another build of it would be.
_LINES = 256
# Room begins at a new line, so that what follows lies at the same place within lines in base and head, whatever the size of what stands
# before it in either: what a layout makes of code that both share then cancels in a pair of runs.
_ALIGNED = 6  # 2**6 bytes
_DIFFERENT = 3  # paddings between objects, one of them drawn at each place; each costs a run of the assembler

# Linkers put `main` and constructors, then what compilers believe to be hot, before all other code: each part gets room of its own.
# `R`: linkers that drop what nothing refers to (--gc-sections) keep it.
_SECTIONS = (
    (".text.startup", '"axR",%progbits'),
    (".text.hot", '"axR",%progbits'),
    (".text", '"axR",%progbits'),
    (".rodata", '"aR",%progbits'),
    (".data", '"awR",%progbits'),
    (".bss", '"awR",%nobits'),
)
_NO_STACK = '\t.section .note.GNU-stack,"",%progbits\n'  # without it, linkers make the stack executable


@dataclass(frozen=True, slots=True)
class Padding:
    """Bytes of room in each section of code and data."""

    sizes: tuple[int, ...]

    @property
    def assembly(self) -> str:
        """Return it as a source for GNU's assembler and clang's, of any processor."""
        parts = (
            f"\t.section {name}.perfdiff,{flags}\n\t.p2align {_ALIGNED}\n\t.zero {size}\n"
            for (name, flags), size in zip(_SECTIONS, self.sizes, strict=True)
            if size
        )
        return "".join(parts) + _NO_STACK


def front(rng: random.Random) -> Padding:
    """Draw the padding before all objects."""
    return _drawn(rng, _PAGE)


def between(rng: random.Random) -> tuple[Padding, ...]:
    """Draw the paddings between objects."""
    return tuple(_drawn(rng, _LINES) for _ in range(_DIFFERENT))


def _drawn(rng: random.Random, most: int) -> Padding:
    return Padding(tuple(rng.randrange(0, most, _STEP) for _ in _SECTIONS))


def write(folder: Path, paddings: Sequence[Padding]) -> list[str]:
    """Write the sources of paddings to `folder`; return their names, which end in `.s`."""
    names = [f"padding{number}.s" for number in range(len(paddings))]
    for name, padding in zip(names, paddings, strict=True):
        (folder / name).write_text(padding.assembly)
    return names


def machine_options(arguments: Sequence[str]) -> list[str]:
    """Return the options of a link that say for which machine its objects are made."""
    options: list[str] = []
    words = iter(arguments)
    for word in words:
        if word == "-target":
            options += [word, next(words, "")]
        elif word.startswith(("-m", "--target=")) and word != "-mllvm":
            options.append(word)
    return options


def among(words: Sequence[str], objects: Sequence[int], padding: Sequence[str], rng: random.Random) -> list[str]:
    """Return a link's arguments with the first `padding` before the first of its objects, which stand at the places `objects`, and any of
    the others before each other one.
    """
    at = {place: padding[0] if place == objects[0] else rng.choice(padding[1:]) for place in objects}
    return [argument for place, word in enumerate(words) for argument in ((at[place], word) if place in at else (word,))]
