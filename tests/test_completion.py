"""What shells offer while a command line is typed: commands, options, revisions, workloads and functions, quickly and without a word."""

from __future__ import annotations

import os
import resource
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from findings import findings
from perfdiff import cli, latest, pipeline
from perfdiff.build import holdings
from perfdiff.latest import NamedFunction
from perfdiff.outcome import Outcome
from perfdiff.progress import Silent
from perfdiff.revisions.repository import find_repository
from programs import first_two, git

Answers = Callable[[Path, Mapping[str, str]], list[str]]

SECONDS = 0.5
HOSTILE = "odd$(touch${IFS}there)`touch${IFS}there`'\"x"
TEXT = """
[[workload]]
name = "small sizes"
command = "./prog 1"

[[workload]]
name = "large"
command = "./prog 2"
"""
FUNCTIONS = (
    NamedFunction("list_fill", "src/list.c", "regression"),
    NamedFunction("list::insert(int)", "src/list.cpp", "unchanged"),
    NamedFunction("list::insert(char const*, int)", "src/list.cpp", "regression"),
    NamedFunction("weigh", "src/a.c", "inconclusive"),
    NamedFunction("weigh", "src/b.c", None),
)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a checkout with branches, tags and workloads, whose last comparison is in the cache beside it."""
    folder = tmp_path_factory.mktemp("completion") / "project"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "perfdiff.toml").write_text(TEXT)
    (folder / "notes.txt").touch()
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "first\x1b[31m: one")
    git(folder, "tag", "v1.0")
    git(folder, "commit", "-q", "--allow-empty", "-m", "second")
    for branch in ("feature/slow", "feature/slower", HOSTILE):
        git(folder, "branch", branch)
    (folder.parent / "cache").mkdir()
    latest.keep(folder.parent / "cache", find_repository(folder).name, FUNCTIONS)
    return folder


def variables(folder: Path) -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {
        "PERFDIFF_CACHE": str(folder.parent / "cache"),
        "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
    }


def asked(folder: Path, question: Mapping[str, str]) -> list[str]:
    """Return the lines that answer a shell's question, asked in `folder`; there is never another word, nor an error."""
    command = [sys.executable, "-m", "perfdiff"]
    done = subprocess.run(command, env=variables(folder) | question, cwd=folder, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.splitlines()


def by_bash(words: Sequence[str]) -> dict[str, str]:
    """Return what bash asks behind some words, the last of which is being typed, by Typer's protocol."""
    line = " ".join(("perfdiff", *(shlex.quote(word) if word else "" for word in words)))
    return {"_PERFDIFF_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words))}


def completed(folder: Path, *words: str) -> list[str]:
    """Return what bash is offered behind some words."""
    return asked(folder, by_bash(words))


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Answers:
    """Answer a shell's question as `asked` does, in this process."""

    def told(cache: Path, question: Mapping[str, str]) -> list[str]:
        for name, value in {"PERFDIFF_CACHE": str(cache), **question}.items():
            monkeypatch.setenv(name, value)
        cli.main()
        out, err = capfd.readouterr()
        assert err == ""
        return out.splitlines()

    return told


def described(folder: Path, line: str) -> dict[str, str]:
    """Return what other shells are offered at the end of a line, with its descriptions."""
    lines = asked(folder, {"_PERFDIFF_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": line})
    return {value: says for value, _, says in (line.partition("\t") for line in lines)}


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("lo",), ["log"]),
        (("cache", "pr"), ["prune"]),
        (("cache", "prune", "--da"), ["--days"]),
        (("log", "insert", "--si"), ["--since"]),
        (("main", "HEAD", "--sav"), ["--save"]),
        (("--repo", ".", "log", "insert", "--si"), ["--since"]),
        (("log", "--format", "s"), ["svg"]),
        (("log", "--format=s"), ["--format=svg"]),
        (("fea",), ["feature/slow", "feature/slower"]),
        (("main", "v"), ["v1.0"]),
        (("main..v",), ["main..v1.0"]),
        (("main...feature/slowe",), ["main...feature/slower"]),
        (("bisect", "v1.0", "mai"), ["main"]),
        (("explain", "list_fill", "v"), ["v1.0"]),
        (("log", "list_fill", "v1.0", "mai"), ["main"]),
        (("log", "list_fill", "--since", "v"), ["v1.0"]),
        (("bisect-step", "--good", "v"), ["v1.0"]),
        (("--workload", ""), ["small sizes", "large"]),
        (("trends", "--workload", "l"), ["large"]),
        (("explain", ""), ["list_fill", "list::insert(int)", "list::insert(char const*, int)", "src/a.c:weigh", "src/b.c:weigh"]),
        (("explain", "src/list.c:"), ["src/list.c:list_fill"]),
        (("accept", ""), ["list_fill", "list::insert"]),
        (("log", "list_"), ["list_fill"]),
        (("bisect", "main", "HEAD", "--function", "list_"), ["list_fill"]),
        (("annotate", "--function", "src/b"), ["src/b.c:weigh"]),
        (("--output", ""), []),
        (("main", "HEAD", "--", "ma"), []),
        (("main", "HEAD", "--nonsense", "--sav"), ["--save"]),
    ],
)
def test_what_fits_is_offered(
    checkout: Path, answers: Answers, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], offered: list[str]
) -> None:
    monkeypatch.chdir(checkout)
    assert answers(checkout.parent / "cache", by_bash(words)) == offered


