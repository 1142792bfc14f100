"""What a user can get wrong, and what can go wrong around perfdiff: a clear message, the right exit code, and nothing left behind."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import runtimes
from perfdiff import cli
from programs import git
from test_revisions import ALLOW_FILE, commit, fingerprint

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parent.parent
PATIENCE_S = 60.0

PROGRAM = """\
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static long work(long n) { long s = 0; for (long i = 0; i < n; i++) s += i ^ s; return s; }
static long unused(long n) { return n + ADDED; }
int main(int argc, char **argv)
{
	long n = atol(argv[1]);
	if (argc > 2)
		return unused(n) == 2;
	BODY
	printf("%ld\\n", n);
	return work(n) == 1;
}
"""
MAKEFILE = "prog: main.c\n\t$(CC) -O1 -o prog main.c\n"
WORKLOAD = ("--", "./prog 20000")
QUICK = ("--runs", "2", "--build", "make")


def program(body: str = "", *, added: int = 1) -> str:
    return PROGRAM.replace("BODY", body).replace("ADDED", str(added))


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str

    def refuses(self, code: int, slug: str, *words: str) -> None:
        """Assert that this is an error of this kind, told with these words, and no traceback or verdict."""
        assert (self.code, self.out) == (code, ""), self.err
        assert f"[{slug}]" in self.err
        assert "Traceback" not in self.err
        for word in words:
            assert word in self.err


@dataclass(frozen=True)
class Place:
    """A repository with its own cache."""

    repository: Path
    cache: Path
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    def arguments(self, *given: str) -> list[str]:
        """Return a command line for this place."""
        where = ["--cache", str(self.cache)]
        if "cache" not in given:
            where += ["--repo", str(self.repository)]
        return [given[0], *where, *given[1:]] if given[0] in cli.COMMANDS else [*where, *given]

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a perfdiff of its own."""
        command = [sys.executable, "-m", "perfdiff", *self.arguments(*arguments)]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.started.append(process)
        return process

    def close(self) -> None:
        """End what was started and did not end by itself."""
        for process in self.started:
            if process.poll() is None:
                process.terminate()
            process.communicate()

    def leftovers(self) -> list[Path]:
        """Return what a perfdiff that is gone should have taken with it."""
        found = [*self.cache.glob("room"), *self.cache.glob("experiments/.*"), *self.cache.glob("snapshots/tmp*")]
        found += [tree for tree in self.cache.glob("trees/*") if not (tree / "finished").exists()]
        found += [folder for folder in self.cache.glob("runtime/*") if len(folder.name) < len("runtime-") + 24]
        return found + [Path("/proc", str(process)) for process in processes(self.cache)]


def processes(folder: Path) -> list[int]:
    """Return the processes that work in a folder."""
    found = []
    for link in Path("/proc").glob("[0-9]*/cwd"):
        try:
            inside = link.readlink().is_relative_to(folder)
        except OSError:  # it has ended
            continue
        if inside:
            found.append(int(link.parent.name))
    return found


def repository(folder: Path, base: str, head: str, files: Mapping[str, str] | None = None) -> Path:
    """Make a repository with two versions of main.c, tagged `base` and `head`."""
    folder.mkdir()
    git(folder, "init", "-q")
    for side, text in (("base", base), ("head", head)):
        commit(folder, side, {"main.c": text, "Makefile": MAKEFILE, ".gitignore": "prog\n", **(files or {})})
        git(folder, "tag", side)
    return folder


