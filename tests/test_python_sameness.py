"""Which files of two Python trees the interpreter gets the same from, and which differ in functions alone."""

from __future__ import annotations

import compileall
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from perfdiff.languages.protocol import CodeComparison
from perfdiff.languages.python import sameness
from perfdiff.languages.python.index import index
from perfdiff.languages.python.matching import match
from perfdiff.languages.tree_files import all_differing
from python_programs import interpreter
from python_sources import write


@dataclass(frozen=True)
class Compared:
    """Two trees whose modules lie there compiled, held against each other."""

    found: CodeComparison
    differing: frozenset[str]

    def says(self, module: str) -> str:
        """Return what is said of the byte code of a module."""
        [name] = [name for name in self.differing if name.startswith(f"__pycache__/{module}.")]
        return "alike" if name in self.found.alike else "by function" if name in self.found.by_function else "unlike"


def compare(folder: Path, base: Mapping[str, str | bytes], head: Mapping[str, str | bytes], python: str = sys.executable) -> Compared:
    trees = [write(folder / side, files) for side, files in (("base", base), ("head", head))]
    for tree in trees:
        if python == sys.executable:
            compileall.compile_dir(tree, quiet=2)
        else:
            subprocess.run([python, "-m", "compileall", "-qq", tree], check=False)
    pairs = match(*(index(tree, depth=2) for tree in trees))
    differing = dict(all_differing(*trees))
    return Compared(sameness.same_code(pairs, differing, Path(python)), frozenset(differing))


def compare_module(folder: Path, base: str, head: str, python: str = sys.executable) -> str:
    return compare(folder, {"m.py": base}, {"m.py": head}, python).says("m")


