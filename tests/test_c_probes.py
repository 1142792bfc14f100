"""Programs with every probe that can be planned, compiled and run: they build without a word and do what they do without probes."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

import runtimes
from c_programs import function, program
from perfdiff.build.additions import guilty_probes
from perfdiff.errors import StoreError
from perfdiff.languages.c import lexer
from perfdiff.languages.c.obstacles import obstacle
from perfdiff.languages.c.probes import insert
from perfdiff.languages.protocol import FunctionDefinition, Probe
from probed_trees import compiled, probed, ran

PROGRAMS = Path(__file__).parent / "probed"


@dataclass(frozen=True, slots=True)
class Case:
    """A program of `tests/probed`; `obstructed` are its functions that carry no probe."""

    name: str
    flags: tuple[str, ...]
    obstructed: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return self.name


CASES = (
    Case("control.c", ("-std=gnu11", "-Wno-implicit-fallthrough")),
    Case("ansi.c", ("-std=c89", "-pedantic")),
    Case("renamed.c", ("-std=c99", "-pedantic"), frozenset({"strange_braces"})),
    Case("parameters.c", ("-std=gnu11",)),
    Case("printing.c", ("-std=gnu11", "-fno-builtin")),
    Case("processes.c", ("-std=gnu11", "-pthread")),
    Case("exceptions.cpp", ("-std=c++17", "-pedantic")),
    Case("generic.cpp", ("-std=c++17", "-pedantic"), frozenset({"square", "positive"})),
    Case("coroutine.cpp", ("-std=c++20", "-fcoroutines"), frozenset({"numbers"})),
)


@pytest.fixture(scope="module")
def runtime() -> Path:
    return runtimes.library()


def copied(case: Case, folder: Path) -> Path:
    """Copy a program and what it includes; return its file."""
    folder.mkdir()
    for file in PROGRAMS.glob(Path(case.name).stem + ".*"):
        (folder / file.name).write_bytes(file.read_bytes())
    return folder / case.name


@pytest.mark.integration
@pytest.mark.parametrize("case", CASES, ids=str)
def test_probed_program_does_what_it_does_without_probes(case: Case, runtime: Path, tmp_path: Path) -> None:
    plain, main = copied(case, tmp_path / "plain"), copied(case, tmp_path / "probed")
    tree = probed(main, case.flags)
    assert {one.name.rpartition("::")[2] for one in tree.functions if one.obstacle is not None} == case.obstructed
    compiler, clang = ("g++", "clang++") if main.suffix == ".cpp" else ("gcc", "clang")
    builds = [(compiler, "-O0"), (compiler, "-O2")]
    if "-fcoroutines" not in case.flags:
        builds.append((clang, "-O1"))
    expected = ran(compiled(compiler, plain, *case.flags))
    for build in builds:
        outcome = tree.run(tree.compile(build[0], runtime, build[1]), tmp_path / "".join(build))
        assert (outcome.status, outcome.output) == (expected.status, expected.output)
        assert len(outcome.met) > len(tree.probes) / 2


@pytest.mark.integration
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_what_has_to_stand_first_in_a_body_stays_there(compiler: str, runtime: Path, tmp_path: Path) -> None:
    main = tmp_path / "a.c"
    main.write_text(
        "static int local(int n) { __label__ out; if (n) goto out; n++; out: return n; }\n"
        "static double exact(double x) {\n#ifdef __clang__\n#pragma STDC FP_CONTRACT OFF\n#endif\n    return x * x + 1; }\n"
        "int main(void) { return local(3) + (int)exact(2) - 8; }\n"
    )
    tree = probed(main)
    assert [probe.definition.name for probe in tree.probes] == ["main"]
    assert tree.run(tree.compile(compiler, runtime), tmp_path / "out").status == 0


@pytest.mark.integration
def test_assembler_may_stand_beside_probed_sources_in_one_call(runtime: Path, tmp_path: Path) -> None:
    main = tmp_path / "main.c"
    main.write_text("int seven(void);\nint main(void) { return seven() - 7; }\n")
    beside = tmp_path / "seven.S"
    beside.write_text('#define ANSWER 7\n.globl seven\nseven: movl $ANSWER, %eax\n ret\n.section .note.GNU-stack,"",%progbits\n')
    tree = probed(main)
    assert tree.run(tree.compile("gcc", runtime, str(beside)), tmp_path / "out").met == {1}


CAPITALS = """
#include <stdio.h>
#include <string.h>
extern unsigned long times;
void capitalise(char *text)
{
    unsigned long i;
    for (i = 0; i < strlen(text); i++)
        if (text[i] >= 'a' && text[i] <= 'z' && (i == 0 || text[i - 1] == ' '))
            text[i] -= 'a' - 'A';
}
int main(void)
{
    char text[] = "One And Another, a few words of no more than a line";
    capitalise(text);
    printf("%lu\\n", times);
    return 0;
}
"""
STRLEN = """
unsigned long times;
unsigned long strlen(const char *text)
{
    unsigned long end = 0;
    times++;
    while (text[end])
        end++;
    return end;
}
"""


@pytest.mark.integration
def test_carriage_returns_and_bytes_of_other_encodings_stay(runtime: Path, tmp_path: Path) -> None:
    text = (PROGRAMS / "control.c").read_bytes().replace(b"out:", b"out: /* \xe9 */").replace(b'"yes"', b'"\xff\xe9s"')
    main = tmp_path / "control.c"
    main.write_bytes(text.replace(b"\n", b"\r\n"))
    flags = ("-std=gnu11", "-Wno-implicit-fallthrough")
    expected = ran(compiled("gcc", main, *flags))
    tree = probed(main, flags)
    changed = main.read_bytes()
    assert changed.count(b"\r\n") == text.count(b"\n")
    without = re.sub(rb"PD_\d+|PD_B_\d+_\d+ \(|\) \? 1 : 0\)", b"", changed)
    assert without.replace(b" ", b"") == text.replace(b"\n", b"\r\n").replace(b" ", b"")
    outcome = tree.run(tree.compile("gcc", runtime), tmp_path / "out")
    assert (outcome.status, outcome.output) == (expected.status, expected.output)


def inserted(tree: Path, source: str, *probes: tuple[int, str, tuple[int, ...], tuple[int, ...]]) -> tuple[str, str]:
    """Insert probes (number, function, features, conditions) into one file; return its new text and the header."""
    found = program(tree, {"a.c": source})
    header = insert(tree, [Probe(number, function(found, name), features, branches) for number, name, features, branches in probes])
    return (tree / "a.c").read_text(), header.read_text()


@pytest.mark.integration
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_a_loop_calls_no_less_with_a_probe_than_without(compiler: str, runtime: Path, tmp_path: Path) -> None:
    """A pure call is not left out because the ways into a body, with a probe on and off, are optimised apart."""
    plain, strlen = tmp_path / "plain.c", tmp_path / "strlen.o"
    plain.write_text(CAPITALS)
    subprocess.run([compiler, "-fno-builtin", "-x", "c", "-c", "-o", strlen, "-"], input=STRLEN.encode(), check=True)
    flags = ("-O2", "-fno-inline", str(strlen))
    expected = ran(compiled(compiler, plain, *flags))
    inserted(tmp_path / "probed", CAPITALS, (1, "capitalise", (0,), ()))
    header = ("-include", str(tmp_path / "probed/.perfdiff/probes.h"), "-isystem", str(runtime))
    library = (f"-L{runtime}", f"-Wl,-rpath,{runtime}", "-lperfdiff")
    outcome = ran(compiled(compiler, tmp_path / "probed/a.c", *flags, *header, libraries=library))
    assert int(outcome.output) >= int(expected.output) > 50  # the runtime asks for a few lengths of its own


def test_only_chosen_features_and_conditions_are_read_with_dense_cells(tmp_path: Path) -> None:
    source = "int f(int a, int b, int c) {if (a) return 1; if (b) return 2; return c?3:4;}\n"
    text, header = inserted(tmp_path, source, (7, "f", (0, 2), (1, 2)))
    assert (
        text
        == "int f(int a, int b, int c) {PD_7 if (a) return 1; if (PD_B_7_0 (b) ? 1 : 0)) return 2; return PD_B_7_1 (c) ? 1 : 0)?3:4;}\n"
    )
    assert "(pd_signed(&pd_frame_, 0, (pd_signed_t)(a)), pd_signed(&pd_frame_, 1, (pd_signed_t)(c)), pd_start(&pd_frame_)) : 0);" in header
    assert "#define PD_B_7_0 pd_branch(&pd_frame_, 2, 0,\n#define PD_B_7_1 pd_branch(&pd_frame_, 2, 1,\n" in header


def test_a_probe_is_switched_off_alone_or_with_all_others(tmp_path: Path) -> None:
    text, header = inserted(tmp_path, "int f(int a) { return(a)?1:2; }\nvoid g(void) {}\n", (1, "f", (), (0,)), (2, "g", (), ()))
    assert text == "int f(int a) {PD_1 return PD_B_1_0 ((a)) ? 1 : 0)?1:2; }\nvoid g(void) {PD_2 }\n"
    assert "#if defined PD_NONE || defined PD_NO_1\n#define PD_1\n#define PD_B_1_0 (\n#else\n" in header
    assert "#if defined PD_NONE || defined PD_NO_2\n#define PD_2\n#else\n" in header


def test_conditions_inside_conditions_nest(tmp_path: Path) -> None:
    text, _ = inserted(tmp_path, "int f(int a, int b) { if (a ? b : a) return 1; return 0; }\n", (1, "f", (), (0, 1)))
    assert "if (PD_B_1_0 (PD_B_1_1 (a) ? 1 : 0) ? b : a) ? 1 : 0))" in text


LISTS = """
#define EACH(i, n) for (int i = 0; i < (n); i++) {
#define PUSH(name, type) \\
    static void name##_push(struct name##_list *list, type item) __attribute__((noinline)); \\
    static void name##_push(struct name##_list *list, type item) { list->items[list->length++] = item; }
