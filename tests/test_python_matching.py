"""What changed between two revisions of a Python program, and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from differing import words
from perfdiff.languages.protocol import Counterpart
from perfdiff.languages.python.matching import match
from perfdiff.records.schema import Change
from python_sources import program

Compare = Callable[..., dict[str, Counterpart]]

STEPS = """
        total = 0
        for value in values:
            if value > limit:
                total += value - limit
            else:
                total -= limit - value
        return total
"""

LONG = ", ".join(map(str, range(100, 120)))


@pytest.fixture
def compare(tmp_path: Path) -> Compare:
    """Index two trees, or two texts of one file, and return the counterparts by the function's name, head's where there is one."""

    def run(base: str | Mapping[str, str], head: str | Mapping[str, str]) -> dict[str, Counterpart]:
        trees = [{"a.py": files} if isinstance(files, str) else files for files in (base, head)]
        before, after = program(tmp_path / "base", trees[0]), program(tmp_path / "head", trees[1])
        assert before.problems == after.problems == ()
        return {one.name: part for part in match(before, after) if (one := part.head or part.base) is not None}

    return run


def differing(found: dict[str, Counterpart]) -> dict[str, Change]:
    return {name: part.change for name, part in found.items() if part.change is not Change.UNCHANGED}


FORMATTED = """
    '''A module.'''
    from typing import TYPE_CHECKING
    if TYPE_CHECKING:
        from b import Row
    LIMIT: int = 1_000
    class Table:
        '''A table.'''
        rows: "list[Row]"
        name: str = 'rows'
        def sort(self, key: str = "name", *, reverse: bool = False) -> "list[Row]":
            '''Sort.'''
            # by key
            count: int = (
                len(self.rows,)
            )
            left: Row
            return f(self.rows, key + 'x',
                     count)
"""
PLAIN = """
    from typing import TYPE_CHECKING
    LIMIT = 1000
    class Table:
        name = "rows"

        def sort(self, key='name', *, reverse=False):
            count = len(self.rows)
            pass
            return f(self.rows, key + "x", count)
