"""The functions of Python programs: which there are, what they are called, and what they lead to."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from perfdiff.languages.python.functions import SAME_LINE
from perfdiff.languages.python.index import index
from perfdiff.records.schema import Source
from python_sources import by_name, callees, program, used, write


def test_functions_go_by_the_names_that_their_users_write(tmp_path: Path) -> None:
    text = """
        class Table:
            def sort(self):
                def key(row):
                    return row
                return sorted(self.rows, key=key)
            class Row:
                def first(self): ...
        async def fetch(): ...
        square = lambda x: x * x
        def each():
            return map(lambda x: x, [])
    """
    found = program(tmp_path, {"src/shop/__init__.py": "", "src/shop/table.py": text})
    assert set(by_name(found)) == {
        "shop.<module>",
        "shop.table.<module>",
        "shop.table.Table.sort",
        "shop.table.Table.sort.key",
        "shop.table.Table.Row.first",
        "shop.table.fetch",
        "shop.table.square",
        "shop.table.each",
        "shop.table.each.<lambda>",
    }
    assert {one.language for one in found.functions.values()} == {"python"}
    assert by_name(found)["shop.table.Table.sort.key"].key == "python:src/shop/table.py::Table.sort.key"
    assert {name for name, one in by_name(found).items() if one.loads} == {"shop.<module>", "shop.table.<module>"}


@pytest.mark.parametrize(
    ("file", "packages", "name"),
    [
        ("src/shop/table.py", ["src/shop"], "shop.table.f"),
        ("shop/table.py", ["shop"], "shop.table.f"),
        ("lib/shop/sub/table.py", ["lib/shop", "lib/shop/sub"], "shop.sub.table.f"),
        ("src/single.py", [], "single.f"),
        ("lib/single.py", [], "single.f"),
        ("lib/single.py", ["lib"], "lib.single.f"),
        ("benchmarks/run.py", [], "benchmarks.run.f"),
        ("shop/__init__.py", ["shop"], "shop.f"),
    ],
)
def test_a_module_is_named_as_it_is_imported(tmp_path: Path, file: str, packages: list[str], name: str) -> None:
    files = {f"{package}/__init__.py": "" for package in packages} | {file: "def f(): return 1\n"}
    assert name in by_name(program(tmp_path, files))


def test_environments_copies_and_foreign_packages_are_not_the_projects(tmp_path: Path) -> None:
    text = "def f(): return 1\n"
    foreign = [
        "venv/lib/python3.11/site-packages/other.py",
        "node_modules/gyp/a.py",
        "build/lib/shop.py",
        "build/lib.linux-x86_64-cpython-311/shop.py",
        "__pycache__/shop.py",
        ".tox/a.py",
        "shop.egg-info/a.py",
    ]
    found = program(tmp_path, {"venv/pyvenv.cfg": "", "shop.py": text, "build/tool.py": text} | dict.fromkeys(foreign, text))
    assert {one.file for one in found.functions.values()} == {"shop.py", "build/tool.py"}


def test_links_are_not_indexed_twice(tmp_path: Path) -> None:
    write(tmp_path, {"shop.py": "def f(): return 1\n"})
    (tmp_path / "alias.py").symlink_to("shop.py")
    assert {one.file for one in index(tmp_path, depth=2).functions.values()} == {"shop.py"}


CODE_OBJECTS = """
    import functools


    @functools.lru_cache(
        maxsize=3
    )
    @functools.wraps(print)
    def cached(n):
        return n

    class Shape:
        @property
        def area(self): return 1
        @area.setter
        def area(self, value): self.value = value
        scale = lambda self, by: by

    async def agen():
        yield 1

    def outer():
        def inner(): return 2
        return [x for x in (inner(), lambda: 3)]
