"""`perfdiff check`: saved annotations as assertions, with known truth, on logs, and on a real program."""

from __future__ import annotations

import json
import math
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import programs
import runtimes
from perfdiff.analysis.annotations.annotating import annotate
from perfdiff.analysis.annotations.assertion import Assertion, AssertionSetting, check
from perfdiff.analysis.series import Standing
from perfdiff.config import CompareConfig
from perfdiff.models.annotation import Annotation
from perfdiff.models.language import parse, parse_all, print_annotation
from perfdiff.records.arrays import Floats, Ints
from perfdiff.records.schema import Point, SampleTable
from perfdiff.report.sentences.catalogue import say
from sampled import table
from test_annotate import linear, logs, perfdiff

CONFIG = CompareConfig()
SIZES = (2000.0, 4000.0, 8000.0, 16_000.0)
POINTS = tuple(Point(number, "sort", {"n": size}, "") for number, size in enumerate(SIZES))
RUNS = 10
CALLS = 60


@pytest.fixture(autouse=True)
def standing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand outside of any checkout, with a cache and signal handlers of the test's own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PERFDIFF_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)


def inputs(sizes: Sequence[float], runs: int) -> tuple[Floats, Ints, Ints]:
    """Return n, run and workload point of each call: some runs of each size, some calls a run."""
    point = np.repeat(np.arange(len(sizes)), runs * CALLS)
    return np.array(sizes)[point], np.repeat(np.arange(len(sizes) * runs), CALLS), point


def timed(
    rng: np.random.Generator,
    *,
    factor: float = 1.0,
    noise: float = 0.03,
    sizes: Sequence[float] = SIZES,
    runs: int = RUNS,
    slow: float = 1.0,
) -> SampleTable:
    """Return calls whose runs differ by `noise`, times `factor`; those at the largest size by `slow` more."""
    n, run, point = inputs(sizes, runs)
    level = np.exp(noise * rng.standard_normal(run.max() + 1))[run]
    cost = (25_000 + 8 * n) * level * factor * (1 + 0.05 * rng.standard_normal(len(n)))
    return table({"n": n}, np.where(n == max(SIZES), slow, 1.0) * cost, run=run, point=point)


def counted(factor: float, *, irregular: bool = False) -> SampleTable:
    """Return calls that allocate exactly, `irregular` ones not as any term says."""
    n, run, point = inputs(SIZES, RUNS)
    cost = np.floor(16 * n * factor)
    return table({"n": n}, cost + 0.1 * cost * (point % 2) if irregular else cost, metric="alloc_bytes", run=run, point=point)


def learnt(calls: SampleTable) -> Annotation:
    """Return the annotation of calls as it reads back from a file."""
    (metric,) = calls.metrics
    (annotation,) = annotate("f", calls, [metric], seed=1)
    return parse(print_annotation(annotation))


def checked(annotation: Annotation, calls: SampleTable, whole: float | None = None) -> Assertion:
    runs = {} if whole is None else {annotation.metric: dict.fromkeys(range(1000), whole)}
    (found,) = check([(annotation, calls)], AssertionSetting(POINTS, runs, CONFIG))
    return found


@pytest.mark.statistical
@pytest.mark.parametrize(("noise", "sizes"), [(0.05, SIZES), (0.02, SIZES[-1:])])
def test_base_against_itself_violates_no_more_often_than_the_false_discovery_rate(noise: float, sizes: Sequence[float]) -> None:
    """100 pairs each; a rate of 0.05 or more would show 2 violations or more in 96 of 100 tests."""
    cases = []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        cases.append((learnt(timed(rng, noise=noise, sizes=sizes)), timed(rng, noise=noise, sizes=sizes)))
    found = check(cases, AssertionSetting(POINTS, {}, CONFIG))
    assert sum(each.standing in (Standing.VIOLATED, Standing.FASTER) for each in found) <= 1
    assert all(each.q is not None for each in found)
    alone = [checked(*case).standing for case in cases[:30]]  # without others to share the rate with
    assert alone.count(Standing.VIOLATED) == 0


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("factor", "noise", "sizes", "least"),
    [
        (1.21, 0.02, SIZES[-1:], 0.95),
        (1.21, 0.05, SIZES, 0.85),
        (1.32, 0.05, SIZES[-1:], 0.95),
        (1.43, 0.05, SIZES[-1:], 1.0),
    ],
)
def test_slow_downs_are_found_with_ten_runs(factor: float, noise: float, sizes: Sequence[float], least: float) -> None:
    found = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        found.append(checked(learnt(timed(rng, noise=noise, sizes=sizes)), timed(rng, factor=factor, noise=noise, sizes=sizes)))
    assert sum(each.standing is Standing.VIOLATED for each in found) >= least * len(found)
    assert np.median([each.overall.value for each in found if each.overall]) == pytest.approx(factor, rel=0.01)
    # The annotation's own uncertainty is part of the interval: without it, about one in seven would miss the truth.
    assert np.mean([each.overall.low <= factor <= each.overall.high for each in found if each.overall]) >= 0.88


