"""Which programs and shared objects differ in nothing that is loaded of them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from perfdiff.languages.c import loaded

MAIN = "int main(void) { return 0; }\n"
INIT = "#include <vector>\nextern std::vector<int> order;\nstruct {0} {{ {0}() {{ order.push_back({1}); }} }} a{0};\n"
ORDERED = {
    "main.cc": "#include <vector>\nstd::vector<int> order __attribute__((init_priority(101)));\nint main() { return order[0]; }\n",
    "x.cc": INIT.format("X", 1),
    "y.cc": INIT.format("Y", 2),
}


def program(tree: Path, sources: Mapping[str, str], flags: Sequence[str] = ("-O2", "-g"), *, objects: Sequence[str] = ()) -> Path:
    """Compile sources and link them to a program, in the order of `objects` where that is given."""
    tree.mkdir(parents=True)
    for name, text in sources.items():
        (tree / name).write_text(text)
    names = objects or list(sources)
    compiler = "g++" if any(name.endswith(".cc") for name in names) else "gcc"
    subprocess.run([compiler, *flags, *(str(tree / name) for name in names), "-o", "program"], cwd=tree, check=True)
    return tree / "program"


def are_alike(base: Path, head: Path) -> bool:
    assert base.read_bytes() != head.read_bytes()
    return loaded.are_alike(base, head, (base.parent, head.parent))


CONSTRUCTORS = """
__attribute__((constructor({}))) void f(void) {{ __asm__ volatile("nop"); }}
__attribute__((constructor(201))) void g(void) {{ __asm__ volatile("pause"); }}
"""
C = "int main(int n, char **a) {{ {} return n; }}\n"
ALIKE = {
    "lines, for debuggers": (MAIN, f"/* more */\n\n{MAIN}"),
    "a name that only debuggers see": (
        "int main(int n, char **a) { int b = n; return b; }\n",
        "int main(int n, char **a) { int a_name_of_which_debuggers_keep_more = n; return a_name_of_which_debuggers_keep_more; }\n",
    ),
}
UNLIKE = {
    "a constant": (C.format("n += 3;"), C.format("n += 4;")),
    "a string": (C.format('__builtin_puts("one");'), C.format('__builtin_puts("two");')),
    "a string that another one ends with": (
        C.format('__builtin_puts("abc"); __builtin_puts("xabc");'),
        C.format('__builtin_puts("abc"); __builtin_puts("yabc");'),
    ),
    "a table": ("int t[3] = {1, 2, 3};\n" + MAIN, "int t[3] = {1, 3, 2};\n" + MAIN),
    "an empty table's size": ("int t[1000];\n" + MAIN, "int t[9000];\n" + MAIN),
    "where counters lie": ("long a[2] = {1};\nlong b[2] = {2};\n" + MAIN, "long a[2] = {1};\n_Alignas(64) long b[2] = {2};\n" + MAIN),
    "the order of functions": (
        "int f(int n) { return n * 3; }\nint g(int n) { return n * 5; }\n" + MAIN,
        "int g(int n) { return n * 5; }\nint f(int n) { return n * 3; }\n" + MAIN,
    ),
    "a constructor's priority": (CONSTRUCTORS.format(200) + MAIN, CONSTRUCTORS.format(202) + MAIN),
    "a weak symbol": (
        "__attribute__((weak)) int f(void) { return 1; }\n" + MAIN,
        "int f(void) { return 1; }\n" + MAIN,
    ),
    "a variable of a thread": ("int t = 1;\n" + C.format("n += t;"), "_Thread_local int t = 1;\n" + C.format("n += t;")),
    "assembly": (C.format('__asm__ volatile("nop");'), C.format('__asm__ volatile("pause");')),
    "a note": (
        '__asm__(".pushsection .note.x,\\"a\\",@note\\n.long 2,4,9\\n.asciz \\"x\\"\\n.balign 4\\n.long 1\\n.popsection");\n' + MAIN,
        '__asm__(".pushsection .note.x,\\"a\\",@note\\n.long 2,4,9\\n.asciz \\"x\\"\\n.balign 4\\n.long 2\\n.popsection");\n' + MAIN,
    ),
}
# `-rdynamic` has what is weak in the table of the dynamic linker; the order of functions is as it is written.
FLAGS = ("-O2", "-g", "-rdynamic", "-fno-toplevel-reorder", "-Wl,--build-id")


@pytest.mark.parametrize(("base", "head"), ALIKE.values(), ids=ALIKE.keys())
def test_programs_that_differ_for_debuggers_alone_are_alike(base: str, head: str, tmp_path: Path) -> None:
    assert are_alike(program(tmp_path / "base", {"a.c": base}, FLAGS), program(tmp_path / "head", {"a.c": head}, FLAGS))


@pytest.mark.parametrize(("base", "head"), UNLIKE.values(), ids=UNLIKE.keys())
def test_programs_that_differ_in_anything_that_is_loaded_are_unlike(base: str, head: str, tmp_path: Path) -> None:
    assert not are_alike(program(tmp_path / "base", {"a.c": base}, FLAGS), program(tmp_path / "head", {"a.c": head}, FLAGS))


def test_constructors_that_run_in_another_order_are_another_program(tmp_path: Path) -> None:
    base = program(tmp_path / "base", ORDERED)
    assert are_alike(base, program(tmp_path / "same", {**ORDERED, "x.cc": "\n" + ORDERED["x.cc"]}, objects=list(ORDERED)))
    head = program(tmp_path / "head", ORDERED, objects=["main.cc", "y.cc", "x.cc"])
    codes = [subprocess.run([one], check=False).returncode for one in (base, head)]
    assert (codes, are_alike(base, head)) == ([1, 2], False)


@pytest.mark.parametrize(
    "flags",
    [
        ("-Wl,-rpath,/opt/b",),
        ("-Wl,-z,now",),
        ("-Wl,-z,execstack",),
        ("-no-pie",),
        ("-Wl,--no-as-needed", "-lm"),
        ("-static",),
        ("-Wl,-I/x",),
    ],
)
def test_programs_that_are_linked_otherwise_are_unlike(flags: tuple[str, ...], tmp_path: Path) -> None:
    base = program(tmp_path / "base", {"a.c": MAIN}, ("-O2", "-Wl,-rpath,/opt/a", "-Wl,-z,lazy"))
    head = program(tmp_path / "head", {"a.c": MAIN}, ("-O2", "-Wl,-rpath,/opt/a", "-Wl,-z,lazy", *flags))
    assert not are_alike(base, head)


@pytest.mark.parametrize("flag", ["-Wl,-z,execstack", "-Wl,-e,other"])
def test_what_the_kernel_reads_beside_what_is_loaded_counts(flag: str, tmp_path: Path) -> None:
    text = "void _start(void) { for (;;); }\nvoid other(void) { for (;;); }\n"
    flags = ("-static", "-nostdlib", "-Wl,-N", "-Wl,-z,noexecstack")  # none of the header is loaded
    base = program(tmp_path / "base", {"a.c": text}, flags)
    assert not are_alike(base, program(tmp_path / "head", {"a.c": text}, (*flags, flag)))


def test_the_trees_own_path_in_a_program_is_no_difference(tmp_path: Path) -> None:
    text = "#include <stdio.h>\nint main(void) { return puts(__FILE__) == 0; }\n"
    assert are_alike(program(tmp_path / "base", {"a.c": text}), program(tmp_path / "head", {"a.c": text}))


def test_shared_objects_are_compared_and_objects_are_not(tmp_path: Path) -> None:
    text = "int f(int n) { return n; }\n"
    flags = ("-shared", "-fPIC", "-g")
    sides = {"base": text, "head": f"\n{text}"}
    assert are_alike(*(program(tmp_path / side, {"a.c": one}, flags) for side, one in sides.items()))
    objects = [program(tmp_path / f"{side}-object", {"a.c": one}, ("-c", "-g")) for side, one in sides.items()]
    assert not are_alike(*objects)


def _cut(content: bytes) -> bytes:
    return content[:900]


def _without_segments(content: bytes) -> bytes:
    return content[:56] + b"\0\0" + content[58:]


def _of_32_bits(content: bytes) -> bytes:
    return content[:4] + b"\1" + content[5:]


def _with_segments_outside(content: bytes) -> bytes:
    return content[:32] + b"\xff" * 7 + b"\0" + content[40:]


def _with_segments_beyond_any_file(content: bytes) -> bytes:
    return content[:32] + b"\xff" * 8 + content[40:]


@pytest.mark.parametrize(
    "damage",
    [_cut, _without_segments, _of_32_bits, _with_segments_outside, _with_segments_beyond_any_file, lambda _: b"\x7fELF", lambda _: b""],
)
def test_damaged_programs_are_unlike(damage: Callable[[bytes], bytes], tmp_path: Path) -> None:
    sides = [program(tmp_path / side, {"a.c": text}) for side, text in (("base", MAIN), ("head", f"\n{MAIN}"))]
    assert are_alike(*sides)
    for side, more in zip(sides, (b"", b"\0"), strict=True):
        side.write_bytes(damage(side.read_bytes()) + more)
    assert not are_alike(*sides)
