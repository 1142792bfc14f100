"""What Gradle knows of the source sets of a built project: a script of ours asks it, offline and without compiling anything."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from perfdiff import temporary
from perfdiff.languages import listing
from perfdiff.languages.java.suites.modules import Module, Modules, module

FILES = ("settings.gradle", "settings.gradle.kts", "build.gradle", "build.gradle.kts")
_WRAPPER = "gradlew"
_SCRIPT = Path(__file__).parent / "driver" / "modules.gradle"
_ASKING = ("--offline", "--no-daemon", "-q", "-Dorg.gradle.configuration-cache=false", "perfdiffModules")
_AGENT = ("-javaagent:", "-agentlib:", "-agentpath:")


def modules(project: Path) -> Modules:
    """Return the source sets of tests of all modules."""
    program = f"./{_WRAPPER}" if (project / _WRAPPER).is_file() else "gradle"
    with temporary.folder("perfdiff-gradle-") as room:
        told = room / "modules"
        asked = listing.tried((program, "-I", str(_SCRIPT), f"-Dperfdiff.modules={told}", *_ASKING), listing.limit_s() / 2, project)
        lines = told.read_text(encoding="utf-8").splitlines() if told.is_file() else []
    problem = next((line for line in asked.errors.splitlines() if line.strip().startswith(">")), f"Gradle exited {asked.code}")
    sets = tuple(_modules(lines))
    return Modules(sets, "" if sets else f"Gradle does not tell its class path: {problem.strip(' >')}")


def _modules(lines: list[str]) -> Iterator[Module]:
    for line in lines:
        told = json.loads(line)
        options = [word for word in told["options"] if not word.startswith(_AGENT)]
        yield module(Path(told["folder"]), told["tests"], told["classPath"], options)
