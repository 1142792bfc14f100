"""Print what a sampled call costs in ns with 0, 1, 4 and 8 events read at its start and its end, through the real libpapi.

Software-defined events of the program's own, and hardware events where there is a PMU (else the kernel's, which are read by the same system
call). Beside them a budget: how many calls a second can be sampled within 2 % of a CPU. Needs gcc and libpapi.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from perfdiff.collect.hosts import counters
from perfdiff.languages.c import runtime_library
from perfdiff.records import plan, recording
from perfdiff.records.plan import Mode, ProbePlan
from studies.probe import BARE, PROBE, PROGRAM, ns_per_call
from studies.support import figures

EVENTS = (0, 1, 4, 8)
RUNS = {"quick": 3, "short": 5, "full": 15}
BATCHES, BATCH = 41, 250
CALLS = BATCHES * BATCH  # all are kept, as counters are read of those alone
OVERHEAD = 0.02  # the default of [probes] overhead
# Events that cost the same to read whatever they count: of a PMU, else of the kernel.
HARDWARE = ("PAPI_TOT_INS", "PAPI_TOT_CYC", "PAPI_L1_DCM", "PAPI_BR_MSP", "PAPI_BR_INS", "PAPI_L2_TCM", "PAPI_TLB_DM", "PAPI_L3_TCM")
KERNEL = (
    *("perf::PAGE-FAULTS", "perf::CONTEXT-SWITCHES", "perf::CPU-MIGRATIONS", "perf::MINOR-FAULTS", "perf::MAJOR-FAULTS"),
    *("perf::TASK-CLOCK", "perf::CPU-CLOCK", "perf::CGROUP-SWITCHES"),
)
# The program of `probe`, with eight counters of its own.
REGISTERED = """
#include <sde_lib.h>
static long long counts[8];
__attribute__((constructor)) static void count(void)
{
    static const char *const names[] = {"A", "B", "C", "D", "E", "F", "G", "H"};
    papi_handle_t handle = papi_sde_init("bench");
    for (int i = 0; i < 8; i++)
        papi_sde_register_counter(handle, names[i], PAPI_SDE_RO | PAPI_SDE_INSTANT, PAPI_SDE_long_long, &counts[i]);
}
"""
DEFINED = tuple(f"sde:::bench::{letter}" for letter in "ABCDEFGH")


def kinds() -> dict[str, Sequence[str]]:
    """Return the events to be read, by what they are; those that this machine counts."""
    states = {trial.event: trial.state for trial in counters.attempt((*HARDWARE, *KERNEL))}
    counted = [event for event in HARDWARE if states[event] is counters.State.COUNTED]
    found: dict[str, Sequence[str]] = {"software-defined": DEFINED}
    if counted:
        return found | {"hardware": counted}
    return found | {"of the kernel": [event for event in KERNEL if states[event] is counters.State.COUNTED]}


def measure(folder: Path, runs: int) -> dict[tuple[str, int], float]:
    """Return ns a sampled call by kind and number of events; 0 events: with those of the system alone, and without any."""
    library = runtime_library.build("gcc", folder / "runtime")
    sizes = (f"-DBATCHES={BATCHES}", f"-DBATCH={BATCH}")
    programs = {}
    for name, header, flags in (("plain", "#define PROBE\n", ()), ("probed", PROBE, ("-L", library, "-lperfdiff"))):
        (folder / f"{name}.h").write_text(header)
        (folder / f"{name}.c").write_text(REGISTERED + PROGRAM)
        command: list[str | Path] = [
            "gcc",
            "-O2",
            *sizes,
            "-I",
            library,
            "-include",
            folder / f"{name}.h",
            folder / f"{name}.c",
            "-o",
            folder / name,
        ]
        subprocess.run([*command, *flags, f"-Wl,-rpath,{library}", "-lsde"], check=True)
        programs[name] = folder / name
    rows: dict[tuple[str, int], list[float]] = {}
    wanted = {(kind, number): events[:number] for kind, events in kinds().items() for number in EVENTS if 0 < number <= len(events)}
    for run in range(runs):
        rows.setdefault((BARE, 0), []).append(ns_per_call(programs["plain"]))
        rows.setdefault(("none read", 0), []).append(sampled(programs["probed"], folder / f"{run}-none", (), detail=False))
        rows.setdefault(("of the system", 0), []).append(sampled(programs["probed"], folder / f"{run}-system", (), detail=True))
        for (kind, number), events in wanted.items():
            out = folder / f"{run}-{kind}-{number}"
            rows.setdefault((kind, number), []).append(sampled(programs["probed"], out, events, detail=True))
    bare = min(rows.pop((BARE, 0)))
    return {key: min(costs) - bare for key, costs in rows.items()}


def sampled(program: Path, out: Path, events: Sequence[str], *, detail: bool) -> float:
    """Run once with all calls sampled and return ns a call; fails where an event was not counted."""
    out.mkdir()
    plan.write(out / "plan", {1: ProbePlan(Mode.SAMPLE, reservoir=CALLS, features=3, detail=detail)})
    steering: Mapping[str, str] = {"PERFDIFF_OUT": str(out), "PERFDIFF_PLAN": str(out / "plan")}
    cost = ns_per_call(program, **steering, **({"PERFDIFF_EVENTS": ",".join(events)} if events else {}))
    (file,) = out.glob("*.pdrec")
    assert set(events) <= set(recording.read(file).samples[1].counters)
    shutil.rmtree(out)
    return cost


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--size", choices=RUNS, default="short", help="how much is run (default: short)")
    options = parser.parse_args()
    with figures.printed("A sampled call with events", "events", "number", "ns a call", "calls a second within 2 %") as table:
        with tempfile.TemporaryDirectory() as folder:
            costs = measure(Path(folder), RUNS[options.size])
        for (kind, number), cost in costs.items():
            table.add(kind, str(number), f"{cost:.0f}", f"{OVERHEAD * 1e9 / cost:,.0f}")
        table.remarks.append(
            "Three features a call, and its record written to fresh memory. The events of the system (CPU time, page faults, switches)"
            " are read with all others."
        )