@pytest.mark.statistical
def test_twenty_percent_under_five_percent_of_noise_at_one_size_are_never_said_to_hold() -> None:
    """One size and ten runs see from about 20 % on, as the check itself says."""
    standings: Counter[Standing] = Counter()
    visible = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        found = checked(learnt(timed(rng, noise=0.05, sizes=SIZES[-1:])), timed(rng, factor=1.2, noise=0.05, sizes=SIZES[-1:]))
        standings[found.standing] += 1
        visible.append(found.visible)
    assert standings[Standing.HOLDS] <= 1
    assert np.median(visible) == pytest.approx(1.20, abs=0.02)


def test_a_slow_down_at_one_size_names_it() -> None:
    rng = np.random.default_rng(1)
    found = checked(learnt(timed(rng, noise=0.02)), timed(rng, noise=0.02, slow=1.5))
    assert (found.standing, found.stratum) == (Standing.VIOLATED, "sort n=16000.0")
    assert found.worst is not None
    assert found.worst.value == pytest.approx(1.5, rel=0.05)
    assert found.annotated == pytest.approx(25_000 + 8 * 16_000, rel=0.05)
    assert found.pass_rate == pytest.approx(0.75, abs=0.05)


def test_a_slower_mode_names_its_condition() -> None:
    def calls(seed: int, slow: float) -> SampleTable:
        rng = np.random.default_rng(seed)
        n, run, point = inputs(SIZES[:1] * 2, RUNS)
        n, mode = rng.integers(1000, 9000, len(n)) + 0.0, rng.integers(0, 2, len(n)) + 0.0
        cost = 10 * n * np.where(mode == 1, 4 * slow, 1.0) * (1 + 0.03 * rng.standard_normal(len(n)))
        return table({"n": n, "mode": mode}, cost, run=run, point=point, labels={"mode": {0: "FAST", 1: "SLOW"}})

    annotation = learnt(calls(1, 1.0))
    assert len(annotation.scopes) == 2
    assert checked(annotation, calls(2, 1.0)).standing is Standing.HOLDS
    found = checked(annotation, calls(3, 1.3))
    assert (found.standing, found.stratum) == (Standing.VIOLATED, "mode == SLOW")
    assert found.worst is not None
    assert found.worst.value == pytest.approx(1.3, rel=0.02)


@pytest.mark.parametrize("irregular", [False, True])
def test_counts_are_exact(irregular: bool) -> None:
    """Also where no term of the annotation meets them at every size: head is held against what base's runs had there."""
    annotation = learnt(counted(1.0, irregular=irregular))
    same = checked(annotation, counted(1.0, irregular=irregular))
    assert same.standing is Standing.HOLDS
    assert same.overall is not None
    assert (same.overall.low, same.overall.high) == pytest.approx((1.0, 1.0), abs=1e-5)
    more = checked(annotation, counted(1.0625, irregular=irregular))
    assert more.standing is Standing.VIOLATED
    assert more.overall is not None
    assert (more.overall.low, more.overall.high) == pytest.approx((1.0625, 1.0625), abs=1e-5)
    assert checked(annotation, counted(1.03125, irregular=irregular)).standing is Standing.HOLDS
    assert checked(annotation, counted(0.5, irregular=irregular)).standing is Standing.FASTER


