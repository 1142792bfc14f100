"""Hold what perfdiff says of other tools' results against what these tools say, on pairs of files that they write here.

    scripts/bench imports [--nulls 4] [--only hyperfine] [--keep FOLDER]
    scripts/bench imports --commands 5        # two commands by perfdiff and by hyperfine, null and slower

Each file holds three benchmarks; in planted pairs one of them does so many times the work in head. A tool that is not installed is left
out: Google Benchmark with its `compare.py`, hyperfine and Go come from Debian, pytest-benchmark and asv from PyPI, in `--python`'s
environment.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from studies.support import figures

FACTORS = (1.1, 1.2, 1.3, 1.5)
PLANTED = "planted"  # stands in the name of the benchmark that has more work
COMPARE = Path("/usr/share/benchmark/compare.py")
SESSIONS = 5
CHANCE = 0.05  # below which the tools that test take a difference for one

GOOGLE = """
#include <benchmark/benchmark.h>
static void work(benchmark::State& state, long n) {
  for (auto _ : state) for (long i = 0, s = 0; i < n; i++) benchmark::DoNotOptimize(s += i);
}
static void BM_first(benchmark::State& state) { work(state, 20000); }
static void BM_planted(benchmark::State& state) { work(state, (long)(state.range(0) * FACTOR)); }
BENCHMARK(BM_first);
BENCHMARK(BM_planted)->Arg(10000)->Arg(50000);
BENCHMARK_MAIN();
"""
PYTEST = """
import os
import pytest

FACTOR = float(os.environ["FACTOR"])

def work(n):
    for i in range(int(n)):
        i * i

def test_first(benchmark):
    benchmark(work, 2000)

@pytest.mark.parametrize("n", [1000, 5000])
def test_planted(benchmark, n):
    benchmark(work, n * FACTOR)
"""
ASV = """
import os

FACTOR = float(os.environ["FACTOR"])

def work(n):
    for i in range(int(n)):
        i * i

def time_first():
    work(2000)

def time_planted(n):
    work(n * FACTOR)

time_planted.params = [1000, 5000]
"""
GO = """
package a

import (
	"fmt"
	"os"
	"strconv"
	"testing"
)

var sink int

func work(b *testing.B, n int) {
	for i := 0; i < b.N; i++ {
		for j := 0; j < n; j++ {
			sink += j * j
		}
	}
}

func BenchmarkFirst(b *testing.B) { work(b, 20000) }

func Benchmarkplanted(b *testing.B) {
	factor, _ := strconv.ParseFloat(os.Getenv("FACTOR"), 64)
	for _, n := range []int{10000, 50000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) { work(b, int(float64(n)*factor)) })
	}
}
"""
SPIN = """
#include <stdlib.h>
int main(int argc, char **argv) {
  volatile unsigned long sum = 0;
  unsigned long n = (unsigned long)(atof(argv[1]) * atof(argv[2]) * 1e6);
  for (unsigned long i = 0; i < n; i++) sum += i * i;
  return argc == 0;
}
"""


Pair = Callable[[Path, float], tuple[Path, Path, set[str]]]


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool: how it measures base and head, whose planted benchmark does so many times the work, and what it then says is slower.

    `pair` returns both files, and the names of benchmarks that the tool's own comparison calls slower.
    """

    name: str
    own: str
    pair: Pair


