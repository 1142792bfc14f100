"""Programs of benchmarks, tests and examples that nobody lists, and benchmarks that take long where there are no others."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from perfdiff.collect.execution.executor import Command, Execution
from perfdiff.collect.runs.suites import PATIENT_S, Suites
from perfdiff.collect.runs.targets import Target
from perfdiff.config import BuildConfig, Config, Suite, WorkloadConfig
from perfdiff.errors import MeasurementError, NothingToRunError, WorkloadError
from perfdiff.languages.c.frameworks import PlainPrograms
from perfdiff.languages.c.suites import named, plain
from perfdiff.languages.c.suites.attempts import Attempts
from perfdiff.languages.c.suites.commands import CommandTest, listing_of
from perfdiff.languages.listing import LISTED_TO, LONGEST_S
from perfdiff.measuring import guesses
from perfdiff.measuring.guesses import EarlyRuns, Fruitless
from perfdiff.records.schema import Side
from python_sources import write
from test_suites_c import compiled


@pytest.mark.parametrize(
    ("path", "rank"),
    [
        ("build/bench_sort", 0), ("benchmark.c", 0), ("tools/perf/run.c", 0), ("src/perfect.c", None),
        ("tests/sort.c", 1), ("build/unittests", 1), ("sort_test.cpp", 1), ("smoke.c", 1), ("src/testament.c", None),
        ("examples/parse.c", 2), ("build/iniexample", 2), ("samples/a.c", 2), ("demo.c", 2), ("src/sampler.c", None), ("src/parse.c", None),
    ],
)  # fmt: skip
def test_paths_tell_what_shows_a_project_at_work(path: str, rank: int | None) -> None:
    assert named.rank(path) == rank


@pytest.mark.parametrize(
    ("files", "values"),
    [
        (["CMakeLists.txt", "example/parse.c"], [""]),
        (["CMakeLists.txt", "src/parse.c", "tests/data.txt"], []),
        (["example/parse.c"], []),
    ],
)
def test_programs_are_looked_for_where_a_project_has_sources_of_them(tmp_path: Path, files: Sequence[str], values: list[str]) -> None:
    write(tmp_path, dict.fromkeys(files, ""))
    assert list(PlainPrograms().find(tmp_path)) == values


@pytest.mark.integration
def test_programs_run_that_are_named_for_it_or_whose_source_is_the_most_telling_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, built = tmp_path / "project", tmp_path / "built"
    built.mkdir()
    write(project, {"example/parse.c": "", "src/tool.c": ""})
    monkeypatch.chdir(built)
    returns = "int main() { return 0; }"
    for program in ("build/parse", "build/test_all", "bench", "tool", "build/test_listed", "made/test_known"):
        compiled(returns, program)
    Path("build/CTestTestfile.cmake").write_text(f'add_test(listed "{built}/build/test_listed" "-v")\n')
    write(built, {"made/meson-info/intro-tests.json": f'[{{"cmd": ["{built}/made/test_known"]}}]'})
    compiled("int main() { return 2; }", "build/test_usage")
    compiled('int main() { const char* volatile mark = "gtest_list_tests"; return !mark; }', "build/test_google")
    listing = plain.listed(str(project), "")
    assert [benchmark.command for benchmark in listing.benchmarks.values()] == ["./bench", "build/test_all", "build/parse"]
    assert listing.failures == {"build/test_usage": "exit code 2"}


@pytest.mark.integration
def test_a_program_is_run_with_its_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    compiled("int main(int count, char**) { return count - 2; }", "tool")
    assert [benchmark.command for benchmark in plain.listed("", "tool 1000").benchmarks.values()] == ["./tool 1000"]
    assert plain.listed("", "gone").failures == {"gone": "no such program was built"}


def test_a_test_may_take_as_long_as_the_listing_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tests = [CommandTest("long", ("/bin/sleep", "0.6"), tmp_path)]
    monkeypatch.setenv(LONGEST_S, "0.2")
    assert listing_of(tests, {}, Attempts.within_limit()).failures == {"long": "takes longer than 0 s"}
    monkeypatch.setenv(LONGEST_S, "20")
    assert list(listing_of(tests, {}, Attempts.within_limit()).benchmarks) == ["long"]


@dataclass(slots=True)
class Patient:
    """Lists a benchmark where it may take long, and keeps how long that was."""

    longest: list[str | None] = field(default_factory=list)

    def execute(self, command: Command) -> Execution:
        """Write the listing."""
        self.longest.append(command.environment.get(LONGEST_S))
        long = {"name": "long", "command": "./bench", "setup": "", "parameters": {}, "points": [[[], 15.0, False]]}
        told = {"benchmarks": [long] if self.longest[-1] else [], "failures": {}, "start_s": 0.0}
        Path(command.environment[LISTED_TO]).write_text(json.dumps(told))
        return Execution(1.0, 1.0, 1.0, None, None, "")

    def execute_together(self, commands: Sequence[Command], cpus: Collection[int]) -> list[Execution]:
        """Run none at the same time."""
        raise NotImplementedError


def test_what_takes_long_is_listed_where_nothing_else_is_and_somebody_is_patient(tmp_path: Path) -> None:
    tree, room = tmp_path / "tree", tmp_path / "room"
    tree.mkdir()
    room.mkdir()
    targets = {side: Target(tree, None, tree=tree) for side in Side}
    config, executor = WorkloadConfig("make", "list", suite=Suite("make", "bench")), Patient()
    with pytest.raises(WorkloadError):
        Suites(targets, {}, room).cases(config, executor)
    assert executor.longest == [None, None]
    (case,) = Suites(targets, {}, room).cases(config, executor, patient=True).cases
    assert (case.name, case.run_s) == ("long", 15.0)
    assert executor.longest[-2:] == [f"{PATIENT_S:g}"] * 2


def test_what_takes_long_is_the_last_that_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []

    def nothing(_: object, site: object, built_with: str = "", *, patient: bool = False) -> tuple[str, object]:
        asked.append(patient)
        if not patient or site is left:
            raise NothingToRunError("nothing")
        return "bench", site

    monkeypatch.setattr(guesses, "with_benchmarks", nothing)
    bench: Any = SimpleNamespace(request=SimpleNamespace(config=Config(BuildConfig(""), ())))
    plain = {Side.HEAD: SimpleNamespace(folder=tmp_path)}
    site, left = (cast(Any, SimpleNamespace(subjects=SimpleNamespace(pairs={1: None}), plain=plain)) for _ in range(2))
    error = NothingToRunError("nothing to run")
    ready: Any = guesses.with_options([Fruitless(bench, left, error), Fruitless(bench, site, error)], EarlyRuns())
    assert ready[1] is site
    assert asked == [True, True]
    with pytest.raises(MeasurementError, match="nothing to run"):
        guesses.with_options([Fruitless(bench, left, error)], EarlyRuns())
