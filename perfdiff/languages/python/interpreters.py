"""The interpreter that a project's programs run under: found by name or path, asked once what it is."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from perfdiff.errors import BuildError

DEFAULT = "python3"
SUPPORTED = ((3, 10), (3, 14))  # the first and the last version whose frames the probes know

_DESCRIBING = Path(__file__).parent / "scripts" / "describing.py"
_TIMEOUT_S = 60.0  # an interpreter on a network drive may take seconds to start


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A CPython, as it says itself.

    `executable` is that of the installation, also where a virtual environment's was named. `site_packages` is where a virtual
    environment of it has its packages, relative to the environment. `own_packages` are the folders in which the interpreter that was
    named finds installed packages, `pip` its package of that name, and `wheels` the folder of those that `ensurepip` installs.
    """

    executable: Path
    version: tuple[int, int, int]
    says: str  # version, build and compiler, as `sys.version` has them
    site_packages: Path
    own_packages: tuple[Path, ...]
    pip: Path | None
    wheels: Path | None

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
        """Return what a build depends on because it runs under this interpreter."""
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
    return _described(program, str(folder), tuple(sorted(_asking(environment).items())))


def _asking(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that may decide which interpreter a name on PATH stands for, as version managers read them."""
    managers = ("PYENV_", "ASDF_", "MISE_", "RTX_")
    return {name: value for name, value in environment.items() if name in ("PATH", "HOME") or name.startswith(managers)}


@functools.lru_cache
def _described(program: str, folder: str, environment: tuple[tuple[str, str], ...]) -> Interpreter:
    try:
        ended = subprocess.run(
            [program, "-I", str(_DESCRIBING)],
            cwd=folder,
            env=dict(environment),
            capture_output=True,
            text=True,
            check=False,
            timeout=_TIMEOUT_S,
            stdin=subprocess.DEVNULL,
        )
        found = json.loads(ended.stdout)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BuildError(f"the interpreter {program} cannot be run: {error}", slug="no-interpreter") from error
    except ValueError as error:
        raise BuildError(
            f"{program} does not say what it is (exit code {ended.returncode}), as every Python 3 does; name another one in "
            "[python] interpreter",
            slug="no-interpreter",
            detail=ended.stderr,
        ) from error
    interpreter = Interpreter(
        executable=Path(found["executable"]),
        version=tuple(found["version"]),
        says=found["says"],
        site_packages=Path(found["site_packages"]),
        own_packages=tuple(Path(folder) for folder in found["own_packages"]),
        pip=Path(found["pip"]) if found["pip"] else None,
        wheels=Path(found["wheels"]) if found["wheels"] else None,
    )
    _check(program, found["implementation"], interpreter, free_threaded=found["free_threaded"])
    return interpreter


def _check(program: str, implementation: str, interpreter: Interpreter, *, free_threaded: bool) -> None:
    first, last = (".".join(map(str, version)) for version in SUPPORTED)
    if implementation != "CPython" or not SUPPORTED[0] <= interpreter.version[:2] <= SUPPORTED[1]:
        what = f"{implementation} {interpreter.release}"
    elif free_threaded:
        what = f"a free-threaded CPython {interpreter.release}"
    else:
        return
    raise BuildError(
        f"{program} is {what}; what is measured yet are programs under CPython {first} to {last} with its global lock: name one in "
        "[python] interpreter",
        slug="python-unsupported",
    )
