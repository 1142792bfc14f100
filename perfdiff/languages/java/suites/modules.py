"""The modules of a built Java project: where their classes lie, and what their build has on the class path of tests.

Maven and Gradle tell that themselves, offline and without compiling anything. Elsewhere it is the jars of the tree, and those that the
command of the build names.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfdiff.languages.java import class_bytes
from perfdiff.languages.java.classes import FOREIGN_FOLDERS

_MOST_FILES = 20_000  # of a tree, that are looked at in search of classes and jars
_FRAMEWORK = re.compile(rb"org/junit/|junit/framework/")
_JAR = re.compile(r"[^\s:;\"'=]+\.jar\b")


@dataclass(frozen=True, slots=True)
class Module:
    """A module: its `folder` in the project (`.`: all of it), and the folders of its test classes among those of its class path.

    Paths are those that hold in its folder. `options` are those that its build gives the JVMs of tests, `names` the pattern of names that
    test classes have for it.
    """

    folder: str
    tests: tuple[str, ...]
    class_path: tuple[str, ...]
    options: tuple[str, ...] = ()
    names: str | None = None

    def path(self, entry: str) -> Path:
        """Return where an entry of the class path is, from the project's folder."""
        return Path(self.folder, entry)


@dataclass(frozen=True, slots=True)
class Modules:
    """The modules of a project, and why its build did not tell of them, "" where it did."""

    modules: tuple[Module, ...]
    problem: str = ""


def module(folder: Path, tests: Sequence[str], class_path: Sequence[str], options: Sequence[str] = (), names: str | None = None) -> Module:
    """Return a module whose build named absolute paths: those in the project are told from its own folder."""
    project = Path.cwd()

    def placed(path: str) -> str:
        return os.path.relpath(path, folder) if Path(path).is_relative_to(project) else path

    return Module(
        os.path.relpath(folder, project),
        tuple(placed(path) for path in tests if Path(path).is_dir()),
        tuple(placed(path) for path in class_path),
        tuple(options),
        names,
    )


def plain(build: str) -> Module:
    """Return the classes and jars of the current folder, and the jars that the command of its build names, as one module."""
    classes, jars = _classes_and_jars()
    own = [jar for jar in jars if not any(jar.startswith(f"{folder}/") for folder in classes)]
    named = [jar for jar in _JAR.findall(build) if jar.startswith("/") and Path(jar).is_file()]
    tests = [folder for folder in classes if any(map(_names_a_framework, Path(folder).glob("**/*.class")))]
    return Module(".", tuple(tests or classes), (*classes, *own, *dict.fromkeys(named)))


def _names_a_framework(file: Path) -> bool:
    """Return whether a class refers to JUnit, as classes of tests do."""
    return _FRAMEWORK.search(file.read_bytes()) is not None


def files(project: Path, most: int = _MOST_FILES) -> Iterator[Path]:
    """Yield the files of a project, but for those that its tools keep for themselves."""
    return itertools.islice(_walked(project), most)


def _walked(project: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(project):
        folders[:] = sorted(name for name in folders if name not in FOREIGN_FOLDERS)
        yield from (Path(folder, name) for name in sorted(names))


def _classes_and_jars() -> tuple[list[str], list[str]]:
    roots: dict[str, None] = {}
    jars: list[str] = []
    for path in files(Path()):
        if path.suffix == ".jar":
            jars.append(path.as_posix())
        elif path.suffix == ".class" and not any(path.is_relative_to(root) for root in roots):
            root = _root(path)
            if root is not None:
                roots[root] = None
    return list(roots), jars


def _root(path: Path) -> str | None:
    """Return the folder that a class file lies in by its package, None where it lies in none."""
    try:
        name = class_bytes.name_of(path.read_bytes())
    except (OSError, class_bytes.DamagedClassError):
        return None
    depth = name.count("/")
    is_there = path.as_posix().endswith(f"{name}.class")
    return path.parents[depth].as_posix() if is_there and depth < len(path.parents) else None
