"""The peak memory of whole runs: what is called more, what is not, who asks for it, and what that makes of the exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from perfdiff import pipeline
from perfdiff.analysis.findings import Rung, Verdict
from perfdiff.analysis.peaks import MemoryFinding, MemoryLine, MemoryStanding
from perfdiff.analysis.verdicts.memory import memory_finding
from perfdiff.cli import consequences
from perfdiff.cli.exits import ExitCode
from perfdiff.collect.execution.executor import Command, ProcessExecutor
from perfdiff.config import CompareConfig
from perfdiff.progress import Silent
from perfdiff.records.schema import Phase, Point, Run, Side
from perfdiff.report import peak_memory
from perfdiff.report.document import headline
from programs import first_two

POINTS = [Point(place, "build", {"n": n}, f"./build {n}") for place, n in enumerate((1000, 2000, 4000))]
ASKED = CompareConfig(memory=0.1)


def runs(base: Sequence[float], head: Sequence[float], noise: float = 0.002, pairs: int = 10) -> list[Run]:
    """Return pairs of runs at each point that hold so many bytes, give or take a share of them."""
    rng = np.random.default_rng(3)
    return [
        Run(0, Phase.PLAIN, point.id, side, block, 1e7, 1e7, float(peak * np.exp(rng.normal(0, noise))), None, None, "")
        for point, *peaks in zip(POINTS, base, head, strict=True)
        for block in range(pairs)
        for side, peak in zip(Side, peaks, strict=True)
    ]


def judged(measured: Sequence[Run], config: CompareConfig = ASKED) -> MemoryFinding:
    finding = memory_finding(POINTS, measured, (), None, config)
    assert finding is not None
    return finding


@pytest.mark.parametrize(
    ("measured", "standing"),
    [
        (runs((40e6, 41e6, 43e6), (40e6, 60e6, 90e6)), MemoryStanding.MORE),
        (runs((40e6, 41e6, 43e6), (40e6, 41e6, 43e6)), MemoryStanding.NOT_MORE),
        (runs((40e6, 41e6, 43e6), (42e6, 43e6, 45e6)), MemoryStanding.NOT_MORE),
        (runs((40e6, 41e6, 43e6), (20e6, 20e6, 20e6)), MemoryStanding.LESS),
        (runs((40e6, 41e6, 43e6), (44e6, 45e6, 47e6), noise=0.3), MemoryStanding.OPEN),
        (runs((1e6, 1e6, 1e6), (1.8e6, 1.8e6, 1.8e6)), MemoryStanding.NOT_MORE),
    ],
    ids=["more at some", "the same", "little more", "less", "noise", "less than a process's start may take"],
)
def test_more_memory_is_what_is_beyond_doubt_and_of_interest(measured: list[Run], standing: MemoryStanding) -> None:
    assert judged(measured).standing is standing


def test_equal_memory_is_hardly_ever_more() -> None:
    """2,000 comparisons of three points whose runs vary by a tenth each."""
    rng = np.random.default_rng(5)
    more = 0
    for _ in range(2000):
        peaks = 40e6 * np.exp(rng.normal(0, 0.1, (len(POINTS), 10, 2)))
        measured = [
            Run(0, Phase.PLAIN, point.id, side, block, 1e7, 1e7, float(peaks[point.id, block, place]), None, None, "")
            for point in POINTS
            for block in range(10)
            for place, side in enumerate(Side)
        ]
        more += judged(measured, CompareConfig(memory=0.01)).standing is MemoryStanding.MORE
    assert more < 0.02 * 2000


def test_growth_over_a_parameter_is_told_by_what_each_unit_adds() -> None:
    says = peak_memory.answer(judged(runs((41.2e6, 42.4e6, 44.8e6), (43.1e6, 46.2e6, 52.4e6), noise=1e-4)))
    assert says is not None
    assert says.startswith("Peak memory ×1.17 [1.17, 1.17] at build n=4000, 44.8 MB → 52.4 MB, 1.2 kB → 3.1 kB for each unit of n")


def test_growth_by_less_than_a_byte_a_unit_is_none() -> None:
    line = MemoryLine("sort", "n", (17e3, 0.0), (484e3, 0.0036))
    assert peak_memory.grows([line], "sort") == ""
    assert peak_memory.grows([line, replace(line, head=(484e3, 1.5))], "sort") == ", 0 B → 1.5 B for each unit of n"
    assert peak_memory.grows([replace(line, head=(484e3, 1.5))], "search") == ""


@pytest.mark.parametrize(
    "measured",
    [
        [replace(run, max_rss_bytes=float("nan")) for run in runs((40e6,) * 3, (90e6,) * 3)],
        runs((40e6,) * 3, (90e6,) * 3, pairs=3),
        [run for run in runs((40e6,) * 3, (40e6,) * 3) if run.point or run.block < 3],
    ],
    ids=["nobody knows", "few runs", "few at one point"],
)
def test_memory_that_is_not_known_is_open_where_it_is_asked_and_else_not_told(measured: list[Run]) -> None:
    asked = judged(measured)
    assert asked.standing is MemoryStanding.OPEN
    assert "build n=1000" in (peak_memory.answer(asked) or "")
    told = memory_finding(POINTS, measured, (), None, CompareConfig())
    assert told is None or peak_memory.answer(told) is None


def held(measured: Sequence[Run], of_head: float) -> list[Run]:
    """Return runs whose processes hold as much together as the largest does, of head so many times as much."""
    return [replace(run, held_bytes=run.max_rss_bytes * (of_head if run.side is Side.HEAD else 1)) for run in measured]


def test_processes_of_a_run_count_together_where_all_runs_were_looked_at() -> None:
    alike = runs((40e6,) * 3, (40e6,) * 3)
    together = judged(held(alike, 4))
    assert (together.standing, {peak.together for peak in together.peaks}) == (MemoryStanding.MORE, {True})
    assert (peak_memory.answer(together) or "").startswith("Peak memory of all processes ×4 [")
    alone = judged(held(alike, 1))
    assert (alone.standing, {peak.together for peak in alone.peaks}) == (MemoryStanding.NOT_MORE, {False})
    unseen = [replace(run, held_bytes=None) if run.block == 0 else run for run in held(alike, 4)]
    assert judged(unseen).standing is MemoryStanding.NOT_MORE


def test_memory_of_several_processes_is_seen_once_however_many_share_it(tmp_path: Path) -> None:
    """A forked process shares 60 MB with its parent, and has 40 MB of its own."""
    program = """