def test_memory_where_none_was_annotated_is_a_violation() -> None:
    calls = counted(1.0)
    none = replace(calls, metrics={"alloc_bytes": np.zeros(len(calls))})
    annotation = learnt(none)
    assert checked(annotation, none).standing is Standing.HOLDS
    assert checked(annotation, calls).standing is Standing.VIOLATED


def test_counts_of_which_most_runs_see_none_are_no_violation_by_chance() -> None:
    """A call in a hundred allocates, and few calls of a run are kept: runs differ by all or nothing."""
    n, run, point = inputs(SIZES, RUNS)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        first, second = (
            table({"n": n}, np.where(rng.random(len(n)) < 0.01, 178.0, 0.0), metric="alloc_bytes", run=run, point=point) for _ in range(2)
        )
        assert checked(learnt(first), second).standing is not Standing.VIOLATED


def test_times_too_short_for_a_probe_hold_until_they_are_longer() -> None:
    rng = np.random.default_rng(1)
    n, run, point = inputs(SIZES, RUNS)
    short, longer = (table({"n": n}, base + rng.random(len(n)), metric="self_ns", run=run, point=point) for base in (0.0, 300.0))
    annotation = learnt(short)
    found = checked(annotation, replace(short, metrics={"self_ns": rng.random(len(n))}))
    assert (found.standing, found.overall and found.overall.value) == (Standing.HOLDS, 1.0)
    assert checked(annotation, longer).standing is Standing.VIOLATED


def test_rare_outliers_are_set_apart_from_what_calls_cost() -> None:
    rng = np.random.default_rng(1)
    annotation = learnt(timed(rng, noise=0.01))
    calls = timed(rng, noise=0.01)
    preempted = np.where(rng.random(len(calls)) < 0.03, 20.0, 1.0)
    found = checked(annotation, replace(calls, metrics={"wall_ns": calls.metrics["wall_ns"] * preempted}))
    assert found.standing is Standing.HOLDS
    assert found.outliers == pytest.approx(0.03, abs=0.006)
    assert found.trimmed < 0.01


def test_one_slow_run_violates_nothing_and_is_counted() -> None:
    rng = np.random.default_rng(1)
    annotation = learnt(timed(rng, noise=0.01))
    calls = timed(rng, noise=0.01)
    found = checked(annotation, replace(calls, metrics={"wall_ns": calls.metrics["wall_ns"] * np.where(calls.run == 7, 3.0, 1.0)}))
    assert found.standing is Standing.HOLDS
    assert [run for run, passes in found.passed if not passes] == [7]


def test_inputs_beyond_the_annotated_ones_are_said_and_not_judged() -> None:
    rng = np.random.default_rng(1)
    annotation = learnt(timed(rng, sizes=SIZES[:3]))
    some = checked(annotation, timed(rng, slow=9.0))
    assert some.standing is not Standing.VIOLATED
    assert some.outside is not None
    assert (some.outside.share, some.outside.feature, some.outside.seen) == (0.25, "n", (2000.0, 16_000.0))
    most = checked(annotation, timed(rng, sizes=(2000.0, 16_000.0, 32_000.0)))
    assert (most.standing, most.overall) == (Standing.NOT_JUDGED, None)
    assert "other inputs" in say(most.reason)


def test_what_is_no_material_part_of_a_run_is_no_violation() -> None:
    rng = np.random.default_rng(1)
    annotation, calls = learnt(timed(rng, noise=0.01)), timed(rng, factor=1.5, noise=0.01)
    largest = CALLS * (25_000 + 8 * max(SIZES)) * 1.5
    assert checked(annotation, calls, whole=largest / 0.02).standing is Standing.VIOLATED
    assert checked(annotation, calls, whole=largest / 0.005).standing is Standing.NEGLIGIBLE


def test_too_few_runs_and_lost_inputs_have_no_answer_and_say_so() -> None:
    rng = np.random.default_rng(1)
    annotation = learnt(timed(rng))
    few = checked(annotation, timed(rng, sizes=SIZES[:1], runs=3))
    assert (few.standing, say(few.reason)) == (Standing.NOT_JUDGED, "only 3 runs: add runs")
    calls = timed(rng)
    lost = checked(annotation, replace(calls, features=(replace(calls.features[0], name="m"),)))
    assert (lost.standing, say(lost.reason)) == (Standing.NOT_JUDGED, "its input `n` is not recorded any more")
    other = checked(replace(annotation, metric="cpu_ns"), calls)
    assert (other.standing, say(other.reason)) == (Standing.NOT_JUDGED, "cpu_ns was not recorded")