SINGLE = "import functools\n@functools.singledispatch\ndef f(x): ...\n@f.register\ndef _(x: {}): return {}\n"
ALIKE = {
    "a comment": ("x = 1\n", "# more\nx = 1  # one\n"),
    "lines": ("def f(a, b):\n    return a + b\n", "def f(\n    a,\n    b,\n):\n    return (\n        a + b\n    )\n"),
    "a type comment": ("x = []  # type: list[int]\n", "x = []  # type: list[str]\n"),
    "quotes": ("x = 'a'\n", 'x = "a"\n'),
    "a coding line that says the same": ("x = 'a'\n", "# coding: utf-8\nx = 'a'\n"),
}
UNLIKE = {
    "registered functions swapped": (
        "R = []\n@R.append\ndef a(): return 1\n@R.append\ndef b(): return 2\n",
        "R = []\n@R.append\ndef b(): return 2\n@R.append\ndef a(): return 1\n",
    ),
    "functools.singledispatch": (SINGLE.format("int", 1), SINGLE.format("str", 1)),
    "an annotation": ("def f(x: 'a' = 1): return x\n", "def f(x: 'b' = 1): return x\n"),
    "an annotation of a class": ("class A:\n    x: int\n", "class A:\n    x: str\n"),
    "a number in a docstring": ('def f():\n    """Do 10."""\n    return 1\n', 'def f():\n    """Do 9000."""\n    return 1\n'),
    "a docstring beside a body": ('def f():\n    """Do 10."""\n    return 1\n', 'def f():\n    """Do 9000."""\n    return 2\n'),
    "a local's name, which no suspect tells": ("def f(a):\n    b = a\n    return b\n", "def f(a):\n    c = a\n    return c\n"),
    "a docstring of a module": ('"""One."""\n', '"""Two."""\n'),
    "a docstring that goes": ('def f():\n    """One."""\n    return 1\n', "def f():\n    return 1\n"),
    "1 and True": ("x = 1\n", "x = True\n"),
    "1 and 1.0": ("x = 1\n", "x = 1.0\n"),
    "0.0 and -0.0": ("x = 0.0\n", "x = -0.0\n"),
    "-0.0 deep in a tuple": ("x = (1, (0.0, 'a'))\n", "x = (1, (-0.0, 'a'))\n"),
    "imaginary zeros": ("x = 0j\n", "x = 0j * -1\n"),
    "members of a set": ("print(1 in {1, 2})\n", "print(1 in {True, 2})\n"),
    "from __future__": ("x = 1\n", "from __future__ import annotations\nx = 1\n"),
    "the order of a class's body": ("class A:\n    a = 1\n    b = 2\n", "class A:\n    b = 2\n    a = 1\n"),
    "the order of an enum": (
        "from enum import Enum\nclass A(Enum):\n    x = 1\n    y = 2\n",
        "from enum import Enum\nclass A(Enum):\n    y = 2\n    x = 1\n",
    ),
    "the order of methods": (
        "class A:\n    def a(self): ...\n    def b(self): ...\n",
        "class A:\n    def b(self): ...\n    def a(self): ...\n",
    ),
    "a default": ("def f(a=1): return a\n", "def f(a=2): return a\n"),
    "a keyword's default": ("def f(*, a=1): return a\n", "def f(*, a=2): return a\n"),
    "the order of keywords": ("def f(*, a, b): return 1\n", "def f(*, b, a): return 1\n"),
    "an argument's name": ("def f(a): return 1\n", "def f(b): return 1\n"),
    "an argument by place alone": ("def f(a): return 1\n", "def f(a, /): return 1\n"),
    "a decorator": ("def f(): return 1\n", "import functools\n@functools.cache\ndef f(): return 1\n"),
    "a generator": ("def f(): return 1\n", "def f(): yield 1\n"),
    "what a function closes over": (
        "def g():\n    a = b = 1\n    def f(): return a\n    return f\nh = lambda: (1 for x in ())\n",
        "def g():\n    a = b = 1\n    def f(): return a\n    return f\nh = lambda: [1 for x in ()]\nk = 1\n",
    ),
    "a comprehension of the module": ("x = [i for i in range(9)]\n", "x = [i + 1 for i in range(9)]\n"),
    "a function that is added": ("def f(): return 1\n", "def f(): return 1\ndef g(): return 2\n"),
    "a class's base": ("class A: ...\n", "class A(object): ...\n"),
    "what the debug mode asserts": ("assert True\n", "assert 1 + 1\n"),
    "a coding line that reads other letters": ("x = '\u00e9'\n", "# coding: latin-1\nx = '\u00e9'\n"),
    "a name of the module": ("import os as a\n", "import os as b\n"),
}
BY_FUNCTION = {
    "a body": ("def f(a): return a\n", "def f(a): return a + 1\n"),
    "a body, and lines": ("def f(a): return a\n", "# more\n\ndef f(a):\n    return a + 1\n"),
    "a method's body": ("class A:\n    def f(self): return 1\n", "class A:\n    def f(self): return 2\n"),
    "a decorated function's body": (
        "import functools\n@functools.cache\ndef f(): return 1\n",
        "import functools\n@functools.cache\ndef f(): return 2\n",
    ),
    "a body below a docstring": ('def f():\n    """One."""\n    return 1\n', 'def f():\n    """One."""\n    return 2\n'),
    "a lambda": ("f = lambda a: a\n", "f = lambda a: a + 1\n"),
    "a function in a function": (
        "def f():\n    def g(): return 1\n    return g\n",
        "def f():\n    def g(): return 2\n    return g\n",
    ),
    "a local that is added": ("def f(a): return a\n", "def f(a):\n    b = a\n    return b\n"),
}


@pytest.mark.parametrize(("base", "head"), ALIKE.values(), ids=ALIKE.keys())
def test_byte_code_that_differs_in_positions_alone_is_alike(base: str, head: str, tmp_path: Path) -> None:
    assert compare_module(tmp_path, base, head) == "alike"


@pytest.mark.parametrize(("base", "head"), UNLIKE.values(), ids=UNLIKE.keys())
def test_byte_code_that_a_program_may_tell_apart_without_calling_what_changed_is_unlike(base: str, head: str, tmp_path: Path) -> None:
    assert compare_module(tmp_path, base, head) == "unlike"


@pytest.mark.parametrize(("base", "head"), BY_FUNCTION.values(), ids=BY_FUNCTION.keys())
def test_byte_code_that_differs_in_bodies_of_functions_alone_is_told_by_these(base: str, head: str, tmp_path: Path) -> None:
    assert compare_module(tmp_path, base, head) == "by function"


