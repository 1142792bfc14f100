"""What the kernel tells of a run and of the machine meanwhile: waiting for CPUs, what was written, and what others did."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path

_QUOTA = Path("/sys/fs/cgroup/cpu.max")  # of a container: "max" or microseconds, and of how many
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
MACHINE_WINDOW_S = 0.2  # /proc/stat counts in ticks of 10 ms; below 20 of them a share means nothing


def delay_ns(process: int | str) -> float:
    """Return for how long a process, which may have ended if nobody waited for it, had waited for a CPU; 0 where the kernel does not tell.

    It goes by its number, and this thread by `thread-self`.
    """
    try:
        return float(Path(f"/proc/{process}/schedstat").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return 0.0


def transfers(process: int) -> Mapping[str, int]:
    """Return what a process that has ended, and those that it waited for, read and wrote by system calls; nothing where nobody counts.

    By the names of proc_pid_io(5): `rchar` and `wchar` are bytes, `syscr` and `syscw` calls.
    """
    try:
        lines = Path(f"/proc/{process}/io").read_text().splitlines()
    except OSError:
        return {}
    return {name: int(number) for name, _, number in (line.partition(":") for line in lines)}


def resident_bytes(process: int) -> float:
    """Return the memory that a process has, pages that it shares with others included; 0 where it is gone."""
    try:
        return float(Path(f"/proc/{process}/statm").read_text().split()[1]) * _PAGE_BYTES
    except (OSError, IndexError):
        return 0.0


def shared_bytes(process: int) -> float:
    """Return the memory that a process has, of pages that it shares its share (PSS); 0 where it is gone or of another user."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return next((1024.0 * int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0.0)


def waited_us() -> int | None:
    """Return for how long, since boot, some process has waited for a CPU (pressure stall information), or None where nobody counts."""
    try:
        line = Path("/proc/pressure/cpu").read_text().split("\n", 1)[0]
        return int(line.rpartition("total=")[2])
    except (OSError, ValueError):
        return None


def machine_ticks() -> tuple[int, int, int] | None:
    """Return (busy, stolen, all) ticks of all CPUs since boot, or None where the system does not tell."""
    try:
        numbers = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    except (OSError, ValueError):
        return None
    user, nice, system, idle, iowait, irq, softirq, steal = numbers
    busy = user + nice + system + irq + softirq
    return busy, steal, busy + idle + iowait + steal


def foreign_load(
    before: tuple[int, int, int] | None, after: tuple[int, int, int] | None, elapsed_ns: float, cpu_ns: float
) -> tuple[float | None, float | None]:
    """Return (CPUs busy with others, share of time stolen) between two readings."""
    if before is None or after is None or elapsed_ns < MACHINE_WINDOW_S * 1e9:
        return None, None
    busy, stolen, total = (late - early for early, late in zip(before, after, strict=True))
    if total <= 0:
        return None, None
    cpus = os.cpu_count() or 1
    return max(0.0, busy / total * cpus - cpu_ns / elapsed_ns), stolen / total


def idle_cpus() -> float:
    """Return how many of the CPUs that programs may use are idle, as far as the next moments tell; 0 where the system does not."""
    before, started = machine_ticks(), time.perf_counter_ns()
    time.sleep(MACHINE_WINDOW_S)
    load, stolen = foreign_load(before, machine_ticks(), time.perf_counter_ns() - started, 0.0)
    if load is None or stolen is None:
        return 0.0
    return min((os.cpu_count() or 1) * (1.0 - stolen) - load, granted_cpus())


def granted_cpus() -> float:
    """Return how many CPUs programs may use at once, as far as the system tells: a container may grant less than there are."""
    cpus = float(len(os.sched_getaffinity(0)))
    try:
        quota, period = _QUOTA.read_text().split()
        return cpus if quota == "max" else min(cpus, float(quota) / float(period))
    except (OSError, ValueError):
        return cpus