def test_an_annotation_by_hand_is_taken_as_exact() -> None:
    rng = np.random.default_rng(1)
    annotation = parse("f.wall_ns(n) { int n = arg.n; Norm(25000 + 8*n, 5%); }")
    assert checked(annotation, timed(rng, noise=0.02)).standing is Standing.HOLDS
    found = checked(annotation, timed(rng, factor=1.3, noise=0.02))
    assert found.standing is Standing.VIOLATED
    assert found.overall is not None
    assert math.isclose(found.overall.value, 1.3, rel_tol=0.01)


def test_times_that_drift_from_day_to_day_violate_nothing_and_counts_do() -> None:
    rng = np.random.default_rng(2)
    assert checked(learnt(timed(rng, noise=0.02)), timed(rng, factor=1.12, noise=0.02)).standing is Standing.HOLDS
    annotation = learnt(counted(1.0))
    assert checked(annotation, counted(1.0)).standing is Standing.HOLDS
    assert checked(annotation, counted(1.12)).standing is Standing.VIOLATED


def test_results_in_a_file_leave_the_answer_and_its_place_on_standard_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logs(tmp_path / "v1", linear(0.5), seed=1)
    logs(tmp_path / "v2", linear(0.65), seed=4)
    assert perfdiff("annotate", "v1", "-o", "v1.annotations") == 0
    assert capsys.readouterr().err.splitlines()[-2:] == ["perfdiff: 2 annotations of 1 function", "perfdiff: written to v1.annotations"]
    assert perfdiff("check", "v1.annotations", "v2", "-o", "check.json") == 1
    assert capsys.readouterr().err.splitlines()[-2:] == [
        "perfdiff: Violated: 1 of 2 assertions on v2 (6 logs).",
        "perfdiff: written to check.json",
    ]
    assert perfdiff("compare", "v1", "v2", "-o", "report.html") == 1
    answer, place = capsys.readouterr().err.splitlines()[-2:]
    assert answer.startswith("perfdiff: Regression: `f`")
    assert place == "perfdiff: written to report.html"
    assert perfdiff("compare", "-q", "v1", "v2", "-o", "report.html") == 1
    assert capsys.readouterr().err == ""


def test_logs_are_held_against_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logs(tmp_path / "v1", linear(0.5), seed=1, functions=("f", "g", "old"))
    assert perfdiff("annotate", "-q", "v1", "-o", "v1.annotations") == 0
    logs(tmp_path / "v2", linear(0.5), seed=2, functions=("g", "f", "old"))
    assert perfdiff("check", "-q", "v1.annotations", "v2", "--strict") == 0
    assert capsys.readouterr().out.startswith("Every assertion that was judged holds on v2 (18 logs): 6 of 6.")
    logs(tmp_path / "v3", linear(0.5), seed=3, functions=("g", "new"))
    logs(tmp_path / "v3", linear(0.65), seed=4)
    assert perfdiff("check", "-q", "v1.annotations", "v3", "--format", "json", "--plot", "v3.svg") == 1
    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], document["verdict"], document["unannotated"]) == ("perfdiff.check/1", "violated", ["new"])
    found = {(each["function"], each["metric"]): each for each in document["assertions"]}
    assert {key: each["verdict"] for key, each in found.items()} == {
        ("f", "wall_ns"): "violated",
        ("f", "alloc_bytes"): "holds",
        ("g", "wall_ns"): "holds",
        ("g", "alloc_bytes"): "holds",
        ("old", "wall_ns"): "not judged",
        ("old", "alloc_bytes"): "not judged",
    }
    slower = document["assertions"][0]
    assert slower["ratio"] == pytest.approx(1.3, rel=0.02)
    assert (slower["pass_rate"], slower["runs"], slower["runs_annotated"]) == (0.0, 6, 6)
    assert found["old", "wall_ns"]["reason"].startswith("no function of this name")
    assert ET.parse(tmp_path / "v3.svg").getroot().tag.endswith("svg")


