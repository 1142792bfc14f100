"""What is run of a project with nothing configured: of several languages' tests, those of what changed, if they can be had."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from perfdiff import configuration
from perfdiff.build.cache import BuildCache
from perfdiff.collect.execution.executor import ProcessExecutor
from perfdiff.config import Config
from perfdiff.configuration.suites import guessed
from perfdiff.errors import BuildError
from perfdiff.measuring.bench import Bench
from perfdiff.measuring.guesses import EarlyRuns, prepared
from perfdiff.progress import Silent, Stopwatch
from perfdiff.records.schema import Note
from perfdiff.request import Request
from perfdiff.revisions.pins import resolve
from perfdiff.revisions.repository import find_repository

PROJECT = '[project]\nname = "x"\nversion = "1"\n'
TESTS = "import pytest, own\n\n@pytest.mark.parametrize('n', [1])\ndef test_one(n):\n    assert own.count(n) == n\n"
MODULE = "def count(n):\n    return sum(1 for _ in range(n))\n"
CMAKE = "cmake_minimum_required(VERSION 3.13)\nproject(x C)\nenable_testing()\nadd_executable(t t.c)\nadd_test(NAME t COMMAND t)\n"
PYTHON = {"pyproject.toml": PROJECT, "tests/test_one.py": TESTS, "own.py": MODULE}
BOTH = {**PYTHON, "CMakeLists.txt": CMAKE, "t.c": "int main(void) { return 0; }\n"}
MAKE = {**PYTHON, "Makefile": "test: t\n\t./t\n", "t.c": "int main(void) { return 0; }\n"}
ASV = {"asv.conf.json": '{"benchmark_dir": "b"}', "b/__init__.py": "", "CMakeLists.txt": CMAKE}


def written(folder: Path, files: Mapping[str, str]) -> Path:
    """Return a folder with files."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def kinds(config: Config) -> list[str]:
    """Return the kinds of the suites of a configuration."""
    return [workload.suite.kind for workload in config.workloads if workload.suite]


@pytest.mark.parametrize(
    ("files", "changed", "expected"),
    [
        (PYTHON, [], ["pytest"]),
        (BOTH, ["t.c"], ["ctest", "pytest"]),
        (BOTH, ["own.py"], ["pytest", "ctest"]),
        (BOTH, ["own.py", "t.c"], ["ctest", "pytest"]),  # as a project with CMake is told to be written in C
        (BOTH, [], ["ctest", "pytest"]),
        (MAKE, ["t.c"], ["pytest", "make"]),  # files of Python lead, whatever a makefile does
        (ASV, ["t.c"], ["ctest", "asv"]),
        (ASV, [], ["asv", "ctest"]),  # benchmarks tell more than tests
    ],
)
def test_suites_of_the_language_whose_files_changed_are_guessed_first(
    tmp_path: Path, files: Mapping[str, str], changed: Sequence[str], expected: list[str]
) -> None:
    workloads = guessed(written(tmp_path, files), changed)
    assert [workload.suite.kind for workload in workloads if workload.suite] == expected


def test_each_guessed_language_has_a_configuration_with_its_own_build(tmp_path: Path) -> None:
    config = configuration.load(written(tmp_path, BOTH), environment={}, changed=lambda: ["t.c"])
    assert (kinds(config), set(config.languages)) == (["ctest"], set())
    assert config.build.command.startswith("cmake")
    (other,) = config.otherwise
    assert (kinds(other), set(other.languages), other.build.command) == (["pytest"], {"python"}, "")


def test_a_guess_whose_build_nobody_knows_is_none(tmp_path: Path) -> None:
    target = "int LLVMFuzzerTestOneInput(const unsigned char *data, unsigned long size) { return 0; }\n"
    files = {name: text for name, text in ASV.items() if name != "CMakeLists.txt"}
    folder = written(tmp_path, {**files, "fuzz/parse.c": target, "fuzz/corpus/parse/a": "a"})
    changed = ["fuzz/parse.c"]
    assert [workload.suite.kind for workload in guessed(folder, changed) if workload.suite] == ["fuzz", "asv"]
    config = configuration.load(folder, environment={}, changed=lambda: changed)
    assert (kinds(config), config.otherwise) == (["asv"], ())


def git(folder: Path, *words: str) -> None:
    """Run git in a folder."""
    subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *words], cwd=folder, check=True, capture_output=True)


def chosen(folder: Path, room: Path, cache: Path) -> tuple[Bench, tuple[Note, ...]]:
    """Return the bench of what is run to compare the last two commits, and what is told of the choice."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    environment["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), environment["PATH"]))
    repository, revisions = find_repository(folder), ("HEAD~1", "HEAD")
    config = configuration.load(folder, environment={}, changed=lambda: repository.changed(revisions))
    request = Request(folder, revisions, config, cache, environment)
    pins = resolve(repository, revisions, snapshots=cache / "snapshots")
    (room / "work").mkdir()
    with BuildCache(cache) as builds:
        bench = Bench(request, pins, builds, room / "work", request.packs, ProcessExecutor(), Stopwatch(Silent()))
        with closing(bench.upkeep):
            after, site = prepared(bench, EarlyRuns())
            return after, site.notes


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """Return a Python project whose build by CMake, beside that, fails; what it is to compare is not yet committed."""
    folder = written(tmp_path / "project", {**BOTH, "CMakeLists.txt": CMAKE + "find_package(NoSuchPackage REQUIRED)\n"})
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "one")
    return folder


@pytest.mark.integration
def test_where_the_first_guess_cannot_be_built_the_next_one_runs_and_a_note_says_so(
    broken: Path, tmp_path: Path, shared_cache: Path
) -> None:
    written(broken, {"t.c": "int main(void) { return 1 - 1; }\n", "own.py": MODULE.replace("1 for", "2 - 1 for")})
    git(broken, "commit", "-qam", "two")
    bench, notes = chosen(broken, tmp_path, shared_cache)
    assert [point.workload for point in bench.points] == ["tests/test_one.py::test_one"]
    ((slug, text),) = [(note.slug, note.text) for note in notes if note.slug == "guess-failed"]
    assert slug == "guess-failed"
    assert text.startswith("CTest cannot be run here: 'cmake -S . -B build")
    assert text.endswith("pytest of the project is tried instead")


@pytest.mark.integration
def test_tests_of_a_language_in_which_nothing_changed_do_not_stand_in_for_those_of_what_did(
    broken: Path, tmp_path: Path, shared_cache: Path
) -> None:
    written(broken, {"t.c": "int main(void) { return 1 - 1; }\n"})
    git(broken, "commit", "-qam", "two")
    with pytest.raises(BuildError, match="cmake"):
        chosen(broken, tmp_path, shared_cache)
