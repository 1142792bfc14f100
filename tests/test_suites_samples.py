"""Sample inputs as workloads: how tests call built programs with files, and what is no sample."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from perfdiff import configuration
from perfdiff.config import Suite
from perfdiff.errors import ConfigError
from perfdiff.languages.c.suites import testing
from perfdiff.languages.c.suites.samples import Samples
from perfdiff.languages.listing import LISTED_TO, LISTING_S, SuiteListing, command, tried

integration = pytest.mark.integration

PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int count, char **words)
{
	const char *name = count > 1 ? words[count - 1] : "";
	FILE *file = stdin;
	int sum = 0, character;

	if (REFUSES)
		return 4;
	if (!strncmp(name, "--file=", 7))
		name += 7;
	if (*name && name[0] != '-')
		file = fopen(name, "r");
	if (!file)
		return 2;
	while ((character = getc(file)) != EOF) {
		if (character == '!')
			return 3;
		sum += character;
	}
	printf("%d\\n", sum);
	return 0;
}
"""
SAMPLES = {f"tests/data/{size}.txt": "a" * size for size in (1, 10, 100)}
LOOP = "#!/bin/sh\nfor file in tests/data/*.txt; do\n\tCALL\ndone\n"
PLACES = {(name,) for name in SAMPLES}


@dataclass(frozen=True, slots=True)
class Project:
    """A checkout, and a tree of it with a program that was built."""

    checkout: Path
    tree: Path

    def listed(self, what: str, limit_s: float = 60.0) -> SuiteListing:
        file = self.tree.parent / "listing.json"
        variables = {**os.environ, LISTED_TO: str(file), LISTING_S: str(limit_s)}
        text = command("perfdiff.languages.c.suites.samples:listed", str(self.checkout), what)
        subprocess.run(text, shell=True, cwd=self.tree, env=variables, check=True)
        return SuiteListing.read(file.read_text())

    def printed(self, text: str, sample: str) -> str:
        done = subprocess.run(text.replace("{input}", sample), shell=True, cwd=self.tree, capture_output=True, text=True, check=True)
        return done.stdout.strip()


def project(folder: Path, files: Mapping[str, str], *, refuses: str = "0", build: str = "gcc main.c -o sum") -> Project:
    """Write a checkout, and build a tree of it."""
    checkout, tree = folder / "checkout", folder / "tree"
    write(checkout, {"main.c": PROGRAM.replace("REFUSES", refuses), **files})
    shutil.copytree(checkout, tree)
    subprocess.run(build, shell=True, cwd=tree, check=True)
    return Project(checkout, tree)


def write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


@integration
@pytest.mark.parametrize(
    ("call", "name", "text"),
    [
        ("./sum $file", "sum", "./sum {input}"),
        ("./sum -v 'a b' $file >out", "sum -v 'a b'", "./sum -v 'a b' {input}"),
        ("./sum --file=$file", "sum", "./sum --file={input}"),
        ("./sum <$file", "sum", "./sum < {input}"),
        ("(cd tests && ../sum ../$file)", "sum", "cd tests && ../sum ../{input}"),
        ("$PWD/sum $PWD/$file | cat", "sum", "./sum {input}"),
        ("env -i ./sum $file; ./sum $file", "sum", "./sum {input}"),
    ],
)
def test_calls_of_a_program_with_files_are_seen_as_tests_make_them(tmp_path: Path, call: str, name: str, text: str) -> None:
    sampled = project(tmp_path, {**SAMPLES, "run.sh": LOOP.replace("CALL", call)})
    listing = sampled.listed("sh run.sh")
    assert listing.failures == {}
    assert {name: benchmark.command for name, benchmark in listing.benchmarks.items()} == {name: text}
    assert listing.benchmarks[name].points.keys() == PLACES
    assert all(0 < seconds < 1 and not again for seconds, again in listing.benchmarks[name].points.values())
    assert sampled.printed(text, "tests/data/10.txt") == "970"


@integration
def test_each_way_of_calling_is_a_workload_and_the_most_used_comes_first(tmp_path: Path) -> None:
    script = LOOP.replace("CALL", "./sum -a $file") + LOOP.replace("CALL", "./sum -b $file") + "./sum -b main.c\n./sum -c main.c\n"
    listing = project(tmp_path, {**SAMPLES, "run.sh": script}).listed("sh run.sh")
    assert list(listing.benchmarks) == ["sum -b", "sum -a"]
    assert listing.failures == {"sum -b main.c": "exit code 3"}