def test_the_text_begins_with_the_answer_and_says_what_is_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logs(tmp_path / "v1", linear(0.5), seed=1, functions=("f", "old"))
    assert perfdiff("annotate", "-q", "v1", "-o", "v1.annotations", "--metric", "wall_ns") == 0
    logs(tmp_path / "v2", linear(0.65), seed=2, functions=("f", "new"))
    assert perfdiff("check", "-q", "v1.annotations", "v2") == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Violated: 1 of 1 assertion on v2 (12 logs). 1 assertion could not be judged."
    text = " ".join(" ".join(lines).split())
    assert "`f` costs ×1.29 [1.28, 1.29] in time" in text
    assert "0 of 6 runs pass" in text
    assert "`old` (wall_ns): no function of this name" in text
    assert "Without annotation - `new`" in text
    assert "(recorded-apart)" in text


def test_missing_functions_are_no_pass(tmp_path: Path) -> None:
    logs(tmp_path / "v1", linear(0.5), seed=1, functions=("f", "old"))
    assert perfdiff("annotate", "-q", "v1", "-o", "all") == 0
    assert perfdiff("annotate", "-q", "v1", "-o", "old", "--function", "old") == 0
    logs(tmp_path / "v2", linear(0.5), seed=2)
    assert perfdiff("check", "-q", "all", "v2") == 0
    assert perfdiff("check", "-q", "all", "v2", "--strict") == 4
    assert perfdiff("check", "-q", "old", "v2") == 3


def test_the_outcome_is_the_same_each_time_and_chosen_by_the_suffix(tmp_path: Path) -> None:
    logs(tmp_path / "v1", linear(0.5), seed=1)
    assert perfdiff("annotate", "-q", "v1", "-o", "a") == 0
    for name in ("one", "two"):
        for suffix in ("json", "svg", "txt"):
            assert perfdiff("check", "-q", "a", "v1", "-o", f"{name}.{suffix}") == 0
    for suffix, begin in (("json", "{"), ("svg", "<?xml"), ("txt", "Every")):
        assert (tmp_path / f"one.{suffix}").read_text().startswith(begin)
        assert (tmp_path / f"one.{suffix}").read_bytes() == (tmp_path / f"two.{suffix}").read_bytes()


@pytest.mark.parametrize(
    ("content", "slug"),
    [
        (None, "annotations-unreadable"),
        (b"", "annotations-unreadable"),
        (b"\xff\xfe", "annotations-unreadable"),
        (b"f(", "annotation-syntax"),
    ],
)
def test_a_file_without_annotations_is_a_usage_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes | None, slug: str
) -> None:
    if content is not None:
        (tmp_path / "a").write_bytes(content)
    assert perfdiff("check", "a") == 2
    assert f"[{slug}]" in capsys.readouterr().err


@pytest.mark.integration
def test_a_release_is_held_against_a_file_of_the_last_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = next(case for case in programs.cases() if case.name == "coefficient")
    repository = programs.repository(case, tmp_path / "repository")
    own = ("-q", "--repo", repository, "--runs", 6)
    first, second = (runtimes.lent_to(tmp_path / name) for name in ("first", "second"))
    assert perfdiff("annotate", *own, "base", "-o", "base.annotations", "--metric", "wall_ns", "--cache", first) == 0
    assert all(each.levels is not None for each in parse_all((tmp_path / "base.annotations").read_text()))
    # Another cache, so that base is measured anew and not found.
    assert perfdiff("check", *own, "base.annotations", "base", "--cache", second) == 0
    capsys.readouterr()
    assert perfdiff("check", *own, "base.annotations", "head", "--cache", second, "--format", "json") == 1
    document = json.loads(capsys.readouterr().out)
    found = {each["function"]: each for each in document["assertions"]}
    assert found["checksum"]["verdict"] == "violated"
    assert 3 < found["checksum"]["ratio"] < 7
    assert found["checksum"]["pass_rate"] == 0
    assert found["scramble"]["verdict"] != "violated"
