"""Suites of Python projects as workloads: asv's, pytest's, pytest-benchmark's, and functions."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

import runtimes
from perfdiff import configuration, reproduction
from perfdiff.build.cache import BuildCache
from perfdiff.collect.execution.executor import Command, Execution, ProcessExecutor, Purpose
from perfdiff.collect.runs import suitecases, workloads
from perfdiff.collect.runs.schedule import Slot
from perfdiff.collect.runs.suites import Suites
from perfdiff.collect.runs.targets import Target
from perfdiff.config import DRIVER, Suite, WorkloadConfig
from perfdiff.errors import ConfigError, RunFailedError, RunTimeoutError, WorkloadError
from perfdiff.languages.listing import LISTED_TO, Benchmark
from perfdiff.languages.python import benchmarks, layout, requirements
from perfdiff.languages.python.benchmarks.trials import identifiers, labels
from perfdiff.languages.python.layout import Layout
from perfdiff.languages.python.traits import PythonConfig
from perfdiff.measuring.bench import Bench
from perfdiff.measuring.benchmarks import with_benchmarks
from perfdiff.measuring.changes import site_of
from perfdiff.progress import Silent, Stopwatch
from perfdiff.records.schema import Phase, Side
from perfdiff.request import Request
from perfdiff.revisions.pins import resolve_one
from perfdiff.revisions.repository import find_repository

COUNTED = """
from pathlib import Path

def count(what):
    with Path("calls.txt").open("a") as file:
        print(what, file=file)
"""
SUITE = """
from counted import count

class Base:
    params = [[10, 1000], ["list", sorted]]
    param_names = ["n", "kind of"]

    def setup(self, n, kind):
        if kind == "list" and n == 10:
            raise NotImplementedError
        count("setup")

    def teardown(self, n, kind):
        count("teardown")

class Inherits(Base):
    def time_it(self, n, kind):
        count(f"time {n} {getattr(kind, '__name__', kind)}")

    def track_it(self, n, kind):
        return n

    def peakmem_it(self, n, kind):
        pass

class Fresh:
    number = 2

    def setup(self):
        count("setup")

    def time_fresh(self):
        count("time")

class Cached:
    params = [1, 2]

    def setup_cache(self):
        count("cache")
        return {"kept": 7}

    def time_cached(self, cache, n):
        count(f"time {cache['kept']} {n}")

def time_broken():
    raise ValueError("of no use")

def time_one_way(called=[]):
    called.append(1)
    assert len(called) == 1
"""
TESTS = """
import unittest
import pytest
from counted import count

@pytest.fixture
def made():
    count("fixture")
    return 5

@pytest.mark.parametrize("n", [10, 1000])
@pytest.mark.parametrize("sort", [sorted, list])
def test_sort(n, sort, made):
    count(f"test {sort.__name__} {n}")

def test_folder(tmp_path):
    (tmp_path / "once").mkdir()

def test_wrong():
    assert 1 == 2

@pytest.mark.skip
def test_left_out():
    pass

class TestMethods:
    def test_method(self):
        count("method")

class Old(unittest.TestCase):
    def test_old(self):
        count("old")

def test_rounds(benchmark):
    count("body")
    assert benchmark(lambda text: count(text) or text, "round") == "round"

def test_pedantic(benchmark):
    benchmark.pedantic(count, setup=lambda: ((count("setup") or "target",), {}), rounds=9)
"""
ONCE = """
import unittest
import pytest
from counted import count

@pytest.fixture(scope="module", autouse=True)
def module():
    count("module")

@pytest.fixture
def made(tmp_path):
    count("made")
    return tmp_path / "once"

def test_folder(made):
    count("called")
    made.mkdir()

class Old(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        count("class")

    def setUp(self):
        count("set up")

    def test_old(self):
        count("old")

class Coroutines:
    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem):
        if pyfuncitem.name == "test_awaited":
            try:
                pyfuncitem.obj().send(None)
            except StopIteration:
                return True

async def test_awaited():
    count("awaited")

@pytest.fixture(scope="session", autouse=True)
def coroutines(request):
    request.config.pluginmanager.register(Coroutines())
"""
# What pytest-benchmark has, as its documentation tells: a fixture that chooses rounds for itself where it is not disabled, to be used once.
BENCHMARK = """
import pytest

class BenchmarkFixture:
    disabled = False
    used = False

    def __call__(self, function, *arguments, **named):
        assert not self.used
        self.used = True
        for _ in range(1 if self.disabled else 100):
            result = function(*arguments, **named)
        return result

    def pedantic(self, target, args=(), kwargs=None, setup=None, rounds=1):
        raise AssertionError("chooses rounds")

