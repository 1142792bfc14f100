"""Variants made from the plain build's tree: what a build of their own would give to the byte, or that build where nobody can be sure."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

import runtimes
from perfdiff.build import linktime
from perfdiff.build.builder import build_all
from perfdiff.build.built import Built
from perfdiff.build.cache import BuildCache
from perfdiff.build.holdings import BUILD
from perfdiff.build.masquerade import FlagKind, Plain
from perfdiff.build.recording import archive_words, included
from perfdiff.build.repeatable import read_recipe
from perfdiff.build.variants import BuildRequest, Instrumentation
from perfdiff.collect.built.workshop import Workshop
from perfdiff.config import BuildConfig
from perfdiff.languages.c.pack import C
from perfdiff.languages.packs import Packs
from perfdiff.progress import Silent
from perfdiff.records.schema import Phase, Side
from perfdiff.revisions.pins import resolve
from perfdiff.revisions.repository import find_repository
from programs import git

pytestmark = pytest.mark.integration

ENVIRONMENT = {name: value for name, value in os.environ.items() if name not in ("CC", "CXX", "CFLAGS", "LDFLAGS")}
FILES = {
    "main.c": '#include <stdio.h>\n#include "size.h"\nint twice(int), same(int);\n'
    'int main(void) { printf("%d\\n", twice(SIZE) + same(1)); return 0; }\n',
    "twice.c": "int twice(int n) { return 2 * n; }\n",
    "same.c": "int same(int n) { return n - 1; }\n",
    "size.h": "#define SIZE 21\n",
}
OBJECTS = "prog: main.o twice.o same.o\n\t$(CC) -o $@ $^\n"
LIBRARIES = """\
all: prog tool.copy
prog: main.o libtwice.a libsame.so
\t$(CC) -o $@ main.o -L. -ltwice $$PWD/libsame.so
\tcp prog prog.copy
libtwice.a: twice.o made.o
\trm -f $@
\tar cq $@ twice.o
\tar q $@ made.o
\tranlib $@
libsame.so: same.c
\tmkdir -p out && cd out && $(CC) -O1 -fPIC -shared -o ../$@ ../same.c
made.c: table
\t./table > $@
table: table.c
\t$(CC) -o $@ table.c
tool.copy: main.c
\techo "$$PWD" > where && $(CC) -O3 -c -o main.tmp main.c && mv main.tmp main2.o && cp -p where $@
"""
CMAKE = """\
cmake_minimum_required(VERSION 3.13)
project(twice C)
add_library(twice STATIC twice.c)
add_library(same SHARED same.c)
add_executable(prog main.c)
target_link_libraries(prog twice same)
"""
TABLE = '#include <stdio.h>\nint main(void) { printf("int table[] = {1, 2};\\n"); return 0; }\n'
PROBES = """\
#pragma GCC system_header
#ifndef PD_NONE
#include "perfdiff_probe.h"
#endif
#if defined PD_NONE || defined PD_NO_1
#define PD_1
#else
#define PD_1 PD_FRAME(1); int pd_probe_ __attribute__((__unused__)) = PD_ENTER(1) ? pd_start(&pd_frame_) : 0;
#endif
"""
KINDS = {Phase.TIMED: FlagKind.PROBED, Phase.SURVEY: FlagKind.SURVEYED, Phase.COUNTED: FlagKind.COUNTED, Phase.PLACED: FlagKind.PLACED}

Builds = Callable[..., "Pair"]


class Steps(Silent):
    """A progress that keeps what it is told of steps."""

    def __init__(self) -> None:
        self.steps: list[str] = []

    def advance(self, text: str = "") -> None:
        self.steps.append(text)


class Pair:
    """Both sides of a project in a cache: its head has another `twice`, its command leaves a line in `runs`."""

    def __init__(self, project: Path, cache: BuildCache, command: str, runs: Path) -> None:
        self.cache, self.runs = cache, runs
        config = BuildConfig(f"echo >> {runs}; {command}", timeout_s=120)
        pins = resolve(find_repository(project), ["HEAD~1", "HEAD"], snapshots=cache.root / "snapshots")
        self.asked = {
            side: BuildRequest(pin, side, Phase.PLAIN, config, ENVIRONMENT)
            for side, pin in ((Side.BASE, pins.base), (Side.HEAD, pins.head))
        }
        self.plain = build_all(self.asked, cache, lambda _: None)

    def forbid(self) -> None:
        """Have no variant made from the plain builds."""
        for built in self.plain.values():
            (built.beside / BUILD / "recipe.json").write_text('{"obstacle": "forbidden"}')

    def variant(self, phase: Phase, **more: object) -> dict[Side, Built]:
        requests = {}
        for side, asked in self.asked.items():
            (other,) = (built for other, built in self.plain.items() if other is not side)
            plain = Plain(self.plain[side].beside / BUILD, other.beside / BUILD, **more)
            insert = None if phase is Phase.PLACED else probe
            requests[side] = replace(
                asked, variant=phase, instrumentation=Instrumentation("1", insert, runtimes.library(), KINDS[phase], plain)
            )
        return build_all(requests, self.cache, lambda _: None)

    @property
    def commands(self) -> int:
        """Return how often the project's command was run."""
        return len(self.runs.read_text().splitlines())


