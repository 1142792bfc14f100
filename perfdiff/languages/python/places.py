"""Exact counts of lines of Python code: what is counted in a tree, and what one run of its programs left."""

from __future__ import annotations

import json
import subprocess
import tokenize
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfdiff.errors import RecordingError
from perfdiff.languages import counted_code
from perfdiff.languages.counted_code import CountedCode, Laid
from perfdiff.languages.line_counts import InterpretedPlaces
from perfdiff.languages.python import start

_DESCRIBING = Path(__file__).parent / "scripts" / "counted_lines.py"
_TIMEOUT_S = 600.0  # a million lines are compiled in about a minute


@dataclass(frozen=True, slots=True)
class PythonLineCounter:
    """What runs a tree: the interpreter of its environment, and the module that counts lines under it (`extension.build_lines`).

    `copies` are absolute paths, besides that in the tree, that a file may be imported from, as in site-packages.
    """

    python: Path
    extension: Path
    copies: Mapping[str, Sequence[Path]]


def places(tree: Path, modules: Mapping[str, str], host: PythonLineCounter, sheet: Path) -> InterpretedPlaces:
    """Return the places of a tree, the same in each run of its programs on `host`; write what tells a process of them to `sheet`.

    `modules` are the paths in the tree of the files whose lines are counted, with the names that they are imported by. Files that the
    interpreter cannot compile have no places. Raises RecordingError, StoreError.
    """
    tree = tree.resolve()
    codes = _codes(tree, modules, host.python)
    return counted_code.places(Laid(tree, host.copies), codes, _text, sheet, start.environment(sheet, host.extension))


def _codes(tree: Path, modules: Mapping[str, str], python: Path) -> dict[str, list[CountedCode]]:
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
        file: [CountedCode(first, 0, name, f"{modules[file]}.{function}", lines) for first, name, function, lines in codes]
        for file, codes in described.items()
    }


def _text(path: Path) -> tuple[str, ...]:
    """Return the lines of a file in the encoding that it declares."""
    with path.open("rb") as file:
        encoding, _ = tokenize.detect_encoding(file.readline)
    return tuple(path.read_text(encoding, errors="replace").split("\n"))
