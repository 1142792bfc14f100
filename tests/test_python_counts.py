"""What calls of Python functions do, counted without a clock: lines, and calls of what is not the project's, by name."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import python_programs
import runtimes
from perfdiff.languages.python import extension, places, start
from perfdiff.records.lasting_blocks import InterpretedLine
from perfdiff.records.plan import Mode, ProbePlan
from probed_runs import Outcome

pytestmark = pytest.mark.integration

MAIN = """\
import json, math, os, re, sys

def inner(n):
    total = 0
    for i in range(n):
        total += i
    return total

def outer(n):
    made = [inner(i) for i in range(n)]
    helper(n)
    return made

def helper(n):
    for i in range(n):
        math.sqrt(i)
        "-".join(("a", "b"))
        re.match("a", "b")
        json.dumps([i])
    try:
        int("no number")
    except ValueError:
        pass

for n in map(int, sys.argv[1:]):
    outer(n)
"""


@cache
def module(python: Path) -> Path:
    return extension.build_counting(python, runtimes.library(), "gcc", runtimes.KEPT)


@pytest.fixture(params=python_programs.VERSIONS)
def python(request: pytest.FixtureRequest) -> Path:
    found = python_programs.interpreter(request.param)
    if found is None:
        pytest.skip(f"needs Python {request.param}")
    return found


BOTH = {"main.py::inner": ["number n"], "main.py::outer": ["number n"]}


def counted(
    room: Path, python: Path, main: str, *arguments: str, probed: Mapping[str, Sequence[str]] = BOTH, lasting: bool = False
) -> Outcome:
    """Run a program with probes in some functions, all calls of which are counted and kept."""
    program = python_programs.program(room, python, {"main.py": main}, probed)
    own = python_programs.environment(room / "venv", python)
    reader = places.places(program.tree, {"main.py": "main"}, places.PythonLineCounter(own, module(python), {}), room / "lines.sheet")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(start.LINES, str(reader.sheet))
        if lasting:
            patch.setenv(start.LASTING, "1")
        ready = replace(program, python=own, module=module(python))
        return ready.run("main.py", *arguments, mode=ProbePlan(Mode.SAMPLE, reservoir=1000, own=True))


def test_each_call_has_its_own_lines(tmp_path: Path, python: Path) -> None:
    outcome = counted(tmp_path, python, MAIN, "10", "20")
    recording = outcome.only
    inner, outer = (recording.samples[number].counters["lines"].tolist() for number in (1, 2))
    assert inner == [2 * n + 3 for n in (*range(10), *range(20))]
    # Each element of `outer` is a step of a loop, and each of `helper`, which has no probe, five lines.
    assert outer[1] - outer[0] == 10 * (1 + 5)
    assert [word for word, _ in outcome.notes] == ["version"]


def test_calls_that_leave_the_project_are_counted_at_their_caller(tmp_path: Path, python: Path) -> None:
    library = counted(tmp_path, python, MAIN, "10", "20").only.library
    assert {name: library[2, name] for name in ("math.sqrt", "str.join", "re.match", "json.dumps")} == dict.fromkeys(
        ("math.sqrt", "str.join", "re.match", "json.dumps"), 30.0
    )
    # What these call is their own, also once an exception has passed.
    assert not {name for caller, name in library if caller and name.startswith(("re._", "sre", "json.enc", "isinstance"))}


def test_two_runs_count_the_same(tmp_path: Path, python: Path) -> None:
    (tmp_path / "again").mkdir()
    first, second = (counted(room, python, MAIN, "30", "7").only for room in (tmp_path, tmp_path / "again"))
    assert first.library == second.library
    assert [first.totals.counters["lines"].tolist()] == [second.totals.counters["lines"].tolist()]
    assert first.totals.counters["lines"].min() > 0


def test_child_of_a_fork_names_what_it_calls(tmp_path: Path, python: Path) -> None:
    main = MAIN + "if os.fork() == 0:\n    outer(5)\n    os._exit(0)\nos.wait()\n"
    parent, child = sorted(counted(tmp_path, python, main, "10").recordings, key=lambda one: -one.totals.calls.sum())
    assert (parent.library[2, "re.match"], child.library[2, "re.match"]) == (10.0, 5.0)
    assert child.samples[1].counters["lines"].tolist() == [2 * n + 3 for n in range(5)]


# Lines whose numbers are objects, where the interpreter tells of them: those up to 256 are made once for all.
ALLOCATING = (
    "\n" * 300
    + """\
