"""Byte code of all modules, made before runs, so that no run spends time on it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from perfdiff.errors import BuildError
from perfdiff.languages.answers import answer
from perfdiff.languages.python.layout import Layout

_COMPILING = Path(__file__).parent / "scripts" / "compiling.py"
_TIMEOUT_S = 1800.0


@dataclass(frozen=True, slots=True)
class Uncompiled:
    """A module that the interpreter cannot compile, and why."""

    file: Path
    line: int | None
    error: str


def compile_modules(layout: Layout, folders: Iterable[Path]) -> tuple[Uncompiled, ...]:
    """Compile all modules below some folders with an environment's interpreter; return those that it cannot compile."""
    command = [str(layout.python), "-I", "-S", str(_COMPILING), *map(str, folders)]
    try:
        ended = answer(command, within_s=_TIMEOUT_S)
        ended.check_returncode()
    except (OSError, subprocess.SubprocessError) as error:
        detail = error.stderr if isinstance(error, subprocess.CalledProcessError) else ""
        raise BuildError(f"modules cannot be byte-compiled: {error}", slug="python-compile", detail=detail) from error
    return tuple(Uncompiled(Path(file), line, error) for file, line, error in json.loads(ended.stdout))