"""


def test_first_lines_and_code_names_are_those_of_the_interpreters_code_objects(tmp_path: Path) -> None:
    found = program(tmp_path, {"a.py": CODE_OBJECTS})
    listing = """
        import sys, types
        def walk(code):
            if code.co_name not in ("Shape", "<listcomp>"):
                print(code.co_firstlineno, code.co_name)
            for each in code.co_consts:
                if isinstance(each, types.CodeType):
                    walk(each)
        walk(compile(open(sys.argv[1]).read(), "a.py", "exec"))
    """
    command = [sys.executable, "-c", textwrap.dedent(listing), str(tmp_path / "a.py")]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert sorted(one.linkage[0] for one in found.functions.values()) == sorted(printed.splitlines())


def test_texts_begin_at_decorators_and_are_cut_out_by_bytes(tmp_path: Path) -> None:
    source = "# größer\nclass A:\n    @ staticmethod\n    def f(a): return 'ü'\n\n    def g(self):\n        return 2\n"
    found = by_name(program(tmp_path, {"a.py": source}))
    data = source.encode()
    static = found["a.A.f"]
    assert static.text == "@ staticmethod\n    def f(a): return 'ü'"
    assert data[static.start : static.end].decode() == static.text
    assert data[static.body : static.end].decode() == "return 'ü'"
    assert static.line == 4
    assert found["a.A.g"].text == "def g(self):\n        return 2"


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("cookie", "encoding"), [("", "utf-8"), ("", "utf-8-sig"), ("# coding: latin-1", "latin-1"), ("# coding: cp1251", "cp1251")]
)
def test_other_encodings_and_line_ends_are_cut_out_right(tmp_path: Path, cookie: str, encoding: str, newline: str) -> None:
    letters = "я" if encoding == "cp1251" else "é"
    lines = [cookie, f"X = '{letters * 3}'; f = lambda: '{letters}'", "def g():", f"    '''{letters}'''", f"    return '{letters}'", ""]
    text = newline.join(lines)
    data = text.encode(encoding)
    found = by_name(program(tmp_path, {"a.py": data}))
    assert found["a.f"].text == f"lambda: '{letters}'"
    assert data[found["a.f"].start : found["a.f"].end].decode(encoding.removesuffix("-sig")) == f"lambda: '{letters}'"
    assert found["a.g"].text.startswith("def g():")
    assert found["a.g"].text.endswith(f"return '{letters}'")


REMARKS = b'''"""What the module is for.