@integration
def test_a_sample_that_is_not_taken_is_left_out(tmp_path: Path) -> None:
    sampled = project(tmp_path, {**SAMPLES, "tests/data/wrong.txt": "!" * 50, "run.sh": LOOP.replace("CALL", "./sum $file")})
    listing = sampled.listed("sh run.sh")
    assert listing.benchmarks["sum"].points.keys() == PLACES
    assert listing.failures == {"sum tests/data/wrong.txt": "exit code 3"}


@integration
@pytest.mark.parametrize(
    ("files", "refuses", "reason"),
    [
        (
            {"run.sh": "#!/bin/sh\nexport LIMIT=1\n" + LOOP.replace("CALL", "./sum $file")},
            '!getenv("LIMIT")',
            "3 of 3 samples are not taken",
        ),
        ({"run.sh": LOOP.replace("CALL", "cp $file copy.txt && ./sum copy.txt")}, "0", "it calls no built program with 3 files"),
        (
            {"run.sh": "#!/bin/sh\nmkdir made\nfor n in a aa aaa; do echo $n >made/$n; ./sum made/$n; done\n"},
            "0",
            "it calls no built program",
        ),
        ({"run.sh": "#!/bin/sh\ncp sum other\n" + LOOP.replace("CALL", "./other $file")}, "0", "it calls no built program"),
        ({"run.sh": "#!/bin/sh\n./sum tests/data/1.txt; ./sum tests/data/10.txt\n"}, "0", "it calls no built program with 3 files"),
        ({"run.sh": "#!/bin/sh\nexit 7\n"}, "0", "it calls no built program with 3 files"),
    ],
)
def test_what_runs_in_tests_alone_is_not_offered(tmp_path: Path, files: Mapping[str, str], refuses: str, reason: str) -> None:
    listing = project(tmp_path, {**SAMPLES, **files}, refuses=refuses).listed("sh run.sh")
    assert listing.benchmarks == {}
    (failure,) = listing.failures.values()
    assert failure.startswith(reason)


@integration
def test_tests_that_hang_are_ended_with_all_that_they_started(tmp_path: Path) -> None:
    script = LOOP.replace("CALL", "./sum $file") + "sleep 4321 & ./sum -"
    sampled = project(tmp_path, {**SAMPLES, "run.sh": script + " </dev/zero\n"})
    listing = sampled.listed("sh run.sh", limit_s=4.0)
    assert listing.benchmarks["sum"].points.keys() == PLACES
    running = subprocess.run(["pgrep", "-f", "^sleep 4321"], capture_output=True, text=True, check=False)
    assert running.stdout == ""


def test_a_command_that_takes_too_long_is_ended_with_what_it_started() -> None:
    started = time.monotonic()
    run = tried(["sh", "-c", "echo begun; sleep 5432 && echo done"], 0.3)
    assert (run.code, run.output) == (None, "begun\n")
    assert time.monotonic() - started < 60
    assert subprocess.run(["pgrep", "-f", "^sleep 5432"], capture_output=True, text=True, check=False).stdout == ""


@integration
def test_samples_that_another_revision_has_otherwise_are_left_out(tmp_path: Path) -> None:
    sampled = project(tmp_path, {**SAMPLES, "tests/data/30.txt": "a" * 30, "run.sh": LOOP.replace("CALL", "./sum $file")})
    (sampled.checkout / "tests/data/30.txt").write_text("b")
    listing = sampled.listed("sh run.sh")
    assert (listing.benchmarks["sum"].points.keys(), listing.failures) == (PLACES, {})
    (sampled.checkout / "tests/data/10.txt").unlink()
    listing = sampled.listed("sh run.sh")
    assert (listing.benchmarks, listing.failures) == ({}, {"sum": "2 of 4 samples are not in the checkout, or not the same there"})


@integration
def test_a_program_that_libtool_keeps_aside_is_called_by_its_script(tmp_path: Path) -> None:
    build = "mkdir .libs && gcc main.c -o .libs/lt-sum && printf '#!/bin/sh\\nexec ./.libs/lt-sum \"$@\"\\n' >sum && chmod +x sum"
    sampled = project(tmp_path, {**SAMPLES, "run.sh": LOOP.replace("CALL", "./sum $file")}, build=build)
    assert sampled.listed("sh run.sh").benchmarks["sum"].command == "./sum {input}"


CMAKE = """
cmake_minimum_required(VERSION 3.16)
project(sum C)
enable_testing()
add_executable(sum main.c)
foreach(size 1 10 100)
  add_test(NAME sum${size} COMMAND sum ${CMAKE_SOURCE_DIR}/tests/data/${size}.txt)
endforeach()
"""
MESON = """
project('sum', 'c')
sum = executable('sum', 'main.c')
foreach size : ['1', '10', '100']
  test(size, sum, args: files('tests/data' / size + '.txt'))
endforeach
"""


