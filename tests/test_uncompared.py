"""What differs between base and head where users run them, and not where perfdiff does: good news says so."""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
from pathlib import Path

import pytest

from perfdiff import pipeline
from perfdiff.analysis.findings import Verdict
from perfdiff.build.decided import built_otherwise, decided
from perfdiff.errors import RunFailedError
from perfdiff.measuring.uncompared import killed
from perfdiff.progress import Silent
from perfdiff.records.schema import Phase, Point, Run, Side
from perfdiff.records.uncompared import ComparisonGap, UncomparedReason
from perfdiff.report.sentences.catalogue import say
from programs import by_whole_runs, first_two

CMAKE = """cmake_minimum_required(VERSION 3.13)
project(p C)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
add_executable(prog prog.c)
"""
WITHOUT = CMAKE.replace("Release", "Debug")
PROGRAM = '#include <stdio.h>\nint main() { unsigned s = 1; for (int i = 0; i < 9000000; i++) s += s >> 3 ^ i; printf("%u\\n", s); }\n'
TOML = """
measure.budget_s = 3
counters.software = false
[[workload]]
name = "job"
command = "./{where}prog"
"""


def trees(room: Path, name: str, *texts: str | None) -> list[Path]:
    made = [room / "base", room / "head"]
    for tree, text in zip(made, texts, strict=True):
        (tree / name).parent.mkdir(parents=True)
        if text is not None:
            (tree / name).write_text(text)
    return made


@pytest.mark.parametrize(
    ("guessed_from", "name", "base", "head"),
    [
        ("CMakeLists.txt", "CMakeLists.txt", CMAKE, WITHOUT),
        ("CMakeLists.txt", "cmake/defaults.cmake", 'set(default_build_type "Release")', 'set(default_build_type "Debug")'),
        ("CMakeLists.txt", "CMakePresets.json", '{"version": 3}', '{"version": 4}'),
        ("CMakeLists.txt", "CMakePresets.json", '{"version": 3}', None),
        ("meson.build", "meson.build", "project('p', 'c', default_options: ['buildtype=release'])", "project('p', 'c')"),
    ],
)
def test_what_a_guessed_command_decides_and_the_revisions_say_otherwise(
    guessed_from: str, name: str, base: str, head: str | None, tmp_path: Path
) -> None:
    assert decided(guessed_from, trees(tmp_path, name, base, head)) == (name,)


@pytest.mark.parametrize(
    ("guessed_from", "name", "base", "head"),
    [
        ("CMakeLists.txt", "CMakeLists.txt", CMAKE, f"{CMAKE}add_executable(other other.c)\n"),
        ("CMakeLists.txt", "CMakeLists.txt", CMAKE, f"# The build type is Release.\n{CMAKE}"),
        ("CMakeLists.txt", "build/CMakeCache.cmake", "CMAKE_BUILD_TYPE", ""),
        ("CMakeLists.txt", "notes.txt", "CMAKE_BUILD_TYPE", ""),
        ("Makefile", "CMakeLists.txt", CMAKE, WITHOUT),
    ],
)
def test_what_no_guessed_command_decides(guessed_from: str, name: str, base: str, head: str, tmp_path: Path) -> None:
    assert decided(guessed_from, trees(tmp_path, name, base, head)) == ()


SLOWER = ("CFLAGS=-O2 make\n", "CFLAGS=-O0 make\n")


@pytest.mark.parametrize(
    ("name", "base", "head", "is_same_code", "is_told"),
    [
        ("build.sh", *SLOWER, False, True),
        ("Dockerfile", "FROM debian\nRUN make CFLAGS=-O3\n", "FROM debian\nRUN make CFLAGS=-O0\n", False, True),
        ("ci/build.sh", "cmake -B build -DCMAKE_BUILD_TYPE=Release\n", "cmake -B build -DCMAKE_BUILD_TYPE=Debug\n", False, True),
        ("Dockerfile", "RUN meson setup --buildtype release b\n", "RUN meson setup --buildtype debug b\n", False, True),
        ("prog.spec", "./configure --disable-checks\n", "./configure --enable-checks\n", False, True),
        ("debian/rules", "\tmake CFLAGS='-O2 -flto'\n", "\tmake CFLAGS=-O2\n", True, True),
        ("Makefile", "prog:\nrelease: CFLAGS = -O2\n", "prog:\nrelease: CFLAGS = -O0\n", True, True),
        ("Makefile", "CFLAGS = -O3\n", "CFLAGS = -O2\n", False, False),  # it is built so, and timed
        ("build.sh", "make -j4 OPT=-O2\n", "make -j8 OPT=-O2 # was -O3\n", True, False),
        ("build.sh", None, "CFLAGS=-O2 make\n", True, False),  # nobody built base by it
        (".github/workflows/ci.yml", *SLOWER, True, False),
        ("notes.md", *SLOWER, True, False),
        ("prog.c", "/* fast by -O3 */\n", "/* fast by -O2 */\n", True, False),
    ],
)
def test_files_that_build_by_another_command_than_the_guessed_one(  # noqa: PLR0917 (what they say, and whether it is used)
    name: str, base: str | None, head: str, is_same_code: bool, is_told: bool, tmp_path: Path
) -> None:
    assert built_otherwise(trees(tmp_path, name, base, head), is_same_code=is_same_code) == ((name,) if is_told else ())


