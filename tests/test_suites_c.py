"""Benchmarks and tests of C and C++ as suites: what the frameworks' own programs list and run."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from perfdiff.languages.c.frameworks import FRAMEWORKS
from perfdiff.languages.c.suites.googlebenchmark import BenchmarkName
from perfdiff.languages.listing import LISTED_TO, LISTING_S, Listing

Lists = Callable[..., Listing]


@pytest.fixture
def lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lists:
    """Return a function that lists the suite of a framework in the folder `built`, as perfdiff does."""
    built = tmp_path / "built"
    built.mkdir()
    monkeypatch.chdir(built)

    def listed(framework: str, value: str = "", *words: str, limit_s: float = 60.0) -> Listing:
        file = tmp_path / "listing.json"
        module = f"perfdiff.languages.c.suites.{framework}:listed"
        environment = {**os.environ, LISTED_TO: str(file), LISTING_S: f"{limit_s:g}"}
        command = [sys.executable, "-P", "-m", "perfdiff.languages.listing", module, value, *words]
        subprocess.run(command, check=True, env=environment, timeout=2 * limit_s)
        return Listing.read(file.read_text())

    return listed


def compiled(source: str, program: str, *options: str) -> None:
    """Compile a source in C++ to a program in the current folder."""
    file = Path(f"{program}.cpp")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(source)
    subprocess.run(["g++", "-O1", "-std=c++17", str(file), "-o", program, *options], check=True)


def includes(header: str) -> bool:
    """Return whether the compiler finds a header of a framework."""
    command = ["g++", "-E", "-x", "c++", "-", "-o", "/dev/null"]
    return (
        bool(shutil.which("g++"))
        and not subprocess.run(command, check=False, input=f"#include <{header}>\n".encode(), stderr=subprocess.DEVNULL).returncode
    )


def ran(command: str, **values: object) -> subprocess.CompletedProcess[str]:
    """Run a command of a listing at a point."""
    for name, value in values.items():
        command = command.replace(f"{{{name}}}", str(value))
    return subprocess.run(["/bin/sh", "-c", command], check=False, capture_output=True, text=True)


def google_benchmark(version: str) -> str:
    """Return the source of a program that speaks as Google Benchmark does, by its documents, and writes its arguments to a file."""
    takes_iterations = "1" if version >= "1.8" else "0"
    return """
