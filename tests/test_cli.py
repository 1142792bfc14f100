"""The command line: which command runs, what is printed where, and what the exit code says."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
import typer

from findings import findings
from perfdiff import cli, pipeline
from perfdiff.analysis.findings import CountFinding, Ratio, Verdict
from perfdiff.analysis.policy import POLICY
from perfdiff.cli import exits, explain, options, requests, waiting
from perfdiff.config import RUNS_FOR_TIME, BuildConfig, Config, Suite
from perfdiff.deadline import CutShortError, Deadline, Ending
from perfdiff.errors import BuildError, ConfigError, OutOfTimeError, PerfdiffError, RecordingError, RevisionError
from perfdiff.exploring import TriedSuite, Tryout
from perfdiff.languages.python.traits import PythonConfig
from perfdiff.outcome import Outcome
from perfdiff.progress import Progress
from perfdiff.request import Request
from programs import git

ROOT = Path(__file__).parent.parent
HELP_LIMIT_S = 0.4
HEAVY = ("torch", "sklearn", "matplotlib", "scipy", "numpy", "pyarrow", "git", "clang", "rich")

# A perfdiff whose comparison waits for a signal and says when it is there and when it has cleared up.
WAITING = """
import signal, sys
from perfdiff import cli, pipeline
def compare(request, progress):
    try:
        sys.stderr.write("waiting\\n"), sys.stderr.flush()
        signal.pause()
    finally:
        sys.stderr.write("cleared\\n"), sys.stderr.flush()
pipeline.compare = compare
cli.main(["-q", "a", "b", "--repo", sys.argv[1], "--build", "true", "--", "./a"])
"""

# One that is ended while it measures, and then takes a minute for its answer.
ANSWERING = """
import signal, sys, time
from perfdiff import cli, pipeline
from perfdiff.deadline import CutShortError
def compare(request, progress):
    try:
        with request.deadline.enforced():
            sys.stderr.write("waiting\\n"), sys.stderr.flush()
            signal.pause()
    except CutShortError as cut:
        sys.stderr.write(f"answering, {cut.ending}\\n"), sys.stderr.flush()
        time.sleep(60)
pipeline.compare = compare
cli.main(["-q", "a", "b", "--repo", sys.argv[1], "--build", "true", "--", "./a"])
"""


@dataclass
class Comparison:
    """Stands in for the pipeline: keeps what it was asked, and answers or fails as told."""

    verdict: Verdict = Verdict.UNCHANGED
    error: BaseException | None = None
    requests: list[Request] = field(default_factory=list)
    counts: dict[str, CountFinding] | None = None
    names: tuple[str, ...] = ()
    is_short: bool = False

    def compare(self, request: Request, progress: Progress) -> Outcome:
        self.requests.append(request)
        request.deadline.is_short = self.is_short
        progress.stage("measuring", 2)
        progress.advance("first run")
        return self.outcome()

    def last(self, *_: object) -> Outcome:
        return self.outcome()

    def outcome(self) -> Outcome:
        if self.error:
            raise self.error
        found = findings(self.verdict)
        if self.counts is not None:
            function = found.functions[0]
            work = replace(function, info=replace(function.info, name="work"), verdict=self.verdict, rank=None, counts=self.counts)
            found = replace(found, functions=(work,))
        if self.names:
            function = found.functions[0]
            infos = [replace(function.info, id=place, name=name, line=10 + place) for place, name in enumerate(self.names)]
            found = replace(found, functions=tuple(replace(function, info=info, verdict=self.verdict) for info in infos))
        return Outcome(found, lambda function, side: None)


def counted(factor: float) -> CountFinding:
    """Return a count that repeats to the last digit."""
    ratio = Ratio(factor, factor, factor, 2, 2)
    return CountFinding(
        "blocks", findings().points[0], 10.0, 10.0 * factor, ratio, exact=True, grew=factor > 1, shrank=False, extra=0.0, rate=1.0
    )


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a checkout with a Makefile, in which the test stands."""
    git(tmp_path, "init", "-q")
    (tmp_path / "Makefile").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user-cache"))
    monkeypatch.delenv("PERFDIFF_CACHE", raising=False)
    return tmp_path


