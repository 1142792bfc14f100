"""Print how many times longer counted runs of Java programs take, and whether their counts repeat.

Base of each fixture program that javac alone builds, at its largest input: as it is, with all methods counted and kept as the survey's
chosen ones are, with all methods counted in sum, and with lines counted. Kinds take turns; a figure is the least of several runs. Programs
are those named as arguments, or all. Needs gcc and a JDK from 11 to 23.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Mapping
from pathlib import Path

import java_programs
from perfdiff.languages.c import runtime_library
from perfdiff.languages.java import agent, counting, places, start, weaving
from perfdiff.languages.java.index import index
from perfdiff.languages.java.jdks import Jdk
from perfdiff.languages.protocol import Probe
from perfdiff.records import plan, recording
from perfdiff.records.plan import ProbePlan
from programs import JAVA, Case, cases
from studies.support import figures

RUNS = 3
BARE, KEPT, SUMS, LINES = "as it is", "calls counted, and kept", "calls counted, in sum", "lines counted"


def main() -> None:
    jdk = java_programs.jdk()
    chosen = [case for case in cases(JAVA) if (not sys.argv[1:] or case.name in sys.argv[1:]) and _arguments(case)]
    slowdowns: dict[str, list[float]] = {KEPT: [], SUMS: [], LINES: []}
    with figures.printed("What counting takes in Java", "program", "as it is, s", *slowdowns, "counts repeat") as table:
        for case in chosen:
            with tempfile.TemporaryDirectory() as temporary:
                times, repeats = measure(case, jdk, Path(temporary))
            for kind, ratios in slowdowns.items():
                ratios.append(times[kind] / times[BARE])
            shown = (f"{ratios[-1]:.1f} times" for ratios in slowdowns.values())
            table.add(case.name, f"{times[BARE]:.2f}", *shown, "yes" if repeats else "no")
        medians = ", ".join(f"{kind} {statistics.median(ratios):.1f}" for kind, ratios in slowdowns.items() if ratios)
        table.remarks.append(f"Median: {medians}. Elapsed time of a run, JVM's start included, least of {RUNS}; Java {jdk.release}.")


def _arguments(case: Case) -> list[str]:
    """Return what the JVM is given at the largest input, nothing of a program that some tool builds."""
    workload = tomllib.loads((case.folder / "perfdiff.toml").read_text())["workload"][0]
    words = workload["command"].replace("{n}", str(max(workload["parameters"]["n"]))).split()
    return words[1:] if words[1] == "-cp" else []


def measure(case: Case, jdk: Jdk, folder: Path) -> tuple[Mapping[str, float], bool]:
    """Return the seconds of a run of each kind, and whether two counted runs counted the same."""
    tree = folder / "tree"
    shutil.copytree(case.folder / "base", tree)
    sources = [str(path) for path in tree.rglob("*.java")]
    subprocess.run([jdk.javac, "-d", tree / "build", *sources], check=True)
    kept = folder / "kept"
    functions = [each for each in index(tree, jdk, depth=2, cache=None, helpers=kept).functions.values() if each.obstacle is None]
    probes = [Probe(number, each, tuple(range(len(each.features))), ()) for number, each in enumerate(functions, 1)]
    woven = counting.weave(jdk, tree, [weaving.method_of(probe) for probe in probes], kept)
    runtime = runtime_library.build_timed("gcc", kept)
    counted = start.counting(woven.sheet, woven.outside, agent.build_counting(jdk, runtime, "gcc", kept))
    reader = places.places(jdk, tree, functions, places.JvmLineCounter(agent.build_lines(jdk, "gcc", kept), ""), kept)
    out, times, seen = folder / "out", dict.fromkeys((BARE, KEPT, SUMS, LINES), float("inf")), []
    for _ in range(RUNS):
        for kind in times:
            shutil.rmtree(out, ignore_errors=True)
            out.mkdir()
            entry = ProbePlan.counted(reservoir=1000) if kind == KEPT else ProbePlan.sums()
            plan.write(out / "plan", {probe.id: entry.sized(features=len(probe.features), branches=0) for probe in probes})
            steering = {"PERFDIFF_OUT": str(out), "PERFDIFF_PLAN": str(out / "plan"), "PERFDIFF_SEED": "1", **counted}
            variables = {BARE: {}, LINES: reader.environment(out)}.get(kind, steering)
            begun = time.perf_counter()
            subprocess.run([jdk.java, *_arguments(case)], cwd=tree, env=os.environ | variables, check=True, capture_output=True)
            times[kind] = min(times[kind], time.perf_counter() - begun)
            if kind == SUMS:
                seen.append(_counts(out))
    return times, all(each == seen[0] for each in seen)


def _counts(out: Path) -> object:
    """Return all that a run counted and that no chance is in."""
    (found,) = [recording.read(path) for path in out.glob("*.pdrec")]
    totals = found.totals
    rows = {name: sums.tolist() for name, sums in totals.counters.items() if name not in ("collections", "heap_bytes")}
    order = sorted(range(len(totals.probe)), key=lambda row: totals.probe[row])
    return [[totals.probe[row], totals.calls[row], *(sums[row] for sums in rows.values())] for row in order], dict(found.library)
