"""pip in environments of ours: found where the interpreter has it, and run for one environment alone."""

from __future__ import annotations

import importlib.util
import os
import shlex
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from perfdiff import logs, processes, temporary
from perfdiff.languages.python import layout as layouts
from perfdiff.languages.python.interpreters import Interpreter
from perfdiff.languages.python.layout import Layout

_TOOLS = "tools"  # folder of an environment: what is importable in it, but no dependency of anything
_WITH_SETUPTOOLS = (3, 11)  # the last version whose `venv` puts setuptools into each environment
_SCRIPTS = dict.fromkeys(("pip", "pip3"), "pip._internal.cli.main:main")
TIMEOUT_S = 1800.0
_TAIL_LINES = 20


def provide(layout: Layout, interpreter: Interpreter, cache: Path) -> None:
    """Make pip a part of an environment, by links; raise OSError. `cache` keeps one that has to be unpacked.

    Where there is no pip, the environment's program of that name says so: one found further on PATH would install elsewhere.
    """
    tools = layout.folder / _TOOLS
    tools.mkdir()
    package = interpreter.pip or _bundled(interpreter, cache) or _own()
    names = ["pip"]
    if interpreter.version[:2] <= _WITH_SETUPTOOLS:
        names += ["setuptools", "pkg_resources", "_distutils_hack"]
    for name in names if package else ():
        assert package is not None
        for source in (package.parent / name, *package.parent.glob(f"{name}-*.dist-info")):
            if source.is_dir():
                (tools / source.name).symlink_to(source)
    layouts.add_paths(layout, "tools", [tools])
    layouts.add_scripts(layout, _SCRIPTS)


def _bundled(interpreter: Interpreter, cache: Path) -> Path | None:
    """Return the package of the wheel that `ensurepip` would install, None where the interpreter has none."""
    wheel = next(iter(sorted(interpreter.wheels.glob("pip-*.whl"))), None) if interpreter.wheels else None
    if wheel is None:
        return None
    folder = cache / wheel.stem
    if not folder.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(wheel) as archive, temporary.folder("tmp", within=cache) as room:
            archive.extractall(room)
            room.rename(folder)
    return folder / "pip"


def _own() -> Path | None:
    """Return the pip of the interpreter that runs this."""
    spec = importlib.util.find_spec("pip")
    return Path(spec.origin).parent if spec and spec.origin else None


def variables(cache: Path) -> dict[str, str]:
    """Return what pip gets to know through its environment: wheels are kept in `cache`, and it installs where it is run, nowhere else."""
    return {
        "PIP_CACHE_DIR": str(cache / "wheels"),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_INPUT": "1",
        "PIP_NO_COMPILE": "1",  # all is compiled afterwards, in one way
        "PIP_USER": "0",
        "PIP_TARGET": "",
        "PIP_PREFIX": "",
        "PIP_ROOT": "",
    }


def run(  # noqa: PLR0913 (most of them say where)
    layout: Layout, arguments: Sequence[str], folder: Path, environment: Mapping[str, str], log: Path, *, timeout_s: float = TIMEOUT_S
) -> str | None:
    """Run pip in `folder` for an environment, with `variables` in its own; return the end of its output where it fails, else None."""
    wheels = Path(environment["PIP_CACHE_DIR"])
    wheels.mkdir(parents=True, exist_ok=True)
    os.utime(wheels)  # its age is the time since it was used
    command = shlex.join([str(layout.python), "-m", "pip", *arguments])
    with (
        temporary.folder() as room,
        logs.bounded(log) as output,
        processes.running(command, folder, {**environment, "TMPDIR": str(room)}, stdout=output, stderr=output) as pip,
    ):
        is_done = processes.succeeds(pip, timeout_s)
    return None if is_done else "\n".join(log.read_text(errors="replace").splitlines()[-_TAIL_LINES:])
