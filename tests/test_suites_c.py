"""Benchmarks and tests of C and C++ as suites: what the frameworks' own programs list and run."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from perfdiff.languages.c.frameworks import FRAMEWORKS
from perfdiff.languages.c.suites import catch2
from perfdiff.languages.c.suites.attempts import Attempts
from perfdiff.languages.c.suites.cases import CaseOutcome
from perfdiff.languages.c.suites.commands import CommandTest, listing_of
from perfdiff.languages.c.suites.googlebenchmark import BenchmarkName
from perfdiff.languages.listing import LISTED_TO, LISTING_S, SuiteListing, tried

Lists = Callable[..., SuiteListing]


@pytest.fixture
def lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lists:
    """Return a function that lists the suite of a framework in the folder `built`, as perfdiff does."""
    built = tmp_path / "built"
    built.mkdir()
    monkeypatch.chdir(built)

    def listed(framework: str, value: str = "", *words: str, limit_s: float = 60.0) -> SuiteListing:
        file = tmp_path / "listing.json"
        module = f"perfdiff.languages.c.suites.{framework}:listed"
        environment = {**os.environ, LISTED_TO: str(file), LISTING_S: f"{limit_s:g}"}
        command = [sys.executable, "-P", "-m", "perfdiff.languages.listing", module, value, *words]
        subprocess.run(command, check=True, env=environment, timeout=120 + limit_s)
        return SuiteListing.read(file.read_text())

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
    assert lists("googlebenchmark", limit_s=5) == SuiteListing()
    assert not Path("it-ran").exists()


def test_programs_of_fetched_libraries_are_not_the_projects(lists: Lists) -> None:
    compiled(google_benchmark("1.8"), "build/_deps/other/bench")
    assert lists("googlebenchmark", limit_s=10) == SuiteListing()


def test_benchmarks_of_two_programs_that_share_a_name_are_told_apart(lists: Lists) -> None:
    compiled(google_benchmark("1.8"), "build/long")
    shutil.copy("build/long", "build/short")
    Path("build/link").symlink_to("long")

    listing = lists("googlebenchmark", "build", limit_s=30)

    assert {name: benchmark.command.split()[0] for name, benchmark in listing.benchmarks.items() if "sort" in name} == {
        "BM_sort": "build/long",
        "short: BM_sort": "build/short",
    }


def test_a_program_that_was_not_built_is_told(lists: Lists) -> None:
    assert lists("googlebenchmark", "build/bench --v=2").failures == {"build/bench": "no such program was built"}


def test_a_program_that_hangs_ends_with_the_listing(lists: Lists) -> None:
    compiled('int main() { const char* volatile mark = "benchmark_list_tests"; for (;;) if (!mark) break; }', "bench")

    listing = lists("googlebenchmark", "bench", limit_s=2)

    assert listing.failures == {"bench": "takes longer than 2 s"}


def test_what_hangs_ends_with_all_that_it_started() -> None:
    started = time.monotonic()
    attempt = tried(["/bin/sh", "-c", "sleep 61 & echo $!; wait"], 1.0)
    assert attempt.code is None
    assert time.monotonic() - started < 30
    child = Path(f"/proc/{int(attempt.output)}/stat")
    while child.exists() and child.read_text().split()[2] != "Z":
        assert time.monotonic() - started < 30
        time.sleep(0.01)


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


REAL_CATCH = """
#define CATCH_CONFIG_MAIN
#define CATCH_CONFIG_ENABLE_BENCHMARKING
#include <catch2/catch.hpp>
#include <unistd.h>
TEST_CASE("adds, of [sums]") { REQUIRE(1 + 1 == 2); }
TEST_CASE("ends with *") {}
TEST_CASE("fails") { REQUIRE(1 == 2); }
TEST_CASE("ends the program") { _exit(3); }
TEST_CASE("says {n}") {}
TEST_CASE("sorts", "[!benchmark]") { long sum = 0; BENCHMARK("sum") { for (long at = 0; at < 100000; ++at) sum += at % 7; return sum; }; }
"""
CATCH_3 = """<?xml version="1.0" encoding="UTF-8"?>
<Catch2TestRun name="unit" rng-seed="1" xml-format-version="3" catch2-version="3.7.1">
  <TestCase name="passes" tags="[fast]" filename="unit.cpp" line="4">
    <Section name="inner" filename="unit.cpp" line="4">
      <OverallResults successes="1" failures="0" expectedFailures="0" skipped="false" durationInSeconds="0"/>
    </Section>
    <OverallResult success="true" skips="0" durationInSeconds="0.5"/>
  </TestCase>
  <TestCase name="needs a network" filename="unit.cpp" line="9">
    <Skip filename="unit.cpp" line="9">no net</Skip>
    <OverallResult success="true" skips="1" durationInSeconds="0.25"/>
  </TestCase>
  <TestCase name="sorts" tags="[!benchmark]" filename="unit.cpp" line="5">
    <BenchmarkResults name="1000" samples="1" resamples="1" iterations="5" clockResolution="23.7" estimatedDuration="26950">
      <mean value="2000" lowerBound="2000" upperBound="2000" ci="0"/>
    </BenchmarkResults>
    <BenchmarkResults name="10" samples="1" resamples="1" iterations="10" clockResolution="23.7" estimatedDuration="26950">
      <mean value="100" lowerBound="100" upperBound="100" ci="0"/>
    </BenchmarkResults>
    <OverallResult success="true" skips="0"/>
  </TestCase>
