"""What is fixed in the JVMs of all runs, plain ones among them, so that the runs of a pair do not differ by it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from perfdiff.languages.java import jvms
from perfdiff.languages.java.jvms import OPTIONS

# Runs that are made at the same time share one CPU. A JVM that sees a single one takes another collector and fewer threads than it takes
# for the user: it is told of as many as it sees without that.
# Tried and left as they are: a heap that is as large from the start as it may get, and no file of figures for other programs (UsePerfData).
# In 12 pairs each of three programs, made at the same time, times of a pair differed by 1 to 2 % with and without them (JDK 17, 2 cores,
# November 2026), and the large heap took 5 to 15 % more of CPU.
_PROCESSORS = "-XX:ActiveProcessorCount="


_CALM = "-Xbatch -XX:ParallelGCThreads=1"


def fixed(home: Path, environment: Mapping[str, str]) -> str:
    """Return the options that the JVMs of the JDK in a folder get beside the user's own; nothing where those say it."""
    if _PROCESSORS in environment.get(OPTIONS, ""):
        return ""
    return f"{_PROCESSORS}{jvms.ask(home, environment).processors}"


def variables(home: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variable of JVMs' options: ours, then the user's, which prevail; those of a command line prevail over both."""
    found = " ".join(filter(None, [fixed(home, environment), environment.get(OPTIONS, "")]))
    return {OPTIONS: found} if found else {}


def calm(home: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the same of JVMs in which methods wait for the compiler, and one thread collects: what is parallel then is the program."""
    return {OPTIONS: f"{_CALM} {variables(home, environment).get(OPTIONS, '')}".rstrip()}
