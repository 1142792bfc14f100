"""Print what calls of built-ins and of the standard library take where calls are counted, beside what they take in a plain run.

Of a plain run: the least of several runs, by the clock, over all calls; of a counted one what its recording says. Interpreters are those
named as arguments, or the one that runs this. Needs gcc and the interpreters' headers.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import python_programs
import runtimes
from perfdiff.languages.python import extension, interpreters, places, start
from perfdiff.languages.python import sheet as probe_sheet
from perfdiff.records import plan, recording
from perfdiff.records.plan import Mode, ProbePlan
from studies.support import figures

RUNS = 3
CALLS = 300
PROGRAM = """
import copy, hashlib, json, random, re, sys, textwrap, time
DATA = {"a": [1, 2, {"b": "c" * 20}], "d": list(range(30))}
TEXT = "lorem ipsum dolor sit amet " * 20
NUMBERS = [random.Random(1).random() for _ in range(2000)]
PATTERN = re.compile("[aeiou]+")
def deepcopy(i):
    copy.deepcopy(DATA)
def dumps(i):
    json.dumps(DATA)
def in_order(i):
    sorted(NUMBERS)
def compiled(i):
    re.compile("a{%d}b[^c]*d|e%d" % (i, i))
def replaced(i):
    PATTERN.sub("x", TEXT)
def filled(i):
    textwrap.fill(TEXT, 40)
def digested(i):
    hashlib.sha256(b"abc" * 2000)
for function in (deepcopy, dumps, in_order, compiled, replaced, filled, digested):
    begun = time.perf_counter_ns()
    for i in range(int(sys.argv[1])):
        function(i)
    print(function.__name__, (time.perf_counter_ns() - begun) / int(sys.argv[1]))
"""
OUTSIDE = {
    "deepcopy": "copy.deepcopy",
    "dumps": "json.dumps",
    "in_order": "sorted",
    "compiled": "re.compile",
    "replaced": "re.Pattern.sub",
    "filled": "textwrap.fill",
    "digested": "_hashlib.openssl_sha256",
}


def main() -> None:
    interpreters = [Path(path) for path in sys.argv[1:]] or [Path(sys.executable)]
    with figures.printed(
        "What calls of built-ins take in counted runs", "Python", "function", "plain, µs", "counted, µs", "ratio"
    ) as table:
        for python in interpreters:
            with tempfile.TemporaryDirectory() as temporary:
                measure(table, python, Path(temporary))


def measure(table: figures.Table, python: Path, folder: Path) -> None:
    """Add the rows of one interpreter."""
    functions = {f"main.py::{name}": () for name in OUTSIDE}
    program = python_programs.program(folder, python, {"main.py": PROGRAM}, functions)
    own = python_programs.environment(folder / "venv", python)
    runs = [plain(own, program.tree) for _ in range(RUNS)]
    counted = recorded(program, own, folder)
    for number, (name, outside) in enumerate(OUTSIDE.items(), 1):
        least = min(run[name] for run in runs)
        timed, ns = counted.library_ns.get((number, outside), (0.0, 0.0))
        told = (f"{ns / timed / 1e3:.1f}", f"{ns / timed / least:.2f}") if timed else ("not timed", "")
        table.add(interpreters.described(str(python)).release, outside, f"{least / 1e3:.1f}", *told)


def plain(python: Path, tree: Path) -> dict[str, float]:
    """Return the ns of a call of each function in a run without perfdiff."""
    ended = subprocess.run([python, "main.py", str(CALLS)], cwd=tree, capture_output=True, text=True, check=True)
    return {name: float(ns) for name, ns in (line.split() for line in ended.stdout.splitlines())}


def recorded(program: python_programs.Program, python: Path, folder: Path) -> recording.Recording:
    """Return what a counted run recorded."""
    module = extension.build_counting(python, runtimes.library(), "gcc", runtimes.KEPT)
    reader = places.places(program.tree, {"main.py": "main"}, places.PythonLineCounter(python, module, {}), folder / "lines.sheet")
    entry = ProbePlan(Mode.SAMPLE, reservoir=CALLS, own=True)
    plan.write(folder / "plan", {probe.id: entry for probe in program.probes})
    sheet = folder / "sheet"
    probe_sheet.write(sheet, program.probes, {"main.py": [program.tree / "main.py"]})
    steering = {"PERFDIFF_OUT": str(folder), "PERFDIFF_PLAN": str(folder / "plan"), **start.counting(sheet, reader.sheet, module)}
    subprocess.run([python, "main.py", str(CALLS)], cwd=program.tree, env=os.environ | steering, capture_output=True, check=True)
    (found,) = folder.glob("*.pdrec")
    return recording.read(found)
