"""The virtual machine of a JDK, as it says itself: its name, and what it takes from the machine where nobody tells it otherwise."""

from __future__ import annotations

import functools
import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

OPTIONS = "JAVA_TOOL_OPTIONS"  # which every JVM reads, whoever starts it

_ASKING = ("-Xlog:gc:stderr", "-XshowSettings:all", "-version")
_TIMEOUT_S = 60.0  # a JVM on a network drive may take seconds to start
_PROCESSORS = re.compile(r"^\s*Effective CPU Count: (\d+)", re.MULTILINE)
_COLLECTOR = re.compile(r"\bUsing (G1|Serial|Parallel|The Z Garbage Collector|Shenandoah|Epsilon|Concurrent Mark Sweep)\b")
_HEAP = re.compile(r"^\s*Max\. Heap Size(?: \(Estimated\))?: (\S+)", re.MULTILINE)
_NAME = re.compile(r"^\s*java\.vm\.name = (.+?)(?: 64-Bit| \d+-Bit|$)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Jvm:
    """A virtual machine: its name, how many CPUs it would use, its collector and the most that its heap takes, as far as it tells."""

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
        ended = subprocess.run(
            [home / "bin/java", *_ASKING],
            env={"LC_ALL": "C", OPTIONS: options},
            capture_output=True,
            check=False,
            timeout=_TIMEOUT_S,
            stdin=subprocess.DEVNULL,
        )
        text = (ended.stderr + ended.stdout).decode(errors="replace")
    except (OSError, subprocess.TimeoutExpired):
        text = ""
    told, name, collector, heap = (pattern.search(text) for pattern in (_PROCESSORS, _NAME, _COLLECTOR, _HEAP))
    return Jvm(
        name=name[1].strip() if name else "OpenJDK",
        processors=int(told[1]) if told else processors,
        collector=collector[1].replace("The Z Garbage Collector", "ZGC") if collector else None,
        heap=heap[1] if heap else None,
    )
