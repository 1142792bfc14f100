"""What Maven knows of the modules of a built project, as it says when it tells everything (`-X`): no plugin is needed but those of builds.

It goes as far as the phase `test`, offline, and compiles and tests nothing. Before each goal it says what the goal is given: the one that
compiles tests has their class path, the one that runs them what their JVMs are given.
"""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from perfdiff.languages import listing
from perfdiff.languages.java.buildtools import MAVEN
from perfdiff.languages.java.suites.modules import Module, Modules, module

FILE = "pom.xml"
_PROGRAM = re.compile(r"(?:.*/)?mvn[dw]?")
_ASKING = ("-o", "-X", "-B", "-Dstyle.color=never", "-Dmaven.main.skip=true", "-Dmaven.test.skip=true")
_PHASES = ("test", "test-compile")  # plugins of the later one may be missing, as builds that skip tests need none of theirs
_OF_BUILDS = re.compile(r"-D(?:skipTests|maven\.test\.skip|style\.color)\b.*|-[qXeoB]|--(?:quiet|offline|debug|errors|batch-mode)")
_TAKES_VALUE = frozenset(("-s", "-gs", "-P", "-f", "-pl", "-t", "--settings", "--global-settings", "--activate-profiles", "--file"))
_GOAL = re.compile(r"^\[DEBUG\] Configuring mojo '[^']*:maven-(compiler|surefire)-plugin:[^:']+:(testCompile|test)'")
_VALUE = re.compile(r"^\[DEBUG\] +\([fs]\) (\w+) = (.*)$")
_PROPERTY = re.compile(r"(?:^|, )([\w.-]+)=")
_ERROR = re.compile(r"^\[ERROR\] (.+)$", re.MULTILINE)
# What Surefire takes for test classes where the project says nothing.
_NAMES = r"(.*[.])?(Test[^.]*|[^.]*(Test|Tests|TestCase))"
_AGENT = ("-javaagent:", "-agentlib:", "-agentpath:")  # of coverage: what it adds is not the project's


def modules(project: Path, build: str) -> Modules:
    """Return the modules whose tests Maven compiles, with the libraries that the command of its build led to."""
    program, end = MAVEN.command(project, Path.home()), time.monotonic() + listing.limit_s() / 2
    for phase in _PHASES:
        asked = listing.tried((program, *_options(build), *_ASKING, phase), end - time.monotonic(), project)
        if asked.code in (0, None):  # what it told before it was ended is as good
            break
    compiled = tuple(_compiled(asked.output))
    error = _ERROR.search(asked.output)
    problem = (
        error[1]
        if error
        else asked.errors.strip().partition("\n")[0] or ("it takes too long" if asked.code is None else f"Maven exited {asked.code}")
    )
    return Modules(compiled, "" if compiled else f"Maven does not tell its class path: {problem}")


def _options(build: str) -> Iterator[str]:
    """Yield the options that a build's command gives Maven, which say where libraries and settings are, and which profiles are active."""
    try:
        words = shlex.split(build)
    except ValueError:
        return
    start = next((index for index, word in enumerate(words) if _PROGRAM.fullmatch(word)), len(words))
    following = iter(words[start + 1 :])
    for word in following:
        if word in ("&&", "||", ";", "|"):
            return
        if word in _TAKES_VALUE:
            yield from (word, next(following, ""))
        elif word.startswith("-") and not _OF_BUILDS.fullmatch(word):
            yield word


def _compiled(output: str) -> Iterator[Module]:
    """Yield a module for each class path, with what the goal that follows it in the same module says of JVMs."""
    goals = list(_goals(output))
    for index, (goal, values) in enumerate(goals):
        entries = [entry for entry in (values.get("testPath") or values.get("classpathElements", "")).strip("[]").split(", ") if entry]
        folder = values.get("basedir")
        if goal != "testCompile" or not entries or folder is None:
            continue
        following = goals[index + 1 :][:1]
        options = _of_jvms(following[0][1]) if following and following[0][0] == "test" else ()
        yield module(Path(folder), [values.get("outputDirectory", entries[0])], entries, options, _NAMES)


def _goals(output: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    values: dict[str, str] | None = None
    for line in output.splitlines():
        if line.startswith("[DEBUG] Configuring mojo '"):
            goal = _GOAL.match(line)
            values = {} if goal else None
            if goal and values is not None:
                yield goal[2], values
        elif values is not None and (value := _VALUE.match(line)):
            values[value[1]] = value[2]


def _of_jvms(values: Mapping[str, str]) -> tuple[str, ...]:
    """Return the options of the JVMs of tests: those of the command line that hold anywhere, and properties."""
    try:
        words = shlex.split(values.get("argLine", ""))
    except ValueError:
        words = []
    own = [word for word in words if not word.startswith(_AGENT) and not re.search(r"[@$]\{", word)]
    text = values.get("systemPropertyVariables", "").strip("{}")
    parts = _PROPERTY.split(text)[1:]
    return (*own, *(f"-D{name}={value}" for name, value in zip(parts[::2], parts[1::2], strict=True)))
