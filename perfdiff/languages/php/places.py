"""Exact counts of lines of PHP code: what is counted in a tree, and what one run of its programs left."""

from __future__ import annotations

import fcntl
import os
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from perfdiff.errors import RecordingError, store_errors
from perfdiff.languages.php import start
from perfdiff.records.places import Place
from perfdiff.records.schema import Ints

_FOLDER = "PERFDIFF_PLACES"  # tells the extension where to count
_DESCRIBE = "PERFDIFF_DESCRIBE"
_DESCRIBING = Path(__file__).parent / "scripts" / "counted_lines.php"
_TIMEOUT_S = 600.0  # a thousand files are compiled in some seconds
_HEAD = np.dtype([("magic", "S8"), ("places", "<u8"), ("flags", "<u8")])  # of lines/counts.c, as the flag
_MAGIC = b"PDLINES1"
_DISTURBED = 1
_CLOSURE = "{closure"


class Code(NamedTuple):
    """A function as the engine names it, the name that users write, and its lines (1-based)."""

    first_line: int
    last_line: int
    name: str
    function: str
    lines: Sequence[int]


@dataclass(frozen=True, slots=True)
class Host:
    """What runs a tree: a PHP, and the extension that counts lines under it (`extension.build_lines`).

    `environment` are the variables that runs have without us. `copies` are absolute paths, besides that in the tree, that a file may be
    loaded from.
    """

    php: Path
    extension: Path
    environment: Mapping[str, str]
    copies: Mapping[str, Sequence[Path]]


@dataclass(frozen=True, slots=True)
class Places:
    """The counted lines of a tree of PHP files, in order, and the sheet that tells a process which they are."""

    places: tuple[Place, ...]
    sources: Mapping[str, tuple[str, ...]]
    sheet: Path
    host: Host

    def environment(self, folder: Path) -> dict[str, str]:
        """Return the variables that make a run leave its counts in `folder`, which is there and empty."""
        return {**start.environment(self.sheet, self.host.extension, self.host.environment), _FOLDER: str(folder)}

    def read(self, folder: Path) -> Ints:
        """Return how often each place ran in the run that wrote to `folder`, (places,), over all its processes; raise RecordingError."""
        counts = np.zeros(len(self.places), dtype=np.int64)
        for path in _files(folder):
            if path.stat().st_size:  # else its process had no room to count in, and is lost
                counts += self._counts(path)
        return counts

    def lost(self, folder: Path) -> int:
        """Return of how many processes of the run not all is counted: they still run, or had no room."""
        return sum(1 for path in _files(folder) if _is_lost(path))

    def _counts(self, path: Path) -> Ints:
        content = path.read_bytes()
        if not _is_intact(content, len(self.places)):
            raise RecordingError(
                f"the counts of lines in {path.name} are damaged: {len(content)} bytes for {len(self.places)} lines; run it again",
                slug="places-damaged",
            )
        return np.frombuffer(content, "<u8", offset=_HEAD.itemsize).astype(np.int64)


def places(tree: Path, files: Sequence[str], host: Host, sheet: Path) -> Places:
    """Return the places of a tree, the same in each run of its programs on `host`; write what tells a process of them to `sheet`.

    `files` are the paths in the tree of the files whose lines are counted. Files that PHP cannot compile have no places. Raises
    RecordingError, StoreError.
    """
    tree = tree.resolve()
    codes = _codes(tree, files, host)
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
    return Places(found, sources, sheet, host)


def _codes(tree: Path, files: Sequence[str], host: Host) -> dict[str, list[Code]]:
    """Return the functions of each file that compiles, as the engine tells them."""
    named = {str(tree / file): file for file in files if "\n" not in file and "\t" not in file}
    with tempfile.TemporaryDirectory() as temporary:
        told = Path(temporary) / "lines"
        variables = {**start.environment(told, host.extension, host.environment), _DESCRIBE: "1"}
        command = [str(host.php), "-d", "display_errors=0", "-d", "log_errors=0", str(_DESCRIBING), str(told)]
        try:
            subprocess.run(
                command,
                input=b"".join(os.fsencode(path) + b"\n" for path in named),
                env={**host.environment, **variables},
                capture_output=True,
                check=True,
                timeout=_TIMEOUT_S,
            )
            text = os.fsdecode(told.read_bytes()) if named else ""
            return _parsed(text, named)
        except (OSError, subprocess.SubprocessError, ValueError, KeyError) as error:
            detail = (getattr(error, "stderr", None) or b"").decode(errors="replace")
            raise RecordingError(
                f"'{host.php}' does not tell the lines of the project's files: {error}", slug="places-tool", detail=detail
            ) from error


def _parsed(text: str, named: Mapping[str, str]) -> dict[str, list[Code]]:
    found: dict[str, list[Code]] = {}
    inside: list[Code] = []
    for row in text.split("\n"):
        kind, *fields = row.split("\t")
        if kind == "F":
            inside = found.setdefault(named[fields[0]], [])
        elif kind == "C":
            first, last, owner, name, lines = fields
            function = name if not owner or _CLOSURE in name else f"{owner}::{name}"
            inside.append(Code(int(first), int(last), name, function, sorted(set(map(int, lines.split())))))
    return found


def _sheet(
    tree: Path, codes: Mapping[str, Sequence[Code]], index: Mapping[tuple[str, int, str], int], copies: Mapping[str, Sequence[Path]]
) -> Iterator[str]:
    """Yield what `lines/sheet.c` reads. Functions of the same name on the same lines cannot be told from each other: they are one."""
    yield f"P {len(index)}"
    for file, found in codes.items():
        paths = dict.fromkeys(map(str, (tree / file, *copies.get(file, ()))))
        yield from (f"F {path}" for path in paths if "\n" not in path)
        together: dict[tuple[int, int, str], dict[int, int]] = defaultdict(dict)
        for code in found:
            together[code.first_line, code.last_line, code.name].update({line: index[file, line, code.function] for line in code.lines})
        for (first, last, name), numbers in together.items():
            pairs = "".join(f" {line} {number}" for line, number in numbers.items())
            yield f"C {first} {last} {len(numbers)}{pairs} {name}"


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
    return tuple(path.read_text("utf-8", errors="replace").split("\n"))


def _line(text: Sequence[str], number: int) -> str:
    return text[number - 1].strip() if number <= len(text) else ""