"""


def test_comments_docstrings_layout_and_annotations_change_nothing(compare: Compare) -> None:
    assert differing(compare(FORMATTED, PLAIN)) == {}
    assert differing(compare(PLAIN, FORMATTED)) == {}


@pytest.mark.parametrize(
    ("base", "head"),
    [
        (
            "def f(a, *b):\n  s = 0\n  for i, x in enumerate(a):\n    s += x\n  return s + i",
            "def f(a, *b):\n  t = 0\n  for n, y in enumerate(a):\n    t += y\n  return t + n",
        ),
        ("def f(a):\n  try:\n    g()\n  except E as e:\n    h(e)", "def f(a):\n  try:\n    g()\n  except E as error:\n    h(error)"),
        ("def f(a):\n  if (n := len(a)) > 1:\n    return n", "def f(a):\n  if (size := len(a)) > 1:\n    return size"),
        (
            "class A:\n  async def f(self):\n    x = await self.g()\n    return x",
            "class A:\n  async def f(self):\n    y = await self.g()\n    return y",
        ),
        ("def f(a):\n  s = [x for x in a]\n  return s", "def f(a):\n  t = [x for x in a]\n  return t"),
    ],
)
def test_names_of_local_variables_change_nothing(compare: Compare, base: str, head: str) -> None:
    assert differing(compare(base, head)) == {}


@pytest.mark.parametrize(
    ("base", "head"),
    [
        ("def f(a):\n  x = 1\n  return a + x", "def f(a):\n  y = 1\n  return y + a"),  # another order
        ("def f(a):\n  x = y = 1\n  return x", "def f(a):\n  x = y = 1\n  return y"),
        ("def f(x):\n  x = g(x)\n  return x", "def f(x):\n  y = g(x)\n  return y"),  # the argument is kept
        ("def f(a):\n  x = 1\n  return '%(x)s' % locals()", "def f(a):\n  y = 1\n  return '%(x)s' % locals()"),
        ("def f(a):\n  x = 1\n  return f'{x=}'", "def f(a):\n  y = 1\n  return f'{y=}'"),
        ("def f(a):\n  global x\n  x = 1", "def f(a):\n  global y\n  y = 1"),
        ("def f(a):\n  x = 1\n  return lambda: x", "def f(a):\n  y = 1\n  return lambda: y"),
        ("def f(a):\n  x = 1\n  return [x for b in a]", "def f(a):\n  y = 1\n  return [x for b in a]"),
        ("def f(a):\n  import x\n  return x", "def f(a):\n  import y\n  return y"),
        ("def f(a):\n  x = 1\n  return len", "def f(a):\n  len = 1\n  return len"),
        ("def f(a):\n  return x", "def f(a):\n  return y"),
        ("def f(a):\n  a.x = 1", "def f(a):\n  a.y = 1"),
    ],
)
def test_other_names_are_a_change(compare: Compare, base: str, head: str) -> None:
    assert differing(compare(base, head)).get("a.f") is Change.CHANGED


@pytest.mark.parametrize(
    ("base", "head", "reasons"),
    [
        ("def f(a): return a + 1", "def f(a): return a - 1", ("body changed",)),
        ("def f(a): return a", "def f(a, b=1): return a", ("signature changed",)),
        ("def f(a=1): return a", "def f(a=[]): return a", ("signature changed",)),
        ("def f(a): return a", "async def f(a): return a", ("signature changed",)),
        ("@cache\ndef f(a): return a", "def f(a): return a", ("decorators changed",)),
        ("@cache(1)\ndef f(a): return a", "@cache(2)\ndef f(a): return a", ("decorators changed",)),
        ("f = lambda a: a", "f = lambda a: a + 1", ("body changed",)),
        ("f = lambda a: a", "f = lambda b: 1", ("signature changed", "body changed")),
        ("def f(a): return 'x y'", "def f(a): return 'x  y'", ("body changed",)),
        ("def f(a):\n  yield a", "def f(a):\n  return [a]", ("body changed",)),
        ("def f(a): return [x for x in a]", "def f(a): return {x for x in a}", ("body changed",)),
        ("def f(a): return g(lambda x: x)", "def f(a): return g(lambda x: -x)", ("body changed",)),
    ],
)
def test_a_changed_function_says_what_of_it_changed(compare: Compare, base: str, head: str, reasons: tuple[str, ...]) -> None:
    found = compare(base, head)["a.f"]
    assert (found.change, words(found.reasons)) == (Change.CHANGED, reasons)


@pytest.mark.parametrize(
    ("base", "head", "function", "reasons"),
    [
        ("A = 1", "from __future__ import annotations\nA = 1", "a.<module>", ("body changed", "now imports `__future__`")),
        ("import re\nA = 1", "import re, secrets\nA = 1", "a.<module>", ("body changed", "now imports `secrets`")),
        (
            "A = 1",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n  import re\nA = 1",
            "a.<module>",
            ("body changed", "now imports `typing`"),
        ),
        (
            "def f(): return 1",
            "def f():\n  from .b import g\n  from . import c\n  return g()",
            "a.f",
            ("body changed", "now imports `.b`, `.c`"),
        ),
        ("import e", "import b, a1, d, e, c", "a.<module>", ("body changed", "now imports `a1`, `b`, `c` and 1 more")),
        ("import b, c", "import b", "a.<module>", ("body changed",)),
    ],
)
def test_modules_that_are_newly_imported_are_named(compare: Compare, base: str, head: str, function: str, reasons: tuple[str, ...]) -> None:
    found = compare(base, head)[function]
    assert (found.change, words(found.reasons)) == (Change.CHANGED, reasons)


def test_decorated_methods_are_taken_apart_where_they_are_indented(compare: Compare) -> None:
    text = (
        'class A:\n    class B:\n        @property\n        # note\n        def f(self):\n            """d\n  e"""\n            return {}\n'
    )
    found = compare(text.format(1), text.format(2))
    assert words(found["a.A.B.f"].reasons) == ("body changed",)
    assert differing(found) == {"a.A.B.f": Change.CHANGED}


def test_a_decorated_function_with_another_one_inside_is_taken_apart(compare: Compare) -> None:
    text = '@fixture\ndef f():\n    """\n    def example(): ...\n    """\n    def inner(): return 1\n    return {}\n'
    assert differing(compare(text.format(1), text.format(2))) == {"a.f": Change.CHANGED}


def test_files_that_begin_with_a_byte_order_mark_are_compared(compare: Compare) -> None:
    assert differing(compare("\ufeffx = 1\n", "\ufeffx = 2\n")) == {"a.<module>": Change.CHANGED}


def test_a_changed_inner_function_leaves_the_outer_one_a_caller(compare: Compare) -> None:
    text = "def outer(a):\n    def inner(b): return b + {}\n    return inner(a)\ndef main(): return outer(1)\n"
    found = compare(text.format(1), text.format(2))
    assert differing(found) == {"a.outer.inner": Change.CHANGED, "a.outer": Change.CALLER}
    assert words(found["a.outer"].reasons) == ("calls inner, which changed",)


def test_an_added_function_changes_nothing_else(compare: Compare) -> None:
    found = compare(
        "class A:\n    def f(self): return 1\n", "class A:\n    def f(self): return 1\n    def g(self): return 2\ndef h(): return 3\n"
    )
    assert differing(found) == {"a.A.g": Change.ADDED, "a.h": Change.ADDED}


def test_statements_of_a_module_and_of_its_classes_are_the_modules(compare: Compare) -> None:
    assert differing(compare("import a1\n", "import a1\nfor i in range(3): a1.f(i)\n")) == {"a.<module>": Change.CHANGED}
    assert differing(compare("class A:\n    f()\n", "class A:\n    f(1)\n")) == {"a.<module>": Change.CHANGED}
    assert differing(compare("@d\ndef f(): return 1\n", "@d\ndef f(): return 2\n")) == {"a.f": Change.CHANGED}


@pytest.mark.parametrize(
    ("base", "head", "function", "reason"),
    [
        ("M = 1\ndef f(): return M", "M = 2\ndef f(): return M", "a.f", "reads global a.M, whose definition changed from 1 to 2 (a.py:1)"),
        (
            "class A:\n    m = 1\n    def f(self): return self.m",
            "class A:\n    m = 2\n    def f(self): return self.m",
            "a.A.f",
            "reads attribute a.A.m, whose definition changed from 1 to 2 (a.py:2)",
        ),
        (
            "class A:\n    pass\ndef f(): return A()",
            "class A:\n    __slots__ = ('x',)\ndef f(): return A()",
            "a.f",
            "uses class a.A, whose definition changed from class to class with __slots__ (a.py:1)",
        ),
        (
            "class A:\n    __slots__ = ('x',)\ndef f(): return A()",
            "class A:\n    __slots__ = ('x', 'y')\ndef f(): return A()",
            "a.f",
            "uses class a.A, whose definition changed (a.py:1)",
        ),
        (
            f"M = {{{LONG}}}\ndef f(): return M",
            f"M = ({LONG})\ndef f(): return M",
            "a.f",
            "reads global a.M, whose definition changed from a set of 20 to a tuple of 20 (a.py:1)",
        ),
        (
            f"M = frozenset(({LONG}))\ndef f(): return M",
            f"M = [{LONG}, *N]\ndef f(): return M",
            "a.f",
            "reads global a.M, whose definition changed (a.py:1)",
        ),
        (
            f"M = frozenset(({LONG}))\ndef f(): return M",
            f"M = {{**{{}}, {LONG.replace(',', ': 1,')}: 1}}\ndef f(): return M",
            "a.f",
            "reads global a.M, whose definition changed (a.py:1)",
        ),
        (
            f"M = frozenset(({LONG}))\ndef f(): return M",
            f"M = [{LONG}]\ndef f(): return M",
            "a.f",
            "reads global a.M, whose definition changed from frozenset(…) to a list of 20 (a.py:1)",
        ),
        (
            "@dataclass\nclass A:\n    x: int\ndef f(): return A(1)",
            "@dataclass(frozen=True)\nclass A:\n    x: int\ndef f(): return A(1)",
            "a.f",
            "uses class a.A, whose definition changed from @dataclass class to @dataclass(frozen=True) class (a.py:2)",
        ),
        (
            "from json import loads\ndef f(): return loads('1')",
            "from slow import loads\ndef f(): return loads('1')",
            "a.f",
            "uses imported name a.loads, whose source changed from json.loads to slow.loads (a.py:1)",
        ),
        (
            "M = 1\nN = M\ndef f(): return N",
            "M = 2\nN = M\ndef f(): return N",
            "a.f",
            "reads global a.M, whose definition changed from 1 to 2 (a.py:1)",
        ),
    ],
)
def test_a_function_is_affected_by_what_it_depends_on(compare: Compare, base: str, head: str, function: str, reason: str) -> None:
    found = compare(base, head)[function]
    assert (found.change, words(found.reasons)) == (Change.AFFECTED, (reason,))


def test_a_base_of_a_base_affects_those_who_make_objects(compare: Compare) -> None:
    text = "class A:\n    __slots__ = {}\nclass B(A): pass\nclass C(B): pass\ndef f(): return C()\ndef g(): return 1\n"
    assert differing(compare(text.format("('a',)"), text.format("('a', 'b')"))) == {"a.<module>": Change.CHANGED, "a.f": Change.AFFECTED}


def test_an_import_from_another_module_of_the_project_affects(compare: Compare) -> None:
    files = {"fast.py": "def load(): return 1\n", "slow.py": "def load(): return [1][0]\n"}
    text = "from {} import load\ndef f(): return load()\n"
    found = compare(files | {"a.py": text.format("fast")}, files | {"a.py": text.format("slow")})
    assert differing(found) == {"a.<module>": Change.CHANGED, "a.f": Change.AFFECTED}


def test_a_renamed_function_is_matched_and_its_callers_are_unchanged(compare: Compare) -> None:
    text = f"def {{0}}(values, limit):{STEPS}\ndef main(): return {{0}}([1], 2)\n"
    found = compare(text.format("total"), text.format("excess"))
    assert differing(found) == {"a.excess": Change.RENAMED}
    assert words(found["a.excess"].reasons) == ("renamed from a.total",)


def test_a_moved_function_is_matched_and_its_importers_are_unchanged(compare: Compare) -> None:
    text = f"def total(values, limit):{STEPS}\n"
    main = "from {} import total\ndef main(): return total([1], 2)\n"
    base = {"a.py": main.format("one"), "one.py": text, "two.py": ""}
    head = {"a.py": main.format("two"), "one.py": "", "two.py": text}
    found = compare(base, head)
    assert found["two.total"].change is Change.RENAMED
    assert words(found["two.total"].reasons) == ("renamed from one.total", "moved from one.py")
    assert found["a.main"].change is Change.UNCHANGED


def test_a_moved_module_is_matched_as_a_whole(compare: Compare) -> None:
    text = f"LIMIT = 3\nclass Sums:\n    def total(self, values, limit=LIMIT):{STEPS.replace('        ', '            ')}\n"
    main = "{}\ndef main(): return {}.Sums().total([1])\n"
    base = {"a.py": text, "p/__init__.py": "", "main.py": main.format("import a as sums", "sums")}
    head = {"p/__init__.py": "", "p/a.py": text, "main.py": main.format("from p import a as sums", "sums")}
    found = compare(base, head)
    assert found["p.a.Sums.total"].change is Change.RENAMED
    assert found["main.main"].change is Change.UNCHANGED


def test_a_function_renamed_and_changed_a_little_is_changed(compare: Compare) -> None:
    base = f"def total(values, limit):{STEPS}\n"
    head = f"def excess(values, limit):{STEPS}\n".replace("limit - value", "limit - value * 2")
    found = compare(base, head)
    assert differing(found) == {"a.excess": Change.CHANGED}
    assert words(found["a.excess"].reasons) == ("renamed from a.total", "body changed")


def test_removed_and_added_functions_are_said(compare: Compare) -> None:
    found = compare("def f(): return 1\n", "def g(a): return [a] * 3\n")
    assert differing(found) == {"a.f": Change.REMOVED, "a.g": Change.ADDED}
    assert found["a.f"].head is None
    assert found["a.g"].base is None


def test_callers_of_changed_methods_are_callers(compare: Compare) -> None:
    text = "class A:\n    @property\n    def size(self): return {}\ndef f(a): return a.size\ndef g(a): return a.other\n"
    found = compare(text.format(1), text.format(2))
    assert differing(found) == {"a.A.size": Change.CHANGED, "a.f": Change.CALLER}
