"""Standard headers of C++ are parsed once for many units, and what is told of these is the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from c_programs import command, function
from perfdiff.languages.c import front
from perfdiff.languages.c.cursors import TreeFiles
from perfdiff.languages.c.index import index
from perfdiff.languages.c.shared_headers import SharedHeaders
from perfdiff.languages.protocol import CompileCommand, Program

LIST = """
#include <string>
#include <vector>
template <typename T> class List {
 public:
  void add(const T &value);
  int count = 0;
 private:
  struct Node;
  Node *first = nullptr;
};
template <typename T> struct List<T>::Node { T value; int rank; Node *next; };
template <typename T> void List<T>::add(const T &value) { first = new Node{value, first ? first->rank + 1 : 0, first}; count++; }
template <typename T> T larger(T a, T b) { return a < b ? b : a; }
"""
UNITS = 5


def tree(folder: Path, unit: str = "", header: str = LIST) -> list[CompileCommand]:
    """Write units of C++ that share a header, and return how they are compiled."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "list.h").write_text(f"#pragma once\n{header}")
    for number in range(UNITS):
        (folder / f"u{number}.cc").write_text(
            f'#include "list.h"\n{unit}\n'
            f"static int sum{number}(const std::vector<int> &all) {{ int sum = 0; for (int x : all) sum += x; return sum; }}\n"
            f"int use{number}(List<int> &list, const std::string &name) {{ list.add(larger({number}, (int)name.size())); "
            f"return sum{number}({{list.count, 2}}); }}\n"
        )
    return [command(folder / f"u{number}.cc") for number in range(UNITS)]


def parsed_alone(folder: Path, commands: list[CompileCommand], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return which units of a batch are parsed without precompiled headers."""
    alone: list[str] = []
    parse = front.parse

    def spied(unit: front.Unit) -> object:
        alone.append(unit.file.name)
        return parse(unit)

    units = [front.unit(one) for one in commands]
    monkeypatch.setattr(front, "parse", spied)
    headers = SharedHeaders(units, TreeFiles(folder), folder.parent / "shared")
    for unit in units:
        headers.parse(unit)
    return alone


def without_sharing(folder: Path, commands: list[CompileCommand], monkeypatch: pytest.MonkeyPatch) -> Program:
    """Return the index where each unit is parsed as it stands."""
    with monkeypatch.context() as patched:
        patched.setattr(SharedHeaders, "parse", lambda _self, unit: front.parse(unit))
        return index(folder, commands, depth=3, workers=1)


def test_units_get_the_standard_headers_that_all_of_them_include_precompiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = tree(tmp_path / "tree")
    assert parsed_alone(tmp_path / "tree", commands, monkeypatch) == []
    assert {header.suffix for header in (tmp_path / "shared").iterdir()} == {".hpp", ".pch"}


def test_precompiled_headers_change_nothing_of_what_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = tree(tmp_path / "tree")
    shared = index(tmp_path / "tree", commands, depth=3, workers=1)
    assert shared == without_sharing(tmp_path / "tree", commands, monkeypatch)
    # A node's fields can be followed only where the template has become a class, at the end of a unit.
    assert "list.first->rank" in {feature.name for feature in function(shared, "use1").features}
    # What the template became is no function beside it.
    assert function(shared, "List::add").file == function(shared, "larger").file == "list.h"


@pytest.mark.parametrize(
    ("unit", "header"),
    [
        pytest.param("", f"#define private public\n{LIST}", id="a word of standard headers is a macro"),
        pytest.param("", f"#define _GLIBCXX_ASSERTIONS 1\n{LIST}", id="standard headers ask for a macro"),
        pytest.param(
            "", f"#ifndef __GLIBCXX__\n#define EARLY 1\n#endif\n{LIST}", id="a macro of standard headers is asked for ahead of them"
        ),
        pytest.param("int broken = missing;\n", LIST, id="a unit has an error"),
    ],
)
def test_units_that_may_not_be_the_same_are_parsed_as_they_stand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unit: str, header: str
) -> None:
    commands = tree(tmp_path / "tree", unit, header)
    assert parsed_alone(tmp_path / "tree", commands, monkeypatch) == [f"u{number}.cc" for number in range(UNITS)]


def test_what_is_named_and_not_included_is_precompiled_no_more_once_two_units_lack_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = tree(tmp_path / "tree", "#ifdef IMPLEMENT\n#include <map>\n#endif\n")
    assert parsed_alone(tmp_path / "tree", commands, monkeypatch) == ["u0.cc"]
    assert index(tmp_path / "tree", commands, depth=3, workers=1) == without_sharing(tmp_path / "tree", commands, monkeypatch)


def test_a_unit_that_lacks_what_the_others_include_leaves_them_their_headers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = tree(tmp_path / "tree", "#ifndef NO_MAP\n#include <map>\n#endif\n")
    lacking = tmp_path / "tree/u2.cc"
    lacking.write_text(f"#define NO_MAP\n{lacking.read_text()}")
    assert parsed_alone(tmp_path / "tree", commands, monkeypatch) == ["u2.cc"]


def test_words_in_comments_of_standard_headers_may_be_macros(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Above `signal.h`'s sigwaitinfo: "place information in INFO"; test frameworks have macros of that name.
    commands = tree(tmp_path / "tree", "#include <csignal>\n#define INFO 1\n")
    assert parsed_alone(tmp_path / "tree", commands, monkeypatch) == []


def test_headers_of_the_tree_are_not_precompiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = tree(tmp_path / "tree", "#include <own>\n")
    (tmp_path / "tree/lib").mkdir()
    (tmp_path / "tree/lib/own").write_text("#pragma once\ninline int own(int x) { return x + 1; }\n")
    commands = [command(one.file, ["-isystem", "lib"]) for one in commands]
    assert parsed_alone(tmp_path / "tree", commands, monkeypatch) == [f"u{number}.cc" for number in range(UNITS)]
    assert function(index(tmp_path / "tree", commands, depth=3, workers=1), "own").file == "lib/own"