def test_the_first_word_may_be_a_command_or_a_revision(checkout: Path) -> None:
    offered = completed(checkout, "")
    assert {"explain", "cache", "HEAD", "main", "v1.0", "feature/slow", HOSTILE} < set(offered)


def test_recent_commits_are_offered_by_the_beginning_of_their_names(checkout: Path) -> None:
    whole = git(checkout, "rev-parse", "HEAD")
    short = git(checkout, "rev-parse", "--short", "HEAD")
    assert completed(checkout, whole[:5]) == [short]
    assert completed(checkout, whole[:20]) == [whole]
    assert completed(checkout, f"v1.0..{whole[:5]}") == [f"v1.0..{short}"]


def test_values_have_descriptions_without_control_characters(checkout: Path) -> None:
    assert described(checkout, "perfdiff v1") == {"v1.0": "tag"}
    assert described(checkout, "perfdiff --workload l") == {"large": "./prog 2"}
    assert described(checkout, "perfdiff explain src/b") == {"src/b.c:weigh": "not measured"}
    short = git(checkout, "rev-parse", "--short", "v1.0")
    assert described(checkout, f"perfdiff {short}") == {short: "first [31m: one"}


def test_what_is_elsewhere_is_offered_where_the_line_says_so(checkout: Path, tmp_path: Path) -> None:
    (tmp_path / "other.toml").write_text(TEXT.replace("large", "larger"))
    assert completed(tmp_path, "--repo", str(checkout), "v") == ["v1.0"]
    assert completed(tmp_path, f"--repo={checkout}", "v") == ["v1.0"]
    assert completed(checkout, "--config", str(tmp_path / "other.toml"), "--workload", "l") == ["larger"]
    cache = str(checkout.parent / "cache")
    assert completed(tmp_path, "explain", "--repo", str(checkout), "--cache", cache, "list_") == ["list_fill"]


@pytest.mark.parametrize("words", [("x",), ("--workload", ""), ("explain", ""), ("accept", "x"), ("main..",), ("explain", "f", "x")])
@pytest.mark.parametrize("place", ["outside", "broken", "removed", "damaged"])
def test_where_nothing_can_be_read_nothing_is_offered_nor_said(
    tmp_path: Path, answers: Answers, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], place: str
) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    if place == "broken":
        git(folder, "init", "-q")
        (folder / "perfdiff.toml").write_bytes(b"[[workload]\nname = \xff")
        (folder / ".git" / "HEAD").write_text("nonsense")
    if place == "damaged":
        git(folder, "init", "-q")
        (tmp_path / "cache").mkdir()
        (tmp_path / "cache" / f"names-{find_repository(folder).name}").write_text('[["a"]]')
    if place == "removed":
        folder.rmdir()
    line = shlex.join(["perfdiff", *words]) if words[-1] else f"perfdiff {' '.join(words)}"
    assert answers(tmp_path / "cache", {"_PERFDIFF_COMPLETE": "complete_fish", "_TYPER_COMPLETE_ARGS": line}) == []


@pytest.mark.parametrize("words", [("explain", ""), ("",), ("--workload", "")])
def test_an_answer_takes_half_a_second_at_most(checkout: Path, words: tuple[str, ...]) -> None:
    def answered() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert completed(checkout, *words)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    # CPU time, and the best of some: other work on the machine only ever adds.
    assert min(answered() for _ in range(5)) < SECONDS


