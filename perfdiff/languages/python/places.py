"""Exact counts of lines of Python code: what is counted in a tree, and what one run of its programs left."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import tokenize
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from perfdiff.errors import RecordingError
from perfdiff.records.places import Place
from perfdiff.records.schema import Ints

_SHEET = "PERFDIFF_PYTHON"  # tells the hook of an environment what to load, and what is counted
_FOLDER = "PERFDIFF_PLACES"  # tells the module where to count
_DESCRIBING = Path(__file__).parent / "scripts" / "counted_lines.py"
_TIMEOUT_S = 600.0  # a million lines are compiled in about a minute
_HEAD = np.dtype([("magic", "S8"), ("places", "<u8"), ("flags", "<u8")])  # of runtime/counts.c, as the flag
_MAGIC = b"PDLINES1"
_DISTURBED = 1


class Code(NamedTuple):
    """A code object as the interpreter names it, the function that it belongs to as users write it, and its lines (1-based)."""

    first_line: int
    name: str
    function: str
    lines: Sequence[int]


@dataclass(frozen=True, slots=True)
class Places:
    """The counted lines of a tree of Python files, in order, and the sheet that tells a process which they are."""

    places: tuple[Place, ...]
    sources: Mapping[str, tuple[str, ...]]
    sheet: Path

    def environment(self, folder: Path) -> dict[str, str]:
        """Return the variables that make a run leave its counts in `folder`, which is there and empty."""
        return {_SHEET: str(self.sheet), _FOLDER: str(folder)}

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


def places(tree: Path, files: Mapping[str, str], paths: Mapping[str, Sequence[Path]], interpreter: Path, sheet: Path) -> Places:
    """Return the places of a tree, the same in each run of its programs under `interpreter`; write what tells a process of them to `sheet`.

    `files` are the paths of the files in the tree whose lines are counted, with the names of their modules; `paths` are further places,
    absolute, that copies of a file are imported from. Files that the interpreter cannot compile have none. Raises RecordingError.
    """
    tree = tree.resolve()
    codes = _codes(tree, files, interpreter)
    index = {
        key: number
        for number, key in enumerate(
            sorted({(file, line, code.function) for file, found in codes.items() for code in found for line in code.lines})
        )
    }
    sources = {file: _text(tree / file) for file in sorted({file for file, _, _ in index})}
    found = tuple(Place(function, file, line, _line(sources[file], line)) for file, line, function in index)
    _write(sheet, tree, codes, index, paths)
    return Places(found, sources, sheet)


def _codes(tree: Path, files: Mapping[str, str], interpreter: Path) -> dict[str, list[Code]]:
    """Return the codes of each file that compiles, as the interpreter tells them."""
    command = [str(interpreter), "-I", str(_DESCRIBING), str(tree)]
    try:
        ended = subprocess.run(command, input=json.dumps(list(files)), capture_output=True, text=True, check=False, timeout=_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RecordingError(f"the lines of the project's files cannot be told: {interpreter}: {error}", slug="places-tool") from error
    if ended.returncode:
        raise RecordingError(
            f"the lines of the project's files cannot be told: {interpreter} exited {ended.returncode}",
            slug="places-tool",
            detail=ended.stderr,
        )
    return {
        file: [Code(first, name, f"{files[file]}.{function}", lines) for first, name, function, lines in found]
        for file, found in json.loads(ended.stdout).items()
    }


def _write(
    sheet: Path,
    tree: Path,
    codes: Mapping[str, Sequence[Code]],
    index: Mapping[tuple[str, int, str], int],
    paths: Mapping[str, Sequence[Path]],
) -> None:
    """Write what `runtime/sheet.c` reads. Codes of the same name on the same first line cannot be told from each other: they are one."""
    lines = [f"P {len(index)}"]
    for file, found in codes.items():
        lines += [f"F {path}" for path in dict.fromkeys((tree / file, *paths.get(file, ()))) if "\n" not in str(path)]
        together: dict[tuple[int, str], dict[int, int]] = defaultdict(dict)
        for code in found:
            together[code.first_line, code.name].update({line: index[file, line, code.function] for line in code.lines})
        for (first, name), numbers in together.items():
            pairs = "".join(f" {line} {number}" for line, number in numbers.items())
            lines.append(f"C {first} {len(numbers)}{pairs} {name}")
    sheet.write_bytes(b"".join(os.fsencode(line) + b"\n" for line in lines))


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
