"""`perfdiff annotate` and `perfdiff compare`: samples in, annotations, plots and verdicts out."""

from __future__ import annotations

import functools
import json
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from html import unescape
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import programs
import runtimes
from perfdiff import cli
from perfdiff.analysis.annotations import annotating
from perfdiff.analysis.annotations.selections import side_by_side
from perfdiff.analysis.compare import study
from perfdiff.engines import tables
from perfdiff.engines.processes import Processes
from perfdiff.models import language
from perfdiff.models.annotation import Annotation
from perfdiff.models.fitting import fit
from perfdiff.records import freud_log, store
from perfdiff.records.freud_blocks import Block, encode
from perfdiff.records.schema import SampleTable, Side
from perfdiff.report import hotcloud
from perfdiff.report.annotation_plots import draw
from sampled import noisy, table

Cost = Callable[[np.ndarray, np.ndarray], np.ndarray]  # µs by n and mode
RUNS = 6


def block(function: str, cost: Cost, seed: int, calls: int = 200) -> Block:
    """Return calls of a function whose cost follows n and an enum, with 3 % noise, as a log has them."""
    rng = np.random.default_rng(seed)
    n, mode = rng.integers(10, 10_000, calls).astype(float), rng.integers(0, 2, calls).astype(float)
    metrics = np.zeros((calls, 6))
    metrics[:, 0] = np.floor(cost(n, mode) * (1 + 0.03 * rng.standard_normal(calls)))
    metrics[:, 1] = 16 * n
    return Block(
        function=function,
        uid=np.arange(calls),
        metrics=metrics,
        features=("n", "mode"),
        values=np.column_stack([n, mode]),
        category=np.array([False, True]),
        system=np.array([False, False]),
        branches=(),
        executed=np.zeros((calls, 0)),
        taken=np.zeros((calls, 0)),
        parent=np.empty(0, np.int64),
        child=np.empty(0, np.int64),
    )


def linear(slope: float) -> Cost:
    return lambda n, mode: 50 + slope * n * (1 + mode)


def logs(folder: Path, cost: Cost, *, seed: int, runs: int = RUNS, functions: Sequence[str] = ("f",)) -> Path:
    """Write a log for each function and run."""
    folder.mkdir(exist_ok=True)
    for place, function in enumerate(functions):
        for run in range(1, runs + 1):
            (folder / f"idcm_{function}_{run}.bin").write_bytes(encode([block(function, cost, seed * 1000 + 100 * place + run)]))
    return folder


def perfdiff(*arguments: object) -> int:
    """Run the command line and return its exit code."""
    with pytest.raises(SystemExit) as left:
        cli.main([str(argument) for argument in arguments])
    return int(left.value.code or 0)


@pytest.fixture(autouse=True)
def standing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand outside of any checkout, with a cache and signal handlers of the test's own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PERFDIFF_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)


