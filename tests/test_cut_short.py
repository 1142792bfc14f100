"""A comparison that ends before all is measured: what is known by then is told as no more than that, and nobody takes it for the whole."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

import runtimes
from perfdiff import pipeline
from perfdiff.analysis.analysis import analyse
from perfdiff.analysis.findings import Rung, Verdict
from perfdiff.collect.execution.executor import Command, Execution
from perfdiff.config import CompareConfig
from perfdiff.deadline import CutShortError, Deadline, Ending
from perfdiff.errors import OutOfTimeError
from perfdiff.outcome import Outcome
from perfdiff.records import store
from perfdiff.records.recorded import nothing
from perfdiff.records.schema import Phase, Side
from perfdiff.report import document
from perfdiff.report.sentences.catalogue import noted, say
from perfdiff.request import Request
from programs import git
from test_measuring import Longer, Steady, Steps, sums

pytestmark = pytest.mark.integration
__all__ = ["sums"]


@dataclass(frozen=True)
class At:
    """When a comparison ends: as it makes its `number`th run in the stage `stage`, by `ending`."""

    stage: str
    number: int
    ending: Ending = Ending.INTERRUPTED


class Ended(Steady):
    """Runs steadily, until the moment comes at which measuring is ended."""

    def __init__(self, progress: Steps, deadline: Deadline, at: At) -> None:
        super().__init__()
        self.progress, self.deadline, self.at = progress, deadline, at
        self.made = 0

    def execute(self, command: Command) -> Execution:
        if self.progress.order and self.progress.current == self.at.stage:
            self.made += 1
            if self.made == self.at.number:
                self.deadline.end(self.at.ending)
        return super().execute(command)


class EndedLonger(Ended, Longer):
    """The same where plain runs of head take so much longer that pairs of one point tell."""

    times = 1.6


def ended(asked: Request, at: At, kind: type[Ended] = Ended) -> Outcome:
    """Compare until that moment."""
    progress, deadline = Steps(), Deadline(60.0)
    return pipeline.compare(replace(asked, deadline=deadline), progress, executor=kind(progress, deadline, at))


def texts(outcome: Outcome) -> dict[str, str]:
    return {note.slug: note.text for note in map(noted, outcome.findings.notes)}


def apart(asked: Request, name: str) -> Request:
    """Return the same with a cache of its own."""
    return replace(asked, cache=runtimes.lent_to(asked.cache.with_name(name)))


@pytest.mark.parametrize("ending", [Ending.INTERRUPTED, Ending.TIME])
def test_whole_runs_that_were_made_by_then_are_told_and_nothing_of_it_is_kept(sums: Request, ending: Ending) -> None:
    asked = apart(sums, f"whole-{ending}")
    outcome = ended(asked, At("comparing whole runs", 15, ending), EndedLonger)
    assert outcome.experiment is not None
    plain = [run for run in outcome.experiment.runs if run.phase is Phase.PLAIN]
    assert len(plain) == 14
    assert outcome.experiment.ended_by == ending
    assert outcome.findings.verdict is Verdict.REGRESSION
    headline = document.headline(outcome.findings)
    assert re.match(r"So far: regression, not located: whole runs at add n=\d+ take ×1\.6 \[1\.[56]\d*, 1\.6\d*\]", headline), headline
    how = "was interrupted in the stage" if ending is Ending.INTERRUPTED else "time of 60 s was over in the stage"
    assert f"{how} 'comparing whole runs', so that this is the answer so far; work was not counted; no calls" in texts(outcome)["cut-short"]
    assert not [folder for folder in asked.cache.glob("experiments/*") if store.exists(folder)]
    assert not [*asked.cache.glob("last-*")]

    whole = pipeline.compare(asked, Steps(), executor=Longer())
    assert "cut-short" not in texts(whole)
    assert len([folder for folder in asked.cache.glob("experiments/*") if store.exists(folder)]) == 1


@pytest.mark.parametrize("stage", ["surveying", "counting all functions"])
def test_whole_runs_without_a_slow_down_answer_alone_where_what_follows_was_ended(sums: Request, stage: str) -> None:
    revisions = ("base", "longer") if stage == "surveying" else ("base", "head")
    outcome = ended(replace(apart(sums, stage.replace(" ", "-")), revisions=revisions), At(stage, 3))
    assert (outcome.findings.verdict, outcome.findings.rung) == (Verdict.UNCHANGED, Rung.RUNS)
    assert {run.phase for run in outcome.experiment.runs} == {Phase.PLAIN}
    assert document.headline(outcome.findings).startswith("So far: no regression")
    (steps,) = (each for each in outcome.findings.functions if each.info.name == "steps")
    assert (steps.info.change.is_suspect, steps.verdict) == (True, Verdict.INCONCLUSIVE)
    assert f"in the stage '{stage}'" in texts(outcome)["cut-short"]


def test_of_runs_with_probes_whole_pairs_are_kept(sums: Request) -> None:
    outcome = ended(replace(apart(sums, "timed"), revisions=("base", "longer")), At("measuring", 12))
    timed = [(run.side, run.point, run.block) for run in outcome.experiment.runs if run.phase is Phase.TIMED]
    assert 0 < len(timed) < 12
    assert sorted(place[1:] for place in timed if place[0] is Side.BASE) == sorted(place[1:] for place in timed if place[0] is Side.HEAD)
    assert outcome.experiment.counts is not None
    assert "calls" not in texts(outcome)["cut-short"]


@pytest.mark.parametrize(("ending", "error"), [(Ending.INTERRUPTED, CutShortError), (Ending.TIME, OutOfTimeError)])
def test_before_a_pair_of_runs_is_complete_nothing_is_known(sums: Request, ending: Ending, error: type[BaseException]) -> None:
    with pytest.raises(error) as caught:
        ended(apart(sums, "nothing"), At("comparing whole runs", 2, ending))
    if isinstance(caught.value, OutOfTimeError):
        assert str(caught.value).startswith("its time of 60 s was over in the stage 'comparing whole runs', before base and head had run")


def test_points_that_were_not_run_leave_good_news_open(sums: Request) -> None:
    outcome = ended(apart(sums, "points"), At("comparing whole runs", 3))
    experiment = outcome.experiment
    (unrun,) = {point.id for point in experiment.points} - {run.point for run in experiment.runs}
    labels = {point.id: point.label for point in experiment.points}
    pairs = [replace(run, id=number, block=block) for block in range(40) for number, run in enumerate(experiment.runs, 2 * block)]
    findings = analyse(replace(experiment, runs=tuple(pairs)), nothing, CompareConfig())
    assert findings.verdict is Verdict.INCONCLUSIVE
    assert f"there was no time for runs at {labels[unrun]}" in say(findings.sentence)


@pytest.mark.parametrize(("kind", "verdict"), [(Ended, Verdict.UNCHANGED), (EndedLonger, Verdict.REGRESSION)])
def test_a_proof_holds_as_far_as_the_runs_by_then_do_not_contradict_it(sums: Request, kind: type[Ended], verdict: Verdict) -> None:
    asked = replace(apart(sums, f"proof-{verdict}"), revisions=("head", "head"))
    outcome = ended(asked, At("confirming by whole runs", 19), kind)  # within the tenth pair of two points
    assert outcome.experiment.same_code is (verdict is Verdict.UNCHANGED)
    assert outcome.findings.verdict is verdict
    assert ("proof-contradicted" in texts(outcome)) is (verdict is Verdict.REGRESSION)


def test_what_comes_when_all_is_measured_ends_nothing(sums: Request, monkeypatch: pytest.MonkeyPatch) -> None:
    deadline, save = Deadline(600.0), store.save

    def saved(*arguments: object, **options: object) -> None:
        deadline.end(Ending.TIME)
        save(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(store, "save", saved)
    asked = apart(sums, "complete")
    outcome = pipeline.compare(replace(asked, deadline=deadline), Steps(), executor=Steady())
    assert "cut-short" not in texts(outcome)
    assert len([folder for folder in asked.cache.glob("experiments/*") if store.exists(folder)]) == 1


class Running:
    """A clock that the test sets, beside the real time."""

    def __init__(self) -> None:
        self.ahead_s = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.ahead_s


def test_a_build_that_does_not_fit_is_not_begun(sums: Request) -> None:
    asked, progress = replace(apart(sums, "hasty"), revisions=("base", "longer")), Steps()
    clock = Running()
    deadline = Deadline(600.0, clock)

    def stage(name: str, total: int | None) -> None:
        if name.startswith("building (survey)"):
            clock.ahead_s = 600.0 - 30.0 - 0.01
        Steps.stage(progress, name, total)

    progress.stage = stage  # type: ignore[method-assign]
    outcome = pipeline.compare(replace(asked, deadline=deadline), progress, executor=Longer())
    assert outcome.findings.verdict is Verdict.REGRESSION
    assert "surveying" not in progress.made
    assert "building (survey) and what follows would take" in texts(outcome)["calls-not-timed"]
    assert "time of 600 s did not suffice for all stages" in texts(outcome)["cut-short"]
    assert not [folder for folder in asked.cache.glob("experiments/*") if store.exists(folder)]


class Late(Longer):
    """After ten pairs of whole runs, time is nearly over."""

    def __init__(self, progress: Steps, clock: Running) -> None:
        super().__init__()
        self.progress, self.clock, self.made = progress, clock, 0

    def execute(self, command: Command) -> Execution:
        done = super().execute(command)
        self.made += self.progress.current == "comparing whole runs"
        if self.made == 20:
            self.clock.ahead_s = 600.0 - 30.0 - 0.005
        return done


def test_runs_that_do_not_fit_are_not_begun(sums: Request) -> None:
    asked, progress, clock = replace(apart(sums, "late"), revisions=("base", "longer")), Steps(), Running()
    outcome = pipeline.compare(replace(asked, deadline=Deadline(600.0, clock)), progress, executor=Late(progress, clock))
    assert "building (survey)" not in progress.made
    assert "runs of each side that choose functions and count them would take" in texts(outcome)["calls-not-timed"]
    assert outcome.findings.verdict is Verdict.REGRESSION


def test_what_may_prove_that_nothing_differs_takes_a_part_of_the_time_and_not_all(sums: Request) -> None:
    asked, progress, clock = apart(sums, "watched"), Steps(), Running()
    (asked.repository / "data").write_text("a file that no run opens\n")
    git(asked.repository, "add", "-A")
    git(asked.repository, "commit", "-q", "-m", "data")
    git(asked.repository, "tag", "-f", "data")
    advance = progress.advance

    def slowly(text: str = "") -> None:
        clock.ahead_s += 40.0 if progress.current == "looking which files runs meet" else 0.0
        advance(text)

    progress.advance = slowly  # type: ignore[method-assign]
    deadline = Deadline(600.0, clock)
    outcome = pipeline.compare(replace(asked, revisions=("longer", "data"), deadline=deadline), progress, executor=Steady())
    assert progress.made["looking which files runs meet"] == 1  # four of 40 s would be more than a quarter
    assert "comparing whole runs" in progress.made
    assert (outcome.findings.verdict, outcome.findings.rung) == (Verdict.UNCHANGED, Rung.RUNS)
    assert deadline.is_short


SPIN = """
#include <stdlib.h>
static volatile long sum;
static void spin(long n) { for (long i = 0; i < n * ROUNDS; i++) sum += i; }
int main(int argc, char **argv) { spin(atol(argv[1])); return argc - 2; }
"""
TIME_S = 20.0
START_S = 3.0  # that the interpreter, its imports and the end of a process may take on a busy machine


@pytest.fixture
def spinning(tmp_path: Path) -> Path:
    """Return a repository of a program that takes a third more time in its second revision."""
    folder = tmp_path / "spinning"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    for rounds in (30, 40):
        (folder / "spin.c").write_text(SPIN.replace("ROUNDS", str(rounds)))
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "-m", f"{rounds} rounds")
        git(folder, "tag", f"v{rounds}")
    return folder


def command(folder: Path, *options: str) -> list[str]:
    """Return a comparison of both revisions whose runs take a tenth of a second, and three."""
    workload = ["--build", "gcc -O2 -o spin spin.c", "--param", "n=1000000,3000000", "--", "./spin", "{n}"]
    return [sys.executable, "-m", "perfdiff", "v30", "v40", "--cache", str(folder.parent / "cache"), *options, *workload]


def test_a_comparison_answers_within_its_time(spinning: Path) -> None:
    started = time.monotonic()
    report = spinning.parent / "report.json"
    done = subprocess.run(command(spinning, "--time", "20s", "-o", str(report)), cwd=spinning, capture_output=True, text=True, check=False)
    took_s = time.monotonic() - started
    assert took_s <= 1.1 * TIME_S + START_S, done.stderr
    found = json.loads(report.read_text())
    assert (done.returncode, found["verdict"]) in {(1, "regression"), (4, "inconclusive")}
    assert any(row["ratio"] > 1.1 for row in found["end_to_end"] if row["ratio"]), done.stderr


def test_who_interrupts_whole_runs_has_their_answer_and_finds_nothing_left_behind(spinning: Path, tmp_path: Path) -> None:
    reports = [spinning.parent / name for name in ("report.json", "report.md")]
    folder = tmp_path / "temporary"
    folder.mkdir()
    with subprocess.Popen(
        command(spinning, "-v", *(word for report in reports for word in ("-o", str(report)))),
        cwd=spinning,
        env={**os.environ, "TMPDIR": str(folder)},
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        pairs = 0
        for line in process.stderr:
            pairs += " on head" in line
            if pairs >= 14:
                break
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "interrupted: ending with what is known" in said
    assert "perfdiff: So far: " in said
    assert json.loads(reports[0].read_text())["verdict"] in {"regression", "inconclusive"}
    assert reports[1].read_text().count("So far: ") >= 1
    until = time.monotonic() + 5.0  # what was cut short in a thread, the watchdog removes a moment later
    while [*folder.iterdir()] and time.monotonic() < until:
        time.sleep(0.05)
    assert not [*folder.iterdir()]
    assert subprocess.run(["pgrep", "-f", str(spinning.parent / "cache")], capture_output=True, text=True, check=False).stdout == ""
