"""Which programs and functions are the same machine code, on objects of real compilers."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from perfdiff.collect.choosing.subjects import cleared
from perfdiff.languages.c import elf, object_code
from perfdiff.languages.c.built_files import look_through
from perfdiff.languages.c.index import index
from perfdiff.languages.c.instructions import operand_ends
from perfdiff.languages.c.machine_code import MachineCode, same_code
from perfdiff.languages.c.matching import match
from perfdiff.languages.protocol import CompileCommand, Counterpart, Program

COMPILERS = ("gcc", "clang")
OPTIMISED = ("-O2", "-g")
SOURCES = {".c", ".cc"}

MAIN = "#include <stdlib.h>\nint work(int n);\nint main(int argc, char **argv) { return work(argc > 1 ? atoi(argv[1]) : 3); }\n"
LAST = """int work(int n) {
  int values[4] = {n, 2, n + 3, 1};
  calls++;
  qsort(values, 4, sizeof *values, order);
  return weigh(values[0]) + choose(values[1]) + say(n) + bumped(n);
}
"""
WORK = (
    """
#include <stdio.h>
#include <stdlib.h>
#define FACTOR 3
static const int weights[8] = {1, 2, 3, 4, 5, 6, 7, 9};
static int calls;
__attribute__((noinline)) static int step(int value) { return value * FACTOR + calls; }
__attribute__((noinline)) static int order(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
static inline int bump(int value) { return value ^ 0x55; }
__attribute__((noinline)) int weigh(int value) { return weights[value & 7] + step(value); }
__attribute__((noinline)) int say(int value) { puts("one"); return value; }
__attribute__((noinline)) int choose(int value) {
  switch (value) {
    case 0: return step(1);
    case 1: puts("first"); return 4;
    case 2: return 77;
    case 3: puts("third"); return step(9);
    case 4: return step(3);
    case 5: exit(3);
  }
  return value;
}
__attribute__((noinline)) int bumped(int value) { return bump(value) * 7; }
"""
    + LAST
)


@dataclass(frozen=True)
class Build:
    """A tree and the commands that compiled it, as a recorded build has them."""

    tree: Path
    commands: tuple[CompileCommand, ...]


@dataclass(frozen=True)
class Compared:
    """Two builds, what they have in common, and their functions by name."""

    base: Build
    head: Build
    code: MachineCode
    pairs: Mapping[str, Counterpart]

    def same(self) -> set[str]:
        """Return the names of the functions that are the same."""
        return {name for name, pair in self.pairs.items() if self.code.is_same(pair)}

    def unlike(self) -> set[str]:
        """Return the names of the functions of which that is not said."""
        return self.pairs.keys() - self.same()


def build(tree: Path, sources: Mapping[str, str], compiler: str = "gcc", flags: Sequence[str] = OPTIMISED, *, keep: bool = True) -> Build:
    """Write the sources, compile each and link them to `program`; the objects stay where `keep`."""
    commands = []
    for name, text in sources.items():
        path = tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if path.suffix in SOURCES:
            driver = compiler if path.suffix == ".c" else {"gcc": "g++", "clang": "clang++"}[compiler]
            words = (*flags, "-c", str(path), "-o", str(path.with_suffix(".o")))
            commands.append(CompileCommand(path.resolve(), tree.resolve(), shutil.which(driver) or driver, words, path.suffix == ".cc"))
    for command in commands:
        subprocess.run([command.compiler, *command.arguments], cwd=tree, check=True)
    objects = [str(command.file.with_suffix(".o")) for command in commands]
    driver = next((command.compiler for command in commands if command.cplusplus), commands[0].compiler)
    subprocess.run([driver, *flags, *objects, "-o", "program"], cwd=tree, check=True)
    if not keep:
        for path in objects:
            Path(path).unlink()
    return Build(tree.resolve(), tuple(commands))


def indexed(one: Build) -> Program:
    """Return the functions of a build."""
    return index(one.tree, one.commands, depth=1, workers=1)


def compared(base: Build, head: Build, base_program: Program | None = None) -> Compared:
    """Index, match and compare two builds."""
    pairs = match(base_program or indexed(base), indexed(head))
    by_name = {one.name: pair for pair in pairs if (one := pair.head or pair.base) is not None}
    return Compared(base, head, same_code(base, head, pairs, {}), by_name)


Edit = Callable[..., Compared]


@pytest.fixture(scope="module")
def edited(tmp_path_factory: pytest.TempPathFactory) -> Edit:
    """Compare WORK with itself after an edit; base is built once for each compiler and its flags."""
    bases: dict[tuple[str, Sequence[str]], tuple[Build, Program]] = {}

    def run(old: str, new: str, compiler: str = "gcc", flags: Sequence[str] = OPTIMISED) -> Compared:
        assert old in WORK
        folder = tmp_path_factory.mktemp("edit")
        if (compiler, flags) not in bases:
            base = build(folder / "base", {"main.c": MAIN, "work.c": WORK}, compiler, flags)
            bases[compiler, flags] = base, indexed(base)
        head = build(folder / "head", {"main.c": MAIN, "work.c": WORK.replace(old, new)}, compiler, flags)
        return compared(bases[compiler, flags][0], head, bases[compiler, flags][1])

    return run


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("#define FACTOR 3", "/* Three\n   lines\n   more. */\n#define FACTOR 3"),
        ("int weigh(int value) { return weights[value & 7] + step(value); }", "int weigh(int v) { return weights[v & 7] + step(v); }"),
    ],
    ids=["comment", "renamed local"],
)
def test_a_change_that_compiles_to_nothing_leaves_the_program_the_same_to_the_byte(edited: Edit, compiler: str, old: str, new: str) -> None:
    found = edited(old, new, compiler)
    assert found.code.identical
    assert found.code.same_bytes
    assert found.code.differs == found.code.unknown == ()
    assert found.unlike() == set()


@pytest.mark.parametrize("compiler", COMPILERS)
def test_functions_in_another_order_are_the_same_program_in_another_layout(edited: Edit, compiler: str) -> None:
    weigh, say = (next(line for line in WORK.splitlines() if f"int {name}(" in line) for name in ("weigh", "say"))
    flags = ("-O2", "-fno-toplevel-reorder") if compiler == "gcc" else ("-O2", "-ffunction-sections")
    found = edited(f"{weigh}\n{say}\n", f"{say}\n{weigh}\n", compiler, flags)
    assert found.code.identical
    assert not found.code.same_bytes
    assert found.unlike() == set()


def test_a_function_moved_to_another_file_is_the_same(tmp_path: Path) -> None:
    line = '__attribute__((noinline)) int say(int value) { puts("one"); return value; }\n'
    base = build(tmp_path / "base", {"main.c": MAIN, "work.c": WORK, "more.c": "int more;\n"})
    head = {"main.c": MAIN, "work.c": WORK.replace(line, "int say(int value);\n"), "more.c": f"#include <stdio.h>\nint more;\n{line}"}
    found = compared(base, build(tmp_path / "head", head))
    # By gcc: clang knows in its caller what it returns, as long as it stands in the same file.
    assert found.code.is_same(found.pairs["say"])


@pytest.mark.parametrize("compiler", COMPILERS)
def test_a_renamed_static_function_and_its_callers_are_the_same(tmp_path: Path, compiler: str) -> None:
    text = WORK.replace(
        "return value * FACTOR + calls;", "for (int i = 0; i < calls; i++) value = value * FACTOR + weights[value & 7]; return value;"
    )
    base = build(tmp_path / "base", {"main.c": MAIN, "work.c": text}, compiler)
    found = compared(base, build(tmp_path / "head", {"main.c": MAIN, "work.c": text.replace("step", "stride")}, compiler))
    assert found.pairs["stride"].base is not None
    assert found.code.identical
    assert found.unlike() == set()


EDITS = {
    "table": ("6, 7, 9", "6, 7, 8", {"weigh"}),
    "string": ('"one"', '"two"', {"say"}),
    "macro": ("#define FACTOR 3", "#define FACTOR 5", {"step"}),
    "constant": ("return 77", "return 78", {"choose"}),
    "jump table": ("case 2: return 77;\n    case 3:", "case 3: return 77;\n    case 2:", {"choose"}),
    "string of a case": ('"third"', '"fourth"', {"choose"}),
    "callee": ("+ choose(values[1])", "+ weigh(values[1])", {"work"}),
    "pointer to a function": ("values, order", "values, (int (*)(const void *, const void *))step", {"work"}),
}
FLAGS = {
    "optimised": OPTIMISED,
    "at fixed addresses": ("-O2", "-fno-pie", "-no-pie"),
    "not optimised": ("-O0",),
    "in sections of their own": ("-O2", "-g", "-ffunction-sections", "-fdata-sections", "-gz"),
}


@pytest.mark.parametrize(
    ("compiler", "flags", "edit"),
    [
        *(("gcc", "optimised", edit) for edit in EDITS),
        *(("clang", "optimised", edit) for edit in ("table", "jump table", "callee", "pointer to a function")),
        *((compiler, "at fixed addresses", edit) for compiler in COMPILERS for edit in ("table", "jump table")),
        *(("gcc", "not optimised", edit) for edit in ("string", "jump table", "pointer to a function")),
        *(("gcc", "in sections of their own", edit) for edit in ("table", "callee")),
    ],
)
def test_an_edit_is_told_of_the_functions_that_it_changes_and_of_no_others(edited: Edit, compiler: str, flags: str, edit: str) -> None:
    old, new, unlike = EDITS[edit]
    found = edited(old, new, compiler, FLAGS[flags])
    assert not found.code.identical
    assert unlike <= found.unlike()
    assert {"main", "bumped"} <= found.same()
    if edit != "pointer to a function":  # functions whose address is taken are compiled otherwise
        # Inlined everywhere, `bump` is the same with its whole source or not at all.
        assert found.unlike() - unlike == ({"bump"} if flags != "not optimised" else set())


@pytest.mark.parametrize("compiler", COMPILERS)
def test_a_changed_inline_function_makes_its_caller_differ_and_is_not_cleared_itself(edited: Edit, compiler: str) -> None:
    found = edited("value ^ 0x55", "value ^ 0x56", compiler)
    assert found.unlike() == {"bump", "bumped"}


def test_a_changed_inline_function_that_compiles_to_the_same_is_cleared(edited: Edit) -> None:
    found = edited("return value ^ 0x55;", "int mask = 0x50 | 5; return mask ^ value;")
    assert found.pairs["bump"].change == "changed"
    assert found.code.identical
    assert found.unlike() == set()


@pytest.mark.parametrize(
    ("attribute", "after", "suspected"),
    [
        ("__attribute__((noinline))", "x * 3", {"made", "inner", "use"}),  # `use` runs what it did, and `made` does not
        ("__attribute__((noinline))", "(x) + (2)", set()),
        ("inline", "x * 3", {"made", "inner", "use"}),
    ],
)
def test_who_stands_in_for_a_function_whose_body_a_macro_holds_is_cleared_with_it_alone(
    tmp_path: Path, attribute: str, after: str, suspected: set[str]
) -> None:
    text = (
        "#define BODY { return %s; }\n#define CALL(callee) { return callee(x) + 1; }\n"
        f"static {attribute} int inner(int x) BODY\nstatic {attribute} int made(int x) CALL(inner)\n"
        "__attribute__((noinline)) int use(int x) { return made(x) ^ 5; }\n"
        "int main(int c, char **v) { return use(c); }\n"
    )
    found = compared(build(tmp_path / "base", {"a.c": text % "x + 2"}), build(tmp_path / "head", {"a.c": text % after}))
    assert {name for name, pair in found.pairs.items() if pair.change.is_suspect} == {"made", "inner", "use"}
    left = cleared([*found.pairs.values()], found.code)
    assert {pair.shown.name for pair in left if pair.change.is_suspect} == suspected


def test_a_same_function_that_reads_a_changed_table_keeps_its_code_but_is_not_cleared(edited: Edit) -> None:
    found = edited("6, 7, 9", "6, 7, 8")
    assert not found.code.is_same(found.pairs["weigh"])
    assert found.code.differs == ("work.o: static weights",)


def test_a_changed_layout_of_a_type_clears_those_that_it_does_not_reach(tmp_path: Path) -> None:
    functions = "int first(struct s *p) { return p->a; }\nint passed(struct s *p) { return first(p); }\nint main(void) { return 0; }\n"
    text = f"struct s {{ %s int a; }};\n{functions}"
    flags = ("-O2", "-fno-inline", "-fno-ipa-icf")
    base = build(tmp_path / "base", {"a.c": text % ""}, flags=flags)
    found = compared(base, build(tmp_path / "head", {"a.c": text % "int front;"}, flags=flags))
    assert found.unlike() == {"first"}


@pytest.mark.parametrize("compiler", COMPILERS)
def test_static_functions_of_one_name_are_told_apart_by_their_file(tmp_path: Path, compiler: str) -> None:
    text = "__attribute__((noinline)) static int step(int x) { return x * %d; }\nint use_%s(int n) { return step(n) + 1; }\n"
    main = "int use_a(int), use_b(int);\nint main(int argc, char **argv) { return use_a(argc) + use_b(argc); }\n"
    base = build(tmp_path / "base", {"a.c": text % (11, "a"), "b.c": text % (13, "b"), "main.c": main}, compiler)
    head = build(tmp_path / "head", {"a.c": text % (11, "a"), "b.c": text % (17, "b"), "main.c": main}, compiler)
    pairs = match(indexed(base), indexed(head))
    code = same_code(base, head, pairs, {})
    told = {(pair.head.name, pair.head.file): code.is_same(pair) for pair in pairs if pair.head is not None}
    assert told["step", "a.c"]
    assert not told["step", "b.c"]
    assert all(is_same for (name, _), is_same in told.items() if name != "step")


CLONED = """__attribute__((noinline)) static unsigned steps(unsigned x, int n) {
    for (int i = 0; i < n; i++) x = x * 31 + (x >> 3) + i;
    return x;
}
static unsigned between(unsigned x, int n) { return steps(x, n) ^ 1; }
int main(int argc, char **argv) { return between(argc, %d) > 3; }
int other(int x) { return x * 3; }
"""


def test_who_gives_a_clone_another_constant_is_not_cleared_though_its_code_is_the_same(tmp_path: Path) -> None:
    base, head = (build(tmp_path / side, {"a.c": CLONED % steps}) for side, steps in (("base", 20_000), ("head", 34_000)))
    found = compared(base, head)
    assert found.unlike() == {"main", "between", "steps"}
    assert found.same() == {"other"}


@pytest.mark.parametrize("compiler", COMPILERS)
def test_swapped_callees_at_the_same_distances_are_seen(tmp_path: Path, compiler: str) -> None:
    callee = "__attribute__((noinline)) static int %s(int x) { return x * %d; }\n"
    use = "__attribute__((noinline)) int use(int n) {{ return left(n) - right(n + 1); }}\n"
    text = f"{{}}{{}}{use}int main(int argc, char **argv) {{{{ return use(argc); }}}}\n"
    one, other = callee % ("left", 11), callee % ("right", 13)
    base = build(tmp_path / "base", {"a.c": text.format(one, other)}, compiler)
    swapped = text.format(other, one)
    found = compared(base, build(tmp_path / "moved", {"a.c": swapped}, compiler))
    assert found.unlike() == set()
    calls = text.format(other, one).replace("left(n) - right(n + 1)", "right(n) - left(n + 1)")
    found = compared(base, build(tmp_path / "swapped", {"a.c": calls}, compiler))
    assert found.unlike() == {"use"}


CLASSES = """
struct Failure {{ int code; }};
struct Fault {{ int code; }};
template <class T> __attribute__((noinline)) T twice(T value) {{ return value * {factor}; }}
struct Shape {{ virtual ~Shape(); virtual int area(int n) const; int side; explicit Shape(int n); }};
__attribute__((noinline)) Shape::Shape(int n) : side(n + {start}) {{}}
Shape::~Shape() {{}}
__attribute__((noinline)) int Shape::area(int n) const {{ if (n < 0) throw {thrown}{{1}}; return side * n; }}
namespace {{ __attribute__((noinline)) int hidden(int n) {{ return n + {added}; }} }}
__attribute__((noinline)) int caught(const Shape &s, int n) {{
  try {{ return s.area(n); }} catch (const {caught} &) {{ return hidden(n); }}
}}
__attribute__((noinline)) int total(int n) {{ return twice(n) + (int)twice(n * 1.5); }}
int main(int argc, char **argv) {{ Shape shape(argc); return total(argc) + caught(shape, argc); }}
"""
VALUES = {"factor": 6, "start": 1, "thrown": "Failure", "added": 5, "caught": "Failure"}


@pytest.mark.parametrize("compiler", COMPILERS)
def test_classes_templates_and_handlers_are_told_apart(tmp_path: Path, compiler: str) -> None:
    base = build(tmp_path / "base", {"a.cc": CLASSES.format(**VALUES)}, compiler)
    program = indexed(base)
    for name, value, unlike in (
        ("factor", 6, set()),
        ("factor", 7, {"twice"}),
        ("start", 4, {"Shape::Shape"}),
        ("thrown", "Fault", {"Shape::area"}),
        ("added", 6, {"(anonymous namespace)::hidden"}),
        ("caught", "Fault", {"caught"}),
    ):
        found = compared(base, build(tmp_path / f"{name}{value}", {"a.cc": CLASSES.format(**{**VALUES, name: value})}, compiler), program)
        assert found.code.identical == (not unlike), name
        # A template has no symbol of its own name, so it is the same with its whole source or not at all; gcc looks into the constructor.
        assert found.unlike() - {"twice"} == unlike - {"twice"} | ({"main"} if (name, compiler) == ("start", "gcc") else set()), name
        assert ("twice" in found.unlike()) == bool(unlike), name


@pytest.mark.parametrize("compiler", COMPILERS)
def test_removed_objects_are_compiled_again(tmp_path: Path, compiler: str) -> None:
    base = build(tmp_path / "base", {"main.c": MAIN, "work.c": WORK}, compiler, keep=False)
    head = build(tmp_path / "head", {"main.c": MAIN, "work.c": WORK.replace("return 77", "return 78")}, compiler, keep=False)
    before = {path: path.read_bytes() for path in head.tree.rglob("*")}
    found = compared(base, head)
    assert "choose" in found.unlike()
    assert {"main", "step", "bumped"} <= found.same()
    assert found.code.unknown == ()
    assert {path: path.read_bytes() for path in head.tree.rglob("*")} == before


def test_a_source_compiled_in_two_ways_is_compiled_again_in_that_whose_object_is_gone(tmp_path: Path) -> None:
    """`other` is compiled and linked by one command, from what `#ifdef OTHER` holds."""
    builds = []
    for side, answer in (("base", 77), ("head", 78)):
        source = f"#ifdef OTHER\nint choose(int n) {{ return n > 3 ? {answer} : n; }}\n#endif\nint main(void) {{ return 0; }}\n"
        one = build(tmp_path / side, {"main.c": source})
        (command,) = one.commands
        words = ("-O2", "-DOTHER", str(command.file), "-o", str(one.tree / "other"))
        subprocess.run([command.compiler, *words], cwd=one.tree, check=True)
        builds.append(replace(one, commands=(command, replace(command, arguments=words))))
    found = compared(*builds)
    assert found.unlike() == {"choose"}
    assert found.code.unknown == ()


def test_objects_that_lie_in_an_archive_alone_are_read_there(tmp_path: Path) -> None:
    builds = []
    for side, text in (("base", WORK), ("head", WORK.replace("return 77", "return 78"))):
        one = build(tmp_path / side, {"main.c": MAIN, "work.c": text})
        subprocess.run(["ar", "rcs", "libwork.a", "work.o"], cwd=one.tree, check=True)
        (one.tree / "work.o").unlink()
        (one.tree / "work.c").write_text("#error it is not compiled again\n")
        builds.append(one)
    code = same_code(*builds, [], {})
    assert code.differs == ("libwork.a(work.o): choose",)
    assert code.unknown == ()


@pytest.mark.parametrize("compiler", COMPILERS)
def test_code_that_the_linker_makes_cannot_be_told_apart_but_where_it_is_all_the_same(edited: Edit, compiler: str) -> None:
    flags = ("-O2", "-flto") if compiler == "gcc" else ("-O2", "-flto", "-fuse-ld=lld")
    if compiler == "clang" and shutil.which("ld.lld") is None:
        pytest.skip("no linker that can")
    found = edited("return 77", "return 78", compiler, flags)
    assert not found.code.identical
    assert any("for the linker to optimise" in reason for reason in found.code.unknown)
    assert "choose" in found.unlike()
    found = edited("return 77;", "return 77; /* again */", compiler, flags)
    assert found.code.identical
    assert found.unlike() == set()


def test_the_trees_own_path_in_a_string_is_no_difference_but_a_line_number_is(tmp_path: Path) -> None:
    text = "{}#include <assert.h>\nint checked(int n) {{ assert(n > 0); return n; }}\nint main(int n, char **) {{ return checked(n); }}\n"
    base = build(tmp_path / "base", {"a.cc": text.format("")})
    found = compared(base, build(tmp_path / "in_head", {"a.cc": text.format("")}))
    assert found.code.identical
    found = compared(base, build(tmp_path / "head", {"a.cc": text.format("\n")}))
    assert not found.code.identical
    assert "checked" in found.unlike()


def test_a_static_counter_that_changes_its_number_is_the_same_variable(tmp_path: Path) -> None:
    counter = "int %s(void) { static int count = %d; return count++; }\n"
    main = "int main(void) { return 0; }\n"
    base = build(tmp_path / "base", {"a.c": counter % ("first", 1) + counter % ("last", 2) + main}, flags=("-O2", "-fno-toplevel-reorder"))
    head = counter % ("first", 1) + counter % ("middle", 7) + counter % ("last", 2) + main
    found = compared(base, build(tmp_path / "head", {"a.c": head}, flags=("-O2", "-fno-toplevel-reorder")))
    assert found.unlike() == {"middle"}


def test_an_arm_object_is_compared_as_an_x86_one(tmp_path: Path) -> None:
    driver = shutil.which("aarch64-linux-gnu-gcc")
    if driver is None:
        pytest.skip("no cross compiler")
    digests = []
    for name, text in (
        ("base", WORK),
        ("head", WORK.replace("return 77", "return 78").replace("static int order", "int between(void) { return 1; }\nstatic int order")),
    ):
        (tmp_path / f"{name}.c").write_text(text)
        subprocess.run([driver, "-O2", "-c", f"{name}.c"], cwd=tmp_path, check=True)
        code = object_code.take_apart(elf.read((tmp_path / f"{name}.o").read_bytes()), b"", {})
        digests.append({atom.name: atom.digest for atom in code.atoms.values()})
    unlike = {name for name in digests[0].keys() | digests[1].keys() if digests[0].get(name) != digests[1].get(name)}
    assert unlike == {"choose", "static order", "between"} - {"static order"}


def test_a_jump_table_alone_makes_its_function_differ(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text(WORK)
    subprocess.run(["gcc", "-O2", "-fpie", "-c", "a.c"], cwd=tmp_path, check=True)
    taken = elf.read((tmp_path / "a.o").read_bytes())
    number, table = next((number, one) for number, one in taken.sections.items() if one.name == ".rodata")
    words = list(table.relocations)
    # Two entries trade their targets; each counts from the table's start, so its place is added to its target.
    words[2], words[3] = replace(words[2], addend=words[3].addend - 4), replace(words[3], addend=words[2].addend + 4)
    swapped = replace(taken, sections={**taken.sections, number: replace(table, relocations=tuple(words))})
    first, second = (object_code.take_apart(one, b"", {}).atoms for one in (taken, swapped))
    assert {name for name in first if first[name].digest != second[name].digest} == {"choose"}


def damaged(content: bytes, seed: int) -> bytes:
    """Return a file with some of its bytes changed, most of them where its tables are told of, or cut off."""
    rng = random.Random(seed)
    changed = bytearray(content)
    headers = int.from_bytes(content[40:48], "little")
    for _ in range(rng.choice((1, 2, 8, 64))):
        place = rng.choice((rng.randrange(64), rng.randrange(headers, len(changed)), rng.randrange(len(changed))))
        changed[place] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
    return bytes(changed[: rng.randrange(len(changed))] if rng.random() < 0.1 else changed)


@pytest.mark.parametrize("source", [WORK, CLASSES.format(**VALUES)], ids=["c", "c++"])
def test_damaged_objects_are_refused_or_read_and_nothing_else_happens(tmp_path: Path, source: str) -> None:
    name = "a.c" if source == WORK else "a.cc"
    (tmp_path / name).write_text(source)
    subprocess.run(["g++" if name.endswith("c") and name != "a.c" else "gcc", "-O1", "-c", name, "-o", "a.o"], cwd=tmp_path, check=True)
    content = (tmp_path / "a.o").read_bytes()
    outcomes = set()
    for seed in range(200):
        try:
            taken = elf.read(damaged(content, seed))
            if taken.machine in object_code.MACHINES:
                object_code.take_apart(taken, b"", {})
                object_code.raw_digest(taken, b"")
            outcomes.add("read")
        except elf.DamagedElfError:
            outcomes.add("refused")
    assert outcomes == {"read", "refused"}


def test_a_damaged_object_and_garbage_do_not_stop_the_comparison(tmp_path: Path) -> None:
    base = build(tmp_path / "base", {"main.c": MAIN, "work.c": WORK})
    head = build(tmp_path / "head", {"main.c": MAIN, "work.c": WORK.replace("return 77", "return 78")})
    for one in (base, head):
        (one.tree / "noise.o").write_bytes(bytes(range(256)))
        (one.tree / "broken.o").write_bytes(b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x01\0\x3e\0" + b"\xff" * 80)
        (one.tree / "broken.a").write_bytes(b"!<arch>\nthis is none")
    found = compared(base, head)
    assert found.code.unknown == ()
    assert found.code.differs == ("work.o: choose",)
    (head.tree / "broken.o").write_bytes(b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x01\0\x3e\0" + b"\xfe" * 80)
    found = compared(base, head)
    assert [reason.partition(":")[0] for reason in found.code.unknown] == ["broken.o"]


def test_a_stripped_program_whose_objects_are_the_same_is_the_same(edited: Edit) -> None:
    found = edited("#define FACTOR 3", "\n#define FACTOR 3")
    for one in (found.base, found.head):
        subprocess.run(["strip", "program"], cwd=one.tree, check=True)
    assert same_code(found.base, found.head, [], {}).identical


@pytest.mark.parametrize(
    ("code", "ends"),
    [
        ("8b 05", (4,)),  # mov x(%rip), %eax
        ("83 05", (5,)),  # addl $1, x(%rip)
        ("c7 05", (6, 8)),  # movw or movl $1, x(%rip)
        ("f6 05", (5,)),  # testb $1, x(%rip)
        ("f7 1d", (4,)),  # negl x(%rip)
        ("66 0f 3a 0f 05", (4, 5)),  # palignr $1, x(%rip), %xmm0
        ("e8", (4,)),  # call
    ],
)
def test_an_operand_counts_from_the_end_of_its_instruction(code: str, ends: tuple[int, ...]) -> None:
    prefix = bytes.fromhex("90909090" + code)
    assert operand_ends(prefix + bytes(4), len(prefix)) == ends


def test_objects_of_cmakes_targets_are_taken_as_they_lie_and_what_it_tries_compilers_out_with_is_not(tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text("int a(void) { return 1; }\nint main(void) { return a(); }\n")
    folder = tmp_path / "build" / "CMakeFiles"
    for name in ("program.dir/src", "3.25.1/CompilerIdC"):
        (folder / name).mkdir(parents=True)
    object_file = folder / "program.dir" / "src" / "a.c.o"
    subprocess.run(["gcc", "-c", "a.c", "-o", object_file], cwd=tmp_path, check=True)
    for name in ("3.25.1/CompilerIdC/a.out", "feature_tests.bin"):
        subprocess.run(["gcc", "a.c", "-o", folder / name], cwd=tmp_path, check=True)
    files = look_through(tmp_path)
    assert (files.objects, files.programs) == (("build/CMakeFiles/program.dir/src/a.c.o",), ())
