"""A virtual environment by its files (PEP 405): made without starting an interpreter, and without `venv`, which distributions leave out."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from perfdiff.languages.python.interpreters import Interpreter

# Follows the path files of a folder as those of the folder that the line stands in: isolated builds of pip take out again what these add.
_FOLLOWED = 'import site; site.addsitedir({folder!r}, locals().get("known_paths"))'
# Path files are read in the order of their names. A revision's own modules come before those of the same name that something else brought.
_PATH_FILES = {name: f"_perfdiff_{number}_{name}.pth" for number, name in enumerate(("hook", "project", "packages", "tools"))}
_SCRIPT = """\
{start}
import sys
from {module} import {first}
sys.exit({called}())
"""
_LONGEST_SHEBANG = 127  # bytes of a first line that every kernel reads


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the parts of a virtual environment lie."""

    folder: Path
    site_packages: Path

    @property
    def programs(self) -> Path:
        """Return the folder of its interpreter and scripts."""
        return self.folder / "bin"

    @property
    def python(self) -> Path:
        """Return its interpreter."""
        return self.programs / "python"


def make(folder: Path, interpreter: Interpreter) -> Layout:
    """Make an empty virtual environment in a new folder; raise OSError."""
    layout = Layout(folder, folder / interpreter.site_packages)
    layout.programs.mkdir(parents=True)
    layout.site_packages.mkdir(parents=True)
    (folder / "include").mkdir()
    (folder / "lib64").symlink_to("lib")
    layout.python.symlink_to(interpreter.executable)
    major, minor, _ = interpreter.version
    for name in ("python3", f"python{major}.{minor}"):
        (layout.programs / name).symlink_to("python")
    (folder / "pyvenv.cfg").write_text(
        f"home = {interpreter.executable.parent}\ninclude-system-site-packages = false\nversion = {interpreter.release}\n"
        f"executable = {interpreter.executable}\n"
    )
    return layout


def add_paths(layout: Layout, name: str, folders: Iterable[Path]) -> None:
    """Have an environment find modules in further folders, too: of the `project`, its `packages`, or `tools`, in this order.

    Where a folder of packages has path files of its own, they are followed.
    """
    lines = [_FOLLOWED.format(folder=str(folder)) if any(folder.glob("*.pth")) else str(folder) for folder in folders]
    if lines:
        _write_path_file(layout, name, "".join(f"{line}\n" for line in lines))


def add_hook(layout: Layout, text: str) -> None:
    """Have each start of an environment's interpreter run lines of Python that begin with `import`.

    In virtual environments, CPython runs them twice.
    """
    _write_path_file(layout, "hook", text)


def add_package(layout: Layout, name: str, folder: Path) -> None:
    """Copy the modules of a package into an environment, under a name of its own."""
    target = layout.site_packages / name
    target.mkdir(exist_ok=True)
    for module in folder.glob("*.py"):
        shutil.copyfile(module, target / module.name)


def add_scripts(layout: Layout, scripts: Mapping[str, str]) -> None:
    """Write programs by name that call an object, as entry points name it: `package.module:object`."""
    for name, value in scripts.items():
        module, _, called = (part.strip() for part in value.partition("[")[0].partition(":"))
        if module and called:
            text = _SCRIPT.format(start=_start(layout.python), module=module, first=called.partition(".")[0], called=called)
            _write_program(layout.programs / Path(name).name, text.encode())


def adopt_scripts(layout: Layout, other: Layout) -> None:
    """Make the programs of another environment available in this one, to run under this one's interpreter."""
    for program in sorted(other.programs.iterdir()):
        target = layout.programs / program.name
        if target.exists() or not program.is_file():
            continue
        with program.open("rb") as file:
            start = file.read(2)
        if start != b"#!":
            target.symlink_to(program)
            continue
        content = program.read_bytes()
        _write_program(target, content.replace(str(other.python).encode(), str(layout.python).encode(), 1))


def _write_path_file(layout: Layout, name: str, text: str) -> None:
    (layout.site_packages / _PATH_FILES[name]).write_text(text)


def _start(python: Path) -> str:
    """Return the lines with which a script begins that an interpreter runs, wherever that lies."""
    if len(str(python)) + 2 <= _LONGEST_SHEBANG and " " not in str(python):
        return f"#!{python}"
    return f"#!/bin/sh\n'''exec' {shlex.quote(str(python))} \"$0\" \"$@\"\n' '''"


def _write_program(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    file.chmod(0o755)
