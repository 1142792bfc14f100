"""Java projects, known by what their workloads run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePath

from perfdiff.config import program

_PROGRAMS = re.compile(r"java|mvnw?|gradlew?|ant|jshell")


def recognise(commands: Sequence[str]) -> bool:
    """Return whether one of the `commands` of workloads starts a JVM."""
    return any(map(_runs_java, commands))


def _runs_java(command: str) -> bool:
    try:
        return _PROGRAMS.fullmatch(PurePath(program(command)).name) is not None
    except ValueError:  # a quotation is not closed, as the shell will say
        return False
