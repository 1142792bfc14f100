"""`[budget]` and `--production` in a comparison: what it means for who uses the program, and exit codes by that."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import fleets
import programs
from experiments import Made, Noise, World
from perfdiff import cli, configuration
from perfdiff.config import CostBudget
from perfdiff.errors import ConfigError
from perfdiff.records.schema import Change
from test_schemas import VALIDATORS


@pytest.fixture
def steady(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a saved comparison without a difference, of calls that take 10·n ns for n of 100 to 800; it is the current folder's, too."""
    monkeypatch.chdir(tmp_path)
    made = Made("parse", lambda side, inputs: 10 * inputs["n"], Change.CHANGED, calls=lambda side, n: {"": 50})
    return fleets.stored(World((made,), sizes=(100, 200, 400, 800), runs=8, noise=Noise(call=0.01, run=0.01)), tmp_path / "steady")


def compared(samples: Path, *words: object) -> int:
    with pytest.raises(SystemExit) as left:
        cli.main(["compare", str(samples), str(samples), *map(str, words)])
    return int(left.value.code or 0)


def budgeted(*lines: str) -> None:
    Path("perfdiff.toml").write_text("\n".join(["[budget]", *lines, ""]), encoding="utf-8")


def reported() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(Path("report.json").read_text(encoding="utf-8"))
    VALIDATORS["report-1"].validate(document)
    return document


@pytest.mark.parametrize(
    ("line", "standing", "codes"),
    [
        ('"parse.time" = "p99 < 8.5 µs"', "kept", (0, 0)),
        ('"parse.time" = "p99 < 7 µs"', "exceeded", (1, 1)),
        ('parse = "p10 < 1.5us"', "kept", (0, 0)),
        ('parse = "mean < 80 µs at n=4000"', "kept", (0, 0)),
        ('parse = "mean < 20 µs at n=4000"', "exceeded", (1, 1)),
        ('run = "mean < 1 s"', "kept", (0, 0)),
        ('"run.time" = "median < 1 ns"', "exceeded", (1, 1)),
        ('sort = "mean < 1 ms"', "not known", (0, 4)),
        ('parse = "mean < 1 MB"', "not known", (0, 4)),
        ('parse = "mean < 1 ms at m=3"', "not known", (0, 4)),
        ('parse = "mean < 1 ms at production inputs"', "not known", (0, 4)),
    ],
)
def test_head_is_held_against_its_budget(steady: Path, line: str, standing: str, codes: tuple[int, int]) -> None:
    budgeted(line)
    assert compared(steady, "-o", "report.json", "-q") == codes[0]
    (budget,) = reported()["budgets"]
    assert budget["standing"] == standing, budget
    assert (budget["cost"] is None) == (standing == "not known") == (budget["reason"] is not None)
    assert compared(steady, "--strict", "-q", "-o", "report.json") == codes[1]


def test_a_limit_within_the_interval_leaves_a_budget_open(steady: Path) -> None:
    budgeted('parse = "mean < 1 s"')
    assert compared(steady, "-o", "report.json", "-q") == 0
    budgeted(f'parse = "mean < {reported()["budgets"][0]["cost"]["value"]:.0f} ns"')
    assert compared(steady, "-o", "report.json", "-q") == 0
    assert reported()["budgets"][0]["standing"] == "open"
    assert compared(steady, "-o", "report.json", "-q", "--strict") == 4


def test_an_exceeded_budget_is_told_in_all_formats(steady: Path, capsys: pytest.CaptureFixture[str]) -> None:
    budgeted('parse = "p99 < 7 µs"', '"parse.own" = "mean < 1 s"')
    outputs = [word for name in ("report.html", "report.md", "report.xml", "report.sarif") for word in ("-o", name)]
    assert compared(steady, *outputs) == 1
    assert "Over budget: parse: p99 < 7 µs; it is 8." in capsys.readouterr().err
    assert compared(steady, "-q") == 1
    told = capsys.readouterr().out
    assert "Over budget: parse: p99 < 7 µs; it is 8." in told
    assert "1 budget of 2 kept." in told
    for name in ("report.html", "report.md"):
        assert "Over budget: parse: p99" in Path(name).read_text(encoding="utf-8")
    suite = ET.parse("report.xml").getroot()[0]
    assert (suite.get("failures"), suite.get("tests")) == ("1", str(len(suite.findall("testcase"))))
    assert [test.get("name") for test in suite.findall("testcase") if test.find("failure") is not None] == ["budget of parse"]