@pytest.fixture(scope="module", autouse=True)
def _every_stage_is_short() -> Iterator[None]:
    """Let every comparison go through all its stages, and spend little time in each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PERFDIFF_MEASURE_THOROUGH", "true")
        patch.setenv("PERFDIFF_MEASURE_BUDGET_S", "1")
        patch.setenv("PERFDIFF_MEASURE_LAYOUTS", "2")
        patch.setenv("PERFDIFF_COUNTERS_SOFTWARE", "false")
        yield


@pytest.fixture
def make_place(tmp_path: Path) -> Iterator[Callable[..., Place]]:
    """Return a call that makes a place of two versions, and check that nothing is left of what a test did in it."""
    made: list[tuple[Place, object]] = []

    def make(base: str, head: str, files: Mapping[str, str] | None = None) -> Place:
        place = Place(repository(tmp_path / "project", base, head, files), runtimes.lent_to(tmp_path / "cache"))
        made.append((place, fingerprint(place.repository)))
        return place

    yield make
    for place, before in made:
        place.close()
        assert place.leftovers() == []
        assert fingerprint(place.repository) == before


@pytest.fixture
def place(make_place: Callable[..., Place]) -> Place:
    """Return a place whose head adds a number before it does the same."""
    return make_place(program(), program("n += 1;"))


@pytest.fixture
def perfdiff(capfd: pytest.CaptureFixture[str]) -> Iterator[Callable[..., Answer]]:
    """Return a call of the command line in this process, which it leaves as it was."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    handlers, hook = {number: signal.getsignal(number) for number in numbers}, sys.excepthook

    def call(place: Place, *arguments: str) -> Answer:
        capfd.readouterr()
        with pytest.raises(SystemExit) as left:
            cli.main(place.arguments(*arguments))
        return Answer(int(left.value.code or 0), *capfd.readouterr())

    yield call
    sys.excepthook = hook
    for number, handler in handlers.items():
        signal.signal(number, handler)


Run = Callable[..., Answer]
Make = Callable[..., Place]


# Revisions and repositories


def test_unknown_revision_offers_the_nearest(place: Place, perfdiff: Run) -> None:
    perfdiff(place, "base", "haed", *QUICK, *WORKLOAD).refuses(2, "unknown-revision", "'haed' is not a revision", "did you mean head?")


@pytest.mark.parametrize(
    "arguments",
    [
        ("base", "head", *QUICK, *WORKLOAD),
        ("base", "head"),
        ("base", "head", "--dry-run", "-o", "report.unknown"),
        ("explain", "work", "--build", "make"),
        ("accept", "work", "--reason", " "),
        ("annotate", "base"),
        ("log", "work", "--metric", "unknown"),
        ("profile",),
        ("trends", "base", "--format", "html", "-o", "missing/report.html"),
        ("bisect", "base", "head", "--metric", "unknown"),
        ("record",),
    ],
)
def test_folder_outside_of_any_repository_is_told_before_all_else(tmp_path: Path, perfdiff: Run, arguments: tuple[str, ...]) -> None:
    place = Place(tmp_path, tmp_path / "cache")
    perfdiff(place, *arguments).refuses(2, "not-a-repository", str(tmp_path))
    assert not list(tmp_path.iterdir())


def test_bisect_step_outside_of_any_repository_says_so_and_ends_the_search(tmp_path: Path, perfdiff: Run) -> None:
    perfdiff(Place(tmp_path, tmp_path / "cache"), "bisect-step", "--metric", "unknown").refuses(128, "not-a-repository", str(tmp_path))


