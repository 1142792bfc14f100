"""Builds of real projects by their own commands, their failures, and the cache that keeps them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from perfdiff import processes
from perfdiff.build import jobs
from perfdiff.build.builder import build, build_all
from perfdiff.build.built import Built
from perfdiff.build.cache import BuildCache
from perfdiff.build.variants import BuildRequest, Instrumentation, build_environment
from perfdiff.config import BuildConfig
from perfdiff.errors import BuildError, StoreError
from perfdiff.records.schema import Phase, Side
from perfdiff.revisions.pins import resolve
from perfdiff.revisions.repository import find_repository
from programs import git

pytestmark = pytest.mark.integration

MAIN = '#include <stdio.h>\nint twice(int);\nint main(void) { printf("%d\\n", twice(21)); return 0; }\n'
TWICE = "int twice(int n) { return 2 * n; }\n"
MAKEFILE = "prog: main.o twice.o\n\t$(CC) $(LDFLAGS) -o $@ main.o twice.o\n"
CMAKE = """\
cmake_minimum_required(VERSION 3.13)
project(twice C CXX)
add_library(twice SHARED twice.c)
add_executable(prog main.c extra.cpp)
target_link_libraries(prog twice)
target_precompile_headers(prog PRIVATE <stdio.h>)
"""
MESON = """\
project('twice', 'c')
library = static_library('twice', 'twice.c')
executable('prog', 'main.c', link_with: library)
"""
CONFIGURE = """\
AC_INIT([twice], [1.0])
AM_INIT_AUTOMAKE([foreign])
AM_PROG_AR
LT_INIT
AC_PROG_CC
AC_CHECK_HEADERS([stdio.h])
AC_CONFIG_FILES([Makefile])
AC_OUTPUT
"""
AUTOMAKE = """\
lib_LTLIBRARIES = libtwice.la
libtwice_la_SOURCES = twice.c
bin_PROGRAMS = prog
prog_SOURCES = main.c
prog_LDADD = libtwice.la
"""
PROBES = """\
#pragma GCC system_header
#ifdef __cplusplus
extern "C"
#endif
int pd_here(int);
#if defined(PD_NO_1) || defined(PD_NONE)
#define PD_1
#else
#define PD_1 int pd_probe_ __attribute__((unused)) = pd_here(1);
#endif
"""
RUNTIME = '#include <stdio.h>\nint pd_here(int probe) { return fprintf(stderr, "probe %d\\n", probe); }\n'

Project = Callable[[dict[str, str]], Path]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Make a repository of one commit with the given files beside main.c and twice.c."""

    def make(files: dict[str, str]) -> Path:
        folder = tmp_path / "project"
        folder.mkdir()
        git(folder, "init", "-q")
        for name, text in {"main.c": MAIN, "twice.c": TWICE, **files}.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "-m", "all")
        return folder

    return make


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[BuildCache]:
    with BuildCache(tmp_path / "cache") as opened:
        yield opened


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runtime")
    (folder / "runtime.c").write_text(RUNTIME)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", "libperfdiff.so", "runtime.c"], cwd=folder, check=True)
    return folder


def request(
    folder: Path, cache: BuildCache, command: str, *, instrumentation: Instrumentation | None = None, rev: str = "HEAD", **more: str
) -> BuildRequest:
    pair = resolve(find_repository(folder), [rev, rev], snapshots=cache.root / "snapshots")
    environment = {name: value for name, value in os.environ.items() if name not in ("CC", "CXX", "CFLAGS")} | more
    variant = Phase.TIMED if instrumentation else Phase.PLAIN
    return BuildRequest(pair.base, Side.HEAD, variant, BuildConfig(command, timeout_s=60), environment, instrumentation)


def probe(tree: Path) -> Path:
    """Put probe 1 into `twice`."""
    source = next(tree.rglob("twice.c"))
    source.write_text(source.read_text().replace("{", "{PD_1", 1))
    header = tree.parent / "probes.h"
    header.write_text(PROBES)
    return header


def sources(built: Built) -> list[str]:
    return sorted(str(command.file.relative_to(built.tree)) for command in built.commands)


def failure(folder: Path, cache: BuildCache, command: str, **more: str) -> BuildError:
    with pytest.raises(BuildError) as caught:
        build(request(folder, cache, command, **more), cache)
    return caught.value


def trees(cache: BuildCache) -> list[str]:
    return sorted(path.name for path in (cache.root / "trees").iterdir())