def probe(tree: Path) -> Path:
    """Put probe 1 into `twice`."""
    source = tree / "twice.c"
    source.write_text(source.read_text().replace("{", "{PD_1", 1))
    header = tree / ".perfdiff" / "probes.h"
    header.parent.mkdir()
    header.write_text(PROBES)
    return header


@pytest.fixture
def builds(tmp_path: Path) -> Iterator[Builds]:
    """Build both sides of a project of given files plain, in a cache of a name."""
    with ExitStack() as stack:

        def make(files: Mapping[str, str], command: str, cache: str = "cache-1") -> Pair:
            folder = tmp_path / "project"
            if not folder.exists():
                folder.mkdir()
                git(folder, "init", "-q")
                for name, text in {**FILES, **files}.items():
                    (folder / name).parent.mkdir(parents=True, exist_ok=True)
                    (folder / name).write_text(text)
                git(folder, "add", "-A")
                git(folder, "commit", "-q", "-m", "base")
                (folder / "twice.c").write_text("int twice(int n) { return n + n; }\n")
                git(folder, "commit", "-q", "-a", "-m", "head")
            opened = stack.enter_context(BuildCache(tmp_path / cache))
            return Pair(folder, opened, command, tmp_path / f"{cache}.runs")

        yield make


def compiled(built: Built, phase: Phase) -> dict[str, bytes]:
    """Return all objects, archives and programs of a tree, with its own name and that of its cache taken out.

    Debugging information is left away: gcc's tables of strings come in an order that hangs on the strings. Where lines are counted, code
    alone is compared: gcc stamps counters by the time of day.
    """
    key, cache = built.beside.name.encode(), built.beside.parent.parent.name.encode()
    contents = {}
    for path in sorted(built.tree.rglob("*")):
        if path.is_file() and not path.is_symlink() and ".git" not in path.parts:
            content = path.read_bytes()
            if content.startswith((b"\x7fELF", b"!<arch>")):
                bare = built.beside / "bare"
                only = ["-O", "binary", "-j", ".text"] if phase is Phase.PLACED else ["-D", "-g", "-R", ".note.gnu.build-id"]
                if phase is Phase.PLACED and content.startswith(b"!<arch>"):
                    continue
                subprocess.run(["objcopy", *only, path, bare], check=True)
                content = bare.read_bytes()
                contents[str(path.relative_to(built.tree))] = content.replace(key, b"").replace(cache, b"")
    return contents