def test_a_comparison_leaves_the_names_of_its_functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = findings()
    monkeypatch.setattr(pipeline, "measured", lambda *_: None)
    monkeypatch.setattr(pipeline, "judges", lambda *_: None)
    monkeypatch.setattr(pipeline, "judged", lambda *_: Outcome(told, lambda *_: None))
    request = first_two(tmp_path, [{"perfdiff.toml": f"{TEXT}[build]\ncommand = 'true'\n", "a": "1"}, {"a": "2"}])
    pipeline.compare(request, Silent())
    named = latest.functions(request.cache, find_repository(request.repository).name)
    expected = [(finding.info.name, finding.info.file, finding.verdict.value) for finding in told.functions]
    assert [(function.name, function.file, function.verdict) for function in named] == [
        *expected,
        *((skip.name, skip.file, None) for skip in told.skipped),
    ]
    assert not [path for path in holdings.strangers(request.cache) if path.name.startswith("names-")]


def bash(folder: Path, line: str, call: str = "COMP_LINE=$LINE COMP_POINT=${#LINE}") -> list[str]:
    """Return what stands in COMPREPLY when bash completes a line; bash makes words of it as its reader does."""
    program = f"""
    set -eu
    COMP_LINE=
    eval "$(perfdiff completion bash)"
    read -ra COMP_WORDS <<< "$(printf %s "$LINE" | sed 's/[:=]/ & /g')"
    [[ "$LINE" != *[\\ :=] ]] || COMP_WORDS+=("")
    COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
    {call}
    _perfdiff_completion perfdiff
    [[ ! -v COMPREPLY[0] ]] || printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(
        ["bash", "--norc", "-c", program], env=variables(folder) | {"LINE": line}, cwd=folder, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("perfdiff ex", ["explain"]),
        ("perfdiff feature/slo", ["feature/slow", "feature/slower"]),
        ("perfdiff v1.0..mai", ["v1.0..main"]),
        ("perfdiff --workload=l", ["large"]),
        ("perfdiff --workload sm", ["small\\ sizes"]),
        ("perfdiff explain src/list.c:li", ["list_fill"]),
        ("perfdiff explain src/list.c:", ["list_fill"]),
        ("perfdiff explain list::insert\\(i", ["insert\\(int\\)"]),
        ("perfdiff -o no", []),
    ],
)
def test_bash_gets_what_stands_in_place_of_its_last_word(checkout: Path, line: str, offered: list[str]) -> None:
    assert bash(checkout, line) == offered


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_is_answered_where_only_words_are_given(checkout: Path) -> None:
    assert bash(checkout, "perfdiff explain list_", call="") == ["list_fill"]
    assert bash(checkout, "perfdiff main ", call="COMP_WORDS=(perfdiff main '') COMP_CWORD=2")[:2] == ["HEAD", "feature/slow"]


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize("mark", ["", '"', "'"])
def test_a_hostile_name_is_a_word_of_the_line_and_nothing_else(checkout: Path, mark: str) -> None:
    words = f"COMP_CWORD=1 COMP_WORDS=(perfdiff {shlex.quote(f'{mark}odd')})"
    [written] = bash(checkout, f"perfdiff {mark}odd", call=f"COMP_LINE=$LINE COMP_POINT=${{#LINE}} {words}")
    read = subprocess.run(["bash", "-c", f"printf %s {mark}{written}{mark}"], cwd=checkout, capture_output=True, text=True, check=True)
    assert read.stdout == HOSTILE
    assert not (checkout / "there").exists()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_that_the_shell_reads(shell: str) -> None:
    done = subprocess.run([sys.executable, "-m", "perfdiff", "completion", shell], capture_output=True, text=True, check=True)
    assert f"_PERFDIFF_COMPLETE=complete_{shell}" in done.stdout
    assert "2>/dev/null" in done.stdout
    if shutil.which(shell):
        assert subprocess.run([shell, "-n"], input=done.stdout, text=True, check=False).returncode == 0


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_offers_functions_with_the_verdicts_on_them(checkout: Path) -> None:
    program = "perfdiff completion fish | source; complete --do-complete 'perfdiff accept list_'"
    command = ["fish", "--no-config", "-c", program]
    done = subprocess.run(command, env=variables(checkout), cwd=checkout, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["list_fill\tsrc/list.c"]