def test_shallow_clone_says_how_to_deepen_it(place: Place, perfdiff: Run, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{place.repository}", "clone")
    clone = Place(tmp_path / "clone", place.cache)
    perfdiff(clone, "base", "HEAD", *QUICK, *WORKLOAD).refuses(2, "shallow-clone", "git fetch --unshallow")


def test_dirty_submodule_is_a_note_in_the_report(tmp_path: Path, perfdiff: Run) -> None:
    repository(tmp_path / "library", "int one;\n", "int two;\n")
    made = Place(repository(tmp_path / "project", program(), program("n += 1;")), runtimes.lent_to(tmp_path / "cache"))
    git(made.repository, *ALLOW_FILE, "submodule", "--quiet", "add", str(tmp_path / "library"), "lib")
    git(made.repository, "commit", "-q", "-m", "with a submodule")
    (made.repository / "lib" / "main.c").write_text("int edited;\n")
    answer = perfdiff(made, "HEAD", *QUICK, *WORKLOAD)
    assert answer.code == 0, answer.err
    assert "submodule lib has uncommitted changes" in answer.out


@pytest.mark.parametrize(
    ("line", "slug", "words"),
    [
        ("[probes]\noverheat = 0.1", "config-key", ("perfdiff.toml, line 2", "unknown key 'overheat'", "did you mean 'overhead'?")),
        ("[probes]\noverhead = 'much'", "config-value", ("perfdiff.toml, line 2", "'overhead' is \"much\"", "it must be")),
        ("[probes\n", "config-syntax", ("perfdiff.toml", "line 1")),
    ],
)
def test_configuration_error_names_file_line_and_key(make_place: Make, perfdiff: Run, line: str, slug: str, words: tuple[str, ...]) -> None:
    place = make_place(program(), program("n += 1;"), {"perfdiff.toml": line})
    perfdiff(place, "base", "head", *WORKLOAD).refuses(2, slug, *words)


# Builds


@pytest.mark.parametrize("side", ["base", "head"])
def test_failed_build_names_side_command_and_missing_header_and_shows_20_lines(make_place: Make, perfdiff: Run, side: str) -> None:
    broken = '#include "zlib-ng.h"\n' + program()
    sources = {"base": program(), "head": program("n += 1;")} | {side: broken}
    place = make_place(**sources)
    build = "seq 30 && make"
    answer = perfdiff(place, "base", "head", "--build", build, *WORKLOAD)
    answer.refuses(3, "build-failed", f"'{build}' exited 2 in {side} ({side}, ", "'zlib-ng.h' not found", "install the package", "log: ")
    detail = [line for line in answer.err.splitlines() if line.startswith("  | ")]
    assert len(detail) == 20
    assert detail[-1].startswith("  | make: *** ")


def test_missing_tool_is_named(place: Place, perfdiff: Run) -> None:
    perfdiff(place, "base", "head", "--build", "autoblorb && make", *WORKLOAD).refuses(3, "build-failed", "autoblorb: not found", "in base")


def test_no_compiler_on_path_is_told(place: Place, perfdiff: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("git", "make", "sh"):
        (tools / name).symlink_to(shutil.which(name) or name)
    monkeypatch.setenv("PATH", str(tools))
    perfdiff(place, "base", "head", *QUICK, *WORKLOAD).refuses(3, "no-compiler", "install gcc or clang")


def test_compiler_called_by_its_path_is_an_error_and_not_a_verdict(place: Place, perfdiff: Run) -> None:
    build = f"{shutil.which('gcc')} -o prog main.c"
    perfdiff(place, "base", "head", "--build", build, *WORKLOAD).refuses(3, "no-compile-commands", "absolute path", "in base")


def test_build_in_the_cache_that_is_damaged_is_told(place: Place, perfdiff: Run) -> None:
    perfdiff(place, "base", "head", *QUICK, "--", "false").refuses(3, "workload-failed")
    for file in place.cache.glob("trees/*/outcome.json"):
        file.write_text(file.read_text()[:10])
    perfdiff(place, "base", "head", *QUICK, *WORKLOAD).refuses(3, "damaged-build", "perfdiff cache verify --remove")


# Workloads


@pytest.mark.parametrize(
    ("body", "slug", "says"),
    [
        ("exit(7);", "workload-failed", "exited 7 (head"),
        ("raise(SIGSEGV);", "workload-crashed", "was killed by SIGSEGV (head"),
        ("kill(getpid(), SIGKILL);", "workload-crashed", "was killed by SIGKILL, perhaps for want of memory (head"),
        ("for (;;) pause();", "workload-timeout", "did not end within 1 s (head"),
    ],
)
def test_workload_that_fails_on_head_alone_is_neither_slower_nor_fine(
    make_place: Make, perfdiff: Run, body: str, slug: str, says: str
) -> None:
    text = '[build]\ncommand = "make"\n[[workload]]\nname = "w"\ncommand = "./prog 20000"\ntimeout_s = 1\n'
    place = make_place(program(), program(body), {"perfdiff.toml": text})
    perfdiff(place, "base", "head").refuses(3, slug, f"'./prog 20000' {says}")
    assert list(place.cache.glob("experiments/*")) == []


def test_workload_whose_program_is_not_there_is_told_where_programs_are_looked_for(place: Place, perfdiff: Run) -> None:
    words = ("exited 127", "name it by its path in the built tree", "`overlay` under [build]")
    answer = perfdiff(place, "base", "head", *QUICK, "--", "./porg 20000")
    answer.refuses(3, "workload-failed", *words)
    assert "exit_codes" not in answer.err


def test_workload_whose_file_is_not_there_is_told_of_the_overlay(place: Place, perfdiff: Run) -> None:
    perfdiff(place, "base", "head", *QUICK, "--", "cat gone.txt").refuses(3, "workload-failed", "exited 1", "`overlay` under [build]")


def test_program_that_is_not_the_built_one_is_an_error_and_not_a_verdict(place: Place, perfdiff: Run) -> None:
    perfdiff(place, "base", "head", *QUICK, "--", "true").refuses(3, "nothing-called", "functions probed in base", "./build/program")


def test_program_without_probes_is_an_error_and_not_a_verdict(make_place: Make, perfdiff: Run) -> None:
    text = '[build]\ncommand = "make"\n[probes]\nexclude = ["*"]\n'
    place = make_place(program(), program("n += 1;"), {"perfdiff.toml": text})
    perfdiff(place, "base", "head", *WORKLOAD).refuses(3, "nothing-to-probe", "no function of base can be measured")


def test_program_beside_which_no_probe_compiles_is_an_error_that_says_so(make_place: Make, perfdiff: Run) -> None:
    own = re.compile(r"((?:#include .*\n)+)")  # behind what the system's headers say with it
    base, head = (own.sub(r"\1#define __attribute__ 5\n", program(body), count=1) for body in ("", "n += 1;"))
    place = make_place(base, head, {"perfdiff.toml": '[build]\ncommand = "make"\n'})
    perfdiff(place, "base", "head", "--thorough", *WORKLOAD).refuses(3, "nothing-to-probe", "probes compiles", "main.c")


def without_calls(answer: Answer) -> tuple[dict[str, Any], str]:
    """Return the report of a comparison that no call was timed in, and what it says of that."""
    report = json.loads(answer.out)
    (said,) = (note["text"] for note in report["notes"] if note["slug"] == "calls-not-timed")
    assert {each["verdict"] for each in report["functions"]} == {"inconclusive"}
    assert report["changed"]["ran"] == 0 < report["changed"]["unknown"] == report["changed"]["functions"]
    return report, said


LOOP = "long s = 0; for (long i = 0; i < n; i++) s += i ^ s;"


@pytest.mark.parametrize("repeats", [1, 20])
def test_build_that_fails_with_probes_alone_leaves_the_answer_to_whole_runs(make_place: Make, perfdiff: Run, repeats: int) -> None:
    makefile = f"{MAKEFILE}boot: boot.c\n\t$(CC) -fPIC -c boot.c\n\tld -shared -z defs -o boot boot.o\n"
    slower = program().replace(LOOP, LOOP + LOOP.removeprefix("long s = 0;").replace("i ^ s", "s ^ i") * (repeats - 1) + "s ^= n;")
    files = {"Makefile": makefile, "boot.c": "int boot(int n) { return n; }\n", ".gitignore": "prog\nboot\n*.o\n"}
    place = make_place(program(), slower, files)
    answer = perfdiff(place, "base", "head", "--build", "make prog boot", "--format", "json", "--", "./prog 5000000")
    report, said = without_calls(answer)
    assert "exited 2 in " in said
    assert " with probes (" in said
    assert answer.code == (repeats > 1)
    if repeats > 1:
        assert report["sentence"].startswith("Regression, not located: whole runs ")
        assert report["sentence"].endswith("; no calls were timed; `work` changed and may be why")


def test_recursion_that_only_a_build_without_probes_has_stack_for_leaves_the_answer_to_whole_runs(make_place: Make, perfdiff: Run) -> None:
    main = """\
#include <stdio.h>
#include <stdlib.h>
static long count(long n, long sum) { for (long i = 0; i < STEPS; i++) sum = sum * 31 + i; return n ? count(n - 1, sum) : sum; }
int main(int argc, char **argv) { return printf("%ld\\n", count(atol(argv[1]), argc)) < 0; }
"""
    place = make_place(*(main.replace("STEPS", steps) for steps in ("10", "200")), {"Makefile": MAKEFILE.replace("-O1", "-O2")})
    answer = perfdiff(place, "base", "head", "--build", "make", "--format", "json", "--", "./prog 1000000")
    report, said = without_calls(answer)
    assert "'./prog 1000000' was killed by SIGSEGV (" in said
    assert "a likely cause is deep recursion" in said
    assert (answer.code, report["verdict"]) == (1, "regression")


def test_function_whose_only_call_is_cut_short_is_not_measured(make_place: Make, perfdiff: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERFDIFF_COUNTERS_SOFTWARE", "true")
    body = (
        "int p[2]; char x; if (pipe(p)) return 1; pid_t k = fork(); if (!k) endless(p[1], n); if (read(p[0], &x, 1) == 1) kill(k, SIGKILL);"
    )
    endless = 'static void endless(int out, long n) { if (work(n) != 1 && write(out, "x", 1) == 1) for (;;) pause(); }\n'
    main = program(f"{body} wait(0);").replace("int main", f"{endless}int main")
    place = make_place(main, main.replace("work(n) != 1", "work(2 * n) != 1"))
    report = json.loads(perfdiff(place, "base", "head", *QUICK, "--format", "json", *WORKLOAD).out)
    assert "endless" not in {function["name"] for function in report["functions"]}
    reason = "no call of it had ended when its process was killed"
    assert {"name": "endless", "file": "main.c", "reason": reason} in report["skipped"]
    said = {note["slug"]: note["text"] for note in report["notes"]}
    assert " was killed or could not write on; let it end by exit or return" in said["not-counted"]
    assert said["recording-incomplete"].endswith(": calls that had not ended are not in the figures; let it end by exit or return")
    assert all(not function["counts"] for function in report["functions"])


def test_of_changes_that_no_workload_reaches_nothing_is_said(make_place: Make, perfdiff: Run) -> None:
    place = make_place(program(), program(added=2))
    answer = perfdiff(place, "base", "head", *QUICK, *WORKLOAD)
    assert answer.code == 0, answer.err
    assert "Inconclusive: no workload calls `unused`, which changed, so nothing is said of the change" in " ".join(answer.out.split())
    assert perfdiff(place, "base", "head", *QUICK, "--strict", *WORKLOAD).code == 4


@pytest.mark.parametrize(
    ("stamp", "is_repeatable", "is_measured"),
    [("", False, True), (" && date '+// %s%N' >> made.c", True, True), (" && date '+// %s%N' >> made.c", False, False)],
    ids=["the same", "another text each time", "another text in a build that is made anew"],
)
def test_change_in_a_file_that_the_build_makes_is_measured_or_listed(
    make_place: Make, perfdiff: Run, stamp: str, *, is_repeatable: bool, is_measured: bool
) -> None:
    build = "-o prog main.c made.c" if is_repeatable else "-c main.c made.c && $(CC) -o prog main.o made.o"  # two units in one call
    makefile = f"prog: main.c made.c\n\t$(CC) -O1 {build}\nmade.c: main.c\n\tsed -n 's,^// ,,p' main.c > made.c{stamp}\n"
    main = "#include <stdlib.h>\nlong made(long n);\nint main(int c, char **v) { (void)c; return made(atol(v[1])) == 1; }\n"
    main += "// long made(long n) { long s = 0; for (long i = 0; i < n; i++) s += i ^ s; return s; }\n"
    place = make_place(main, main.replace("i ^ s", "i ^ 2 * s"), {"Makefile": makefile, ".gitignore": "prog\nmade.c\n*.o\n"})
    answer = json.loads(perfdiff(place, "base", "head", *QUICK, "--thorough", "--format", "json", *WORKLOAD).out)
    measured = "made" in {function["name"] for function in answer["functions"]}
    reason = "each build makes another text of its file, so that it carries no probe"
    listed = {"name": "made", "file": "made.c", "reason": reason} in answer["skipped"]
    assert (measured, listed) == (is_measured, not is_measured)


def test_outputs_that_differ_are_a_note_in_every_format(place: Place, perfdiff: Run) -> None:
    for name in ("text", "json"):
        answer = perfdiff(place, "base", "head", *QUICK, "--format", name, *WORKLOAD)
        assert answer.code == 0, answer.err
        assert "make sure that base and head do the same work" in " ".join(answer.out.split()), name


def test_large_output_is_not_kept(place: Place, perfdiff: Run) -> None:
    answer = perfdiff(place, "base", "head", *QUICK, "--", "./prog 20000; head -c 50000000 /dev/zero")
    assert answer.code == 0, answer.err
    assert sum(path.stat().st_size for path in place.cache.rglob("*") if path.is_file()) < 20e6


def test_process_that_is_killed_while_the_workload_succeeds_is_a_note(make_place: Make, perfdiff: Run) -> None:
    body = "if (!fork()) { unused(n); kill(getpid(), SIGKILL); } wait(0);"
    place = make_place(program(body), program(body, added=2))
    answer = perfdiff(place, "base", "head", *QUICK, "--format", "json", *WORKLOAD)
    assert answer.code == 0, answer.err
    assert "recording-incomplete" in answer.out


@pytest.mark.parametrize(
    ("damage", "slug"),
    [
        ('head -c 5000 /dev/urandom > "$PERFDIFF_OUT/junk.pdrec"', "recording-damaged"),
        ('truncate -s 100 "$PERFDIFF_OUT"/*.pdrec', "recording-damaged"),
        ('mkdir "$PERFDIFF_OUT/folder.pdrec"', "recording-unreadable"),
    ],
)
def test_recording_that_is_damaged_is_told(place: Place, perfdiff: Run, damage: str, slug: str) -> None:
    perfdiff(place, "base", "head", *QUICK, "--", f'./prog 20000; if [ "$PERFDIFF_OUT" ]; then {damage}; fi').refuses(3, slug)


# The cache


def damage_text(folder: Path) -> None:
    (folder / "experiment.json").write_text("{")


def damage_value(folder: Path) -> None:
    text = (folder / "experiment.json").read_text()
    (folder / "experiment.json").write_text(text.replace('"function"', '"functino"').replace('"side": "base"', '"side": "head"', 1))


def damage_totals(folder: Path) -> None:
    content = (folder / "totals.parquet").read_bytes()
    (folder / "totals.parquet").write_bytes(content[: len(content) // 2])


def damage_samples(folder: Path) -> None:
    for file in (folder / "samples").iterdir():
        file.unlink()


def damage_digests(folder: Path) -> None:
    (folder / "digests.json").write_bytes(b"\xff\x00")


DAMAGES = (damage_text, damage_value, damage_totals, damage_samples, damage_digests)


def test_damaged_experiments_are_measured_again(place: Place, perfdiff: Run, tmp_path: Path) -> None:
    asked = ("base", "head", *QUICK, *WORKLOAD)
    assert perfdiff(place, *asked).code == 0
    (folder,) = place.cache.glob("experiments/*")
    shutil.copytree(folder, tmp_path / "whole")
    for damage in DAMAGES:
        shutil.rmtree(folder)
        shutil.copytree(tmp_path / "whole", folder)
        damage(folder)
        perfdiff(place, "explain", "work").refuses(3, "damaged-recording", str(folder))
    answer = perfdiff(place, *asked)
    assert answer.code == 0, answer.err
    assert "measuring again" in answer.err
    assert "perfdiff: measuring (" in answer.err
    assert "measuring" not in perfdiff(place, *asked).err


def test_same_comparison_is_measured_once_however_it_is_asked(place: Place, perfdiff: Run, tmp_path: Path) -> None:
    assert perfdiff(place, "base", "head", *QUICK, *WORKLOAD).code == 0
    (tmp_path / "other").symlink_to(place.repository)
    (tmp_path / "lenient.toml").write_text("[compare]\nmin_effect = 0.5\n")
    other = Place(tmp_path / "other", place.cache)
    answer = perfdiff(other, "head~1..HEAD", *QUICK, "--config", str(tmp_path / "lenient.toml"), *WORKLOAD)
    assert answer.code == 0, answer.err
    assert "perfdiff: building" not in answer.err
    assert answer.out.startswith("head~1 (")
    assert "50 %" in answer.out


def test_file_in_the_place_of_the_cache_is_told(place: Place, perfdiff: Run, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for cache in (tmp_path / "file", tmp_path / "file" / "cache"):
        perfdiff(Place(place.repository, cache), "base", "head", *QUICK, *WORKLOAD).refuses(3, "cache-unwritable", str(cache), "--cache")


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[Callable[..., None]]:
    """Return a call that mounts something on a folder; a test is skipped where that is not permitted."""
    mounted: list[Path] = []

    def do(folder: Path, *options: str) -> None:
        folder.mkdir(exist_ok=True)
        done = subprocess.run(["mount", *options, str(folder)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            pytest.skip(f"file systems cannot be mounted here: {done.stderr.strip()}")
        mounted.append(folder)

    yield do
    for folder in reversed(mounted):
        subprocess.run(["umount", str(folder)], check=True)


def test_read_only_cache_is_told_and_can_still_be_read(place: Place, perfdiff: Run, mount: Callable[..., None]) -> None:
    before = perfdiff(place, "base", "head", *QUICK, *WORKLOAD)
    assert before.code == 0
    mount(place.cache, "--bind", str(place.cache))
    subprocess.run(["mount", "-o", "remount,bind,ro", str(place.cache)], check=True)
    answer = perfdiff(place, "base", "head", *QUICK, *WORKLOAD)
    assert (answer.code, answer.out) == (0, before.out), answer.err
    perfdiff(place, "base", "head", *QUICK, "--seed", "9", *WORKLOAD).refuses(3, "cache-unwritable", "Read-only file system")


@pytest.mark.parametrize("size_kb", [64, 700])
def test_full_disk_is_told(place: Place, perfdiff: Run, mount: Callable[..., None], size_kb: int) -> None:
    mount(place.cache, "-t", "tmpfs", "-o", f"size={size_kb}k,mode=0700", "tmpfs")
    answer = perfdiff(place, "base", "head", *QUICK, *WORKLOAD)
    answer.refuses(3, "disk-full", "perfdiff cache prune", "--cache")


def test_limit_on_file_sizes_is_told(place: Place) -> None:
    limit = 4096
    done = subprocess.run(
        [sys.executable, "-m", "perfdiff", *place.arguments("base", "head", *QUICK, *WORKLOAD)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    Answer(done.returncode, done.stdout, done.stderr).refuses(3, "disk-full", "limit on file sizes", "ulimit -f")


def test_workload_that_fills_the_disk_is_stopped_and_cleared_away(place: Place, perfdiff: Run, mount: Callable[..., None]) -> None:
    mount(place.cache, "-t", "tmpfs", "-o", "size=60m,mode=0700", "tmpfs")
    answer = perfdiff(place, "base", "head", *QUICK, "--", "./prog 20000; cat /dev/zero > big; sleep 100")
    answer.refuses(3, "workload-filled-disk", "filled the disk that holds", "--cache")
    assert shutil.disk_usage(place.cache).free > 40e6


# Several at once, and signals


def wait_for(condition: Callable[[], object], process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)


def read_to(process: subprocess.Popen[str], text: str) -> str:
    """Read what a perfdiff tells until a line holds `text`."""
    assert process.stderr is not None
    seen = ""
    while text not in seen:
        line = process.stderr.readline()
        assert line, seen
        seen += line
    return seen


def test_two_at_once_build_and_measure_once(place: Place, tmp_path: Path) -> None:
    build = f"echo built >> {tmp_path}/builds; until [ -e {tmp_path}/go ]; do sleep 0.05; done; make"
    asked = ("base", "head", "--thorough", "--runs", "2", "--build", build, *WORKLOAD)
    first = place.start(*asked)
    wait_for((tmp_path / "builds").exists, first)
    second = place.start(*asked)
    read_to(second, "another perfdiff is at work")
    (tmp_path / "go").touch()
    answers = [process.communicate(timeout=PATIENCE_S) for process in (first, second)]
    assert [first.returncode, second.returncode] == [0, 0], answers
    assert answers[0][0] == answers[1][0]
    assert "building" not in answers[1][1]
    assert len((tmp_path / "builds").read_text().split()) == 2  # plain builds of two sides; the others repeat these
    assert len(list(place.cache.glob("experiments/*"))) == 1


def test_different_comparisons_at_once_do_not_disturb_each_other(place: Place) -> None:
    running = [place.start(*pair, *QUICK, *WORKLOAD) for pair in (("base", "head"), ("head", "base"))]
    answers = [process.communicate(timeout=2 * PATIENCE_S) for process in running]
    assert [process.returncode for process in running] == [0, 0], answers
    assert len(list(place.cache.glob("experiments/*"))) == 2


def test_pruning_leaves_what_is_in_use_and_takes_the_rest(place: Place, perfdiff: Run, tmp_path: Path) -> None:
    assert perfdiff(place, "base", *QUICK, *WORKLOAD).code == 0
    files = ("experiments/*/experiment.json", "units/*/*.json", "runtime/*/libperfdiff.so", "snapshots/objects/*/*", "trees/*/finished")

    def there() -> list[list[Path]]:
        return [sorted(place.cache.glob(pattern)) for pattern in files]

    before = there()
    assert all(before)
    waiting = f"./prog 20000; touch {tmp_path}/there; until [ -e {tmp_path}/go ]; do sleep 0.05; done"
    process = place.start("base", *QUICK, "--", waiting)
    wait_for((tmp_path / "there").exists, process)
    assert perfdiff(place, "cache", "prune", "--days", "0").code == 0
    assert all(set(left) >= set(known) for left, known in zip(there()[:4], before, strict=False))
    (tmp_path / "go").touch()
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    assert perfdiff(place, "cache", "prune", "--days", "0").code == 0
    assert there() == [[], [], [], [], []]
    perfdiff(place, "explain", "work").refuses(3, "no-comparison", "perfdiff BASE HEAD")


def blocked(phase: str, mark: Path) -> tuple[str, ...]:
    """Return a workload that waits for ever in one phase, with a daemon beside it, and says so by a file."""
    program = f'./prog 20000; case "$PERFDIFF_PLAN" in *{phase}*) setsid sleep 1000 & touch {mark}; sleep 1000;; esac'
    return (*QUICK, "--thorough", "--", program)


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Return a place where `base` was compared with the working tree."""
    folder = tmp_path_factory.mktemp("compared")
    place = Place(repository(folder / "project", program(), program("n += 1;")), runtimes.lent_to(folder / "cache"))
    process = place.start("base", *QUICK, *WORKLOAD)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    yield place
    place.close()


@pytest.mark.parametrize(
    ("stage", "number", "code"),
    [
        *((stage, signal.SIGINT, 130) for stage in ("resolving", "building", "measuring", "analysing")),
        ("measuring", signal.SIGTERM, 143),
    ],
)
def test_signal_at_any_stage_leaves_nothing_behind(compared: Place, tmp_path: Path, stage: str, number: signal.Signals, code: int) -> None:
    mark = tmp_path / "mark"
    blocking: Mapping[str, tuple[str, ...]] = {
        "building": ("--runs", "2", "--build", f"setsid sleep 1000 & touch {mark}; sleep 1000", *WORKLOAD),
        "surveying": blocked("survey", mark),
        "measuring": blocked("timed", mark),
    }
    # Another seed is another measurement, and another threshold another analysis of the first one.
    (tmp_path / "lenient.toml").write_text("[compare]\nmin_effect = 0.5\n")
    passing = (*QUICK, *(("--config", str(tmp_path / "lenient.toml")) if stage == "analysing" else ("--seed", "7")), *WORKLOAD)
    before = fingerprint(compared.repository)
    process = compared.start("base", *blocking.get(stage, passing))
    read_to(process, stage)
    if stage in blocking:
        wait_for(mark.exists, process)
    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == code, err
    assert ("So far" in out) == (stage in ("surveying", "measuring")), "whole runs have told something by then"
    assert bool(out) == (stage in ("surveying", "measuring", "analysing")), "once all is measured, the answer is under way"
    assert "Traceback" not in err
    assert compared.leftovers() == []
    assert fingerprint(compared.repository) == before
    process = compared.start("base", *QUICK, *WORKLOAD)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    assert "base (" in out
    assert "building" not in err


def test_impatient_second_signal_does_not_stop_the_clearing_up(place: Place, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    process = place.start("base", "head", "--build", f"mkdir many; seq -f many/%g 20000 | xargs touch; touch {mark}; sleep 1000", *WORKLOAD)
    wait_for(mark.exists, process)
    for number in (signal.SIGINT, signal.SIGINT, signal.SIGTERM):
        process.send_signal(number)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130, err
    assert "nothing is known yet" in err


def test_what_a_killed_perfdiff_left_is_removed_by_the_next(place: Place, perfdiff: Run, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    process = place.start("base", "head", *blocked("timed", mark))
    wait_for(mark.exists, process)
    process.kill()
    process.communicate()
    for left in processes(place.cache):
        os.kill(left, signal.SIGKILL)
    assert place.leftovers() != []
    assert perfdiff(place, "base", "head", *QUICK, *WORKLOAD).code == 0


def test_json_of_a_refused_comparison_is_no_report(place: Place, perfdiff: Run, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    perfdiff(place, "base", "head", *QUICK, "-o", str(report), "--", "./prog 20000; exit 9").refuses(3, "workload-failed")
    assert not report.exists()
