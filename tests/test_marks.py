"""One run of many tests tells what each of them calls: its driver marks where each ends, and what probes counted until then is its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import java_programs
import php_programs
import python_programs
from perfdiff.collect.recordings import marks
from perfdiff.collect.recordings.marks import MarkedRun
from perfdiff.config import DRIVER
from perfdiff.languages.java import suites
from perfdiff.languages.php.suites.trials import DRIVERS
from perfdiff.languages.python import benchmarks, layout
from perfdiff.languages.python.layout import Layout
from perfdiff.records.plan import ProbePlan
from perfdiff.records.recording import Recording
from php_suites import AUTOLOAD, PHPUNIT_11
from probed_runs import Outcome

JARS, JAVA_DRIVER = Path("/usr/share/java"), Path(suites.__file__).parent / "driver"
needs_junit = pytest.mark.skipif(not (JARS / "junit4.jar").is_file(), reason="Debian's junit4 is not installed")
WORK = """
import subprocess, sys, threading

def load(): pass
def work(n): pass
def shared(): pass
def put_away(): pass

def many(n):
    for _ in range(n):
        work(n)

def elsewhere():
    subprocess.run([sys.executable, "-c", "import work; work.many(7)"], check=True)

def threaded():
    thread = threading.Thread(target=many, args=(5,))
    thread.start()
    thread.join()

load()
"""
CASES = """
import unittest
from work import *

class First(unittest.TestCase):
    @classmethod
    def setUpClass(cls): shared()
    @classmethod
    def tearDownClass(cls): put_away()
    def test_a(self): many(1000)
    def test_b(self): pass

class Second(unittest.TestCase):
    def test_child(self): elsewhere()
    def test_fails(self): work(1); self.fail()
    def test_thread(self): threaded()
"""
ITEMS = """
import pytest
from work import *

@pytest.fixture(scope="module")
def once():
    shared()
    yield
    put_away()

def test_a(once): many(1000)
@pytest.mark.parametrize("n", [10, 30])
def test_b(n): many(n)
def test_child(): elsewhere()
def test_fails(): work(1); assert False
def test_thread(): threaded()
"""
FUNCTIONS = ("load", "work", "shared", "put_away")
Runs = Callable[[str, str, Sequence[str]], tuple[Outcome, MarkedRun | None]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runs:
    """Run some tests of a file in one process with probes, marked as a run is that looks which of them reach a change."""

    def made(kind: str, text: str, cases: Sequence[str]) -> tuple[Outcome, MarkedRun | None]:
        python = python_programs.environment(tmp_path / "venv", Path(python_programs.interpreter() or ""))
        (site,) = (tmp_path / "venv").glob("lib/python3*/site-packages")
        layout.add_package(Layout(tmp_path / "venv", site), DRIVER, Path(benchmarks.__file__).parent)
        (site / "own.pth").write_text(sysconfig.get_path("purelib"))
        monkeypatch.setenv(marks.WANTED, str(tmp_path / "marks"))
        files = {"work.py": WORK, "test_it.py": text}
        program = python_programs.program(tmp_path, python, files, {f"work.py::{name}": () for name in FUNCTIONS})
        outcome = program.run("-m", DRIVER, "batch", kind, "", "1", *cases, mode=ProbePlan.tally())
        return outcome, marks.read(tmp_path / "marks", outcome.recordings)

    return made


def named(calls: Mapping[int, float]) -> dict[str, float]:
    """Return calls by the names of the functions."""
    return {FUNCTIONS[number - 1]: count for number, count in calls.items() if count}


@pytest.mark.integration
def test_cases_of_unittest_are_told_apart_with_what_their_class_shares(run: Runs) -> None:
    names = [f"test_it.{name}" for name in ("First.test_a", "First.test_b", "Second.test_child", "Second.test_fails", "Second.test_thread")]
    outcome, marked = run("unittest", CASES, names)
    assert outcome.status == 0, "what fails is told by its mark"
    assert marked is not None
    assert {name.removeprefix("test_it."): named(calls) for name, calls in marked.passed.items()} == {
        "First.test_a": {"work": 1000, "shared": 1},
        "First.test_b": {"put_away": 1},
        "Second.test_child": {"work": 7, "load": 1},
        "Second.test_thread": {"work": 5},
    }
    assert marked.failed == {"test_it.Second.test_fails"}
    assert named(marked.start) == {"load": 1}


@pytest.mark.integration
def test_tests_of_pytest_are_told_apart_those_with_parameters_by_the_mean_of_their_points(run: Runs) -> None:
    outcome, marked = run("pytest", ITEMS, [f"test_it.py::test_{name}" for name in ("a", "b", "child", "fails", "thread")])
    assert outcome.status == 0
    assert marked is not None
    assert {name.removeprefix("test_it.py::test_"): named(calls) for name, calls in marked.passed.items()} == {
        "a": {"work": 1000, "shared": 1},
        "b": {"work": 20},
        "child": {"work": 7, "load": 1},
        "thread": {"work": 5, "put_away": 1},
    }
    assert marked.failed == {"test_it.py::test_fails"}
    assert named(marked.start) == {"load": 1}


PHP_WORK = """<?php
namespace Own;