BUILDS = [
    pytest.param({"Makefile": MAKEFILE}, "make -j4", "prog", ["main.c", "twice.c"], id="make"),
    pytest.param(
        {"CMakeLists.txt": CMAKE, "extra.cpp": "int extra;\n"},
        "cmake -S . -B out && cmake --build out -j2",
        "out/prog",
        ["extra.cpp", "main.c", "twice.c"],
        id="cmake",
        marks=pytest.mark.skipif(not shutil.which("cmake"), reason="needs cmake"),
    ),
    pytest.param(
        {"meson.build": MESON},
        "meson setup out && ninja -C out",
        "out/prog",
        ["main.c", "twice.c"],
        id="meson",
        marks=pytest.mark.skipif(not (shutil.which("meson") and shutil.which("ninja")), reason="needs meson and ninja"),
    ),
]


@pytest.mark.parametrize(("command", "distinct"), [("make", 1), ("", 3)], ids=["of what is built", "of what runs as it is"])
def test_files_that_a_build_may_hold_against_each_other_have_one_time(
    command: str, distinct: int, project: Project, cache: BuildCache, tmp_path: Path
) -> None:
    folder = project({"Makefile": MAKEFILE})
    job = jobs.prepare(request(folder, cache, command), os.environ, tmp_path / "beside", tmp_path / "log")
    assert len({(job.tree / name).stat().st_mtime_ns for name in ("Makefile", "main.c", "twice.c")}) == distinct


@pytest.mark.parametrize(("files", "command", "program", "compiled"), BUILDS)
def test_build_systems_build_plain_and_probed(
    project: Project, cache: BuildCache, runtime: Path, *, files: dict[str, str], command: str, program: str, compiled: list[str]
) -> None:
    check_plain_and_probed(request(project(files), cache, command), cache, runtime, program=program, compiled=compiled)


@pytest.mark.skipif(not (shutil.which("autoreconf") and shutil.which("libtoolize")), reason="needs autotools")
def test_autotools_project_with_its_generated_files_committed(project: Project, cache: BuildCache, runtime: Path) -> None:
    folder = project({"configure.ac": CONFIGURE, "Makefile.am": AUTOMAKE})
    subprocess.run(["autoreconf", "-i"], cwd=folder, check=True, capture_output=True)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "generated")
    # Automake's rules would call `missing automake` were the generated files older than what they are made of.
    command = "./configure AUTOMAKE=false AUTOCONF=false ACLOCAL=false && make -j2"
    check_plain_and_probed(request(folder, cache, command), cache, runtime, program="prog", compiled=["main.c", "twice.c"])


def made(text: str) -> Callable[[Path], Path]:
    """Return what lays `text` aside with probe 1, as that of a file that the build makes."""

    def insert(tree: Path) -> Path:
        for kind, source in {"plain": text, "probed": text.replace("{", "{PD_1")}.items():
            (tree / "probes/made/sub").mkdir(parents=True, exist_ok=True)
            (tree / f"probes/made/sub/made.c.{kind}").write_text(source)
        header = tree / "probes/probes.h"
        header.write_text(PROBES)
        return header

    return insert


@pytest.mark.parametrize(("text", "answer"), [(TWICE, "probe 1\n"), (f"{TWICE}\n", "")], ids=["as laid aside", "otherwise"])
def test_a_source_that_the_build_makes_is_compiled_with_probes_where_it_is_as_it_was(
    project: Project, cache: BuildCache, runtime: Path, *, text: str, answer: str
) -> None:
    """Both calls that compile it see the same, and `make` sees nothing."""
    makefile = (
        "prog: main.o made.o\n\t$(CC) -o $@ main.o made.o\n"
        "made.o: sub/made.c\n\t$(CC) -c sub/made.c -o other.o && $(CC) -c sub/made.c -o $@\n"
        "sub/made.c: twice.in\n\tmkdir -p sub && cp twice.in $@ && echo made >> made.log\n"
    )
    folder = project({"Makefile": makefile, "twice.in": TWICE})
    asked = request(
        folder, cache, "make && sleep 0.01 && touch -d '1 hour ago' twice.in && make && nm made.o > first && nm other.o > second"
    )
    asked = replace(asked, variant=Phase.TIMED, instrumentation=Instrumentation("1", made(text), runtime))
    built = build(asked, cache)
    ran = subprocess.run([built.folder / "prog"], capture_output=True, text=True, check=True)
    assert (ran.stdout, ran.stderr) == ("42\n", answer)
    assert (built.tree / "made.log").read_text() == "made\n"
    assert (built.tree / "first").read_text() == (built.tree / "second").read_text()
    assert ("PD_1" in (built.tree / "sub/made.c").read_text()) == bool(answer)