import gc

class Kept:
    __slots__ = ("items",)

def inner(n):
    return [bytearray(1000) for _ in range(n)]

def outer(n):
    kept = Kept()
    kept.items = inner(n)
    return kept

def cyclic(n):
    for _ in range(n):
        cycle = []
        cycle.append(cycle)

def still(n):
    for i in range(n):
        i in (1, 2)
    return n

gc.disable()
gc.collect()
for n in (300, 300, 500, 1000):
    inner(n), outer(n), still(n)
gc.enable()
gc.set_threshold(100)
before = [each["collections"] for each in gc.get_stats()]
cyclic(1000)
print(sum(each["collections"] for each in gc.get_stats()) - sum(before))
"""
)


def test_each_call_has_the_memory_that_it_asks_for_itself(tmp_path: Path, python: Path) -> None:
    probed = {"main.py::inner": ["number n"], "main.py::outer": [], "main.py::still": []}
    samples = counted(tmp_path, python, ALLOCATING, probed=probed).only.samples
    inner, outer, still = (samples[number].counters["objects"] for number in (1, 2, 3))
    n, named = samples[1].cells[:, 0].view(float), np.array([300.0, 300.0, 500.0, 1000.0])
    # An object and its buffer an element, the numbers above 256, and a list that grows now and then. From 3.14 on numbers are used again.
    version = subprocess.run([python, "-c", "import sys; print(sys.version_info >= (3, 14))"], capture_output=True, text=True, check=True)
    new = 0 if version.stdout == "True\n" else 1
    least = 2 * n + new * np.maximum(n - 257, 0)
    assert ((least <= inner) & (inner <= least + 40)).all()
    assert (samples[1].counters["object_bytes"] >= 1000 * n).all()
    assert outer[1:].tolist() == [1, 1, 1], "what `inner` asks for is not its caller's"
    assert np.abs(still - new * (named - 257)).max() <= 12, "what tells of lines and frames is not the program's"


ARRAYS = """\
import sys, threading
sys.path.append(sys.argv[1])
import numpy as np

def first(n):
    return np.zeros(3)

def summed(n):
    return (np.ones(n) * 2).sum()

def other(n):
    found = np.arange(n)
    found.resize(2 * n, refcheck=False)
    return found

def still(n):
    return n

first(1)
for n in (1000, 1000, 5000):
    summed(n), still(n)
thread = threading.Thread(target=other, args=(1000,))
thread.start()
thread.join()
"""


def test_the_data_of_numpys_arrays_is_memory_of_the_call_that_asks_for_it(tmp_path: Path) -> None:
    """In every thread; with the NumPy of the tests, and their interpreter."""
    python = python_programs.interpreter()
    assert python is not None
    probed: dict[str, Sequence[str]] = {f"main.py::{name}": [] for name in ("first", "summed", "other", "still")}
    outcome = counted(tmp_path, python, ARRAYS, str(Path(np.__file__).parents[1]), probed=probed)
    _, summed, other, still = (outcome.only.samples[number].counters["object_bytes"] for number in (1, 2, 3, 4))
    sizes = np.array([1000, 1000, 5000])
    assert (summed >= 2 * 8 * sizes).all(), "an array of ones, and one of twos"
    assert (summed < 2 * 8 * sizes + 4000).all()
    assert 3 * 8 * 1000 <= other[0] < 3 * 8 * 1000 + 4000, "what it begins with, and what it is resized to"
    assert still.max() < 100


def test_collections_of_garbage_are_counted_where_they_happen(tmp_path: Path, python: Path) -> None:
    probed = {"main.py::cyclic": [], "main.py::still": []}
    outcome = counted(tmp_path, python, ALLOCATING, probed=probed)
    cyclic, still = (outcome.only.samples[number].counters["collections"] for number in (1, 2))
    assert cyclic.tolist() == [float(outcome.output)]
    assert cyclic > 0
    assert not still.any()


TIMED = """\
import copy, re, sys, time