def test_logs_are_annotated_with_scopes_by_an_enum(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logs(tmp_path / "v1", linear(0.5), seed=1)
    assert perfdiff("annotate", "-q", "v1", "--format", "json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "perfdiff.annotation/1"
    by_metric = {each["metric"]: each for each in document["annotations"]}
    assert by_metric.keys() == {"wall_ns", "alloc_bytes"}
    time, memory = by_metric["wall_ns"], by_metric["alloc_bytes"]
    assert (time["function"], time["class"], time["n"]) == ("f", "linear", RUNS * 200)
    assert {scope["condition"] for scope in time["scopes"]} == {"mode == 1", "mode != 1"}
    assert (memory["class"], memory["features"], memory["scopes"]) == ("linear", ["n"], [])


def test_the_text_reads_back_as_annotations_with_the_true_slopes(tmp_path: Path) -> None:
    logs(tmp_path / "v1", linear(0.5), seed=1)
    assert perfdiff("annotate", "-q", "v1", "--metric", "wall_ns", "-o", "v1.annotations") == 0
    (annotation,) = language.parse_all((tmp_path / "v1.annotations").read_text())
    slopes = sorted(term.coefficient for scope in annotation.scopes for term in scope.terms if term.factors == (("n", "x"),))
    assert slopes == pytest.approx([500, 1000], rel=0.02)
    assert annotation.n == RUNS * 200
    assert annotation.cv_r2 > 0.98


def test_one_log_and_chosen_functions_are_enough(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logs(tmp_path / "v1", linear(0.5), seed=1, runs=1, functions=("f", "g"))
    assert perfdiff("annotate", "-q", "v1/idcm_f_1.bin", "--format", "hotcloud") == 0
    one = capsys.readouterr().out
    assert one.startswith("@Time~[mode == ")
    assert "@Memory~Norm(16B*n, 0)\n// by the paper: linear in `n` (correlation 1.00)" in one
    assert "//   @Memory~Norm(16B*n, 0)\nf\n" in one
    assert "the paper's misses the costs are others by `mode`: it has no scopes" in one
    assert perfdiff("annotate", "-q", "v1", "--function", "g", "--format", "hotcloud") == 0
    chosen = capsys.readouterr().out
    assert chosen.endswith("\ng\n")
    assert "\nf\n" not in chosen


@pytest.mark.parametrize(
    ("arguments", "variable", "seed"),
    [((), None, 7), ((), "9", 9), (("--seed", 0), "9", 0)],
)
def test_the_seed_is_that_of_the_command_line_the_environment_or_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: Sequence[object], variable: str | None, seed: int
) -> None:
    logs(tmp_path / "v1", linear(0.5), seed=1, runs=1)
    (tmp_path / "perfdiff.toml").write_text("[compare]\nseed = 7\n")
    if variable:
        monkeypatch.setenv("PERFDIFF_COMPARE_SEED", variable)
    seeds: list[int] = []

    def learnt(*_: object, seed: int) -> tuple[Annotation, ...]:
        seeds.append(seed)
        return ()

    monkeypatch.setattr(annotating, "annotate", learnt)
    assert perfdiff("annotate", "-q", "v1", *arguments) == 0
    assert seeds == [seed]


@pytest.mark.parametrize(
    ("arguments", "slug"),
    [
        (("annotate", "v1", "--function", "ff"), "unknown-function"),
        (("annotate", "v1", "--metric", "wall"), "unknown-metric"),
        (("annotate", "v1", "--side", "head"), "samples-missing"),
        (("annotate", "v1", "--save", "v1"), "samples-in-the-way"),
        (("annotate", "v1", "--", "./program"), "samples-apart"),
        (("annotate", "v8", "v9"), "bad-specification"),
        (("annotate", "v8"), "not-a-repository"),
        (("compare", "v1", "absent"), "samples-missing"),
        (("compare", "v1", "other"), "samples-apart"),
    ],
)
def test_what_cannot_be_followed_is_a_usage_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], slug: str
) -> None:
    logs(tmp_path / "v1", linear(0.5), seed=1, runs=1)
    logs(tmp_path / "other", linear(0.5), seed=1, runs=1, functions=("g",))
    assert perfdiff(*arguments) == 2
    assert f"[{slug}]" in capsys.readouterr().err


def test_a_damaged_log_exits_as_not_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = logs(tmp_path / "v1", linear(0.5), seed=1, runs=1) / "idcm_f_1.bin"
    path.write_bytes(path.read_bytes()[:-3])
    assert perfdiff("annotate", "-q", "v1") == 3
    error = capsys.readouterr().err
    assert "idcm_f_1.bin: byte " in error
    assert "[log-damaged]" in error


def test_logs_of_a_slower_version_are_a_regression_in_that_function_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logs(tmp_path / "v1", linear(0.5), seed=1, functions=("f", "g"))
    logs(tmp_path / "v2", linear(0.5), seed=2, functions=("g", "f"))
    logs(tmp_path / "v2", linear(0.65), seed=3)
    assert perfdiff("compare", "-q", "v1", "v2", "--format", "json") == 1
    report = json.loads(capsys.readouterr().out)
    found = {each["name"]: each for each in report["functions"]}
    assert {name: each["verdict"] for name, each in found.items()} == {"f": "regression", "g": "unchanged"}
    assert found["f"]["metrics"]["wall_ns"]["ratio"] == pytest.approx(1.3, rel=0.02)
    assert "recorded-apart" in {note["slug"] for note in report["notes"]}


