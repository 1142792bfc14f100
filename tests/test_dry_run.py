"""`--dry-run`: what a comparison would do is said as far as it is known, and nothing is done."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Collection
from pathlib import Path

import pytest

import runtimes
from perfdiff import cli, configuration
from perfdiff.build.builder import build
from perfdiff.build.cache import BuildCache
from perfdiff.build.variants import BuildRequest
from perfdiff.languages.packs import Packs
from perfdiff.processes import running
from perfdiff.records.schema import Phase, Side
from perfdiff.request import Request
from perfdiff.revisions.pins import resolve
from perfdiff.revisions.repository import find_repository
from programs import git
from test_log import SCAN, SCAN_TOML

Run = Callable[..., str]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in a repository of two revisions, of which the second does more."""
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "perfdiff.toml").write_text(f"{SCAN_TOML.replace('runs = 4', 'runs = 8')}[counters]\nsoftware = false\n")
    for rounds in (1, 2):
        (folder / "scan.c").write_text(SCAN.replace("ROUNDS", str(rounds)))
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "-m", f"rounds {rounds}")
        git(folder, "tag", f"v{rounds}")
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    return folder


@pytest.fixture
def say(place: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*arguments: str, codes: Collection[int] = (0,)) -> str:
        with pytest.raises(SystemExit) as left:
            cli.main([*arguments, "-q", "--cache", str(place.parent / "cache")])
        assert (left.value.code or 0) in codes
        return re.sub(r"\s+", " ", capsys.readouterr().out)

    return run


def test_before_anything_was_built_the_runs_are_known_and_the_rest_is_said_to_be_unknown(place: Path, say: Run) -> None:
    said = say("v1", "v2", "--dry-run")
    assert "Would compare v1 (" in said
    assert "builds 6, none is kept from before" in said
    assert "probes known once both sides are built" in said
    # 2 points and 2 sides: in the survey one run that counts and one or two that time, 10 to 320 pairs of whole runs, none to
    # 8 blocks with probes
    assert "of these 40 to 1,280 plain, 8 to 12 survey, 0 to 32 timed" in said
    assert "runs 48 to 1,324 at 2 points" in said
    assert "runs: known once a side is built: a dry run then runs each point once; " in said
    assert "; builds: unknown, as none is kept" in said
    assert "limit 120 s in all: what does not fit is left out" in say("v1", "v2", "--dry-run", "--time", "2m")
    assert not list((place.parent / "cache" / "trees").iterdir())


def test_where_counts_may_answer_no_survey_need_be_made(place: Path, say: Run) -> None:
    settings = (place / "perfdiff.toml").read_text()
    (place / "perfdiff.toml").write_text(settings.replace("software = false", "software = true"))
    said = say("v1", "v2", "--dry-run")
    assert "builds 10, none is kept from before" in said
    assert "of these 40 to 1,280 plain, 0 to 12 survey, 0 to 32 timed" in said
    assert "counting up to 60 s of runs without a clock" in said
    assert "8 to 12 survey" in say("v1", "v2", "--dry-run", "--thorough")


def test_a_fast_answer_needs_plain_builds_and_whole_runs_alone(say: Run) -> None:
    said = say("v1", "v2", "--dry-run", "--fast")
    assert "builds 2, none is kept from before" in said
    assert "of these 40 to 1,280 plain time" in said


def test_nothing_is_started(say: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[object] = []
    monkeypatch.setattr("perfdiff.processes.running", lambda *arguments, **_: started.append(arguments) or running(*arguments))
    say("v1", "v2", "--dry-run")
    assert started == []


def test_wrong_revisions_are_refused_as_without_it(say: Run) -> None:
    say("v1", "v7", "--dry-run", codes={2})


@pytest.mark.integration
def test_after_a_comparison_probes_builds_and_times_are_known(place: Path, say: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERFDIFF_MEASURE_BUDGET_S", "1")
    runtimes.lent_to(place.parent / "cache")
    say("v1", "v2", "--runs", "5", codes={0, 1})  # beside other work the times may be too unsure for a verdict
    assert "measured already: nothing would be built or run" in say("v1", "v2", "--runs", "5", "--dry-run")
    beside, index = [], Packs.index
    monkeypatch.setattr(Packs, "index", lambda self, built, **asked: beside.append(len(asked["others"])) or index(self, built, **asked))
    said = say("v1", "v2", "--dry-run")
    assert beside == [2, 2]  # packages that differ belong to the program, as where it is compared
    assert "builds 4; kept from before: plain base and head" in said
    assert "probes 2 functions (" in said
    assert "1 changed" in said
    assert ": scan;" in said
    times = re.search(r"runs: about ([\d.]+) (m?s) to ([\d.]+) (m?s), by the longest runs", said)
    assert times
    low, high = (float(number) * {"ms": 1e-3, "s": 1.0}[unit] for number, unit in (times.group(1, 2), times.group(3, 4)))
    assert 0 < low < high < 120
    assert "if each takes as long as the plain one" in said


def seconds(said: str, about: str = "about") -> tuple[float, float]:
    """Return the time of runs that was said, from and to."""
    times = re.search(rf"runs: {about} ([\d.]+) (m?s) to ([\d,.]+) (m?s), by ", said)
    assert times, said
    low, high = (float(number.replace(",", "")) * {"ms": 1e-3, "s": 1.0}[unit] for number, unit in (times.group(1, 2), times.group(3, 4)))
    return low, high


SLEEPING = """
[build]
command = "cc -O1 -g -o scan scan.c"
[[workload]]
name = "sleep"
command = "sleep {s}; ./scan 10"
parameters = { s = [0.2, 0.4] }
[counters]
software = false
"""


@pytest.mark.integration
def test_where_builds_are_kept_each_point_is_run_once_for_an_estimate(place: Path, say: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    runtimes.lent_to(place.parent / "cache")
    config = configuration.load(place, environment={})
    with BuildCache(place.parent / "cache") as builds:
        request = Request(place, ("v1", "v2"), config, place.parent / "cache", dict(os.environ))
        pins = resolve(find_repository(place), request.revisions, snapshots=request.cache / "snapshots")
        for side, pin in ((Side.BASE, pins.base), (Side.HEAD, pins.head)):
            build(BuildRequest(pin, side, Phase.PLAIN, config.build, request.environment, None, request.packs.workplace), builds)
    (place / "perfdiff.toml").write_text(SLEEPING)
    said = say("v1", "v2", "--dry-run")
    low, high = seconds(said)
    assert "by a run of each point;" in said
    assert 10 * 2 * (0.2 + 0.4) <= low <= 3 * 10 * 2 * (0.2 + 0.4)
    assert low < high < 400

    monkeypatch.setattr("perfdiff.outlook.TRIED_S", 0.5)
    said = say("v1", "v2", "--dry-run")
    assert "by a run of 1 of 2 points, as more would take too long now" in said
    assert seconds(said, "at least")[0] >= 10 * 2 * 2 * 0.2

    (place / "perfdiff.toml").write_text(SLEEPING.replace("; ./scan", "; ./scam"))
    assert re.search(r"runs: none, as one fails: 'sleep 0.2; ./scam 10' exited 127 \(base, sleep s=0.2\)", say("v1", "v2", "--dry-run"))
