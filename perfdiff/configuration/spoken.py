"""Which languages the programs of a project are written in, and how it is built where its configuration does not say."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfdiff.configuration import buildsystem, javaproject, phpproject, pythonproject
from perfdiff.configuration.buildsystem import BuildSystem
from perfdiff.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Spoken:
    """The languages besides C and C++, and what tells that a project needs no build: a file of it, or a command of its workloads."""

    python: bool
    java: bool
    php: bool
    sign: str | None
    is_ready: bool

    def build_system(self, tree: Path, file: Path) -> BuildSystem | None:
        """Return how a project is built, None where it needs no command; raise ConfigError, which names the configuration's `file`.

        The build system of Java's own goes first where programs are Java's, a compiler of loose sources last.
        """
        if self.is_ready:
            return None
        system = javaproject.named_build_system(tree) if self.java else None
        system = system or buildsystem.detect(tree) or (javaproject.build_system(tree) if self.java else None)
        if system is None:
            raise ConfigError(
                f"no build command is configured, and no build system is known by its files in {tree}; "
                f"write in {file} what builds the program in a fresh tree, such as:\n\n"
                '[build]\ncommand = "make"',
                slug="config-build",
            )
        return system


def recognise(place: Path, commands: Sequence[str], named: Collection[str]) -> Spoken:
    """Return the languages of the project in a folder whose workloads run `commands`; those `named` in its configuration count anyhow."""
    sign, other = pythonproject.recognise(place, commands), phpproject.recognise(place, commands)
    is_python, is_php = sign is not None or "python" in named, other is not None or "php" in named
    is_java = "java" in named or javaproject.recognise(place, commands) is not None
    # A Python project is installed without any command, and PHP runs as it lies; what is compiled beside it is built all the same.
    is_ready = is_python and not (is_java and sign in commands)
    if is_php and not is_python:
        is_ready = buildsystem.detect(place) is None and not (is_java and javaproject.build_system(place) is not None)
    return Spoken(is_python, is_java, is_php, sign or other, is_ready)