def named(n):
    for i in range(n):
        time.sleep(0.002)
        compiles(i)
        copy.deepcopy(NESTED)
        sorted(range(100), key=identity)
        try:
            fails()
        except KeyError:
            pass

def compiles(i):
    re.compile("a{%d}b[^c]" % i)

def identity(value):
    return value

def fails():
    return {}.pop("none")

NESTED = [[1], {"a": [2]}]
usual = []
for _ in range(40):
    begun = time.perf_counter_ns()
    copy.deepcopy(NESTED)
    usual.append(time.perf_counter_ns() - begun)
named(int(sys.argv[1]))
print(sorted(usual)[20])
"""


def test_calls_that_leave_the_project_are_timed_where_no_code_of_it_runs_in_them(tmp_path: Path, python: Path) -> None:
    outcome = counted(tmp_path, python, TIMED, "40", probed={"main.py::named": []})
    took = {name: (timed, ns / timed) for (caller, name), (timed, ns) in outcome.only.library_ns.items() if caller == 1}
    # Calls that other processes may have interrupted, and of which that is not known, have no time.
    assert all(20 <= took[name][0] <= 40 for name in ("time.sleep", "re.compile", "copy.deepcopy", "dict.pop")), "one that raises has ended"
    assert took["time.sleep"][1] >= 2e6, "waiting is part of it"
    assert took["re.compile"][1] > 10_000, "it compiled another expression each time"
    assert 0.2 < took["copy.deepcopy"][1] / float(outcome.output) < 5
    assert "sorted" not in took, "in its calls the project's own function runs"


COLLECTING = """\
import gc, time

def collects(n):
    for _ in range(n):
        gc.collect()

def still(n):
    return [[i] for i in range(n)]

gc.disable()
kept = [[i] for i in range(200_000)]
begun = time.perf_counter_ns()
collects(3)
print(time.perf_counter_ns() - begun)
still(1000)
"""


def test_collections_of_garbage_are_timed_and_what_they_ask_for_is_left_out(tmp_path: Path, python: Path) -> None:
    outcome = counted(tmp_path, python, COLLECTING, probed={"main.py::collects": [], "main.py::still": []})
    counters = {number: outcome.only.samples[number].counters for number in (1, 2)}
    assert counters[1]["collections"].tolist() == [3.0]
    assert 0.5 < counters[1]["collecting_ns"][0] / float(outcome.output) <= 1
    assert counters[2]["collecting_ns"].tolist() == [0.0]
    assert counters[1]["objects"][0] < 20


KEEPING = """\
import copy, sys, weakref

kept, loops = [], []

class Node:
    def __init__(self):
        self.me = self
        self.text = "x" * 1000

def keep(n):
    for i in range(n):
        kept.append(copy.deepcopy([float(i), [i]]))

def drop(n):
    for i in range(n):
        Node()

keep(int(sys.argv[1]))
drop(100)
if len(sys.argv) > 2:
    import os
    sys.stdout.flush()
    os._exit(0)
"""


def test_what_a_program_keeps_is_told_by_the_nearest_line_of_its_own(tmp_path: Path, python: Path) -> None:
    """Deep copies are made in a library; what only refers to itself is collected."""
    probed: Mapping[str, Sequence[str]] = {"main.py::keep": []}
    few, many = (lasting_of(counted(tmp_path / str(n), python, KEEPING, str(n), probed=probed, lasting=True)) for n in (1000, 2000))
    (blocks, size), (more, larger) = few[12], many[12]
    assert more - blocks == pytest.approx(4000, abs=1000)
    assert 200_000 < larger - size < 400_000
    assert sum(size for line, (_, size) in many.items() if line in {7, 8, 16}) < 10_000


def lasting_of(outcome: Outcome) -> dict[int, tuple[int, int]]:
    (recording,) = outcome.recordings
    assert recording.lasting is not None
    return {block.site.line: (block.blocks, block.bytes) for block in recording.lasting if isinstance(block.site, InterpretedLine)}


def test_what_a_program_keeps_that_leaves_at_once_is_not_known(tmp_path: Path, python: Path) -> None:
    outcome = counted(tmp_path, python, KEEPING, "10", "leave", probed={"main.py::keep": []}, lasting=True)
    assert [recording.lasting for recording in outcome.recordings] == [None]