def test_a_budget_at_the_inputs_in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs in use call `parse`, 11·n + 0.004·n² ns in head, with n of 250 to 750."""
    monkeypatch.chdir(tmp_path)
    served = fleets.served(tmp_path / "served")
    for host in range(6):
        fleets.write(tmp_path / "parts", fleets.Recorded("v1", host=f"h{host}", session=f"s{host}"))
    n = np.linspace(250, 750, 501)
    head = 11 * n + 0.004 * n * n
    budgeted(*(f'"{name}" = "{statistic} < 1 s at production inputs"' for name, statistic in (("parse", "mean"), ("parse.time", "p95"))))
    assert compared(served, "--production", "parts", "-o", "report.json", "-q") == 1  # parse is slower anyway
    document = reported()
    for budget, value in zip(document["budgets"], (head.mean(), np.quantile(head, 0.95)), strict=True):
        assert budget["standing"] == "kept"
        assert budget["cost"]["value"] == pytest.approx(value, rel=0.1)
        assert budget["cost"]["low"] <= value * 1.05
        assert budget["cost"]["high"] >= value * 0.95
    VALIDATORS["production-1"].validate(document["production"])
    assert document["production"]["functions"][0]["function"] == "parse"


def test_recordings_that_tell_nothing_leave_the_comparison_as_it_is(steady: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fleets.write(Path("others"), fleets.Recorded("v1"))
    Path("empty").mkdir()
    assert compared(steady, "--production", "empty") == 0
    assert "What head costs in use is not known: 'empty' holds no" in " ".join(capsys.readouterr().out.split())
    assert compared(steady, "--production", "nowhere") == 2
    assert "'nowhere' is no folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "budget"),
    [
        ('"render.time" = "p99.5 < 40 ms"', CostBudget("render.time", "p99.5 < 40 ms", 0.995, 40e6, "ns")),
        ('f = "median<2kB"', CostBudget("f", "median<2kB", 0.5, 2000.0, "bytes")),
        (
            'f = "mean < 3 at  n=1e6 mode=FAST"',
            CostBudget("f", "mean < 3 at n=1e6 mode=FAST", None, 3.0, "count", {"n": "1e6", "mode": "FAST"}),
        ),
        ('f = "p50 < 3s at production inputs"', CostBudget("f", "p50 < 3s at production inputs", 0.5, 3e9, "ns", in_use=True)),
    ],
)
def test_budgets_are_read(tmp_path: Path, line: str, budget: CostBudget) -> None:
    (tmp_path / "perfdiff.toml").write_text(f"[budget]\n{line}\n", encoding="utf-8")
    assert configuration.load(tmp_path, environment={}, measuring=False).budgets == (budget,)


@pytest.mark.parametrize(
    "line", ['f = "p99 > 3 ms"', "f = 3", 'f = "fast"', 'f.time = "mean < 3 ms"', 'f = "p100 < 1 s"', 'f = "mean < 3 ms at"']
)
def test_what_is_no_budget_is_refused_at_its_line(tmp_path: Path, line: str) -> None:
    (tmp_path / "perfdiff.toml").write_text(f"[budget]\n{line}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"perfdiff.toml, line 2: .*must be a limit, such as"):
        configuration.load(tmp_path, environment={}, measuring=False)


WORK = """#include <stdio.h>
#include <stdlib.h>
static volatile long step = 7;
__attribute__((noinline)) long steady(int n) { long s = 0; for (int i = 0; i < n; i++) s += i * step % 11; return s; }
__attribute__((noinline)) long other(int n) { long s = 0; for (int i = 0; i < n; i++) s += i * step % OTHER; return s; }
int main(int argc, char **argv) {
    long sum = 0;
    for (int i = 0; i < 300; i++) sum += steady(atoi(argv[argc - 1])) + other(1000);
    return sum == 1;
}
"""


def test_a_function_with_a_budget_is_timed_though_neither_it_nor_what_it_calls_changed(tmp_path: Path) -> None:
    """Nothing gets slower, so that whole runs and counts would answer alone."""
    project = tmp_path / "project"
    configured = (
        '[build]\ncommand = "cc -O2 -g -o work work.c"\n'
        '[[workload]]\nname = "work"\ncommand = "./work {n}"\nparameters = { n = [2000, 20000] }\n'
        '[budget]\n"steady.time" = "p99 < 1 ns"\n"run" = "median < 60 s"\n'
    )
    history = [{"work.c": WORK.replace("OTHER", divisor), "perfdiff.toml": configured} for divisor in ("13", "17")]
    programs.committed(project, history)
    words = [
        "HEAD~1",
        "HEAD",
        "--repo",
        project,
        "--cache",
        tmp_path / "cache",
        "-o",
        tmp_path / "report.json",
        "--ticket",
        tmp_path / "ticket",
        "-q",
    ]
    with pytest.raises(SystemExit) as left:
        cli.main([*map(str, words)])
    document = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert (left.value.code, document["verdict"]) in ((1, "unchanged"), (1, "inconclusive"))
    assert [budget["standing"] for budget in document["budgets"]] == ["exceeded", "kept"]
    assert document["budgets"][0]["cost"]["low"] > 2000
    assert "Over budget: steady.time" in (tmp_path / "ticket" / "ticket.md").read_text(encoding="utf-8")