# no comment, though it looks like one
"""
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
# a comment
TEXT = """
# no comment either
"""


@decorated(
    by=1
)
def outer(first, *, second=most()):
    """Tell what it does.

    At some length.
    """
    # why
    mark = "#"  # behind code

    def inner():
        return mark

    return inner


def plain(first,
          second=1): return first


class Thing:
    """A docstring."""; size = 1

    def empty(self): pass
'''


@pytest.mark.parametrize("newline", [b"\n", b"\r\n"], ids=["unix", "windows"])
@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("m.<module>", ["from typing import TYPE_CHECKING", 'TEXT = """', "# no comment either", '"""', "@decorated(", "by=1", ")"]),
        ("m.outer", ["@decorated(", "by=1", ")", "def outer(first, *, second=most()):", 'mark = "#"  # behind code', "def inner():"]),
        ("m.outer.inner", ["def inner():", "return mark"]),
        ("m.plain", ["def plain(first,", "second=1): return first"]),
        ("m.Thing.empty", ["def empty(self): pass"]),
    ],
)
def test_lines_of_code_are_no_comments_docstrings_or_functions_inside(tmp_path: Path, newline: bytes, name: str, code: list[str]) -> None:
    found = by_name(program(tmp_path, {"m.py": REMARKS.replace(b"\n", newline)}))[name]
    source = Source(found.file, found.first_line, found.text, found.no_code)
    rest = {
        "m.<module>": ["def outer(first, *, second=most()):", "class Thing:", '"""A docstring."""; size = 1'],
        "m.outer": ["return inner"],
    }
    assert [line for line in source.code.values() if line] == [*code, *rest.get(name, [])]
    file = REMARKS.decode().splitlines()
    assert all(file[number - 1].strip() == line for number, line in source.code.items())


def test_two_functions_of_one_name_are_numbered(tmp_path: Path) -> None:
    text = """
        try:
            import fast
            def load(): return fast.load()
        except ImportError:
            def load(): return 2
        def use(): return load()
    """
    found = program(tmp_path, {"a.py": text})
    assert {"a.load", "a.load#2"} <= set(by_name(found))
    assert callees(found, "a.use") == {"a.load", "a.load#2"}


def test_properties_are_told_from_their_setters(tmp_path: Path) -> None:
    text = """
        class A:
            @property
            def size(self): return self._size
            @size.setter
            def size(self, value): self._size = value
        def grow(thing): thing.size = 3
        def look(thing): return thing.size
    """
    found = program(tmp_path, {"a.py": text})
    assert {"a.A.size", "a.A.size.setter"} <= set(by_name(found))
    assert callees(found, "a.grow") == {"a.A.size.setter"}
    assert "a.A.size" in callees(found, "a.look")


def test_overloads_are_no_functions(tmp_path: Path) -> None:
    text = """
        from typing import overload
        @overload
        def f(a: int) -> int: ...
        @overload
        def f(a: str) -> str: ...
        def f(a): return a
    """
    assert set(by_name(program(tmp_path, {"a.py": text}))) == {"a.<module>", "a.f"}


def test_lambdas_that_interpreters_cannot_tell_apart_carry_no_probe(tmp_path: Path) -> None:
    found = by_name(program(tmp_path, {"a.py": "pair = (lambda: 1, lambda: 2)\nlone = lambda: 3\n"}))
    assert found["a.<lambda>"].obstacle == found["a.<lambda>#2"].obstacle == SAME_LINE
    assert found["a.lone"].obstacle is None


def test_what_cannot_be_parsed_is_a_problem_and_the_rest_is_indexed(tmp_path: Path) -> None:
    files = {"good.py": "def f(): return 1\n", "bad.py": "def f(:\n", "null.py": b"a = 1\0\n", "old.py": "print 'x'\n"}
    found = program(tmp_path, files)
    assert [one.file for one in found.problems] == ["bad.py", "null.py", "old.py"]
    assert "line 1" in found.problems[0].reason
    assert set(by_name(found)) == {"good.<module>", "good.f"}


def test_code_nested_too_deeply_is_a_problem_and_no_crash(tmp_path: Path) -> None:
    found = program(tmp_path, {"deep.py": "x = " + "-" * 5000 + "1\n", "good.py": ""})
    assert [one.file for one in found.problems] == ["deep.py"]


SHOP = {
    "shop/__init__.py": "from .table import Table, load as read\nfrom .extra import *\n",
    "shop/extra.py": "def helper(): return 1\n",
    "shop/limits.py": "MOST = 10\n",
    "shop/table.py": """
        import json
        from . import limits
        from .limits import MOST as LIMIT
        CACHE = {}
        class Base:
            STEP = 1
            def size(self): return len(self.rows)
            def close(self): return None
        class Table(Base):
            def __init__(self, rows): self.rows = rows
            def grow(self):
                CACHE[self.size()] = self.STEP
                return limits.MOST
            def close(self): return super().close()
        def load(path):
            return Table(json.load(path)).grow()
    """,
    "main.py": """
        import shop
        import shop.limits
        from shop import helper
        def main(path):
            from shop.table import Base
            table = shop.read(path)
            helper()
            return table.grow(), shop.Table([]), shop.limits.MOST, Base
    """,
}


def test_calls_are_followed_through_imports_and_packages(tmp_path: Path) -> None:
    found = program(tmp_path, SHOP)
    assert callees(found, "shop.table.load") == {"shop.table.Table.__init__", "shop.table.Table.grow"}
    assert callees(found, "main.main") == {
        "shop.table.load",
        "shop.extra.helper",
        "shop.table.Table.grow",
        "shop.table.Table.__init__",
        "shop.<module>",
        "shop.table.<module>",
    }
    assert {"shop.<module>", "shop.limits.<module>"} <= callees(found, "main.<module>")


def test_methods_are_found_in_the_class_its_bases_and_those_that_derive_from_it(tmp_path: Path) -> None:
    found = program(tmp_path, SHOP)
    assert callees(found, "shop.table.Table.grow") == {"shop.table.Base.size"}
    assert callees(found, "shop.table.Table.close") == {"shop.table.Base.close"}


def test_functions_depend_on_the_constants_attributes_and_classes_that_they_name(tmp_path: Path) -> None:
    found = program(tmp_path, SHOP)
    assert used(found, "shop.table.Table.grow") == {
        "class shop.table.Base",
        "class shop.table.Table",
        "attribute shop.table.Base.STEP",
        "global shop.limits.MOST",
        "global shop.table.CACHE",
        "imported name shop.table.limits",
    }


def test_what_is_read_and_written_has_one_name_in_all_functions(tmp_path: Path) -> None:
    found = by_name(program(tmp_path, SHOP))
    assert found["shop.table.Table.__init__"].writes == {"Table.rows"}
    assert "Table.rows" in found["shop.table.Base.size"].reads
    assert "shop.table.CACHE" in found["shop.table.Table.grow"].reads


def test_packages_offer_functions_under_shorter_names(tmp_path: Path) -> None:
    found = by_name(program(tmp_path, SHOP))
    assert found["shop.table.load"].names == ("shop.table.load", "shop.read")
    assert "shop.Table.grow" in found["shop.table.Table.grow"].names


def test_names_of_the_built_in_types_lead_nowhere_without_evidence(tmp_path: Path) -> None:
    files = {
        "store.py": "class Store:\n    def get(self, key): return key\n    def fetch(self): return 1\n",
        "near.py": "from store import Store\ndef near(thing): return thing.get(1)\n",
        "far.py": "def far(thing): return thing.get(1), thing.fetch()\n",
    }
    found = program(tmp_path, files)
    assert callees(found, "near.near") == {"store.Store.get"}
    assert callees(found, "far.far") == {"store.Store.fetch"}


def test_a_decorators_inner_function_stands_in_for_what_it_wraps(tmp_path: Path) -> None:
    text = """
        def timed(f):
            def wrapper(*args): return f(*args)
            return wrapper
        @timed
        def work(n): return n
        def main(): return work(3)
    """
    found = program(tmp_path, {"a.py": text})
    assert "a.timed.wrapper" in callees(found, "a.main")
    assert callees(found, "a.timed.wrapper") == {"a.work"}


def test_closures_and_local_names_are_not_the_modules(tmp_path: Path) -> None:
    text = """
        limit = 3
        def check(): return 1
        def outer(limit):
            def inner():
                check = 2
                return limit + check
            return inner()
        def reads(): return limit
        def rebinds():
            global limit
            limit = 4
    """
    found = program(tmp_path, {"a.py": text})
    assert used(found, "a.outer.inner") == set()
    assert callees(found, "a.outer") == {"a.outer.inner"}
    assert callees(found, "a.outer.inner") == set()
    assert used(found, "a.reads") == {"global a.limit"}
    assert by_name(found)["a.rebinds"].writes == {"a.limit"}


def test_operators_and_statements_call_the_methods_behind_them(tmp_path: Path) -> None:
    text = """
        class Row:
            def __lt__(self, other): return True
            def __enter__(self): return self
            def __exit__(self, *error): return None
            def __getitem__(self, key): return key
        def less(a, b): return a < b
        def held(row):
            with row: return 1
        def item(row): return row[0]
    """
    found = program(tmp_path, {"a.py": text})
    assert callees(found, "a.less") == {"a.Row.__lt__"}
    assert callees(found, "a.held") == {"a.Row.__enter__", "a.Row.__exit__"}
    assert callees(found, "a.item") == {"a.Row.__getitem__"}


def test_circular_imports_and_bases_end(tmp_path: Path) -> None:
    files = {
        "p/__init__.py": "from .a import f\nfrom .b import *\n",
        "p/a.py": "from p.b import f\nfrom p.b import *\nclass A(f): ...\n",
        "p/b.py": "from p.a import f\nfrom p.a import *\nclass B(B, A): ...\ndef g(): return f(), h()\n",
    }
    assert callees(program(tmp_path, files), "p.b.g") == set()


def test_a_class_within_a_class_may_derive_from_one_that_another_inherits(tmp_path: Path) -> None:
    """As forms of a web framework have it; what `Paged.Meta` is hangs on the bases of `Paged`, which are not known while bases are."""
    text = """
class Listed:
    class Meta:
        def order(self): ...
class Paged(Listed): ...
class Sorted(Paged):
    class Meta(Paged.Meta): ...
    def sort(self): return self.begin()
    def begin(self): ...
"""
    assert callees(program(tmp_path, {"a.py": text}), "a.Sorted.sort") == {"a.Sorted.begin"}


def test_modules_that_import_everything_of_each_other_are_followed_once(tmp_path: Path) -> None:
    """Followed along each way from module to module, a name that none of them has would take years."""
    everything = "".join(f"from p.m{number} import *\n" for number in range(12))
    files = {f"p/m{number}.py": f"{everything}def f{number}(): return f{(number + 1) % 12}(), missing()\n" for number in range(12)}
    found = program(tmp_path, {"p/__init__.py": "", **files})
    assert callees(found, "p.m3.f3") == {"p.m4.f4"}