class Plugin:
    @pytest.fixture
    def benchmark(self):
        return BenchmarkFixture()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item):
        assert isinstance(item.funcargs.get("benchmark", BenchmarkFixture()), BenchmarkFixture)
        yield

def pytest_configure(config):
    config.pluginmanager.register(Plugin(), "benchmark")
"""


@dataclass(frozen=True, slots=True)
class Project:
    """A folder with files of a project, and the driver where its interpreter finds it."""

    folder: Path
    site: Path

    @property
    def environment(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "PYTHON", "COV"))}
        path = os.pathsep.join((str(Path(sys.executable).parent), inherited["PATH"]))
        return {**inherited, "PATH": path, "PYTHONPATH": str(self.site), LISTED_TO: str(self.folder / "listing.json")}

    def run(self, command: str, status: int = 0) -> list[str]:
        """Run a command of the driver, and return what the project's code counted meanwhile."""
        calls = self.folder / "calls.txt"
        calls.unlink(missing_ok=True)
        ended = subprocess.run(command, shell=True, cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False)
        assert ended.returncode == status, ended.stderr
        return calls.read_text().split("\n")[:-1] if calls.exists() else []

    def command(self, text: str) -> Command:
        """Return a command of the driver that lists benchmarks."""
        return Command(text, self.folder, self.environment, 30.0, (0,), "head, listing tests", purpose=Purpose.LISTING)

    def listed(self, *words: str) -> tuple[dict[str, dict[str, object]], dict[str, str]]:
        """Return the benchmarks of a listing, by name, and what failed."""
        self.run(benchmarks.trials.command("list", *words).replace(benchmarks.__name__, DRIVER))
        found = json.loads((self.folder / "listing.json").read_text())
        assert found["start_s"] > 0
        return {each["name"]: each for each in found["benchmarks"]}, found["failures"]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project with a suite of asv, tests, and a function."""
    environment = Layout(tmp_path / "venv", tmp_path / "site")
    environment.site_packages.mkdir()
    layout.add_package(environment, DRIVER, Path(benchmarks.__file__).parent)
    folder = tmp_path / "project"
    files = {
        "counted.py": COUNTED,
        "asv_bench/suite/__init__.py": "",
        "asv_bench/suite/times.py": SUITE,
        "asv_bench/suite/broken.py": "import nowhere",
        "tests/test_times.py": TESTS,
        "tests/conftest.py": BENCHMARK,
        "functions.py": "from counted import count\n\ndef run(n, size, kind):\n    count(repr((n, size, kind)))\n    assert n < 3\n",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return Project(folder, environment.site_packages)


def test_a_suite_of_asv_is_listed_as_asv_finds_it(project: Project) -> None:
    found, failures = project.listed("asv", "asv_bench/suite", "")
    assert list(found) == ["times.Inherits.time_it", "times.Fresh.time_fresh", "times.Cached.time_cached", "times.time_one_way"]
    inherits = found["times.Inherits.time_it"]
    assert inherits["parameters"] == {"n": [10, 1000], "kind_of": ["sorted", "list"]}
    assert [values for values, _, _ in inherits["points"]] == [[10, "sorted"], [1000, "list"], [1000, "sorted"]]
    assert found["times.Cached.time_cached"]["parameters"] == {"param1": [1, 2]}
    assert not found["times.time_one_way"]["points"][0][2]
    assert found["times.Fresh.time_fresh"]["points"][0][2]
    assert failures == {
        "times.time_broken": "ValueError: of no use",
        "suite.broken": "ModuleNotFoundError: No module named 'nowhere'",
        "times.Inherits.track_it": "is no benchmark whose calls are timed",
        "times.Inherits.peakmem_it": "is no benchmark whose calls are timed",
    }


def test_a_regular_expression_chooses_benchmarks_of_asv(project: Project) -> None:
    assert list(project.listed("asv", "asv_bench/suite", "Fresh|one_way")[0]) == ["times.Fresh.time_fresh", "times.time_one_way"]


def repeated(command: str, calls: int, **values: object) -> str:
    """Return a listed command with its places filled."""
    return command.format(calls=calls, **values)


def test_a_benchmark_of_asv_runs_between_its_setup_and_teardown(project: Project) -> None:
    found, _ = project.listed("asv", "asv_bench/suite", "Inherits")
    command = found["times.Inherits.time_it"]["command"].replace("{n}", "1000").replace("{kind_of}", "sorted")
    assert project.run(repeated(command, 3)) == ["setup", *["time 1000 sorted"] * 3, "teardown"]
    assert project.run(repeated(command.replace("1000", "999"), 3), status=1) == []


def test_a_benchmark_that_says_after_how_many_calls_is_set_up_again(project: Project) -> None:
    found, _ = project.listed("asv", "asv_bench/suite", "Fresh")
    assert project.run(repeated(found["times.Fresh.time_fresh"]["command"], 5)) == [*["setup", "time", "time"] * 2, "setup", "time"]


def test_a_setup_cache_is_made_outside_of_runs(project: Project) -> None:
    found, _ = project.listed("asv", "asv_bench/suite", "Cached")
    cached = found["times.Cached.time_cached"]
    assert project.run(cached["setup"]) == ["cache"]
    assert project.run(repeated(cached["command"], 2, param1=2)) == ["time 7 2"] * 2


def test_tests_of_pytest_are_listed_with_their_parameters(project: Project) -> None:
    found, failures = project.listed("pytest", "tests")
    names = ["test_sort", "test_folder", "TestMethods::test_method", "Old::test_old", "test_rounds", "test_pedantic"]
    assert list(found) == [f"tests/test_times.py::{name}" for name in names]
    assert found["tests/test_times.py::test_sort"]["parameters"] == {"sort": ["sorted", "list"], "n": [10, 1000]}
    assert len(found["tests/test_times.py::test_sort"]["points"]) == 4
    assert all(again for each in found.values() for _, _, again in each["points"])
    assert failures == {
        "tests/test_times.py::test_wrong": "AssertionError",
        "tests/test_times.py::test_left_out": "is skipped: unconditional skip",
    }
    assert not (project.folder / ".pytest_cache").exists()


def test_options_of_pytest_choose_tests(project: Project) -> None:
    assert list(project.listed("pytest", "tests -k 'method or pedantic'")[0]) == [
        "tests/test_times.py::TestMethods::test_method",
        "tests/test_times.py::test_pedantic",
    ]


def test_one_test_is_called_as_often_as_is_asked_with_the_same_fixtures(project: Project) -> None:
    found, _ = project.listed("pytest", "tests -k sort")
    command = found["tests/test_times.py::test_sort"]["command"].replace("{n}", "1000").replace("{sort}", "list")
    assert project.run(repeated(command, 3)) == ["fixture", *["test list 1000"] * 3]
    assert project.run(repeated(command.replace("=1000", "=999"), 3), status=5) == []


def test_a_test_that_cannot_be_called_again_is_run_again_with_new_fixtures(project: Project) -> None:
    (project.folder / "tests/test_once.py").write_text(ONCE)
    found, failures = project.listed("pytest", "tests/test_once.py")
    folder, case, awaited = (found[f"tests/test_once.py::{name}"]["command"] for name in ("test_folder", "Old::test_old", "test_awaited"))
    assert project.run(repeated(folder, 3)) == ["module", "made", "called", "called", *["made", "called"] * 2]
    assert project.run(repeated(case, 3)) == ["module", "class", *["set up", "old"] * 3]
    assert project.run(repeated(awaited, 2)) == ["module", *["awaited"] * 2]
    assert failures == {}


def test_what_a_test_hands_to_the_fixture_benchmark_is_called(project: Project) -> None:
    found, _ = project.listed("pytest", "tests -k 'rounds or pedantic'")
    rounds, pedantic = (found[f"tests/test_times.py::test_{name}"]["command"] for name in ("rounds", "pedantic"))
    assert project.run(repeated(rounds, 4)) == ["body", *["round"] * 4]
    assert project.run(repeated(pedantic, 2)) == ["setup", "target"] * 2


def test_a_listing_that_pytest_cannot_make_fails(project: Project) -> None:
    executed = project.command(f"python -m {DRIVER} list pytest --no-such-option")
    with pytest.raises(WorkloadError, match=r"exited 4 \(head, listing tests\), so that its benchmarks are not known") as raised:
        ProcessExecutor().execute(executed)
    assert raised.value.slug == "no-benchmarks"
    assert "'-o addopts=' in the selection leaves them out" in raised.value.detail


@pytest.mark.parametrize("options", ["--cov", "--cov=counted --cov-report term-missing --cov-append --no-cov-on-fail"])
def test_a_project_that_measures_coverage_in_its_tests_needs_no_plugin_for_it(project: Project, options: str) -> None:
    (project.folder / "pytest.ini").write_text(f"[pytest]\naddopts = {options}\n")
    found, _ = project.listed("pytest", "tests -k method")
    [command] = [each["command"] for each in found.values()]
    assert project.run(repeated(command, 2)) == ["method"] * 2


def test_a_function_is_called_with_numbers_and_texts(project: Project) -> None:
    parameters = {"n": [1, 2.5, 3], "size": [7], "kind": ["1", "x"]}
    found, failures = project.listed("callable", "functions:run", json.dumps(parameters))
    assert [point[0] for point in found["functions:run"]["points"]] == [[n, 7, kind] for n in (1, 2.5) for kind in ("1", "x")]
    assert set(failures) == {"functions:run n=3 size=7 kind=1", "functions:run n=3 size=7 kind=x"}
    assert project.run(repeated(found["functions:run"]["command"], 2, n=2.5, size=7, kind="1")) == ["(2.5, 7, '1')"] * 2


def test_values_are_named_as_people_know_them() -> None:
    def local() -> None: ...

    assert labels([1, 2.5, "text", True, None, (1, 2), len, local, "", "x" * 70]) == [
        1, 2.5, "text", "True", "None", "(1, 2)", "len", "local", "''", f"{'x' * 59}…",
    ]  # fmt: skip
    assert labels([1, "1", object()])[:2] == [1, "1 #2"]
    assert " at 0x" not in str(labels([object()])[0])
    assert identifiers(["n", "number of items", "2nd", "n"]) == ["n", "number_of_items", "_2nd", "n_4"]


def test_values_have_one_name_in_the_trees_of_both_revisions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long, named = "a folder whose name alone is longer than what is shown of any value", []
    for tree, files in ("base", ("first", "last")), ("head", ("added", "first", "last")):
        (tmp_path / tree).mkdir()
        monkeypatch.chdir(tmp_path / tree)
        named.append(labels([folder / file for file in files for folder in (Path.cwd(), Path.cwd() / long)]))
    base, head = named
    assert base[::2] == ["PosixPath('first')", "PosixPath('last')"]
    assert len(set(base)) == 4
    assert head[2:] == base


@dataclass(slots=True)
class Told:
    """An executor that runs nothing: what each side's listing says is told, and runs fail whose command is not among those that `end`."""

    said: Mapping[Side, object]
    end: Collection[str] = ()

    def execute(self, command: Command) -> Execution:
        """Write the listing."""
        if command.purpose is Purpose.LISTING:
            side = next(side for side in Side if command.where.startswith(side))
            Path(command.environment[LISTED_TO]).write_text(json.dumps(self.said[side]))
        if command.purpose is Purpose.RUN and command.text not in self.end:
            raise RunFailedError("it fails", slug="workload-failed")
        return Execution(1.0, 1.0, 1.0, None, None, "")

    def execute_together(self, commands: Sequence[Command], cpus: Collection[int]) -> list[Execution]:
        """Run none at the same time."""
        raise NotImplementedError


