"""Objects of the other side: taken where compiling would give the same, and nowhere else."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from perfdiff.build.commands import read_compile_log
from perfdiff.build.masquerade import FlagKind, Flags, Partner, Plain, set_up_masquerade

pytestmark = pytest.mark.integration

SOURCE = """\
#include <assert.h>
#include <stdio.h>
#include "size.h"
int twice(int n) { assert(n < SIZE); printf("%s\\n", __FILE__); return 2 * n; }
"""
FILES = {"src/twice.c": SOURCE, "src/size.h": "#define SIZE 100\n"}
# What a compiler gives hangs on these beside the text, or is more than an object.
ODD = ["-flto", "-gz -g", "-save-temps", "-fprofile-arcs", "-gsplit-dwarf -g", "-Wa,-aln=list", "-fstack-usage", "-B.", "-Wp,-MD,x.d", "-S"]


@dataclass(frozen=True, slots=True)
class Side:
    """A tree whose compilers write down how they were called."""

    beside: Path
    environment: dict[str, str]
    calls: Path

    @property
    def tree(self) -> Path:
        return self.beside / "source"

    def run(self, command: str) -> None:
        subprocess.run(command, shell=True, cwd=self.tree, env=self.environment, check=True, capture_output=True)

    @property
    def compiled(self) -> int:
        """Return how often something was compiled."""
        lines = self.calls.read_text().splitlines() if self.calls.exists() else []
        return sum(" -E" not in line for line in lines)


Sides = Callable[..., Side]


@pytest.fixture
def sides(tmp_path: Path) -> Sides:
    """Make the side of a letter, whose partner is that of the other letter, or none where it is small."""
    tools = tmp_path / "tools"
    tools.mkdir()
    calls = tmp_path / "calls"
    calls.mkdir()
    for name in ("gcc", "g++", "clang"):
        if real := shutil.which(name):
            (tools / name).write_text(f'#!/bin/sh\necho " $*" >> "$CALLS"\nexec {real} "$@"\n')
            (tools / name).chmod(0o755)

    def make(letter: str, files: dict[str, str], flags: Flags | None = None, earlier: Sequence[Path] | None = None) -> Side:
        beside, other = tmp_path / (letter * 32), tmp_path / (("A" if letter == "B" else "B") * 32)
        for name, text in files.items():
            (beside / "source" / name).parent.mkdir(parents=True, exist_ok=True)
            (beside / "source" / name).write_text(text)
        environment = {"PATH": f"{tools}:{os.environ['PATH']}", "LC_ALL": "C", "CALLS": str(calls / letter)}
        if flags is not None and flags.header is not None:
            header = beside / "source" / ".perfdiff/probes.h"
            header.parent.mkdir()
            shutil.copy(flags.header, header)
            flags = replace(flags, header=header)
        partner = Partner(other / "build") if letter.isupper() else None
        masquerade = set_up_masquerade(beside / "build", beside / "source", environment, flags, partner, earlier)
        return Side(beside, dict(masquerade.environment), calls / letter)

    return make


COMMANDS = [
    "cd src && gcc -O2 -c twice.c -o twice.o",
    "cd src && gcc -O2 -g -c twice.c -o twice.o",
    "gcc -O2 -g -MD -MT src/twice.o -MF src/twice.d -o src/twice.o -c $PWD/src/twice.c",
    "cd src && gcc -O1 -MMD -c twice.c",
    "cd src && gcc -O2 -MT twice.o -MD -MP -MF twice.Tpo -c -o twice.o twice.c && mv twice.Tpo twice.d",
    "g++ -O2 -g1 -c $PWD/src/twice.c -o src/twice.o",
    pytest.param(
        "clang -O2 -g -MD -c $PWD/src/twice.c -o src/twice.o", marks=pytest.mark.skipif(not shutil.which("clang"), reason="clang")
    ),
]


def contents(side: Side) -> dict[str, object]:
    """Return what was compiled in `src`: objects without debugging information, and that as sorted texts.

    gcc's tables of strings come in an order that hangs on the strings.
    """
    found: dict[str, object] = {}
    for path in (side.tree / "src").glob("twice.[od]"):
        found[path.name] = path.read_bytes()
        if path.suffix == ".o":
            subprocess.run(["strip", "-g", "-o", side.beside / "bare.o", path], check=True)
            texts = subprocess.run(["strings", "-a", path], capture_output=True, check=True).stdout.splitlines()
            found[path.name] = (side.beside / "bare.o").read_bytes(), sorted(text for text in texts if b"src" in text or b"/" in text)
    return found


@pytest.mark.parametrize("command", COMMANDS)
def test_unit_that_is_the_same_is_compiled_once_with_the_same_result(sides: Sides, command: str) -> None:
    base, head = sides("A", FILES), sides("B", FILES)
    base.run(command)
    head.run(command)
    assert (base.compiled, head.compiled) == (1, 0)
    (recorded,) = read_compile_log(head.beside / "build/calls", head.tree).commands
    assert recorded.file == head.tree / "src/twice.c"
    assert str(base.tree).encode() not in (head.tree / "src/twice.o").read_bytes()
    taken = contents(head)
    for path in (head.tree / "src").glob("twice.[od]"):
        path.unlink()
    shutil.rmtree(base.beside / "build/objects")
    head.run(command)
    assert head.compiled == 1
    assert contents(head) == taken
    assert "twice.o" in taken


@pytest.mark.parametrize(
    ("files", "command"),
    [
        ({"src/twice.c": SOURCE.replace("2 * n", "n + n")}, "gcc -O2 -c src/twice.c -o t.o"),
        ({"src/size.h": "#define SIZE 101\n"}, "gcc -O2 -c src/twice.c -o t.o"),
        ({"src/twice.c": f"\n{SOURCE}"}, "gcc -O2 -c src/twice.c -o t.o"),
        ({"src/assert.h": "#define assert(x)\n"}, "gcc -O2 -Isrc -c src/twice.c -o t.o"),
        ({}, "gcc -O1 -c src/twice.c -o t.o"),
        ({}, "gcc -O2 -DSIZE_=1 -c src/twice.c -o t.o"),
        ({}, "g++ -O2 -c src/twice.c -o t.o"),
        ({}, "gcc -O2 -c src/twice.c -o u.o"),
        ({}, "cd src && gcc -O2 -c twice.c -o ../t.o"),
    ],
    ids=["source", "header", "lines", "shadowed", "option", "macro", "compiler", "output", "folder"],
)
def test_whatever_compiling_depends_on_makes_another_object(sides: Sides, files: dict[str, str], command: str) -> None:
    base, head = sides("A", FILES), sides("B", {**FILES, **files})
    base.run("gcc -O2 -Isrc -c src/twice.c -o t.o" if "-Isrc" in command else "gcc -O2 -c src/twice.c -o t.o")
    head.run(command)
    assert (base.compiled, head.compiled) == (1, 1)


@pytest.mark.parametrize("option", ODD)
def test_option_by_which_more_is_read_or_written_keeps_sides_apart(sides: Sides, option: str) -> None:
    base, head = sides("A", FILES), sides("B", FILES)
    for side in (base, head):
        side.run(f"gcc -O2 {option} -c src/twice.c -o t.o")
    assert head.compiled == base.compiled > 0


@pytest.mark.parametrize("text", ['__asm__(".incbin \\"src/size.h\\"");', '__asm__(".include \\"/dev/null\\"");'])
def test_text_that_reads_files_while_it_is_assembled_keeps_sides_apart(sides: Sides, text: str) -> None:
    base, head = (sides(letter, {**FILES, "a.c": f"{text}\nint a;\n"}) for letter in "AB")
    for side in (base, head):
        side.run("gcc -c a.c")
    assert head.compiled == 1


@pytest.mark.skipif(not shutil.which("clang"), reason="clang")
@pytest.mark.parametrize("option", ["-fprebuilt-module-path=.", "-fmodule-file=foo.pcm", "@options", ""])
@pytest.mark.parametrize("imports", ["import foo;", "int a; import foo;"])
def test_unit_that_imports_a_module_is_compiled_on_both_sides(sides: Sides, option: str, imports: str) -> None:
    """What a module says is not in the text of who imports it, and options that a compiler is given otherwise are not among its words."""
    files = {"main.cpp": f"{imports}\nint main() {{ return work(); }}\n", "options": "-fprebuilt-module-path=.\n"}
    modules = (f"export module foo;\nexport inline int work() {{ return {answer}; }}\n" for answer in (1, 2))
    hidden = "" if option else "CCC_OVERRIDE_OPTIONS='# +-fprebuilt-module-path=.' "
    for side in (sides(letter, {**files, "foo.cppm": module}) for letter, module in zip("AB", modules, strict=True)):
        side.run("clang -std=c++20 --precompile foo.cppm -o foo.pcm")
        side.run(f"{hidden}clang -std=c++20 {option} -c main.cpp -o main.o")
        assert side.compiled == 2


def test_files_whose_names_are_words_of_modules_keep_no_sides_apart(sides: Sides) -> None:
    base, head = (sides(letter, {"src/export.h": "int a;\n", "a.cpp": '#include "src/export.h"\nint b;\n'}) for letter in "AB")
    for side in (base, head):
        side.run("g++ -c $PWD/a.cpp")
    assert (base.compiled, head.compiled) == (1, 0)


def test_path_of_the_tree_within_instructions_keeps_sides_apart(sides: Sides, tmp_path: Path) -> None:
    start = len(tmp_path.as_posix()) + 1  # of the name that the other side has not
    four = " | ".join(f"__FILE__[{start + at}] << {8 * at}" for at in range(4))  # what one instruction holds, however long the path is
    inside = f"int letters(void) {{ return {four}; }}\n"
    base, head = (sides(letter, {"f.c": inside}) for letter in "AB")
    for side in (base, head):
        side.run("gcc -O2 -c $PWD/f.c")
    assert base.tree.as_posix().encode() not in (base.tree / "f.o").read_bytes()
    assert head.compiled == 1


def test_object_that_was_changed_since_is_not_taken(sides: Sides) -> None:
    base, head = sides("A", FILES), sides("B", FILES)
    base.run("gcc -O2 -c src/twice.c -o t.o && strip -g t.o && printf x >> t.o")
    head.run("gcc -O2 -c src/twice.c -o t.o")
    assert head.compiled == 1
    assert not (head.tree / "t.o").read_bytes().endswith(b"x")


def test_unit_that_does_not_compile_is_told_on_both_sides(sides: Sides) -> None:
    base, head = (sides(letter, {"a.c": "int a = b;\n"}) for letter in "AB")
    for side in (base, head):
        with pytest.raises(subprocess.CalledProcessError) as caught:
            side.run("gcc -c a.c")
        assert b"a.c:1:9: error" in caught.value.stderr


def test_one_side_alone_leaves_no_objects_for_another(sides: Sides) -> None:
    alone = sides("a", FILES)
    alone.run("gcc -O2 -c src/twice.c -o t.o")
    assert alone.compiled == 1
    assert not (alone.beside / "build/objects").exists()


def test_objects_of_builds_that_are_kept_serve_another_one_by_itself(sides: Sides) -> None:
    """So a history of revisions compiles what changed in each."""
    first = sides("d", FILES, earlier=[])
    first.run("gcc -O2 -g -c src/twice.c -o t.o")
    second = sides("e", {**FILES, "other.c": "int other;\n"}, earlier=[first.beside / "gone", first.beside / "build"])
    second.run("gcc -O2 -g -c src/twice.c -o t.o && gcc -O2 -g -c other.c -o other.o")
    assert (first.compiled, second.compiled) == (1, 1)
    third = sides("f", FILES, earlier=[second.beside / "build"])
    shutil.rmtree(first.beside)
    third.run("gcc -O2 -g -c src/twice.c -o t.o")
    assert third.compiled == 0


PROBES = """\
#pragma GCC system_header
#ifdef PD_NO_1
#define PD_1
#else
#define PD_1 int pd_probe_ = pd_undeclared_function_of_1;
#endif
#define PD_2 int pd_probe_ = 2;
"""


def test_dropped_probes_are_told_on_both_sides(sides: Sides, tmp_path: Path) -> None:
    header = tmp_path / "probes.h"
    header.write_text(PROBES)
    flags = Flags(header=header, runtime=tmp_path)
    probed = {"a.c": "int a(int n) {PD_1 return n; }\nint b(int n) {PD_2 return n; }\n"}
    base, head = (sides(letter, probed, flags) for letter in "AB")
    for side in (base, head):
        side.run("gcc -O2 -c a.c")
    assert (base.compiled, head.compiled) == (2, 0)
    dropped = [read_compile_log(side.beside / "build/calls", side.tree).dropped for side in (base, head)]
    assert [(drop.probe, drop.file) for drop in dropped[1]] == [(1, "a.c")]
    assert dropped[0] == dropped[1]


COUNTED = {"a.c": "int main(int n, char **word) {\n  for (int i = 0; i < 6; i++)\n    n += i;\n  return n < 0;\n}\n", "b.c": "int b;\n"}


@pytest.mark.parametrize("command", ["gcc -O2 -c a.c -o a.o", "gcc -O2 -g -c $PWD/a.c -o $PWD/a.o", "mkdir l; gcc -c a.c -o l/a.c.o"])
def test_lines_of_an_object_that_was_taken_are_counted_in_its_own_tree(sides: Sides, tmp_path: Path, command: str) -> None:
    flags = Flags(header=None, runtime=tmp_path, kind=FlagKind.PLACED)
    base, head = (sides(letter, COUNTED, flags) for letter in "AB")
    for side in (base, head):
        side.run(command)
    assert (base.compiled, head.compiled) == (1, 0)
    (note,) = head.tree.rglob("*.gcno")
    assert str(base.tree).encode() not in note.read_bytes()
    subprocess.run(f"gcc -fprofile-arcs {next(head.tree.rglob('*.o'))} -o a && ./a", shell=True, cwd=head.tree, check=True)
    assert not list(base.tree.rglob("*.gcda"))
    (counts,) = head.tree.rglob("*.gcda")
    told = subprocess.run(["gcov", "-t", counts], cwd=head.tree, capture_output=True, text=True, check=True)
    assert (re.findall(r"^ *(\d+)\*?: +3:", told.stdout, re.MULTILINE), told.stderr) == (["6"], "")


@pytest.mark.skipif(not shutil.which("clang"), reason="clang")
def test_each_side_compiles_what_clang_is_to_count(sides: Sides, tmp_path: Path) -> None:
    """Its objects hold paths in compressed form, where no other one can take their place."""
    flags = Flags(header=None, runtime=tmp_path, kind=FlagKind.PLACED)
    base, head = (sides(letter, COUNTED, flags) for letter in "AB")
    for side in (base, head):
        side.run("clang -O2 -c a.c -o a.o")
    assert (base.compiled, head.compiled) == (1, 1)


def test_object_taken_is_noted_for_the_next_build(sides: Sides) -> None:
    base, head = sides("A", FILES), sides("B", FILES)
    for side in (base, head):
        side.run("gcc -O2 -g -c src/twice.c -o t.o")
    note = next((head.beside / "build/objects").iterdir())
    assert json.loads(note.read_text())["made"][0][0] == str(head.tree / "t.o")


@pytest.fixture
def plain(sides: Sides) -> Callable[[dict[str, str], dict[str, str]], Plain]:
    """Compile a plain build of both sides, from their files; what is returned stands for the first one's."""

    def make(base_files: dict[str, str], head_files: dict[str, str]) -> Plain:
        base, head = sides("A", base_files), sides("B", head_files)
        for side in (base, head):
            side.run("for unit in *.c; do gcc -O2 -g -MD -c $unit; done")
        return Plain(base.beside / "build", head.beside / "build")

    return make


