"""Python programs that do what measuring does not expect run as without probes, and what cannot be seen is not told as anything."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

import python_programs
import runtimes
from perfdiff import cli, configuration, pipeline
from perfdiff.cli.exits import ExitCode
from perfdiff.languages.python.index import index
from perfdiff.progress import Silent
from perfdiff.records.recording import Recording
from perfdiff.report.sentences.catalogue import noted
from perfdiff.request import Request
from programs import git
from python_programs import Program
from test_revisions import commit

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the interpreter of an environment with the hook, of the version that the tests run under."""
    found = python_programs.interpreter()
    assert found is not None
    return python_programs.environment(tmp_path_factory.mktemp("environments") / "own", found)


def made(folder: Path, python: Path, source: str, *functions: str) -> Program:
    return python_programs.program(folder, python, {"main.py": source}, {f"main.py::{name}": () for name in functions})


def calls(record: Recording, *functions: str) -> dict[str, float]:
    """Return how often each of the probed functions was called."""
    counted = dict(zip(record.totals.probe.tolist(), record.totals.calls.tolist(), strict=True))
    return {name: counted.get(number, 0.0) for number, name in enumerate(functions, 1)}


PATCHED = """
import types

class Reader:
    def read(self): return 1
    def parse(self): return 2

def fast(self=None): return 3
def slow(self=None): return 4

def wrapped(function):
    def inner(*arguments): return function(*arguments)
    return inner

reader = Reader()
Reader.read = fast                    # another function in a class
reader.read(), reader.read()
Reader.parse = wrapped(Reader.parse)  # one around it
reader.parse()
slow.__code__ = fast.__code__         # the code of another one
slow()
reader.parse = types.MethodType(lambda self: 5, reader)
print(reader.parse(), reader.read(), slow())
"""
PATCHED_FUNCTIONS = ("Reader.read", "Reader.parse", "fast", "slow", "wrapped.inner")


def test_calls_of_patched_functions_are_those_of_the_code_that_runs(tmp_path: Path, python: Path) -> None:
    outcome = made(tmp_path, python, PATCHED, *PATCHED_FUNCTIONS).run()
    assert (outcome.status, outcome.output) == (0, "5 3 3\n")
    assert calls(outcome.only, *PATCHED_FUNCTIONS) == {
        "Reader.read": 0.0,
        "Reader.parse": 1.0,
        "fast": 5.0,
        "slow": 0.0,
        "wrapped.inner": 1.0,
    }


MADE = """
TEXT = '''
def made(n):
    return work(n) + sum(range(20000))
'''

def work(n):
    return n

def host():
    space = {"work": work}
    exec(TEXT, space)
    return space["made"](1) + eval("work(2)", space)

print(host())
"""


def test_code_that_is_made_at_run_time_counts_as_its_callers(tmp_path: Path, python: Path) -> None:
    outcome = made(tmp_path, python, MADE, "work", "host").run_undisturbed()
    assert (outcome.status, outcome.output) == (0, "199990003\n")
    assert calls(outcome.only, "work", "host") == {"work": 2.0, "host": 1.0}
    work_ns, host_ns = outcome.only.totals.self_ns.tolist()
    assert host_ns > 10 * work_ns  # which holds what was made in it
    assert dict(outcome.notes).keys() == {"version"}
    assert {each.name for each in index(tmp_path / "tree", depth=1).functions.values()} == {"main.<module>", "main.work", "main.host"}


PROFILED = """
import cProfile, pstats

def work(n):
    return sum(range(n))

profile = cProfile.Profile()
profile.enable()
work(10)
work(20)
profile.disable()
work(30)
seen = {key[2]: figures[1] for key, figures in pstats.Stats(profile).stats.items()}
print(seen["work"])
"""


def test_a_program_with_a_profiler_of_its_own_is_measured_and_profiled(tmp_path: Path, python: Path) -> None:
    outcome = made(tmp_path, python, PROFILED, "work").run()
    assert (outcome.status, outcome.output, outcome.errors) == (0, "2\n", "")
    assert calls(outcome.only, "work") == {"work": 3.0}


IMPORTING = """
table = [i % 7 for i in range(300000)]

class Heavy:
    rows = sorted(table)

def work(n):
    return sum(Heavy.rows[:n])

print(work(100))
"""


def test_an_import_that_takes_longer_than_the_run_is_a_call_of_its_own(tmp_path: Path, python: Path) -> None:
    outcome = made(tmp_path, python, IMPORTING, "<module>", "work").run_undisturbed()
    assert calls(outcome.only, "<module>", "work") == {"<module>": 1.0, "work": 1.0}
    module_ns, work_ns = outcome.only.totals.self_ns.tolist()
    assert module_ns > 100 * work_ns


BUILD = '[build-system]\nrequires = []\nbuild-backend = "own"\nbackend-path = ["."]\n'
PROJECT = '[project]\nname = "lib"\nversion = "1"\n'
FILES = {
    "perfdiff.toml": '[[workload]]\nname = "w"\ncommand = "python main.py"\n',
    "main.py": "import lib\nprint(lib.work(3))\n",
    "lib.py": "def work(n): return n\n",
}