def listing(points: Mapping[str, Mapping[tuple[object, ...], float]], failures: Mapping[str, str] | None = None) -> dict[str, object]:
    """Return a listing of benchmarks with a parameter `n`, and one of `kind` where values have two parts."""
    told = [
        {
            "name": name,
            "command": f"run {name} {{n}} --calls {{calls}}",
            "setup": "",
            "parameters": {name: [] for name in ("n", "kind")[: len(next(iter(seconds)))]},
            "points": [[list(values), second, True] for values, second in seconds.items()],
        }
        for name, seconds in points.items()
    ]
    return {"benchmarks": told, "failures": failures or {}, "start_s": 0.01}


def expanded(
    folder: Path, base: object, head: object, end: Collection[str] = (), **given: object
) -> tuple[tuple[WorkloadConfig, ...], list[str]]:
    """Return what two listings lead to, with the texts of the notes."""
    found, notes = suites(folder).expanded([LISTED], Told({Side.BASE: base, Side.HEAD: head}, end), **given)
    return found, [note.text for note in notes]


LISTED = WorkloadConfig("suite", "list", runs=7, setup="make", suite=Suite("asv", ""))


def suites(folder: Path) -> Suites:
    """Return the suites of two revisions, whose trees lie in a folder."""
    targets = {}
    for side in Side:
        (folder / side).mkdir()
        targets[side] = Target(folder / side, None, tree=folder / side)
    room = folder / "room"
    room.mkdir()
    return Suites(targets, {}, room)