#include <cstdio>
#include <cstring>
#include <string>
int main(int count, char** words) {
  std::string out, all;
  for (int at = 1; at < count; ++at) {
    all += words[at]; all += "\\n";
    if (!strcmp(words[at], "--benchmark_list_tests")) { puts("BM_sort/8"); puts("BM_sort/64"); puts("BM_own/min_time:0.500"); return 0; }
    if (!strncmp(words[at], "--benchmark_out=", 16)) out = words[at] + 16;
    if (strstr(words[at], "min_time") && words[at][strlen(words[at]) - 1] == 'x' && !TAKES) {
      fprintf(stderr, "The value of flag --benchmark_min_time is expected to be a double\\n"); return 1;
    }
  }
  FILE* log = fopen("words", "w"); fputs(all.c_str(), log); fclose(log);
  if (!out.empty()) { FILE* file = fopen(out.c_str(), "w"); fputs("{\\"benchmarks\\": [{\\"name\\": \\"x\\"}]}", file); fclose(file); }
  return 0;
}
""".replace("TAKES", takes_iterations)


REAL_BENCHMARKS = """
#include <benchmark/benchmark.h>
#include <algorithm>
#include <vector>
static void Sort(benchmark::State& state) {
  std::vector<int> values(state.range(0));
  for (auto _ : state) { for (auto& value : values) value = rand(); std::sort(values.begin(), values.end()); }
}
BENCHMARK(Sort)->Arg(100)->Arg(10000);
static void Grid(benchmark::State& state) {
  for (auto _ : state) for (long at = 0; at < state.range(0) * state.range(1); ++at) benchmark::DoNotOptimize(at);
}
BENCHMARK(Grid)->ArgNames({"rows", "columns"})->Args({10, 20})->Args({300, 4})->UseRealTime();
template <class T> static void Made(benchmark::State& state) { for (auto _ : state) benchmark::DoNotOptimize(T()); }
BENCHMARK_TEMPLATE(Made, std::pair<int, long>)->Threads(2);
static void Skips(benchmark::State& state) { state.SkipWithError("no file"); for (auto _ : state) {} }
BENCHMARK(Skips);
static void Own(benchmark::State& state) { for (auto _ : state) {} }
BENCHMARK(Own)->Repetitions(3);
static void Crashes(benchmark::State& state) { for (auto _ : state) abort(); }
BENCHMARK(Crashes);
BENCHMARK_MAIN();
"""


@pytest.mark.integration
@pytest.mark.skipif(not includes("benchmark/benchmark.h"), reason="needs libbenchmark-dev")
def test_google_benchmarks_of_one_function_are_points_and_failures_are_told(lists: Lists) -> None:
    compiled(REAL_BENCHMARKS, "build/bench", "-lbenchmark", "-lpthread")

    listing = lists("googlebenchmark")

    assert list(listing.benchmarks) == ["Sort", "Grid/real_time", "Made<std::pair<int, long>>/threads:2", "Own/repeats:3"]
    assert listing.benchmarks["Sort"].parameters == ("arg0",)
    (short_s, _), (long_s, _) = (listing.benchmarks["Sort"].points[values] for values in ((100,), (10000,)))
    assert long_s > 10 * short_s > 0
    assert listing.benchmarks["Grid/real_time"].parameters == ("rows", "columns")
    assert set(listing.benchmarks["Grid/real_time"].points) == {(10, 20), (300, 4)}
    assert listing.failures["Skips"] == "skipped: no file"
    assert listing.failures["Crashes"].startswith("signal 6")
    assert 0 < listing.start_s < 0.1
    for benchmark in listing.benchmarks.values():
        values = dict(zip(benchmark.parameters, next(iter(benchmark.points)), strict=True))
        run = ran(benchmark.command, calls=2, **values)
        assert (run.returncode, run.stdout, run.stderr) == (0, "", ""), benchmark.command


@pytest.mark.integration
@pytest.mark.skipif(not includes("benchmark/benchmark.h"), reason="needs libbenchmark-dev")
def test_the_filter_of_google_benchmark_selects_one_benchmark_alone(lists: Lists) -> None:
    compiled(REAL_BENCHMARKS, "bench", "-lbenchmark", "-lpthread")

    listing = lists("googlebenchmark", "bench --benchmark_filter=Sort")

    assert list(listing.benchmarks) == ["Sort"]
    command = listing.benchmarks["Sort"].command.replace(" >/dev/null", "").replace("json", "csv")
    rows = [line for line in ran(command, calls=3, arg0=100).stdout.splitlines() if line.startswith('"')]
    assert {row.split(",")[0].strip('"').partition("_")[0] for row in rows} == {"Sort/100"}


@pytest.mark.parametrize(
    ("version", "options"),
    [("1.7", "--benchmark_min_time=0 --benchmark_repetitions={calls}"), ("1.8", "--benchmark_min_time={calls}x")],
)
def test_each_version_of_google_benchmark_is_called_by_the_options_that_it_has(lists: Lists, version: str, options: str) -> None:
    compiled(google_benchmark(version), "bench")

    listing = lists("googlebenchmark", "bench", limit_s=5)

    assert options in listing.benchmarks["BM_sort"].command
    assert ("BM_own/min_time:0.500" in listing.failures) == (version == "1.7")


@pytest.mark.parametrize(
    ("text", "family", "parameters", "values", "suffix"),
    [
        ("BM_sort", "BM_sort", (), (), ""),
        ("BM_sort/1000/2", "BM_sort", ("arg0", "arg1"), (1000, 2), ""),
        ("BM_sort/n:1000/-2/process_time/real_time", "BM_sort", ("n", "arg1"), (1000, -2), "/process_time/real_time"),
        ("Fixture/Method<int, 3>/8/iterations:5/threads:2", "Fixture/Method<int, 3>", ("arg0",), (8,), "/iterations:5/threads:2"),
        ("BM/calls:3/calls:4", "BM", ("arg0", "arg1"), (3, 4), ""),
        ("BM/calls:3", "BM", ("arg0",), (3,), ""),
        ("1000", "1000", (), (), ""),
    ],
)
def test_names_of_google_benchmarks_are_taken_apart(
    text: str, family: str, parameters: tuple[str, ...], values: tuple[int, ...], suffix: str
) -> None:
    name = BenchmarkName.read(text)
    assert (name.family, name.parameters, name.values, name.suffix) == (family, parameters, values, suffix)


def test_filters_are_exact_and_have_places_for_parameters_alone() -> None:
    name = BenchmarkName.read("parse {n} (a|b)/n:5")
    option = name.filter(["{n}"])
    assert option.count("{n}") == 1
    assert shlex.split(option.replace("{n}", "5")) == ["--benchmark_filter=^parse \\{n} \\(a\\|b\\)/n:5$"]


def test_a_program_that_is_not_of_the_framework_is_never_run(lists: Lists) -> None:
    compiled('#include <cstdio>\nint main() { fclose(fopen("it-ran", "w")); }', "other")

    listing = lists("googlebenchmark", "other", limit_s=5)

    assert listing.failures == {"other": "is no program with Google Benchmark; it was not run"}
    assert lists("googlebenchmark", limit_s=5) == Listing()
    assert not Path("it-ran").exists()


def test_a_program_that_was_not_built_is_told(lists: Lists) -> None:
    assert lists("googlebenchmark", "build/bench --v=2").failures == {"build/bench": "no such program was built"}


def test_a_program_that_hangs_ends_with_the_listing(lists: Lists) -> None:
    compiled('int main() { const char* volatile mark = "benchmark_list_tests"; for (;;) if (!mark) break; }', "bench")

    listing = lists("googlebenchmark", "bench", limit_s=2)

    assert listing.failures == {"bench": "takes longer than 2 s"}


def test_what_is_switched_off_in_the_build_is_told_where_nothing_was_listed(lists: Lists) -> None:
    Path("build").mkdir()
    Path("build/CMakeCache.txt").write_text("SHOP_BUILD_BENCH:BOOL=OFF\nCMAKE_TESTS:BOOL=OFF\nSHOP_TESTS:BOOL=ON\nSHOP_DOCS:BOOL=OFF\n")
    Path("mbuild/meson-info").mkdir(parents=True)
    options = [
        {"name": name, "section": section, "value": value}
        for name, section, value in (("benchmarks", "user", False), ("b_lundef", "base", False), ("tests", "user", "disabled"))
    ]
    Path("mbuild/meson-info/intro-buildoptions.json").write_text(json.dumps(options))

    failures = lists("googlebenchmark").failures

    assert list(failures) == ["-DSHOP_BUILD_BENCH=ON", "-Dbenchmarks=true", "-Dtests=enabled"]
    assert failures["-DSHOP_BUILD_BENCH=ON"].startswith("is off in build/CMakeCache.txt")


def found_in(project: Path) -> dict[str, list[str]]:
    """Return what the frameworks find in a checkout, by their names."""
    values = {framework.name: list(framework.find(project)) for framework in FRAMEWORKS}
    return {name: found for name, found in values.items() if found}


def test_frameworks_are_known_by_what_sources_of_benchmarks_include(tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text("project(shop)\n")
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "sorting.cpp").write_text("#include <benchmark/benchmark.h>\n")
    assert found_in(tmp_path) == {"googlebenchmark": [""]}


def test_what_a_project_brings_of_others_says_nothing_of_its_frameworks(tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text("project(shop)\n")
    (tmp_path / "third_party" / "test").mkdir(parents=True)
    (tmp_path / "third_party" / "test" / "sorting.cpp").write_text("#include <benchmark/benchmark.h>\n")
    assert found_in(tmp_path) == {}
