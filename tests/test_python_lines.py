"""Exact counts of lines of Python code: in any number of processes and threads, however they end, under every interpreter that is there."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

import python_lines
import python_programs
from perfdiff.errors import RecordingError
from python_lines import Project

pytestmark = pytest.mark.integration

SORT = """\
import sys

def swap(x, j):
    t = x[j]  # swapped
    x[j] = x[j + 1]
    x[j + 1] = t

def sort(x):
    n = len(x)
    for i in range(n):  # passes
        for j in range(n - i - 1):  # steps
            if x[j] > x[j + 1]:  # compares
                swap(x, j)

n = int(sys.argv[1])
sort(sorted(range(n), reverse=len(sys.argv) == 2))
"""
WORK = "def work(n):\n    for i in range(n):\n        i + 1  # body\n"
BODY = "i + 1  # body"

Make = Callable[[Mapping[str, str]], Project]


@pytest.fixture(params=python_programs.VERSIONS)
def python(request: pytest.FixtureRequest) -> Path:
    found = python_programs.interpreter(request.param)
    if found is None:
        pytest.skip(f"needs Python {request.param}")
    return found


@pytest.fixture
def make(tmp_path: Path, python: Path) -> Make:
    """Make a project for the interpreter of this test."""

    def made(sources: Mapping[str, str]) -> Project:
        return python_lines.project(tmp_path, python, sources)

    return made


def program(make: Make, main: str) -> Project:
    """Make a project of `work` and a main program."""
    return make({"work.py": WORK, "main.py": f"from work import work\n{main}"})


def test_bubble_sort_is_counted_to_the_last_swap(make: Make) -> None:
    project = make({"sort.py": SORT})
    backwards = project.run("$PYTHON sort.py 100", "backwards")
    assert [backwards.of(f"# {text}") for text in ("passes", "steps", "compares", "swapped")] == [101, 5050, 4950, 4950]
    sorted_ = project.run("$PYTHON sort.py 100 sorted", "sorted")
    assert [sorted_.of(f"# {text}") for text in ("passes", "steps", "compares", "swapped")] == [101, 5050, 4950, 0]
    nothing = project.run("true", "nothing")
    assert set(nothing.by_place.values()) == {0}
    assert {place.function for place in project.reader.places} == {"sort.<module>", "sort.sort", "sort.swap"}
    assert project.reader.sources["sort.py"][3] == "    t = x[j]  # swapped"


def test_two_runs_count_the_same(make: Make) -> None:
    project = make({"main.py": "import json, re\nfor n in range(50):\n    re.sub('a|b', json.dumps, str({n: [n]})) # each\n" + SORT[11:]})
    first, second = (project.run("$PYTHON main.py 40", name) for name in ("first", "second"))
    assert first.by_place == second.by_place
    assert first.of("# each") == 50


def test_processes_of_a_run_add_up(make: Make) -> None:
    project = program(make, "import sys\nwork(int(sys.argv[1]))\n")
    counts = project.run("$PYTHON main.py 3; for i in 1 2 3 4; do $PYTHON main.py 100 & done; wait; cd /; $PYTHON $OLDPWD/main.py 5")
    assert (counts.of(BODY), counts.lost) == (408, 0)


def test_threads_are_counted_whoever_starts_them(make: Make) -> None:
    main = """\
import _thread, threading
threads = [threading.Thread(target=work, args=(20000,)) for _ in range(4)]
done = _thread.allocate_lock()
done.acquire()
def alone():
    work(7)
    done.release()
for thread in threads: thread.start()
_thread.start_new_thread(alone, ())
for thread in threads: thread.join()
done.acquire()
"""
    assert program(make, main).run("$PYTHON main.py").of(BODY) == 80_007


ENDS = {
    "sys.exit": ("sys.exit(3)", 3),
    "exception": ("raise KeyError", 1),
    "_exit": ("os._exit(4)", 4),
    "abort": ("os.abort()", -6),
    "terminated": ("os.kill(os.getpid(), signal.SIGTERM)", -15),
    "killed": ("os.kill(os.getpid(), signal.SIGKILL)", -9),
    "exec": ("os.execv('/bin/true', ['true'])", 0),
    "exec of another": ("os.execv(sys.executable, [sys.executable, '-c', 'from work import work; work(3)'])", 0),
}


def test_counts_outlive_every_end(make: Make) -> None:
    cases = "".join(f"if case == {number}: {text}\n" for number, (text, _) in enumerate(ENDS.values()))
    project = program(make, f"import os, signal, sys\nwork(7)\ncase = int(sys.argv[1])\n{cases}")
    for number, (name, (_, status)) in enumerate(ENDS.items()):
        counts = project.run(f"exec $PYTHON main.py {number}", f"end{number}")
        expected = 10 if name == "exec of another" else 7
        assert (name, counts.status, counts.of(BODY), counts.lost) == (name, status, expected, 0)


def test_children_begin_at_nothing(make: Make) -> None:
    main = """\
import multiprocessing, os, subprocess
work(100)
if os.fork() == 0:
    work(10)
    os._exit(0)