def test_what_head_had_no_time_for_does_not_fail_there(tmp_path: Path) -> None:
    base = listing({"a": {(1,): 0.001}, "late": {(1,): 0.001}, "wrong": {(1,): 0.001}})
    head = listing({"a": {(1,): 0.001}}, {"late": "not tried within 5 s", "wrong": "AssertionError"})
    listed = suites(tmp_path).cases(LISTED, Told({Side.BASE: base, Side.HEAD: {**head, "untried": ["late"]}}))
    assert listed.failing == ("wrong",)


def test_benchmarks_that_both_revisions_have_become_workloads(tmp_path: Path) -> None:
    base = listing({"a": {(1, "x"): 0.001, (1, "y"): 0.001, (2, "x"): 0.002, (2, "y"): 0.002}, "b": {(1,): 0.001}, "gone": {(1,): 1.0}})
    head = listing({"a": {(1, "x"): 0.001, (2, "x"): 0.002, (2, "y"): 0.02}, "b": {(5,): 0.001}}, {"c n=1": "ValueError: no"})
    (only,), notes = expanded(tmp_path, base, head)
    assert only == WorkloadConfig(
        "a",
        "run a {n} --calls 50",
        {"n": (1, 2), "kind": ("x", "y")},
        runs=7,
        setup="make",
        left_out=((1, "y"),),
        once="run a {n} --calls 1",
        plain_timeout_s=60.0,
    )
    assert [point.parameters for point in workloads.points([only])] == [
        {"n": 1, "kind": "x"}, {"n": 2, "kind": "x"}, {"n": 2, "kind": "y"},
    ]  # fmt: skip
    assert notes == [
        "of suite, what fails when it is tried is left out: c n=1 in head (ValueError: no)",
        "of suite, what one revision alone has is left out: gone",
    ]


