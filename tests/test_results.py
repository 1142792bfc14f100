"""Results of other tools: what their files mean, in which units, what they lack, and that two sides are judged as they deserve."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tool_results
from perfdiff.analysis.findings import Findings, Verdict
from perfdiff.cli import main, samples
from perfdiff.config import CompareConfig
from perfdiff.errors import PerfdiffError, RecordingError, UsageError
from perfdiff.outcome import analysed
from perfdiff.progress import Silent
from perfdiff.records.results import reading
from perfdiff.records.results.series import BenchmarkSeries, ToolResults, parameter, times
from perfdiff.records.schema import ComparedUnit, Side
from perfdiff.report import document
from perfdiff.report.sentences.catalogue import noted, say
from studies.support import mutation


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def read(tmp_path: Path, text: str) -> ToolResults:
    return reading.read(written(tmp_path / "one", text))


def series(results: ToolResults) -> dict[str, BenchmarkSeries]:
    """Return the series by name and parameters, as reports name them."""
    return {" ".join([each.name, *(f"{name}={value}" for name, value in each.parameters.items())]): each for each in results.series}


def compared(tmp_path: Path, base: str, head: str, config: CompareConfig | None = None) -> Findings:
    paths = [written(tmp_path / name, text) for name, text in (("base", base), ("head", head))]
    return judged(*paths, config)


def judged(base: Path, head: Path, config: CompareConfig | None = None) -> Findings:
    assert samples.are_results(base, head)
    return analysed(samples.results(base, head), config or CompareConfig(), Silent()).findings


def notes(findings: Findings) -> dict[str, str]:
    return {note.slug: note.text for note in map(noted, findings.notes)}


MEAN_NS = float(np.mean(tool_results.NS))


@pytest.mark.parametrize(
    ("text", "tool", "mean_ns"),
    [
        (
            tool_results.google(),
            "Google Benchmark",
            {
                "BM_sort argument=100": MEAN_NS,
                "BM_sort argument=1000": 10 * MEAN_NS,
                "BM_named<int> n=64": MEAN_NS,
                "BM_clock": MEAN_NS,
            },
        ),
        (
            tool_results.pytest_benchmark(),
            "pytest-benchmark",
            {"t.py::test_work n=100": MEAN_NS, "t.py::test_work n=1000": 10 * MEAN_NS, "t.py::test_other": MEAN_NS},
        ),
        (
            tool_results.asv(),
            "asv",
            {
                "b.Suite.time_sum argument=10 argument 2=a": MEAN_NS,
                "b.Suite.time_sum argument=100 argument 2=a": 10 * MEAN_NS,
                "b.Suite.time_sum argument=100 argument 2=b": 10 * MEAN_NS,
            },
        ),
        (tool_results.hyperfine(), "hyperfine", {"./sort {n} n=10": 1e4 * MEAN_NS, "./sort {n} n=20": 2e4 * MEAN_NS}),
        (
            tool_results.phpbench(),
            "phpbench",
            {"App\\SumBench::benchSum n=1000": 1e3 * MEAN_NS, "App\\SumBench::benchSum n=10000": 1e4 * MEAN_NS},
        ),
        (
            tool_results.go(),
            "Go",
            {
                "example.com/a.BenchmarkSum n=100": MEAN_NS,
                "example.com/a.BenchmarkSum n=1000": 10 * MEAN_NS,
                "example.com/a.BenchmarkAlloc": MEAN_NS,
            },
        ),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 20 else "",
)
def test_each_tool_is_known_by_what_it_wrote_and_all_repetitions_are_taken_in_ns(
    tmp_path: Path, text: str, tool: str, mean_ns: dict[str, float]
) -> None:
    results = read(tmp_path, text)
    assert results.tool == tool
    means = {label: float(np.mean([ns for process in each.processes for ns in process])) for label, each in series(results).items()}
    assert means == pytest.approx(mean_ns, rel=1e-3)
    assert {each.repetitions for each in results.series} == {10}
    assert not any(each.lacks for each in results.series)


@pytest.mark.parametrize("unit", ["ns", "us", "ms", "s"])
def test_units_of_google_benchmark_are_told_apart(tmp_path: Path, unit: str) -> None:
    (first,) = series(read(tmp_path, tool_results.google(unit=unit)))["BM_sort argument=100"].processes
    assert first == pytest.approx(tool_results.NS)


@pytest.mark.parametrize(
    ("unit", "mode"), [("us/op", "avgt"), ("ns/op", "sample"), ("s/op", "ss"), ("ops/ms", "thrpt"), ("ops/s", "thrpt")]
)
def test_jmh_s_throughput_is_turned_into_what_an_operation_takes_and_forks_are_processes(tmp_path: Path, unit: str, mode: str) -> None:
    results = series(read(tmp_path, tool_results.jmh(unit=unit, mode=mode)))
    assert results.keys() == {"org.x.Bench.sum n=10", "org.x.Bench.sum n=100"}
    processes = results["org.x.Bench.sum n=10"].processes
    assert [len(process) for process in processes] == [2] * 5
    assert processes[1] == pytest.approx((1010.0, 1020.0))


def test_jmh_s_histograms_are_means_of_iterations_and_modes_are_told_apart(tmp_path: Path) -> None:
    data = json.loads(tool_results.jmh())[:1] + json.loads(tool_results.jmh(unit="ops/us", mode="thrpt"))[:1]
    metric = data[0]["primaryMetric"]
    del metric["rawData"]
    metric["rawDataHistogram"] = [[[[1.0, 3], [2.0, 1]], [[4.0, 2]]]]
    results = series(read(tmp_path, json.dumps(data)))
    assert results["org.x.Bench.sum (avgt) n=10"].processes == ((1250.0, 4000.0),)
    assert "org.x.Bench.sum (thrpt) n=10" in results


def test_names_of_go_keep_what_is_not_the_number_of_processors(tmp_path: Path) -> None:
    text = "BenchmarkX/size-8 \t 10\t 5 ns/op\nBenchmarkX/size-16 \t 10\t 9 ns/op\n"
    assert series(read(tmp_path, text)).keys() == {"BenchmarkX/size-8", "BenchmarkX/size-16"}
    text = "BenchmarkX/size-8-4 \t 10\t 5 ns/op\nBenchmarkX/16-4 \t 10\t 9 ns/op\t 3 B/op\n"
    assert series(read(tmp_path, text)).keys() == {"BenchmarkX/size-8", "BenchmarkX argument=16"}


@pytest.mark.parametrize(
    ("make", "benchmark"),
    [
        (tool_results.google, "BM_sort"),
        (tool_results.pytest_benchmark, "t.py::test_work"),
        (tool_results.asv, "b.Suite.time_sum"),
        (tool_results.hyperfine, "./sort {n}"),
        (tool_results.jmh, "org.x.Bench.sum"),
        (tool_results.phpbench, "App\\SumBench::benchSum"),
        (tool_results.go, "example.com/a.BenchmarkSum"),
    ],
)
def test_a_benchmark_that_takes_longer_is_a_regression_with_interval_and_number(
    tmp_path: Path, make: Callable[..., str], benchmark: str
) -> None:
    findings = compared(tmp_path, make(), make(1.4))
    assert findings.verdict is Verdict.REGRESSION
    assert findings.compared is ComparedUnit.RESULTS
    (slower,) = [each for each in findings.functions if each.verdict is Verdict.REGRESSION]
    assert slower.info.name == benchmark
    ratio = slower.metrics["self_ns"].ratio
    assert ratio is not None
    assert ratio.low <= 1.4 <= ratio.high
    assert ratio.runs_base >= 5
    assert compared(tmp_path, make(1.4), make()).verdict is Verdict.IMPROVEMENT
    assert compared(tmp_path, make(), make()).verdict is Verdict.UNCHANGED


def test_growth_is_told_over_sizes(tmp_path: Path) -> None:
    def text(power: float) -> str:
        sizes = (100, 200, 400, 800)
        lines = (f"BenchmarkSum/n={n} \t 10\t {(n / 100) ** power * ns:.6g} ns/op" for n in sizes for ns in tool_results.NS)
        return "\n".join(lines)

    findings = compared(tmp_path, text(1), text(2))
    assert findings.verdict is Verdict.REGRESSION
    assert "linear" in document.headline(findings)
    assert "quadratic" in document.headline(findings)


def test_what_differs_by_no_more_than_days_do_is_open_and_says_what_helps(tmp_path: Path) -> None:
    for head in (1.1, 0.9):
        findings = compared(tmp_path, tool_results.go(), tool_results.go(head))
        assert findings.verdict is Verdict.INCONCLUSIVE
        assert "may differ by 15 % though nothing changed" in document.headline(findings)
        assert "four files or more a side that were made in turn" in document.headline(findings)


def test_a_shift_that_some_repetitions_do_not_show_may_be_the_machine_s(tmp_path: Path) -> None:
    """On a shared machine all of base may have been slowed down, and most of head not."""
    base = in_go(Sum=[200 + ns / 100 for ns in tool_results.NS])
    head = in_go(Sum=[(200 if place == 5 else 100) + ns / 100 for place, ns in enumerate(tool_results.NS)])
    for before, after in ((base, head), (head, base)):
        findings = compared(tmp_path, before, after)
        assert findings.verdict is not Verdict.IMPROVEMENT
    assert "come near to what base's take" in say(compared(tmp_path, base, head).functions[0].reason)


def in_go(**benchmarks: list[float]) -> str:
    return "\n".join(f"Benchmark{name} \t 10\t {ns} ns/op" for name, own in benchmarks.items() for ns in own)


def test_where_the_machine_changed_its_speed_within_a_file_such_a_difference_between_files_is_no_news(tmp_path: Path) -> None:
    steady, unsteady = list(tool_results.NS), [*tool_results.NS[:5], *(1.6 * ns for ns in tool_results.NS[5:])]
    slower = [1.4 * ns for ns in steady]
    assert compared(tmp_path, in_go(A=steady, B=steady), in_go(A=slower, B=steady)).verdict is Verdict.REGRESSION
    findings = compared(tmp_path, in_go(A=steady, B=steady), in_go(A=slower, B=unsteady))
    (own,) = [each for each in findings.functions if each.info.name == "BenchmarkA"]
    assert (own.verdict, own.rules[-1].name) == (Verdict.INCONCLUSIVE, "may-be-drift")
    assert "may differ by 60 % though nothing changed" in say(own.reason)


def test_what_seems_a_little_faster_may_be_slower_code_on_a_faster_machine(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    noisy = [100 * np.exp(rng.normal(0, 0.08, 10)) for _ in range(2)]
    (own,) = compared(tmp_path, in_go(A=[*noisy[0]]), in_go(A=[*(0.9 * noisy[1])])).functions
    ratio = own.metrics["self_ns"].ratio
    assert ratio is not None
    assert ratio.high < 1.05  # which would be good news of runs in turn
    assert (own.verdict, own.rules[-1].name) == (Verdict.INCONCLUSIVE, "may-be-drift")
    same = [0.99 * ns for ns in tool_results.NS]
    (own,) = compared(tmp_path, in_go(A=list(tool_results.NS)), in_go(A=same)).functions
    assert own.verdict is Verdict.UNCHANGED


def test_where_each_side_has_files_of_several_sessions_their_differences_decide(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)

    def side(name: str, times: float, spread: float) -> Path:
        for session in range(5):
            written(tmp_path / name / f"{session}.txt", tool_results.go(times * float(np.exp(rng.normal(0, spread)))))
        return tmp_path / name

    findings = judged(side("base", 1.0, 0.005), side("head", 1.1, 0.005))
    assert findings.verdict is Verdict.REGRESSION
    ratio = findings.functions[0].metrics["self_ns"].ratio
    assert ratio is not None
    assert (ratio.runs_base, ratio.runs_head) == (10, 10)  # five sessions at two sizes
    assert judged(side("near", 1.0, 0.08), side("far", 1.1, 0.08)).verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (tool_results.pytest_benchmark(1.0, with_data=False), "statistics alone: --benchmark-save-data keeps the rounds"),
        (tool_results.asv(1.0, with_samples=False), "a median alone: `asv run --record-samples` keeps the samples"),
        (tool_results.google(waits=3.0), "CPU times, and ×3 as much real time: UseRealTime() would say which counts"),
    ],
)
def test_what_a_file_lacks_is_said_and_nothing_is_concluded_of_one_number(tmp_path: Path, text: str, says: str) -> None:
    findings = compared(tmp_path, text, text.replace("e-09", "e-06"))
    assert findings.verdict is Verdict.INCONCLUSIVE
    assert says in notes(findings)["results-lacking"]


def test_aggregates_alone_are_read_as_one_number(tmp_path: Path) -> None:
    data = json.loads(tool_results.google())
    data["benchmarks"] = [each for each in data["benchmarks"] if each["run_type"] == "aggregate"]
    each = series(read(tmp_path, json.dumps(data)))["BM_sort argument=100"]
    assert each.processes == ((100.0,),)
    assert "--benchmark_report_aggregates_only" in each.lacks


def test_benchmarks_of_one_side_and_those_that_were_not_read_are_named(tmp_path: Path) -> None:
    data = json.loads(tool_results.google())
    data["benchmarks"] = [each for each in data["benchmarks"] if each["run_name"] != "BM_sort/1000"]
    findings = compared(tmp_path, tool_results.google(), json.dumps(data))
    skipped = {(each.name, each.reason) for each in findings.skipped}
    assert ("BM_sort argument=1000", "only base has results of it") in skipped
    assert ("BM_broken", "not read in head: no file") in skipped
    assert [point.label for point in findings.points] == ["BM_sort argument=100", "BM_named<int> n=64", "BM_clock"]


def test_what_files_tell_of_machines_is_a_note(tmp_path: Path) -> None:
    told = notes(compared(tmp_path, tool_results.pytest_benchmark(), tool_results.pytest_benchmark(python="3.13.1")))
    assert told["machines-differ"] == "base was measured with another interpreter (CPython 3.11.7) than head (CPython 3.13.1)"
    told = notes(compared(tmp_path, tool_results.google(), tool_results.google(build="debug")))
    assert told["results-doubtful"] == "head: its library was built for debugging"
    told = notes(compared(tmp_path, tool_results.phpbench(xdebug="1"), tool_results.phpbench()))
    assert told["results-doubtful"] == "base: xdebug was loaded"
    told = notes(compared(tmp_path, tool_results.hyperfine(), tool_results.hyperfine(exit_code=1)))
    assert told["results-doubtful"] == "head: runs of './sort 10' did not exit 0"
    told = notes(compared(tmp_path, tool_results.jmh(), tool_results.jmh(jdk="21")))
    assert "virtual machine" in told["machines-differ"]


def test_the_only_command_of_each_side_is_the_same_benchmark_wherever_it_lies(tmp_path: Path) -> None:
    findings = compared(tmp_path, tool_results.hyperfine(), tool_results.hyperfine(2.0, program="/opt/v2/sort"))
    assert findings.verdict is Verdict.REGRESSION


def test_results_that_have_nothing_in_common_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="results of Go cannot be compared with those of hyperfine"):
        compared(tmp_path, tool_results.go(), tool_results.hyperfine())
    with pytest.raises(UsageError, match=r"no benchmark is in both: base has 'example.com/a.BenchmarkSum', and head 'b.BenchmarkSum'"):
        compared(tmp_path, tool_results.go(), tool_results.go(package="b"))
    written(tmp_path / "idcm_f_1.bin", "\0\0\0")
    with pytest.raises(UsageError, match="cannot be compared with samples"):
        samples.are_results(written(tmp_path / "base", tool_results.go()), tmp_path / "idcm_f_1.bin")


@pytest.mark.parametrize(
    ("text", "slug"),
    [
        ("{", "results-damaged"),
        ('{"a": 1}', "results-unknown"),
        ("hello", "results-unknown"),
        ("<svg/>", "results-unknown"),
        ("<phpbench><suite>", "results-damaged"),
        ('<!DOCTYPE a [<!ENTITY b "c">]><phpbench/>', "results-damaged"),
        ('{"results": []}', "results-empty"),
        (tool_results.google().replace("100.0,", "NaN,"), "results-damaged"),
        (tool_results.google().replace('"ns"', '"fortnights"'), "results-damaged"),
        (tool_results.hyperfine().replace("[0", "[true, 0"), "results-damaged"),
        (tool_results.jmh(unit="ops/us").replace("[[", "[[0.0, "), "results-damaged"),
        ("[" * 100_000, "results-damaged"),
        ('{"results": [{"command": "a", "mean": ' + "9" * 400 + "}]}", "results-damaged"),
    ],
)
def test_what_is_damaged_or_of_no_tool_is_refused_with_what_is_wrong(tmp_path: Path, text: str, slug: str) -> None:
    with pytest.raises((RecordingError, UsageError)) as error:
        read(tmp_path, text)
    assert error.value.slug == slug


@pytest.mark.parametrize("tool", tool_results.ALL)
@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_damaged_files_end_in_results_or_in_a_typed_error(tmp_path_factory: pytest.TempPathFactory, tool: str, seed: int) -> None:
    rng, text = random.Random(seed), tool_results.ALL[tool]
    damaged = (
        mutation.changed_json(rng, [text]) if text.startswith(("{", "[")) and rng.random() < 0.7 else mutation.changed_text(rng, [text])
    )
    path = tmp_path_factory.getbasetemp() / "damaged"
    path.write_bytes(damaged)
    with suppress(PerfdiffError):
        results = reading.read(path)
        assert all(np.isfinite(ns) and ns >= 0 for each in results.series for process in each.processes for ns in process)


@pytest.mark.parametrize(
    ("written_as", "value"),
    [("100", 100), ("-3", -3), ("1.5", 1.5), (True, "True"), (None, "None"), ("9" * 400, "9" * 400), ("a", "a"), (7, 7)],
)
def test_parameters_are_numbers_where_they_are_written_as_such(written_as: object, value: object) -> None:
    assert parameter(written_as) == value
    assert type(parameter(written_as)) is type(value)


def test_times_of_no_unit_are_refused() -> None:
    assert times([2.0], "ms") == (2e6,)
    with pytest.raises(ValueError, match="no unit of time"):
        times([1.0], "parsecs")


def test_from_the_command_line_to_the_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "v1.json", tool_results.google())
    written(tmp_path / "v2.json", tool_results.google(1.5))
    with pytest.raises(SystemExit) as ended:
        main(["compare", "-q", "v1.json", "v2.json"])
    assert ended.value.code == 1
    said = capsys.readouterr().out
    assert "Regression: `BM_sort`" in said
    assert "3 benchmarks at 4 points, by another tool" in said
    with pytest.raises(SystemExit) as ended:
        main(["compare", "-q", "v1.json", "v1.json"])
    assert ended.value.code == 0
    assert "No regression: 3 benchmarks compared, none is slower by more than the threshold" in capsys.readouterr().out


def test_what_was_saved_of_two_results_is_judged_as_results_when_it_is_paired_anew(tmp_path: Path) -> None:
    for name, times_ in (("a", 1.0), ("b", 1.1)):
        paths = [written(tmp_path / f"{name}-{side}", tool_results.go(times_)) for side in Side]
        samples.save(tmp_path / name, samples.results(*paths))
    paired = samples.load_pair(tmp_path / "a", tmp_path / "b")
    assert paired.experiment.compared is ComparedUnit.RESULTS
    assert analysed(paired, CompareConfig(), Silent()).findings.verdict is Verdict.INCONCLUSIVE  # and no regression of ×1.1