import os, time
shared = b"x" * 60_000_000
if os.fork():
    os.wait()
else:
    own = b"y" * 40_000_000
    time.sleep(0.5)
    os._exit(0)
"""
    command = Command(f"{sys.executable} -c '{program}'", tmp_path, dict(os.environ), 30.0, (0,), "here")
    execution = ProcessExecutor().execute(command)
    assert execution.held_bytes == pytest.approx(110e6, rel=0.1)
    assert ProcessExecutor().execute(replace(command, text="true")).held_bytes is None


PROGRAM = """
#include <stdlib.h>
#include <string.h>
static long sum;
static long *squares(long n) {
    long *all = malloc(WIDTH * n * sizeof *all);
    memset(all, 1, WIDTH * n * sizeof *all);
    return all;
}
static void add(const long *all, long n) { for (long round = 0; round < 40; round++) for (long i = 0; i < n; i++) sum += all[i] % 7; }
int main(int argc, char **argv) {
    long n = atol(argv[1]), *all = squares(n);
    add(all, n);
    free(all);
    return sum == 42 && argc == 3;
}
"""
TOML = """build.command = "cc -O2 -g main.c -o main"
compare.memory = 0.1
[[workload]]
name = "squares"
command = "./main {n}"
parameters = { n = [100000, 200000, 400000] }
"""


@pytest.mark.integration
def test_a_head_that_holds_more_is_told_with_who_asks_for_it(tmp_path: Path) -> None:
    files = {"main.c": PROGRAM.replace("WIDTH", "1"), "perfdiff.toml": TOML}
    outcome = pipeline.compare(first_two(tmp_path, (files, {"main.c": PROGRAM.replace("WIDTH", "4")})), Silent())
    memory = outcome.findings.memory
    assert memory is not None
    assert memory.standing is MemoryStanding.MORE
    assert [asking.function for asking in memory.allocating] == ["squares"]
    assert "×" in headline(outcome.findings).partition("Peak memory ")[2].partition(": `squares` asks for 9.6 MB more a run.")[0]
    (line,) = memory.lines
    assert line.head[1] - line.base[1] == pytest.approx(24, rel=0.2)
    alone = replace(outcome.findings, verdict=Verdict.UNCHANGED)
    for decides, code in ((True, ExitCode.REGRESSION), (False, ExitCode.FINE)):
        findings = replace(alone, memory=replace(memory, decides=decides))
        assert consequences.exit_code(replace(outcome, findings=findings), strict=True) == code


@pytest.mark.integration
def test_memory_of_what_does_not_differ_is_not_open(tmp_path: Path) -> None:
    files = {"main.c": PROGRAM.replace("WIDTH", "1"), "perfdiff.toml": TOML}
    outcome = pipeline.compare(first_two(tmp_path, (files, {"main.c": f"{files['main.c']}// the same\n"})), Silent())
    assert (outcome.findings.verdict, outcome.findings.rung) == (Verdict.UNCHANGED, Rung.CODE)
    assert consequences.exit_code(outcome, strict=True) == ExitCode.FINE