def names(built: Built) -> set[str]:
    """Return the files of a tree, without git's."""
    paths = (path.relative_to(built.tree) for path in built.tree.rglob("*") if path.is_file())
    return {str(path) for path in paths if ".git" not in path.parts}


def printed(program: Path) -> str:
    return subprocess.run([program], capture_output=True, text=True, check=True).stdout


SYSTEMS = [
    pytest.param({"Makefile": OBJECTS}, "make CFLAGS=-O2 -j2", "prog", id="make"),
    pytest.param({"Makefile": LIBRARIES, "table.c": TABLE}, "make -j2", "prog.copy", id="libraries"),
    pytest.param({}, "gcc -O2 main.c twice.c same.c -o prog", "prog", id="one call"),
    pytest.param(
        {"Makefile": OBJECTS},
        "make CC=clang CFLAGS=-O1",
        "prog",
        id="clang",
        marks=pytest.mark.skipif(not shutil.which("clang"), reason="clang"),
    ),
    pytest.param(
        {"CMakeLists.txt": CMAKE},
        "cmake -S . -B out -DCMAKE_BUILD_TYPE=Release && cmake --build out",
        "out/prog",
        id="cmake",
        marks=pytest.mark.skipif(not shutil.which("cmake"), reason="cmake"),
    ),
]


MESON = """\
project('twice', 'c')
library = static_library('twice', 'twice.c', 'same.c')
executable('prog', 'main.c', link_with: library)
"""
needs_ninja = pytest.mark.skipif(not (shutil.which("meson") and shutil.which("cmake") and shutil.which("ninja")), reason="ninja")


@needs_ninja
def test_ninja_finds_nothing_to_do_in_a_variant(builds: Builds) -> None:
    built = builds({"meson.build": MESON}, "meson setup out && ninja -C out").variant(Phase.TIMED)[Side.HEAD]
    assert (built.anew, printed(built.folder / "out/prog")) == ("", "42\n")
    assert (
        "no work to do" in subprocess.run(["ninja", "-C", "out", "-n"], cwd=built.tree, capture_output=True, text=True, check=True).stdout
    )


@needs_ninja
def test_commands_that_name_the_tree_are_not_repeated_for_ninja(builds: Builds) -> None:
    """Its log has digests of commands: it would do all of them again in the variant."""
    built = builds({"CMakeLists.txt": CMAKE}, "cmake -G Ninja -S . -B out && ninja -C out").variant(Phase.TIMED)[Side.HEAD]
    assert built.anew == "ninja knows commands, which name the tree, by digests"


@pytest.mark.parametrize(("files", "command", "program"), SYSTEMS)
def test_a_variant_is_made_from_the_plain_build_and_is_what_its_own_build_would_be_to_the_byte(
    builds: Builds, files: dict[str, str], command: str, program: str
) -> None:
    repeated, afresh = builds(files, command, "cache-1"), builds(files, command, "cache-2")
    afresh.forbid()
    for phase in KINDS:
        more = {"line_files": {"twice.c", "same.c"}} if phase is Phase.PLACED else {}
        ours, theirs = repeated.variant(phase, **more), afresh.variant(phase, **more)
        for side in Side:
            assert (ours[side].anew, theirs[side].anew) == ("", "forbidden"), phase
            assert compiled(ours[side], phase) == compiled(theirs[side], phase), phase
            assert names(ours[side]) == names(theirs[side]), phase
            assert printed(ours[side].folder / program) == "42\n"
            files_of = [[str(command.file.relative_to(built.tree)) for command in built.commands] for built in (ours[side], theirs[side])]
            assert files_of[0] == files_of[1], phase
    assert (repeated.commands, afresh.commands) == (2, 10)


