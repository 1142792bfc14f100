"""The machine that measurements are taken on: processor, clock, counters, compiler."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

from perfdiff import __version__
from perfdiff.build import compilers
from perfdiff.collect.hosts import perf_events
from perfdiff.config import CacheSize, CountersConfig
from perfdiff.records.schema import Environment, Run

_CPUINFO = Path("/proc/cpuinfo")
_CLOCK_SOURCE = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
_GOVERNOR = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_NODES = Path("/sys/devices/system/node/online")
# Where the kernel does not tell, as in some virtual machines: those of a usual server.
_USUAL_CACHES = {1: CacheSize(32 * 2**10, 8), 2: CacheSize(2**20, 16), 3: CacheSize(32 * 2**20, 16)}
_LINE = 64  # bytes of a line; the software PMU knows no others
_TSC_SOURCES = ("tsc", "kvm-clock", "hyperv_clocksource_tsc_page")  # those that the kernel derives from the TSC
_COMPILE_TIMEOUT_S = 10.0
_SPARED = 0.5  # of the memory that can be had, for other work
SOFTWARE_PMU_FLAGS = ("-fsanitize=thread", "-fsanitize-coverage=trace-pc")


class Pmu(StrEnum):
    """Whether this process can count hardware events."""

    PRESENT = "present"
    ABSENT = "absent"  # the processor, or the virtual machine, has none
    FORBIDDEN = "forbidden"  # by perf_event_paranoid or a sandbox


@dataclass(frozen=True, slots=True)
class MemoryHierarchy:
    """What lies between a core and its data: first and second level of each core, the last level that all share, nodes of memory."""

    l1d: CacheSize
    l2: CacheSize
    llc: CacheSize
    nodes: int

    def setting(self) -> str:
        """Return what the runtime reads of it, in the form of `l1d=32768/8,l2=1048576/16,llc=33554432/16,line=64,nodes=1`."""
        caches = {"l1d": self.l1d, "l2": self.l2, "llc": self.llc}
        return ",".join((*(f"{name}={cache.size}/{cache.ways}" for name, cache in caches.items()), f"line={_LINE}", f"nodes={self.nodes}"))


def environment(variables: Mapping[str, str]) -> Environment:
    """Return the machine and its tools, as reports describe them; `variables` are the user's, for PATH and CC."""
    compiler = compilers.chosen(variables)
    return Environment(
        cpu=cpu(),
        cores=cores(),
        kernel=f"{platform.system()} {platform.release()}",
        governor=governor(),
        compiler=compilers.version(compiler, variables) if compiler else "none found",
        pmu=pmu() is Pmu.PRESENT,
        clock=clock(),
        perfdiff=__version__,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def cpu() -> str:
    """Return the processor's name."""
    names = (_cpuinfo(key) for key in ("model name", "Model", "CPU part"))
    return next((name for name in names if name), platform.machine())


def cores() -> int:
    """Return how many cores programs may use."""
    return len(os.sched_getaffinity(0))


def counts_in_software(compiler: Path) -> bool:
    """Return whether a compiler can build for the software PMU, which is told of each access to memory and of each basic block."""
    command = [str(compiler), "-x", "c", *SOFTWARE_PMU_FLAGS, "-c", "-", "-o", os.devnull]
    try:
        return subprocess.run(command, input=b"int x;", capture_output=True, timeout=_COMPILE_TIMEOUT_S, check=False).returncode == 0
    except (OSError, subprocess.SubprocessError):
        return False


def clock() -> str:
    """Return what the kernel keeps time by, and whether it serves as a cheap clock in user space."""
    source = _first_line(_CLOCK_SOURCE) or "unknown clock source"
    return f"{source}, {'' if has_invariant_counter() else 'no '}invariant counter"


def has_invariant_counter() -> bool:
    """Return whether the processor's counter runs at one rate in all states and on all cores, as the kernel judged it.

    On aarch64 the architecture promises it (Arm ARM, D12: the generic timer).
    """
    if platform.machine() == "aarch64":
        return True
    flags = (_cpuinfo("flags") or "").split()
    return {"constant_tsc", "nonstop_tsc"} <= set(flags) and _first_line(_CLOCK_SOURCE) in _TSC_SOURCES


def pmu() -> Pmu:
    """Try to open a counter of this thread's instructions (perf_event_open(2))."""
    try:
        os.close(perf_events.opened(perf_events.HARDWARE, perf_events.INSTRUCTIONS, user_only=True))
    except PermissionError:
        return Pmu.FORBIDDEN
    except OSError:
        return Pmu.ABSENT
    return Pmu.PRESENT


def memory(config: CountersConfig) -> MemoryHierarchy:
    """Return the caches and nodes that the software PMU has: as configured, else as the first core's, else usual ones."""
    caches = dict(_USUAL_CACHES)
    for folder in sorted(_CACHES.glob("index*")):
        if cache := _cache(folder):
            caches[cache[0]] = cache[1]
    return MemoryHierarchy(
        l1d=config.l1d or caches[1],
        l2=config.l2 or caches[2],
        llc=config.llc or caches[3],
        nodes=config.nodes or _online_nodes(),
    )


def _cache(folder: Path) -> tuple[int, CacheSize] | None:
    """Return level and size of a cache that holds data, None of any other."""
    size, ways, level = _first_line(folder / "size") or "", _number(folder / "ways_of_associativity"), _number(folder / "level")
    if _first_line(folder / "type") == "Instruction" or not size[:-1].isdecimal() or not size.endswith("K") or not ways or not level:
        return None
    return level, CacheSize(int(size[:-1]) * 2**10, ways)


def _online_nodes() -> int:
    """Return how many nodes of memory are online; the kernel writes them as `0-1,4`."""
    ranges = [part.partition("-") for part in (_first_line(_NODES) or "0").split(",")]
    return sum(int(last or first) - int(first) + 1 for first, _, last in ranges)


def _number(path: Path) -> int | None:
    text = _first_line(path) or ""
    return int(text) if text.isdecimal() else None


def has_room(runs_of: Iterable[Sequence[Run]]) -> bool:
    """Return whether one of the runs of each group can be made at the same time: their memory is half of what is available at most."""
    return sum(max((run.max_rss_bytes for run in runs), default=0.0) for runs in runs_of) <= (1 - _SPARED) * _available_bytes()


def _available_bytes() -> float:
    """Return how much memory can be had without swapping; 0 where the system does not tell."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(1024.0 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    except (OSError, ValueError, IndexError, StopIteration):
        return 0.0


def governor() -> str | None:
    """Return the frequency governor of the first core, None where the kernel does not say, as in most virtual machines."""
    return _first_line(_GOVERNOR)


def _cpuinfo(key: str) -> str | None:
    try:
        text = _CPUINFO.read_text()
    except OSError:
        return None
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name.strip() == key:
            return value.strip()
    return None


def _first_line(path: Path) -> str | None:
    try:
        return path.read_text().strip().partition("\n")[0] or None
    except OSError:
        return None
