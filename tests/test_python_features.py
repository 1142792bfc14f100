"""Which inputs of Python functions are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfdiff.languages.planning import MAX_FEATURES
from perfdiff.languages.protocol import FeaturePlan, Load
from perfdiff.records.schema import Origin
from python_sources import by_name, program


def plans(tmp_path: Path, text: str, name: str = "f", depth: int = 2) -> dict[str, FeaturePlan]:
    return {plan.expression: plan for plan in by_name(program(tmp_path, {"a.py": text}, depth))[f"a.{name}"].features}


@pytest.mark.parametrize(
    ("parameter", "expressions"),
    [
        ("a", ["number a", "length a"]),
        ("a=None", ["number a", "length a"]),
        ("a=3", ["number a"]),
        ("a=-1.5", ["number a"]),
        ("a=False", ["number a"]),
        ("a='x'", ["length a"]),
        ("a=()", ["length a"]),
        ("a: int", ["number a"]),
        ("a: int | None = None", ["number a"]),
        ("a: 'float | str'", ["number a", "length a"]),
        ("a: Optional[Sequence[int]]", ["length a"]),
        ("a: Union[int, list[int]]", ["number a", "length a"]),
        ("a: Row", ["number a", "length a"]),
        ("a: Callable[[int], int]", []),
        ("*a", ["length a"]),
        ("**a", ["length a"]),
        ("*, a", ["number a", "length a"]),
        ("a, /", ["number a", "length a"]),
    ],
)
def test_a_parameter_is_read_as_what_it_may_be(tmp_path: Path, parameter: str, expressions: list[str]) -> None:
    assert list(plans(tmp_path, f"def f({parameter}): return 1\n")) == expressions


def test_features_have_the_names_and_loads_that_readers_know(tmp_path: Path) -> None:
    found = plans(tmp_path, "def f(n, path): return open(path)\n")
    assert found["number n"] == FeaturePlan("n", Origin.ARGUMENT, Load.FLOATING, "number n")
    assert found["length n"] == FeaturePlan("len(n)", Origin.ARGUMENT, Load.UNSIGNED, "length n")
    assert found["file path"] == FeaturePlan("file size(path)", Origin.DERIVED, Load.FILE, "file path")
    assert found["depth path"] == FeaturePlan("path depth(path)", Origin.DERIVED, Load.DEPTH, "depth path")


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        ("def f(log_file): return 1", True),
        ("def f(inputPath): return 1", True),
        ("def f(x: Path): return 1", True),
        ("def f(x): return open(x)", True),
        ("def f(profile): return 1", False),
        ("def f(file: int): return 1", False),
    ],
)
def test_files_are_looked_at_where_a_parameter_names_one(tmp_path: Path, text: str, reads: bool) -> None:
    assert any(plan.load is Load.FILE for plan in plans(tmp_path, text).values()) == reads


def test_attributes_are_read_where_the_body_names_them(tmp_path: Path) -> None:
    text = """
class A:
    def f(self, other):
        self.items.append(other.size)
        self.count = 1
        self.deep.er.still.more
        return self.run(other.name.lower())
"""
    found = plans(tmp_path, text, "A.f")
    fields = [plan.expression for plan in found.values() if plan.origin is Origin.FIELD]
    assert fields == [f"{how} {path}" for path in ("other.name", "other.size", "self.items") for how in ("number", "length")]
    assert found["length self.items"].name == "len(self.items)"


def test_paths_have_at_most_as_many_steps_as_asked(tmp_path: Path) -> None:
    text = "def f(a): return a.b, a.b.c\n"
    assert "number a.b.c" in plans(tmp_path, text, depth=2)
    assert "number a.b.c" not in plans(tmp_path, text, depth=1)
    assert "number a.b" not in plans(tmp_path, text, depth=0)


def test_an_object_under_construction_has_no_attributes_to_read(tmp_path: Path) -> None:
    text = "class A:\n    def __init__(self, n):\n        self.n = n\n        self.m = self.n\n"
    assert list(plans(tmp_path, text, "A.__init__")) == ["number n", "length n"]


def test_globals_are_read_where_they_may_differ(tmp_path: Path) -> None:
    text = """
LIMIT = 10
NAME = "x"
CACHE = {}
count = 0
CONFIG = make()
def f():
    global count
    count += 1
    return LIMIT, NAME, CACHE, CONFIG.depth, len
"""
    found = plans(tmp_path, text)
    assert list(found) == ["length @CACHE", "number @count", "length @count", "number @CONFIG.depth", "length @CONFIG.depth"]
    assert {plan.origin for plan in found.values()} == {Origin.GLOBAL}
    assert found["length @CACHE"].name == "len(CACHE)"


def test_sizes_of_elements_and_types_are_read_where_the_body_asks_for_them(tmp_path: Path) -> None:
    text = """
def f(rows, names, thing, other):
    for index, row in enumerate(rows): print(row)
    for name in names.items(): print(name)
    if isinstance(thing, int): return thing
    return other.run()
"""
    derived = [plan for plan in plans(tmp_path, text).values() if plan.origin is Origin.DERIVED]
    assert [plan.expression for plan in derived] == ["nested rows", "nested names", "type names", "type thing", "type other"]
    assert [plan.category for plan in derived] == [False, False, True, True, True]
    assert [plan.name for plan in derived[:3]] == ["sum(map(len, rows))", "sum(map(len, names))", "type(names)"]


def test_tables_of_numbers_are_read_by_columns_and_bytes(tmp_path: Path) -> None:
    assert list(plans(tmp_path, "def f(a: np.ndarray): return 1\n")) == ["number a", "length a", "columns a", "bytes a"]


def test_no_more_is_planned_than_annotations_can_sort_out_the_nearest_first(tmp_path: Path) -> None:
    names = [f"p{index}" for index in range(40)]
    found = plans(tmp_path, f"def f({', '.join(names)}): return p0.a\n")
    assert len(found) == MAX_FEATURES
    assert list(found)[:2] == ["number p0", "length p0"]
