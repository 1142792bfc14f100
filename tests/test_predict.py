"""`perfdiff predict`: costs at inputs that were not measured, with intervals that hold."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fleets
from experiments import Made, Noise, World
from perfdiff import cli
from perfdiff.analysis.annotations.annotating import annotate
from perfdiff.models import spread
from perfdiff.models.annotation import CostClass
from perfdiff.models.extrapolation import DRAWS, CostModel, Forecast, learnt, written
from perfdiff.models.language import parse, print_annotation
from perfdiff.records.schema import Change, SampleTable, Side
from sampled import noisy, table
from test_schemas import VALIDATORS

Law = Callable[[np.ndarray], np.ndarray]


def measured(law: Law, *, seed: int = 1, sizes: tuple[float, ...] = (500, 1000, 2000, 4000, 8000), metric: str = "wall_ns") -> SampleTable:
    """Return calls at some sizes, ten runs of each, that cost what a law says, within 5 %."""
    rng = np.random.default_rng(seed)
    n = np.repeat(sizes, 100).astype(np.float64)
    return table(
        {"n": n}, noisy(rng, law(n), outliers=0.0), metric=metric, run=np.arange(len(n)) % 10, point=np.repeat(range(len(sizes)), 100)
    )


def model(calls: SampleTable, metric: str = "wall_ns") -> CostModel:
    return learnt(next(annotate("f", calls, (metric,), seed=1)), calls)


def width(forecast: Forecast) -> float:
    """Return how wide the interval of an expected cost is, as a share of it."""
    low, high = forecast.interval
    return (high - low) / forecast.expected


@pytest.mark.parametrize(
    ("law", "kind"),
    [
        (lambda n: np.full(len(n), 5000.0), CostClass.CONSTANT),
        (lambda n: 500 + 20 * n, CostClass.LINEAR),
        (lambda n: 500 + 0.2 * n * n, CostClass.QUADRATIC),
    ],
)
def test_growth_goes_on_beyond_the_measured_range(law: Law, kind: CostClass) -> None:
    forecasts = [model(measured(law)).forecast({"n": n}, seed=1) for n in (4000.0, 16_000.0, 80_000.0)]
    assert all(forecast is not None for forecast in forecasts)
    within, twice, ten_times = (forecast for forecast in forecasts if forecast is not None)
    for forecast, n in ((within, 4000.0), (twice, 16_000.0), (ten_times, 80_000.0)):
        assert forecast.interval[0] <= law(np.array([n]))[0] <= forecast.interval[1]
        assert next(iter(forecast.classes)) is kind
    assert within.beyond == {}
    assert (twice.beyond, ten_times.beyond) == ({"n": 2.0}, {"n": 10.0})
    widths = [(forecast.interval[1] - forecast.interval[0]) / forecast.expected for forecast in (within, twice, ten_times)]
    assert widths[0] < 0.05 < widths[1] < widths[2]


def test_single_calls_lie_where_calls_scatter() -> None:
    calls = measured(lambda n: 500 + 20 * n)
    forecast = model(calls).forecast({"n": 4000.0}, seed=1)
    assert forecast is not None
    rows = calls.metrics["wall_ns"][calls.values[:, 0] == 4000]
    held = np.mean((rows >= forecast.call_interval[0]) & (rows <= forecast.call_interval[1]))
    assert 0.9 <= held <= 1.0
    assert forecast.call_interval[1] - forecast.call_interval[0] > 5 * (forecast.interval[1] - forecast.interval[0])


def test_classes_that_cannot_be_told_apart_widen_what_lies_beyond() -> None:
    def law(n: np.ndarray) -> np.ndarray:
        return 500 + 5 * n * np.log2(n)

    narrow = model(measured(law, sizes=(1000, 1250, 1500, 2000))).forecast({"n": 20_000.0}, seed=1)
    wide = model(measured(law, sizes=(125, 250, 500, 1000, 2000))).forecast({"n": 20_000.0}, seed=1)
    assert narrow is not None
    assert wide is not None
    assert sum(narrow.classes.values()) == pytest.approx(1.0)
    assert width(narrow) > 1.5 * width(wide)


def test_a_cost_that_drifted_within_the_range_may_drift_beyond() -> None:
    straight = model(measured(lambda n: 20 * n)).forecast({"n": 80_000.0}, seed=1)
    bent = model(measured(lambda n: 20 * n * (1 + 1 / (1 + np.exp(-4 * np.log(n / 3000)))))).forecast({"n": 80_000.0}, seed=1)
    assert straight is not None
    assert bent is not None
    assert width(bent) > 1.3 * width(straight)


def test_exact_counts_are_known_beyond_better_than_times() -> None:
    n = np.repeat((500.0, 1000.0, 2000.0, 4000.0), 100)
    calls = table({"n": n}, 16 * n, metric="alloc_bytes")
    forecast = model(calls, "alloc_bytes").forecast({"n": 40_000.0}, seed=1)
    assert forecast is not None
    assert forecast.interval[0] <= 640_000 <= forecast.interval[1]
    assert forecast.interval[1] - forecast.interval[0] < 0.2 * 640_000


def test_a_mode_that_was_never_seen_has_no_cost() -> None:
    rng = np.random.default_rng(1)
    mode = rng.integers(1, 3, 1000).astype(np.float64)
    calls = table(
        {"mode": mode}, noisy(rng, np.where(mode == 1, 1000.0, 9000.0), outliers=0.0), labels={"mode": {1: "FAST", 2: "SLOW", 3: "NEW"}}
    )
    fitted = model(calls)
    slow, new = (fitted.forecast({"mode": code}, seed=1) for code in (2.0, 3.0))
    assert slow is not None
    assert slow.interval[0] <= 9000 <= slow.interval[1]
    assert new is None


def test_an_input_that_varies_costs_what_its_calls_cost_together(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    middle = documented(capsys, "steady", "n=2000", "--from", saved)["sides"]["base"]
    varying = documented(capsys, "steady", "n=Uniform(1000, 3000)", "--from", saved)["sides"]["base"]
    assert varying["expected"] == pytest.approx(middle["expected"], rel=0.02)
    assert varying["single_low"] < 0.8 * middle["single_low"]
    assert varying["single_high"] > 1.2 * middle["single_high"]
    skewed = documented(capsys, "steady", "n=LogNormal(1000, 0.5)", "--from", saved)["sides"]["base"]
    assert skewed["expected"] == pytest.approx(300 + 10 * 1000 * np.exp(0.125), rel=0.05)
    assert predict("steady", "n=Norm(3)", "--from", saved) == 2
    assert "or Uniform(low, high)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "mean", "deviation"),
    [
        ("Uniform(0, 12)", 6.0, 12 / np.sqrt(12)),
        ("Norm(10, 2)", 10.0, 2.0),
        ("LogNormal(8, 0.25)", 8 * np.exp(0.03125), 8 * np.exp(0.03125) * np.sqrt(np.exp(0.0625) - 1)),
        ("Exp(5)", 5.0, 5.0),
    ],
)
def test_distributions_of_inputs_have_their_moments(text: str, mean: float, deviation: float) -> None:
    values = spread.values(text, np.random.default_rng(1))
    assert values is not None
    assert values.mean() == pytest.approx(mean, rel=0.03)
    assert values.std() == pytest.approx(deviation, rel=0.12)


@pytest.mark.parametrize("text", ["1000", "Norm(1, 0)", "Uniform(3, 2)", "Exp(1, 2)", "LogNormal(-1, 1)", "Gamma(1, 2)", "Norm(1, x)"])
def test_other_texts_are_no_distributions(text: str) -> None:
    assert spread.values(text, np.random.default_rng(1)) is None


def test_an_annotation_in_a_file_predicts_what_it_says() -> None:
    calls = measured(lambda n: 500 + 20 * n)
    annotation = next(annotate("f", calls, ("wall_ns",), seed=1))
    read = written(parse(print_annotation(annotation)))
    for n in (4000.0, 40_000.0):
        forecast, whole = read.forecast({"n": n}, seed=1), learnt(annotation, calls).forecast({"n": n}, seed=1)
        assert forecast is not None
        assert whole is not None
        assert forecast.expected == pytest.approx(whole.expected, rel=0.03)
        assert forecast.interval[0] <= 500 + 20 * n <= forecast.interval[1]
    assert len(forecast.draws) == DRAWS


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """Return the folder of an experiment in which head's `slower` takes half as much again, and `steady` what it took."""

    def slower(side: Side, inputs: Any) -> np.ndarray:
        return np.asarray((500 + 20 * inputs["n"]) * (1.5 if side is Side.HEAD else 1.0))

    functions = (
        Made("slower", slower, Change.CHANGED, calls=lambda side, n: {"": 100}),
        Made("steady", lambda side, inputs: 300 + 10 * inputs["n"], calls=lambda side, n: {"": 100}),
    )
    world = World(functions, sizes=(500, 1000, 2000, 4000), runs=8, noise=Noise())
    return fleets.stored(world, tmp_path / "saved")