"""


@pytest.mark.integration
@pytest.mark.skipif(not includes("catch2/catch.hpp"), reason="needs catch2, version 2")
def test_test_cases_of_catch2_are_listed_by_one_run_and_benchmarks_by_samples(lists: Lists) -> None:
    compiled(REAL_CATCH, "build/unit", "-O0")

    listing = lists("catch2")

    assert list(listing.benchmarks) == ["adds, of [sums]", "ends with *", "says {n}", "sorts"]
    assert listing.failures == {"fails": "fails", "ends the program": "exit code 3"}
    *tests, sorts = listing.benchmarks.values()
    assert sorts.batch is None
    assert "--benchmark-samples {calls}" in sorts.command
    assert ran(sorts.command, calls=2).returncode == 0
    batches = [test.batch for test in tests if test.batch is not None]
    joined = batches[0].command.replace("{cases}", batches[0].joint.join(batch.case for batch in batches))
    assert ran(joined.replace("--out /dev/null", ""), n=7).stdout.rstrip().endswith("All tests passed (1 assertion in 3 test cases)")


def test_reports_of_catch2_that_end_early_tell_what_ran() -> None:
    report = catch2.read(CATCH_3 + '<TestCase name="crashes">')

    assert dict(report.outcomes) == {
        "passes": CaseOutcome(0.5),
        "needs a network": CaseOutcome(0.25, "is skipped"),
        "sorts": CaseOutcome(0.0, sample_s=pytest.approx(1.1e-05)),
    }
    assert (report.running, report.is_complete) == ("crashes", False)
    assert catch2.read(CATCH_3 + "</Catch2TestRun>").is_complete


REAL_DOCTEST = """
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
#include <unistd.h>
TEST_SUITE("of sums") { TEST_CASE("adds, twice") { SUBCASE("one") { CHECK(1 == 1); } SUBCASE("two") { CHECK(2 == 2); } } }
TEST_CASE("fails") { CHECK(1 == 2); }
TEST_CASE("skipped" * doctest::skip()) { CHECK(1 == 2); }
TEST_CASE("ends the program") { _exit(3); }
TEST_CASE("comes after") {}
"""


@pytest.mark.integration
@pytest.mark.skipif(not includes("doctest/doctest.h"), reason="needs doctest-dev")
def test_test_cases_of_doctest_are_listed_by_one_run(lists: Lists) -> None:
    compiled(REAL_DOCTEST, "build/unit", "-O0")

    listing = lists("doctest")

    assert list(listing.benchmarks) == ["adds, twice", "comes after"]
    assert listing.failures == {"fails": "fails", "ends the program": "exit code 3"}
    batches = [test.batch for test in listing.benchmarks.values() if test.batch is not None]
    joined = batches[0].command.replace("{cases}", batches[0].joint.join(batch.case for batch in batches))
    assert "test cases: 2 | 2 passed" in ran(joined.replace("--out=/dev/null", "--no-colors=true")).stdout


REAL_GTEST = """
#include <gtest/gtest.h>
#include <cstdio>
TEST(Sum, adds) { EXPECT_EQ(1 + 1, 2); }
TEST(Sum, fails) { EXPECT_EQ(1, 2); }
TEST(Sum, DISABLED_never) { EXPECT_EQ(1, 2); }
TEST(Sum, skips) { GTEST_SKIP() << "no network"; }
class Sized : public testing::TestWithParam<int> {};
TEST_P(Sized, sums) { volatile long sum = 0; for (long at = 0; at < GetParam(); ++at) sum = sum + at; fprintf(stderr, "%d", GetParam()); }
INSTANTIATE_TEST_SUITE_P(All, Sized, testing::Values(1000, 100000000));
class Worded : public testing::TestWithParam<const char*> {};
TEST_P(Worded, is) {}
INSTANTIATE_TEST_SUITE_P(All, Worded, testing::Values("one", "two"));
TEST(Zed, crashes) { abort(); }
TEST(Zed, comes_after) {}
int main(int count, char** words) { testing::InitGoogleTest(&count, words); return RUN_ALL_TESTS(); }
"""


@pytest.mark.integration
@pytest.mark.skipif(not includes("gtest/gtest.h"), reason="needs libgtest-dev")
def test_tests_of_googletest_are_repeated_and_numbers_are_points(lists: Lists) -> None:
    compiled(REAL_GTEST, "build/unit", "-O0", "-lgtest", "-lpthread")

    listing = lists("googletest")

    names = ["Sum.adds", "Zed.comes_after", "All/Sized.sums", "All/Worded.is/0", "All/Worded.is/1"]
    assert list(listing.benchmarks) == names
    assert listing.failures["Zed.crashes"].startswith("signal 6")
    assert {name: why for name, why in listing.failures.items() if name != "Zed.crashes"} == {
        "Sum.fails": "fails",
        "Sum.skips": "is skipped",
    }
    sized = listing.benchmarks["All/Sized.sums"]
    assert sized.points[(100000000,)][0] > 10 * sized.points[(1000,)][0]
    assert ran(sized.command, calls=3, value=1000).stderr == "1000" * 3
    batches = [listing.benchmarks[name].batch for name in ("Sum.adds", "Zed.comes_after")]
    joined = batches[0].command.replace("{cases}", batches[0].joint.join(batch.case for batch in batches))
    assert ran(joined.replace(" >/dev/null", ""), calls=2).stdout.count("2 tests from 2 test suites ran.") == 2


NANOBENCH = """
#include <cstdio>
#include <cstdlib>
const char* volatile marks = "NANOBENCH_ENDLESS MARK";
int main() { const char* text = getenv("NANOBENCH_CONFIG"); fprintf(stderr, "%s", text ? text : "none"); return 0; }
"""


@pytest.mark.parametrize(
    ("mark", "settings", "is_repeatable"), [("", "none", False), ("NANOBENCH_CONFIG", "epochs=1,warmup=0,epochIterations=5", True)]
)
def test_a_program_with_nanobench_is_one_benchmark(lists: Lists, mark: str, settings: str, is_repeatable: bool) -> None:
    source = NANOBENCH.replace("MARK", mark)
    compiled(source if mark else source.replace("NANOBENCH_CONFIG", "NANOBENCH_ABSENT"), "build/sums")

    listing = lists("nanobench", limit_s=10)

    assert [(name, list(benchmark.points), benchmark.points[()][1]) for name, benchmark in listing.benchmarks.items()] == [
        ("sums", [()], is_repeatable)
    ]
    assert ran(listing.benchmarks["sums"].command, calls=5).stderr == settings


@pytest.mark.integration
@pytest.mark.skipif(not shutil.which("meson") or not shutil.which("ninja"), reason="needs meson and ninja")
def test_benchmarks_and_tests_of_meson_run_by_themselves(lists: Lists) -> None:
    Path("meson.build").write_text(
        "project('shop', 'cpp')\ntotal = executable('total', 'total.cpp')\n"
        "benchmark('sums', total, args: [files('small.txt')])\n"
        "test('sums', total, args: [files('small.txt')], env: ['KIND=a b'])\n"
        "test('fails', total, args: ['nothing'])\n"
    )
    Path("total.cpp").write_text(TOTAL)
    Path("small.txt").write_text("7\n")
    subprocess.run("meson setup build && ninja -C build", shell=True, check=True, capture_output=True)

    listing = lists("meson")

    assert {name: benchmark.command for name, benchmark in listing.benchmarks.items()} == {
        "sums": "cd build && ./total ../small.txt",
        "test sums": "cd build && KIND='a b' ./total ../small.txt",
    }
    assert listing.failures == {"fails": "exit code 3"}


MAKEFILE = """
bench: total
\t@echo sums
\t./total small.txt
\t./total large.txt
script:
\t./run
loop: total
\tfor file in *.txt; do ./total $$file; done
fresh: unbuilt
\t./unbuilt
unbuilt: total.cpp
\t$(CXX) -O2 $< -o $@
empty:
"""


@pytest.mark.integration
@pytest.mark.skipif(not shutil.which("make"), reason="needs make")
def test_a_target_of_make_is_the_commands_of_its_recipe(lists: Lists) -> None:
    compiled(TOTAL, "total")
    Path("Makefile").write_text(MAKEFILE)
    Path("run").write_text("#!/bin/sh\n./total small.txt\n")
    Path("run").chmod(0o755)
    for name, count in (("small", 1), ("large", 1000)):
        Path(f"{name}.txt").write_text("7\n" * count)

    (benchmark,) = lists("make", "bench").benchmarks.values()
    assert (benchmark.command, list(benchmark.points)) == ("./total {input}", [("small.txt",), ("large.txt",)])
    assert lists("make", "script").benchmarks["./run"].command == "./run"
    assert lists("make", "loop").benchmarks["make loop"].command == "make -s --no-print-directory loop"
    assert lists("make", "fresh").failures["make fresh"].startswith("compiles unbuilt first")
    assert lists("make", "empty").failures == {"make empty": "runs nothing"}
    assert lists("make", "nowhere").failures["make nowhere"].startswith("exit code 2")
    assert not Path("unbuilt").exists()


def test_a_target_of_make_that_is_the_program_itself_is_run(lists: Lists) -> None:
    compiled("int main() { return 0; }", "bench")
    Path("Makefile").write_text("bench:\n\t$(CC) -o bench bench.c\n")
    (benchmark,) = lists("make", "bench").benchmarks.values()
    assert benchmark.command == "./bench"


def found_in(project: Path) -> dict[str, list[str]]:
    """Return what the frameworks find in a checkout, by their names."""
    values = {framework.name: list(framework.find(project)) for framework in FRAMEWORKS}
    return {name: found for name, found in values.items() if found}


CMAKE_PROJECT = """
cmake_minimum_required(VERSION 3.14)
project(shop CXX)
enable_testing()
add_executable(total total.cpp)
add_executable(unbuilt EXCLUDE_FROM_ALL total.cpp)
foreach(size large small)
  add_test(NAME total_${size} COMMAND total ${CMAKE_SOURCE_DIR}/data/${size}.txt)
