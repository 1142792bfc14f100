"""What Python programs need of this machine: an interpreter that can be measured, its headers, and environments with pip."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from perfdiff import temporary
from perfdiff.errors import BuildError
from perfdiff.languages.answers import answer
from perfdiff.languages.check import Check, refused, told
from perfdiff.languages.python import extension, interpreters, layout, pip
from perfdiff.languages.python.interpreters import DEFAULT, Interpreter
from perfdiff.languages.python.traits import PythonConfig

_OTHER = "name another one in [python] interpreter"
_PIP = "import pip; print(pip.__version__)"


def examine(config: PythonConfig | None, project: Path, cache: Path, variables: Mapping[str, str]) -> Iterator[Check]:
    """Yield the checks of a project's Python; none of them is needed if the project is not in Python.

    An environment is made in `cache` and removed again; without a cache that can be written, none is tried.
    """
    is_needed, named = config is not None, config.interpreter if config else None
    try:
        interpreter = interpreters.find(named, project, variables)
    except BuildError as error:
        yield refused("interpreter", error, _OTHER, is_needed=is_needed)
        return
    whose = f"'{named}' of [python] interpreter" if named else f"'{DEFAULT}' on PATH"
    which = "which this project's programs run under" if is_needed else "for Python programs, of which there are none here"
    says = f"CPython {interpreter.release} at {interpreter.executable}, {whose}, {which}"
    yield Check("interpreter", needed=is_needed, found=True, says=says)
    yield told("Python headers", lambda: extension.headers(interpreter.executable), _OTHER, is_needed=is_needed)
    if cache.is_dir():
        yield _environment(interpreter, cache, is_needed=is_needed)


def _environment(interpreter: Interpreter, cache: Path, *, is_needed: bool) -> Check:
    remedy = "free or permit the cache folder, or choose another one with --cache"
    try:
        with temporary.folder("tmp", within=cache) as room:
            venv = layout.make(room / "venv", interpreter)
            pip.provide(venv, interpreter, cache / "python")
            ended = answer([venv.python, "-I", "-c", _PIP])
    except (OSError, subprocess.TimeoutExpired) as error:
        return Check("environments", needed=is_needed, found=False, says=f"none can be made: {error}", remedy=remedy)
    if ended.returncode != 0:
        says, remedy = (
            "can be made, but without pip",
            "install pip for projects that require packages (Debian: apt-get install python3-pip)",
        )
        return Check("environments", needed=False, found=False, says=says, remedy=remedy)
    return Check("environments", needed=is_needed, found=True, says=f"can be made, with pip {ended.stdout.strip()}")
