"""The virtual machine of a JDK: what it says of itself, and what is fixed of it in all runs, by which those of a pair would differ."""

from __future__ import annotations

import functools
import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from perfdiff.languages.answers import answer

OPTIONS = "JAVA_TOOL_OPTIONS"  # which every JVM reads, whoever starts it

_ASKING = ("-Xlog:gc:stderr", "-XshowSettings:all", "-version")
_PROCESSORS = re.compile(r"^\s*Effective CPU Count: (\d+)", re.MULTILINE)
_COLLECTOR = re.compile(r"\bUsing (G1|Serial|Parallel|The Z Garbage Collector|Shenandoah|Epsilon|Concurrent Mark Sweep)\b")
_HEAP = re.compile(r"^\s*Max\. Heap Size(?: \(Estimated\))?: (\S+)", re.MULTILINE)
_NAME = re.compile(r"^\s*java\.vm\.name = (.+?)(?: 64-Bit| \d+-Bit|$)", re.MULTILINE)
# Runs that are made at the same time share one CPU. A JVM that sees a single one takes another collector and fewer threads than it takes
# for the user: it is told of as many as it sees without that.
# Tried and left as they are: a heap that is as large from the start as it may get, and no file of figures for other programs (UsePerfData).
# In 12 pairs each of three programs, made at the same time, times of a pair differed by 1 to 2 % with and without them (JDK 17, 2 cores,
# November 2026), and the large heap took 5 to 15 % more of CPU.
_SEES = "-XX:ActiveProcessorCount="
_CALM = "-Xbatch -XX:ParallelGCThreads=1"


@dataclass(frozen=True, slots=True)
class Jvm:
    """A JVM: its name, the CPUs that it would use, its garbage collector and largest heap, None where it does not say."""

    name: str
    processors: int
    collector: str | None
    heap: str | None


def ask(home: Path, environment: Mapping[str, str]) -> Jvm:
    """Return what the machine of the JDK in a folder says; where it says nothing, how many CPUs this process may use."""
    return _asked(home, environment.get(OPTIONS, ""), len(os.sched_getaffinity(0)))


@functools.lru_cache
def _asked(home: Path, options: str, processors: int) -> Jvm:
    try:
        ended = answer([home / "bin/java", *_ASKING], environment={"LC_ALL": "C", OPTIONS: options})
        text = ended.stderr + ended.stdout
    except (OSError, subprocess.TimeoutExpired):
        text = ""
    count, name, collector, heap = (pattern.search(text) for pattern in (_PROCESSORS, _NAME, _COLLECTOR, _HEAP))
    return Jvm(
        name=name[1].strip() if name else "OpenJDK",
        processors=int(count[1]) if count else processors,
        collector=collector[1].replace("The Z Garbage Collector", "ZGC") if collector else None,
        heap=heap[1] if heap else None,
    )


def fixed(home: Path, environment: Mapping[str, str]) -> str:
    """Return the options that the JVMs of the JDK in a folder get beside the user's own; nothing where those say it."""
    if _SEES in environment.get(OPTIONS, ""):
        return ""
    return f"{_SEES}{ask(home, environment).processors}"


def variables(home: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variable of JVMs' options: ours, then the user's, which prevail; those of a command line prevail over both."""
    options = " ".join(filter(None, [fixed(home, environment), environment.get(OPTIONS, "")]))
    return {OPTIONS: options} if options else {}


def calm(home: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the same of JVMs in which methods wait for the compiler, and one thread collects: what is parallel then is the program."""
    return {OPTIONS: f"{_CALM} {variables(home, environment).get(OPTIONS, '')}".rstrip()}