endforeach()
add_test(NAME on_purpose COMMAND total nothing)
set_tests_properties(on_purpose PROPERTIES WILL_FAIL ON ENVIRONMENT "KIND=a b")
add_test(NAME made COMMAND ${CMAKE_COMMAND} -E copy ${CMAKE_SOURCE_DIR}/data/small.txt made.txt)
set_tests_properties(made PROPERTIES FIXTURES_SETUP file)
add_test(NAME with_file COMMAND total made.txt)
set_tests_properties(with_file PROPERTIES FIXTURES_REQUIRED file)
add_test(NAME fails COMMAND total nothing)
add_test(NAME hangs COMMAND total forever)
set_tests_properties(hangs PROPERTIES TIMEOUT 1)
add_test(NAME skips COMMAND total nothing)
set_tests_properties(skips PROPERTIES SKIP_RETURN_CODE 3)
add_test(NAME off COMMAND total nothing)
set_tests_properties(off PROPERTIES DISABLED ON)
add_test(NAME absent COMMAND unbuilt)
add_test(NAME wrong COMMAND total ${CMAKE_SOURCE_DIR}/data/small.txt)
set_tests_properties(wrong PROPERTIES PASS_REGULAR_EXPRESSION "no such number" ENVIRONMENT "KIND=b")
add_test(NAME build COMMAND ${CMAKE_COMMAND} --build .)
"""
TOTAL = """
#include <fstream>
#include <iostream>
#include <string>
int main(int count, char** words) {
  std::string line(words[1]);
  while (line == "forever") {}
  std::ifstream file(line);
  if (!file) return 3;
  long sum = 0;
  while (std::getline(file, line)) sum += std::stol(line);
  std::cout << sum << std::endl;
}
"""


@pytest.fixture
def cmake_build(lists: Lists) -> None:
    """Build a project whose tests CTest runs in the current folder."""
    Path("CMakeLists.txt").write_text(CMAKE_PROJECT)
    Path("total.cpp").write_text(TOTAL)
    Path("data").mkdir()
    for name, count in (("small", 10), ("large", 100_000)):
        Path(f"data/{name}.txt").write_text("7\n" * count)
    subprocess.run("cmake -S . -B build && cmake --build build", shell=True, check=True, capture_output=True)


needs_cmake = pytest.mark.skipif(not (shutil.which("cmake") and shutil.which("ctest")), reason="needs cmake")


@pytest.mark.integration
@needs_cmake
@pytest.mark.usefixtures("cmake_build")
def test_tests_of_ctest_run_by_themselves_and_those_of_one_program_by_file(lists: Lists) -> None:
    listing = lists("ctest")

    assert list(listing.benchmarks) == ["total", "on_purpose", "with_file"]
    total, on_purpose, with_file = listing.benchmarks.values()
    assert (total.command, total.parameters) == ("build/total {input}", ("input",))
    assert list(total.points) == [("data/small.txt",), ("data/large.txt",)]
    assert on_purpose.command == "cd build && KIND='a b' ./total nothing || test $? = 3"
    assert "copy" in with_file.setup
    assert str(Path.cwd()) not in "".join((with_file.setup, with_file.command))
    shutil.rmtree("build/made.txt", ignore_errors=True)
    for benchmark in listing.benchmarks.values():
        assert ran(f"{benchmark.setup or 'true'} && {benchmark.command}", input="data/small.txt").returncode == 0


@pytest.mark.integration
@needs_cmake
@pytest.mark.usefixtures("cmake_build")
def test_tests_of_ctest_that_cannot_be_compared_are_told(lists: Lists) -> None:
    assert lists("ctest", "build").failures == {
        "fails": "exit code 3",
        "hangs": "takes longer than 1 s",
        "skips": "is skipped",
        "off": "is disabled",
        "absent": "its program was not built",
        "wrong": "its output is not that of a test that passes",
        "build": "builds something, which is for the build to do",
    }


@pytest.mark.integration
@needs_cmake
def test_a_test_of_another_framework_is_listed_by_ctest_only_where_that_is_asked_for(lists: Lists) -> None:
    Path("CMakeLists.txt").write_text(
        "project(shop CXX)\nenable_testing()\nadd_executable(unit unit.cpp)\nadd_test(NAME unit COMMAND unit)\n"
    )
    Path("unit.cpp").write_text('int main() { const char* volatile mark = "gtest_list_tests"; return !mark; }')
    subprocess.run("cmake -S . -B build && cmake --build build", shell=True, check=True, capture_output=True)

    assert list(lists("ctest").benchmarks) == ["unit"]
    assert lists("ctest", "", "guessed") == SuiteListing()


def test_short_tests_of_ctest_run_in_one_shell(lists: Lists) -> None:
    tests = [CommandTest(name, ("/bin/echo", f"{name} {{n}}"), Path.cwd()) for name in ("one", "two")]
    first, second = listing_of(tests, {}, Attempts.within_limit()).benchmarks.values()
    assert first.batch is not None
    assert second.batch is not None
    assert first.batch.command == second.batch.command
    command = first.batch.command.replace("{cases}", first.batch.joint.join((first.batch.case, second.batch.case)))
    assert ran(command, n=5).stdout == "one {n}\ntwo {n}\n"


def test_each_of_several_tests_in_one_shell_has_its_folder_and_has_to_pass(lists: Lists) -> None:
    for name in ("first", "second"):
        Path(name).mkdir()
    tests = [CommandTest(name, ("/bin/sh", "-c", f"pwd; test ! -e {name}"), Path(name).absolute()) for name in ("first", "second")]
    batches = [benchmark.batch for benchmark in listing_of(tests, {}, Attempts.within_limit()).benchmarks.values() if benchmark.batch]
    command = batches[0].command.replace("{cases}", batches[0].joint.join(batch.case for batch in batches))
    assert [Path(line).name for line in ran(command).stdout.splitlines()] == ["first", "second"]
    Path("first/first").touch()
    assert ran(command).returncode != 0


def test_frameworks_are_known_by_what_sources_of_benchmarks_include(tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text("project(shop)\nENABLE_TESTING( )\n")
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "sorting.cpp").write_text("#include <benchmark/benchmark.h>\n")
    assert found_in(tmp_path) == {"googlebenchmark": [""], "ctest": [""], "programs": [""]}


def test_what_a_project_brings_of_others_says_nothing_of_its_frameworks(tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text("project(shop)\n")
    (tmp_path / "third_party" / "test").mkdir(parents=True)
    (tmp_path / "third_party" / "test" / "sorting.cpp").write_text("#include <benchmark/benchmark.h>\n")
    assert found_in(tmp_path) == {}


@pytest.mark.parametrize(
    ("file", "text", "found"),
    [
        ("Makefile", "all:\nbench: all\ncheck: all\n", {"make": ["bench"]}),
        ("Makefile", "all:\ncheck:: all\n", {"make": ["check"]}),
        ("Makefile", "check := all\n", {}),
        ("Makefile", "enable_testing()\n", {}),
        ("meson.build", "benchmark('sums', total)\n", {"meson": [""]}),
        ("meson.build", "total = executable('test')\n", {}),
        ("CMakeLists.txt", "  include( CTest )\n", {"ctest": [""]}),
        ("CMakeLists.txt", "# enable_testing()\n", {}),
    ],
)
def test_tests_of_build_systems_are_known_by_their_files(tmp_path: Path, file: str, text: str, found: dict[str, list[str]]) -> None:
    (tmp_path / "sum.c").touch()
    (tmp_path / file).write_text(text)
    assert found_in(tmp_path) == found


def test_makefiles_below_the_projects_folder_are_not_asked(tmp_path: Path) -> None:
    (tmp_path / "sum.c").touch()
    (tmp_path / "Makefile").write_text("all:\n")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "Makefile").write_text("check:\n")
    assert found_in(tmp_path) == {}


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("#include <catch2/catch_test_macros.hpp>", "catch2"),
        ('#include "catch.hpp"', "catch2"),
        ("#include <gtest/gtest.h>", "googletest"),
        ("# include <doctest/doctest.h>", "doctest"),
        ('#include "../nanobench.h"', "nanobench"),
    ],
)
def test_frameworks_are_known_by_their_headers(tmp_path: Path, line: str, name: str) -> None:
    (tmp_path / "meson.build").touch()
    (tmp_path / "test_sums.cpp").write_text(f"{line}\n")
    assert found_in(tmp_path) == {name: [""], "programs": [""]}
