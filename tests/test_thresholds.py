"""Smallest effects of interest by workload: judged at its points, whole runs and calls alike, kept with what was measured, and told."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import findings as made
from experiments import HEAD, Made, Noise, World, same
from perfdiff import configuration
from perfdiff.analysis.analysis import analyse
from perfdiff.analysis.compare.compared import Comparison, StratumContrast
from perfdiff.analysis.compare.judgement import Direction, judge
from perfdiff.analysis.compare.ratios import as_ratio
from perfdiff.analysis.findings import EndToEnd, Findings, FunctionFinding, PointStanding, Ratio, Verdict
from perfdiff.analysis.stats.inference import contrast
from perfdiff.analysis.stats.runs import Group, PointRuns
from perfdiff.analysis.telling.minimal import cheapest
from perfdiff.analysis.verdicts.conclusion import conclude
from perfdiff.analysis.verdicts.evidence import Evidence
from perfdiff.analysis.verdicts.wholeruns import WholeRuns, whole_runs
from perfdiff.cli.rehearsal import rehearsed
from perfdiff.collect.runs import workloads
from perfdiff.config import BuildConfig, CompareConfig, Config, Suite, WorkloadConfig
from perfdiff.configuration.overrides import Overrides
from perfdiff.errors import ConfigError
from perfdiff.outcome import judged
from perfdiff.outlook import Outlook
from perfdiff.progress import Silent
from perfdiff.records import codec, recorded, store
from perfdiff.records.schema import Change, Experiment, Phase, Point, Revision, Side
from perfdiff.records.thresholds import as_configured, unjudged
from perfdiff.report import json_report, terminal
from perfdiff.report.document import build
from perfdiff.request import Request
from test_whole_runs import pairs_of, runs

TOLERANT, STRICT = 1000.0, 3000.0  # sizes of the points of the two workloads


def with_thresholds(experiment: Experiment, effects: Mapping[float, float | None]) -> Experiment:
    """Return an experiment with a workload for each size, and its smallest effect of interest."""
    points = (replace(point, workload=f"w{n}", min_effect=effects[n]) for point in experiment.points for n in point.parameters.values())  # type: ignore[index]
    return replace(experiment, points=tuple(points))


QUIET, NOISY = Noise(call=0.01, run=0.003, function=0.003), Noise(call=0.01, run=0.003, function=0.03)


def changed(slower: Mapping[float, float], sizes: tuple[float, ...], called: tuple[float, ...] = (), noise: Noise = QUIET) -> World:
    """Return a world in which a changed function, which takes most of a run, costs so many times as much in head at each size.

    It is `called` at these sizes alone, if any are given.
    """
    work = Made(
        "work",
        lambda side, x: 400 * x["n"] * (np.array([slower.get(n, 1.0) for n in x["n"].tolist()]) if side is HEAD else 1.0),
        Change.CHANGED,
        calls=lambda side, n: {"main": 1} if not called or n in called else {},
    )
    return World((Made("main", same(2e4)), work), sizes=sizes, runs=16, noise=noise)


def compared(
    slower: Mapping[float, float], effects: Mapping[float, float | None], *, called: tuple[float, ...] = (), noise: Noise = QUIET
) -> Findings:
    """Return what is found there where the workloads have smallest effects of interest of their own."""
    world = changed(slower, tuple(effects), called, noise)
    return analyse(with_thresholds(world.experiment(), effects), world.samples, CompareConfig())


def of_work(found: Findings) -> FunctionFinding:
    return next(finding for finding in found.functions if finding.info.name == "work")


@pytest.mark.parametrize(
    ("slower", "effects", "verdict"),
    [
        ({TOLERANT: 1.08}, {TOLERANT: 0.1}, Verdict.UNCHANGED),
        ({TOLERANT: 1.08}, {TOLERANT: 0.05}, Verdict.REGRESSION),
        ({TOLERANT: 1.08}, {TOLERANT: None}, Verdict.REGRESSION),
        ({TOLERANT: 1.03}, {TOLERANT: 0.01}, Verdict.REGRESSION),
        ({TOLERANT: 1.08}, {TOLERANT: 0.1, STRICT: 0.05}, Verdict.UNCHANGED),
        ({STRICT: 1.08}, {TOLERANT: 0.1, STRICT: 0.05}, Verdict.REGRESSION),
        ({TOLERANT: 1.08, STRICT: 1.08}, {TOLERANT: 0.1, STRICT: 0.05}, Verdict.REGRESSION),
        ({TOLERANT: 1.08, STRICT: 1.08}, {TOLERANT: 0.1, STRICT: 0.1}, Verdict.UNCHANGED),
        ({TOLERANT: 1.15}, {TOLERANT: 0.1, STRICT: None}, Verdict.REGRESSION),
        ({TOLERANT: 1.03}, {TOLERANT: None, STRICT: 0.01}, Verdict.UNCHANGED),
        ({TOLERANT: 0.93}, {TOLERANT: 0.1}, Verdict.UNCHANGED),
        ({TOLERANT: 0.93}, {TOLERANT: 0.05}, Verdict.IMPROVEMENT),
    ],
)
def test_a_function_is_slower_where_it_is_by_more_than_the_threshold_of_that_workload(
    slower: Mapping[float, float], effects: Mapping[float, float | None], verdict: Verdict
) -> None:
    assert of_work(compared(slower, effects)).verdict is verdict


def test_a_function_goes_by_the_workloads_that_call_it() -> None:
    effects = {TOLERANT: 0.1, STRICT: 0.05}
    assert of_work(compared({TOLERANT: 1.08}, effects, called=(TOLERANT,))).verdict is Verdict.UNCHANGED
    assert of_work(compared({STRICT: 1.08}, effects, called=(STRICT,))).verdict is Verdict.REGRESSION


@pytest.mark.parametrize("called", [(), (TOLERANT,)])
@pytest.mark.parametrize(("own", "verdict"), [(0.2, Verdict.UNCHANGED), (None, Verdict.INCONCLUSIVE)])
def test_what_cannot_be_excluded_is_open_only_where_it_is_of_interest(
    called: tuple[float, ...], own: float | None, verdict: Verdict
) -> None:
    found = compared({TOLERANT: 1.05}, {TOLERANT: own, STRICT: 0.05 if called else 0.2}, called=called, noise=NOISY)
    assert of_work(found).verdict is verdict


@pytest.mark.parametrize(("effects", "is_open"), [({}, True), ({0: 0.2, 1: 0.05}, False), ({0: 0.2, 1: 0.01}, True)])
def test_calls_of_a_point_leave_an_answer_open_by_the_threshold_of_that_point(effects: Mapping[int, float], is_open: bool) -> None:
    blocks, rng = np.arange(20), np.random.default_rng(3)

    def stratum(point: int | None, effect: float) -> StratumContrast:
        seen = contrast([PointRuns(Group(rng.normal(0, 0.01, 20), blocks), Group(rng.normal(effect, 0.01, 20), blocks))])
        assert seen is not None
        return StratumContrast("" if point is None else f"n={point}", False, seen, True, point)

    strata = (stratum(None, 0.02), stratum(0, 0.05), stratum(1, 0.01))
    ratio = as_ratio(strata[1].contrast, 0.95)
    seen = Comparison(1, "self_ns", None, strata, strata[1], None, ratio, 1e-6, 0.0, {}, None, (), disjoint=False)
    judgement = judge(seen, 1.0, CompareConfig(), resolved=True, suspect=True, effects=effects)
    assert (judgement.direction, judgement.open is not None) == (Direction.NONE, is_open)


@pytest.mark.parametrize(("own", "standing"), [(0.1, PointStanding.NOT_SLOWER), (0.05, PointStanding.SLOWER), (None, PointStanding.SLOWER)])
def test_whole_runs_are_slower_by_more_than_the_threshold_of_their_workload(own: float | None, standing: PointStanding) -> None:
    rng = np.random.default_rng(1)
    points = [Point(0, "judged", {}, "", min_effect=own), Point(1, "other", {}, "", min_effect=0.2)]
    seen = whole_runs(points, runs({place: pairs_of(40, effect=0.08, deviation=0.01, rng=rng) for place in (0, 1)}), CompareConfig())
    assert [end.standing for end in seen.ends] == [standing, PointStanding.NOT_SLOWER]
    assert seen.are_not_slower is (standing is PointStanding.NOT_SLOWER)


def test_a_program_that_is_slower_at_a_tolerant_workload_alone_is_no_regression() -> None:
    rng = np.random.default_rng(2)
    world = World((Made("main", same(5e4)),), sizes=(TOLERANT, STRICT))
    plain = runs({0: pairs_of(40, effect=0.08, deviation=0.01, rng=rng), 1: pairs_of(40, effect=0.0, deviation=0.01, rng=rng)})
    numbered = tuple(replace(run, id=run.id + 1_000) for run in plain)
    verdicts = []
    for own in (0.1, 0.05):
        experiment = with_thresholds(world.experiment(), {TOLERANT: own, STRICT: None})
        whole = replace(experiment, runs=(*experiment.runs, *numbered))
        verdicts.append(analyse(whole, world.samples, CompareConfig()).verdict)
    assert verdicts == [Verdict.UNCHANGED, Verdict.REGRESSION]


def test_a_point_leaves_the_answer_open_only_by_what_is_of_interest_there() -> None:
    end = EndToEnd(Point(0, "run", {}, "./prog", min_effect=0.2), 1e8, 1e8, Ratio(0.99, 0.85, 1.18, 10, 10), None)
    usual = replace(end, point=replace(end.point, min_effect=None))
    concluded = [conclude((), Evidence(WholeRuns((each,))), CompareConfig()).verdict for each in (end, usual)]
    assert concluded == [Verdict.UNCHANGED, Verdict.INCONCLUSIVE]


def test_the_cheapest_point_that_shows_a_difference_shows_one_of_interest_there() -> None:
    first = made.regressed()
    points = {place: Ratio(1.5, 1.3, 1.7, 10, 10) for place in (0, 1)}
    finding = replace(first, metrics={"wall_ns": replace(first.metrics["wall_ns"], points=points)})
    whole = made.findings(functions=(finding,))
    tolerant = replace(whole, points=tuple(replace(point, min_effect=0.4 if point.id == 0 else None) for point in whole.points))
    assert [shown.point.id for shown in map(cheapest, (whole, tolerant)) if shown] == [0, 1]


def test_thresholds_are_read_with_the_workloads_and_stand_at_their_points(tmp_path: Path) -> None:
    text = '[build]\ncommand = "make"\n[[workload]]\nname = "a"\ncommand = "./a {n}"\nparameters = { n = [1, 2] }\nmin_effect = 0.1\n'
    (tmp_path / "perfdiff.toml").write_text(f'{text}[[workload]]\nname = "b"\ncommand = "./b"\n')
    config = configuration.load(tmp_path, overrides=Overrides(), environment={})
    assert [(point.label, point.min_effect) for point in workloads.points(config.workloads)] == [
        ("a n=1", 0.1),
        ("a n=2", 0.1),
        ("b", None),
    ]
    (tmp_path / "perfdiff.toml").write_text(text.replace("0.1", "10"))
    with pytest.raises(ConfigError, match="'min_effect' is 10; it must be a share between 0 and 1"):
        configuration.load(tmp_path, overrides=Overrides(), environment={})


def test_what_was_measured_keeps_its_thresholds_and_takes_new_ones_without_being_measured_again() -> None:
    point = Point(0, "a", {}, "./a", min_effect=0.1)
    assert codec.decode(Point, codec.encode(point)) == point
    assert codec.decode(Point, {key: value for key, value in codec.encode(point).items() if key != "min_effect"}).min_effect is None
    strict, none = (WorkloadConfig("a", "./a", min_effect=effect) for effect in (0.02, None))
    assert as_configured((point,), (strict,))[0].min_effect == 0.02
    assert as_configured((point,), (none,))[0].min_effect is None
    assert as_configured((replace(point, workload="a again"),), (strict,))[0].min_effect == 0.02
    assert unjudged((strict,)) == unjudged((none,))
    suite = replace(strict, suite=Suite("pytest", "tests"))
    assert as_configured((point,), (replace(suite, name="all"),)) == (point,)
    assert unjudged((suite,)) == (suite,)


def test_a_threshold_that_changes_is_judged_by_anew_with_what_was_measured(tmp_path: Path) -> None:
    folder = tmp_path / "experiments" / "one"
    world = changed({TOLERANT: 1.08}, (TOLERANT,))
    tables = [table for function in (1, 2) for side in Side if (table := world.samples(function, side)) is not None]
    store.save(folder, with_thresholds(world.experiment(), {TOLERANT: 0.1}), tables)
    verdicts = []
    for own in (0.1, 0.05, None):
        config = Config(BuildConfig("make"), (WorkloadConfig(f"w{TOLERANT}", "./w", min_effect=own),))
        verdicts.append(judged(recorded.load(folder), folder, tmp_path, config, Silent()).findings.verdict)
    assert verdicts == [Verdict.UNCHANGED, Verdict.REGRESSION, Verdict.REGRESSION]
    alone = Config(BuildConfig("make"), ())  # as of samples that are compared without a configuration
    assert judged(recorded.load(folder), folder, tmp_path, alone, Silent()).findings.verdict is Verdict.UNCHANGED


def told() -> Findings:
    points = tuple(replace(point, min_effect=0.1) for point in made.findings().points)
    return replace(made.findings(), points=points)


def test_thresholds_of_workloads_are_told_in_reports_and_rehearsals(monkeypatch: pytest.MonkeyPatch) -> None:
    said = "shifts under 5 % (10 % at sort) are not reported as a regression"
    assert said in terminal.render(build(told()), width=200)
    (workload,) = json.loads(json_report.render(build(told())))["workloads"]
    assert workload["min_effect"] == 0.1
    (workload,) = json.loads(json_report.render(build(made.findings())))["workloads"]
    assert workload["min_effect"] is None
    rev = Revision("v1", "a" * 40, "")
    runs_of = {Phase.PLAIN: 1}
    would = Outlook(rev, rev, False, {}, 6, None, None, told().points, runs_of, runs_of, None, None, 0.0, 0.05)
    monkeypatch.setattr("perfdiff.outlook.outlook", lambda request, progress: would)
    request = Request(Path(), (), Config(BuildConfig("make"), ()), Path(), {})
    assert re.search(rf"threshold\s+{re.escape(said)}", rehearsed(request, Silent(), width=200, colour=False))
