"""Exact counts of lines of PHP code: what is counted in a tree, and what one run of its programs left."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfdiff import temporary
from perfdiff.errors import RecordingError
from perfdiff.languages import counted_code
from perfdiff.languages.counted_code import CountedCode, Laid
from perfdiff.languages.line_counts import InterpretedPlaces
from perfdiff.languages.php import start

_DESCRIBE = "PERFDIFF_DESCRIBE"
_DESCRIBING = Path(__file__).parent / "scripts" / "counted_lines.php"
_TIMEOUT_S = 600.0  # a thousand files are compiled in some seconds
_CLOSURE = "{closure"


@dataclass(frozen=True, slots=True)
class PhpLineCounter:
    """What runs a tree: a PHP, and the extension that counts lines under it (`extension.build_lines`).

    `environment` are the variables that runs have without us.
    """

    php: Path
    extension: Path
    environment: Mapping[str, str]


def places(tree: Path, files: Sequence[str], host: PhpLineCounter, sheet: Path) -> InterpretedPlaces:
    """Return the places of a tree, the same in each run of its programs on `host`; write what tells a process of them to `sheet`.

    `files` are the paths in the tree of the files whose lines are counted. Files that PHP cannot compile have no places. Raises
    RecordingError, StoreError.
    """
    tree = tree.resolve()
    codes = _codes(tree, files, host)
    variables = start.environment(sheet, host.extension, host.environment)
    return counted_code.places(Laid(tree, {}), codes, _text, sheet, variables)


def _codes(tree: Path, files: Sequence[str], host: PhpLineCounter) -> dict[str, list[CountedCode]]:
    """Return the functions of each file that compiles, as the engine tells them."""
    named = {str(tree / file): file for file in files if "\n" not in file and "\t" not in file}
    with temporary.folder() as room:
        described = room / "lines"
        variables = {**start.environment(described, host.extension, host.environment), _DESCRIBE: "1"}
        command = [str(host.php), "-d", "display_errors=0", "-d", "log_errors=0", str(_DESCRIBING), str(described)]
        try:
            subprocess.run(
                command,
                input=b"".join(os.fsencode(path) + b"\n" for path in named),
                env={**host.environment, **variables},
                capture_output=True,
                check=True,
                timeout=_TIMEOUT_S,
            )
            text = os.fsdecode(described.read_bytes()) if named else ""
            return _parsed(text, named)
        except (OSError, subprocess.SubprocessError, ValueError, KeyError) as error:
            detail = (getattr(error, "stderr", None) or b"").decode(errors="replace")
            raise RecordingError(
                f"'{host.php}' does not tell the lines of the project's files: {error}", slug="places-tool", detail=detail
            ) from error


def _parsed(text: str, named: Mapping[str, str]) -> dict[str, list[CountedCode]]:
    codes: dict[str, list[CountedCode]] = {}
    inside: list[CountedCode] = []
    for row in text.split("\n"):
        kind, *fields = row.split("\t")
        if kind == "F":
            inside = codes.setdefault(named[fields[0]], [])
        elif kind == "C":
            first, last, owner, name, lines = fields
            function = name if not owner or _CLOSURE in name else f"{owner}::{name}"
            inside.append(CountedCode(int(first), int(last), name, function, sorted(set(map(int, lines.split())))))
    return codes


def _text(path: Path) -> tuple[str, ...]:
    return tuple(path.read_text("utf-8", errors="replace").split("\n"))