def run(*words: object, cwd: Path, factor: float = 1.0, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run a command with the factor in its environment."""
    environment = {**os.environ, "FACTOR": f"{factor}"}
    return subprocess.run(list(map(str, words)), cwd=cwd, env=environment, check=check, capture_output=True, text=True)


def google(folder: Path, factor: float) -> tuple[Path, Path, set[str]]:
    files = []
    for side, own in (("base", 1.0), ("head", factor)):
        program = folder.parent / f"google-{own}"
        if not program.exists():
            source = program.with_suffix(".cc")
            source.write_text(GOOGLE)
            run("g++", "-O1", f"-DFACTOR={own}", "-o", program, source, "-lbenchmark", "-lpthread", cwd=folder)
        files.append(folder / f"{side}.json")
        options = ("--benchmark_repetitions=10", "--benchmark_min_time=0.05", "--benchmark_out_format=json")
        run(program, *options, f"--benchmark_out={files[-1]}", cwd=folder)
    run(sys.executable, COMPARE, "-d", folder / "own.json", "benchmarks", *files, cwd=folder)
    slower = set()
    for entry in json.loads((folder / "own.json").read_text()):
        p_value = (entry.get("utest") or {}).get("cpu_pvalue")
        if p_value is not None and p_value < CHANCE and sum(each["cpu"] for each in entry["measurements"]) > 0:
            slower.add(entry["name"])
    return files[0], files[1], slower


def in_turn(pair: Pair) -> Pair:
    """Return what makes folders of five files a side, in turn, and what the tool calls slower in the last ones."""

    def pairs(folder: Path, factor: float) -> tuple[Path, Path, set[str]]:
        sides = (folder / "base", folder / "head")
        for path in sides:
            path.mkdir()
        for session in range(SESSIONS):
            base, head, slower = pair(folder, factor)
            for path, file in zip(sides, (base, head), strict=True):
                file.rename(path / f"{session}{file.suffix}")
        return *sides, slower

    return pairs


def pytest_benchmark(python: Path) -> Pair:
    def pair(folder: Path, factor: float) -> tuple[Path, Path, set[str]]:
        (folder / "test_work.py").write_text(PYTEST)
        options = ("-m", "pytest", "-q", "--benchmark-max-time=0.3", "--benchmark-save-data", "--benchmark-storage=stored")
        run(python, *options, "--benchmark-save=base", "--benchmark-json=base.json", "test_work.py", cwd=folder)
        compared = ("--benchmark-compare", "--benchmark-compare-fail=mean:5%", "--benchmark-json=head.json")
        said = run(python, *options, *compared, "test_work.py", cwd=folder, factor=factor, check=False)
        slower = set(re.findall(r"^\s*(test_\S+) \(\d+_base\) - Field", said.stdout + said.stderr, re.MULTILINE))
        return folder / "base.json", folder / "head.json", slower

    return pair


def asv(python: Path) -> Pair:
    def pair(folder: Path, factor: float) -> tuple[Path, Path, set[str]]:
        (folder / "benchmarks").mkdir()
        (folder / "benchmarks" / "__init__.py").touch()
        (folder / "benchmarks" / "work.py").write_text(ASV)
        config = {"version": 1, "project": "p", "repo": ".", "branches": ["HEAD"], "environment_type": "existing", "results_dir": "results"}
        (folder / "asv.conf.json").write_text(json.dumps(config))
        git = ("git", "-c", "user.name=a", "-c", "user.email=a@b")
        run("git", "init", "-q", cwd=folder)
        run("git", "add", "-A", cwd=folder)
        program, commits = python.with_name("asv"), []
        run(program, "machine", "--yes", "--machine", "here", cwd=folder)
        for own in (1.0, factor):
            run(*git, "commit", "-q", "--allow-empty", "-m", f"{own}", cwd=folder)
            commits.append(run("git", "rev-parse", "HEAD", cwd=folder).stdout.strip())
            options = (
                "--set-commit-hash",
                commits[-1],
                "--record-samples",
                "--machine",
                "here",
                "-a",
                "rounds=4",
                "-a",
                "sample_time=0.005",
            )
            run(program, "run", "-E", f"existing:{python}", *options, cwd=folder, factor=own)
        said = run(program, "compare", "--machine", "here", *commits, cwd=folder, check=False).stdout
        slower = {line.split("|")[5].strip() for line in said.splitlines() if line.startswith("| +")}
        files = [next((folder / "results" / "here").glob(f"{commit[:8]}-*.json")) for commit in commits]
        return files[0], files[1], slower

    return pair


def spinning(folder: Path) -> Path:
    program = folder / "spin"
    if not program.exists():
        program.with_suffix(".c").write_text(SPIN)
        run("gcc", "-O1", "-o", program, program.with_suffix(".c"), cwd=folder)
    return program


def hyperfine(folder: Path, factor: float) -> tuple[Path, Path, set[str]]:
    program, files = spinning(folder.parent), [folder / "base.json", folder / "head.json"]
    for file, own in zip(files, (1.0, factor), strict=True):
        names = [word for name in ("first 4", f"{PLANTED} 4", f"{PLANTED} 8") for word in ("-n", name)]
        commands = (f"{program} 4 1", f"{program} 4 {own}", f"{program} 8 {own}")
        run("hyperfine", "-N", "-w", "1", "-r", "20", "--export-json", file, *names, *commands, cwd=folder)
    results = [json.loads(file.read_text())["results"] for file in files]
    slower = {before["command"] for before, after in zip(*results, strict=True) if _times_slower(before, after) > 1}
    return files[0], files[1], slower


def _times_slower(before: Mapping[str, float], after: Mapping[str, float]) -> float:
    """Return hyperfine's ratio without the uncertainty that it tells beside it."""
    ratio = after["mean"] / before["mean"]
    return ratio - ratio * float(((after["stddev"] / after["mean"]) ** 2 + (before["stddev"] / before["mean"]) ** 2) ** 0.5)


def go(folder: Path, factor: float) -> tuple[Path, Path, set[str]]:
    from scipy.stats import mannwhitneyu

    (folder / "a_test.go").write_text(GO.replace("Benchmarkplanted", f"Benchmark_{PLANTED}"))
    (folder / "go.mod").write_text("module example.com/a\n\ngo 1.19\n")
    files, values = [folder / "base.txt", folder / "head.txt"], list[dict[str, list[float]]]()
    for file, own in zip(files, (1.0, factor), strict=True):
        file.write_text(run("go", "test", "-bench", ".", "-benchtime", "40ms", "-count", "10", cwd=folder, factor=own).stdout)
        values.append({})
        for name, ns in re.findall(r"^(Benchmark\S+)\s+\d+\s+([\d.]+) ns/op", file.read_text(), re.MULTILINE):
            values[-1].setdefault(name, []).append(float(ns))
    before, after = values
    slower = {
        name
        for name, taken in before.items()
        if mannwhitneyu(taken, after[name]).pvalue < CHANCE and sorted(after[name])[4] > sorted(taken)[4]
    }
    return files[0], files[1], slower


def tools(python: Path) -> Iterator[Tool]:
    if COMPARE.exists():
        yield Tool("Google Benchmark", "`compare.py`: U test, 5 %", google)
        yield Tool("Google Benchmark, five files a side in turn", "the same of the last pair", in_turn(google))
    if subprocess.run([python, "-c", "import asv, pytest_benchmark"], check=False, capture_output=True).returncode == 0:
        yield Tool("pytest-benchmark", "`--benchmark-compare-fail=mean:5%`", pytest_benchmark(python))
        yield Tool("asv", "`asv compare`: U test, and ×1.1", asv(python))
    if shutil.which("hyperfine"):
        yield Tool("hyperfine", "ratio less its uncertainty above 1", hyperfine)
        yield Tool("hyperfine, five files a side in turn", "the same of the last pair", in_turn(hyperfine))
    if shutil.which("go"):
        yield Tool("Go", "U test at 5 %, as `benchstat` does (not to be had)", go)


def said_by_perfdiff(base: Path, head: Path) -> tuple[str, dict[str, str]]:
    """Return perfdiff's verdict, and that on each benchmark."""
    program = Path(sys.executable).with_name("perfdiff")
    said = run(program, "compare", "-q", "--format", "json", base, head, cwd=base.parent, check=False)
    report = json.loads(said.stdout)
    return report["verdict"], {function["name"]: function["verdict"] for function in report["functions"]}


def imports(place: Path, python: Path, nulls: int, only: str | None) -> None:
    columns = ("tool", "its own comparison", "null pairs", "false alarms: own", "perfdiff", "inconclusive")
    found_columns = tuple(f"×{factor}: own, perfdiff" for factor in FACTORS)
    with figures.printed("Others' results", *columns, *found_columns) as table:
        for tool in tools(python):
            if only and tool.name != only:
                continue
            tally: Counter[str] = Counter()
            cells = []
            for factor in (*[1.0] * nulls, *FACTORS):
                folder = place / f"{tool.name.replace(' ', '-')}-{factor}-{sum(tally.values())}"
                folder.mkdir()
                base, head, slower = tool.pair(folder, factor)
                verdict, functions = said_by_perfdiff(base, head)
                slow = {name for name, own in functions.items() if own == "regression"}
                print(f"{tool.name} ×{factor}: own {sorted(slower)}, perfdiff {verdict} {functions}", file=sys.stderr, flush=True)
                if factor == 1.0:
                    tally["own"] += bool(slower)
                    tally["perfdiff"] += bool(slow)
                    tally["inconclusive"] += verdict == "inconclusive"
                    tally["pairs"] += 1
                else:
                    own, ours = (any(PLANTED in name for name in names) for names in (slower, slow))
                    others = any(PLANTED not in name for name in slow)
                    open_ = any(PLANTED in name and own_verdict == "inconclusive" for name, own_verdict in functions.items())
                    told = "yes" if ours else "open" if open_ else "no"
                    cells.append(f"{'yes' if own else 'no'}, {told}{' (and another)' if others else ''}")
            table.add(tool.name, tool.own, tally["pairs"], tally["own"], tally["perfdiff"], tally["inconclusive"], *cells)


def commands(place: Path, pairs: int) -> None:
    """Compare two commands by perfdiff and by hyperfine, null and slower."""
    program = spinning(place)
    with figures.printed("Two commands", "work", "perfdiff", "pairs", "s", "hyperfine", "runs a side", "s ") as table:
        for factor in (*[1.0] * pairs, *[1.05 + 0.05 * step for step in range(1, pairs + 1)]):
            words = [[program, "10", "1"], [program, "10", f"{factor:.2f}"]]
            started = time.monotonic()
            ours = (Path(sys.executable).with_name("perfdiff"), "-q", "--outputs", "differ", "--format", "json")
            report = json.loads(run(*ours, "--", *words[0], "---", *words[1], cwd=place, check=False).stdout)
            took = [time.monotonic() - started]
            (end,) = report["end_to_end"]
            started = time.monotonic()
            run("hyperfine", "-N", "-w", "1", "--export-json", "both.json", *(shlex.join(map(str, each)) for each in words), cwd=place)
            took.append(time.monotonic() - started)
            before, after = json.loads((place / "both.json").read_text())["results"]
            ratio = after["mean"] / before["mean"]
            theirs = f"×{ratio:.2f} ± {ratio - _times_slower(before, after):.2f}"
            interval = f"×{end['ratio']:.2f} [{end['ci'][0]:.2f}, {end['ci'][1]:.2f}]"
            said = (f"{report['verdict']}, {interval}", end["runs"]["base"], f"{took[0]:.1f}")
            table.add(f"×{factor:.2f}", *said, theirs, len(before["times"]), f"{took[1]:.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nulls", type=int, default=4, help="null pairs of each tool")
    parser.add_argument("--only", help="only this tool")
    parser.add_argument("--keep", type=Path, help="leave the files here")
    parser.add_argument("--python", type=Path, default=Path(sys.executable), help="an interpreter with pytest-benchmark and asv")
    parser.add_argument("--commands", type=int, default=0, metavar="PAIRS", help="compare commands instead, so many null and slower pairs")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        place = (options.keep or Path(scratch)).resolve()
        place.mkdir(parents=True, exist_ok=True)
        if options.commands:
            commands(place, options.commands)
        else:
            imports(place, options.python, options.nulls, options.only)
