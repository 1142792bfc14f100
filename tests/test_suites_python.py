"""Tests and benchmarks of Python's frameworks with nothing to write: how they are found, listed under watch, and run."""

from __future__ import annotations

import itertools
import json
import shlex
import time
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest

from perfdiff.config import DRIVER
from perfdiff.languages.python import benchmarks, layout, testing
from perfdiff.languages.python.benchmarks import scanning, trials
from perfdiff.languages.python.frameworks import FRAMEWORKS
from perfdiff.languages.python.layout import Layout
from test_python_workloads import BENCHMARK, COUNTED, Project

BY_NAME = {framework.name: framework for framework in FRAMEWORKS}


@pytest.fixture
def bare(tmp_path: Path) -> Project:
    """A project without any file but one that counts, in which the driver can be run."""
    environment = Layout(tmp_path / "venv", tmp_path / "site")
    environment.site_packages.mkdir()
    layout.add_package(environment, DRIVER, Path(benchmarks.__file__).parent)
    return Project(write(tmp_path / "project", {"counted.py": COUNTED}), environment.site_packages)


def write(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def seconds_of(project: Project, command: str, limit_s: float) -> tuple[float, dict[str, object]]:
    """List within a limit; return what that took, and the listing."""
    started = time.monotonic()
    project.run(f"PERFDIFF_LISTING_S={limit_s} python -m {DRIVER} list {command}")
    return time.monotonic() - started, json.loads((project.folder / "listing.json").read_text())


def names(listing: Mapping[str, object]) -> list[str]:
    return [benchmark["name"] for benchmark in listing["benchmarks"]]  # type: ignore[attr-defined]


HANGS, CRASHES = "import time; time.sleep(1000)", "import os; os.abort()"
GARBAGE = 'print("garbage"); import sys; sys.stdout.flush(); import os; os.system("echo garbage"); input()'
KINDS = {
    "pytest": ("tests/test_a.py", "def test_first(): {0}\ndef test_last(): assert True\n", "pytest tests", "tests/test_a.py::test_last"),
    "unittest": (
        "test_a.py",
        "import unittest\nclass T(unittest.TestCase):\n    def test_first(self): {0}\n    def test_last(self): pass\n",
        "unittest ''",
        "test_a.T.test_last",
    ),
    "asv": ("bench/__init__.py", "def time_first(): {0}\ndef time_last(): pass\n", "asv bench ''", "time_last"),
    "pyperf": (
        "bench.py",
        "import pyperf\ndef first(): {0}\nr = pyperf.Runner()\nr.bench_func('first', first)\nr.bench_func('last', int)\n",
        "pyperf bench.py",
        "bench.py::last",
    ),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("body", "why"),
    [(HANGS, "is not done after 2 s"), (CRASHES, "ends its process by SIGABRT"), ("exit(3)", ""), (GARBAGE, "")],
    ids=["hangs", "crashes", "exits", "reads"],
)
def test_what_hangs_or_crashes_is_told_and_all_else_is_listed(bare: Project, kind: str, body: str, why: str) -> None:
    file, text, command, last = KINDS[kind]
    write(bare.folder, {file: text.format(body)})
    _, listing = seconds_of(bare, command, 9.0)
    assert names(listing) == [last]
    ((name, said),) = listing["failures"].items()  # type: ignore[attr-defined]
    assert name == last.replace("last", "first")
    assert why in said


@pytest.mark.parametrize(
    ("command", "files", "last"),
    [
        ("pytest tests", {"tests/test_a.py": HANGS, "tests/test_b.py": "def test_last(): pass\n"}, "tests/test_b.py::test_last"),
        (
            "unittest ''",
            {"test_a.py": HANGS, "test_b.py": "import unittest\nclass T(unittest.TestCase):\n    def test_last(self): pass\n"},
            "test_b.T.test_last",
        ),
        ("asv bench ''", {"bench/__init__.py": "", "bench/a.py": HANGS, "bench/b.py": "def time_last(): pass\n"}, "b.time_last"),
        ("pyperf ''", {"bench/a.py": f"import pyperf\n{HANGS}\npyperf.Runner()", "bench/b.py": KINDS["pyperf"][1].format("pass")}, ""),
    ],
)
def test_a_file_that_hangs_when_it_is_imported_is_left_out(bare: Project, command: str, files: Mapping[str, str], last: str) -> None:
    write(bare.folder, files)
    _, listing = seconds_of(bare, command, 9.0)
    assert names(listing) == ([last] if last else ["bench/b.py::first", "bench/b.py::last"])
    assert [why for why in listing["failures"].values() if "is not done after 2 s" in why] == ["is not done after 2 s"]  # type: ignore[attr-defined]


def test_a_listing_ends_in_its_time_and_tells_what_was_not_tried(bare: Project) -> None:
    slow = "import time, pytest\n@pytest.mark.parametrize('n', range(40))\ndef test_slow(n): time.sleep(0.3)\n"
    write(bare.folder, {"tests/test_a.py": slow})
    took_s, listing = seconds_of(bare, "pytest tests", 5.0)
    assert took_s < 8.0
    (benchmark,) = listing["benchmarks"]  # type: ignore[misc]
    assert 3 <= len(benchmark["points"]) < 20  # type: ignore[index]
    assert listing["failures"]["tests/test_a.py::test_slow n=39"] == "not tried within 5 s"  # type: ignore[index]
    assert len(listing["failures"]) + len(benchmark["points"]) == 40  # type: ignore[arg-type, index]
    assert set(listing["failures"].values()) == {"not tried within 5 s"}  # type: ignore[attr-defined]
    assert listing["untried"] == [*listing["failures"]]  # type: ignore[misc]


def test_tests_whose_files_are_named_by_what_changed_are_tried_first(bare: Project) -> None:
    files = ("tests/test_a.py", "tests/test_b.py", "tests/formatters/test_html.py")
    write(bare.folder, dict.fromkeys(files, "def test_last(): pass\ndef test_first(): pass\n"))
    expected = [f"{file}::{test}" for file in (files[2], *files[:2]) for test in ("test_last", "test_first")]
    bare.run(f"PERFDIFF_LISTING_LIKELY='formatter formatters html lines' python -m {DRIVER} list pytest tests")
    assert names(json.loads((bare.folder / "listing.json").read_text())) == expected


def test_a_suite_with_many_points_times_each_for_less(bare: Project) -> None:
    text = "def time_it(n): pass\ntime_it.params = list(range(400))\ndef time_last(): pass\n"
    write(bare.folder, {"bench/__init__.py": text})
    _, listing = seconds_of(bare, "asv bench ''", 8.0)  # 20 ms for each point would take 8 s, besides looking for how many calls fit
    assert names(listing) == ["time_it", "time_last"]
    assert listing["failures"] == {}


def test_a_short_test_is_called_twice_and_a_long_one_once(bare: Project) -> None:
    text = "import time\nfrom counted import count\ndef test_short(): count('short')\ndef test_long(): count('long'); time.sleep(0.3)\n"
    cases = "import unittest\nimport test_a\nclass T(unittest.TestCase):\n    def test_s(self): test_a.test_short()\n"
    cases += "    def test_l(self): test_a.test_long()\n"
    write(bare.folder, {"test_a.py": text, "test_cases.py": cases})
    for kind in ("pytest test_a.py", "unittest ''"):
        assert sorted(bare.run(f"python -m {DRIVER} list {kind}")) == ["long", "short", "short"]
        listing = json.loads((bare.folder / "listing.json").read_text())
        assert [again for entry in listing["benchmarks"] for _, _, again in entry["points"]] in ([True, False], [False, True])


@pytest.mark.parametrize("kind", ["pytest tests", "unittest tests.test_a"])
def test_several_tests_run_as_often_as_is_asked_in_one_process(bare: Project, kind: str) -> None:
    text = "import unittest\nfrom counted import count\nclass T(unittest.TestCase):\n"
    text += "    @classmethod\n    def setUpClass(cls): count('class')\n"
    text += "".join(f"    def test_{name}(self): count('{name}')\n" for name in "abc")
    write(bare.folder, {"tests/__init__.py": "", "tests/test_a.py": text})
    entries, _ = bare.listed(*kind.split(" ", 1))
    chosen = [entry["batch"] for name, entry in entries.items() if name.endswith(("test_a", "test_c"))]
    assert len({batch["command"] for batch in chosen}) == 1  # type: ignore[index]
    first = chosen[0]
    command = first["command"].replace("{cases}", first["joint"].join(batch["case"] for batch in chosen))  # type: ignore[index]
    assert bare.run(command.replace("{calls}", "1")) == ["class", "a", "c"]
    assert sorted(bare.run(command.replace("{calls}", "3"))) == ["a"] * 3 + ["c"] * 3 + ["class"]


@pytest.mark.parametrize("options", ["addopts = -x", "addopts = --no-such-option", "required_plugins = no-such-plugin", "addopts = -n 4"])
def test_options_of_the_project_do_not_end_a_listing(bare: Project, options: str) -> None:
    files = {"test_a.py": "def test_fails(): assert 0\ndef test_passes(): pass\n", "test_b.py": "import nowhere\n"}
    write(bare.folder, {**files, "pytest.ini": f"[pytest]\n{options}\n"})
    entries, failures = bare.listed("pytest", "")
    assert list(entries) == ["test_a.py::test_passes"]
    assert failures == {"test_b.py": "ModuleNotFoundError: No module named 'nowhere'", "test_a.py::test_fails": "AssertionError"}
    assert bare.run(entries["test_a.py::test_passes"]["command"].format(calls=2)) == []  # type: ignore[attr-defined]


def test_benchmarks_of_pytest_benchmark_are_apart_from_tests(bare: Project) -> None:
    files = {
        "conftest.py": BENCHMARK,
        "bench/speed.py": "def test_fast(benchmark): benchmark(int)\n",
        "tests/test_a.py": "def test_plain(): pass\ndef test_timed(benchmark): benchmark(int)\n",
    }
    write(bare.folder, files)
    assert list(bare.listed("pytest", "", "benchmarks")[0]) == ["bench/speed.py::test_fast", "tests/test_a.py::test_timed"]
    assert list(bare.listed("pytest", "", "tests")[0]) == ["tests/test_a.py::test_plain"]
    assert list(bare.listed("pytest", "tests")[0]) == ["tests/test_a.py::test_plain", "tests/test_a.py::test_timed"]


CODSPEED = """
import pytest

class BenchmarkFixture:
    def __init__(self):
        self.called = False

    @property
    def __class__(self):
        return BenchmarkFixture

    def __call__(self, target, *args, **kwargs):
        assert not self.called, "once per test"
        self.called = True
        return target(*args, **kwargs)

@pytest.fixture
def codspeed_benchmark():
    return BenchmarkFixture()

@pytest.fixture
def benchmark(codspeed_benchmark):
    return codspeed_benchmark

def pytest_configure(config):
    config.addinivalue_line("markers", "benchmark: mark an entire test for codspeed benchmarking")
"""
MARKED = """
import pytest
from counted import count

@pytest.mark.benchmark
def test_marked(): count('marked')

def test_handed(benchmark): benchmark(count, 'handed')

@pytest.mark.parametrize('n', [1, 2])
def test_points(codspeed_benchmark, n): codspeed_benchmark(count, 'points')

def test_plain(): count('plain')
"""


def test_benchmarks_of_pytest_codspeed_are_tests_that_are_marked_or_have_its_fixture(bare: Project) -> None:
    write(bare.folder, {"codspeed.py": CODSPEED, "pytest.ini": "[pytest]\naddopts = -p codspeed\n", "tests/test_a.py": MARKED})
    assert [str(file) for file in scanning.benchmark_files(bare.folder)] == ["tests/test_a.py"]
    entries, failures = bare.listed("pytest", "", "benchmarks")
    assert (sorted(entries), failures) == ([f"tests/test_a.py::test_{name}" for name in ("handed", "marked", "points")], {})
    assert sorted(bare.listed("pytest", "", "tests")[0]) == ["tests/test_a.py::test_plain"]
    for name in ("handed", "marked"):
        assert bare.run(str(entries[f"tests/test_a.py::test_{name}"]["command"]).format(calls=3)) == [name] * 3


@pytest.mark.parametrize(("declared", "added"), [("pytest-codspeed>=3", []), ("pytest", ["pytest-benchmark"])])
def test_a_project_with_pytest_codspeed_gets_no_other_plugin_for_its_benchmarks(tmp_path: Path, declared: str, added: list[str]) -> None:
    project = f'[project]\nname = "x"\nversion = "1"\noptional-dependencies.test = ["{declared}"]\n'
    write(tmp_path, {"pyproject.toml": project, "tests/test_a.py": MARKED})
    assert BY_NAME["pytest"].needs(tmp_path, [""]).settings == {"optional": (declared, *added)}


def test_benchmarks_leave_no_storage_in_the_tree(bare: Project) -> None:
    checked = """
def pytest_addoption(parser):
    parser.addoption("--benchmark-storage")

def pytest_sessionstart(session):
    import os
    folder = session.config.getoption("--benchmark-storage").removeprefix("file://")
    assert os.path.isdir(folder) and not folder.startswith(os.getcwd())
"""
    write(bare.folder, {"conftest.py": BENCHMARK + checked, "pytest_benchmark.py": "", "test_a.py": BENCH})
    entries, _ = bare.listed("pytest", "", "benchmarks")
    assert bare.run(str(entries["test_a.py::test_a"]["command"]).format(calls=2)) == []


def test_a_trial_that_the_machine_disturbs_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    now = itertools.accumulate([0.0, 0.002, 0.0, 0.001, 0.0, 0.030])  # a call, another one, and two of them with a pause
    monkeypatch.setattr(trials, "own_s", lambda: next(now))
    monkeypatch.setattr(trials, "time", SimpleNamespace(perf_counter=iter([0.0, 0.001, 0.0, 0.030]).__next__))
    assert trials.took(lambda: None) == (pytest.approx(0.001), True)


CASES = """
import unittest
from counted import count

def setUpModule():
    count("module")

class Sorts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        count("class")

    def setUp(self):
        count("set up")

    def test_sort(self):
        count("sort")

    def test_wrong(self):
        self.assertEqual(1, 2)

    def test_part(self):
        for n in (1, 2):
            with self.subTest(n=n):
                self.assertEqual(n, 1)

    @unittest.skip("needs a network")
    def test_network(self):
        pass

    @unittest.expectedFailure
    def test_expected(self):
        self.assertEqual(1, 2)

class Broken(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        raise OSError("no display")

    def test_shown(self):
        pass

class Once(unittest.TestCase):
    calls = []

    def test_once(self):
        self.calls.append(1)
        self.assertEqual(len(self.calls), 1)

class Waits(unittest.IsolatedAsyncioTestCase):
    async def test_awaited(self):
        count("awaited")
"""


def test_cases_of_unittest_are_listed_as_its_discovery_finds_them(bare: Project) -> None:
    write(bare.folder, {"tests/test_a.py": CASES, "tests/test_b.py": "import nowhere\n"})
    entries, failures = bare.listed("unittest", "discover -s tests")
    assert list(entries) == ["test_a.Once.test_once", "test_a.Sorts.test_sort", "test_a.Waits.test_awaited"]
    again = [entry["points"][0][2] for entry in entries.values()]  # type: ignore[index]
    assert again == [False, True, True]
    assert failures.pop("test_b").startswith("ImportError: Failed to import test module: test_b")
    assert failures == {
        "test_a.Broken.test_shown": "what comes before its class or module fails",
        "test_a.Sorts.test_expected": "it is expected to fail",
        "test_a.Sorts.test_network": "is skipped: needs a network",
        "test_a.Sorts.test_part": "AssertionError: 2 != 1",
        "test_a.Sorts.test_wrong": "AssertionError: 1 != 2",
        "setUpClass (test_a.Broken)": "OSError: no display",
    }
    sort, awaited = entries["test_a.Sorts.test_sort"]["command"], entries["test_a.Waits.test_awaited"]["command"]
    assert bare.run(str(sort).format(calls=3)) == ["module", "class", *["set up", "sort"] * 3]
    assert bare.run(str(awaited).format(calls=2)) == ["module", "awaited", "awaited"]


def test_cases_that_a_module_makes_as_it_is_loaded_are_run(bare: Project) -> None:
    text = """
import unittest
from counted import count

def load_tests(loader, tests, pattern):
    return unittest.TestSuite([Made(n) for n in (1, 2)])

class Made(unittest.TestCase):
    def __init__(self, n):
        super().__init__("runTest")
        self.n = n

    def runTest(self):
        count(self.n)

    def id(self):
        return f"made {self.n}"
"""
    write(bare.folder, {"test_a.py": text})
    entries, failures = bare.listed("unittest", "")
    assert (list(entries), failures) == (["made 1", "made 2"], {})
    assert bare.run(str(entries["made 2"]["command"]).format(calls=2)) == ["2", "2"]


SCRIPT = """
import asyncio
import sys
import pyperf
from counted import count

def timed(loops, text):
    started = pyperf.perf_counter()
    for _ in range(loops):
        count(text)
    return pyperf.perf_counter() - started

async def awaited(text):
    await asyncio.sleep(0)
    count(text)

if __name__ == "__main__":
    runner = pyperf.Runner(metadata={"a": 1})
    runner.metadata["description"] = "a script"
    runner.argparser.add_argument("--text", default="text")
    options = runner.parse_args()
    assert runner.bench_func("function", count, "function") is None
    runner.bench_time_func("timed", timed, options.text)
    runner.bench_async_func("awaited", awaited, "awaited")
    runner.timeit("statement", stmt="count(text)", setup="text = 'statement'", teardown="count('end')", globals=globals())
    runner.timeit("count('name')", globals=globals())
    runner.bench_command("command", [sys.executable, "-c", "from counted import count; count('command')"])
    runner.bench_func("fails", int, "x")
    sys.exit(0)
"""


def test_scripts_of_pyperf_run_one_benchmark_as_often_as_is_asked(bare: Project) -> None:
    files = {
        "bench/run.py": SCRIPT,
        "bench/needs.py": "import pyperf\nr = pyperf.Runner()\nr.argparser.add_argument('n')\nr.parse_args()\n",
    }
    write(bare.folder, {**files, "bench/exits.py": "import pyperf, sys\npyperf.Runner()\nsys.exit('no data')\n"})
    entries, failures = bare.listed("pyperf", "")
    names = ["function", "timed", "awaited", "statement", "count('name')", "command"]
    assert list(entries) == [f"bench/run.py::{name}" for name in names]
    assert failures == {
        "bench/run.py::fails": "ValueError: invalid literal for int() with base 10: 'x'",
        "bench/needs.py": "RuntimeError: the script needs arguments",
        "bench/exits.py": "RuntimeError: the script exits with no data",
    }
    texts = ["function", "text", "awaited", "statement", "name", "command"]
    for name, text in zip(names, texts, strict=True):
        end = ["end"] if name == "statement" else []
        assert bare.run(str(entries[f"bench/run.py::{name}"]["command"]).format(calls=3)) == [*[text] * 3, *end]
    assert bare.run(f"python -m {DRIVER} run pyperf bench/run.py absent --calls 1", status=1) == []


def test_points_of_asv_that_are_to_be_skipped_and_caches_that_fail_cost_no_other(bare: Project) -> None:
    text = """
from counted import count

class Fails:
    params = [1, 2]

    def setup_cache(self):
        count("cache")
        raise OSError("no data")

    def time_it(self, cache, n):
        pass

def time_some(n):
    pass

time_some.params = [[1, 2, 3]]
time_some.skip_params = [(2,)]
"""
    write(bare.folder, {"bench/__init__.py": text})
    assert bare.run(f"python -m {DRIVER} list asv bench ''") == ["cache"]
    listing = json.loads((bare.folder / "listing.json").read_text())
    assert {entry["name"]: [values for values, _, _ in entry["points"]] for entry in listing["benchmarks"]} == {"time_some": [[1], [3]]}
    why = "RuntimeError: its setup_cache fails: OSError: no data"
    assert listing["failures"] == {"Fails.time_it param1=1": why, "Fails.time_it param1=2": why}


TEST_CASE = "import unittest\nclass T(unittest.TestCase):\n    def test(self): pass\n"
PYTEST = "def test_a():\n    pass\n"
LONG_BENCH = "class TestA:\n    def test_b(\n        self, x=(1, 2), benchmark=None):\n        pass\n"
BENCH = "def test_a(benchmark):\n    benchmark(int)\n"


@pytest.mark.parametrize(
    ("files", "values"),
    [
        ({"tests/test_a.py": PYTEST}, {"pytest": [""]}),
        ({"tests/test_a.py": TEST_CASE}, {"unittest": ["discover -s tests"]}),
        ({"tests/__init__.py": "", "tests/test_a.py": TEST_CASE}, {"unittest": [""]}),
        ({"tests/test_a.py": TEST_CASE, "tests/unit/test_b.py": f"import pytest\n{TEST_CASE}"}, {"pytest": [""]}),
        ({"my tests/deep/test_a.py": TEST_CASE}, {"unittest": ["discover -s 'my tests/deep'"]}),
        ({"benchmarks/speed.py": BENCH}, {"pytest-benchmark": [""]}),
        ({"benchmarks/speed.py": "def bench_a(benchmark): pass\n"}, {"pytest-benchmark": [""]}),
        ({"tests/test_a.py": BENCH}, {"pytest-benchmark": [""], "pytest": [""]}),
        ({"tests/test_a.py": LONG_BENCH}, {"pytest-benchmark": [""], "pytest": [""]}),
        ({"bench/run.py": "import pyperf\nrunner = pyperf.Runner()\n"}, {"pyperf": [""]}),
        ({"bench/asv.conf.json": "{}", "bench/benchmarks/__init__.py": ""}, {"asv": [""]}),
        ({"tests/data.py": "benchmark = 1\n", "bench/tool.py": "import pyperf\n"}, {}),
        ({"node_modules/x/test_a.py": PYTEST, ".venv/test_a.py": PYTEST, "own/pyvenv.cfg": "", "own/test_a.py": PYTEST}, {}),
    ],
)  # fmt: skip
def test_suites_are_found_by_their_files(tmp_path: Path, files: Mapping[str, str], values: Mapping[str, list[str]]) -> None:
    write(tmp_path, {"pyproject.toml": "[project]\nname='a'\n", **files})
    found_values = {name: list(framework.find(tmp_path)) for name, framework in BY_NAME.items()}
    assert {name: found for name, found in found_values.items() if found} == values
    assert all(BY_NAME[name].read(value) == value for name, found in found_values.items() for value in found)


def test_tests_in_python_of_a_program_in_another_language_are_not_offered(tmp_path: Path) -> None:
    write(tmp_path, {"CMakeLists.txt": "", "src/a.c": "", "tests/test_a.py": PYTEST, "bench/a.py": BENCH})
    assert [value for framework in FRAMEWORKS for value in framework.find(tmp_path)] == []


def test_a_large_tree_is_looked_at_in_little_time_and_likely_folders_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {f"aa/mod{number}.py": "" for number in range(30)} | {"tests/test_a.py": PYTEST, "zz/bench.py": BENCH})
    monkeypatch.setattr(scanning, "MOST_FILES", 10)
    assert scanning.has_pytest_tests(tmp_path)
    assert list(scanning.benchmark_files(tmp_path)) == []


