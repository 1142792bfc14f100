"""Which cases of suites are run: those that reach what changed, the best witnesses first, as many as fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from perfdiff.collect.choosing.callmap import CallMap, KnownCase
from perfdiff.collect.choosing.subjects import Subjects
from perfdiff.collect.choosing.witnesses import CaseCandidate, chosen
from perfdiff.collect.recordings.marks import MarkedRun
from perfdiff.collect.runs.suitecases import SuiteCase, in_processes, together
from perfdiff.config import Suite, WorkloadConfig
from perfdiff.languages.listing import UNTRIED, Batch, Benchmark, SuiteListing
from perfdiff.measuring.reaching import Seen, named, names_changed, told_apart
from perfdiff.records.schema import Change


def names(candidates: Mapping[str, CaseCandidate], affordable_s: float) -> tuple[str, ...]:
    """Return the names of the cases that are run."""
    return tuple(list(candidates)[place] for place in chosen(list(candidates.values()), affordable_s))


def test_each_function_has_its_best_witness_before_any_has_a_second_one() -> None:
    candidates = {
        "touches both": CaseCandidate(0.1, {1: 1, 2: 1}),
        "much of 1": CaseCandidate(1.0, {1: 1_000_000}),
        "more of 1": CaseCandidate(1.0, {1: 1_100_000}),
        "all of 2": CaseCandidate(0.5, {2: 1000}),
        "none": CaseCandidate(0.01, {}),
    }
    assert names(candidates, 10.0) == ("all of 2", "more of 1", "much of 1", "touches both")
    assert names(candidates, 1.5) == ("all of 2", "more of 1")


def test_words_by_which_tests_are_named_are_those_of_changed_sources() -> None:
    def at(file: str, name: str, change: Change) -> SimpleNamespace:
        return SimpleNamespace(shown=SimpleNamespace(file=file, name=name), change=change)

    pairs = {
        1: at("lib/formatters/html.py", "HtmlFormatter._format_lines", Change.CHANGED),
        2: at("lib/lexers/XML2.py", "lex", Change.UNCHANGED),
        3: at("tests/test_rtf.py", "test_bold", Change.CHANGED),
        4: at("lib/RTFWriter.py", "x", Change.AFFECTED),
    }
    subjects = Subjects(pairs, {})  # type: ignore[arg-type]
    assert names_changed(subjects) == {"lib", "formatters", "html", "formatter", "format", "lines", "py", "rtf", "writer"}


def test_one_case_runs_even_if_it_takes_longer_than_there_is_time_for() -> None:
    assert names({"long": CaseCandidate(100.0, {1: 5}), "longer": CaseCandidate(200.0, {1: 5})}, 1.0) == ("long",)


def test_what_seems_slower_in_head_comes_first_whatever_it_reaches_and_takes() -> None:
    candidates = {"best": CaseCandidate(0.1, {1: 1000}), "slower": CaseCandidate(25.0, {}, seems_slower=True)}
    assert names(candidates, 1.5) == ("slower",)
    assert names(candidates, 30.0) == ("slower", "best")


@pytest.mark.parametrize(
    ("base_s", "head_s", "is_slower"), [(0.3, 25.0, True), (0.3, 0.5, False), (0.001, 0.04, False), (25.0, 0.3, False)]
)
def test_a_case_seems_slower_by_more_than_a_busy_machine_makes(base_s: float, head_s: float, is_slower: bool) -> None:
    sides = [Benchmark("a", "a", points={(): (seconds, False)}) for seconds in (base_s, head_s)]
    assert SuiteCase(WorkloadConfig("unit"), sides, 0.01).seems_slower == is_slower


def test_what_shares_a_process_with_others_takes_its_own_time_alone() -> None:
    tests = [CaseCandidate(1.0, {number: 1}, added_s=0.1) for number in range(20)]
    assert len(chosen(tests, 1.05)) == 10


def test_where_no_case_calls_what_changed_the_shortest_ones_run() -> None:
    assert names({"long": CaseCandidate(1.0), "short": CaseCandidate(0.1), "middle": CaseCandidate(0.5)}, 0.7) == ("short", "middle")
    assert names({"long": CaseCandidate(1.0), "middle": CaseCandidate(0.5)}, 0.1) == ("middle",)


def unit_tests(names: Sequence[str], batch: str = "run {cases}", seconds: float = 0.001) -> list[SuiteCase]:
    """Return tests that one process can run."""
    suite = WorkloadConfig("unit", suite=Suite("any", ""))
    sides = [Benchmark(name, f"run '{name}'", points={(): (seconds, True)}, batch=Batch(batch, f"'{name}'", " ")) for name in names]
    return [SuiteCase(suite, [side, side], 0.01) for side in sides]


def test_tests_of_one_process_are_one_workload() -> None:
    case = together(unit_tests(["a b", "c"], "run {cases} --calls {calls}"), "unit: 2 tests")
    assert case.workload(3) == WorkloadConfig(
        "unit: 2 tests", "run 'a b' 'c' --calls 3", once="run 'a b' 'c' --calls 1", plain_timeout_s=60.0
    )
    assert case.workload(1).once is None
    assert case.size == 2
    assert case.call_s == pytest.approx(0.002)


def test_tests_that_run_once_keep_no_others_from_running_more_often() -> None:
    often, once = unit_tests(["a", "b"]), unit_tests(["c"])
    sides = [replace(side, points={(): (0.001, False)}) for side in once[0].sides]
    groups = list(in_processes([*often, replace(once[0], sides=sides)]))
    assert [[case.name for case in group] for group in groups] == [["a", "b"], ["c"]]


def test_a_command_names_no_more_tests_than_the_shell_takes() -> None:
    names = [f"{number:05d}-{'x' * 1000}" for number in range(300)]
    groups = list(in_processes([*unit_tests(names), *unit_tests(["other"], "else {cases}")]))
    assert [case.name for group in groups for case in group] == [*names, "other"]
    assert all(len(together(group, "all").workload(1).command) < 2**17 for group in groups)
    assert len(groups) < 10


def seen(reaching: Mapping[str, float], names: Sequence[str], failing: str = "", runs: int = 1000) -> tuple[dict[str, object], int]:
    """Return what is told of tests of which some reach a function, and how many runs that took, of at most so many."""
    made: list[str] = []

    def look(tests: Sequence[SuiteCase]) -> Seen:
        words = [test.name for test in tests]
        made.append(words[0])
        if failing in words:
            return Seen(None)
        total = sum(reaching.get(word, 0.0) for word in words)
        return Seen({7: total} if total else {})

    told = {case.name: called for case, called in told_apart(unit_tests(names), look, lambda: len(made) < runs) if called != {}}
    return told, len(made)


def test_few_runs_tell_which_of_many_tests_reach_the_change() -> None:
    names = [f"t{number}" for number in range(1000)]
    told, runs = seen({"t17": 2.0, "t18": 1.0, "t900": 5.0}, names)
    assert told == {"t17": {7: 2.0}, "t18": {7: 1.0}, "t900": {7: 5.0}}
    assert runs < 100


def test_a_test_that_fails_hides_no_other_one() -> None:
    told, _ = seen({"t3": 1.0}, [f"t{number}" for number in range(20)], failing="t4")
    assert told == {"t3": {7: 1.0}, "t4": None}


def test_tests_that_there_is_no_time_to_tell_apart_share_what_they_reach() -> None:
    told, runs = seen({"t3": 1.0}, [f"t{number}" for number in range(64)], runs=2)
    assert runs == 2
    assert [told[f"t{number}"] for number in range(8)] == [{7: 0.125}] * 8
    assert [told[f"t{number}"] for number in range(8, 64)] == [{7: 1 / 64}] * 56, "of the other parts, all is known of the whole"


def test_a_driver_marks_tests_by_their_names_or_by_what_it_is_given_of_them() -> None:
    tests = [
        *unit_tests(["a b"]),
        *(replace(case, sides=[replace(side, name="own.c") for side in case.sides]) for case in unit_tests(["C#c"])),
    ]
    assert [test.name for test in tests] == ["a b", "own.c"]
    run = MarkedRun({"a b": {1: 2.0}}, frozenset({"C#c"}), {})
    assert named(run, tests) == MarkedRun({"a b": {1: 2.0}}, frozenset({"own.c"}), {})


def marked(outcomes: Sequence[Mapping[str, Mapping[int, float] | None]], names: str) -> tuple[dict[str, object], list[str]]:
    """Return what is told of tests whose runs mark them, each run of these in turn, and which tests were in each run."""
    runs: list[str] = []

    def look(tests: Sequence[SuiteCase]) -> Seen:
        runs.append("".join(test.name for test in tests))
        return Seen(None, outcomes[len(runs) - 1])

    return {case.name: called for case, called in told_apart(unit_tests(list(names)), look, lambda: len(runs) < len(outcomes))}, runs


def test_one_run_tells_apart_all_tests_that_it_marks() -> None:
    assert marked([{"a": {7: 1.0}, "b": {}, "c": {7: 5.0}}], "abc") == ({"a": {7: 1.0}, "b": {}, "c": {7: 5.0}}, ["abc"])


def test_what_fails_in_a_run_of_many_runs_once_more_without_the_others() -> None:
    told, runs = marked([{"a": {7: 1.0}, "b": None, "c": None}, {"b": {7: 2.0}, "c": None}, {"c": None}], "abc")
    assert told == {"a": {7: 1.0}, "b": {7: 2.0}, "c": None}
    assert runs == ["abc", "bc", "c"]
    assert marked([{"a": {}, "b": None, "c": None}, {"b": None, "c": None}], "abc") == ({"a": {}, "b": None, "c": None}, ["abc", "bc"])


def test_tests_that_a_run_did_not_come_to_are_not_known() -> None:
    assert marked([{"a": {7: 1.0}}], "abc") == ({"a": {7: 1.0}, "b": None, "c": None}, ["abc"])


def test_tests_behind_one_that_ends_the_process_run_without_those_before() -> None:
    told, runs = marked([{"a": {7: 1.0}}, {}, {}, {"c": {7: 3.0}}], "abc")
    assert told == {"a": {7: 1.0}, "b": None, "c": {7: 3.0}}
    assert runs == ["abc", "bc", "b", "c"]


TEXTS = {"f": "1", "g": "1", "h": "1"}


def kept(file: Path, texts: Mapping[str, str]) -> CallMap:
    """Return what is kept of three cases that ran, two of them together."""
    calls = CallMap(texts)
    calls.keep(["a"], {"f": 3.0, "g": 1.0})
    calls.keep(["b", "c"], {"g": 2.0})
    calls.write(file)
    return CallMap.read(file, texts)


def test_what_a_case_called_holds_as_long_as_all_of_that_is_the_same(tmp_path: Path) -> None:
    file = tmp_path / "map" / "calls.json"
    calls = kept(file, TEXTS)
    assert calls.known("a") == KnownCase({"f": 3.0, "g": 1.0}, is_bound=False)
    assert calls.known("b") == calls.known("c") == KnownCase({"g": 2.0}, is_bound=True)
    assert calls.known("other") is None
    after = CallMap.read(file, TEXTS | {"f": "2"})
    assert after.known("a") is None, "one of its functions changed"
    assert after.known("b") is not None
    assert CallMap.read(file, {"f": "1", "h": "1"}).known("b") is None, "its function is gone"


def test_what_is_learnt_later_counts_and_the_rest_is_kept_while_it_holds(tmp_path: Path) -> None:
    file = tmp_path / "calls.json"
    kept(file, TEXTS)
    calls = CallMap.read(file, TEXTS)
    calls.keep(["b"], {"h": 1.0})
    calls.write(file)
    again = CallMap.read(file, TEXTS)
    assert again.known("b") == KnownCase({"h": 1.0}, is_bound=False)
    assert again.known("a") == KnownCase({"f": 3.0, "g": 1.0}, is_bound=False)
    assert again.known("c") is None, "what several called together bounds none of them for long"


def test_what_ran_before_all_cases_of_a_run_bounds_each_of_them_as_its_own_does(tmp_path: Path) -> None:
    file = tmp_path / "calls.json"
    calls = CallMap(TEXTS)
    calls.keep_apart({"a": {"f": 3.0}, "b": {}}, {"g": 0.0, "h": 1.0})
    calls.write(file)
    CallMap.read(file, TEXTS).write(file)
    after = CallMap.read(file, TEXTS)
    assert after.known("a") == KnownCase({"f": 3.0, "g": 0.0, "h": 1.0}, is_bound=False)
    assert after.known("b") == KnownCase({"g": 0.0, "h": 1.0}, is_bound=False)
    other = CallMap.read(file, TEXTS | {"f": "2"})
    assert other.known("a") is None
    assert other.known("b") is not None
    assert CallMap.read(file, TEXTS | {"g": "2"}).known("b") is None, "what ran before it changed"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b'{"functions": [["f", "1"]], "entries": [{"functions": [5], "calls": [1.0], "is_bound": false}], "cases": {"a": 0}}',
        b'{"functions": [["f", "1"]], "entries": [{"functions": [0], "calls": [1.0], "is_bound": false, "before": 3}], "cases": {"a": 0}}',
    ],
)
def test_a_map_that_is_damaged_is_none(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "calls.json"
    file.write_bytes(content)
    assert CallMap.read(file, TEXTS).known("a") is None


def test_a_listing_is_read_as_it_was_written() -> None:
    tests = {case.name: case.sides[0] for case in unit_tests(["a", "b"])}
    sorts = Benchmark("sort", "sort {n} {calls}", "make", ("n",), {(1,): (0.5, False), ("x",): (1.0, True)})
    listing = SuiteListing({**tests, "sort": sorts}, {"c": "fails", "late": UNTRIED}, 0.25, untried=frozenset(("late",)))
    assert SuiteListing.read(listing.written()) == listing
    assert SuiteListing.read(replace(listing, untried=frozenset()).written()) == listing
