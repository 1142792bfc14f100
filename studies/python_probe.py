"""Print what a call of a Python function costs in ns beyond itself: not probed, and per kind of recording, beside cProfile.

A run times many short batches of calls in CPU time and gives the median; a figure is the least of several runs, less the same for the
program without probes. The kinds take turns, so that a busy machine disturbs all alike. Interpreters are those named as arguments, or the
one that runs this. Needs gcc and the interpreters' headers.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from perfdiff.languages.c import runtime_library
from perfdiff.languages.python import extension, interpreters, start
from perfdiff.records import plan
from perfdiff.records.plan import Mode, ProbePlan
from studies.support import figures

RUNS = 5
BUDGET_NS = 150.0  # for a call with time and three features

PROGRAM = """
import sys, time
class Box:
    def __init__(self):
        self.name, self.items = "box", [1, 2, 3]
def called(n, values, box):
    return n if n else 0
def other():
    pass
def batches(call):
    box, values, found = Box(), [1, 2], []
    for _ in range(151):
        begun = time.thread_time_ns()
        for n in range(1000):
            call(n, values, box)
        found.append(time.thread_time_ns() - begun)
    return sorted(found)[75] / 1000
if len(sys.argv) > 1:
    import cProfile
    profile = cProfile.Profile()
    profile.enable()
result = batches(called)
if len(sys.argv) > 1:
    profile.disable()
print(result)
"""
BARE, UNPROBED, PROFILED = "without probes", "not probed, beside a probed one", "cProfile"
FEATURES = ("number n", "length values", "length box.items")
CONDITION = "true 7 16 7 17"  # what `called` asks for
KINDS = {
    "off, by the plan": ProbePlan(Mode.OFF),
    "count": ProbePlan(Mode.COUNT),
    "time, one call in 256, the others pass": ProbePlan(Mode.TIME, period=256, passing=True),
    "time": ProbePlan(Mode.TIME),
    "time + 3 features, reservoir of 1000": ProbePlan(Mode.SAMPLE, reservoir=1000, features=3),
    "the same + an outcome of a condition (from 3.12 on)": ProbePlan(Mode.SAMPLE, reservoir=1000, features=3, branches=1),
    "time + 3 features, all calls": ProbePlan(Mode.SAMPLE, reservoir=1_000_000, features=3),
}


def main() -> None:
    interpreters = [Path(path) for path in sys.argv[1:]] or [Path(sys.executable)]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        runtime = runtime_library.build_timed("gcc", folder)
        with figures.printed("What a probed call of a Python function costs", "Python", "calls", "ns beyond the call") as table:
            for python in interpreters:
                measure(table, python, extension.build(python, runtime, "gcc", folder), folder)
            table.remarks.append(f"Budget of a call with time and three features: {BUDGET_NS:.0f} ns. CPU time, least of {RUNS} runs.")


def measure(table: figures.Table, python: Path, module: Path, folder: Path) -> None:
    """Add the rows of one interpreter."""
    version = interpreters.described(str(python)).release
    subprocess.run([python, "-m", "venv", "--without-pip", folder / version], check=True)
    (site,) = (folder / version).glob("lib/python3*/site-packages")
    (site / start.HOOK).write_text(start.hook())
    (folder / "main.py").write_text(PROGRAM)
    names = (BARE, UNPROBED, *KINDS, PROFILED)
    least = dict.fromkeys(names, float("inf"))
    for _ in range(RUNS):
        for name in names:
            least[name] = min(least[name], run(folder / version / "bin/python", module, folder, name))
    table.add(version, "the call itself", f"{least[BARE]:.1f}")
    for name in names[1:]:
        table.add(version, name, f"{least[name] - least[BARE]:+.1f}")


def run(python: Path, module: Path, folder: Path, name: str) -> float:
    """Return the ns of a call in one run of a kind."""
    steering = {}
    if name not in (BARE, PROFILED):
        probe, features = ("8 other", ()) if name == UNPROBED else ("6 called", FEATURES)
        lines = ("perfdiff python 1", "file __main__ main.py", f"place {folder / 'main.py'}", f"probe 1 {probe}")
        entry = KINDS.get(name, ProbePlan(Mode.COUNT))
        read = (*(f"read {each}" for each in features), *([f"branch {CONDITION}"] if entry.branches else ()))
        (folder / "sheet").write_text("".join(f"{line}\n" for line in (*lines, *read)))
        plan.write(folder / "plan", {1: entry})
        steering = {"PERFDIFF_OUT": str(folder), "PERFDIFF_PLAN": str(folder / "plan"), **start.environment(folder / "sheet", module)}
    arguments: list[str | Path] = [python, folder / "main.py", *(["profile"] if name == PROFILED else [])]
    ended = subprocess.run(arguments, env=os.environ | steering, capture_output=True, check=True)
    for left in (*folder.glob("*.pdrec"), *folder.glob("*.python")):
        left.unlink()
    return float(ended.stdout)
