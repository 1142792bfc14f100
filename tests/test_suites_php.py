"""Benchmarks of phpbench and tests of PHPUnit as suites: what drivers in a project's PHP list and run."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from perfdiff.build.built import Built
from perfdiff.collect.built import reach
from perfdiff.config import Suite, WorkloadConfig
from perfdiff.configuration import recognition, suites
from perfdiff.errors import NothingCalledError
from perfdiff.languages.frameworks import Needs
from perfdiff.languages.listing import LISTED_TO, LISTING_S, Benchmark, SuiteListing
from perfdiff.languages.php.frameworks import FRAMEWORKS, Phpbench
from perfdiff.languages.php.homes import SUITES
from perfdiff.languages.php.index import index as php_index
from perfdiff.languages.php.suites.trials import DRIVERS
from perfdiff.languages.protocol import Probe
from perfdiff.languages.python.index import index as python_index
from perfdiff.records.schema import Side
from php_suites import AUTOLOAD, BENCH, BROKEN, ENDING, NOTES, PHPUNIT_11, SHARED, TESTS, XML

needs_php = pytest.mark.skipif(shutil.which("php") is None, reason="needs PHP (Debian: php-cli)")
needs_phpunit = pytest.mark.skipif(shutil.which("phpunit") is None, reason="needs PHPUnit (Debian: phpunit)")
of_both = pytest.mark.parametrize(
    "phpunit", [pytest.param("", id="on PATH", marks=needs_phpunit), pytest.param(PHPUNIT_11, id="tells events", marks=needs_php)]
)
Makes = Callable[[Mapping[str, str]], Path]
NAMES = "Own\\Benchmarks\\NotesBench::"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Makes:
    """Return a function that makes files of a project, which becomes the current folder."""
    monkeypatch.chdir(tmp_path)

    def make(files: Mapping[str, str]) -> Path:
        for name, text in {"vendor/autoload.php": AUTOLOAD, "src/Notes.php": NOTES, "src/Shared.php": SHARED, **files}.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        return tmp_path

    return make


def asked(framework: str, value: str = "", limit_s: float = 30.0) -> subprocess.CompletedProcess[str]:
    """List a suite in the current folder as perfdiff does."""
    environment = {**os.environ, LISTED_TO: "listing.json", LISTING_S: f"{limit_s:g}"}
    command = [sys.executable, "-P", "-m", "perfdiff.languages.listing", f"perfdiff.languages.php.suites.{framework}:listed", value]
    return subprocess.run(command, check=False, env=environment, timeout=2 * limit_s, capture_output=True, text=True)


def listed(framework: str, value: str = "", limit_s: float = 30.0) -> SuiteListing:
    ended = asked(framework, value, limit_s)
    assert ended.returncode == 0, ended.stderr
    Path("notes.txt").unlink(missing_ok=True)
    return SuiteListing.read(Path("listing.json").read_text())


def ran(command: str, **values: object) -> list[str]:
    """Run a command of a listing at a point; return the notes that were taken."""
    for name, value in values.items():
        command = command.replace(f"{{{name}}}", shlex.quote(str(value)))
    Path("notes.txt").unlink(missing_ok=True)
    ended = subprocess.run(
        ["/bin/sh", "-c", command], check=False, capture_output=True, text=True, env={**os.environ, SUITES: str(DRIVERS)}
    )
    assert (ended.returncode, ended.stdout) == (0, ""), ended.stderr
    assert "Sebastian Bergmann" not in ended.stderr, "what PHPUnit prints is no output of the project"
    return Path("notes.txt").read_text().splitlines() if Path("notes.txt").exists() else []


def repeatable(benchmark: Benchmark) -> dict[tuple[float | str, ...], bool]:
    return {values: again for values, (_, again) in benchmark.points.items()}


@needs_php
def test_subjects_of_phpbench_are_listed_at_the_values_that_tell_their_sets_apart(project: Makes) -> None:
    project({"phpbench.json": '{"runner.path": "perf"}', "perf/NotesBench.php": BENCH, "perf/script.php": "<?php exit(1);"})
    listing = listed("phpbench")
    sized, objects = (listing.benchmarks[f"{NAMES}bench{name}"] for name in ("Sized", "Objects"))
    assert sized.parameters == ("size", "kind")
    assert repeatable(sized) == {(size, kind): True for size in (10, 1000) for kind in ('a "b"', "10")}
    assert (objects.parameters, list(objects.points)) == (("set",), [("one",), ("two\\n",)])
    assert repeatable(listing.benchmarks[f"{NAMES}benchOnce"]) == {(): False}
    assert {f"{NAMES}named", f"{NAMES}benchInherited"} < listing.benchmarks.keys()
    assert "perf/script.php" not in listing.failures
    assert listing.start_s > 0


@needs_php
def test_subjects_that_fail_or_end_the_process_are_told_and_the_others_tried(project: Makes) -> None:
    project({"benchmarks/NotesBench.php": BENCH, "benchmarks/LostBench.php": "<?php class LostBench extends Lost { }"})
    listing = listed("phpbench")
    assert listing.failures == {
        "benchmarks/LostBench.php": 'Error: Class "Lost" not found',
        f"{NAMES}benchThrows": "RuntimeException: wrong",
        f"{NAMES}benchExits": "it ends the process, with exit code 0",
        f"{NAMES}benchHungry": listing.failures[f"{NAMES}benchHungry"],
    }
    assert listing.failures[f"{NAMES}benchHungry"].startswith("Fatal error: Allowed memory size of 33554432 bytes exhausted")
    assert f"{NAMES}named" in listing.benchmarks


@needs_php
def test_a_subject_is_called_between_its_hooks_a_new_object_for_each_of_its_revolutions(project: Makes) -> None:
    project({"benchmarks/NotesBench.php": BENCH})
    benchmarks = listed("phpbench").benchmarks
    given = '{"size":1000,"data":[3],"kind":"10"}'
    portion = [f"prepare {given}", *["sized"] * 3, "tidy"]
    assert ran(benchmarks[f"{NAMES}benchSized"].command, calls=5, size=1000, kind="10") == [
        "open", *portion, f"prepare {given}", "sized", "sized", "tidy", "close",
    ]  # fmt: skip
    data = '{"data":null}'
    notes = ran(benchmarks[f"{NAMES}benchObjects"].command, calls=2, set="two\\n")
    assert notes == ["open", f"prepare {data}", *[f"objects {data}"] * 2, "close"]
    assert ran(benchmarks[f"{NAMES}named"].command, calls=2) == ["open", *["prepare []", "named"] * 2, "close"]


@needs_php
@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("NotesBench::named$", {"named"}),
        ("other/NotesBench.php 'named|Inherited'", {"named", "benchInherited"}),
        ("nothing", set()),
    ],
)
def test_words_select_paths_and_names_of_subjects(project: Makes, words: str, names: set[str]) -> None:
    project({"other/NotesBench.php": BENCH, "phpbench.json": '{"path": "other"}'})
    assert {name.removeprefix(NAMES) for name in listed("phpbench", words).benchmarks} == names


@needs_php
@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({"phpbench.json": '{"runner.bootstrap": "tests/start.php"}'}, "there is no tests/start.php here"),
        ({"phpbench.json": "{"}, "phpbench.json is no JSON"),
        ({"phpbench.json": '{"runner.path": "gone"}', "composer.json": "{}", "vendor/autoload.php": AUTOLOAD}, "there is no gone here"),
    ],
)
def test_what_keeps_phpbench_from_its_benchmarks_is_said(project: Makes, files: Mapping[str, str], says: str) -> None:
    place = project({"benchmarks/NotesBench.php": BENCH, **files})
    if "vendor/autoload.php" not in files:
        (place / "vendor/autoload.php").unlink()
    ended = asked("phpbench")
    assert ended.returncode == 1
    assert says in ended.stderr
    assert "Traceback" not in ended.stderr


@of_both
def test_tests_are_listed_by_one_run_with_their_data_sets(project: Makes, phpunit: str) -> None:
    project(files_of(phpunit))
    listing = listed("phpunit")
    sets = listing.benchmarks["NotesTest::testSets"]
    assert sets.parameters == ("set",)
    assert repeatable(sets) == {(name,): True for name in ('few "\\\\{n}"', "new\\nline", "#0", "\\#0")}
    again = {name: repeatable(benchmark) for name, benchmark in listing.benchmarks.items() if not benchmark.parameters}
    names = dict.fromkeys(("testPrints", "testRisky", "testFirst", "testSecond"), True) | {"testOnce": False}
    assert again == {f"NotesTest::{name}": {(): is_again} for name, is_again in names.items()}
    assert listing.failures.keys() == {"NotesTest::testFails", "BrokenTest::testNothing"}
    assert "one is not two" in listing.failures["NotesTest::testFails"]
    assert "no set up" in listing.failures["BrokenTest::testNothing"]


@of_both
def test_a_test_runs_so_often_in_one_process_after_those_it_depends_on(project: Makes, phpunit: str) -> None:
    project(files_of(phpunit))
    benchmarks = listed("phpunit").benchmarks
    for name, size in (('few "\\\\{n}"', 10), ("new\\nline", 20), ("#0", 30), ("\\#0", 40)):
        assert ran(benchmarks["NotesTest::testSets"].command, calls=3, set=name) == ["set up", f"size {size}"] * 3
    assert ran(benchmarks["NotesTest::testSecond"].command, calls=2) == ["set up", "first", *["set up", "second 5"] * 2]


@of_both
def test_several_tests_run_in_one_process(project: Makes, phpunit: str) -> None:
    project(files_of(phpunit))
    batches = [benchmark.batch for benchmark in listed("phpunit").benchmarks.values() if benchmark.batch]
    assert len({batch.command for batch in batches}) == 1
    cases = batches[0].joint.join(batch.case for batch in batches)
    notes = ran(batches[0].command.replace("{cases}", cases))
    assert sorted(note for note in notes if note != "set up") == ["first", "second 5", "size 10", "size 20", "size 30", "size 40"]


@of_both
def test_a_test_that_no_longer_passes_or_runs_fails_the_run(project: Makes, phpunit: str) -> None:
    place = project(files_of(phpunit))
    command = listed("phpunit").benchmarks["NotesTest::testFirst"].command
    test = place / "tests/NotesTest.php"
    test.write_text(TESTS.replace("assertTrue(true)", "assertTrue(false)"))
    with pytest.raises(AssertionError, match="NotesTest::testFirst: "):
        ran(command, calls=1)
    test.write_text(TESTS.replace("testFirst", "testElse"))
    with pytest.raises(AssertionError, match="NotesTest::testFirst did not run"):
        ran(command, calls=1)


@of_both
def test_tests_that_end_the_process_or_never_end_are_told_and_the_others_listed(project: Makes, phpunit: str) -> None:
    endings = {f"tests/{name}Test.php": ENDING.replace("Ending", name) for name in ("Notes", "Broken")}
    project({**files_of(phpunit), **endings})
    listing = listed("phpunit", limit_s=8)
    assert listing.failures["NotesTest::testExits"] == "it ends the process, with exit code 0"
    assert listing.failures["NotesTest::testHungry"].startswith("Fatal error: Allowed memory size")
    assert listing.failures["NotesTest::testHangs"] == "it did not end within 2 s"
    assert listing.benchmarks.keys() == {"NotesTest::testFine", "BrokenTest::testFine"}


@of_both
@pytest.mark.parametrize(("limit_s", "whole"), [(4.0, False), (60.0, True)])
def test_tests_that_had_no_time_are_no_failures(project: Makes, phpunit: str, limit_s: float, whole: bool) -> None:
    naps = " ".join(f"public function testNap{number}(): void {{ usleep(600000); $this->assertTrue(true); }}" for number in range(5))
    begins = ENDING[: ENDING.index("{") + 1]
    project(
        {**files_of(phpunit), **{f"tests/{name}Test.php": f"{begins.replace('Ending', name)} {naps} }}\n" for name in ("Notes", "Broken")}}
    )
    listing = listed("phpunit", limit_s=limit_s)
    assert listing.whole is whole
    assert (len(listing.benchmarks) < 10) is not whole
    assert listing.untried == listing.failures.keys()
    assert len(listing.untried) == (0 if whole else 1)


@needs_phpunit
def test_a_test_in_a_process_of_its_own_has_one_for_each_call(project: Makes) -> None:
    apart = TESTS.replace("public function testFirst", "/** @runInSeparateProcess */ public function testFirst").replace(
        "@depends testFirst", ""
    )
    project({**files_of(""), "tests/NotesTest.php": apart})
    first = listed("phpunit").benchmarks["NotesTest::testFirst"]
    assert first.points[()][0] > 0.005  # a process took part
    assert ran(first.command, calls=2) == ["set up", "first"] * 2


@needs_phpunit
def test_arguments_of_phpunit_select_tests_and_a_filter_gives_way_to_that_of_a_run(project: Makes) -> None:
    project(files_of(""))
    listing = listed("phpunit", "--filter 'testFirst|testPrints' tests/NotesTest.php")
    assert listing.benchmarks.keys() == {"NotesTest::testFirst", "NotesTest::testPrints"}
    command = listing.benchmarks["NotesTest::testFirst"].command
    assert "testPrints" not in command
    assert ran(command, calls=2) == ["set up", "first"] * 2


@needs_php
def test_a_project_without_phpunit_is_told_how_to_get_it(project: Makes, monkeypatch: pytest.MonkeyPatch) -> None:
    place = project({"tests/NotesTest.php": TESTS})
    (place / "bin").mkdir()
    (place / "bin/php").symlink_to(shutil.which("php") or "")
    monkeypatch.setenv("PATH", str(place / "bin"))
    ended = asked("phpunit")
    assert ended.returncode == 1
    assert '[build] command = "composer install"' in ended.stderr


@needs_phpunit
def test_what_phpunit_says_where_it_cannot_begin_is_told_with_what_to_do(project: Makes) -> None:
    project({**files_of(""), "composer.json": "{}"})
    ended = asked("phpunit", "--no-such-option")
    assert ended.returncode == 1
    assert "no-such-option" in ended.stderr


@needs_phpunit
def test_what_a_bootstrap_lacks_of_composer_is_told_with_what_to_do(project: Makes) -> None:
    boot = "<?php\nrequire __DIR__ . '/vendor/autoload.php';\n"
    place = project({**files_of(""), "composer.json": "{}", "boot.php": boot, "phpunit.xml": '<phpunit bootstrap="boot.php"/>'})
    (place / "vendor/autoload.php").unlink()
    ended = asked("phpunit")
    assert ended.returncode == 1
    assert ended.stderr.startswith("vendor/autoload.php is not there, so that packages of others are not: run `composer install`")


COMPOSER = '{"autoload": {"psr-4": {"Own\\\\": ["src/"]}}, "autoload-dev": {"psr-4": {"Own\\\\Benchmarks\\\\": "benchmarks"}}}'


@needs_phpunit
@pytest.mark.parametrize(
    ("framework", "files", "name"),
    [
        ("phpbench", {"benchmarks/NotesBench.php": BENCH}, f"{NAMES}named"),
        ("phpunit", {"tests/NotesTest.php": TESTS, "phpunit.xml.dist": XML}, "NotesTest::testFirst"),
    ],
)
def test_a_project_that_composer_laid_nothing_for_has_its_own_classes(
    project: Makes, framework: str, files: Mapping[str, str], name: str
) -> None:
    (project({"composer.json": COMPOSER, **files}) / "vendor/autoload.php").unlink()
    listing = listed(framework)
    assert '[build] command = "composer install"' in listing.failures["vendor/autoload.php"]
    assert ran(listing.benchmarks[name].command, calls=1)


def files_of(phpunit: str) -> dict[str, str]:
    """Return the files of a project with tests; `phpunit` comes with its own vendor folder, if it is not the one on PATH."""
    loads = AUTOLOAD + phpunit.removeprefix("<?php") if phpunit else AUTOLOAD
    both = {"vendor/autoload.php": AUTOLOAD + "require_once __DIR__ . '/phpunit.php';\n", "vendor/phpunit.php": phpunit}
    own = both if phpunit else {"vendor/autoload.php": loads}
    return {"tests/NotesTest.php": TESTS, "tests/BrokenTest.php": BROKEN, "phpunit.xml.dist": XML, **own}


@pytest.mark.parametrize(
    ("files", "values"),
    [
        ({"phpbench.json": "{}"}, {"phpbench": [""]}),
        ({"tests/Benchmark/SortBench.php": "", "tests/SortTest.php": ""}, {"phpbench": [""], "phpunit": ["tests"]}),
        ({"benchmarks/run.php": "", "tests/cases.php": ""}, {}),
        ({"phpunit.xml": "", "tests/SortTest.php": ""}, {"phpunit": [""]}),
    ],
)
def test_suites_are_found_by_their_configuration_and_their_files(
    tmp_path: Path, files: Mapping[str, str], values: Mapping[str, list[str]]
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found_values = {framework.name: list(framework.find(tmp_path)) for framework in FRAMEWORKS}
    assert {name: found for name, found in found_values.items() if found} == values


def test_both_revisions_have_the_packages_of_the_checkout_or_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    assert Phpbench().needs(tmp_path, [""]) == Needs()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/composer").write_text("#!/bin/sh\n")
    (tmp_path / "bin/composer").chmod(0o755)
    (tmp_path / "composer.json").write_text('{"config": {"vendor-dir": "lib/packages"}}')
    assert Phpbench().needs(tmp_path, [""]) == Needs(build={"command": "composer install --no-interaction --no-progress"})
    (tmp_path / "lib/packages").mkdir(parents=True)
    (tmp_path / "lib/packages/autoload.php").write_text(AUTOLOAD)
    assert Phpbench().needs(tmp_path, [""]) == Needs(overlay=("lib/packages",))
    subprocess.run(["git", "-C", str(tmp_path), "add", "lib"], check=True)
    assert Phpbench().needs(tmp_path, [""]) == Needs()


def test_what_lists_the_suites_of_one_language_tells_no_project_of_another(tmp_path: Path) -> None:
    workload = suites.with_command(WorkloadConfig("phpbench", suite=Suite("phpbench", "")), tmp_path)
    assert "python" in workload.command
    assert recognition.recognised(tmp_path, [workload], (), {"php"}).languages.keys() == {"php"}


DECLARING = "<?php\nnamespace A;\nuse B\\C;\nfinal class ABench { const N = 1; function benchA() { work(); foreach ([] as $x) {} } }\n"
MODULE = "import sys\n\nclass A:\n    N = 1\n\n    def time_a(self):\n        work()\n\ndef bench():\n    for _ in range(9): pass\n"


@pytest.mark.parametrize(
    ("file", "text", "declares"),
    [
        ("a.php", DECLARING, True),
        ("a.php", DECLARING + "(new ABench())->benchA();", False),
        ("a.php", DECLARING + "foreach ([1] as $x) { $y = $x; }", False),
        ("a.php", "<?php require 'b.php'; return ['a' => 1];", True),
        ("a.py", MODULE, True),
        ("a.py", MODULE + "bench()\n", False),
        ("a.py", MODULE + "x = [y for y in 'a']\n", False),
    ],
)
def test_workload_that_only_loads_what_files_declare_is_an_error(tmp_path: Path, file: str, text: str, declares: bool) -> None:
    """A class of benchmarks that nobody makes an instance of runs nothing: that is no good news."""
    (tmp_path / file).write_text(text)
    program = php_index(tmp_path, depth=1, cache=None) if file.endswith(".php") else python_index(tmp_path, depth=1)
    (loads,) = (function for function in program.functions.values() if function.loads)
    assert loads.declares == declares
    probes = {Side.HEAD: {1: Probe(1, loads, (), ())}}
    called = {("bench", Side.HEAD): frozenset((1,))}
    built: Mapping[Side, Built] = {}
    if not declares:
        reach.require_calls(called, probes, built)
        return
    with pytest.raises(NothingCalledError, match=f"workload bench never called a function in head: it loads {file}, ") as caught:
        reach.require_calls(called, probes, built)
    assert caught.value.slug == "nothing-called"
