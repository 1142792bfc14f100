"""The lines of a tree whose code an interpreter compiles: what is counted, and the sheet that tells a process which lines these are."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from perfdiff.errors import store_errors
from perfdiff.languages import line_counts
from perfdiff.languages.line_counts import InterpretedPlaces
from perfdiff.records.places import Place


class CountedCode(NamedTuple):
    """What the interpreter compiles at a time, a function or a file's own level.

    `first_line` and `last_line` are those by which the interpreter knows it, 0 where it does not, `name` is its name there, `function` the
    one that users write; `lines` are those with something to run (1-based).
    """

    first_line: int
    last_line: int
    name: str
    function: str
    lines: Sequence[int]


@dataclass(frozen=True, slots=True)
class Laid:
    """Where a tree lies: `copies` are absolute paths, besides that in the tree, that a file may be loaded from, as in site-packages."""

    tree: Path
    copies: Mapping[str, Sequence[Path]]


def places(
    laid: Laid,
    codes: Mapping[str, Sequence[CountedCode]],
    text: Callable[[Path], tuple[str, ...]],
    sheet: Path,
    variables: Mapping[str, str],
) -> InterpretedPlaces:
    """Return the places of the codes of each file; write what tells a process of them to `sheet`; raise StoreError.

    `text` reads the lines of a file, `variables` are those of a process that counts by the sheet.
    """
    index = {
        key: number
        for number, key in enumerate(
            sorted({(file, line, code.function) for file, codes_of_file in codes.items() for code in codes_of_file for line in code.lines})
        )
    }
    sources = {file: text(laid.tree / file) for file in sorted({file for file, _, _ in index})}
    numbered = tuple(Place(function, file, line, line_counts.text_of(sources[file], line)) for file, line, function in index)
    with store_errors(sheet.parent):
        sheet.write_bytes(b"".join(os.fsencode(line) + b"\n" for line in _sheet(laid, codes, index)))
    return InterpretedPlaces(numbered, sources, variables, sheet, np.arange(len(numbered)), len(numbered))


def _sheet(laid: Laid, codes: Mapping[str, Sequence[CountedCode]], index: Mapping[tuple[str, int, str], int]) -> Iterator[str]:
    """Yield what `interpreted/lines/code_lines.c` reads. Codes of one name on the same lines cannot be told apart: they are one."""
    yield f"P {len(index)}"
    for file, codes_of_file in codes.items():
        paths = dict.fromkeys(map(str, (laid.tree / file, *laid.copies.get(file, ()))))
        yield from (f"F {path}" for path in paths if "\n" not in path)
        together: dict[tuple[int, int, str], dict[int, int]] = defaultdict(dict)
        for code in codes_of_file:
            together[code.first_line, code.last_line, code.name].update({line: index[file, line, code.function] for line in code.lines})
        for (first, last, name), numbers in together.items():
            pairs = "".join(f" {line} {number}" for line, number in numbers.items())
            yield f"C {first} {last} {len(numbers)}{pairs} {name}"