def check_plain_and_probed(asked: BuildRequest, cache: BuildCache, runtime: Path, *, program: str, compiled: list[str]) -> None:
    plain = build(asked, cache)
    assert sources(plain) == compiled
    assert plain.notes == ()
    assert subprocess.run([plain.folder / program], capture_output=True, text=True, check=True).stderr == ""
    probed = build(replace(asked, variant=Phase.TIMED, instrumentation=Instrumentation("1", probe, runtime)), cache)
    assert sources(probed) == compiled
    assert probed.dropped == ()
    answer = subprocess.run([probed.folder / program], capture_output=True, text=True, check=True)
    assert (answer.stdout, answer.stderr) == ("42\n", "probe 1\n")
    assert (plain.tree / "twice.c").read_text() == TWICE
    assert len(str(plain.tree)) == len(str(probed.tree))


def test_second_build_is_taken_from_the_cache(project: Project, cache: BuildCache, tmp_path: Path) -> None:
    folder = project({"Makefile": f"prog:\n\techo run >> {tmp_path}/runs\n\t$(CC) main.c twice.c -o prog\n"})
    first = build(request(folder, cache, "make"), cache)
    with BuildCache(cache.root) as again:
        assert build(request(folder, again, "make"), again) == first
    assert (tmp_path / "runs").read_text() == "run\n"


def test_builds_of_a_cache_that_was_moved_are_made_again(project: Project, cache: BuildCache, tmp_path: Path) -> None:
    asked = request(project({}), cache, "gcc -o prog main.c twice.c")
    build(asked, cache)
    shutil.copytree(cache.root, tmp_path / "moved", symlinks=True)
    with BuildCache(tmp_path / "moved") as moved:
        again = build(asked, moved)
        assert again.tree.is_relative_to(moved.root)
        assert {command.directory for command in again.commands} == {again.tree}
        assert len(trees(moved)) == 2


def test_whatever_changes_the_result_is_another_build(project: Project, cache: BuildCache, runtime: Path) -> None:
    folder = project({"Makefile": MAKEFILE})
    built = [
        build(request(folder, cache, "make"), cache),
        build(request(folder, cache, "make -j2"), cache),
        build(request(folder, cache, "make", CFLAGS="-O1"), cache),
        build(request(folder, cache, "make", CC="clang"), cache),
        build(request(folder, cache, "make", instrumentation=Instrumentation("1", probe, runtime)), cache),
        build(request(folder, cache, "make", instrumentation=Instrumentation("2", probe, runtime)), cache),
    ]
    (folder / "twice.c").write_text("int twice(int n) { return n + n; }\n")
    git(folder, "commit", "-q", "-a", "-m", "changed")
    built.append(build(request(folder, cache, "make"), cache))
    assert len({made.tree for made in built}) == len(built)


@pytest.mark.parametrize(("command", "environment"), [("make", {"CC": "clang"}), ("CC=clang make -e", {}), ("make CC=clang", {})])
def test_choice_of_the_compiler_is_honoured(project: Project, cache: BuildCache, command: str, environment: dict[str, str]) -> None:
    built = build(request(project({"Makefile": MAKEFILE}), cache, command, **environment), cache)
    assert {command.compiler for command in built.commands} == {shutil.which("clang")}


def test_project_in_a_subfolder_is_built_there(project: Project, cache: BuildCache) -> None:
    folder = project({"tool/Makefile": "prog: ../main.c ../twice.c\n\t$(CC) -o $@ $^\n"})
    built = build(request(folder / "tool", cache, "make"), cache)
    assert built.folder == built.tree / "tool"
    assert sources(built) == ["main.c", "twice.c"]
    assert (built.folder / "prog").exists()


def test_build_that_calls_its_compiler_by_path_is_refused(project: Project, cache: BuildCache) -> None:
    error = failure(project({}), cache, f"{shutil.which('gcc')} main.c twice.c -o prog")
    assert error.slug == "no-compile-commands"
    assert trees(cache) == []


def test_build_that_compiles_nothing_tells_which_of_its_options_are_off(project: Project, cache: BuildCache) -> None:
    lists = (
        'project(headers CXX)\noption(HEADERS_BUILD_BENCH "" OFF)\nif(HEADERS_BUILD_BENCH)\n  add_executable(bench bench.cpp)\nendif()\n'
    )
    folder = project({"CMakeLists.txt": f"cmake_minimum_required(VERSION 3.16)\n{lists}", "bench.cpp": "int main() {}\n"})
    error = failure(folder, cache, "cmake -S . -B build && cmake --build build")
    assert "switch them on: --build with -DHEADERS_BUILD_BENCH=ON" in str(error)
    built = build(request(folder, cache, "cmake -S . -B build -DHEADERS_BUILD_BENCH=ON && cmake --build build"), cache)
    assert sources(built) == ["bench.cpp"]