def test_what_a_listing_had_no_time_for_is_not_taken_for_what_one_revision_alone_has(tmp_path: Path) -> None:
    base = listing({"a": {(1,): 0.001}, "b": {(1,): 0.001}})
    head = {**listing({"a": {(1,): 0.001}}), "whole": False}
    assert expanded(tmp_path, base, head)[1] == ["of suite, what was not tried in all revisions, for lack of time, is left out: b"]


def test_what_fails_alike_is_told_together(tmp_path: Path) -> None:
    failures = dict.fromkeys(("b", "c", "d", "e"), "no such package") | {"f": "AssertionError"}
    base = listing({"a": {(1,): 0.001}}, failures)
    head = listing({"a": {(1,): 0.001}}, {**failures, "g": "no such package"})
    said = "b, c and 2 more (no such package), f (AssertionError), g in head (no such package)"
    assert expanded(tmp_path, base, head)[1] == [f"of suite, what fails when it is tried is left out: {said}"]


def test_what_fails_alike_but_for_its_name_and_numbers_is_told_together(tmp_path: Path) -> None:
    failures = {f"Test::{case}": f"Test::{case}() takes {number} arguments" for number, case in enumerate(("first", "second", "third"))}
    sides = [listing({"a": {(1,): 0.001}}, failures) for _ in range(2)]
    said = "Test::first, Test::second and 1 more (Test::first() takes 0 arguments)"
    assert expanded(tmp_path, *sides)[1] == [f"of suite, what fails when it is tried is left out: {said}"]


def test_lines_are_counted_in_one_call(tmp_path: Path) -> None:
    (only,), _ = expanded(tmp_path, listing({"a": {(1,): 1e-6}}), listing({"a": {(1,): 1e-6}}), once=True)
    assert only.command == "run a {n} --calls 1"


def test_what_head_alone_gave_up_is_tried_again_and_compared_where_it_ends(tmp_path: Path) -> None:
    base = listing({"a": {(1,): 0.001, (2,): 0.001}, "b": {(1,): 0.5}, "c": {(1,): 0.001}})
    head = listing({"a": {(1,): 0.001}, "d": {(1,): 1.0}}, {"a n=2": "not done after 7 s", "b": "hangs", "c": "AssertionError"})
    (a, b), notes = expanded(tmp_path, base, head, end=("run a 2 --calls 1", "run b 1 --calls 1"))
    assert (a.name, a.parameters, b.name, b.parameters) == ("a", {"n": (1, 2)}, "b", {"n": (1,)})
    assert "of suite, what fails when it is tried is left out: c in head (AssertionError)" in notes