PYPROJECT = '[project]\nname = "my_lib"\nversion = "1"\ndependencies = ["dep"]\n'
EXTRAS = f"{PYPROJECT}[project.optional-dependencies]\n"
GROUPS = """[dependency-groups]
tests = ["a", {include-group = "more"}]
more = ["b", {include-group = "tests"}]
"""
POETRY = """[tool.poetry]
name = "x"
[tool.poetry.group.test.dependencies]
a = "^1.2"
b = "*"
c = "~2.1"
d = {version = "^0.3.1", extras = ["e"]}
f = "1.0"
"""
SETUP = "from setuptools import setup\nextras = {}\nsetup(name='x', "
SETTINGS = "[metadata]\nname = x\n[options.extras_require]\ntesting =\n    a  # why\n    b; python_version > '3'\n"
TOX = "[testenv]\ndeps =\n    a\n    py27: old\n    -r{toxinidir}/reqs.txt\n    {[base]deps}\n"


@pytest.mark.parametrize(
    ("files", "requirements"),
    [
        ({"pyproject.toml": f'{EXTRAS}Test = ["a>=1"]\ndocs = ["sphinx"]\ndev = ["black"]\n'}, ["a>=1"]),
        ({"pyproject.toml": f'{EXTRAS}test = ["my-lib[more]"]\nmore = ["a"]\n'}, ["a"]),
        ({"pyproject.toml": f"{PYPROJECT}{GROUPS}"}, ["a", "b"]),
        ({"pyproject.toml": f'{PYPROJECT}[dependency-groups]\ndev = ["a"]\n'}, ["a"]),
        ({"pyproject.toml": f'{PYPROJECT}[tool.hatch.envs.test]\ndependencies = ["a"]\nextra-dependencies = ["b"]\n'}, ["a", "b"]),
        ({"pyproject.toml": POETRY}, ["a>=1.2,<2", "b", "c>=2.1,==2.1.*", "d[e]>=0.3.1,<0.4", "f==1.0"]),
        ({"pyproject.toml": f'{PYPROJECT}[tool.pdm.dev-dependencies]\ntest = ["a"]\n'}, ["a"]),
        ({"pyproject.toml": f'{PYPROJECT}[tool.uv]\ndev-dependencies = ["a"]\n'}, ["a"]),
        ({"setup.py": f"{SETUP} extras_require={{'test': ['a'], 'docs': ['b']}})\n"}, ["a"]),
        ({"setup.py": f"{SETUP} tests_require=['a'], extras_require=extras)\n"}, ["a"]),
        ({"setup.cfg": SETTINGS}, ["a", "b; python_version > '3'"]),
        ({"requirements-test.txt": "-r requirements.txt\na\n--index-url x\n", "requirements.txt": "b\n"}, ["b", "a"]),
        ({"requirements/tests.txt": "a\n", "requirements/docs.txt": "b\n", "requirements-dev.txt": "c\n"}, ["a"]),
        ({"tests/requirements.txt": "a\n", "test-requirements.txt": "b\n"}, ["b", "a"]),
        ({"requirements_dev.txt": "-r absent.txt\n"}, []),
        ({"tox.ini": TOX, "reqs.txt": "b\n"}, ["a", "b"]),
        ({"pyproject.toml": "not toml"}, []),
        ({"pyproject.toml": PYPROJECT}, []),
    ],
)
def test_what_tests_need_is_read_where_projects_declare_it(tmp_path: Path, files: Mapping[str, str], requirements: list[str]) -> None:
    assert list(testing.requirements(write(tmp_path, files))) == requirements


def test_plugins_that_files_use_are_needed_too(tmp_path: Path) -> None:
    write(tmp_path, {"requirements-test.txt": "a\n", "tests/test_a.py": BENCH, "bench/run.py": "import pyperf\npyperf.Runner()\n"})
    for name in ("pytest", "pytest-benchmark", "unittest", "pyperf"):
        assert BY_NAME[name].needs(tmp_path, [""]).settings == {"optional": ("a", "pytest-benchmark", "pyperf")}
    write(tmp_path, {"requirements-test.txt": "pytest-benchmark==4\n"})
    assert BY_NAME["pytest"].needs(tmp_path, [""]).settings == {"optional": ("pytest-benchmark==4", "pyperf")}


def test_the_driver_is_called_with_words_that_the_shell_keeps(bare: Project) -> None:
    write(bare.folder, {"tests/test_words.py": "def test_a(): pass\ndef test_b(): pass\n"})
    entries, _ = bare.listed("pytest", "tests -k 'test_a or test_x'")
    (command,) = [str(entry["command"]) for entry in entries.values()]
    assert shlex.split(command)[5] == "tests -k 'test_a or test_x'"
    assert bare.run(command.format(calls=1)) == []