def test_build_whose_compiler_has_a_name_that_nobody_knows_is_refused_with_what_was_chosen(
    project: Project, cache: BuildCache, tmp_path: Path
) -> None:
    (tmp_path / "icx").symlink_to(shutil.which("gcc") or "")
    path = f"{tmp_path}:{os.environ['PATH']}"
    error = failure(project({"Makefile": MAKEFILE}), cache, "make", CC="icx", PATH=path)
    assert error.slug == "no-compile-commands"
    assert "by names that are none of gcc's or clang's (cc, gcc-12, clang++, …)" in str(error)
    assert "let it take the compiler from CC, CXX or PATH (CC is 'icx') (log: " in str(error)


def test_a_build_that_compiles_only_files_of_others_says_how_they_come_into_the_revisions(
    project: Project, cache: BuildCache, tmp_path: Path
) -> None:
    """As where a library of headers is driven by a program that lies beside it."""
    driver = tmp_path / "driver.c"
    driver.write_text("int main(void) { return 0; }\n")
    folder = project({"Makefile": MAKEFILE})
    error = failure(folder, cache, f"gcc -I. {driver} -o prog")
    assert error.slug == "no-compile-commands"
    assert str(driver) in str(error)
    assert 'overlay = ["driver.c"]' in str(error)
    built = build(request(folder, cache, f"gcc -I. {driver} -o other && make"), cache)
    assert sources(built) == ["main.c", "twice.c"]


def test_build_does_not_inherit_what_disturbs() -> None:
    seen = build_environment({"PATH": "/bin", "MAKEFLAGS": "-j", "GIT_DIR": "/x", "LD_PRELOAD": "x.so", "HOME": "/home", "LANG": "de_DE"})
    assert (seen["PATH"], seen["HOME"], seen["LC_ALL"]) == ("/bin", "/home", "C")
    assert {"MAKEFLAGS", "GIT_DIR", "LD_PRELOAD"}.isdisjoint(seen)


@pytest.mark.parametrize(
    ("files", "command", "says"),
    [
        ({"main.c": "#include <no/such.h>\n", "Makefile": MAKEFILE}, "make", "'no/such.h' not found"),
        ({"main.c": "#include <no/such.h>\n", "Makefile": MAKEFILE}, "make CC=clang", "'no/such.h' not found"),
        ({}, "no-such-tool -v", "no-such-tool: not found"),
        ({"Makefile": "all:\n\tno-such-tool\n"}, "make", "no-such-tool: not found"),
        ({"Makefile": MAKEFILE}, "make LDFLAGS=-lnosuchlibrary", "library 'nosuchlibrary' not found"),
        ({"Makefile": MAKEFILE}, "make LDFLAGS=-lnosuchlibrary CC=clang", "library 'nosuchlibrary' not found"),
        ({"Makefile": "prog: gone.c\n"}, "make", "no rule to make 'gone.c'"),
        ({}, "make", "no makefile"),
        ({}, "gcc -c gone.c", "'gone.c' not found; this revision may be built by another command"),
        ({}, "echo 'curl: (6) Could not resolve host: no.example'; exit 6", "host no.example was not found; if it needs the network"),
    ],
)
def test_failed_build_names_what_is_missing(project: Project, cache: BuildCache, files: dict[str, str], command: str, says: str) -> None:
    error = failure(project(files), cache, command)
    assert error.slug == "build-failed"
    assert says in str(error)
    assert trees(cache) == []


@pytest.mark.parametrize(
    ("file", "command", "overlay"), [("perf/drive.c", "gcc -c perf/drive.c", "perf/"), ("drive.c", "make drive.o", "drive.c")]
)
def test_failed_build_says_that_only_the_checkout_has_a_file(
    project: Project, cache: BuildCache, file: str, command: str, overlay: str
) -> None:
    folder = project({"Makefile": "drive.o: drive.c\n"})
    (folder / file).parent.mkdir(exist_ok=True)
    (folder / file).write_text("int main(void) { return 0; }\n")
    said = str(failure(folder, cache, command))
    assert f'your checkout has it, this revision does not: `overlay = ["{overlay}"]` under [build] copies it into both revisions' in said
    assert "install the package" not in said


def test_failed_build_names_side_command_and_status_and_shows_the_end_of_the_log(project: Project, cache: BuildCache) -> None:
    folder = project({})
    error = failure(folder, cache, "seq 100; exit 7")
    assert f"'seq 100; exit 7' exited 7 in head (HEAD, {git(folder, 'rev-parse', 'HEAD')[:7]})" in str(error)
    assert error.detail.splitlines() == [str(n) for n in range(81, 101)]