UNITS = {"same.c": '#include "size.h"\nint same(int n) { return n * SIZE; }\n', "size.h": "#define SIZE 3\n", "other.c": "int other = 1;\n"}


def test_unit_to_which_nothing_is_added_has_its_object_from_the_plain_build(
    sides: Sides, plain: Callable[..., Plain], tmp_path: Path
) -> None:
    header = tmp_path / "probes.h"
    header.write_text(PROBES)
    origin = plain(UNITS, {**UNITS, "other.c": "int other = 2;\n"})
    flags = Flags(header, tmp_path, plain=origin)
    timed = sides("c", {**UNITS, "probed.c": "int b(int n) {PD_2 return n; }\n"}, flags)
    timed.run("for unit in *.c; do gcc -O2 -g -MD -c $unit; done")
    compiled = [line.split()[-1] for line in timed.calls.read_text().splitlines() if " -E" not in line]
    assert compiled == ["-fdiagnostics-show-caret"] * 2, "what differs between sides, and what has a probe"
    assert str(origin.folder.with_name("source")).encode() not in (timed.tree / "same.o").read_bytes()
    assert "size.h" in (timed.tree / "same.d").read_text()
    sections = subprocess.run(["objdump", "-h", timed.tree / "same.o"], capture_output=True, text=True, check=True).stdout
    assert re.search(r" \.text .* 2\*\*6$", sections, re.MULTILINE), sections