@pytest.mark.integration
@pytest.mark.skipif(shutil.which("cmake") is None, reason="needs CMake")
def test_a_build_type_that_a_guessed_command_decides_is_not_called_harmless(tmp_path: Path) -> None:
    toml = TOML.replace("{where}", "build/")
    request = first_two(tmp_path, ({"prog.c": PROGRAM, "CMakeLists.txt": CMAKE, "perfdiff.toml": toml}, {"CMakeLists.txt": WITHOUT}))
    found = pipeline.compare(by_whole_runs(request), Silent()).findings
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "the build command was guessed, and base and head say otherwise in `CMakeLists.txt` how they are built" in say(found.sentence)


@pytest.mark.parametrize(("sides", "is_told"), [([], False), ([Side.HEAD], True), ([Side.BASE], False), ([Side.BASE, Side.HEAD], False)])
def test_work_that_killed_processes_of_head_alone_leave_undone_is_not_compared(sides: list[Side], is_told: bool) -> None:
    points = [Point(number, "jobs", {"n": number}, "") for number in (1, 2)]
    runs = [Run(0, Phase.TIMED, 2, side, 0, 1e7, 1e7, 1e6, None, None, "") for side in sides]
    gap = ComparisonGap(UncomparedReason.KILLED, ("jobs n=2",))
    assert killed(runs, points) == ((gap,) if is_told else ())


@pytest.mark.integration
def test_runs_that_ask_for_the_commit_of_the_same_files_are_not_called_harmless(tmp_path: Path) -> None:
    makefile = "prog: prog.c\n\t$(CC) -O2 -o prog prog.c\n"
    toml = TOML.replace("./{where}prog", "git log -1 --format=%s && ./prog")
    request = first_two(tmp_path, ({"prog.c": PROGRAM, "Makefile": makefile, "perfdiff.toml": toml}, {"README": "head\n"}))
    identity = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", *identity, "commit", "-q", "--allow-empty", "-m", "slow"], cwd=request.repository, check=True)
    found = pipeline.compare(by_whole_runs(dataclasses.replace(request, revisions=("HEAD~1", "HEAD"))), Silent()).findings
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "runs ask git for their commit" in say(found.sentence)


@pytest.mark.integration
def test_changes_in_a_submodule_that_no_commit_has_are_not_called_harmless(tmp_path: Path) -> None:
    toml = TOML.replace("{where}", "")
    makefile = "prog: prog.c\n\t$(CC) -O2 -o prog prog.c\n"
    request = first_two(tmp_path, ({"prog.c": PROGRAM, "Makefile": makefile, "perfdiff.toml": toml}, {"README": "head\n"}))
    inner, project = tmp_path / "inner", request.repository

    def git(folder: Path, *arguments: str) -> None:
        identity = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always")
        subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)

    inner.mkdir()
    (inner / "size.h").write_text("#define SIZE 1\n")
    for arguments in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "one")):
        git(inner, *arguments)
    git(project, "submodule", "add", "-q", str(inner), "sub")
    git(project, "commit", "-qm", "with it")
    (project / "sub/size.h").write_text("#define SIZE 2\n")
    found = pipeline.compare(by_whole_runs(dataclasses.replace(request, revisions=("HEAD",))), Silent()).findings
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "sub has changes that are in no commit" in say(found.sentence).replace("`", "")


READS = """import os


def main():
    rules = open("rules.txt").read().split() if os.path.exists("rules.txt") else []
    print(sum(i * i % 7 for i in range(300000 + 0 * len(rules))))


main()
"""


