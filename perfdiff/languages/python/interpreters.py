"""The interpreter that a project's programs run under: found by name or path, asked once what it is."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from perfdiff.errors import BuildError
from perfdiff.languages.answers import answer
from perfdiff.languages.kept import decoded

DEFAULT = "python3"
SUPPORTED = ((3, 10), (3, 14))  # the first and the last version whose frames the probes know

_DESCRIBING = Path(__file__).parent / "scripts" / "describing.py"


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A CPython interpreter, as it describes itself.

    `executable` is that of the installation, also where a virtual environment's was named. `site_packages` is where a virtual
    environment of it has its packages, relative to the environment. `own_packages` are the folders in which the interpreter that was
    named finds installed packages, `pip` its package of that name, and `wheels` the folder of those that `ensurepip` installs. Its headers
    are in one of the folders `include`, if at all.
    """

    executable: Path
    implementation: str
    version: tuple[int, int, int]
    says: str  # version, build and compiler, as `sys.version` has them
    site_packages: Path
    own_packages: tuple[Path, ...]
    pip: Path | None
    wheels: Path | None
    include: tuple[Path, ...]
    is_free_threaded: bool

    @property
    def headers(self) -> Path | None:
        """Return the folder of the interpreter's headers, None if they are not installed."""
        return next((folder for folder in self.include if (folder / "Python.h").is_file()), None)

    @property
    def release(self) -> str:
        """Return the version as it is written: `3.11.7`."""
        return ".".join(map(str, self.version))

    @property
    def markers(self) -> dict[str, str]:
        """Return the variables of environment markers (PEP 508) that the interpreter decides, not the machine."""
        return {"python_version": ".".join(map(str, self.version[:2])), "python_full_version": self.release}

    @property
    def identity(self) -> str:
        """Return the part of a build's key that this interpreter determines."""
        return f"{self.executable} {self.says}"


def find(named: str | None, folder: Path, environment: Mapping[str, str]) -> Interpreter:
    """Return the interpreter of a name or path; of `python3` on PATH where none is named, as somebody finds it who stands in `folder`.

    Raises BuildError: `no-interpreter` where there is none, or it is no Python 3; `python-unsupported` where it cannot be measured.
    """
    command = named or DEFAULT
    program = shutil.which(command if os.sep not in command else str(folder / Path(command).expanduser()), path=environment.get("PATH", ""))
    if program is None:
        raise BuildError(
            f"no interpreter '{command}' was found{'' if os.sep in command else ' on PATH'}; install it, or name another one in "
            "[python] interpreter",
            slug="no-interpreter",
        )
    # What may decide which interpreter a name on PATH stands for, as version managers read it.
    managers = ("PYENV_", "ASDF_", "MISE_", "RTX_")
    asking = {name: value for name, value in environment.items() if name in ("PATH", "HOME") or name.startswith(managers)}
    return described(program, str(folder), tuple(sorted(asking.items())))


@functools.lru_cache
def described(program: str, folder: str | None = None, environment: tuple[tuple[str, str], ...] | None = None) -> Interpreter:
    """Return what an interpreter says of itself, run in a folder and an environment; raise BuildError as `find` does."""
    try:
        ended = answer([program, "-I", _DESCRIBING], environment=None if environment is None else dict(environment), folder=folder)
        interpreter = decoded(Interpreter, ended.stdout)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BuildError(f"the interpreter {program} cannot be run: {error}", slug="no-interpreter") from error
    except ValueError as error:
        raise BuildError(
            f"{program} does not say what it is (exit code {ended.returncode}), as every Python 3 does; name another one in "
            "[python] interpreter",
            slug="no-interpreter",
            detail=ended.stderr,
        ) from error
    _check(program, interpreter)
    return interpreter


def _check(program: str, interpreter: Interpreter) -> None:
    first, last = (".".join(map(str, version)) for version in SUPPORTED)
    if interpreter.implementation != "CPython" or not SUPPORTED[0] <= interpreter.version[:2] <= SUPPORTED[1]:
        what = f"{interpreter.implementation} {interpreter.release}"
    elif interpreter.is_free_threaded:
        what = f"a free-threaded CPython {interpreter.release}"
    else:
        return
    raise BuildError(
        f"{program} is {what}; what is measured yet are programs under CPython {first} to {last} with its global lock: name one in "
        "[python] interpreter",
        slug="python-unsupported",
    )