@pytest.mark.parametrize("version", ["3.10", "3.11", "3.12", "3.13", "3.14"])
def test_other_interpreters_tell_the_same(version: str, tmp_path: Path) -> None:
    python = interpreter(version)
    if python is None:
        pytest.skip(f"no Python {version} here")
    tables = {"alike": ALIKE, "unlike": UNLIKE, "by function": BY_FUNCTION}
    cases = [(kind, name, *texts) for kind, table in tables.items() for name, texts in table.items()]
    sides = [{f"m{number}.py": texts[side] for number, (_, _, *texts) in enumerate(cases)} for side in (0, 1)]
    compared = compare(tmp_path, *sides, str(python))
    assert [name for number, (kind, name, *_) in enumerate(cases) if compared.says(f"m{number}") != kind] == []


@pytest.mark.parametrize("version", ["3.10", "3.13"])
def test_sets_are_compared_as_they_are_walked_through_where_they_are_loaded(version: str, tmp_path: Path) -> None:
    python = interpreter(version)
    if python is None:
        pytest.skip(f"no Python {version} here")
    sides = [f"for x in {numbers}:\n    print(x)\n" for numbers in ("{8, 0}", "{0, 8}")]
    says = compare_module(tmp_path, *sides, str(python))
    outputs = [
        subprocess.run([python, "-c", "import m"], cwd=tmp_path / side, capture_output=True, check=True).stdout for side in ("base", "head")
    ]
    assert (says == "alike") == (outputs[0] == outputs[1])


def test_a_body_that_differs_is_nothing_to_go_by_where_no_suspect_tells_it(tmp_path: Path) -> None:
    base, head = BY_FUNCTION["a body"]
    trees = [write(tmp_path / side, {"m.py": text}) for side, text in (("base", base), ("head", head))]
    for tree in trees:
        compileall.compile_dir(tree, quiet=2)
    assert sameness.same_code([], dict(all_differing(*trees)), Path(sys.executable)).by_function == frozenset()


def test_sources_are_asked_after_for_their_byte_code_and_are_alike_to_nobody_who_reads_them(tmp_path: Path) -> None:
    base = {"m.py": "x = 1\n", "bad.py": "x = 1\n", "gone.py": "", "README.md": "1", "docs/a.txt": "1", "data.json": "1"}
    head = {"m.py": "x = 1  # 2\n", "bad.py": "x = (\n", "README.md": "2", "docs/a.txt": "2", "data.json": "2"}
    compared = compare(tmp_path, base, head)
    [byte_code] = compared.found.alike
    assert byte_code.startswith("__pycache__/m.")
    assert compared.found.compiled == {"m.py"}
    assert compared.differing >= {"README.md", "docs/a.txt", "data.json", "bad.py", "gone.py", "m.py"}


@pytest.mark.parametrize("damage", ["short", "another interpreter's", "no code", "another way to check its source"])
def test_damaged_byte_code_is_unlike(damage: str, tmp_path: Path) -> None:
    trees = [write(tmp_path / side, {"m.py": text}) for side, text in (("base", "x = 1\n"), ("head", "x = 1  # one\n"))]
    for tree in trees:
        compileall.compile_dir(tree, quiet=2)
    [path] = trees[1].glob("__pycache__/*.pyc")
    content = path.read_bytes()
    damaged = {
        "short": content[:40],
        "another interpreter's": b"\1\2" + content[2:],
        "no code": content[:16] + b"N",
        "another way to check its source": content[:4] + b"\1\0\0\0" + content[8:],
    }
    differing = dict(all_differing(*trees))
    assert sameness.same_code([], differing, Path(sys.executable)).alike == {path.relative_to(trees[1]).as_posix()}
    path.write_bytes(damaged[damage])
    assert sameness.same_code([], differing, Path(sys.executable)).alike == frozenset()


def test_hundreds_of_modules_are_compared_within_a_second(tmp_path: Path) -> None:
    body = "".join(f"def f{number}(a, b=({number}, 'x')):\n    return [a + i for i in range(b[0])]\n\n\n" for number in range(60))
    trees = [
        write(tmp_path / side, {f"p/m{n}.py": first + body for n in range(300)}) for side, first in (("base", ""), ("head", "# more\n"))
    ]
    for tree in trees:
        compileall.compile_dir(tree, quiet=2)
    differing = dict(all_differing(*trees))
    began = time.monotonic()
    found = sameness.same_code([], differing, Path(sys.executable))
    assert (len(found.alike), len(found.compiled)) == (300, 300)
    assert time.monotonic() - began < 3.0  # 0.7 to 1.0 s on a busy machine of two cores