@pytest.mark.parametrize(("limit_s", "names", "endless"), [(30.0, ["a"], ["b n=1"]), (2.0, ["a", "b"], []), (0.2, ["a"], [])])
def test_what_does_not_end_is_listed_with_the_time_that_it_had_where_base_needs_less_but_apart_where_it_needs_far_less(
    tmp_path: Path, limit_s: float, names: list[str], endless: list[str]
) -> None:
    class Endless(Told):
        def execute(self, command: Command) -> Execution:
            if command.purpose is Purpose.RUN:
                raise RunTimeoutError("it goes on", slug="workload-timeout")
            return super().execute(command)

    tree, room = tmp_path / "tree", tmp_path / "room"
    tree.mkdir()
    room.mkdir()
    base, head = listing({"a": {(1,): 0.001}, "b": {(1,): 0.5}}), listing({"a": {(1,): 0.001}}, {"b": "hangs"})
    suites = Suites({side: Target(tree, None, tree=tree) for side in Side}, {}, room)
    config = WorkloadConfig("suite", "list", suite=Suite("asv", ""))
    listed = suites.cases(config, Endless({Side.BASE: base, Side.HEAD: head}), limit_s=limit_s)
    assert [case.name for case in listed.cases] == names
    assert [case.seems_slower for case in listed.cases] == [False, True][: len(names)]
    assert [case.name for case in listed.endless] == endless
    assert [note.slug for note in listed.notes] == (["case-does-not-end"] if endless else ["benchmarks-left-out"] * (len(names) == 1))


@pytest.mark.parametrize(
    ("guessed", "says"), [(False, "'list' found no benchmark of suite that runs in any revision"), (True, "none was seen")]
)
def test_who_named_a_suite_is_told_to_correct_it_and_who_did_not_is_shown_no_command(tmp_path: Path, *, guessed: bool, says: str) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    suites = Suites({side: Target(tree, None, tree=tree) for side in Side}, {}, tmp_path)
    config = WorkloadConfig("suite", "list", suite=Suite("asv", "", guessed=guessed))
    with pytest.raises(WorkloadError, match=says) as raised:
        suites.cases(config, Told({side: listing({}) for side in Side}), limit_s=1.0)
    assert ("list" in str(raised.value)) is not guessed


def test_revisions_without_a_common_benchmark_cannot_be_compared(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match="no benchmark of suite in common") as raised:
        expanded(tmp_path, listing({"a": {(1,): 1.0}}), listing({"b": {(1,): 1.0}}, {"a": "ImportError: gone"}))
    assert raised.value.slug == "no-benchmarks"
    assert raised.value.detail == "a in head (ImportError: gone)"


@pytest.mark.parametrize(
    ("seconds", "start_s", "expected"),
    [
        ([1e-6, 1e-5], 0.01, 50_000),  # the fastest point takes 50 ms
        ([1e-6, 1e-3], 0.01, 1_000),  # the slowest one takes no more than a second
        ([1e-3, 3.0], 0.01, 1),
        ([1e-3], 0.4, 200),  # as long as the start, to 1, 2 or 5 times a power of ten
        ([0.0], 0.01, 50_000_000),  # the clock's step
    ],
)
def test_a_benchmark_is_called_often_enough_to_be_seen(seconds: list[float], start_s: float, expected: int) -> None:
    sides = [Benchmark("a", "run", "", ("n",), {(number,): (second, True) for number, second in enumerate(seconds)})]
    assert suitecases.calls(sides, start_s) == expected
    once = replace(sides[0], points={**sides[0].points, (-1,): (1e-6, False)})
    assert suitecases.calls([*sides, once], start_s) == 1


def checkout(folder: Path, configured: str | None, files: Mapping[str, str] | None = None) -> Path:
    (folder / ".git").mkdir()
    if configured is not None:
        (folder / "perfdiff.toml").write_text(configured)
    for name, text in (files or {}).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


ASV_FILES = {
    "bench/asv.conf.json": """{
        // where benchmarks lie: "here"
        "benchmark_dir": "suite", /* two
        lines */ "matrix": {"req": {"numpy": ["1.26", "2.0"], "pip+lxml": [""], "absent": [null]}, "env": {"A": ["1"]},},
        "html_dir": "http://x",
    }""",
    "bench/suite/__init__.py": "",
}


def test_a_project_with_a_suite_of_asv_needs_no_configuration(tmp_path: Path) -> None:
    config = configuration.load(checkout(tmp_path, None, ASV_FILES), environment={})
    (workload,) = config.workloads
    assert workload == WorkloadConfig("asv", f"A=1 python -m {DRIVER} list asv bench/suite '' A", suite=Suite("asv", "", guessed=True))
    assert config.build.overlay == ("bench/suite",)
    assert config.languages["python"] == PythonConfig(requirements=("numpy==1.26", "lxml"))