final class Work
{
    public static function work(int $n): void
    {
    }

    public static function many(int $n): void
    {
        for ($i = 0; $i < $n; $i++) {
            self::work($i);
        }
    }
}
"""
PHP_TESTS = """<?php
use Own\\Work;
use PHPUnit\\Framework\\TestCase;

final class WorkTest extends TestCase
{
    public static function sizes(): array
    {
        return ['few' => [10], 'many' => [30]];
    }

    public function testLong(): void
    {
        Work::many(1000);
        $this->assertTrue(true);
    }

    /** @dataProvider sizes */
    public function testSizes(int $n): void
    {
        Work::many($n);
        $this->assertTrue(true);
    }

    public function testNothing(): void
    {
        $this->assertTrue(true);
    }

    public function testFails(): void
    {
        Work::work(1);
        $this->assertTrue(false);
    }
}
"""


@pytest.mark.integration
@pytest.mark.parametrize("phpunit", [pytest.param("", id="on PATH"), pytest.param(PHPUNIT_11, id="tells events")])
def test_tests_of_phpunit_are_told_apart(tmp_path: Path, phpunit: str) -> None:
    if not phpunit and shutil.which("phpunit") is None:
        pytest.skip("needs PHPUnit (Debian: phpunit)")
    vendor = {"vendor/autoload.php": AUTOLOAD + "require_once __DIR__ . '/phpunit.php';\n" * bool(phpunit), "vendor/phpunit.php": phpunit}
    files = {"src/Work.php": PHP_WORK, "WorkTest.php": PHP_TESTS, **vendor}
    program = php_programs.program(tmp_path, files, {"src/Work.php::Own\\Work::work": (), "src/Work.php::Own\\Work::many": ()})
    cases = [f"WorkTest::test{name}@WorkTest.php" for name in ("Long", "Sizes", "Nothing", "Fails")]
    outcome = program.run(
        str(DRIVERS / "phpunit.php"), "run", '["WorkTest.php"]', "1", *cases,
        mode=ProbePlan.tally(), more={marks.WANTED: str(tmp_path / "marks")},
    )  # fmt: skip
    assert outcome.status == 0, outcome.errors
    marked = marks.read(tmp_path / "marks", outcome.recordings)
    assert marked is not None
    assert marked.passed == {"WorkTest::testLong": {1: 1000, 2: 1}, "WorkTest::testSizes": {1: 20, 2: 1}, "WorkTest::testNothing": {}}
    assert marked.failed == {"WorkTest::testFails"}


JAVA_WORK = "package own; public class Work { static int sum; public static void work(int n) { sum += n; } }"
JAVA_TESTS = """
package own;

import static org.junit.Assert.*;
import org.junit.Test;

