"""Test frameworks that projects of C and C++ carry as files of their own: none of their functions is the project's."""

from __future__ import annotations

from pathlib import Path

import pytest

from c_programs import callees, command
from perfdiff.languages.c.index import index
from perfdiff.languages.c.vendored import is_framework
from perfdiff.languages.protocol import Program

UNITY = "/* Unity - A Test Framework for C */\nvoid check(int fine) { if (!fine) __builtin_abort(); }\n"
TESTS = "void check(int fine);\nint total(int n);\nvoid test_total(void) { check(total(2) == 4); }\n"
SOURCE = "int total(int n) { return 2 * n; }\n"


def indexed(tree: Path, framework: str, others: list[Path]) -> Program:
    """Return what is found in a program whose tests use a framework; each tree is one of those that are compared."""
    tree.mkdir()
    for name, text in {"unity.c": framework, "test.c": TESTS, "total.c": SOURCE}.items():
        (tree / name).write_text(text)
    return index(tree, [command(file) for file in sorted(tree.glob("*.c"))], depth=3, workers=1, others=[tree, *others])


def names(program: Program) -> set[str]:
    return {definition.name for definition in program.functions.values()}


def test_functions_of_a_framework_that_is_the_same_on_both_sides_are_not_the_projects(tmp_path: Path) -> None:
    head = indexed(tmp_path / "head", UNITY, [])
    base = indexed(tmp_path / "base", UNITY, [tmp_path / "head"])
    assert names(head) == names(base) == {"test_total", "total"}
    assert callees(base, "test_total") == {"total"}


def test_a_framework_that_changed_is_looked_at_like_any_source(tmp_path: Path) -> None:
    indexed(tmp_path / "head", UNITY.replace("!fine", "fine == 0"), [])
    assert names(indexed(tmp_path / "base", UNITY, [tmp_path / "head"])) == {"check", "test_total", "total"}


def test_a_project_in_one_unit_of_the_same_name_is_its_own(tmp_path: Path) -> None:
    assert names(indexed(tmp_path / "tree", "void check(int fine) { (void)fine; }\n", [])) == {"check", "test_total", "total"}


@pytest.mark.parametrize(
    ("file", "head"),
    [
        ("tests/catch.hpp", "/*\n *  Catch v2.13.9\n"),
        ("third_party/catch_amalgamated.cpp", "\n//              Copyright Catch2 Authors\n//  Catch v3.5.0\n"),
        ("doctest/doctest.h", "//\n// doctest.h - the lightest feature-rich C++ single-header testing framework\n"),
        ("bench/nanobench.h", "//  _ \n// Microbenchmark framework for C++11/14/17/20\n"),
        ("vendor/unity/unity.c", "/* =====\n    Unity Project - A Test Framework for C\n"),
        ("vendor/unity.c", "/* ====\n    Unity - A Test Framework for C\n"),
        ("gtest/gtest-all.cc", "// Copyright 2008, Google Inc.\n"),
        ("build/_deps/googletest-src/googletest/src/gtest.cc", "// Copyright 2005, Google Inc.\n"),
        ("googletest/googlemock/include/gmock/gmock.h", "// Copyright 2007, Google Inc.\n"),
    ],
)
def test_frameworks_are_known_by_their_names_and_first_lines(file: str, head: str) -> None:
    assert is_framework(file, head.encode(), [])
    assert not is_framework(file, b"int main(void) { return 0; }\n", [])
    assert not is_framework(f"src/own_{Path(file).name}", head.encode(), [])