def test_suites_are_configured_by_what_they_run(tmp_path: Path) -> None:
    text = """
[python]
requirements = ["pytest"]

[[workload]]
pytest = "tests -k 'a b'"
runs = 5

[[workload]]
name = "sorts"
asv = "time_sort"

[[workload]]
callable = "package.module:function"
parameters = { n = [1, 2] }
"""
    config = configuration.load(checkout(tmp_path, text, ASV_FILES), environment={})
    tests, sorts, function = config.workloads
    assert tests == WorkloadConfig(
        "pytest", f"""python -m {DRIVER} list pytest 'tests -k '"'"'a b'"'"''""", runs=5, suite=Suite("pytest", "tests -k 'a b'")
    )
    assert (sorts.name, sorts.command) == ("sorts", f"A=1 python -m {DRIVER} list asv bench/suite time_sort A")
    assert function.name == "package.module:function"
    assert function.command == f"""python -m {DRIVER} list callable package.module:function '{{"n": [1, 2]}}'"""
    assert config.languages["python"] == PythonConfig(requirements=("pytest",))
    again = reproduction.configuration_text(config)
    (tmp_path / "perfdiff.toml").write_text(again)
    assert configuration.load(tmp_path, environment={}).workloads == config.workloads


def test_tests_need_pytest_and_suites_of_asv_nothing() -> None:
    assert requirements.runners([f"python -m {DRIVER} list pytest tests"]) == ("pytest",)
    assert requirements.runners([f"python -m {DRIVER} list asv benchmarks ''", f"python -m {DRIVER} list callable pytest:main"]) == ()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[[workload]]\npytest = "tests"\ncommand = "make"', "has 'command' and 'pytest'"),
        ('[[workload]]\npytest = "tests"\nparameters = { n = [1] }', "'parameters' of 'pytest'"),
        ('[[workload]]\ncallable = "a:b"\ninputs = ["*"]', "'inputs' of 'callable'"),
        ('[[workload]]\ncallable = "a.b"', "must be a module and a function"),
        ('[[workload]]\nasv = "("', "must be a regular expression"),
        ('[[workload]]\npytest = "-k \'a"', "must be arguments of pytest"),
        ('[[workload]]\nasv = ""', "there is no asv.conf.json"),
        ('[[workload]]\npytest = "tests"\nsetup = "make {n}"', "'{n}' in 'make {n}' has no parameter"),
    ],
)
def test_a_suite_that_cannot_be_run_is_told(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(ConfigError) as raised:
        configuration.load(checkout(tmp_path, text), environment={})
    assert says in str(raised.value)


@pytest.mark.parametrize("text", ["{", "[]", '{"benchmark_dir": "absent"}', '{"benchmark_dir": "../.."}'])
def test_a_configuration_of_asv_that_cannot_be_used_is_told(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError) as raised:
        configuration.load(checkout(tmp_path, None, {"asv.conf.json": text}), environment={})
    assert raised.value.slug == "config-asv"


MATRIX = {"req": {"numpy": ["1.26", "2.0"], "lxml": ["", "5"]}, "env": {"BLAS": ["a b"]}, "env_nobuild": {"LEVEL": [None, "2"]}}
HERE = {"python": "3.11", "sys_platform": sys.platform, "environment_type": "virtualenv", "req": {"scipy": "1.11"}}


@pytest.mark.parametrize(
    ("text", "required", "variables"),
    [
        ({"matrix": MATRIX}, ("numpy==1.26", "lxml"), {"BLAS": "a b"}),
        ({"matrix": {"numpy": ["1.26"], "pip+lxml": [], "absent": None, "six": ""}}, ("numpy==1.26", "lxml", "six"), {}),
        (
            {"matrix": {"req": {"a": [">=1,<2"], "pip+b": ["git+https://x/b"], "c": [1.5]}}},
            ("a>=1,<2", "b @ git+https://x/b", "c==1.5"),
            {},
        ),
        ({"matrix": MATRIX, "exclude": [{"req": {"numpy": r"1\..*"}}]}, ("numpy==2.0", "lxml"), {"BLAS": "a b"}),
        ({"matrix": MATRIX, "exclude": [{"req": {"numpy": "1"}}]}, ("numpy==1.26", "lxml"), {"BLAS": "a b"}),
        ({"matrix": MATRIX, "exclude": [{"env_nobuild": {"LEVEL": None}}]}, ("numpy==1.26", "lxml"), {"BLAS": "a b", "LEVEL": "2"}),
        ({"matrix": MATRIX, "exclude": [{"req": {"absent": ".*"}}]}, ("numpy==1.26", "lxml"), {"BLAS": "a b"}),
        (
            {"pythons": ["3.9", "3.12"], "matrix": MATRIX, "exclude": [{"python": "3.9"}, {"req": {"lxml": ""}}]},
            ("numpy==1.26", "lxml==5"),
            {"BLAS": "a b"},
        ),
        ({"matrix": {"numpy": ["1.26"]}, "exclude": [{"sys_platform": sys.platform}], "include": [HERE]}, ("scipy==1.11",), {}),
        ({"include": [{**HERE, "sys_platform": "win32"}, {"python": "3.11", "pip+numpy": "2.0", "six": None}]}, ("numpy==2.0",), {}),
        ({"include": [{"python": "3.11", "env": {"A": 1}, "req": {"numpy": ""}}], "exclude": [{"python": ".*"}]}, ("numpy",), {"A": "1"}),
        ({"matrix": {"env": {"A": ["1"]}}}, (), {"A": "1"}),
        ({"environment_type": "conda", "exclude": [{"environment_type": "virtualenv"}], "matrix": {"numpy": "1"}}, ("numpy==1",), {}),
        ({}, (), {}),
    ],
)
def test_the_first_environment_of_asv_is_installed(
    tmp_path: Path, text: dict[str, object], required: tuple[str, ...], variables: dict[str, str]
) -> None:
    config = configuration.load(checkout(tmp_path, None, {"asv.conf.json": json.dumps(text), "benchmarks/a.py": ""}), environment={})
    assert config.languages["python"] == PythonConfig(requirements=required)
    (workload,) = config.workloads
    words = shlex.split(workload.command)
    assert words[: len(variables)] == [f"{name}={value}" for name, value in variables.items()]
    assert words[len(variables) :] == ["python", "-m", DRIVER, "list", "asv", "benchmarks", "", *variables]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ({"exclude": [{"python": ".*"}], "matrix": {"numpy": "1"}}, "leaves no environment"),
        ({"exclude": [{"sys_platform": "linux"}], "include": [{"python": "3", "sys_platform": "win32"}]}, "leaves no environment"),
        ({"include": [{"req": {"numpy": "1"}}]}, "does not say which 'python'"),
        ({"exclude": [{"req": {"numpy": "("}}], "matrix": {"numpy": "1"}}, "missing ), unterminated subpattern"),
        ({"exclude": {"python": "3"}}, "'exclude' must be a list of objects"),
        ({"matrix": ["numpy"]}, "'matrix' must be an object"),
        ({"matrix": {"req": {"numpy": "1"}, "numpy": ["2"]}}, "'numpy' in 'matrix' must be one of req, env, env_nobuild"),
        ({"matrix": {"env": {"A B": ["1"]}}}, "'A B' is no name of a variable"),
    ],
)
def test_environments_of_asv_that_cannot_be_made_are_told(tmp_path: Path, text: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigError) as raised:
        configuration.load(checkout(tmp_path, None, {"asv.conf.json": json.dumps(text), "benchmarks/a.py": ""}), environment={})
    assert raised.value.slug == "config-asv"
    assert says in str(raised.value)


