"""`--ticket DIR`: everything that a ticket needs, nothing that is private, and whole or not at all."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from hypothesis import given

import findings as made
import hostile_texts
import runtimes
from perfdiff import cli, pipeline
from perfdiff.analysis.findings import Findings, Ratio, Verdict
from perfdiff.analysis.telling.minimal import cheapest
from perfdiff.cli import ticket as folder_of
from perfdiff.config import BuildConfig, Config, WorkloadConfig
from perfdiff.errors import UsageError
from perfdiff.fuzzing.families import plain
from perfdiff.fuzzing.findings import SearchFindings, SlowInput
from perfdiff.fuzzing.trials import CorpusEntry, PairedRun
from perfdiff.outcome import Outcome
from perfdiff.progress import Progress
from perfdiff.records.differences import SkippedFunction
from perfdiff.records.schema import Note, Revision, Side, Workload
from perfdiff.report import drawing, ticket
from perfdiff.report.document import build
from perfdiff.report.sentences.catalogue import say
from perfdiff.report.ticket import Ticket
from perfdiff.request import Request
from programs import cases, git, repository
from test_schemas import VALIDATORS

PNG = b"\x89PNG\r\n\x1a\n"
SCRIPT = "#!/bin/sh\nperfdiff a b --config perfdiff-ticket.toml\n"
PLANTED = "planted-hunter22"
BY_SHAPE = "Zx81Planted0000Random9999Qq"


def nothing(function: int, side: Side) -> None:
    """Stand in for samples of which no calls were kept."""


def with_points(findings: Findings) -> Findings:
    """Return findings whose first function tells its ratio at each workload point."""
    first = findings.functions[0]
    wall = replace(first.metrics["wall_ns"], points={0: Ratio(1.01, 0.9, 1.1, 10, 10), 1: Ratio(30.0, 29.0, 31.0, 10, 10)})
    return replace(findings, functions=(replace(first, metrics={**first.metrics, "wall_ns": wall}), *findings.functions[1:]))


def written(findings: Findings, **given: object) -> dict[str, bytes]:
    about = Ticket(findings, nothing, SCRIPT, {"CFLAGS": "-O2"}, cheapest(findings))
    return dict(ticket.files(replace(about, **given)))  # type: ignore[arg-type]


def improved() -> Findings:
    return made.findings(Verdict.IMPROVEMENT, made.others()[:1])


def test_a_ticket_holds_report_plots_data_and_commands() -> None:
    files = written(with_points(made.findings()), samples=made.Samples(made.findings()))
    pictures = {name for name in files if name.startswith("plots/")}
    assert files.keys() - pictures == {"ticket.md", "report.html", "report.json", "reproduce.sh"}
    assert {name.partition("-")[2] for name in pictures} >= {"insert.svg", "insert.png"}
    assert files["reproduce.sh"].decode() == SCRIPT
    VALIDATORS["report-1"].validate(json.loads(files["report.json"]))
    assert files["report.html"].startswith(b"<!DOCTYPE html>")
    for name in pictures:
        if name.endswith(".png"):
            assert files[name].startswith(PNG)
        else:
            assert ET.fromstring(files[name]).tag.endswith("svg")


def test_the_text_says_how_to_see_it_behind_the_answer() -> None:
    said = written(with_points(made.findings()), at_point="perfdiff a b --workload sort --param n=10000")["ticket.md"].decode()
    assert said.startswith("## Regression: insert")
    assert "The cheapest workload point that shows it: `sort n=10000`, where `insert` costs ×30 \\[29, 31\\], 95 % interval" in said
    assert "; a run of both sides takes 21 ms." in said
    assert "```sh\nperfdiff a b --workload sort --param n=10000\n```" in said
    assert "```sh\n./bench/sort 10000\n```" in said
    assert f"```sh\n{SCRIPT}```" in said
    assert "- `CFLAGS`: `-O2`" in said
    assert said.index("### How to see it") < said.index("|function|")
    assert "- **compiler**: gcc 12.2.0 -O2" in said


def test_a_difference_that_no_point_shows_alone_is_said_to_be_so() -> None:
    said = written(made.findings())["ticket.md"].decode()
    assert "No workload point shows the difference beyond the threshold by itself; all of them together do." in said


@pytest.mark.parametrize(
    ("findings", "answer"),
    [
        (improved(), "## Improvement"),
        (made.findings(Verdict.UNCHANGED, made.others()[1:2]), "## No regression"),
        (made.findings(Verdict.INCONCLUSIVE, made.others()[2:3]), "## Inconclusive"),
        (made.findings(Verdict.UNCHANGED, ()), "## No regression"),
    ],
    ids=["improvement", "unchanged", "inconclusive", "nothing measured"],
)
def test_every_answer_has_a_ticket(findings: Findings, answer: str) -> None:
    files = written(findings)
    assert files["ticket.md"].decode().startswith(answer)
    drawn = [section.name for section in build(findings, made.Samples(findings)).functions if section.plot]
    assert [name.partition("-")[2] for name, _ in ticket._plots(build(findings, made.Samples(findings)))] == drawn
    assert ("cheapest workload point" in files["ticket.md"].decode()) is False


def test_the_text_fits_into_an_issue_whatever_is_attached() -> None:
    script = "#!/bin/sh\n" + "# a long configuration\n" * 5_000
    said = written(made.many(60), script=script)["ticket.md"]
    assert len(said) <= 60_000
    assert b"Left out to keep this under 60,000 bytes: 1 part of what stands behind the answer" in said


def test_of_many_functions_the_first_ten_are_drawn() -> None:
    names = [name for name, _ in ticket._plots(build(made.many(14), made.Samples(made.many(14))))]
    assert names == [f"{number}-accumulate_weighted_values_of_block_{number}" for number in range(1, 11)]


def test_the_same_findings_give_the_same_files() -> None:
    drawn = made.findings(functions=(made.regressed(),))
    assert written(drawn, samples=made.Samples(drawn)) == written(drawn, samples=made.Samples(drawn))


@hostile_texts.few
@given(hostile_texts.findings())
def test_names_of_files_are_plain_and_different_whatever_functions_are_called(findings: Findings) -> None:
    names = [name for name, _ in ticket._plots(build(findings, made.Samples(findings)))]
    assert names
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[0-9]+-[A-Za-z0-9_.-]*", name) and len(name) < 100 for name in names)


def test_pictures_draw_hostile_texts_as_they_stand() -> None:
    plot = build(made.findings(), made.Samples(made.findings())).functions[0].plot
    assert plot is not None
    hostile = replace(plot, title="$\\frac{x$ ^_" * 40, x_label="$a", y_label="_nolegend_")
    assert drawing.draw(hostile).png.startswith(PNG)


# The command line, with a stand-in for the pipeline.


@dataclass
class Comparison:
    """Stands in for the pipeline and answers with `findings`."""

    findings: Findings
    asked: Request | None = None

    def compare(self, request: Request, _: Progress) -> Outcome:
        self.asked = request
        return Outcome(self.findings, made.Samples(self.findings))


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a checkout in a home, in which the test stands."""
    home = tmp_path / "jane"
    project = home / "project"
    project.mkdir(parents=True)
    git(project, "init", "-q")
    (project / "Makefile").touch()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(project)
    monkeypatch.setenv("PERFDIFF_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    return project


@pytest.fixture
def run(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Return a call of the command line with findings to answer with."""

    def call(findings: Findings, *arguments: str, quiet: bool = True) -> int:
        monkeypatch.setattr(pipeline, "compare", Comparison(findings).compare)
        with pytest.raises(SystemExit) as left:
            cli.main([*(["-q"] if quiet else []), "a", "b", *arguments])
        return int(left.value.code or 0)

    return call


def everything(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def private(home: Path) -> Findings:
    """Return findings into which secrets and a home came by every way there is."""
    whole = with_points(made.findings())
    said = f"{home}/project said {PLANTED} and {BY_SHAPE}"
    first = whole.functions[0]
    source = replace(first.info.head, text=f"{first.info.head.text}/* {said} */\n") if first.info.head else None
    return replace(
        whole,
        sentence=made.worded(f"{say(whole.sentence)} {said}"),
        base=Revision(whole.base.rev, whole.base.commit, said),
        workloads=(Workload("sort", f"./bench/sort {{n}} --key {PLANTED}", ("n",)),),
        points=tuple(replace(point, command=f"{home}/bench/sort {point.parameters['n']} {PLANTED}") for point in whole.points),
        functions=(replace(first, happened=made.worded(said), info=replace(first.info, head=source)), *whole.functions[1:]),
        skipped=(SkippedFunction("f", f"{home}/f.c", said),),
        notes=(Note("output-differs", said),),
        environment=replace(whole.environment, flags=(f"-O2 -I{home}/include",)),
    )


def test_secrets_and_homes_stay_out_of_every_file(run: Callable[..., int], checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = checkout.parent
    monkeypatch.setenv("SERVICE_TOKEN", PLANTED)
    monkeypatch.setenv("HARMLESS_NAME", BY_SHAPE)
    monkeypatch.setenv("CFLAGS", f"-O2 -I{home}/include -DKEY={PLANTED}")
    monkeypatch.setenv("UNRELATED_VARIABLE", "unrelated-value-of-a-variable")
    command = ("./bench/sort", "{n}", "--password", "given-by-hand", f"{home}/data", PLANTED)
    assert run(private(home), "--build", f"make DIR={home} KEY={BY_SHAPE}", "--param", "n=1,2", "--ticket", "t", "--", *command) == 1
    files = everything(checkout / "t")
    assert len(files) > 5
    for name, content in files.items():
        for secret in (PLANTED, BY_SHAPE, "given-by-hand", "unrelated-value-of-a-variable", str(home)):
            assert secret.encode() not in content, f"{secret} in {name}"
    said = files["ticket.md"].decode()
    assert "- `CFLAGS`: `-O2 -I~/include -DKEY=$SERVICE_TOKEN`" in said
    assert 'command = "make DIR=~ KEY=$HARMLESS_NAME"' in files["reproduce.sh"].decode()
    assert "--password …" in files["reproduce.sh"].decode()
    report = json.loads(files["report.json"])
    assert report["workloads"][0]["command"] == "./bench/sort {n} --key $SERVICE_TOKEN"
    assert report["functions"][0]["headline"] == "~/project said $SERVICE_TOKEN and $HARMLESS_NAME"


def test_a_secret_that_one_text_shows_stands_in_no_file(run: Callable[..., int], checkout: Path) -> None:
    whole = with_points(made.findings())
    first = replace(whole.functions[0], happened=made.worded('conf is {"password": "pl\\"anted-22"}'))
    shown = replace(
        whole,
        functions=(first, *whole.functions[1:]),
        sentence=made.worded("sent pl&quot;anted-22"),
        skipped=(SkippedFunction("f", "a.c", 'pl"anted-22'),),
    )
    assert run(shown, "--ticket", "t", "--", "./bench", "--note", 'pl"anted-22') == 1
    for name, content in everything(checkout / "t").items():
        assert b"anted-22" not in content, name
    assert json.loads((checkout / "t" / "report.json").read_text())["sentence"] == "sent …"


def test_inputs_that_a_search_found_go_with_the_ticket_but_for_what_is_private(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVICE_TOKEN", PLANTED)
    found = made.findings()
    searched = searched_inputs(checkout, {"a-1.md": b"[[[]]]", "a-2.md": f"[{PLANTED}]".encode()})
    monkeypatch.setattr(pipeline, "compare", lambda *_: Outcome(found, made.Samples(found), inputs=searched))
    with pytest.raises(SystemExit):
        cli.main(["-q", "a", "b", "--ticket", "t", "--", "./a"])
    files = everything(checkout / "t")
    assert files["inputs/a-1.md"] == b"[[[]]]"
    assert b"inputs/a-1.md" in files["ticket.md"]
    (shown,) = json.loads(files["report.json"])["search"]["inputs"]
    assert [file["file"] for file in shown["files"]] == ["inputs/a-1.md"]
    for name, content in files.items():
        assert PLANTED.encode() not in content, name
        assert str(checkout).encode() not in content, name


def searched_inputs(folder: Path, contents: dict[str, bytes]) -> SearchFindings:
    """Return what a search found in files of a folder."""
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    counts = {side: np.array([4], dtype=np.int64) for side in Side}
    trial = PairedRun(counts, dict.fromkeys(Side, 1.0), dict.fromkeys(Side, 0), {})
    entry = CorpusEntry(plain("w", f"[{PLANTED}]".encode(), {}), 1, trial, 2.0)
    files = dict(enumerate((folder / name for name in contents), 1))
    shown = SlowInput(entry, WorkloadConfig("w", inputs=tuple(map(str, files.values()))), files, None)
    return SearchFindings({}, (shown,), Verdict.REGRESSION, 10, 1.0, 2, 1.0, 3, 4096, 2.0)


def test_the_folder_is_no_part_of_a_file_that_was_asked_for_as_well(
    run: Callable[..., int], checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(made.findings(), "--ticket", "t", "-o", "r.json", "--", "./a", quiet=False) == 1
    assert capsys.readouterr().err.splitlines()[-2:] == ["perfdiff: written to r.json", "perfdiff: ticket written to t"]
    assert (checkout / "t" / "ticket.md").is_file()
    assert (checkout / "r.json").is_file()


def test_a_project_in_a_folder_of_its_checkout_is_named_by_it(run: Callable[..., int], checkout: Path) -> None:
    (checkout / "sub").mkdir()
    (checkout / "sub" / "perfdiff.toml").write_text('[build]\ncommand = "make"\n[[workload]]\nname = "a"\ncommand = "./a"\n')
    assert run(made.findings(), "--repo", "sub", "--ticket", "t") == 1
    assert "# In the folder sub of a checkout" in (checkout / "t" / "reproduce.sh").read_text()


@pytest.fixture
def committed(checkout: Path) -> Path:
    """Return the checkout with a commit and, on it, changes of every kind."""
    (checkout / "sort.c").write_text("int slow;\n")
    git(checkout, "add", "-A")
    git(checkout, "commit", "-q", "-m", "One")
    (checkout / "sort.c").write_text("int fast;\n")
    (checkout / "bench").mkdir()
    (checkout / "bench" / "bench.c").write_text(f'char *key = "{PLANTED}";\n')
    (checkout / "picture.png").write_bytes(PNG + bytes(20))
    return checkout


def of_working_tree() -> Findings:
    return replace(made.findings(), head=Revision("working tree", None, "uncommitted changes on 1 One"))


def reproduced(ticket: Path, checkout: Path) -> Path:
    """Run the script of a ticket in a fresh clone, with a stand-in for perfdiff that says where it ran; return that place."""
    shim = ticket.parent / "bin" / "perfdiff"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\npwd > "{shim.parent}/place"\n')
    shim.chmod(0o755)
    git(checkout, "clone", "-q", ".", str(ticket.parent / "clone"))
    environment = {**os.environ, "PATH": f"{shim.parent}:{os.environ['PATH']}"}
    subprocess.run(["sh", str(ticket / "reproduce.sh")], cwd=ticket.parent / "clone", env=environment, check=True, capture_output=True)
    return Path((shim.parent / "place").read_text().strip())


@pytest.mark.parametrize("base", ["HEAD", "HEAD^{/[..]*One}"])
def test_uncommitted_changes_go_with_the_ticket_and_are_applied_by_its_script(
    run: Callable[..., int], committed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, base: str
) -> None:
    monkeypatch.setenv("SERVICE_TOKEN", PLANTED)
    given = ["--repo", str(committed), "--build", "make", "--ticket", str(tmp_path / "t"), "--", "./a"]
    monkeypatch.setattr(pipeline, "compare", Comparison(of_working_tree()).compare)
    with pytest.raises(SystemExit):
        cli.main(["-q", base, *given])
    script = (tmp_path / "t" / "reproduce.sh").read_text()
    assert "# Not attached: files that are no text: picture.png\n" in script
    assert "Secrets or homes were taken out of changes.patch" in script
    assert PLANTED not in (tmp_path / "t" / "changes.patch").read_text()
    place = reproduced(tmp_path / "t", committed)
    assert (place / "sort.c").read_text() == "int fast;\n"
    assert (place / "bench" / "bench.c").read_text() == 'char *key = "$SERVICE_TOKEN";\n'


def test_files_laid_over_two_commits_go_with_the_ticket_and_nothing_else(run: Callable[..., int], committed: Path, tmp_path: Path) -> None:
    (committed / "bench" / "bench.o").write_text("object")
    (committed / "data").mkdir()
    (committed / "data" / "big.txt").touch()
    (committed / ".git" / "info" / "exclude").write_text("data/\n")
    text = '[build]\ncommand = "make"\noverlay = ["bench", "data"]\n[[workload]]\nname = "a"\ncommand = "./a"\n'
    (committed / "perfdiff.toml").write_text(text)
    assert run(made.findings(), "--ticket", str(tmp_path / "t")) == 1
    assert "# Not attached: files that git ignores: data/big.txt\n" in (tmp_path / "t" / "reproduce.sh").read_text()
    place = reproduced(tmp_path / "t", committed)
    assert (place / "bench" / "bench.c").exists()
    assert (place / "sort.c").read_text() == "int slow;\n"


def test_changes_too_large_to_attach_are_named(
    run: Callable[..., int], committed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (committed / "table.c").write_text("int number;\n" * 100_000)
    monkeypatch.setattr(pipeline, "compare", Comparison(of_working_tree()).compare)
    with pytest.raises(SystemExit):
        cli.main(["-q", "HEAD", "--build", "make", "--ticket", str(tmp_path / "t"), "--", "./a"])
    assert not (tmp_path / "t" / "changes.patch").exists()
    script = (tmp_path / "t" / "reproduce.sh").read_text()
    assert ": check that out first.\n" in script
    assert re.search(r"# Not attached: uncommitted changes on [0-9a-f]{40}, whose patch has 1.3 MB\n", script)


def test_an_earlier_ticket_is_no_change_of_the_checkout(committed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git(committed, "add", "-A")
    git(committed, "commit", "-q", "-m", "Two")
    monkeypatch.setattr(pipeline, "compare", Comparison(of_working_tree()).compare)
    for _ in range(2):
        with pytest.raises(SystemExit):
            cli.main(["-q", "HEAD", "--build", "make", "--ticket", "t", "--", "./a"])
    assert not (committed / "t" / "changes.patch").exists()


def test_an_earlier_ticket_is_replaced_as_a_whole(run: Callable[..., int], checkout: Path) -> None:
    assert run(made.findings(), "--ticket", "t", "--", "./a") == 1
    assert (checkout / "t" / "plots" / "1-insert.png").exists()
    assert run(improved(), "--ticket", "t", "--", "./a") == 0
    assert [path.name for path in sorted((checkout / "t" / "plots").iterdir())] == ["1-table_find.png", "1-table_find.svg"]
    assert (checkout / "t" / "ticket.md").read_text().startswith("## Improvement")
    assert sorted(path.name for path in checkout.iterdir()) == [".git", "Makefile", "t"]


@pytest.mark.parametrize("holds", ["notes.txt", "report.json", "ticket.md/notes.txt"])
def test_a_folder_that_holds_anything_else_is_refused_and_left_alone(
    run: Callable[..., int], checkout: Path, capsys: pytest.CaptureFixture[str], holds: str
) -> None:
    kept = checkout / "t" / holds
    kept.parent.mkdir(parents=True)
    kept.write_text("mine")
    if "/" in holds:
        (checkout / "t" / "mine").touch()
    assert run(made.findings(), "--ticket", "t", "--", "./a") == 2
    assert "[ticket-in-the-way]" in capsys.readouterr().err
    assert kept.read_text() == "mine"


def test_a_file_or_link_in_the_way_is_refused(checkout: Path) -> None:
    (checkout / "file").write_text("mine")
    (checkout / "empty").mkdir()
    (checkout / "link").symlink_to("empty")
    for name in ("file", "link", "nowhere/t", "file/t"):
        with pytest.raises(UsageError):
            folder_of.check(checkout / name)
    folder_of.check(checkout / "empty")
    assert sorted(path.name for path in checkout.iterdir()) == [".git", "Makefile", "empty", "file", "link"]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_ticket_that_cannot_be_finished_leaves_nothing(
    checkout: Path, run: Callable[..., int], monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def breaks(plot: object) -> None:
        raise error

    monkeypatch.setattr(ticket, "draw", breaks)
    assert run(made.findings(), "--ticket", "t", "--", "./a") == (2 if isinstance(error, OSError) else 130)
    assert sorted(path.name for path in checkout.iterdir()) == [".git", "Makefile"]


def test_an_earlier_ticket_stays_where_the_next_cannot_be_finished(
    checkout: Path, run: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(made.findings(), "--ticket", "t", "--", "./a") == 1
    before = everything(checkout / "t")
    monkeypatch.setattr(ticket, "draw", lambda plot: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    assert run(improved(), "--ticket", "t", "--", "./a") == 2
    assert everything(checkout / "t") == before


@pytest.mark.parametrize(
    ("guessed_from", "built", "command", "languages"),
    [
        ("CMakeLists.txt", "cmake -DSHOP_TESTS=ON", "cmake -DSHOP_TESTS=ON", {}),
        ("CMakeLists.txt", "", "", {"python": None}),
        ("CMakeLists.txt", None, "cmake", {}),
        (None, "cmake -DSHOP_TESTS=ON", "cmake", {}),
    ],
    ids=["with options", "of another language", "not known", "of the user"],
)
def test_a_ticket_has_the_guess_that_ran_and_the_options_that_it_was_built_with(
    guessed_from: str | None, built: str | None, command: str, languages: Mapping[str, object]
) -> None:
    other = Config(BuildConfig(""), (), languages={"python": None})
    config = Config(BuildConfig("cmake"), (), build_guessed_from=guessed_from, otherwise=(other,))
    experiment: Any = SimpleNamespace(build=built)
    used = folder_of.as_built(config, Outcome(made.findings(), nothing, experiment))
    assert (used.build.command, used.languages) == (command, languages)


@pytest.mark.integration
def test_the_script_of_a_ticket_asks_the_same_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache answers it, so that everything that measuring depends on must be the same."""
    case = next(case for case in cases() if case.name == "list-append")
    project = repository(case, tmp_path / "program")
    shim = tmp_path / "bin" / "perfdiff"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\nexec {sys.executable} -m perfdiff "$@"\n')
    shim.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{shim.parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(Path(cli.__file__).parent.parent.parent),
        "PERFDIFF_CACHE": str(runtimes.lent_to(tmp_path / "cache")),
        "CFLAGS": "-DUNUSED='a b'",
    }

    def perfdiff(*command: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, cwd=project, env={**environment, **more}, capture_output=True, text=True, check=False)

    first = perfdiff("perfdiff", "base", "head", "--runs", "4", "--ticket", str(tmp_path / "t"), PERFDIFF_COUNTERS_SOFTWARE="false")
    assert first.returncode == 1, first.stderr
    shutil.rmtree(project / ".perfdiff", ignore_errors=True)
    again = perfdiff("sh", str(tmp_path / "t" / "reproduce.sh"))
    assert again.returncode == 1, again.stderr
    assert "building" in first.stderr
    assert "building" not in again.stderr
    assert again.stdout.splitlines()[2:] == first.stdout.splitlines()[2:]
    said = (tmp_path / "t" / "ticket.md").read_text()
    point = re.search(r"^(CFLAGS=.* perfdiff .* --workload prog --param n=\d+)$", said, flags=re.MULTILINE)
    assert point is not None
