"""What Gradle knows of the source sets of a built project: a script of ours asks it, offline and without compiling anything."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from perfdiff import temporary
from perfdiff.languages import listing
from perfdiff.languages.java.buildtools import GRADLE
from perfdiff.languages.java.suites.modules import Module, Modules, module

FILES = ("settings.gradle", "settings.gradle.kts", "build.gradle", "build.gradle.kts")
_SCRIPT = Path(__file__).parent / "driver" / "modules.gradle"
_ASKING = ("--offline", "--no-daemon", "-q", "-Dorg.gradle.configuration-cache=false", "perfdiffModules")
_AGENT = ("-javaagent:", "-agentlib:", "-agentpath:")


def modules(project: Path) -> Modules:
    """Return the source sets of tests of all modules."""
    program = GRADLE.command(project, Path.home())
    with temporary.folder("perfdiff-gradle-") as room:
        answer = room / "modules"
        asked = listing.tried((program, "-I", str(_SCRIPT), f"-Dperfdiff.modules={answer}", *_ASKING), listing.limit_s() / 2, project)
        lines = answer.read_text(encoding="utf-8").splitlines() if answer.is_file() else []
    problem = next((line for line in asked.errors.splitlines() if line.strip().startswith(">")), f"Gradle exited {asked.code}")
    sets = tuple(_modules(lines))
    return Modules(sets, "" if sets else f"Gradle does not tell its class path: {problem.strip(' >')}")


def _modules(lines: list[str]) -> Iterator[Module]:
    for line in lines:
        source_set = json.loads(line)
        options = [word for word in source_set["options"] if not word.startswith(_AGENT)]
        yield module(Path(source_set["folder"]), source_set["tests"], source_set["classPath"], options)