def test_benchmarks_of_asv_run_with_the_variables_of_their_environment(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BLAS", "a 'b'")
    found, _ = project.listed("asv", "asv_bench/suite", "Cached", "BLAS")
    cached = found["times.Cached.time_cached"]
    for command in (cached["command"], cached["setup"]):
        assert shlex.split(str(command))[:2] == ["BLAS=a 'b'", "python"]


@pytest.mark.integration
def test_the_suite_of_a_built_revision_is_listed_in_its_environment(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    files = {
        "asv.conf.json": '{"version": 1}',
        "benchmarks/__init__.py": "",
        "benchmarks/times.py": "from own import own\n\nclass Own:\n    params = [1, 2]\n\n    def time_own(self, n):\n        own(n)\n",
        "own.py": "def own(n):\n    return sum(range(1000 * n))\n",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    for words in (["init", "-q"], ["add", "-A"], ["-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", "one"]):
        subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    environment["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), environment["PATH"]))
    cache = runtimes.lent_to(tmp_path / "cache")
    request = Request(folder, ("HEAD",), configuration.load(folder, environment={}), cache, environment)
    pins = resolve_one(find_repository(folder), "HEAD", snapshots=cache / "snapshots")
    (tmp_path / "room").mkdir()
    with BuildCache(cache) as builds:
        bench = Bench(request, pins, builds, tmp_path / "room", request.packs, ProcessExecutor(), Stopwatch(Silent()), (Side.BASE,))
        with closing(bench.upkeep):
            listed, site = with_benchmarks(bench, site_of(bench, bench.workshop.plain()))
            (point, _) = listed.points
            seen = listed.collector(site.targets).collect([Slot(Phase.PLAIN, point, Side.BASE, 0)], lambda _: None)
            ((run, _),) = seen
    assert [(each.workload, each.parameters) for each in listed.points] == [("times.Own.time_own", {"param1": n}) for n in (1, 2)]
    assert run.cpu_ns > suitecases.LEAST_S * 1e9 / 2  # calls are timed at other times than the run, on a machine that is not alone
    assert not site.notes