@pytest.fixture
def seam(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> Comparison:
    """Return what stands in for the pipeline."""
    stand_in = Comparison()
    monkeypatch.setattr(pipeline, "compare", stand_in.compare)
    monkeypatch.setattr("perfdiff.outcome.last", stand_in.last)
    return stand_in


@pytest.fixture
def run() -> Iterator[Callable[..., int]]:
    """Return a call of the command line that answers with its exit code, and leaves the process as it was."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    hook = sys.excepthook

    def call(*arguments: str) -> int:
        with pytest.raises(SystemExit) as left:
            cli.main(arguments)
        return int(left.value.code or 0)

    yield call
    sys.excepthook = hook
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(
    ("verdict", "strict", "code"),
    [
        (Verdict.UNCHANGED, False, 0),
        (Verdict.IMPROVEMENT, False, 0),
        (Verdict.INCONCLUSIVE, False, 0),
        (Verdict.REGRESSION, False, 1),
        (Verdict.UNCHANGED, True, 0),
        (Verdict.REGRESSION, True, 1),
        (Verdict.INCONCLUSIVE, True, 4),
    ],
)
def test_exit_code_is_the_verdict(seam: Comparison, run: Callable[..., int], verdict: Verdict, strict: bool, code: int) -> None:
    seam.verdict = verdict
    assert run("main", "HEAD", *(["--strict"] if strict else []), "--", "./a") == code


@pytest.mark.parametrize(
    ("verdict", "code"), [(Verdict.UNCHANGED, 0), (Verdict.IMPROVEMENT, 0), (Verdict.INCONCLUSIVE, 4), (Verdict.REGRESSION, 1)]
)
def test_out_of_time_the_exit_code_is_4_unless_the_answer_is_decided(
    seam: Comparison, run: Callable[..., int], verdict: Verdict, code: int
) -> None:
    seam.verdict, seam.is_short = verdict, True
    assert run("main", "HEAD", "--time", "2m", "--", "./a") == code
    assert seam.requests[0].deadline.time_s == 120.0


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (OutOfTimeError("its time was over", slug="out-of-time"), 4),
        (ConfigError("wrong key", slug="config-key"), 2),
        (RevisionError("no such revision", slug="unknown-revision"), 2),
        (BuildError("make failed", slug="build-failed", detail="cc: error\nmake: *** [all]"), 3),
        (PerfdiffError("anything else", slug="other"), 3),
    ],
)
def test_failure_is_told_with_slug_and_detail(
    seam: Comparison, run: Callable[..., int], capsys: pytest.CaptureFixture[str], error: PerfdiffError, code: int
) -> None:
    seam.error = error
    assert run("-q", "main", "HEAD", "--build", "make", "--", "./a") == code
    out, err = capsys.readouterr()
    detail = "".join(f"  | {line}\n" for line in error.detail.splitlines())
    assert (out, err) == ("", f"perfdiff: {error} [{error.slug}]\n{detail}")


def test_ctrl_c_exits_with_130(seam: Comparison, run: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    seam.error = KeyboardInterrupt()
    assert run("-q", "main", "HEAD", "--build", "make", "--", "./a") == 130
    assert capsys.readouterr() == ("", "perfdiff: interrupted\n")


@pytest.mark.parametrize(("ending", "code"), [(Ending.INTERRUPTED, 130), (Ending.TERMINATED, 143)])
def test_who_ends_a_comparison_before_anything_is_known_is_told_so(
    seam: Comparison, run: Callable[..., int], capsys: pytest.CaptureFixture[str], ending: Ending, code: int
) -> None:
    seam.error = CutShortError(ending)
    assert run("-q", "main", "HEAD", "--build", "make", "--", "./a") == code
    assert capsys.readouterr() == ("", "perfdiff: nothing is known yet, as base and head had not run\n")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signal_lets_a_comparison_clear_up(checkout: Path, number: signal.Signals, code: int) -> None:
    with subprocess.Popen([sys.executable, "-c", WAITING, str(checkout)], cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "waiting\n"
        process.send_signal(number)
        assert "cleared\n" in process.stderr.read()
        assert process.wait() == code


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_first_signal_leaves_time_for_an_answer_and_the_second_does_not(checkout: Path, number: signal.Signals, code: int) -> None:
    with subprocess.Popen([sys.executable, "-c", ANSWERING, str(checkout)], cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "waiting\n"
        process.send_signal(number)
        said = "interrupted" if code == 130 else "terminated"
        assert process.stderr.readline() == f"perfdiff: {said}: ending with what is known; once more ends at once\n"
        assert process.stderr.readline() == f"answering, {said}\n"
        process.send_signal(number)  # as a wrapper passes on what the terminal sent
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.6)
        process.send_signal(number)
        assert process.wait(5) == code
        assert process.stderr.read() == f"perfdiff: {said}\n"


def test_crash_of_perfdiff_does_not_read_as_a_regression(checkout: Path) -> None:
    program = WAITING.replace("signal.pause()", "raise ZeroDivisionError")
    done = subprocess.run([sys.executable, "-c", program, str(checkout)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert "ZeroDivisionError" in done.stderr


@pytest.mark.parametrize("arguments", [[], ["--nosuch", "a"], ["a", "--runs", "many"], ["init", "--nosuch"], ["explain"]])
def test_wrong_command_line_exits_with_2(run: Callable[..., int], checkout: Path, arguments: list[str]) -> None:
    assert run(*arguments) == 2


@pytest.mark.parametrize(
    ("arguments", "revisions"),
    [
        (["main", "HEAD"], ("main", "HEAD")),
        (["v1..v2"], ("v1..v2",)),
        (["HEAD~3"], ("HEAD~3",)),
        (["--strict", "main...topic"], ("main...topic",)),
        (["-o", "x.json", "main", "HEAD"], ("main", "HEAD")),
    ],
)
def test_first_argument_that_is_no_command_is_a_revision(
    seam: Comparison, run: Callable[..., int], arguments: list[str], revisions: tuple[str, ...]
) -> None:
    assert run(*arguments, "--", "./a") == 0
    assert seam.requests[0].revisions == revisions


def test_options_may_stand_before_a_command(seam: Comparison, run: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    name = findings().functions[0].info.name
    assert run("-q", "--cache", "bisect", "explain", name) == 0
    assert name in capsys.readouterr().out
    assert run("--cache", "explain", "main", "HEAD", "--", "./a") == 0
    assert seam.requests[0].revisions == ("main", "HEAD")


@pytest.mark.parametrize(
    "told",
    [
        ("biscet A B", "bad-specification", "; did you mean the command `perfdiff bisect`?"),
        ("explian f", "unknown-revision", "; did you mean the command `perfdiff explain`?"),
        ("run A B", "bad-specification", "; comparing needs no command's name: `perfdiff A B`"),
        ("diff", "unknown-revision", "; comparing needs no command's name: `perfdiff BASE HEAD`"),
        ("explian f", "git-failed", ""),
        ("main HEAD", "unknown-revision", ""),
    ],
)
def test_a_misspelt_command_or_one_of_other_tools_is_recognised(
    seam: Comparison, run: Callable[..., int], capsys: pytest.CaptureFixture[str], told: tuple[str, str, str]
) -> None:
    words, slug, says = told
    seam.error = RevisionError("wrong", slug=slug)
    assert run("-q", *words.split(), "--build", "make", "--", "./a") == 2
    assert capsys.readouterr().err == f"perfdiff: wrong{says} [{slug}]\n"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("", "Usage: perfdiff [OPTIONS] BASE [HEAD]"),
        ("bisect", "Usage: perfdiff bisect"),
        ("build-failed", "**Do:** run the command in a fresh `git worktree`"),
        ("[build-failed]", "**Do:** run the command in a fresh `git worktree`"),
    ],
)
def test_help_explains_commands_and_messages(run: Callable[..., int], capsys: pytest.CaptureFixture[str], words: str, says: str) -> None:
    assert run("help", *words.split()) == 0
    assert says in capsys.readouterr().out


def test_help_on_another_word_names_the_nearest(run: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    assert run("help", "buildfailed") == 2
    assert capsys.readouterr().err == "perfdiff: there is no command and no message 'buildfailed'; did you mean 'build-failed'? [no-help]\n"


def test_version_is_a_command_as_well(run: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    assert run("version") == 0
    assert capsys.readouterr().out.startswith("perfdiff ")


def test_revisions_that_are_named_to_the_command_for_samples_are_led_to_the_comparison(
    run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("compare", "-q", "HEAD~1", "HEAD") == 2
    assert "revisions are compared without a command's name: `perfdiff HEAD~1 HEAD` [samples-missing]" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--format", "yaml"], "'yaml' is not one of 'text', 'markdown'"),
        (["--runs", "many"], "integer"),
    ],
)
def test_wrong_values_are_told_in_plain_words(
    seam: Comparison, run: Callable[..., int], capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    assert run("a", "b", *arguments, "--build", "make", "--", "./a") == 2
    told = " ".join(capsys.readouterr().err.split())
    assert says in told
    assert all(term not in told for term in ("Value error", "Input should", "unable to parse"))


def test_what_follows_two_dashes_is_the_workload(seam: Comparison, run: Callable[..., int]) -> None:
    assert run("a", "b", "--param", "n=10,20", "--runs", "4", "--", "./bench/sort", "--runs=x", "{n}", "two words", "--", "$HOME") == 0
    workload = seam.requests[0].config.workloads[0]
    assert workload.command == "./bench/sort --runs=x {n} 'two words' -- '$HOME'"
    assert (workload.name, workload.parameters, workload.runs) == ("sort", {"n": (10, 20)}, 4)


@pytest.mark.parametrize(
    ("words", "command"),
    [
        ([], None),
        (["./a | wc -l"], "./a | wc -l"),
        (["./a", ""], "./a ''"),
        (["./a", "--size={n} mb"], "./a --size={n}' mb'"),
        (["./a", "{n}{m}"], "./a {n}{m}"),
    ],
)
def test_words_of_a_workload_become_one_command(words: list[str], command: str | None) -> None:
    assert requests.command_text(words) == command


@pytest.mark.parametrize(("name", "start"), [("r.txt", "v1.4 ("), ("r.md", "#"), ("r.html", "<!DOCTYPE html>"), ("r.json", "{")])
def test_suffix_of_the_output_chooses_the_format(
    seam: Comparison, run: Callable[..., int], capsys: pytest.CaptureFixture[str], name: str, start: str
) -> None:
    assert run("a", "b", "-o", name, "--", "./a") == 0
    assert Path(name).read_text().startswith(start)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(("runs", "noted"), [(2, True), (3, True), (4, False)])
def test_runs_too_few_for_a_verdict_on_time_are_told_at_the_start(
    seam: Comparison, run: Callable[..., int], capsys: pytest.CaptureFixture[str], runs: int, noted: bool
) -> None:
    assert POLICY.min_runs == 2 * RUNS_FOR_TIME == 8
    run("a", "b", "--runs", str(runs), "--build", "make", "--", "./a")
    first = capsys.readouterr().err.splitlines()[0]
    assert first.startswith(
        f"perfdiff: note: {runs} runs with probes a side are too few for a verdict on the time of single calls"
        if noted
        else "perfdiff: measuring"
    )


def test_a_report_in_a_file_leaves_the_answer_and_its_place_on_standard_error(
    seam: Comparison, run: Callable[..., int], checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seam.verdict = Verdict.REGRESSION
    assert run("a", "b", "-o", "r.html", "--build", "make", "--", "./a") == 1
    answer, place = capsys.readouterr().err.splitlines()[-2:]
    assert answer.startswith("perfdiff: Regression: ")
    assert findings().functions[0].info.name in answer
    assert place == "perfdiff: written to r.html"
    assert run("a", "b", "-q", "-o", "r.html", "--build", "make", "--", "./a") == 1
    assert capsys.readouterr() == ("", "")


def test_json_goes_to_standard_output_and_progress_to_standard_error(
    seam: Comparison, run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("a", "b", "--format", "json", "--", "./a") == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["schema"] == "perfdiff.report/1"
    assert err.splitlines()[0].startswith("perfdiff: note: building with 'make -j$(nproc)', guessed from Makefile; `perfdiff init`")
    assert err.splitlines()[1:] == ["perfdiff: measuring (2)"]


def test_a_guess_beside_a_configuration_does_not_send_to_init_which_would_refuse(
    seam: Comparison, run: Callable[..., int], checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (checkout / "perfdiff.toml").write_text("[compare]\nseed = 2\n")
    run("a", "b", "--", "./a")
    assert capsys.readouterr().err.splitlines()[0].endswith("guessed from Makefile; [build] command says otherwise")


def test_verbose_says_every_step_and_quiet_none(seam: Comparison, run: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    run("a", "b", "-v", "--build", "make", "--", "./a")
    assert capsys.readouterr().err == "perfdiff: measuring (2)\nperfdiff:   first run\n"
    run("a", "b", "-q", "--", "./a")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "arguments", [["-o", "report.xyz"], ["-o", "nowhere/report.html"], ["-o", "."], ["--param", "n"], ["--param", "n="]]
)
def test_what_cannot_be_followed_is_refused_before_anything_is_measured(
    seam: Comparison, run: Callable[..., int], arguments: list[str]
) -> None:
    assert run("a", "b", *arguments, "--", "./a") == 2
    assert seam.requests == []


def test_cache_is_the_users_unless_told_otherwise(
    seam: Comparison, run: Callable[..., int], checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("a", "b", "--", "./a")
    monkeypatch.setenv("PERFDIFF_CACHE", str(checkout / "own"))
    run("a", "b", "--", "./a")
    run("a", "b", "--cache", "given", "--", "./a")
    assert [request.cache for request in seam.requests] == [checkout / "user-cache" / "perfdiff", checkout / "own", checkout / "given"]


def test_the_cluster_is_that_of_the_command_line_else_of_the_environment_else_of_the_file(
    seam: Comparison, run: Callable[..., int], checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PERFDIFF_CLUSTER", raising=False)
    run("a", "b", "--", "./a")
    (checkout / "perfdiff.toml").write_text('[cluster]\naddress = "tcp://file:8786"\n')
    run("a", "b", "--", "./a")
    monkeypatch.setenv("PERFDIFF_CLUSTER", "tcp://environment:8786")
    run("a", "b", "--", "./a")
    run("a", "b", "--cluster", "tcp://line:8786", "--", "./a")
    addresses = [request.config.cluster.address for request in seam.requests]
    assert addresses == [None, "tcp://file:8786", "tcp://environment:8786", "tcp://line:8786"]


def test_relative_cache_folder_of_the_user_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PERFDIFF_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "somewhere")
    assert options.cache_folder(None) == Path.home() / ".cache" / "perfdiff"


def test_builds_and_workloads_run_where_the_configuration_lies(seam: Comparison, run: Callable[..., int], checkout: Path) -> None:
    (checkout / "perfdiff.toml").write_text('[build]\ncommand = "make"\n[[workload]]\nname = "a"\ncommand = "./a"\n')
    (checkout / "src").mkdir()
    run("a", "b", "--repo", "src")
    assert seam.requests[0].repository == checkout


def test_files_of_perfdiff_alone_are_told_apart_unless_a_command_names_them(
    seam: Comparison, run: Callable[..., int], checkout: Path
) -> None:
    text = '[compare]\naccepted = "perf/known.toml"\n[[workload]]\nname = "a"\ncommand = "./a"\n'
    (checkout / "perfdiff.toml").write_text(text)
    run("a", "b")
    run("a", "b", "--", "./a < perfdiff.toml")
    (checkout / "perfdiff.toml").rename(checkout / "kept")
    run("a", "b", "--", "./a")
    own, named, without = (
        [file.relative_to(checkout).as_posix() for file in request.config.own_files(checkout)] for request in seam.requests
    )
    assert own == ["perf/known.toml", "perfdiff.toml"]
    assert named == ["perf/known.toml"]
    assert without == ["perfdiff-accepted.toml"]


def test_configuration_that_others_read_is_not_told_apart(seam: Comparison, run: Callable[..., int], checkout: Path) -> None:
    (checkout / "pyproject.toml").write_text('[tool.perfdiff]\n[[tool.perfdiff.workload]]\nname = "a"\ncommand = "./a"\n')
    run("a", "b")
    assert [file.name for file in seam.requests[0].config.own_files(checkout)] == ["perfdiff-accepted.toml"]


@pytest.mark.parametrize(
    ("measured", "says"),
    [
        ((3.0, 2), "bad: "),
        ((3.0, 10), "bad: "),
        ((1.0, 2), "good: `work`: no more work by exact counts"),
        ((1.0, 10), "skip: "),
        ((None, 2), "skip: "),
    ],
)
def test_a_step_whose_time_stays_open_is_settled_by_exact_counts(
    seam: Comparison, run: Callable[..., int], capsys: pytest.CaptureFixture[str], measured: tuple[float | None, int], says: str
) -> None:
    factor, runs = measured
    seam.verdict = Verdict.INCONCLUSIVE
    seam.counts = {} if factor is None else {"blocks": counted(factor)}
    code = run("bisect-step", "-q", "--good", "a", "--runs", str(runs), "--function", "work", "--build", "make", "--", "./a")
    assert code == {"good": 0, "bad": 1, "skip": 125}[says.partition(":")[0]]
    assert capsys.readouterr().out.startswith(says)


def test_no_colour_without_a_terminal(seam: Comparison, run: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    seam.verdict = Verdict.REGRESSION
    run("a", "b", "--", "./a")
    assert "\x1b" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("given", "name", "is_meant"),
    [
        ("insert", "insert", True),
        ("insert", "Table::insert(int, char const*)", True),
        ("Table::insert", "store::Table::insert(int)", True),
        ("add", "Shop\\Cart::add", True),
        ("parse", "org.example.Parser.parse(String)", True),
        ("Parser.parse(String)", "org.example.Parser.parse(String)", True),
        ("Parser.parse(int)", "org.example.Parser.parse(String)", False),
        ("arse", "org.example.Parser.parse(String)", False),
        ("table.py:search", "pages.Table.search", True),
        ("list.py:search", "pages.Table.search", False),
    ],
)
def test_a_function_is_meant_by_its_name_without_scope_or_parameters(given: str, name: str, is_meant: bool) -> None:
    assert explain.is_named(given, name, "pages/table.py") is is_meant


def test_explain_tells_what_the_last_comparison_knows(
    seam: Comparison, run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    named = findings().functions[0].info
    assert run("explain", named.name) == 0
    out = capsys.readouterr().out
    assert f"{named.name}  {named.file}:{named.line}" in out
    assert findings().functions[1].info.name not in out.splitlines()[0]
    inside = max(named.head.code) if named.head else named.line
    for place in (named.name, inside):
        assert run("explain", f"{Path(named.file).name}:{place}") == 0
        assert capsys.readouterr().out == out


def test_explain_asks_for_the_workload_that_it_is_given(seam: Comparison, run: Callable[..., int]) -> None:
    assert run("explain", findings().functions[0].info.name, "a", "b", "--", "./program", "7") == 0
    assert [workload.command for workload in seam.requests[0].config.workloads] == ["./program 7"]


def test_explain_asks_for_the_build_and_the_parameters_that_it_is_given(seam: Comparison, run: Callable[..., int]) -> None:
    name = findings().functions[0].info.name
    assert run("explain", name, "a", "b", "--build", "make -j2", "--param", "n=1,2", "--", "./program", "{n}") == 0
    config = seam.requests[0].config
    assert (config.build.command, config.workloads[0].parameters) == ("make -j2", {"n": (1, 2)})


@pytest.mark.parametrize("words", [("--", "./program", "7"), ("--param", "n=1,2"), ("--build", "make")])
def test_explain_of_the_last_comparison_takes_no_other_workload(
    seam: Comparison, run: Callable[..., int], capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    assert run("explain", findings().functions[0].info.name, *words) == 2
    assert "[which-comparison]" in capsys.readouterr().err


def test_explain_says_why_a_function_was_not_measured(
    seam: Comparison, run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    skipped = findings().skipped[0]
    assert run("explain", skipped.name) == 0
    assert f"was not measured: {skipped.reason}" in capsys.readouterr().out


def test_explain_names_the_nearest_function(seam: Comparison, run: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    name = findings().functions[0].info.name
    assert run("explain", f"{name}x") == 2
    assert f"did you mean '{name}'?" in capsys.readouterr().err


def test_explain_finds_the_nearest_function_in_any_case_and_scope(
    seam: Comparison, run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    seam.names = ("tinyxml2::XMLNode::InsertEndChild", "main")
    assert run("explain", "insertendchild") == 2
    assert "did you mean 'tinyxml2::XMLNode::InsertEndChild'?" in capsys.readouterr().err


def test_explain_lists_functions_that_share_a_name(seam: Comparison, run: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    seam.names = ("XML::Parse", "XML::Parse")
    assert run("explain", "Parse") == 0
    head, one, two, remedy = capsys.readouterr().out.splitlines()
    assert head == "2 functions are named 'Parse':"
    assert one.endswith("XML::Parse: negligible")
    assert two.endswith("XML::Parse: negligible")
    places = [line.split()[0] for line in (one, two)]
    assert remedy == f"`perfdiff explain {places[0]}` tells all of the first one"
    for place in places:
        assert run("explain", place) == 0
        assert f"XML::Parse  {place}" in capsys.readouterr().out.splitlines()[0]


def test_explain_without_a_comparison_says_so(seam: Comparison, run: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    seam.error = RecordingError("this repository was not compared yet", slug="no-comparison")
    assert run("explain", "f") == 3
    assert "[no-comparison]" in capsys.readouterr().err


@pytest.fixture
def tryout(monkeypatch: pytest.MonkeyPatch) -> list[Tryout]:
    """Return a list whose last element stands in for what `init` sees of a project."""
    seen = [Tryout()]
    monkeypatch.setattr("perfdiff.exploring.explored", lambda *_: seen[-1])
    return seen


def test_without_any_word_it_is_told_what_may_be_compared(run: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    assert run() == 2
    assert "`perfdiff HEAD~1 HEAD` takes the last two commits" in capsys.readouterr().err


def test_init_writes_what_it_has_seen_work(
    seam: Comparison, run: Callable[..., int], checkout: Path, capsys: pytest.CaptureFixture[str], tryout: list[Tryout]
) -> None:
    tryout.append(Tryout((TriedSuite(Suite("pytest", "tests -k sort"), 12, "test_sort", 0.25, 1),)))
    assert run("init") == 0
    out = capsys.readouterr().out
    assert "built with 'make -j$(nproc)'" in out
    assert "works: 12 cases of pytest; the shortest, test_sort, takes 250 ms a run and calls 1 function of the project" in out
    assert "next: run `perfdiff BASE HEAD`" in out
    assert run("a", "b") == 0
    config = seam.requests[0].config
    assert config.build.command == "make -j$(nproc)"
    assert [workload.suite for workload in config.workloads] == [Suite("pytest", "tests -k sort")]


def test_init_writes_the_command_that_built_what_works(
    run: Callable[..., int], checkout: Path, capsys: pytest.CaptureFixture[str], tryout: list[Tryout]
) -> None:
    suite = TriedSuite(Suite("ctest", ""), 1, "total", 0.25, 1)
    build = BuildConfig("cmake -S . -B build -DSHOP_TESTS=ON && cmake --build build")
    tryout.append(Tryout((suite,), config=Config(build, ())))
    assert run("init") == 0
    assert "built with 'cmake -S . -B build -DSHOP_TESTS=ON && cmake --build build'" in capsys.readouterr().out
    table = tomllib.loads((checkout / "perfdiff.toml").read_text())
    assert table["build"]["command"] == "cmake -S . -B build -DSHOP_TESTS=ON && cmake --build build"


def test_init_writes_no_workload_that_nobody_saw_work(
    run: Callable[..., int], checkout: Path, capsys: pytest.CaptureFixture[str], tryout: list[Tryout]
) -> None:
    tryout.append(Tryout(failures=("asv: no benchmark runs",), programs=("./build/tool",)))
    assert run("init") == 0
    out = capsys.readouterr().out
    assert "does not work: asv: no benchmark runs" in out
    assert "next: fill in the workload's command" in out
    text = (checkout / "perfdiff.toml").read_text()
    assert '# command = "./build/tool {n}"' in text
    assert tomllib.loads(text).get("workload") is None


def test_init_writes_the_build_that_worked_and_not_the_one_that_files_tell_first(
    run: Callable[..., int], checkout: Path, capsys: pytest.CaptureFixture[str], tryout: list[Tryout]
) -> None:
    (checkout / "pyproject.toml").write_text('[project]\nname = "x"\n')
    (checkout / "CMakeLists.txt").touch()
    config = Config(BuildConfig(""), (), languages={"python": PythonConfig()}, build_guessed_from="pyproject.toml")
    tryout.append(Tryout((TriedSuite(Suite("pytest", ""), 1, "test_sort", 0.25, 1),), config=config))
    assert run("init") == 0
    assert "(a Python project, as pyproject.toml tells)" in capsys.readouterr().out
    assert "command" not in tomllib.loads((checkout / "perfdiff.toml").read_text())["build"]


def test_init_builds_nothing_where_it_is_told_so(run: Callable[..., int], checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perfdiff.exploring.explored", lambda *_: pytest.fail("tried all the same"))
    assert run("init", "--no-build") == 0
    assert '# command = "./program {n}"' in (checkout / "perfdiff.toml").read_text()


def test_init_writes_nothing_where_the_build_fails(
    run: Callable[..., int], checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*_: object) -> Tryout:
        raise BuildError("make failed", slug="build-failed")

    monkeypatch.setattr("perfdiff.exploring.explored", fails)
    assert run("init") == 3
    assert "--no-build" in capsys.readouterr().err
    assert not (checkout / "perfdiff.toml").exists()


def uncommented(text: str) -> str:
    """Return a configuration with all its commented keys and tables."""
    return "\n".join(line.removeprefix("# ") if " = " in line or line == "# [[workload]]" else line for line in text.splitlines())


def test_every_commented_key_of_init_is_valid_with_its_default(run: Callable[..., int], seam: Comparison, checkout: Path) -> None:
    run("init", "--no-build")
    (checkout / "perfdiff.toml").write_text(uncommented((checkout / "perfdiff.toml").read_text()))
    run("a", "b")
    assert seam.requests[0].config.compare.fdr == 0.05
    assert seam.requests[0].config.build.overlay == ("bench/",)


@pytest.mark.parametrize("sign", ["pyproject.toml", "requirements-dev.txt"])
def test_init_knows_a_python_project_beside_a_makefile(
    seam: Comparison, run: Callable[..., int], checkout: Path, capsys: pytest.CaptureFixture[str], sign: str
) -> None:
    (checkout / sign).write_text('[project]\nname = "x"\n')
    assert run("init", "--no-build") == 0
    assert f"a Python project, as {sign} tells" in capsys.readouterr().out
    (checkout / "perfdiff.toml").write_text(uncommented((checkout / "perfdiff.toml").read_text()))
    run("a", "b")
    config = seam.requests[0].config
    assert config.workloads[0].command == "python benchmark.py {n}"
    assert config.languages["python"] == PythonConfig("python3", (".[bench]", "bench/requirements.txt"), editable=True)


def test_init_outside_of_any_repository_says_so_before_all_else(
    run: Callable[..., int], checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (checkout / "perfdiff.toml").write_text("mine")
    (checkout / ".git").rename(checkout / "elsewhere")
    assert run("init") == 2
    assert "[not-a-repository]" in capsys.readouterr().err
    assert run("init", "--force") == 2
    assert (checkout / "perfdiff.toml").read_text() == "mine"


def test_init_does_not_overwrite_without_force(run: Callable[..., int], checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (checkout / "perfdiff.toml").write_text("mine")
    assert run("init") == 2
    assert "[config-exists]" in capsys.readouterr().err
    assert (checkout / "perfdiff.toml").read_text() == "mine"
    assert run("init", "--force", "--no-build") == 0
    assert (checkout / "perfdiff.toml").read_text().startswith("# What perfdiff builds")


def test_cache_shows_its_parts_and_prunes_what_is_old(run: Callable[..., int], checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    experiments = checkout / "cache" / "experiments"
    old, new = "0" * 32, "1" * 32
    for name, age_days in ((old, 40), (new, 1)):
        (experiments / name).mkdir(parents=True)
        (experiments / name / "experiment.json").write_bytes(b"x" * 1000)
        moment = time.time() - age_days * 86400
        os.utime(experiments / name, (moment, moment))
    assert run("cache", "--cache", "cache") == 0
    assert "2 kB  recordings of comparisons" in capsys.readouterr().out
    assert run("cache", "prune", "--cache", "cache") == 0
    assert "freed 1 kB" in capsys.readouterr().out
    assert [folder.name for folder in experiments.iterdir()] == [new]
    assert run("cache", "--cache", "cache", "prune", "--days", "0") == 0
    assert list(experiments.glob("*")) == []


def test_help_tells_exit_codes_and_commands(run: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--help") == 0
    out = capsys.readouterr().out
    assert "Usage: perfdiff [OPTIONS] BASE [HEAD] [-- COMMAND…]" in out
    for line in ("0    no regression", "1    regression", "3    could not measure", "4    inconclusive, with --strict"):
        assert line in out
    for name in cli.COMMANDS:
        assert f"perfdiff {name}" in out


def test_help_loads_nothing_heavy() -> None:
    program = "import sys\nfrom perfdiff import cli\ntry:\n    cli.main(['--help'])\nfinally:\n    sys.stderr.write(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not set(done.stderr.split()) & set(HEAVY)


def test_help_answers_at_once() -> None:
    def answered() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-m", "perfdiff", "--help"], stdout=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    # CPU time, and the best of some: other work on the machine only ever adds.
    assert min(answered() for _ in range(5)) < HELP_LIMIT_S


def test_reader_who_left_is_no_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([sys.executable, "-m", "perfdiff", "--version"], stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


def test_what_strangers_wrote_does_not_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    stream = io.StringIO()
    waiting.LineProgress(stream, verbose=False).note("commit \x1b[2Jwiped")
    assert stream.getvalue() == "perfdiff: note: commit \\x1b[2Jwiped\n"
    with pytest.raises(typer.Exit), exits.exceptions_become_codes():
        raise BuildError("'make' exited 2", slug="build-failed", detail="a.c:\x1b]0;title\x07 error\nthe end\n")
    assert capsys.readouterr().err == "perfdiff: 'make' exited 2 [build-failed]\n  | a.c:\\x1b]0;title\\x07 error\n  | the end\n"


def test_lines_of_progress_say_now_and_then_how_far_a_long_stage_is() -> None:
    stream, now = io.StringIO(), [0.0]
    progress = waiting.LineProgress(stream, verbose=False, clock=lambda: now[0])
    progress.stage("measuring", 10)
    for _ in range(10):
        now[0] += 12
        progress.advance("a run")
    progress.stage("analysing", None)
    now[0] += 29
    progress.look()
    progress.know("whole runs: ×1.31 [1.22, 1.40] at n=3000, 12 pairs")
    now[0] += 1
    progress.look()
    now[0] += 70
    progress.advance("a step of unknown many")
    assert stream.getvalue().splitlines() == [
        "perfdiff: measuring (10)",
        "perfdiff: measuring: 3 of 10, about 84 s left",
        "perfdiff: measuring: 6 of 10, about 48 s left",
        "perfdiff: measuring: 9 of 10, about 12 s left",
        "perfdiff: analysing",
        "perfdiff: analysing: for 30 s; whole runs: ×1.31 [1.22, 1.40] at n=3000, 12 pairs",
        "perfdiff: analysing: for 100 s; whole runs: ×1.31 [1.22, 1.40] at n=3000, 12 pairs",
    ]


def test_in_a_log_a_stage_without_steps_is_told_every_half_minute_with_the_time_that_is_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(waiting, "_LOOK_EVERY_S", 0.01)
    monkeypatch.setattr(waiting, "_LINE_EVERY_S", 0.2)
    before = set(threading.enumerate())
    with waiting.progress(quiet=False, verbose=False, deadline=Deadline(100.0)) as progress:
        progress.stage("building (plain)", 2)
        time.sleep(0.3)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "perfdiff: building (plain) (2)"
    assert re.fullmatch(r"perfdiff: building \(plain\): for \d+ ms; 100 s of 100 s left", lines[1])
    assert set(threading.enumerate()) <= before


def test_progress_on_a_terminal_leaves_a_line_with_the_time_of_each_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    main, other = os.openpty()
    with os.fdopen(other, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        with waiting.progress(quiet=False, verbose=False, deadline=Deadline(100.0)) as progress:
            progress.stage("building", 2)
            progress.advance("base")
            progress.note("[note] in brackets")
            progress.know("whole runs: ×1.31 [1.22, 1.40] at n=3000, 12 pairs")
            time.sleep(0.3)
            progress.stage("measuring", None)
    shown = ""
    with contextlib.suppress(OSError):  # a terminal that nobody writes to any more ends in an error
        while chunk := os.read(main, 100_000):
            shown += chunk.decode(errors="replace")
    os.close(main)
    assert "building: " in shown
    assert "measuring: " in shown
    assert "note: [note] in brackets" in shown
    assert "whole runs: ×1.31 [1.22, 1.40] at n=3000, 12 pairs; 100 s of 100 s left" in shown