LOGGING_GCC = """\
#!/bin/sh
case " $* " in *" -E "*) ;; *" -flto "*) ;; *" -c "*) echo "$*" >> "{log}" ;; esac
exec {gcc} "$@"
"""
LINKED = pytest.mark.parametrize(
    ("phase", "more", "linked"),
    [
        (Phase.SURVEY, {}, set()),
        (Phase.TIMED, {"probed": frozenset({"twice.c"})}, {"twice.o"}),
        (Phase.TIMED, {"probed": frozenset({"size.h"})}, {"main.o"}),
        (Phase.COUNTED, {}, {"main.o", "twice.o", "same.o"}),
        (Phase.PLACED, {"line_files": {"twice.c"}}, set()),
        (Phase.PLACED, {}, set()),
    ],
)


def linked_units(built: Built) -> set[str]:
    """Return the objects that are left to the linker to be compiled."""
    return {name for name in ("main.o", "twice.o", "same.o") if b".gnu.lto_" in (built.tree / name).read_bytes()}


@LINKED
def test_the_linker_optimises_what_is_counted_or_carries_probes_that_time(
    builds: Builds, phase: Phase, more: dict[str, object], linked: set[str]
) -> None:
    pair = builds({"Makefile": OBJECTS}, "make CC='gcc -flto' CFLAGS=-O2 -j2")
    assert linked_units(pair.plain[Side.HEAD]) == {"main.o", "twice.o", "same.o"}
    built = pair.variant(phase, **more)[Side.HEAD]
    assert (built.anew, printed(built.folder / "prog"), linked_units(built)) == ("", "42\n", linked)


