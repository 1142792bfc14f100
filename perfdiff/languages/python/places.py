"""Exact counts of lines of Python code: what is counted in a tree, and what one run of its programs left."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import tokenize
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from perfdiff.errors import RecordingError, store_errors
from perfdiff.languages.python import start
from perfdiff.records.places import Place
from perfdiff.records.schema import Ints

_FOLDER = "PERFDIFF_PLACES"  # tells the module where to count
_DESCRIBING = Path(__file__).parent / "scripts" / "counted_lines.py"
_TIMEOUT_S = 600.0  # a million lines are compiled in about a minute
_HEAD = np.dtype([("magic", "S8"), ("places", "<u8"), ("flags", "<u8")])  # of lines/counts.c, as the flag
_MAGIC = b"PDLINES1"
_DISTURBED = 1


class Code(NamedTuple):
    """A code object as the interpreter names it, the function that it belongs to as users write it, and its lines (1-based)."""

    first_line: int
    name: str
    function: str
    lines: Sequence[int]


@dataclass(frozen=True, slots=True)
class Host:
    """What runs a tree: the interpreter of its environment, and the module that counts lines under it (`extension.build_lines`).

    `copies` are absolute paths, besides that in the tree, that a file may be imported from, as in site-packages.
    """

    python: Path
    extension: Path
    copies: Mapping[str, Sequence[Path]]


@dataclass(frozen=True, slots=True)
class Places:
    """The counted lines of a tree of Python files, in order, and the sheet that tells a process which they are."""

    places: tuple[Place, ...]
    sources: Mapping[str, tuple[str, ...]]
    sheet: Path
    extension: Path

    def environment(self, folder: Path) -> dict[str, str]:
        """Return the variables that make a run leave its counts in `folder`, which is there and empty."""
        return {**start.environment(self.sheet, self.extension), _FOLDER: str(folder)}

    def read(self, folder: Path) -> Ints:
        """Return how often each place ran in the run that wrote to `folder`, (places,), over all its processes; raise RecordingError."""
        counts = np.zeros(len(self.places), dtype=np.int64)
        for path in _files(folder):
            if path.stat().st_size:  # else its process had no room to count in, and is lost
                counts += self._counts(path)
        return counts

    def lost(self, folder: Path) -> int:
        """Return of how many processes of the run not all is counted: they still run, had no room, or something else traced their lines."""
        return sum(1 for path in _files(folder) if _is_lost(path))

    def _counts(self, path: Path) -> Ints:
        content = path.read_bytes()
        if not _is_intact(content, len(self.places)):
            raise RecordingError(
                f"the counts of lines in {path.name} are damaged: {len(content)} bytes for {len(self.places)} lines; run it again",
                slug="places-damaged",
            )
        return np.frombuffer(content, "<u8", offset=_HEAD.itemsize).astype(np.int64)


def places(tree: Path, modules: Mapping[str, str], host: Host, sheet: Path) -> Places:
    """Return the places of a tree, the same in each run of its programs on `host`; write what tells a process of them to `sheet`.

    `modules` are the paths in the tree of the files whose lines are counted, with the names that they are imported by. Files that the
    interpreter cannot compile have no places. Raises RecordingError, StoreError.
    """
    tree = tree.resolve()
    codes = _codes(tree, modules, host.python)
    index = {
        key: number
        for number, key in enumerate(
            sorted({(file, line, code.function) for file, found in codes.items() for code in found for line in code.lines})
        )
    }
    sources = {file: _text(tree / file) for file in sorted({file for file, _, _ in index})}
    found = tuple(Place(function, file, line, _line(sources[file], line)) for file, line, function in index)
    with store_errors(sheet.parent):
        sheet.write_bytes(b"".join(os.fsencode(line) + b"\n" for line in _sheet(tree, codes, index, host.copies)))
    return Places(found, sources, sheet, host.extension)


def _codes(tree: Path, modules: Mapping[str, str], python: Path) -> dict[str, list[Code]]:
    """Return the codes of each file that compiles, as the interpreter tells them."""
    command = [str(python), "-I", str(_DESCRIBING), str(tree)]
    try:
        ended = subprocess.run(command, input=json.dumps(list(modules)), capture_output=True, text=True, check=True, timeout=_TIMEOUT_S)
        described = json.loads(ended.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        detail = getattr(error, "stderr", None) or ""
        raise RecordingError(
            f"'{python}' does not tell the lines of the project's files: {error}", slug="places-tool", detail=detail
        ) from error
    return {
        file: [Code(first, name, f"{modules[file]}.{function}", lines) for first, name, function, lines in found]
        for file, found in described.items()
    }


def _sheet(
    tree: Path, codes: Mapping[str, Sequence[Code]], index: Mapping[tuple[str, int, str], int], copies: Mapping[str, Sequence[Path]]
) -> Iterator[str]:
    """Yield what `lines/sheet.c` reads. Codes of the same name on the same first line cannot be told from each other: they are one."""
    yield f"P {len(index)}"
    for file, found in codes.items():
        paths = dict.fromkeys(map(str, (tree / file, *copies.get(file, ()))))
        yield from (f"F {path}" for path in paths if "\n" not in path)
        together: dict[tuple[int, str], dict[int, int]] = defaultdict(dict)
        for code in found:
            together[code.first_line, code.name].update({line: index[file, line, code.function] for line in code.lines})
        for (first, name), numbers in together.items():
            pairs = "".join(f" {line} {number}" for line, number in numbers.items())
            yield f"C {first} {len(numbers)}{pairs} {name}"


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.lines"))


def _is_intact(content: bytes, places: int) -> bool:
    return len(content) == _HEAD.itemsize + 8 * places and content.startswith(_MAGIC)


def _is_lost(path: Path) -> bool:
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        content = file.read(_HEAD.itemsize)
    return len(content) < _HEAD.itemsize or bool(np.frombuffer(content, _HEAD)["flags"][0] & _DISTURBED)


def _text(path: Path) -> tuple[str, ...]:
    """Return the lines of a file in the encoding that it declares."""
    with path.open("rb") as file:
        encoding, _ = tokenize.detect_encoding(file.readline)
    return tuple(path.read_text(encoding, errors="replace").split("\n"))


def _line(text: Sequence[str], number: int) -> str:
    return text[number - 1].strip() if number <= len(text) else ""