def test_many_functions_are_compared_by_several_processes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "Processes", functools.partial(Processes, least=6))
    monkeypatch.setattr(study, "BATCH", 3)
    names = [f"f{number}" for number in range(6)]
    for version in ("v1", "v2"):
        logs(tmp_path / version, linear(0.5), seed=int(version[1:]), runs=4, functions=names)
        assert perfdiff("annotate", "-q", version, "--function", "f0", "--save", f"saved/{version}", "-o", "a.txt") == 0
    for pair in (("v1", "v2"), ("saved/v1", "saved/v2")):
        assert perfdiff("compare", "-q", *pair, "--format", "json") == 0
        assert len(json.loads(capsys.readouterr().out)["functions"]) == len(names)


def test_equal_logs_are_no_regression_and_too_few_runs_are_inconclusive_with_the_remedy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs(tmp_path / "v1", linear(0.5), seed=1)
    logs(tmp_path / "v2", linear(0.5), seed=2)
    assert perfdiff("compare", "-q", "v1", "v2", "--strict") == 0
    capsys.readouterr()
    assert perfdiff("compare", "-q", "v1/idcm_f_1.bin", "v2/idcm_f_1.bin", "--strict") == 4
    assert "add runs" in capsys.readouterr().out


def test_steps_of_whole_microseconds_are_no_regression(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """5.9 µs are logged as 5 and 6.1 µs as 6: the difference is 3 %, what the logs show by medians is 20 %."""
    logs(tmp_path / "v1", lambda n, mode: np.full(len(n), 5.9), seed=1)
    logs(tmp_path / "v2", lambda n, mode: np.full(len(n), 6.1), seed=2)
    assert perfdiff("compare", "-q", "v1", "v2") == 0
    assert "regression" not in capsys.readouterr().out.replace("No regression", "").replace("as a regression", "")


def test_saved_samples_of_logs_are_compared_as_the_logs_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for version, slope in (("v1", 0.5), ("v2", 0.65)):
        logs(tmp_path / version, linear(slope), seed=int(version[1:]))
        assert perfdiff("annotate", "-q", version, "--save", f"saved/{version}", "-o", "a.txt") == 0
    assert perfdiff("annotate", "-q", "saved/v1/samples/1-base.parquet", "-o", "one.txt") == 0
    assert perfdiff("annotate", "-q", "saved/v1", "-o", "all.txt") == 0
    assert (tmp_path / "one.txt").read_text() == (tmp_path / "all.txt").read_text()
    shutil.copy("saved/v1/samples/1-base.parquet", "saved/v1/samples/9-base.parquet")
    assert perfdiff("annotate", "-q", "saved/v1/samples/9-base.parquet") == 2
    ratios = []
    for pair in (("v1", "v2"), ("saved/v1", "saved/v2")):
        assert perfdiff("compare", "-q", *pair, "--format", "json") == 1
        ratios.append(json.loads(capsys.readouterr().out)["functions"][0]["metrics"]["wall_ns"]["ratio"])
    assert ratios[0] == ratios[1]
    assert store.samples(tmp_path / "saved" / "v1", 1, Side.BASE).resolution_ns == 1000


@pytest.mark.parametrize("suffix", ["txt", "md", "html", "json"])
def test_a_comparison_of_logs_is_written_in_every_format(tmp_path: Path, suffix: str) -> None:
    logs(tmp_path / "v1", linear(0.5), seed=1)
    logs(tmp_path / "v2", linear(0.9), seed=2)
    assert perfdiff("compare", "-q", "v1", "v2", "-o", f"report.{suffix}") == 1
    text = (tmp_path / f"report.{suffix}").read_text()
    assert "`f`" in text or ">f<" in text or '"f"' in text
    assert ":0" not in text.split("Functions")[0].splitlines()[0]


def test_functions_without_any_feature_are_annotated_and_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for version, cost in (("v1", 500.0), ("v2", 700.0)):
        (tmp_path / version).mkdir()
        for run in range(RUNS):
            plain = block("f", lambda n, mode, cost=cost: np.full(len(n), cost), seed=run + int(cost))
            bare = replace(plain, features=(), values=np.empty((len(plain), 0)), category=np.empty(0, bool), system=np.empty(0, bool))
            (tmp_path / version / f"idcm_f_{run}.bin").write_bytes(encode([bare]))
    assert perfdiff("annotate", "-q", "v1", "--metric", "wall_ns", "--plots", "plots") == 0
    assert "class = constant" in capsys.readouterr().out
    assert perfdiff("compare", "-q", "v1", "v2") == 1
    assert "×1.4" in capsys.readouterr().out


def test_exported_logs_say_the_same_as_their_samples(tmp_path: Path) -> None:
    logs(tmp_path / "v1", linear(0.5), seed=1, runs=2)
    assert perfdiff("annotate", "-q", "v1", "--logs", "out", "--format", "hotcloud", "-o", "first") == 0
    assert len(list((tmp_path / "out").glob("idcm_f_*.bin"))) == 2
    assert perfdiff("annotate", "-q", "out", "--format", "hotcloud", "-o", "second") == 0
    assert (tmp_path / "first").read_text() == (tmp_path / "second").read_text()
    original = freud_log.read(tmp_path / "v1" / "idcm_f_1.bin").tables["f"]
    np.testing.assert_array_equal(freud_log.read(tmp_path / "out" / "idcm_f_1_0.bin").tables["f"].values, original.values)


def test_every_annotation_is_drawn(tmp_path: Path) -> None:
    logs(tmp_path / "v1", linear(0.5), seed=1)
    assert perfdiff("annotate", "-q", "v1", "--plots", "plots", "-o", "a.txt") == 0
    drawn = sorted(path.name for path in (tmp_path / "plots").iterdir())
    assert drawn == ["1-f-alloc_bytes.svg", "1-f-wall_ns.svg"]
    for name in drawn:
        assert ET.parse(tmp_path / "plots" / name).getroot().tag.endswith("svg")


def drawing(annotation: Annotation, calls: SampleTable) -> tuple[str, list[str]]:
    """Return an SVG and the texts in it, which matplotlib keeps as comments beside their outlines."""
    picture = draw(annotation, calls)
    parser = ET.XMLParser(target=ET.TreeBuilder(insert_comments=True))
    root = ET.fromstring(picture, parser)
    return picture, [unescape(element.text).strip() for element in root.iter() if element.tag is ET.Comment and element.text]


def test_a_plot_shows_scopes_with_their_conditions_and_quantities_with_units() -> None:
    rng = np.random.default_rng(1)
    n, mode = rng.integers(1, 1000, 600).astype(float), rng.integers(0, 2, 600).astype(float)
    calls = table({"n": n, "mode": mode}, noisy(rng, 1e3 * n * (1 + 3 * mode)), labels={"mode": {0: "FAST", 1: "SLOW"}})
    picture, texts = drawing(fit(calls, "wall_ns", seed=1, function="f<$a_b$>"), calls)
    assert any(text.startswith("mode == SLOW: linear, ") for text in texts)
    assert "n" in texts
    assert any(text.startswith("f<$a_b$>: time, callees included") for text in texts)
    assert any(text.endswith((" µs", " ms")) for text in texts)
    assert draw(fit(calls, "wall_ns", seed=1, function="f<$a_b$>"), calls) == picture


@pytest.mark.parametrize("values", [(1.0, 2.0, 8.0), tuple(range(1, 100))])
def test_a_cost_of_two_features_has_a_curve_for_each_third_of_the_second_one(values: tuple[float, ...]) -> None:
    """One curve, at the other feature's value in one of the calls, went through few of them."""
    rng = np.random.default_rng(1)
    n, m = rng.integers(1, 1000, 900).astype(float), rng.choice(np.array(values, float), 900)
    calls = table({"n": n, "m": m}, noisy(rng, 1e3 + 20 * n * m))
    _, texts = drawing(fit(calls, "wall_ns", seed=1), calls)
    strands = [text for text in texts if text.startswith("quadratic, ") and "; m " in text]
    assert len(strands) == 3
    if len(values) == 3:
        assert [text.partition("; ")[2] for text in strands] == ["m 1", "m 2", "m 8"]


def test_a_second_feature_that_hardly_moves_the_cost_has_no_curves_of_its_own() -> None:
    rng = np.random.default_rng(1)
    n, m = rng.integers(1, 1000, 900).astype(float), rng.integers(0, 100, 900).astype(float)
    calls = table({"n": n, "m": m}, 1e3 + 20 * n + 2 * m, metric="alloc_bytes")
    _, texts = drawing(fit(calls, "alloc_bytes", seed=1), calls)
    assert not any("; m " in text for text in texts)


def test_a_mixture_is_drawn_as_how_often_each_cost_occurs() -> None:
    rng = np.random.default_rng(1)
    calls = table({"n": rng.random(900)}, rng.choice([1e3, 3e4], 900, p=[0.3, 0.7]) * (1 + 0.05 * rng.standard_normal(900)))
    annotation = fit(calls, "wall_ns", seed=1)
    assert len(annotation.scopes) == 2
    _, texts = drawing(annotation, calls)
    assert "calls" in texts
    assert sum("constant, " in text for text in texts) >= 2


@pytest.mark.parametrize("cost", [0.0, 64.0])
def test_a_cost_that_never_differs_is_drawn_too(cost: float) -> None:
    calls = table({"n": np.arange(50.0)}, np.full(50, cost), metric="alloc_bytes")
    assert "<svg" in draw(fit(calls, "alloc_bytes", seed=1), calls)


def test_the_short_form_has_a_line_for_each_scope_and_units() -> None:
    calls = table({"path_length": np.tile(np.arange(1.0, 11), 30)}, 2e6 * np.tile(np.arange(1.0, 11), 30), metric="wall_ns")
    text = hotcloud.text([side_by_side(fit(calls, "wall_ns", seed=1, function="delete"), calls)])
    assert text.splitlines()[-1] == "delete"
    assert "2ms*path_length" in text


@pytest.mark.integration
def test_a_revision_is_built_and_run_once_annotated_saved_and_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = next(case for case in programs.cases() if case.name == "list-append")
    repository = programs.repository(case, tmp_path / "repository")
    runtimes.lent_to(tmp_path / "cache")
    own = ("-q", "--repo", repository, "--runs", 5, "--metric", "wall_ns")
    for side in ("base", "head"):
        assert perfdiff("annotate", *own, side, "--save", f"lab/{side}", "-o", f"{side}.txt") == 0
    experiment = store.load(tmp_path / "lab" / "base")
    assert {run.side for run in experiment.runs} == {Side.BASE}
    assert ".blocks(" not in Path("base.txt").read_text()
    assert perfdiff("annotate", *own, "base", "--metric", "blocks", "-o", "counted.txt") == 0
    assert f"{case.expected['guilty']}.blocks(" in Path("counted.txt").read_text()
    shutil.rmtree(repository)
    shutil.rmtree(tmp_path / "cache")
    assert perfdiff("compare", "-q", "lab/base", "lab/head", "--format", "json") == 1
    report = json.loads(capsys.readouterr().out)
    first = next(each for each in report["functions"] if each["rank"] == 1)
    assert first["name"] == case.expected["guilty"]
    assert perfdiff("compare", "-q", "lab/base", "lab/base") == 2
    assert "one version alone" in capsys.readouterr().err
