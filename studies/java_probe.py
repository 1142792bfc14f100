"""Print what a call of a Java method costs in ns beyond itself, per kind of recording, and what the agent adds to a JVM's start.

A run warms up, times many short batches of calls and gives the median; a figure is the least of several runs, less the same for the program
without probes. The kinds take turns, so that a busy machine disturbs all alike. JDKs are those whose folders are named as arguments, or
that of JAVA_HOME or PATH. Needs gcc.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import java_programs
from perfdiff.languages.c import runtime_library
from perfdiff.languages.java import agent, jdks, start, weaving
from perfdiff.languages.java.jdks import Jdk
from perfdiff.languages.protocol import Probe
from perfdiff.records import plan
from perfdiff.records.plan import Mode, ProbePlan
from studies.support import figures

RUNS = 5
STARTS = 15
BUDGET_NS = 100.0  # for a call with time and three features
BUDGET_START_S = 0.3

PROGRAM = """
import java.util.*;
class Main {
    static class Box { String name = "box"; List<Integer> items = new ArrayList<>(List.of(1, 2, 3)); }
    static long sum;
    static int called(int n, List<Integer> values, Box box) { return n + 1; }
    static void batch(List<Integer> values, Box box) { for (int n = 0; n < 10000; n++) sum += called(n, values, box); }
    public static void main(String[] arguments) {
        List<Integer> values = new ArrayList<>(List.of(1, 2));
        long[] found = new long[arguments.length == 0 ? 151 : 0];
        Box box = new Box();
        for (int i = 0; i < 2 * found.length; i++) batch(values, box);
        for (int i = 0; i < found.length; i++) {
            long begun = System.nanoTime();
            batch(values, box);
            found[i] = System.nanoTime() - begun;
        }
        Arrays.sort(found);
        if (found.length > 0) System.out.println(found[75] / 10000.0);
    }
}
"""
METHOD = "Main called (ILjava/util/List;LMain$Box;)I"
FEATURES = ("number arg0", "length arg1", "length arg2.Main$Box#items#Ljava/util/List;")
BARE = "without probes"
KINDS = {
    "off, by the plan": ProbePlan(Mode.OFF),
    "count": ProbePlan(Mode.COUNT),
    "time, one call in 256, the others pass": ProbePlan(Mode.TIME, period=256, passing=True),
    "time": ProbePlan(Mode.TIME),
    "time + 3 features, reservoir of 1000": ProbePlan(Mode.SAMPLE, reservoir=1000, features=3),
    "time + 3 features, all calls kept": ProbePlan(Mode.SAMPLE, reservoir=1_000_000, features=3),
}


def main() -> None:
    named: Sequence[str | None] = sys.argv[1:] or [None]
    found = [jdks.find(os.environ, home) for home in named]
    with tempfile.TemporaryDirectory() as temporary:
        with figures.printed("What a probed call of a Java method costs", "Java", "calls", "ns beyond the call") as table:
            for jdk in found:
                measure(table, jdk, Path(temporary))
            table.remarks.append(f"Budget of a call with time and three features: {BUDGET_NS:.0f} ns. Elapsed time, least of {RUNS} runs.")
        with figures.printed("What the agent adds to a JVM's start", "Java", "start", "ms") as table:
            for jdk in found:
                measure_start(table, jdk, Path(temporary))
            table.remarks.append(f"Budget: {BUDGET_START_S:.1f} s. Median of {STARTS} starts of each kind, in turn.")


def steering(jdk: Jdk, folder: Path, kind: str) -> Mapping[str, str]:
    """Write the plan of a kind, and return the variables that lead to it; weave and compile what is not there yet."""
    tree = folder / jdk.release
    if not tree.exists():
        java_programs.compiled(tree, jdk, {"Main.java": PROGRAM})
    definition = java_programs.definition(METHOD, FEATURES)
    library = agent.build(jdk, runtime_library.build_timed("gcc", folder), "gcc", folder)
    probe = Probe(1, definition, tuple(range(len(FEATURES))), ())
    sheet = weaving.weave(jdk, tree, [weaving.method_of(probe)], folder)
    if kind == BARE:
        return {}
    plan.write(folder / "plan", {1: KINDS[kind]})
    return {"PERFDIFF_OUT": str(folder), "PERFDIFF_PLAN": str(folder / "plan"), **start.environment(sheet, library)}


def run(jdk: Jdk, folder: Path, kind: str, *arguments: str) -> str:
    """Return what one run of a kind prints."""
    command: list[str | Path] = [jdk.java, "-cp", folder / jdk.release, "Main", *arguments]
    ended = subprocess.run(command, env=os.environ | steering(jdk, folder, kind), capture_output=True, check=True, text=True)
    for left in folder.glob("*.pdrec"):
        left.unlink()
    return ended.stdout


def measure(table: figures.Table, jdk: Jdk, folder: Path) -> None:
    """Add the rows of one JDK."""
    names = (BARE, *KINDS)
    least = dict.fromkeys(names, float("inf"))
    for _ in range(RUNS):
        for name in names:
            least[name] = min(least[name], float(run(jdk, folder, name)))
    table.add(jdk.release, "the call itself, inlined", f"{least[BARE]:.1f}")
    for name in names[1:]:
        table.add(jdk.release, name, f"{least[name] - least[BARE]:+.1f}")


def measure_start(table: figures.Table, jdk: Jdk, folder: Path) -> None:
    """Add what a JVM takes that ends at once, without the agent and with it."""
    kinds = (BARE, "off, by the plan", "time + 3 features, reservoir of 1000")
    taken: dict[str, list[float]] = {kind: [] for kind in kinds}
    for _ in range(STARTS):
        for kind in kinds:
            variables = os.environ | steering(jdk, folder, kind)
            begun = time.perf_counter()
            subprocess.run([jdk.java, "-cp", folder / jdk.release, "Main", "-"], env=variables, capture_output=True, check=True)
            taken[kind].append(time.perf_counter() - begun)
    bare = statistics.median(taken[BARE])
    table.add(jdk.release, BARE, f"{1e3 * bare:.0f}")
    for kind in kinds[1:]:
        table.add(jdk.release, f"with the agent, {kind}", f"{1e3 * (statistics.median(taken[kind]) - bare):+.0f}")