@pytest.mark.parametrize("error", ["bad.c:1:9: error: 'y' undeclared", "main.c:1:10: fatal error: no/such.h: No such file or directory"])
def test_failed_build_shows_the_log_where_the_error_stands(project: Project, cache: BuildCache, error: str) -> None:
    shown = failure(project({"log.txt": f"In file included from x.h\n{error}\n"}), cache, "seq 50; cat log.txt; seq 100; exit 1").detail
    assert shown.splitlines()[:5] == ["49", "50", "In file included from x.h", error, "1"]
    assert len(shown.splitlines()) == 20


def test_error_in_the_code_is_told_with_its_place_in_the_tree(project: Project, cache: BuildCache) -> None:
    error = failure(project({"Makefile": "all:\n\t$(CC) $(CURDIR)/bad.c\n", "bad.c": "int x = y;\n"}), cache, "make")
    assert "in head (HEAD, " in str(error)
    assert ": bad.c:1:9: error: 'y' undeclared here (not in a function)" in str(error)


@pytest.mark.parametrize(("number", "name"), [(11, "SIGSEGV"), (40, "signal 40")])
def test_killed_build_names_the_signal(project: Project, cache: BuildCache, number: int, name: str) -> None:
    assert f"was killed by {name} in head" in str(failure(project({}), cache, f"kill -{number} $$"))