@integration
@pytest.mark.parametrize(
    ("files", "build"),
    [
        pytest.param(
            {"CMakeLists.txt": CMAKE},
            "cmake -S . -B build >/dev/null && cmake --build build >/dev/null",
            marks=pytest.mark.skipif(not shutil.which("cmake"), reason="needs cmake"),
        ),
        pytest.param(
            {"meson.build": MESON},
            "meson setup build >/dev/null && ninja -C build >/dev/null",
            marks=pytest.mark.skipif(not (shutil.which("meson") and shutil.which("ninja")), reason="needs meson and ninja"),
        ),
        ({"Makefile": f"check:\n\t{LOOP.splitlines()[1].replace('$', '$$')} ./sum $$file; done\n"}, "gcc main.c -o sum"),
        ({"tests/run.sh": LOOP.replace("CALL", "./sum $file")}, "gcc main.c -o sum"),
    ],
    ids=["ctest", "meson", "make", "script"],
)
def test_tests_are_found_in_a_built_tree(tmp_path: Path, files: Mapping[str, str], build: str) -> None:
    sampled = project(tmp_path, {**SAMPLES, **files}, build=build)
    listing = sampled.listed("")
    assert listing.failures == {}
    assert listing.benchmarks["sum"].points.keys() == PLACES
    assert sampled.printed(listing.benchmarks["sum"].command, "tests/data/10.txt") == "970"
    assert not (sampled.checkout / "build").exists()


@pytest.mark.parametrize(
    ("files", "commands"),
    [
        ({"Makefile": "all: check\ntest: all\n\t./run\ncheck: all\n"}, ["make check"]),
        ({"Makefile": "tests::\n"}, ["make tests"]),
        ({"GNUmakefile": "test : all\n", "Makefile": "check:\n"}, ["make test"]),
        ({"Makefile": "test := 5\ncheck = 7\n", "tests/a.sh": "#!/bin/sh\n", "tests/b.sh": "exit\n"}, ["sh 'tests/a.sh'"]),
        ({"Makefile.am": "TESTS = run\n"}, ["make check"]),
        ({"build.sh": "#!/bin/sh\n", "test.sh": "#!/bin/sh\n"}, ["sh 'test.sh'"]),
        ({"main.c": ""}, []),
    ],
)
def test_commands_that_run_tests_are_known_by_files(tmp_path: Path, files: Mapping[str, str], commands: list[str]) -> None:
    write(tmp_path, files)
    assert list(testing.commands(tmp_path)) == commands


@pytest.mark.parametrize(
    ("files", "is_found"),
    [
        ({"main.c": "", "Makefile": "check:\n", **SAMPLES}, True),
        ({"main.c": "", "Makefile": "all:\n", **SAMPLES}, False),
        ({"main.c": "", "Makefile": "check:\n", "tests/data/1.txt": "a"}, False),
        ({"main.py": "", "Makefile": "check:\n", **SAMPLES}, False),
        ({"main.c": "", "Makefile": "check:\n", **{f"tests/{n}.c": "a" * n for n in range(9)}}, False),
        ({"main.c": "", "CMakeLists.txt": CMAKE, **SAMPLES}, True),
    ],
)
def test_samples_are_looked_for_where_a_compiled_project_has_tests_and_data(
    tmp_path: Path, files: Mapping[str, str], is_found: bool
) -> None:
    write(tmp_path, files)
    assert list(Samples().find(tmp_path)) == ([""] if is_found else [])


def test_samples_are_configured_by_what_runs_the_tests(tmp_path: Path) -> None:
    write(tmp_path, {"main.c": "", "perfdiff.toml": 'build.command = "make"\n[[workload]]\nsamples = "make check"\n'})
    (workload,) = configuration.load(tmp_path, environment={}).workloads
    assert workload.suite == Suite("samples", "make check")
    assert workload.command == command("perfdiff.languages.c.suites.samples:listed", str(tmp_path), "make check")


def test_one_pattern_of_inputs_stands_by_itself(tmp_path: Path) -> None:
    text = 'build.command = "make"\n[[workload]]\nname = "sum"\ncommand = "./sum {input}"\ninputs = INPUTS\n'
    for inputs in ('"tests/data/*.txt"', '["tests/data/*.txt"]'):
        write(tmp_path, {**SAMPLES, "perfdiff.toml": text.replace("INPUTS", inputs)})
        (workload,) = configuration.load(tmp_path, environment={}).workloads
        assert workload.inputs == tuple(sorted(SAMPLES))
    for inputs in ('""', "[]", "7"):
        write(tmp_path, {"perfdiff.toml": text.replace("INPUTS", inputs)})
        with pytest.raises(ConfigError) as raised:
            configuration.load(tmp_path, environment={})
        assert raised.value.slug == "config-value"