@pytest.mark.parametrize(
    ("head", "told"),
    [
        ({"perfdiff.toml": FILES["perfdiff.toml"] + '[python]\ninterpreter = "python3.99"\n'}, ("no-interpreter", "[python] interpreter")),
        ({"pyproject.toml": PROJECT + 'dependencies = ["no-such-thing-of-ours==9"]\n'}, ("python-dependency", "no-such-thing-of-ours")),
        ({"pyproject.toml": BUILD, "own.py": "raise SystemExit('no back end today')\n"}, ("build-failed", "no back end today")),
        ({"lib.py": "def work(n) return n\n"}, ("workload-failed", "SyntaxError")),
        ({"lib.py": "import os\ndef work(n): os._exit(7)\n"}, ("workload-failed", "exited 7 (head")),
    ],
    ids=["no interpreter", "no dependency", "back end fails", "syntax error", "ends at once"],
)
def test_a_head_that_cannot_be_measured_is_neither_slower_nor_fine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], head: Mapping[str, str], told: tuple[str, str]
) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    project, cache = tmp_path / "project", tmp_path / "cache"
    project.mkdir()
    git(project, "init", "-q")
    for side, files in (("base", FILES), ("head", head)):
        commit(project, side, files)
        git(project, "tag", side)
    with pytest.raises(SystemExit) as left:
        cli.main(["base", "head", "-q", "--repo", str(project), "--cache", str(cache)])
    said, (slug, words) = capfd.readouterr(), told
    assert (left.value.code, said.out) == (ExitCode.NOT_MEASURED, "")
    assert f"[{slug}]" in said.err
    assert words in said.err
    assert "Traceback" not in said.err.partition(f"[{slug}]")[0]
    assert list(cache.glob("experiments/*")) == []


def copied(folder: Path, *, own: str = "") -> tuple[Path, Path]:
    """Return a project with the revisions `base` and `head`, whose workload imports `lib` from another place, and that place.

    `own` is what the workload does beside that.
    """
    project, other = folder / "project", folder / "other"
    project.mkdir()
    other.mkdir()
    (other / "lib.py").write_text("def work(n):\n    return n\n")
    git(project, "init", "-q")
    main = f"import sys\nsys.path.insert(0, {str(other)!r})\nimport lib\nprint(lib.work(3))\n{own}"
    files = {"perfdiff.toml": f"measure.budget_s = 1\n{FILES['perfdiff.toml']}", "main.py": main, "more.py": "def more(n):\n    return n\n"}
    commit(project, "base", FILES | files)
    git(project, "tag", "base")
    slower = "def {}(n):\n    for _ in range(100_000): pass\n    return n\n"
    commit(project, "head", {"lib.py": slower.format("work"), "more.py": slower.format("more")})
    git(project, "tag", "head")
    return project, other


def test_another_copy_of_what_changed_is_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    project, other = copied(tmp_path)
    with pytest.raises(SystemExit) as left:
        cli.main(["base", "head", "-q", "--repo", str(project), "--cache", str(runtimes.lent_to(tmp_path / "cache"))])
    said = capfd.readouterr()
    assert (left.value.code, said.out) == (ExitCode.NOT_MEASURED, "")
    assert "[another-copy]" in said.err
    assert f"another copy of lib.py, {other / 'lib.py'}," in said.err


WORK = "def work(n):\n    return n\n\n\ndef idle(n):\n    return 2 * n\n"


@pytest.mark.parametrize(("vendored", "is_copy"), [(WORK, True), ("def work(n):\n    return n + 1\n\n\ndef start():\n    pass\n", False)])
def test_a_copy_in_the_tree_of_what_changed_is_no_answer_either(
    vendored: str, is_copy: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    main = "import sys\nsys.path.insert(0, 'vendor')\nfrom pkg.work import work\nprint(work(3))\n"
    files = {"pkg/__init__.py": "", "vendor/pkg/__init__.py": ""}
    project = tmp_path / "project"
    project.mkdir()
    git(project, "init", "-q")
    commit(project, "base", FILES | files | {"main.py": main, "pkg/work.py": WORK, "vendor/pkg/work.py": vendored})
    git(project, "tag", "base")
    commit(project, "head", {"pkg/work.py": WORK.replace("return n\n", "return sum(range(n))\n", 1)})
    git(project, "tag", "head")
    with pytest.raises(SystemExit) as left:
        cli.main(["base", "head", "-q", "--repo", str(project), "--cache", str(runtimes.lent_to(tmp_path / "cache"))])
    said = capfd.readouterr()
    assert left.value.code == (ExitCode.NOT_MEASURED if is_copy else ExitCode.FINE)
    assert ("another copy of pkg/work.py, vendor/pkg/work.py," in said.err) is is_copy
    assert ("no workload calls `pkg.work.work`, which changed" in " ".join(said.out.split())) is not is_copy


@pytest.mark.parametrize(
    ("own", "ran"),
    [
        ("sys.path.pop(0)\ndel sys.modules['lib']\nimport lib\nlib.work(4)\n", "lib.work"),
        ("import more\nmore.more(4)\n", "more.more"),  # so `lib` may be a namesake
    ],
)
def test_what_ran_of_the_revisions_is_judged_though_another_copy_ran_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: str, ran: str
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    project, _ = copied(tmp_path, own=own)
    config = configuration.load(project, environment={})
    found = pipeline.compare(
        Request(project, ("base", "head"), config, runtimes.lent_to(tmp_path / "cache"), os.environ), Silent()
    ).findings
    assert ran in [each.info.name for each in found.functions]
    assert "probes-elsewhere" in [note.slug for note in map(noted, found.notes)]