os.wait()
subprocess.run(["true"], preexec_fn=os.getpid)
for method in ("fork", "spawn"):
    context = multiprocessing.get_context(method)
    with context.Pool(2) as pool:
        pool.map(work, [1000, 1000])
"""
    guarded = "def main():\n" + "".join(f"    {line}\n" for line in main.splitlines()) + 'if __name__ == "__main__":\n    main()\n'
    counts = program(make, guarded).run("$PYTHON main.py")
    assert (counts.of(BODY), counts.lost, counts.output) == (4110, 0, "")


def test_line_belongs_to_the_function_that_it_stands_in(make: Make) -> None:
    text = """\
class Box:
    size = 3  # class body

    def items(self):
        return [i for i in range(self.size)]  # comprehension

    def lazily(self):
        def inner(n):
            yield n  # nested
            yield n + 1
        return inner(self.size)  # made


double = lambda n: 2 * n  # bound

async def ask():
    return 1  # awaited

def run():
    import asyncio
    asyncio.run(ask())
    list(Box().lazily())
    Box().items()
    double(2)

run()
"""
    counts = make({"box.py": text}).run("$PYTHON box.py")
    functions = {
        word: {place.function.removeprefix("box."): count for place, count in counts.by_place.items() if f"# {word}" in place.text}
        for word in ("class body", "comprehension", "nested", "made", "bound", "awaited")
    }
    comprehended = functions.pop("comprehension")
    assert comprehended.keys() == {"Box.items"}
    assert functions == {
        "class body": {"<module>": 1},
        "nested": {"Box.lazily.inner": 1},
        "made": {"Box.lazily": 1},
        "bound": {"<module>": 1, "<lambda>": 1},
        "awaited": {"ask": 1},
    }
    assert comprehended["Box.items"] in (4, 5)  # the comprehension begins, and each of its steps; below 3.12 it has a frame of its own


def test_loops_within_a_line_count_their_steps(make: Make) -> None:
    text = """\
n = 50
made = [i for i in range(n)]  # list
found = {i: [j for j in range(i)] for i in range(n)}  # nested
total = sum(i for i in range(n))  # generator
while n: n -= 1  # while
"""
    counts = make({"main.py": text}).run("$PYTHON main.py")
    assert all(50 <= counts.of(f"# {word}") <= 53 for word in ("list", "generator", "while"))
    assert 50 * 49 // 2 + 50 <= counts.of("# nested") <= 50 * 49 // 2 + 50 * 3 + 2


def test_other_code_is_not_counted_but_runs(make: Make) -> None:
    project = program(make, "import json\nexec('work(2)')\nprint(json.loads('[1]'))\nwork(len(json.dumps({'a': [1]})))\n")
    counts = project.run("$PYTHON main.py")
    assert (counts.of(BODY), counts.output) == (12, "[1]\n")
    assert {place.file for place in counts.by_place} == {"main.py", "work.py"}


def test_file_that_does_not_compile_has_no_lines(make: Make) -> None:
    project = make({"work.py": WORK, "broken.py": "def f(:\n"})
    assert {place.file for place in project.reader.places} == {"work.py"}
    assert project.run("$PYTHON -c 'from work import work; work(3)'").of(BODY) == 3


def test_deep_recursion_goes_on(make: Make, request: pytest.FixtureRequest) -> None:
    # From 3.11 on calls from Python to Python take no C stack, and with an evaluator of frames they do.
    depth = 8_000 if "3.10" in request.node.name else 50_000
    main = (
        f"import sys\nsys.setrecursionlimit(10**6)\ndef deep(n):\n    return deep(n - 1) if n else 0  # deeper\nwork(deep({depth}) + 3)\n"
    )
    counts = program(make, main).run("$PYTHON main.py")
    assert (counts.status, counts.of("# deeper"), counts.of(BODY)) == (0, depth + 1, 3)


def test_program_that_traces_itself_keeps_its_trace(make: Make) -> None:
    main = "import sys\nseen = []\nsys.settrace(lambda *event: seen.append(event[1]))\nwork(3)\nsys.settrace(None)\nprint(seen)\nwork(4)\n"
    counts = program(make, main).run("$PYTHON main.py")
    assert counts.output == "['call']\n"
    # From 3.12 on both have a place of their own; below, what was traced is missed, and the run says so.
    assert (counts.of(BODY), counts.lost) in ((7, 0), (4, 1))


def test_damaged_counts_are_refused(make: Make) -> None:
    project = program(make, "work(3)\n")
    project.run("$PYTHON main.py")
    (path,) = (project.room / "run").glob("*.lines")
    with path.open("r+b") as file:
        file.truncate(30)
    with pytest.raises(RecordingError, match="damaged"):
        project.reader.read(project.room / "run")


def test_process_without_room_is_missed(make: Make) -> None:
    project = program(make, "work(3)\n")
    counts = project.run("ulimit -f 0; $PYTHON main.py; true")
    assert counts.lost == 1
    shutil.rmtree(project.room / "run")
