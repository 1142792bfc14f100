"""Build systems, known by the files they leave at the top of a source tree."""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from perfdiff.languages.installed import installed


@dataclass(frozen=True, slots=True)
class BuildSystem:
    """A build system, the file that gives it away, and the shell command that builds an optimised program from a fresh tree."""

    name: str
    file: str
    command: str

    def switched(self, options: Collection[str]) -> str:
        """Return the command with options of the project for what configures, which stands before what compiles."""
        configuring, _, compiling = self.command.rpartition(" && ")
        return f"{configuring} {shlex.join(options)} && {compiling}"


# The generators stand before make: a checkout in which one of them ran holds a Makefile that a fresh tree does not have.
KNOWN = (
    BuildSystem("cmake", "CMakeLists.txt", "cmake -S . -B build -DCMAKE_BUILD_TYPE=Release && cmake --build build --parallel $(nproc)"),
    BuildSystem("meson", "meson.build", "meson setup build --buildtype=release && ninja -C build"),
    BuildSystem("autotools", "autogen.sh", "(test -x configure || NOCONFIGURE=1 ./autogen.sh) && ./configure && make -j$(nproc)"),
    BuildSystem("autotools", "configure.ac", "(test -x configure || autoreconf -fi) && ./configure && make -j$(nproc)"),
    BuildSystem("autotools", "configure.in", "(test -x configure || autoreconf -fi) && ./configure && make -j$(nproc)"),
    BuildSystem("configure", "configure", "./configure && make -j$(nproc)"),
    BuildSystem("make", "GNUmakefile", "make -j$(nproc)"),
    BuildSystem("make", "makefile", "make -j$(nproc)"),
    BuildSystem("make", "Makefile", "make -j$(nproc)"),
)
# Where nothing stands at the top, as in a library of headers: what makes programs of it, its tests before others.
_BELOW = tuple(
    BuildSystem("make", f"{folder}/{name}", f"make -C {folder} -j$(nproc)")
    for folder in ("test", "tests", "src")
    for name in ("GNUmakefile", "makefile", "Makefile")
)

_COMPILED = (".c", ".cc", ".cpp", ".cxx", ".C")
_OTHERS = ("vendor", "node_modules", ".git")  # folders of a tree that hold none of its own sources
_MOST_FILES = 20_000  # that are looked at in search of a source


def detect(tree: Path) -> BuildSystem | None:
    """Return the build system of a source tree, or None where none of the known files stands at its top.

    Makefiles in folders of tests and sources count where nothing at the top says how the project is built.
    """
    is_packaged = any((tree / name).is_file() for traits in installed() for name in traits.files.packaging)
    systems = KNOWN if is_packaged else (*KNOWN, *_BELOW)
    return next((system for system in systems if (tree / system.file).is_file()), None)


def guessed(command: str) -> BuildSystem | None:
    """Return the build system that guessed this command, if projects may add options to it; else None."""
    return next((system for system in KNOWN if system.command == command and system.name != "make"), None)


def compiles(tree: Path) -> bool:
    """Return whether a build system in a tree makes programs: where all there is is make, it may start tests and tools alone.

    It makes programs where there are sources in C or C++, or more than can be looked at.
    """
    system = detect(tree)
    if system is None or system.name != "make":
        return system is not None
    seen = 0
    for _, folders, names in os.walk(tree):
        folders[:] = [folder for folder in folders if folder not in _OTHERS]
        seen += len(names)
        if seen > _MOST_FILES or any(name.endswith(_COMPILED) for name in names):
            return True
    return False