@pytest.mark.parametrize(("counted", "compiled"), [(None, 2), ({"other.c"}, 1), ({"size.h"}, 1), ({"nowhere.c"}, 0)])
def test_lines_are_counted_in_units_that_have_text_of_the_files_in_question(
    sides: Sides, plain: Callable[..., Plain], tmp_path: Path, counted: set[str] | None, compiled: int
) -> None:
    flags = Flags(None, tmp_path, FlagKind.PLACED, replace(plain(UNITS, UNITS), line_files=counted))
    placed = sides("c", UNITS, flags)
    placed.run("for unit in *.c; do gcc -O2 -g -MD -c $unit; done")
    assert placed.compiled == len(list(placed.tree.glob("*.gcno"))) == compiled


def test_counted_builds_compile_each_unit(sides: Sides, plain: Callable[..., Plain], tmp_path: Path) -> None:
    (tmp_path / "probes.h").write_text(PROBES)
    (tmp_path / "perfdiff_inline.h").touch()
    (tmp_path / "counted.specs").touch()
    counted = sides("c", UNITS, Flags(tmp_path / "probes.h", tmp_path, FlagKind.COUNTED, plain(UNITS, UNITS)))
    counted.run("gcc -O2 -g -MD -c same.c")
    assert counted.compiled > 0
