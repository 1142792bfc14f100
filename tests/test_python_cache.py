"""What files of Python told is kept by their content, and two builds are the same where nothing differs that runs."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from perfdiff.languages.kept import FactsCache
from perfdiff.languages.python import index as index_module
from perfdiff.languages.python.index import index
from python_sources import write

FILES = {
    "shop/__init__.py": "from .table import Table, load as read\nfrom json import *\n",
    "shop/table.py": """
        from functools import cached_property
        from dataclasses import dataclass
        LIMIT = 10
        CACHE = {}
        @dataclass
        class Table:
            rows: list
            @cached_property
            def size(self): return len(self.rows) + LIMIT
            def grow(self, other):
                import json
                self.rows = other.rows
                other.count += 1
                return super().grow(), CACHE, json.dumps([self.size])
        def load(path, limit: int = 3):
            return Table(open(path), key=lambda row: row).grow(None)
    """,
    "bad.py": "def f(:\n",
}


def test_what_is_kept_is_what_was_told(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", FILES)
    fresh = index(tree, depth=2)
    assert index(tree, depth=2, cache=tmp_path / "cache") == fresh
    assert index(tree, depth=2, cache=tmp_path / "cache") == fresh


def test_a_file_is_parsed_again_where_its_content_or_place_or_depth_is_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree, cache = write(tmp_path / "tree", FILES), tmp_path / "cache"
    parsed: list[str] = []
    told = index_module.module_facts
    monkeypatch.setattr(index_module, "module_facts", lambda source, depth: (parsed.append(source.file), told(source, depth))[1])

    def parsed_now(depth: int = 2) -> list[str]:
        parsed.clear()
        index(tree, depth=depth, cache=cache)
        return [*parsed]

    assert parsed_now() == ["bad.py", "shop/__init__.py", "shop/table.py"]
    assert parsed_now() == []
    write(tree, {"shop/table.py": "def load(path): return 1\n", "shop/copy.py": FILES["shop/table.py"]})
    assert parsed_now() == ["shop/copy.py", "shop/table.py"]
    write(tree, FILES)
    assert parsed_now() == []
    assert parsed_now(depth=1) == ["bad.py", "shop/__init__.py", "shop/copy.py", "shop/table.py"]


def test_a_damaged_entry_is_made_again(tmp_path: Path) -> None:
    tree, cache = write(tmp_path / "tree", FILES), tmp_path / "cache"
    fresh = index(tree, depth=2, cache=cache)
    for text in ("", "[]", '{"a": 1}', "[" * 10, '{"a":' + "[" * 100_000):
        for entry in cache.rglob("*.json"):
            entry.write_text(text)
        assert index(tree, depth=2, cache=cache) == fresh


def test_a_file_whose_name_is_no_text_tells_the_same(tmp_path: Path) -> None:
    tree = write(tmp_path / "tree", FILES | {os.fsdecode(b"caf\xe9.py"): "def serve(cups): return cups\n"})
    fresh = index(tree, depth=2)
    assert any(function.name.endswith(".serve") for function in fresh.functions.values())
    assert index(tree, depth=2, cache=tmp_path / "cache") == fresh
    assert index(tree, depth=2, cache=tmp_path / "cache") == fresh


@dataclass(frozen=True, slots=True)
class Named:
    name: str


@dataclass(frozen=True, slots=True)
class Placed:
    name: str
    line: int = 0


def test_an_entry_whose_values_consisted_of_something_else_is_not_used(tmp_path: Path) -> None:
    assert FactsCache(tmp_path, Named, []).facts(b"def f", lambda: Named("f")) == Named("f")
    assert FactsCache(tmp_path, Placed, []).facts(b"def f", lambda: Placed("f", 3)) == Placed("f", 3)
    assert FactsCache(tmp_path, Named, []).facts(b"def f", lambda: Named("g")) == Named("f")
