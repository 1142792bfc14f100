"""Two commands beside each other, without git: which words they are, how their runs are judged, and what is told where one fails."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from perfdiff import pipeline
from perfdiff.analysis.findings import Verdict
from perfdiff.cli import COMPARISON, command_of, commands, main
from perfdiff.collect.execution.executor import Command, Execution, ProcessExecutor
from perfdiff.config import BuildConfig, Config, MeasureConfig, WorkloadConfig
from perfdiff.errors import RunFailedError, UsageError
from perfdiff.outcome import Outcome
from perfdiff.progress import Silent
from perfdiff.records.behaviour import Behaviour, Shape
from perfdiff.records.schema import Phase, Side
from perfdiff.report import document
from perfdiff.report.sentences.catalogue import noted
from perfdiff.request import Request

MS = 1e6


def printing(lines: int) -> Behaviour:
    """Return what a run did that printed so many lines."""
    digest = f"{lines}" * bool(lines)
    return Behaviour(0, Shape(lines, 10 * lines, digest, digest, digest), Shape(0, 0, "", "", ""), written_bytes=10 * lines)


class Saying(ProcessExecutor):
    """Takes as many milliseconds as the second word of a command says, a per mille more or less, and prints as many lines as the third."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def execute(self, command: Command) -> Execution:
        self.texts.append(command.text)
        _, ms, *lines = command.text.split()
        took_ns = float(ms) * MS * (1 + len(self.texts) % 3 / 1000)
        return Execution(took_ns, took_ns, 1e6, None, None, "".join(lines), behaviour=printing(int("".join(lines) or 0)))


def compared(tmp_path: Path, base: str, head: str, executor: ProcessExecutor | None = None, **parameters: Sequence[float]) -> Outcome:
    workload = WorkloadConfig("commands", f"{base} --- {head}", {name: tuple(values) for name, values in parameters.items()})
    config = Config(BuildConfig(""), (workload,), measure=MeasureConfig(budget_s=2.0))
    request = Request(tmp_path, (), config, tmp_path / "cache", {"PATH": "/usr/bin:/bin"})
    return pipeline.compare_commands(request, {Side.BASE: base, Side.HEAD: head}, Silent(), executor=executor or Saying())


@pytest.mark.parametrize(
    ("head_ms", "verdict", "says"),
    [
        ("10", Verdict.UNCHANGED, "No regression: slow-downs of more than"),
        ("12", Verdict.REGRESSION, "Regression: whole runs at commands take ×1.2 "),
        ("5", Verdict.IMPROVEMENT, "Improvement: whole runs at commands take ×0.5 "),
        ("10.8", Verdict.REGRESSION, "Regression: whole runs at commands take ×1.08 "),  # no layouts of a build are to be allowed for
    ],
)
def test_runs_of_two_commands_are_judged_as_whole_runs_are(tmp_path: Path, head_ms: str, verdict: Verdict, says: str) -> None:
    outcome = compared(tmp_path, "work 10 7", f"work {head_ms} 7")
    assert outcome.findings.verdict is verdict
    assert document.headline(outcome.findings).startswith(says)
    (end,) = outcome.findings.end_to_end
    assert end.ratio is not None
    assert end.ratio.value == pytest.approx(float(head_ms) / 10, rel=0.002)
    assert end.ratio.runs_base >= 5


def test_both_commands_run_at_the_points_of_the_parameters_and_none_together(tmp_path: Path) -> None:
    executor = Saying()
    outcome = compared(tmp_path, "one {n}", "two {n}", executor, n=(4, 8))
    assert {*executor.texts} == {"one 4", "one 8", "two 4", "two 8"}
    assert [end.point.label for end in outcome.findings.end_to_end] == ["commands n=4", "commands n=8"]
    assert outcome.experiment is not None
    assert {run.phase for run in outcome.experiment.runs} == {Phase.PLAIN}
    assert not any(run.together for run in outcome.experiment.runs)