public class WorkTest {
    @Test public void works() { for (int n = 0; n < 1000; n++) { Work.work(n); } }
    @Test public void fails() { Work.work(1); assertTrue(false); }
    @Test public void idles() { }
}
"""


@pytest.mark.integration
@needs_junit
@pytest.mark.parametrize(("limit_s", "passed", "failed"), [("60", {"works": {1: 1000}, "idles": {}}, {"fails"}), ("0", {}, set())])
def test_tests_of_junit_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit_s: str, passed: dict[str, dict[int, int]], failed: set[str]
) -> None:
    driver = {f"perfdiff/suites/{name}.java": (JAVA_DRIVER / f"{name}.java").read_text() for name in ("Report", "Suite", "Junit4Suite")}
    files = {"own/Work.java": JAVA_WORK, "own/WorkTest.java": JAVA_TESTS, **driver}
    program = java_programs.program(tmp_path, java_programs.jdk(), files, {"own/Work work (I)V": ()}, "-cp", f"{JARS}/junit4.jar")
    monkeypatch.setenv(marks.WANTED, str(tmp_path / "marks"))
    monkeypatch.setenv(marks.LIMIT_S, limit_s)
    ids = [f"own.WorkTest#{name}(own.WorkTest)" for name in ("works", "fails", "idles")]
    class_path = f".:{JARS}/junit4.jar:{JARS}/hamcrest-all.jar"
    outcome = program.run("-cp", class_path, "perfdiff.suites.Junit4Suite", "run", "1", *ids, mode=ProbePlan.tally())
    marked = marks.read(tmp_path / "marks", outcome.recordings)
    assert marked is not None
    assert marked.passed == {f"own.WorkTest#{name}(own.WorkTest)": calls for name, calls in passed.items()}
    assert marked.failed == {f"own.WorkTest#{name}(own.WorkTest)" for name in failed}


@pytest.mark.integration
@pytest.mark.parametrize(("kind", "text", "name"), [("unittest", CASES, "test_it.First.test_{}"), ("pytest", ITEMS, "test_it.py::test_{}")])
def test_no_test_begins_when_the_time_is_over(run: Runs, monkeypatch: pytest.MonkeyPatch, kind: str, text: str, name: str) -> None:
    monkeypatch.setenv(marks.LIMIT_S, "0")
    outcome, marked = run(kind, text, [name.format("a"), name.format("b")])
    assert outcome.status == 0
    assert marked is not None
    assert not marked.passed
    assert named(marked.start) == {"load": 1}


def recorded(folder: Path, name: str, calls: Mapping[int, int]) -> Recording:
    """Return what is asked of the recording of a process that left in a file when it began."""
    totals = SimpleNamespace(probe=np.array(list(calls), int), calls=np.array(list(calls.values()), float))
    recording: Any = SimpleNamespace(pid=7, started_unix_ns=int((folder / name).read_text()), totals=totals)
    return recording  # type: ignore[no-any-return]


def test_commands_that_a_shell_runs_are_told_apart_by_when_their_processes_began(tmp_path: Path) -> None:
    commands = {
        "it's long": "(date +%s%N > a; date +%s%N > b) ",
        "fails": "(date +%s%N > c; exit 3)",
        "last": "(cd . && test $? = 0 && date +%s%N > d)",
    }
    variables = {"PATH": os.environ["PATH"], marks.WANTED: str(tmp_path / "marks"), marks.LIMIT_S: "29.5"}
    subprocess.run(["sh", "-c", marks.script(commands)], cwd=tmp_path, env=variables, check=True)
    recordings = [recorded(tmp_path, name, {number: 10}) for number, name in enumerate("abcd", 1)]
    marked = marks.read(tmp_path / "marks", [*recordings, recorded(tmp_path, "b", {1: 5})])
    assert marked == MarkedRun({"it's long": {1: 15.0, 2: 10.0}, "last": {4: 10.0}}, frozenset({"fails"}), {})
    assert marks.read(tmp_path / "marks", []) is None, "what the processes of an ended run called is not known"


def test_no_command_begins_when_the_time_is_over(tmp_path: Path) -> None:
    variables = {"PATH": os.environ["PATH"], marks.WANTED: str(tmp_path / "marks"), marks.LIMIT_S: "1"}
    script = marks.script({"long": "sleep 1.2; date +%s%N > began", "late": "false"})
    subprocess.run(["sh", "-c", script], cwd=tmp_path, env=variables, check=True)
    marked = marks.read(tmp_path / "marks", [recorded(tmp_path, "began", {1: 1})])
    assert marked == MarkedRun({"long": {1: 1.0}}, frozenset(), {})


@pytest.mark.parametrize(
    ("text", "passed"),
    [
        ("", None),
        ("no mark\n", None),
        ("1 5\t2 x \tpassed a\n", None),
        ("1 5\t2 3 \tpassed before any start\n", None),
        ("1 5\t\tstart\n1 6\t2 3 \tpassed a\n1 7\t2 9 \tpass", {"a": {2: 3.0}}),
        ("1 5\t\tstart\n1 6\t2 3 \tpassed a\n9 7\t\tstart\n9 8\t2 4 \tpassed a\n", {"a": {2: 4.0}}),
    ],
    ids=["empty", "garbage", "no number", "no start", "killed within a line", "made again"],
)
def test_what_is_no_whole_line_of_the_last_run_is_no_mark(tmp_path: Path, text: str, passed: object) -> None:
    (tmp_path / "marks").write_text(text)
    marked = marks.read(tmp_path / "marks", [])
    assert (marked.passed if marked else None) == passed


def test_a_run_without_marks_tells_nothing_apart(tmp_path: Path) -> None:
    assert marks.read(tmp_path / "marks", []) is None
