"""The C and C++ compilers of an environment: those on PATH, the one that a build takes, and what each says of its version."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from perfdiff.errors import BuildError

# With a target before it or a version behind it: `x86_64-linux-gnu-gcc`, `clang++-14`.
_COMPILER = re.compile(r"(?:[\w.+-]+-)?(?:cc|c89|c99|gcc|g\+\+|c\+\+|clang|clang\+\+)(?:-[\d.]+)?")
_ARCHIVER = re.compile(r"(?:[\w.+-]+-)?(?:ar|ranlib)(?:-[\d.]+)?")
_BY_LANGUAGE = {"c": ("CC", ("cc", "gcc", "clang")), "c++": ("CXX", ("c++", "g++", "clang++"))}
LANGUAGES = tuple(_BY_LANGUAGE)
VARIABLES = tuple(variable for variable, _ in _BY_LANGUAGE.values())
_VERSION_TIMEOUT_S = 20.0  # `cc --version` takes milliseconds; a wrapper script may ask a network


def on_path(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of all C and C++ compilers on PATH."""
    return _on_path(environment, _COMPILER)


def archivers_on_path(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of all tools on PATH that write static archives."""
    return _on_path(environment, _ARCHIVER)


def _on_path(environment: Mapping[str, str], pattern: re.Pattern[str]) -> tuple[str, ...]:
    names: set[str] = set()
    for folder in environment.get("PATH", os.defpath).split(os.pathsep):
        if Path(folder or ".").is_dir():
            names.update(entry.name for entry in os.scandir(folder or ".") if pattern.fullmatch(entry.name) and os.access(entry, os.X_OK))
    return tuple(sorted(names))


def chosen(environment: Mapping[str, str], *, language: str = "c") -> Path | None:
    """Return the compiler that a build in this environment takes for `c` or `c++` unless it is told otherwise.

    Of `$CC` or `$CXX` that is the word that names a compiler, as in `ccache clang -m32`, else the first; without them, the first of the
    usual names. None where it is not on PATH.
    """
    variable, usual = _BY_LANGUAGE[language]
    given = words(environment.get(variable, ""))
    wanted = [word for word in given if _COMPILER.fullmatch(Path(word).name)] or given
    paths = (shutil.which(name, path=environment.get("PATH", os.defpath)) for name in wanted[:1] or usual)
    return next((Path(path) for path in paths if path), None)


def words(command: str) -> list[str]:
    """Return the words of a command that calls a compiler."""
    try:
        return shlex.split(command)
    except ValueError:  # an open quote: no compiler has such a name
        return [command]


def version(compiler: Path, environment: Mapping[str, str]) -> str:
    """Return the first line of what a compiler says of its version, or its path where it does not answer."""
    try:
        return says(compiler, environment).partition("\n")[0].strip() or str(compiler)
    except BuildError:
        return str(compiler)


def says(compiler: Path, environment: Mapping[str, str]) -> str:
    """Return all that a compiler says of its version; raise BuildError (`compiler-not-found`) where it does not answer."""
    try:
        answer = subprocess.run(
            [str(compiler), "--version"],
            env=environment,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_VERSION_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BuildError(
            f"'{compiler} --version' does not answer: {error}; check that this compiler runs, or choose another with CC and CXX",
            slug="compiler-not-found",
        ) from error
    return answer.stdout


def identity(environment: Mapping[str, str]) -> str:
    """Return which compilers a build in this environment finds: their paths and what they say of their version; raise BuildError."""
    if not on_path(environment):
        raise BuildError("no C or C++ compiler was found on PATH; install gcc or clang", slug="no-compiler")
    defaults = (chosen(environment, language=language) for language in LANGUAGES)
    return "\n".join(f"{compiler.resolve()} {says(compiler, environment)}" for compiler in defaults if compiler)
