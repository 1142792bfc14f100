"""Byte code of all modules, made before runs: what of it a run finds is what earlier runs of the program would have left."""

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


@dataclass(frozen=True, slots=True)
class ByteCode:
    """The files of byte code that are new, and the modules that could not be compiled."""

    files: tuple[Path, ...]
    failed: tuple[Uncompiled, ...]


def compile_modules(layout: Layout, folders: Iterable[Path]) -> ByteCode:
    """Compile all modules below some folders with an environment's interpreter."""
    command = [str(layout.python), "-I", "-S", str(_COMPILING), *map(str, folders)]
    try:
        ended = answer(command, within_s=_TIMEOUT_S)
        ended.check_returncode()
    except (OSError, subprocess.SubprocessError) as error:
        detail = error.stderr if isinstance(error, subprocess.CalledProcessError) else ""
        raise BuildError(f"modules cannot be byte-compiled: {error}", slug="python-compile", detail=detail) from error
    failed, files = json.loads(ended.stdout)
    return ByteCode(tuple(map(Path, files)), tuple(Uncompiled(Path(file), line, error) for file, line, error in failed))
