"""Print what a probed call costs in ns, per kind of recording, beside uftrace with arguments on the same function.

A run times many short batches and gives the median, so that few of them are interrupted; a figure is the least of several runs,
less the same for the program without probes. The kinds take turns, so that a busy machine disturbs all alike. Needs gcc; uftrace
where there is one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from perfdiff.languages.c import runtime_library
from perfdiff.records import plan
from perfdiff.records.plan import Mode, ProbePlan
from studies.support import figures

BATCHES = 301
BATCH = 2000  # calls
RUNS = 7
BUDGET_NS = 40.0  # for a call with time and three scalar features

PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
__attribute__((noinline)) long called(long n, long k, long m) {PROBE __asm__ volatile(""); return n + k + m; }
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return (double)t.tv_sec * 1e9 + (double)t.tv_nsec; }
static int less(const void *a, const void *b) { return *(const double *)a < *(const double *)b ? -1 : 1; }
int main(void) {
    static double batches[BATCHES];
    long sum = 0;
    for (long batch = 0; batch < BATCHES; batch++) {
        double start = now();
        for (long i = 0; i < BATCH; i++) sum += called(i, 2, 3);
        batches[batch] = (now() - start) / BATCH;
    }
    qsort(batches, BATCHES, sizeof(double), less);
    printf("%f\\n", batches[BATCHES / 2]);
    return sum == 0;
}
"""
PROBE = (
    '#include "perfdiff_probe.h"\n#define PROBE PD_FRAME(1); int pd_probe_ __attribute__((unused)) = pd_enter(&pd_frame_) ? '
    "(pd_signed(&pd_frame_, 0, n), pd_signed(&pd_frame_, 1, k), pd_signed(&pd_frame_, 2, m), pd_start(&pd_frame_)) : 0;\n"
)
BARE = "without probes"
KINDS = {
    "off, no environment": None,
    "off, by the plan": ProbePlan(Mode.OFF),
    "count": ProbePlan(Mode.COUNT),
    "time, one call in 100": ProbePlan(Mode.TIME, period=100),
    "time, one call in 100, the others marked": ProbePlan(Mode.TIME, period=100, marked=True),
    "time, one call in 256, the others pass": ProbePlan(Mode.TIME, period=256, passing=True),
    "time": ProbePlan(Mode.TIME),
    "time + 3 features, reservoir of 1000": ProbePlan(Mode.SAMPLE, reservoir=1000, features=3),
}


def compiled(folder: Path, name: str, header: str, *flags: str | Path) -> Path:
    """Compile the program with `header` ahead of it."""
    (folder / f"{name}.h").write_text(header)
    (folder / "program.c").write_text(PROGRAM)
    sizes = (f"-DBATCHES={BATCHES}", f"-DBATCH={BATCH}")
    subprocess.run(["gcc", "-O2", *sizes, "-include", folder / f"{name}.h", folder / "program.c", "-o", folder / name, *flags], check=True)
    return folder / name


def ns_per_call(*command: str | Path, **steering: str) -> float:
    """Run once and return what the program printed."""
    ended = subprocess.run(command, env=os.environ | steering, capture_output=True, check=True)
    return float(ended.stdout.split()[0])


def measure(folder: Path) -> dict[str, float]:
    """Return ns a call, by kind of recording."""
    library = runtime_library.build("gcc", folder / "runtime")
    plain = compiled(folder, "plain", "#define PROBE\n")
    probed = compiled(folder, "probed", PROBE, "-I", library, "-L", library, "-lperfdiff", f"-Wl,-rpath,{library}")
    rows: dict[str, list[float]] = {}
    uftrace = shutil.which("uftrace")
    traced = compiled(folder, "traced", "#define PROBE\n", "-pg") if uftrace else None
    for run in range(RUNS):
        rows.setdefault(BARE, []).append(ns_per_call(plain))
        for number, (kind, entry) in enumerate(KINDS.items()):
            out = folder / f"{run}-{number}"
            out.mkdir()
            steering = {}
            if entry is not None:
                plan.write(folder / "plan", {1: entry})
                steering = {"PERFDIFF_OUT": str(out), "PERFDIFF_PLAN": str(folder / "plan")}
            rows.setdefault(kind, []).append(ns_per_call(probed, **steering))
            shutil.rmtree(out)
        if uftrace and traced:
            options = ["-d", str(folder / "trace"), "--no-event", "--no-libcall", "-F", "called"]
            for kind, extra in (("uftrace", []), ("uftrace, 3 arguments", ["-A", "called@arg1,arg2,arg3"])):
                rows.setdefault(kind, []).append(ns_per_call(uftrace, "record", *options, *extra, traced))
    bare = min(rows.pop(BARE))
    return {kind: min(costs) - bare for kind, costs in rows.items()}


def main() -> None:
    """Print the table."""
    with figures.printed("A probed call", "recording", "ns a call") as table, tempfile.TemporaryDirectory() as folder:
        costs = measure(Path(folder))
        for kind, cost in costs.items():
            table.add(kind, f"{cost:.1f}")
        full = costs["time + 3 features, reservoir of 1000"]
        table.remarks.append(f"Bar: {BUDGET_NS:.0f} ns with time and three features, {figures.against(full, BUDGET_NS)}.")