def predict(*words: object) -> int:
    with pytest.raises(SystemExit) as left:
        cli.main(["predict", *map(str, words)])
    return int(left.value.code or 0)


def documented(capsys: pytest.CaptureFixture[str], *words: object) -> dict[str, Any]:
    assert predict(*words, "--format", "json", "-q") == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    VALIDATORS["prediction-1"].validate(document)
    return document


def test_both_sides_are_predicted_with_their_ratio(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = documented(capsys, "slower", "n=8000", "--from", saved)
    for side, factor in (("base", 1.0), ("head", 1.5)):
        cost = document["sides"][side]
        assert cost["low"] <= factor * (500 + 20 * 8000) <= cost["high"]
        assert cost["beyond"] == {"n": 2.0}
    assert document["ratio"]["low"] <= 1.5 <= document["ratio"]["high"]
    assert document["of"] == "call"
    steady = documented(capsys, "steady", "n=2000", "--from", saved)
    assert steady["ratio"]["low"] <= 1.0 <= steady["ratio"]["high"]
    assert steady["ratio"]["high"] - steady["ratio"]["low"] < 0.2


def test_all_calls_of_a_run_and_runs_as_a_whole(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    calls = documented(capsys, "slower", "--run", "n=4000", "--from", saved)
    assert calls["of"] == "calls of a run"
    assert calls["sides"]["base"]["low"] <= 100 * (500 + 20 * 4000) <= calls["sides"]["base"]["high"]
    whole = documented(capsys, "--run", "n=4000", "--from", saved)
    assert (whole["function"], whole["of"]) == ("run", "run")
    assert whole["sides"]["base"]["expected"] > calls["sides"]["base"]["expected"]
    assert 1.1 < whole["ratio"]["value"] < 1.5


@pytest.fixture
def nested(tmp_path: Path) -> Path:
    """Return the folder of an experiment in which `top` calls `inner` ten times and `other` once, and these call nobody."""
    functions = (
        Made("top", lambda side, inputs: 10 * inputs["n"], Change.CHANGED, calls=lambda side, n: {"": 1}),
        Made("inner", lambda side, inputs: 8 * inputs["n"], calls=lambda side, n: {"top": 10}),
        Made("other", lambda side, inputs: 10 * inputs["n"], calls=lambda side, n: {"top": 1}),
    )
    world = World(functions, sizes=(10_000, 20_000, 40_000), runs=8, noise=Noise(call=0.01, run=0.01, function=0.0), rest_ns=0.0)
    return fleets.stored(world, tmp_path / "nested")


@pytest.mark.parametrize(
    ("changes", "share"),
    [
        (["inner.time = 0.5 * inner.time"], 0.6),
        (["inner.own=0.5*inner.own"], 0.6),
        (["other.time = 3 * other.time"], 1.2),
        (["top.time = 2 * top.time"], 2.0),
        (["top.own = 0 * top.own"], 0.9),
        (["top.time = 0.5 * top.time", "inner.time = 0.5 * inner.time"], 0.3),
        (["inner.time = 0ns"], 0.2),
    ],
)
def test_what_runs_would_take_if_functions_took_otherwise(
    nested: Path, capsys: pytest.CaptureFixture[str], changes: list[str], share: float
) -> None:
    asked = [word for change in changes for word in ("--set", change)]
    document = documented(capsys, "--run", "n=20000", *asked, "--from", nested)
    now, then = (document[kind]["base"]["expected"] for kind in ("sides", "changed"))
    assert then / now == pytest.approx(share, abs=0.03)
    assert document["changed"]["head"]["low"] <= then <= document["changed"]["head"]["high"]


@pytest.mark.parametrize(
    ("changes", "share"),
    [
        (["inner.time = 0.5 * inner.time"], 0.6),
        (["other.own = 3 * other.own"], 1.2),
        (["top.own = 0 * top.own"], 0.9),
        (["top.time = 0.5 * top.time", "inner.time = 0.5 * inner.time"], 0.3),
    ],
)
def test_what_calls_would_take_if_callees_took_otherwise(
    nested: Path, capsys: pytest.CaptureFixture[str], changes: list[str], share: float
) -> None:
    asked = [word for change in changes for word in ("--set", change)]
    document = documented(capsys, "top", "n=20000", *asked, "--from", nested)
    now, then = (document[kind]["base"]["expected"] for kind in ("sides", "changed"))
    assert then / now == pytest.approx(share, abs=0.03)
    leaf = documented(capsys, "inner", "n=20000", "--set", "top.own = 9 * top.own", "--from", nested)
    assert leaf["changed"]["base"]["expected"] == pytest.approx(leaf["sides"]["base"]["expected"], rel=0.01)


def test_a_time_for_each_call_holds_where_others_call_the_callee_as_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    functions = (
        Made("top", lambda side, inputs: 10 * inputs["n"], Change.CHANGED, calls=lambda side, n: {"": 1}),
        Made("aside", lambda side, inputs: 10 * inputs["n"], calls=lambda side, n: {"": 1}),
        Made("inner", lambda side, inputs: 10 * inputs["n"], calls=lambda side, n: {"top": 1, "aside": 3}),
    )
    world = World(functions, sizes=(10_000, 20_000, 40_000), runs=8, noise=Noise(call=0.01, run=0.01, function=0.0), rest_ns=0.0)
    folder = fleets.stored(world, tmp_path / "shared")
    document = documented(capsys, "top", "n=20000", "--set", "inner.own = 0.6ms", "--from", folder)  # three times 10·20,000 ns
    now, then = (document[kind]["base"]["expected"] for kind in ("sides", "changed"))
    assert then / now == pytest.approx(2.0, abs=0.03)


def test_calls_that_vary_make_their_caller_vary(nested: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`top` calls `inner` ten times, 160 µs each at n = 20,000: ten calls by Norm(160 µs, 30 µs) vary by 30·√10 µs together."""

    def spread_ns(change: str) -> tuple[float, float]:
        cost = documented(capsys, "top", "n=20000", "--set", change, "--from", nested)["changed"]["base"]
        return cost["expected"], (cost["single_high"] - cost["single_low"]) / 2 / 1.96

    steady, varying = spread_ns("inner.time = 0.16ms"), spread_ns("inner.time = Norm(0.16ms, 30 us)")
    assert varying[0] == pytest.approx(steady[0], rel=0.02)
    assert np.sqrt(varying[1] ** 2 - steady[1] ** 2) == pytest.approx(30_000 * np.sqrt(10), rel=0.15)
    assert predict("top", "n=20000", "--set", "inner.time = Gamma(1ms, 2)", "--from", nested) == 2
    assert "is not Uniform(low, high)" in capsys.readouterr().err


def test_a_caller_is_told_what_it_is_made_of(nested: Path, capsys: pytest.CaptureFixture[str]) -> None:
    makeup = documented(capsys, "top", "n=20000", "--from", nested)["makeup"]["head"]
    assert makeup["own"] == pytest.approx(0.1, abs=0.02)
    assert [callee["function"] for callee in makeup["callees"]] == ["inner", "other"]
    assert makeup["callees"][0]["share"] == pytest.approx(0.8, abs=0.02)
    assert makeup["callees"][0]["calls"] == pytest.approx(10)
    assert predict("top", "n=20000", "--from", nested) == 0
    said = capsys.readouterr().out
    assert "80 % is inner, called 10 times, 160 µs each (linear)" in said
    assert "together these are" not in said


def composing(tmp_path: Path) -> Path:
    """Return the folder of an experiment in which `top` calls `inner` once for 100 of its n, which takes 8 ns·n."""
    functions = (
        Made("top", lambda side, inputs: 10 * inputs["n"], Change.CHANGED, calls=lambda side, n: {"": 1}),
        Made("inner", lambda side, inputs: 8 * inputs["n"], calls=lambda side, n: {"top": n / 100}),
    )
    world = World(functions, sizes=(1000, 2000, 4000, 8000), runs=8, noise=Noise(call=0.01, run=0.01, function=0.0), rest_ns=0.0)
    return fleets.stored(world, tmp_path / "composing")


def test_a_caller_is_composed_of_calls_and_costs_that_grow_with_its_inputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """At twice the largest n that ran `inner` is called 160 times, 128 µs each: 20.5 ms, a product that was never measured."""
    makeup = documented(capsys, "top", "n=16000", "--from", composing(tmp_path))["makeup"]["head"]
    (inner,) = makeup["callees"]
    assert (inner["calls"], inner["calls_grow"]) == (pytest.approx(160, rel=0.02), "linear")
    assert (inner["each"], inner["each_grows"]) == (pytest.approx(128_000, rel=0.05), "linear")
    assert makeup["expected"] == pytest.approx(160 * 128_000 + 160_000, rel=0.05)
    assert makeup["low"] < makeup["expected"] < makeup["high"]
    assert predict("top", "n=16000", "--from", tmp_path / "composing") == 0
    assert "is inner, called 160 times (linear), 128 µs each (linear)" in capsys.readouterr().out


def test_times_of_threads_that_work_at_once_change_a_run_by_their_part_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two calls take 400 µs together at n = 20,000, and a run 200 µs: half of what they take is half of the run, and not all of it."""
    work = Made("work", lambda side, inputs: 10 * inputs["n"], Change.CHANGED, calls=lambda side, n: {"": 2})
    noise = Noise(call=0.01, run=0.01, function=0.0)
    world = World((work,), sizes=(10_000, 20_000, 40_000), runs=8, noise=noise, rest_ns=0.0, plain=lambda side: 200_000.0)
    asked = ("--run", "n=20000", "--set", "work.own = 0.5 * work.own", "--from", fleets.stored(world, tmp_path / "threads"))
    document = documented(capsys, *asked)
    now, then = (document[kind]["base"]["expected"] for kind in ("sides", "changed"))
    assert then / now == pytest.approx(0.5, abs=0.03)


def test_functions_that_call_each_other_inherit_from_who_enters(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    functions = (
        Made("top", lambda side, inputs: 1 * inputs["n"], Change.CHANGED, calls=lambda side, n: {"": 1}),
        Made("even", lambda side, inputs: 5 * inputs["n"], calls=lambda side, n: {"top": 1, "odd": 9}),
        Made("odd", lambda side, inputs: 5 * inputs["n"], calls=lambda side, n: {"even": 10}),
    )
    world = World(functions, sizes=(10_000, 20_000, 40_000), runs=8, noise=Noise(call=0.01, run=0.01, function=0.0), rest_ns=0.0)
    folder = fleets.stored(world, tmp_path / "ring")
    document = documented(capsys, "--run", "n=20000", "--set", "top.time = 2 * top.time", "--from", folder)
    assert document["changed"]["base"]["expected"] / document["sides"]["base"]["expected"] == pytest.approx(2.0, abs=0.03)


def test_the_largest_lever_comes_first(nested: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = documented(capsys, "--run", "n=20000", "--from", nested)
    assert document["levers"]["head"][0]["function"] == "inner"
    assert document["levers"]["head"][0]["share"] == pytest.approx(0.4, abs=0.02)
    assert document["changed"] == {"base": None, "head": None}
    assert predict("--run", "n=20000", "--from", nested) == 0
    assert "half the own time of inner saves 40 % of a run of head" in capsys.readouterr().out


def test_calls_that_warm_up_are_predicted_as_they_are_later(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = Made("f", lambda side, inputs: np.full(len(inputs["n"]), 5000.0), calls=lambda side, n: {"": 100}, first={Side.BASE: (10, 5.0)})
    world = World((made,), sizes=(500, 1000, 2000), runs=8, noise=Noise())
    document = documented(capsys, "f.self_ns", "n=4000", "--from", fleets.stored(world, tmp_path / "warm"))
    assert document["sides"]["base"]["low"] <= 5000 <= document["sides"]["base"]["high"]


def test_the_answer_names_what_it_rests_on(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert predict("slower.time", "n=40000", "--from", saved) == 0
    said = capsys.readouterr().out
    assert said.startswith("A call of slower at n = 40000 takes ")
    assert "n was measured from 500 to 4000: this is 10 times beyond" in " ".join(said.split())
    assert "linear" in said


def test_annotations_of_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    annotation = next(annotate("sort", measured(lambda n: 500 + 20 * n), ("wall_ns",), seed=1))
    file = tmp_path / "annotations"
    file.write_text(print_annotation(annotation), encoding="utf-8")
    document = documented(capsys, "sort", "n=10000", "--from", file)
    assert document["sides"]["base"]["low"] <= 200_500 <= document["sides"]["base"]["high"]
    assert document["sides"]["head"] is None
    assert predict("sort", "size=3", "--from", file) == 2
    assert "it is told by n" in capsys.readouterr().err
    assert predict("sort.alloc_bytes", "n=3", "--from", file) == 2
    assert "it has sort.wall_ns" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("slower", "m=3"), "nothing is known of 'm'"),
        (("slower", "n=many"), "'many' is no number for n"),
        (("slower", "n"), "'n' gives no input a value"),
        (("slow", "n=3"), "'slow' is no function with recorded calls; did you mean 'slower'?"),
        (("slower.alloc_count", "--run", "n=3"), "of all calls in a run time is known"),
        (("n=3",), "say of which function"),
        (("slower", "n=3", "--run", "--set", "slower.time=2*slower.time"), "--set tells what calls, or runs as a whole, would take"),
        (("--run", "n=3", "--set", "slower.time=2*steady.time"), "changes no cost"),
        (("--run", "n=3", "--set", "slower.time=fast"), "changes no cost"),
        (("slower", "n=3", "--production", "parts"), "it takes no function, inputs or changes"),
        (("--run", "n=3", "--set", "nobody.time=2ms"), "'nobody' is no function with recorded calls"),
        (("slower", "n=3", "--workload", "other", "--run"), "compare with --thorough"),
    ],
)
def test_what_cannot_be_predicted_is_said(saved: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str) -> None:
    assert predict(*words, "--from", saved) == 2
    assert said in capsys.readouterr().err


def test_without_a_comparison_there_is_nothing_to_predict_by(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert predict("f", "n=3", "--repo", tmp_path, "--cache", tmp_path / "cache") == 2
    assert "not-a-repository" in capsys.readouterr().err


@pytest.fixture
def served(tmp_path: Path) -> Path:
    return fleets.served(tmp_path / "served")


def test_head_is_weighed_by_the_inputs_in_use(served: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for host in range(6):
        fleets.write(tmp_path / "parts", fleets.Recorded("v1", host=f"h{host}", session=f"s{host}", speed=1 + host / 5))
    assert predict("--production", tmp_path / "parts", "--from", served, "--format", "json", "-q") == 0
    document = json.loads(capsys.readouterr().out)
    VALIDATORS["production-1"].validate(document)
    # of a request at n = 500: serve 2, parse 10 → 11 + 0.004·n, store twice 5 → 4
    n = np.linspace(250, 750, 101)
    own = {"serve": 2 * n, "parse": 10 * n, "store": 10 * n}
    head = {"serve": 2 * n, "parse": 11 * n + 0.004 * n * n, "store": 8 * n}
    whole, then = (sum(costs.mean() for costs in side.values()) for side in (own, head))
    assert document["ratio"]["low"] <= then / whole <= document["ratio"]["high"]
    assert document["ratio"]["high"] - document["ratio"]["low"] < 0.1
    by_name = {function["function"]: function for function in document["functions"]}
    assert by_name["parse"]["share"] == pytest.approx(own["parse"].mean() / whole, abs=0.03)
    assert by_name["store"]["ratio"]["value"] == pytest.approx(0.8, abs=0.03)
    assert by_name["parse"]["ratio"]["value"] == pytest.approx(head["parse"].mean() / own["parse"].mean(), abs=0.05)
    assert document["functions"][0]["function"] == "parse"
    assert document["runs"] == 6


def test_inputs_in_use_that_nobody_measured_are_named(served: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for host in range(5):
        fleets.write(tmp_path / "parts", fleets.Recorded("v1", host=f"h{host}", session=f"s{host}", n=1000))
    assert predict("--production", tmp_path / "parts", "--from", served) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "At the inputs in use head costs +" in said
    assert "of the calls of parse have n up to 1,49" in said or "of the calls of parse have n up to 149" in said
    assert "800 is the most that was measured" in said


@pytest.mark.parametrize("folder", ["nothing", "empty"])
def test_recordings_that_are_none_are_refused(served: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], folder: str) -> None:
    (tmp_path / "empty").mkdir()
    assert predict("--production", tmp_path / folder, "--from", served) == 2
    assert "holds no" in capsys.readouterr().err