#define LIST(name, type) \\
    struct name##_list { int length; type items[8]; }; \\
    PUSH(name, type) \\
    static int name##_count(const struct name##_list *list, int from) \\
    {int found = 0; EACH(i, list->length) if (i >= from) found++; } return found; }
LIST(number, double)
LIST(letter, char) LIST(idle, char)

int main(void) {
    struct number_list numbers = {0};
    struct letter_list letters = {0};
    number_push(&numbers, 2.5);
    EACH(i, 3) letter_push(&letters, 'a'); }
    return number_count(&numbers, 0) + letter_count(&letters, 2) - 2;
}
"""


@pytest.mark.integration
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_functions_that_one_macro_makes_are_probed_each_under_its_name(compiler: str, runtime: Path, tmp_path: Path) -> None:
    main = tmp_path / "a.c"
    main.write_text(LISTS)
    tree = probed(main, ("-Wno-unused-function",))
    names = {probe.id: probe.definition.name for probe in tree.probes}
    [record] = tree.run(tree.compile(compiler, runtime, "-O1"), tmp_path / "out").recordings
    calls = {names[number]: int(calls) for number, calls in zip(record.totals.probe, record.totals.calls, strict=True) if number}
    assert calls == {"number_push": 1, "letter_push": 3, "number_count": 1, "letter_count": 1, "main": 1}
    pushes, counts = (next(each for each in tree.functions if each.name == name) for name in ("letter_push", "letter_count"))
    assert [feature.name for feature in pushes.features] == ["list->length"]  # items are of another type in each list
    assert [feature.name for feature in counts.features] == ["from", "list->length"]


def test_of_functions_that_one_macro_makes_the_first_probe_stands_for_all(tmp_path: Path) -> None:
    source = "#define MAKE(name) int name(int n) { return n; }\nMAKE(one)\nMAKE(two)\n"
    text, header = inserted(tmp_path, source, (4, "one", (0,), ()), (5, "two", (), ()))
    assert text == source.replace("{ ", "{PD_4 PD_5  ")
    assert header.count("#define PD_5\n") == 1
    assert 'PD_ENTER(!__builtin_strcmp(__func__, "one") ? 4u : !__builtin_strcmp(__func__, "two") ? 5u : ~0u)' in header
    assert "((pd_frame_.probe == 4 ? (pd_signed(&pd_frame_, 0, (pd_signed_t)(n)), 0) : 0), pd_start(&pd_frame_)) : 0);" in header


def test_functions_of_one_name_that_one_macro_makes_carry_no_probes(tmp_path: Path) -> None:
    made = '#include "make.h"\nMAKE(twice)\nint %s(void) { return twice(1); }\n'
    files = {"make.h": "#define MAKE(name) static int name(int n) { return 2 * n; }\n", "a.c": made % "a", "b.c": made % "b"}
    found = program(tmp_path, files)
    assert {one.obstacle for one in found.functions.values() if one.name == "twice"} == {"its body comes from a macro"}


@pytest.mark.integration
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_macros_of_the_program_that_are_called_like_attributes_leave_its_probes_alone(compiler: str, runtime: Path, tmp_path: Path) -> None:
    main = tmp_path / "a.c"
    main.write_text(
        "#define unused __attribute__((__unused__))\n#define cleanup(x) (x)\n#define always_inline inline\n"
        "static int twice(int n, int rest unused) { return 2 * n; }\nint main(void) { return twice(0, 1); }\n"
    )
    tree = probed(main)
    outcome = tree.run(tree.compile(compiler, runtime), tmp_path / "out")
    assert (outcome.status, len(outcome.met)) == (0, 2)


@pytest.mark.integration
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_compilers_name_the_probe_that_does_not_compile(compiler: str, runtime: Path, tmp_path: Path) -> None:
    source = "int good(int n) { return n; }\nint bad(int n) { return n; }\nint worse(int n) { if (n) return 1; return n; }\n"
    found = program(tmp_path, {"a.c": source})

    def broken(one: FunctionDefinition) -> FunctionDefinition:
        features = tuple(replace(each, expression=each.expression.replace("(n)", "(n.unknown)")) for each in one.features)
        return replace(one, features=features)

    bad = broken(function(found, "bad"))
    header = insert(
        tmp_path, [Probe(4, function(found, "good"), (0,), ()), Probe(17, bad, (0,), ()), Probe(5, function(found, "worse"), (0,), (0,))]
    )
    command = [compiler, "-include", header, "-isystem", runtime, "-c", tmp_path / "a.c", "-o", tmp_path / "a.o"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode != 0
    assert guilty_probes(ended.stderr) == {17}
    subprocess.run([*command, "-DPD_NO_17", "-Werror"], check=True)


def test_a_file_that_the_build_makes_has_its_text_with_probes_laid_aside(tmp_path: Path) -> None:
    """As it is in this tree, whose path may stand in it."""
    built, fresh = tmp_path / "built", tmp_path / "fresh"
    line = f'#line 1 "{built}/a.y"\n'
    found = program(built, {"made/a.c": f"{line}int f(int n) {{ return n; }}\n", "b.c": "int g(int n) { return n; }\n"})
    fresh.mkdir()
    (fresh / "b.c").write_text("int g(int n) { return n; }\n")
    header = insert(fresh, [Probe(1, function(found, "f"), (0,), ()), Probe(2, function(found, "g"), (0,), ())], built)
    assert header == fresh / ".perfdiff/probes.h"
    assert (fresh / "b.c").read_text() == "int g(int n) {PD_2 return n; }\n"
    assert not (fresh / "made/a.c").exists()
    line = line.replace("built", "fresh")
    assert (fresh / ".perfdiff/made/made/a.c.plain").read_text() == f"{line}int f(int n) {{ return n; }}\n"
    assert (fresh / ".perfdiff/made/made/a.c.probed").read_text() == f"{line}int f(int n) {{PD_1 return n; }}\n"
    assert [path.name for path in fresh.rglob("*.c")] == ["b.c"], "no build takes what lies aside for sources"


def test_a_file_that_differs_from_what_was_indexed_gets_no_probes(tmp_path: Path) -> None:
    found = program(tmp_path / "built", {"a.c": "int f(int n) { return n; }\n", "b.c": "int g(int n) { return n; }\n"})
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    (fresh / "b.c").write_text("int other;\n")
    insert(fresh, [Probe(1, function(found, "f"), (0,), ()), Probe(2, function(found, "g"), (0,), ())])
    assert (fresh / "b.c").read_text() == "int other;\n"
    assert not (fresh / "a.c").exists()


def test_a_tree_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    found = program(tmp_path, {"a.c": "int f(int n) { return n; }\n"})
    (tmp_path / ".perfdiff").write_text("in the way")
    with pytest.raises(StoreError) as caught:
        insert(tmp_path, [Probe(1, function(found, "f"), (0,), ())])
    assert caught.value.slug == "cache-unwritable"


@pytest.mark.parametrize(
    ("statement", "is_obstructed"),
    [
        ('__asm volatile ("movq %rbp, 24(%rdi) \\n" "jmp g");', True),
        ('asm("str r4, [r0, #8]");', True),
        ('__asm__ __volatile__ ("movq %0, %%rax" : : "r" (n));', False),
        ('asm volatile ("pause");', False),
    ],
)
def test_a_function_whose_assembler_text_finds_its_arguments_in_registers_carries_no_probe(statement: str, is_obstructed: bool) -> None:
    says = obstacle((), lexer.tokens(f"{{ {statement} }}".encode()), has_place=True, name="f", resolvers=())
    assert (says is not None) == is_obstructed
