"""Small Python projects whose lines are counted, in an environment of their own."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from perfdiff.languages.python import places
from perfdiff.records.places import Place

KEPT = Path(__file__).parent.parent / "build" / "python-lines"
SOURCES = Path(places.__file__).parent / "lines"
HOOK = (
    'import os; "PERFDIFF_PYTHON" in os.environ and (lambda imp, module: imp.exec_dynamic(imp.create_dynamic(module)))'
    '(__import__("_imp"), __import__("_frozen_importlib").ModuleSpec("_perfdiff", None, origin=os.environ["PERFDIFF_EXTENSION"]))\n'
)
VERSIONS = ("3.10", "3.11", "3.12", "3.13", "3.14")


@dataclass(frozen=True, slots=True)
class Counts:
    """What one run counted, how many processes were `lost`, and how the run ended."""

    by_place: Mapping[Place, int]
    lost: int
    status: int
    output: str

    def of(self, text: str, function: str | None = None) -> int:
        """Return the count of the only place whose line holds `text`, in a function where one is named."""
        (found,) = [count for place, count in self.by_place.items() if text in place.text and function in (None, place.function)]
        return found


@dataclass(frozen=True, slots=True)
class Project:
    """A tree of Python files, the interpreter of its environment, and what reads its counts; `room` is for its runs."""

    tree: Path
    python: Path
    room: Path
    reader: places.Places
    extension: Path

    def run(self, command: str, name: str = "run") -> Counts:
        """Run a shell command in the tree, with `$PYTHON` as its interpreter, and return what it counted."""
        folder = self.room / name
        folder.mkdir()
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        environment |= {**self.reader.environment(folder), "PERFDIFF_EXTENSION": str(self.extension), "PYTHON": str(self.python)}
        ended = subprocess.run(
            ["/bin/sh", "-c", command], cwd=self.tree, env=environment, capture_output=True, text=True, timeout=60, check=False
        )
        counts = self.reader.read(folder).tolist()
        by_place = dict(zip(self.reader.places, counts, strict=True))
        return Counts(by_place, self.reader.lost(folder), ended.returncode, ended.stdout + ended.stderr)


def project(room: Path, python: Path, sources: Mapping[str, str]) -> Project:
    """Write `sources` to a tree beside an environment of the interpreter `python`."""
    tree = (room / "tree").resolve()
    for name, text in sources.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    (room / "runs").mkdir()
    files = {name: name.removesuffix(".py").replace("/", ".") for name in sources}
    reader = places.places(tree, files, {}, python, room / "lines.sheet")
    return Project(tree, environment(room / "venv", python), room / "runs", reader, library(python))


def environment(folder: Path, python: Path) -> Path:
    """Make an environment that loads what counts where a run asks for it; return its interpreter."""
    subprocess.run([python, "-m", "venv", "--without-pip", folder], check=True, capture_output=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "_perfdiff.pth").write_text(HOOK)
    return folder / "bin" / "python"


def interpreters() -> list[Path]:
    """Return the interpreter that runs the tests, and one of each other version that PATH has."""
    own = Path(sys.base_prefix) / "bin" / f"python{sysconfig.get_python_version()}"
    named = [shutil.which(f"python{version}") for version in VERSIONS if version != sysconfig.get_python_version()]
    return [own, *(found for each in named if each and (found := _behind(each)))]


def _behind(named: str) -> Path | None:
    """Return the interpreter that a command stands for; None where it is a version manager's that has none."""
    ended = subprocess.run([named, "-c", "import sys; print(sys.executable)"], capture_output=True, text=True, check=False)
    return Path(ended.stdout.strip()) if ended.returncode == 0 else None


@functools.cache
def library(python: Path) -> Path:
    """Return what counts under an interpreter, compiled."""
    asked = "import sys, sysconfig; print(sys.hexversion, sysconfig.get_path('include'))"
    version, include = subprocess.run([python, "-c", asked], capture_output=True, text=True, check=True).stdout.split()
    made = KEPT / f"_perfdiff_{version}.so"
    made.parent.mkdir(parents=True, exist_ok=True)
    flags = ["-std=gnu11", "-D_GNU_SOURCE", "-O2", "-g", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra", "-Werror"]
    flags.append("-Wno-missing-field-initializers")
    files = sorted(map(str, SOURCES.glob("*.c")))
    subprocess.run(["gcc", "-shared", *flags, f"-I{include}", *files, "-o", str(made), "-lpthread", "-Wl,-z,nodelete"], check=True)
    return made
