"""What is measured of a call: costs by name, with their units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Metric:
    """One measured cost of a call, or of all calls of a run. `noisy` metrics (times) differ from run to run; the others are counts.

    `what` is measured, or counted as it is `executed`; of a function's `own` it is without that of probed callees.
    """

    name: str
    unit: str  # "ns", "bytes" or "count"
    noisy: bool
    what: str
    per_call: bool = True
    own: bool = False
    executed: bool = False

    @property
    def counts(self) -> str:
        """Return the metric's name without a word on whether callees are included."""
        return f"{self.what} executed" if self.executed else self.what

    @property
    def says(self) -> str:
        """Return the name of the metric in words, such as `time, callees included`."""
        return f"{self.counts}, without probed callees'" if self.own else self.counts


METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("wall_ns", "ns", True, "time, callees included"),
        Metric("self_ns", "ns", True, "time without the probed callees'"),
        Metric("cpu_ns", "ns", True, "CPU time of the thread, callees included"),
        Metric("alloc_bytes", "bytes", False, "bytes allocated"),
        Metric("alloc_count", "count", False, "allocations"),
        Metric("callee_calls", "count", False, "calls to probed functions"),
        Metric("lock_wait_ns", "ns", True, "time waiting for locks"),
        Metric("lock_hold_ns", "ns", True, "time holding locks"),
        Metric("page_faults", "count", True, "page faults"),
        Metric("switches", "count", True, "context switches"),
        Metric("run_ns", "ns", True, "time of all its calls in a run, callees included", per_call=False),
        Metric("lines", "count", False, "lines", own=True, executed=True),
        Metric("bytecode_blocks", "count", False, "basic blocks of bytecode", own=True, executed=True),
        Metric("opcodes", "count", False, "instructions of the interpreter", own=True, executed=True),
        Metric("objects", "count", False, "objects made", own=True),
        Metric("object_bytes", "bytes", False, "bytes of objects made", own=True),
        Metric("peak_bytes", "bytes", False, "most memory in use at once, beyond what was at its start, callees included"),
        Metric("heap_bytes", "bytes", True, "bytes allocated by the runtime's own counter", own=True),
        Metric("collections", "count", True, "collections of garbage", own=True),
        Metric("collecting_ns", "ns", True, "time of these collections, in counted runs"),
        Metric("blocks", "count", False, "basic blocks", own=True, executed=True),
        Metric("loads", "count", False, "loads", own=True),
        Metric("stores", "count", False, "stores", own=True),
        Metric("atomics", "count", False, "atomic operations", own=True),
        Metric("divisions", "count", False, "divisions and square roots", own=True),
        Metric("l1d_misses", "count", True, "L1 data cache misses", own=True),
        Metric("l2_misses", "count", True, "L2 cache misses", own=True),
        Metric("llc_misses", "count", True, "last-level cache misses", own=True),
        Metric("hitm", "count", True, "lines fetched that another thread had modified"),
        Metric("hitm_false", "count", True, "of these, lines of which the other thread had modified other bytes"),
        Metric("remote_dram", "count", True, "lines fetched from another node's memory"),
    )
}

# What counted runs alone count: the software PMU, interpreters and virtual machines.
COUNTED = tuple(METRICS)[tuple(METRICS).index("lines") :]


ACCESSES = ("loads", "stores")
MISSES = ("llc_misses", "l2_misses", "l1d_misses")  # dearest first
# Events that are counted here as well as by names of their own: every access counts once, where it was served.
WITHIN: Mapping[str, tuple[str, ...]] = {
    "l1d_misses": ("l2_misses",),
    "l2_misses": ("llc_misses", "hitm"),
    "llc_misses": ("remote_dram",),
    "hitm": ("hitm_false",),
}
# Events that the kernel counts of a thread (PERF_COUNT_SW_… of perf_event_open(2)), by number: unit, and what they are.
_OF_THE_KERNEL: Mapping[int, tuple[str, str]] = {
    0: ("ns", "time on a CPU by the kernel's CPU clock"),
    1: ("ns", "time on a CPU by the kernel's task clock"),
    2: ("count", "page faults by the kernel's count"),
    3: ("count", "context switches by the kernel's count"),
    4: ("count", "migrations to another CPU"),
    5: ("count", "page faults without a disk by the kernel's count"),
    6: ("count", "page faults that wait for a disk"),
}
# PAPI's names of them, and their numbers.
KERNEL_EVENTS: Mapping[str, int] = {
    f"perf::{name}": number
    for number, names in enumerate(
        (
            ("CPU-CLOCK", "PERF_COUNT_SW_CPU_CLOCK"),
            ("TASK-CLOCK", "PERF_COUNT_SW_TASK_CLOCK"),
            ("PAGE-FAULTS", "FAULTS", "PERF_COUNT_SW_PAGE_FAULTS"),
            ("CONTEXT-SWITCHES", "CS", "PERF_COUNT_SW_CONTEXT_SWITCHES"),
            ("CPU-MIGRATIONS", "MIGRATIONS", "PERF_COUNT_SW_CPU_MIGRATIONS"),
            ("MINOR-FAULTS", "PERF_COUNT_SW_PAGE_FAULTS_MIN"),
            ("MAJOR-FAULTS", "PERF_COUNT_SW_PAGE_FAULTS_MAJ"),
        )
    )
    for name in names
}


def metric_of(name: str) -> Metric:
    """Return what is known of a metric; a name that is no metric of ours is that of an event, the kernel's or the hardware's."""
    if name in KERNEL_EVENTS:
        unit, what = _OF_THE_KERNEL[KERNEL_EVENTS[name]]
        return Metric(name, unit, True, what)
    return METRICS.get(name) or Metric(name, "count", True, f"{name} counted by the hardware")


def included(counter: str) -> tuple[str, ...]:
    """Return a counter and all others whose events are among its own."""
    return (counter, *(name for other in WITHIN.get(counter, ()) for name in included(other)))
