"""Small Java programs for tests of the index and of matching: written, compiled with the JDK that is there, and indexed."""

from __future__ import annotations

import functools
import os
import subprocess
import tempfile
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

from perfdiff.languages.java import jdks
from perfdiff.languages.java.index import index
from perfdiff.languages.java.jdks import Jdk
from perfdiff.languages.java.matching import match
from perfdiff.languages.protocol import Counterpart, FunctionDefinition, Program


def jdk() -> Jdk:
    """Return the JDK that the tests run with; without one they fail, and say what is missing."""
    return jdks.find(os.environ)


@functools.cache
def helpers() -> Path:
    """Return the folder of our own compiled programs, the same for all tests of a process."""
    folder = tempfile.TemporaryDirectory(prefix="perfdiff-java-")
    _FOLDERS.append(folder)
    return Path(folder.name)


_FOLDERS: list[tempfile.TemporaryDirectory[str]] = []


def write(tree: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write a tree of files, texts without their common indent."""
    for name, text in files.items():
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else textwrap.dedent(text).encode())
    return tree


def compile_all(tree: Path, options: Sequence[str] = (), *, into: str = "classes", under: str = ".") -> None:
    """Compile the Java files of a tree, or of a folder of it."""
    sources = sorted(str(path) for path in (tree / under).rglob("*.java"))
    ended = subprocess.run(
        [jdk().javac, "-J-XX:TieredStopAtLevel=1", "-nowarn", "-proc:none", *options, "-d", tree / into, *sources],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr


def read(tree: Path, *, depth: int = 2, cache: Path | None = None) -> Program:
    """Index a tree whose Java files are compiled."""
    return index(tree, jdk(), depth=depth, cache=cache, helpers=helpers())


def program(tree: Path, files: Mapping[str, str | bytes], *, depth: int = 2, options: Sequence[str] = ()) -> Program:
    """Write a tree, compile its Java files into `classes` and index it."""
    compile_all(write(tree, files), options)
    return read(tree, depth=depth)


def compared(
    folder: Path, base: Mapping[str, str | bytes], head: Mapping[str, str | bytes], options: Sequence[str] = ()
) -> list[Counterpart]:
    """Write and compile both sides, and return their functions in pairs."""
    first, second = program(folder / "base", base, options=options), program(folder / "head", head, options=options)
    return list(match(first, second))


def by_name(found: Program) -> dict[str, FunctionDefinition]:
    """Return the functions of a program by their names."""
    return {one.name: one for one in found.functions.values()}


def callees(found: Program, name: str) -> set[str]:
    """Return the names of the functions that a function may call."""
    return {found.functions[key].name for key in by_name(found)[name].calls}


def used(found: Program, name: str) -> set[str]:
    """Return what a function depends on, as reports name it."""
    return {str(found.declarations[key].entity) for key in by_name(found)[name].uses}


def features(found: Program, name: str) -> dict[str, str]:
    """Return the features of a function: their names and how they are read."""
    return {plan.name: plan.expression for plan in by_name(found)[name].features}