@pytest.mark.integration
@pytest.mark.parametrize("kind", ["ignored", "written by runs", "of another commit"])
def test_what_the_checkout_alone_has_and_runs_ask_for_is_not_called_harmless(tmp_path: Path, kind: str) -> None:
    toml = TOML.replace("./{where}prog", "python job.py")
    job = READS.replace("main()\n", 'main()\nopen("rules.txt", "w").close()\n') if kind == "written by runs" else READS
    base = {"job.py": job, "perfdiff.toml": toml, ".gitignore": "rules.txt\n"}
    request = first_two(tmp_path, (base, {"job.py": job.replace("0 * len", "2000 * len")}))
    (request.repository / "rules.txt").write_text("rule\n" * 80)
    if kind == "of another commit":
        subprocess.run(["git", "add", "-f", "rules.txt"], cwd=request.repository, check=True)
    found = pipeline.compare(request, Silent()).findings
    assert found.verdict is (Verdict.INCONCLUSIVE if kind == "ignored" else Verdict.UNCHANGED), say(found.sentence)
    assert (kind == "ignored") == ("runs ask for `rules.txt`, which your checkout has and neither revision" in say(found.sentence))


BENCH = """import parts


def run(n):
    parts.count("ab" * n, "b")
"""
SEARCHES = """def count(text, part):
    return sum(text.startswith(part, at) for at in range(0, len(text), 8))
"""
REMEMBERS = """import functools


@functools.lru_cache
def index(text):
    return {at: text[at:at + 2] for at in range(len(text))}


def count(text, part):
    return sum(found.startswith(part) for found in index(text).values()) if part == "" else len(index(text))
"""


@pytest.mark.integration
@pytest.mark.parametrize(("head", "verdict"), [(REMEMBERS, Verdict.INCONCLUSIVE), (SEARCHES.replace("8", "16"), Verdict.IMPROVEMENT)])
def test_a_head_that_later_calls_alone_are_faster_of_is_no_improvement(tmp_path: Path, head: str, verdict: Verdict) -> None:
    """A callable is called again and again in one process, with the same arguments, where its users may call it once."""
    toml = (
        '[measure]\nbudget_s = 3\n[counters]\nsoftware = false\n[compare]\noutputs = "differ"\n'
        '[[workload]]\ncallable = "bench:run"\nparameters = { n = [100000] }\n'
    )
    request = first_two(tmp_path, ({"parts.py": SEARCHES, "bench.py": BENCH, "perfdiff.toml": toml}, {"parts.py": head}))
    found = pipeline.compare(by_whole_runs(request), Silent()).findings
    assert found.verdict is verdict, say(found.sentence)
    if verdict is Verdict.INCONCLUSIVE:
        assert "a single call in a process takes head longer" in say(found.sentence)


TESTS = """import time
import unittest

from shop import distinct


class TestShop(unittest.TestCase):
    def test_small(self):
        self.assertEqual(distinct([1, 2, 1] * 40), [1, 2])

    def test_large_is_quick(self):
        began = time.process_time()
        distinct(list(range(6000)) * 2)
        self.assertLess(time.process_time() - began, 0.05)
"""
SCANS = """def distinct(items):
    if len(items) < 1000:
        return list(dict.fromkeys(items))
    seen = []
    for item in items:
        if item not in seen:
            seen.append(item)
    return seen
"""


@pytest.mark.integration
def test_what_head_alone_fails_is_not_called_harmless(tmp_path: Path) -> None:
    toml = '[measure]\nbudget_s = 3\n[counters]\nsoftware = false\n[[workload]]\nname = "tests"\nunittest = "test_shop.py"\n'
    base = {"shop.py": "def distinct(items):\n    return list(dict.fromkeys(items))\n", "test_shop.py": TESTS, "perfdiff.toml": toml}
    request = first_two(tmp_path, (base, {"shop.py": SCANS}))
    found = pipeline.compare(by_whole_runs(request), Silent()).findings
    assert found.verdict is Verdict.INCONCLUSIVE, say(found.sentence)
    assert "head fails" in say(found.sentence)
    assert "test_large_is_quick`, where base runs it" in say(found.sentence)


@pytest.mark.integration
def test_a_single_call_that_fails_leaves_the_answer_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def fails(*words: object) -> float:
        asked.append(words)
        raise RunFailedError("it fails when it is called once", slug="workload-failed")

    monkeypatch.setattr("perfdiff.measuring.uncompared.took_ns", fails)
    toml = (
        '[measure]\nbudget_s = 3\n[counters]\nsoftware = false\n[compare]\noutputs = "differ"\n'
        '[[workload]]\ncallable = "bench:run"\nparameters = { n = [100000] }\n'
    )
    faster = {"parts.py": SEARCHES.replace("8", "16")}
    request = first_two(tmp_path, ({"parts.py": SEARCHES, "bench.py": BENCH, "perfdiff.toml": toml}, faster))
    found = pipeline.compare(by_whole_runs(request), Silent()).findings
    assert asked
    assert found.verdict is Verdict.IMPROVEMENT, say(found.sentence)