def test_where_head_is_slower_at_one_point_alone_the_answer_says_where(tmp_path: Path) -> None:
    class Growing(Saying):
        def execute(self, command: Command) -> Execution:
            found = super().execute(command)
            times = 2.0 if command.text == "two 8" else 1.0
            return Execution(times * found.wall_ns, times * found.cpu_ns, 1e6, None, None, "", behaviour=found.behaviour)

    outcome = compared(tmp_path, "one {n}", "two {n}", Growing(), n=(4, 8))
    assert "×2 " in document.headline(outcome.findings)
    assert "whole runs are slower at commands n=8, not at commands n=4" in document.headline(outcome.findings)


def test_a_faster_command_that_prints_less_is_not_believed(tmp_path: Path) -> None:
    outcome = compared(tmp_path, "all 10 5000", "half 5 50")
    assert outcome.findings.verdict is Verdict.INCONCLUSIVE
    assert "head may do less work" in document.headline(outcome.findings)
    told = compared(tmp_path, "loud 10", "silent 5")
    assert "nothing that it prints or writes shows that the work was done" in document.headline(told.findings)
    assert "outputs-differ" in {note.slug for note in map(noted, outcome.findings.notes)}


@pytest.mark.parametrize(
    ("words", "behind", "name"),
    [
        ([], ["a", "---", "b"], "commands"),
        (["-p", "n=1"], ["a", "---", "b"], "commands"),
        (["--exit-code", "1"], ["a", "---", "b"], "commands"),
        (["main"], ["a", "---", "b"], "commands"),  # which says that no revision is needed
        (["--command", "a", "--command=b"], [], "commands"),
        (["commands"], ["a", "---", "b"], "commands"),
        (["main", "HEAD"], ["a", "-", "b"], COMPARISON),
        (["record"], ["a", "---", "b"], "record"),
    ],
)
def test_two_commands_are_known_by_what_parts_them(words: list[str], behind: list[str], name: str) -> None:
    assert command_of(words, behind)[0] == name


@pytest.mark.parametrize(
    ("revisions", "given", "words", "says"),
    [
        (["main"], [], ["a", "---", "b"], "'main' was given"),
        ([], [], ["a"], "and 1 was given"),
        ([], [], ["a", "---", "b", "---", "c"], "and 3 were given"),
        ([], ["a"], [], "and 1 was given"),
        ([], ["a", "b"], ["c"], "and 3 were given"),
        ([], [], ["a", "---"], "and 1 was given"),
    ],
)
def test_anything_but_two_commands_is_refused(revisions: list[str], given: list[str], words: list[str], says: str) -> None:
    with pytest.raises(UsageError, match=says) as error:
        commands._pair(revisions, given, words)
    assert error.value.slug == "commands-apart"


def test_words_are_kept_apart_and_a_lone_word_is_the_shell_s() -> None:
    assert commands._pair([], [], ["a", "b c", "---", "d {n}"]) == ("a 'b c'", "d {n}")


@pytest.mark.integration
def test_a_program_that_is_not_there_or_fails_is_told_with_what_helps(tmp_path: Path) -> None:
    with pytest.raises(RunFailedError, match=r"install the program that was not found, or name it by its path from") as error:
        compared(tmp_path, "no-such-program", "true", ProcessExecutor())
    assert error.value.slug == "workload-failed"
    with pytest.raises(RunFailedError, match=r"or give --exit-code 3 if that is its way to succeed"):
        compared(tmp_path, "true", "sh -c 'exit 3'", ProcessExecutor())


@pytest.mark.integration
def test_from_the_command_line_to_the_exit_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    options = ["-q", "--cache", str(tmp_path / "cache"), "-o", "x.json", "--prepare", "touch prepared", "--exit-code", "3"]
    with pytest.raises(SystemExit) as ended:
        main([*options, "--", "sleep", "0.02", "---", "sh", "-c", "sleep 0.06; exit 3"])
    assert ended.value.code == 1
    report = json.loads((tmp_path / "x.json").read_text())
    assert (report["verdict"], report["rules"]) == ("regression", ["command-slower"])
    assert report["base"]["rev"] == "sleep 0.02"
    assert "head exits 3 where base exits 0" in report["sentence"]
    assert (tmp_path / "prepared").exists()
