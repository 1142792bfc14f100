"""Functions of tests stand behind those of sources wherever functions are listed: in findings, what was not measured, notes, rehearsals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from experiments import HEAD, Made, Noise, World, same
from perfdiff.analysis.analysis import analyse
from perfdiff.analysis.findings import Findings, Verdict
from perfdiff.cli.rehearsal import rehearsed
from perfdiff.collect.choosing import folding
from perfdiff.collect.choosing.rates import Rate
from perfdiff.collect.choosing.subjects import Subjects
from perfdiff.collect.choosing.survey import Fold, Priority, ProbeChoice
from perfdiff.config import BuildConfig, CompareConfig, Config
from perfdiff.languages.protocol import Counterpart, FeaturePlan, Load
from perfdiff.outlook import Outlook
from perfdiff.progress import Silent
from perfdiff.records.differences import SkippedFunction
from perfdiff.records.schema import Change, Origin, Phase, Revision
from perfdiff.records.testfiles import is_of_tests, sources_first
from perfdiff.report import junit, terminal
from perfdiff.report.document import build
from perfdiff.request import Request
from test_collect import definition


@pytest.mark.parametrize(
    ("file", "is_one"),
    [
        ("tests/test_sums.py", True),
        ("src/test/java/org/acme/SumTest.java", True),
        ("app/src/integrationTest/java/org/acme/Sums.java", True),
        ("sum_test.c", True),
        ("src/sum-test.cc", True),
        ("test-sum.c", True),
        ("project/app/tests.py", True),
        ("lib/SumTests.java", True),
        ("src/SumTest.php", True),
        ("src/SumTestCase.php", True),
        ("tests/helpers.php", True),
        ("unit-tests/sum.c", True),
        ("testsuite/sum.c", True),
        ("lib/conftest.py", True),
        ("spec/sum_spec.rb", True),
        ("lib/testing.py", False),
        ("src/contest/rank.c", False),
        ("src/contests.c", False),
        ("latest.c", False),
        ("Fastest.java", False),
        ("attest/sign.py", False),
        ("inspect/walk.c", False),
    ],
)
def test_tests_are_told_by_folders_and_names_that_are_theirs(file: str, is_one: bool) -> None:
    assert is_of_tests(file) is is_one


def test_sources_keep_their_order_before_tests_in_theirs() -> None:
    files = ["tests/b.c", "z.c", "a_test.c", "a.c"]
    assert sources_first(files, lambda file: file) == ["z.c", "a.c", "tests/b.c", "a_test.c"]


def compared(files: Mapping[str, str], factors: Mapping[str, float]) -> Findings:
    """Return findings on changed functions in `files`, each of which costs so many times as much in head."""
    made = tuple(
        Made(
            name,
            lambda side, x, factor=factor: 40 * x["n"] * (factor if side is HEAD else 1.0),  # type: ignore[misc]
            Change.CHANGED,
            calls=lambda side, n: {"main": 1},
        )
        for name, factor in factors.items()
    )
    world = World((Made("main", same(5e4)), *made), noise=Noise(call=0.02, run=0.01, function=0.01))
    experiment = world.experiment()
    placed = tuple(replace(info, file=files.get(info.name, info.file)) for info in experiment.functions)
    skipped = (
        SkippedFunction("test_idle", "tests/test_idle.py", "no workload calls it"),
        SkippedFunction("idle", "src/idle.py", "no workload calls it"),
    )
    return analyse(replace(experiment, functions=placed, skipped=skipped), world.samples, CompareConfig())


def test_slower_functions_of_sources_rank_before_slower_tests_however_much_these_cost() -> None:
    files = {"test_sum": "tests/test_sum.py", "add": "src/sum.py"}
    found = compared(files, {"test_sum": 2.0, "add": 1.4})
    assert [(each.info.name, each.rank) for each in found.functions if each.verdict is Verdict.REGRESSION] == [("add", 1), ("test_sum", 2)]
    assert terminal.render(build(found)).splitlines()[2].startswith("Regression: `add` ")


def test_functions_of_sources_stand_before_tests_whatever_is_said_of_these() -> None:
    files = {"test_less": "tests/test_sum.py", "add": "src/sum.py", "less": "src/less.py"}
    found = compared(files, {"test_less": 0.4, "add": 1.0, "less": 0.7})
    assert [each.info.name for each in found.functions if each.info.change.is_suspect] == ["less", "add", "test_less"]


def test_a_slower_test_stands_before_sources_that_are_not_slower() -> None:
    found = compared({"test_sum": "tests/test_sum.py", "add": "src/sum.py"}, {"test_sum": 2.0, "add": 1.0})
    assert found.functions[0].info.name == "test_sum"


def test_what_was_not_measured_is_listed_with_sources_first_in_all_formats() -> None:
    found = compared({}, {"add": 1.0})
    assert [each.name for each in found.skipped] == ["idle", "test_idle"]
    for said in (terminal.render(build(found)), junit.render(build(found))):
        assert said.index("src/idle.py") < said.index("tests/test_idle.py")


def of_file(name: str, file: str) -> Counterpart:
    path = FeaturePlan("strlen(path)", Origin.ARGUMENT, Load.TEXT, "")
    known = replace(definition(name), file=file, features=(path,))
    return Counterpart(known, known, Change.CHANGED, (), ())


def test_notes_that_name_some_functions_name_those_of_sources_first() -> None:
    pairs = {number: of_file(f"test_{number}", "tests/a.c") for number in range(1, 5)} | {5: of_file("parse", "src/a.c")}
    subjects = Subjects(pairs, {})
    (note,) = folding.note(subjects, [Fold(number, (), np.full(2, 9e8), 2.5, 1.4) for number in pairs])
    assert note.text.startswith("no times are told of `parse`, `test_1`, ")
    choices = [ProbeChoice(number, Priority.SUSPECT, Rate(1), 1, False, False, {}) for number in pairs]
    assert subjects.unread(choices) == ("parse", "test_1", "test_2", "test_3", "test_4")


def test_a_rehearsal_names_functions_of_sources_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    infos = compared({"test_sum": "tests/test_sum.py"}, {"test_sum": 1.0, "add": 1.0}).functions
    by_id = tuple(sorted((each.info for each in infos), key=lambda info: info.id))
    rev = Revision("v1", "a" * 40, "")
    would = Outlook(rev, rev, False, {}, 6, None, by_id, (), {Phase.PLAIN: 1}, {Phase.PLAIN: 1}, None, None, 0.0, 0.05)
    monkeypatch.setattr("perfdiff.outlook.outlook", lambda request, progress: would)
    request = Request(Path(), (), Config(BuildConfig("make"), ()), Path(), {})
    assert ": add, test_sum;" in rehearsed(request, Silent(), width=200, colour=False)