def test_units_that_stay_untouched_are_compiled_once_for_all_variants_of_both_sides(
    builds: Builds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, log = tmp_path / "bin", tmp_path / "compiled"
    folder.mkdir()
    (folder / "gcc").write_text(LOGGING_GCC.format(log=log, gcc=shutil.which("gcc")))
    (folder / "gcc").chmod(0o755)
    monkeypatch.setitem(ENVIRONMENT, "PATH", f"{folder}:{ENVIRONMENT['PATH']}")
    pair = builds({"Makefile": OBJECTS}, "make CC='gcc -flto' CFLAGS=-O2")
    for phase, more in [(Phase.SURVEY, {}), (Phase.TIMED, {"probed": frozenset({"twice.c"})}), (Phase.PLACED, {"line_files": {"twice.c"}})]:
        assert pair.variant(phase, **more)[Side.BASE].anew == ""
    sources = [word for line in log.read_text().splitlines() for word in line.split() if word.endswith(".c")]
    assert {source: sources.count(source) for source in FILES if source.endswith(".c")} == {"main.c": 1, "twice.c": 4, "same.c": 1}


@pytest.mark.parametrize("words", ["-flto -fno-lto", "-O2", "-flto -fsanitize=cfi", "-flto=thin -fwhole-program-vtables"])
def test_what_the_linker_does_not_optimise_or_hangs_on_it_keeps_its_words(words: str) -> None:
    assert not linktime.is_asked(words.split())


@pytest.mark.parametrize(
    ("used", "needed"),
    [
        ({"prog.copy"}, {"prog", "libtwice.a", "twice.o", "made.o", "main.o", "libsame.so", "out/main2.o"}),
        ({"libsame.so"}, {"libsame.so", "out/main2.o"}),
        ({"table", "size.h"}, {"table", "out/main2.o"}),
        ({"size.h"}, {"prog", "libtwice.a", "twice.o", "made.o", "main.o", "libsame.so", "table", "out/main2.o"}),
    ],
)
def test_what_runs_use_needs_what_it_is_made_of_and_what_nothing_was_seen_to_take(builds: Builds, used: set[str], needed: set[str]) -> None:
    """An object that was moved away is taken by nobody who was seen."""
    files = {"Makefile": LIBRARIES.replace("main2.o", "out/main2.o"), "table.c": TABLE}
    built = builds(files, "make").plain[Side.HEAD]
    tree, recipe = built.tree.resolve(), read_recipe(built.beside / BUILD)
    outputs = {str(place.relative_to(tree)) for step in recipe.needed(tree, used) for place in recipe.places(step)[-1:]}
    assert {name.removesuffix(".copy") for name in outputs} == needed


def test_a_variant_is_made_of_what_runs_use_and_is_else_what_the_plain_build_is(builds: Builds) -> None:
    rule = "two.so: twice.c\n\t$(CC) -fPIC -c -o own.o twice.c\n\t$(CC) -shared -o $@ own.o\n"
    pair = builds({"Makefile": f"all: prog two.so\n{OBJECTS}{rule}"}, "make")
    plain = pair.plain[Side.HEAD]
    whole, part = (pair.variant(Phase.TIMED, **more)[Side.HEAD] for more in ({}, {"used": frozenset({"prog"})}))
    assert whole.anew == part.anew == ""
    assert whole.beside != part.beside, "they are two builds"

    def probed(built: Built) -> set[str]:
        return {name for name in ("twice.o", "own.o", "prog", "two.so") if b"pd_enter" in (built.tree / name).read_bytes()}

    assert probed(whole) == {"twice.o", "own.o", "prog", "two.so"}
    assert probed(part) == {"twice.o", "prog"}
    own = [built.beside.name.encode() for built in (plain, part)]
    assert (part.tree / "two.so").read_bytes() == (plain.tree / "two.so").read_bytes().replace(own[0], own[1])
    assert printed(part.folder / "prog") == "42\n"
    assert subprocess.run(["make", "-q"], cwd=part.tree, check=False).returncode == 0
    assert len(part.commands) == len(whole.commands)


@pytest.mark.parametrize(("used", "reason"), [("prog", ""), ("debug", "was made with --coverage"), ("", "was made with --coverage")])
def test_what_cannot_be_repeated_is_no_matter_where_no_run_uses_it(builds: Builds, used: str, reason: str) -> None:
    compiles = "for unit in $^; do $(CC) --coverage -c -o $$unit.o $$unit || exit 1; done"
    rule = f"debug: main.c twice.c same.c\n\t{compiles}\n\t$(CC) --coverage -o $@ *.c.o\n"
    pair = builds({"Makefile": f"all: prog debug\n{OBJECTS}{rule}"}, "make")
    built = pair.variant(Phase.TIMED, used=frozenset({used} if used else ()))
    for side in Side:
        assert reason in built[side].anew
        assert bool(reason) == bool(built[side].anew)
        assert [printed(built[side].folder / name) for name in ("prog", "debug")] == ["42\n", "42\n"]
        assert b"pd_enter" in (built[side].tree / "prog").read_bytes()


def test_make_finds_nothing_to_do_in_a_variant_nor_another_mode(builds: Builds) -> None:
    built = builds({"Makefile": OBJECTS}, "make && cp prog copy && chmod 500 prog copy").variant(Phase.TIMED)[Side.HEAD]
    assert "PD_1" in (built.tree / "twice.c").read_text()
    assert subprocess.run(["make", "-q"], cwd=built.tree, check=False).returncode == 0
    assert [stat.S_IMODE((built.tree / name).stat().st_mode) for name in ("prog", "copy")] == [0o500, 0o500]


def test_a_variant_names_and_needs_nothing_of_the_plain_tree(builds: Builds) -> None:
    pair = builds({"Makefile": LIBRARIES, "table.c": TABLE}, "make CFLAGS='-g -O1'")
    built = pair.variant(Phase.TIMED)
    for side in Side:
        own = pair.plain[side].beside.name.encode()
        assert [path for path in built[side].tree.rglob("*") if path.is_file() and own in path.read_bytes()] == []
    for side in Side:
        shutil.rmtree(pair.plain[side].tree)
    assert printed(built[Side.HEAD].folder / "prog") == "42\n"


def test_what_a_command_in_the_plain_tree_has_changed_is_in_no_variant(builds: Builds) -> None:
    """Runs take place there; beside it stands what the build left."""
    pair = builds({"Makefile": OBJECTS}, "make")
    for built in pair.plain.values():
        shutil.copytree(built.tree, built.tree.with_name("source.pristine"), symlinks=True)
        (built.tree / "size.h").write_text("#define SIZE 0\n")
        (built.tree / "main.o").unlink()
    built = pair.variant(Phase.TIMED)[Side.HEAD]
    assert (built.anew, printed(built.folder / "prog")) == ("", "42\n")


def test_no_variant_is_made_of_a_tree_that_commands_may_have_changed(builds: Builds) -> None:
    pair = builds({"Makefile": OBJECTS}, "make")
    for built in pair.plain.values():
        built.tree.with_name("source.running").touch()
        (built.tree / "size.h").write_text("#define SIZE 0\n")
    built = pair.variant(Phase.TIMED)[Side.HEAD]
    assert (built.anew, printed(built.folder / "prog")) == ("commands may have changed its tree, and there is no copy of it", "42\n")


def test_a_call_has_the_variables_that_the_build_gave_it(builds: Builds) -> None:
    command = "mkdir inc && mv size.h inc && export CPATH=$PWD/inc && $EACH && unset CPATH && gcc *.o -o prog"
    command = command.replace("$EACH", EACH)
    built = builds({}, command).variant(Phase.COUNTED)[Side.HEAD]
    assert (built.anew, printed(built.folder / "prog")) == ("", "42\n")


def test_fuzz_targets_are_linked_by_a_build_of_their_own(builds: Builds) -> None:
    pair = builds({}, "gcc *.c -o prog")
    pair.asked = {side: replace(asked, config=replace(asked.config, fuzz_targets=("none.c",))) for side, asked in pair.asked.items()}
    assert pair.variant(Phase.TIMED)[Side.HEAD].anew == "fuzz targets are linked to what it has built"


def test_builds_of_languages_that_lay_something_beside_the_tree_are_made_anew(builds: Builds) -> None:
    pair = builds({}, "gcc *.c -o prog")
    (head,) = (asked for side, asked in pair.asked.items() if side is Side.HEAD)
    instrumentation = Instrumentation("1", None, runtimes.library(), FlagKind.PLACED)
    built = build_all({Side.HEAD: replace(head, variant=Phase.PLACED, instrumentation=instrumentation)}, pair.cache, lambda _: None)
    assert built[Side.HEAD].anew == "more is built than by compilers alone"


def test_probes_in_a_header_are_in_all_units_that_include_it(builds: Builds, tmp_path: Path) -> None:
    files = {"size.h": "static inline int sized(int n) { return n; }\n#define SIZE sized(21)\n", "Makefile": OBJECTS}
    pair = builds(files, "make")

    def insert(tree: Path) -> Path:
        header = tree / "size.h"
        header.write_text(header.read_text().replace("{", "{PD_1", 1))
        return probe(tree)

    plain = Plain(pair.plain[Side.HEAD].beside / BUILD, pair.plain[Side.BASE].beside / BUILD)
    asked = replace(
        pair.asked[Side.HEAD],
        variant=Phase.TIMED,
        instrumentation=Instrumentation("2", insert, runtimes.library(), FlagKind.PROBED, plain),
    )
    built = build_all({Side.HEAD: asked}, pair.cache, lambda _: None)[Side.HEAD]
    asks = subprocess.run(["nm", built.tree / "main.o"], capture_output=True, text=True, check=True).stdout
    assert built.anew == ""
    assert "pd_enter" in asks


EACH = "for unit in *.c; do gcc -c $unit; done"
GCH = "gcc -x c-header size.h -o size.h.gch && $EACH && gcc *.o -o prog"
TRIED = "echo 'int main(void) { return 0; }' > t.c && gcc t.c -o t && rm t && gcc -O2 t.c -o t && rm t t.c"
TEXTS = {
    "hexadecimal": "', '.join(map(hex, code))",
    "decimal": "','.join(map(str, code))",
    "escaped": "''.join(f'\\\\x{byte:02x}' for byte in code)",
    "octal": "''.join(f'\\\\{byte:03o}' for byte in code)",
    "dumped": "code.hex()",
    "base 64": "base64.b64encode(code).decode()",
}
UNREPEATABLE = [
    pytest.param("gcc *.c -o prog -s && strip prog", "", id="stripped to the same"),
    pytest.param("gcc *.c -o prog && strip prog", "prog was changed after it was made", id="stripped"),
    pytest.param("gcc *.c -o prog && cp prog p && strip p", "p was made by a tool that was not seen", id="a copy stripped"),
    pytest.param("gcc *.c -o prog && gzip -k prog", "prog.gz was made by a tool that was not seen", id="packed"),
    pytest.param("gcc *.c -o prog && tar cf a.tar prog", "a.tar was made by a tool that was not seen", id="put into an archive"),
    pytest.param("$EACH && ld -r -o all.o *.o && gcc all.o -o prog", "all.o was made by a tool", id="linked by ld"),
    pytest.param("for unit in *.c; do gcc -flto -c $unit; done; gcc -flto *.o -o prog", "", id="lto"),
    pytest.param("gcc -c *.c && gcc *.o -o prog", "was compiled in one call with others", id="several"),
    pytest.param(
        "gcc -S same.c -o - | cat > x.s && gcc main.c twice.c x.s -o prog", "same.c was compiled to", id="assembler text in a pipe"
    ),
    pytest.param(GCH, "size.h.gch is a precompiled header", id="precompiled header"),
    pytest.param("$EACH && gcc *.o -o prog && rm same.o", "prog was made of same.o, which is gone", id="object gone"),
    pytest.param("gcc -c same.c -o ../x.o && gcc main.c twice.c ../x.o -o prog", "x.o, which is gone or lies outside", id="object outside"),
    pytest.param("echo 'int x;' > x.c && gcc *.c -o prog && rm x.c", "prog was made of x.c, which is gone", id="source gone"),
    pytest.param("$EACH && gcc *.o -o prog && echo >> size.h", "size.h was written again", id="header written again"),
    pytest.param("$EACH && gcc -DX -c same.c && gcc *.o -o prog", "same.o was made twice, and not in the same way", id="compiled twice"),
    pytest.param(f"{TRIED} && $EACH && gcc *.o -o prog", "", id="tried twice, and gone"),
    pytest.param("gcc -O2 -c same.c -o t && mv t u && gcc -c same.c -o t && rm t; $EACH && gcc *.o -o prog", "u was made by", id="moved"),
    pytest.param("$EACH && nm main.o > names && gcc *.o -o prog", "nm was asked about main.o", id="looked into"),
    pytest.param("$EACH && xxd -i < main.o | wc -c > size; gcc *.o -o prog", "xxd was asked about main.o", id="made a text of"),
    pytest.param("gcc -S same.c && gcc main.c twice.c same.s -o prog", "same.c was compiled to assembler text", id="assembled"),
    pytest.param('$EACH && echo \'asm(".incbin \\"main.o\\"");\' > x.c && gcc -c x.c && gcc *.o -o prog', "embed files", id="embedded"),
    pytest.param("$EACH && gcc *.o -o prog && gcc *.o -o $TMPDIR/../elsewhere-$$", "outside of its tree", id="elsewhere"),
    pytest.param("gcc *.c -o prog && touch $(basename $(dirname $PWD)).d", "named after the tree", id="named so"),
    pytest.param("gcc *.c -o prog && touch ~/mine", "put files into its home", id="home"),
    pytest.param("$EACH; ar q lib.a *.o; ar mb main.o lib.a twice.o && gcc lib.a -o prog", "lib.a was changed after", id="ar"),
]


@pytest.mark.parametrize(("command", "reason"), UNREPEATABLE)
def test_a_build_that_may_not_come_out_the_same_is_made_anew(builds: Builds, command: str, reason: str) -> None:
    pair = builds({}, command.replace("$EACH", EACH))
    built = pair.variant(Phase.TIMED)
    for side in Side:
        assert reason in built[side].anew, built[side].anew
        assert bool(reason) == bool(built[side].anew)
        assert printed(built[side].folder / "prog") == "42\n"
    assert pair.commands == (4 if reason else 2)


def test_names_of_variables_are_no_modules_in_c(builds: Builds) -> None:
    files = {"same.c": "int module, *export = &module;\nint same(int n) {\n  module = n;\n  return *export - 1;\n}\n"}
    assert builds(files, f"{EACH} && gcc *.o -o prog").variant(Phase.TIMED)[Side.HEAD].anew == ""


def test_why_a_variant_is_built_anew_is_told_once(builds: Builds, tmp_path: Path) -> None:
    pair = builds({}, "gcc *.c -o prog && strip prog")
    progress = Steps()
    packs = Packs(C(pair.cache.root / "units"))
    pins = {side: asked.pin for side, asked in pair.asked.items()}
    shop = Workshop(pins, pair.asked[Side.BASE].config, ENVIRONMENT, pair.cache, pair.cache.root, tmp_path, packs, progress)
    plain = shop.plain()
    shop.placed(plain)
    replace(shop, plans=tmp_path).placed(plain, ["twice.c"])
    said = [step for step in progress.steps if "anew" in step]
    assert len(said) == 1
    assert "its plain build cannot be repeated: prog was changed after it was made" in said[0]


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_text_that_a_script_makes_of_an_object_is_known(builds: Builds, text: str) -> None:
    script = f"import base64\ncode = open('same.o', 'rb').read()\nprint({text})\n"
    pair = builds({"embed.py": script}, f"{EACH} && gcc *.o -o prog && {sys.executable} embed.py > embedded.txt")
    assert pair.variant(Phase.TIMED)[Side.HEAD].anew == "embedded.txt was made by a tool that was not seen"


def test_a_repetition_that_fails_is_told_and_the_build_is_made_anew(builds: Builds) -> None:
    pair = builds({}, f"{EACH} && gcc *.o -o prog")
    for built in pair.plain.values():
        (record,) = (path for path in (built.beside / BUILD / "links").iterdir())
        content = json.loads(record.read_text())
        record.write_text(json.dumps({**content, "arguments": [*content["arguments"], "-lnothing-of-this-name"]}))
    built = pair.variant(Phase.TIMED)[Side.HEAD]
    assert "repeating the plain build failed: " in built.anew
    assert "nothing-of-this-name" in built.anew
    assert printed(built.folder / "prog") == "42\n"


@pytest.mark.parametrize(
    ("words", "archive", "members"),
    [
        (["rcs", "l.a", "x.o", "y.o"], "l.a", ["x.o", "y.o"]),
        (["-r", "-c", "l.a", "x.o"], "l.a", ["x.o"]),
        (["--plugin", "p.so", "qc", "l.a", "x.o"], "l.a", ["x.o"]),
        (["s", "l.a"], "l.a", []),
        (["x", "l.a"], None, []),
        (["t", "l.a"], None, []),
        (["rb", "x.o", "l.a", "y.o"], None, []),
        (["-M"], None, []),
    ],
)
def test_words_of_ar_tell_which_archive_it_writes(words: list[str], archive: str | None, members: list[str]) -> None:
    assert archive_words(words, is_index=False) == (archive, members)


def test_files_of_the_tree_are_known_by_their_markers(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    text = f'# 0 "x.c"\n# 1 "<built-in>"\n# 1 "{tmp_path}/a/../y.h" 1\nint n;\n# 3 "x.c" 2\n# 1 "/usr/include/stdio.h" 1 3\n'
    assert included(text.encode(), str(tmp_path / "a"), str(tmp_path)) == ["a/x.c", "y.h"]