def test_machine_without_compiler_is_told(project: Project, cache: BuildCache, tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    assert failure(project({}), cache, "true", PATH=str(tmp_path / "tools")).slug == "no-compiler"


def is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_build_that_hangs_is_ended_with_its_children(project: Project, cache: BuildCache, tmp_path: Path) -> None:
    asked = request(project({}), cache, f"sleep 600 & echo $! > {tmp_path}/child; sleep 600")
    hanging = replace(asked, config=replace(asked.config, timeout_s=0.5))
    with pytest.raises(BuildError) as caught:
        build(hanging, cache)
    assert caught.value.slug == "build-timeout"
    assert not is_alive(int((tmp_path / "child").read_text()))
    assert trees(cache) == []


CHILD = """
import os, sys
from pathlib import Path
from perfdiff.build.builder import build
from perfdiff.build.cache import BuildCache
from perfdiff.build.variants import BuildRequest
from perfdiff.config import BuildConfig
from perfdiff.records.schema import Phase, Side
from perfdiff.revisions.pins import resolve
from perfdiff.revisions.repository import find_repository
with BuildCache(Path(sys.argv[2])) as cache:
    pin = resolve(find_repository(Path(sys.argv[1])), ["HEAD", "HEAD"], snapshots=cache.root / "snapshots").base
    built = build(BuildRequest(pin, Side.BASE, Phase.PLAIN, BuildConfig(sys.argv[3]), os.environ), cache)
print(built.tree, len(built.commands))
"""


def start(folder: Path, cache: BuildCache, command: str, program: str = CHILD) -> subprocess.Popen[str]:
    """Start a build in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", program, folder, cache.root, command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)},
    )


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 30
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} did not appear"
        time.sleep(0.01)


def test_submodule_that_is_not_here_is_a_hint_where_a_build_fails_for_want_of_something(project: Project, cache: BuildCache) -> None:
    folder = project({".gitmodules": '[submodule "zlib"]\n\tpath = zlib\n\turl = ../zlib\n', "main.c": '#include "zlib/zlib.h"\n'})
    git(folder, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},zlib")
    git(folder, "commit", "-q", "-m", "needs zlib")
    error = failure(folder, cache, "cc -c main.c")
    assert "'zlib/zlib.h' not found" in str(error)
    assert "git submodule update --init zlib" in str(error)


def test_two_processes_build_once_and_share(project: Project, cache: BuildCache, tmp_path: Path) -> None:
    folder = project({"Makefile": f"prog:\n\techo run >> {tmp_path}/runs\n\t$(CC) main.c twice.c -o prog\n"})
    answers = [process.communicate() for process in [start(folder, cache, "make") for _ in range(2)]]
    assert answers[0] == answers[1]
    assert answers[0][0].endswith("source 2\n")
    assert (tmp_path / "runs").read_text() == "run\n"


def test_interrupted_build_leaves_nothing_behind(project: Project, cache: BuildCache, tmp_path: Path) -> None:
    process = start(project({}), cache, f"echo $$ > {tmp_path}/partial && mv {tmp_path}/partial {tmp_path}/shell; sleep 600")
    wait_for(tmp_path / "shell")
    process.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in process.communicate()[1]
    assert trees(cache) == []
    assert not is_alive(int((tmp_path / "shell").read_text()))


@pytest.mark.parametrize("number", [signal.SIGINT, None])
def test_temporary_files_of_a_build_are_removed_with_it(
    project: Project, cache: BuildCache, tmp_path: Path, number: signal.Signals | None
) -> None:
    left = f"touch $TMPDIR/cc1.s && echo $TMPDIR > {tmp_path}/partial && mv {tmp_path}/partial {tmp_path}/shell"
    process = start(project({"Makefile": MAKEFILE}), cache, f"{left}; {'sleep 600' if number else 'make'}")
    wait_for(tmp_path / "shell")
    if number:
        process.send_signal(number)
    process.communicate()
    place = Path((tmp_path / "shell").read_text().strip())
    assert place.name.startswith("perfdiff-")
    assert not place.exists()


def test_place_of_temporary_files_makes_no_other_build(project: Project, cache: BuildCache, tmp_path: Path) -> None:
    folder = project({"Makefile": MAKEFILE})
    first = build(request(folder, cache, "make"), cache)
    assert build(request(folder, cache, "make", TMPDIR=str(tmp_path)), cache).tree == first.tree


def test_a_kept_build_whose_program_was_changed_is_made_again_and_that_is_told(project: Project, cache: BuildCache) -> None:
    asked = request(project({"Makefile": MAKEFILE}), cache, "make")
    first = build(asked, cache)
    program = next(path for path in first.tree.iterdir() if path.is_file() and os.access(path, os.X_OK))
    built = program.read_bytes()
    cache.close()
    with BuildCache(cache.root) as again:
        assert build(asked, again).notes == first.notes
    program.write_bytes(built + b"changed")
    with BuildCache(cache.root) as again:
        second = build(asked, again)
    assert program.read_bytes() == built
    assert [note.slug for note in second.notes] == ["build-changed"]
    assert f"source/{program.name} is not as it was built" in second.notes[0].text


def test_tree_of_a_process_that_died_is_removed_by_the_next(project: Project, cache: BuildCache, tmp_path: Path) -> None:
    process = start(project({}), cache, f"echo $$ > {tmp_path}/partial && mv {tmp_path}/partial {tmp_path}/shell; sleep 600")
    wait_for(tmp_path / "shell")
    with BuildCache(cache.root):
        assert len(trees(cache)) == 1
    process.kill()
    process.communicate()
    os.killpg(int((tmp_path / "shell").read_text()), signal.SIGKILL)
    with BuildCache(cache.root):
        assert trees(cache) == []


def test_user_checkout_is_untouched_by_a_build(project: Project, cache: BuildCache) -> None:
    folder = project({"Makefile": MAKEFILE})
    before = {path: path.lstat().st_mtime_ns for path in folder.rglob("*")}
    build(request(folder, cache, "make"), cache)
    assert {path: path.lstat().st_mtime_ns for path in folder.rglob("*")} == before


def make_file(size: int) -> Callable[[Path], None]:
    return lambda folder: (folder / "file").write_bytes(bytes(size)) and None


def test_folder_is_made_once(tmp_path: Path) -> None:
    with BuildCache(tmp_path) as cache:
        folder = cache.obtain("a" * 32, make_file(1))
        assert cache.obtain("a" * 32, make_file(2)) == folder
    with BuildCache(tmp_path) as cache:
        assert (cache.obtain("a" * 32, make_file(3)) / "file").stat().st_size == 1


def test_folder_whose_making_fails_is_removed(cache: BuildCache) -> None:
    def make(folder: Path) -> None:
        (folder / "inner").mkdir()
        (folder / "inner" / "file").touch()
        (folder / "inner").chmod(0o500)
        raise ValueError("failed")

    with pytest.raises(ValueError, match="failed"):
        cache.obtain("a" * 32, make)
    assert trees(cache) == []


def test_pruning_removes_what_has_not_been_used_for_long_and_spares_what_is_in_use(tmp_path: Path) -> None:
    with BuildCache(tmp_path) as cache:
        for age, key in enumerate(("c" * 32, "b" * 32, "a" * 32)):
            folder = cache.obtain(key, make_file(1000))
            os.utime(folder / "finished", (time.time() - 1000 * age,) * 2)
    with BuildCache(tmp_path) as user, BuildCache(tmp_path) as cache:
        used = user.obtain("a" * 32, make_file(0))
        os.utime(used / "finished", (time.time() - 5000,) * 2)
        assert [entry.key for entry in cache.prune(max_age_s=500)] == ["b" * 32]
        assert cache.prune(max_age_s=500) == ()
        assert [entry.key for entry in cache.prune(max_age_s=0)] == ["c" * 32]
        assert trees(cache) == ["a" * 32]


def test_cache_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError) as caught:
        BuildCache(tmp_path / "file" / "cache")
    assert caught.value.slug == "cache-unwritable"


def test_full_disk_is_told(cache: BuildCache) -> None:
    def make(folder: Path) -> None:
        with Path("/dev/full").open("w") as full:
            full.write("x")

    with pytest.raises(StoreError) as caught:
        cache.obtain("a" * 32, make)
    assert caught.value.slug == "disk-full"
    assert trees(cache) == []


def both(folder: Path, cache: BuildCache, command: str, *, timeout_s: float = 60, **more: str) -> dict[Side, BuildRequest]:
    """Return what asks for the last two commits of a repository."""
    pair = resolve(find_repository(folder), ["HEAD~1", "HEAD"], snapshots=cache.root / "snapshots")
    environment = {name: value for name, value in os.environ.items() if name not in ("CC", "CXX", "CFLAGS")} | more
    config = BuildConfig(command, timeout_s=timeout_s)
    pins = {Side.BASE: pair.base, Side.HEAD: pair.head}
    return {side: BuildRequest(pin, side, Phase.PLAIN, config, environment) for side, pin in pins.items()}


@pytest.fixture
def commits(project: Project) -> Callable[[dict[str, str]], Path]:
    """Make a repository of two commits: `side` holds the name of the side, and the program tells other numbers."""

    def make(files: dict[str, str]) -> Path:
        folder = project({"Makefile": MAKEFILE, "side": "base\n", **files})
        (folder / "side").write_text("head\n")
        (folder / "twice.c").write_text("int twice(int n) { return 2 * n + 1; }\n")
        git(folder, "commit", "-q", "-a", "-m", "changed")
        return folder

    return make


def meeting(place: Path) -> str:
    """Return a command that ends when it has been started for both sides."""
    return f"touch {place}/$(cat side); until [ -e {place}/base -a -e {place}/head ]; do sleep 0.01; done"


def test_both_sides_are_built_at_the_same_time(commits: Project, cache: BuildCache, tmp_path: Path) -> None:
    ended: list[Side] = []
    built = build_all(both(commits({}), cache, f"{meeting(tmp_path)}; make"), cache, ended.append)
    outputs = [subprocess.run([built[side].tree / "prog"], capture_output=True, check=True).stdout for side in Side]
    assert outputs == [b"42\n", b"43\n"]
    assert sorted(ended) == sorted(Side)
    assert not cache.apart


def test_seconds_of_builds_at_the_same_time_add_up_to_what_they_took(commits: Project, cache: BuildCache, tmp_path: Path) -> None:
    began = time.monotonic()
    built = build_all(both(commits({}), cache, f"{meeting(tmp_path)}; sleep 0.5; make"), cache, lambda _: None)
    took_s = time.monotonic() - began
    assert 0.5 < sum(each.duration_s for each in built.values()) <= took_s


def test_equal_revisions_are_built_once(commits: Project, cache: BuildCache, tmp_path: Path) -> None:
    asked = both(commits({}), cache, f"echo run >> {tmp_path}/runs; make")
    same = {side: replace(asked[Side.BASE], side=side) for side in Side}
    built = build_all(same, cache, lambda _: None)
    assert built[Side.BASE] == built[Side.HEAD]
    assert (tmp_path / "runs").read_text() == "run\n"


def test_only_what_is_not_kept_is_built(commits: Project, cache: BuildCache, tmp_path: Path) -> None:
    asked = both(commits({}), cache, f"cat side >> {tmp_path}/runs; make")
    build(asked[Side.HEAD], cache)
    ended: list[Side] = []
    build_all(asked, cache, ended.append)
    build_all(asked, cache, ended.append)
    assert (tmp_path / "runs").read_text() == "head\nbase\n"
    assert ended == [*Side, *Side]


@pytest.mark.parametrize(
    ("failing", "named"), [("base", "base (HEAD~1, "), ("head", "head (HEAD, "), ("base head", "")], ids=["base", "head", "both"]
)
def test_side_whose_build_fails_is_named_and_the_other_is_stopped(
    commits: Project, cache: BuildCache, tmp_path: Path, failing: str, named: str
) -> None:
    stopped = f"case '{failing}' in *$(cat side)*) exit 7;; esac; echo $$ > {tmp_path}/other; sleep 600"
    command = f"[ -e {tmp_path}/again ] && exit 7; {meeting(tmp_path)}; touch {tmp_path}/again; {stopped}"
    with pytest.raises(BuildError) as caught:
        build_all(both(commits({}), cache, command), cache, lambda _: None)
    assert "exited 7 in " + named in str(caught.value)
    assert trees(cache) == []
    assert not (tmp_path / "other").exists() or not is_alive(int((tmp_path / "other").read_text()))


def test_builds_that_fail_beside_each_other_are_made_one_by_one(commits: Project, cache: BuildCache, tmp_path: Path) -> None:
    place = tmp_path / "place"
    collides = f"\trm -rf {place}\n\tmkdir {place}\n\tsleep 0.3\n\trmdir {place}\n"
    folder = commits({"Makefile": f"{MAKEFILE}{collides}"})
    built = build_all(both(folder, cache, "make"), cache, lambda _: None)
    assert [(each.tree / "prog").exists() for each in built.values()] == [True, True]
    assert cache.apart


def test_builds_that_compile_in_one_folder_are_made_one_by_one(commits: Project, cache: BuildCache, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = f"T=$PWD; mkdir -p {out} && cd {out} && cc -c $T/twice.c && cc -c $T/main.c && cc twice.o main.o -o $T/prog"
    built = build_all(both(commits({}), cache, command), cache, lambda _: None)
    outputs = [subprocess.run([built[side].tree / "prog"], capture_output=True, check=True).stdout for side in Side]
    assert outputs == [b"42\n", b"43\n"]
    assert cache.apart


def test_builds_at_the_same_time_that_hang_are_ended(commits: Project, cache: BuildCache, tmp_path: Path) -> None:
    command = f"echo $$ >> {tmp_path}/shells; sleep 600"
    with pytest.raises(BuildError) as caught:
        build_all(both(commits({}), cache, command, timeout_s=0.5), cache, lambda _: None)
    assert caught.value.slug == "build-timeout"
    assert not any(is_alive(int(shell)) for shell in (tmp_path / "shells").read_text().split())
    assert trees(cache) == []


BOTH = CHILD.replace("import build\n", "import build_all\n").partition("    pin = ")[0] + (
    '    pair = resolve(find_repository(Path(sys.argv[1])), ["HEAD~1", "HEAD"], snapshots=cache.root / "snapshots")\n'
    "    pins = {Side.BASE: pair.base, Side.HEAD: pair.head}\n"
    "    config = BuildConfig(sys.argv[3])\n"
    "    asked = {side: BuildRequest(pin, side, Phase.PLAIN, config, os.environ) for side, pin in pins.items()}\n"
    "    built = build_all(asked, cache, lambda _: None)\n"
    "print(*(each.tree for each in built.values()))\n"
)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_interrupted_builds_of_both_sides_leave_nothing_behind(
    commits: Project, cache: BuildCache, tmp_path: Path, number: signal.Signals
) -> None:
    place = tmp_path / "shells"
    place.mkdir()
    command = f"setsid sleep 601 & echo $! > {place}/$(cat side).child; echo $$ > {place}/$(cat side).part; {meeting(place)}; sleep 600"
    process = start(commits({}), cache, command, BOTH)
    wait_for(place / "base")
    wait_for(place / "head")
    process.send_signal(number)
    errors = process.communicate()[1]
    if number == signal.SIGINT:
        assert "KeyboardInterrupt" in errors
        assert trees(cache) == []
    shells = [int(path.read_text()) for path in (*place.glob("*.part"), *place.glob("*.child"))]
    assert len(shells) == 4
    assert processes.holds(lambda: not any(is_alive(shell) for shell in shells), 20, 0.01)


def test_units_that_both_sides_have_are_compiled_once(commits: Project, cache: BuildCache, tmp_path: Path) -> None:
    tools, calls = tmp_path / "tools", tmp_path / "calls"
    tools.mkdir()
    noting = f'case " $*" in *" -E"*) ;; *" -c "*) for last; do :; done; echo $last >> {calls};; esac'
    (tools / "cc").write_text(f'#!/bin/sh\n{noting}\nexec {shutil.which("cc")} "$@"\n')
    (tools / "cc").chmod(0o755)
    path = f"{tools}:{os.environ['PATH']}"
    built = build_all(both(commits({}), cache, "make CFLAGS=-g", PATH=path), cache, lambda _: None)
    assert sorted(calls.read_text().split()) == ["main.c", "twice.c", "twice.c"]
    assert [sources(each) for each in built.values()] == [["main.c", "twice.c"]] * 2
    outputs = [subprocess.run([built[side].tree / "prog"], capture_output=True, check=True).stdout for side in Side]
    assert outputs == [b"42\n", b"43\n"]
    for side, other in zip(Side, reversed(Side), strict=True):
        assert str(built[other].tree).encode() not in (built[side].tree / "main.o").read_bytes()
