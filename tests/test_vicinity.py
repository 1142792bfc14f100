"""Which functions of a large program are looked at first."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from perfdiff.collect.choosing.subjects import Subjects
from perfdiff.collect.choosing.vicinity import LARGE, vicinity
from perfdiff.languages.protocol import Counterpart, FunctionDefinition
from perfdiff.records.differences import other_reason
from perfdiff.records.schema import Change

SOURCES = frozenset(("a.c", "main.c", *(f"far{number}.c" for number in range(LARGE - 2))))


def function(name: str, file: str = "a.c", **facts: object) -> FunctionDefinition:
    return replace(FunctionDefinition(name, name, (name,), file, 1, 0, 1, 2, "", "", ""), **facts)  # type: ignore[arg-type]


def program(special: Mapping[str, FunctionDefinition]) -> tuple[Subjects, dict[str, int]]:
    """Return a program of some functions and others that have nothing to do with them, and the numbers of all by name."""
    functions = [*special.values(), *(function(name, name) for name in sorted(SOURCES))]
    pairs = [
        Counterpart(each, each, Change.CHANGED if each.name == "changed" else Change.UNCHANGED, (other_reason("its body"),), ())
        for each in functions
    ]
    subjects = Subjects.number(pairs)
    return subjects, {pair.shown.name: id_ for id_, pair in subjects.pairs.items()}


def near(special: Mapping[str, FunctionDefinition], compiled: Collection[str] = SOURCES) -> set[str] | None:
    subjects, _ = program(special)
    chosen = vicinity(subjects, compiled)
    return None if chosen is None else {subjects.pairs[id_].shown.name for id_ in chosen}


CHANGED = function("changed", calls=frozenset(("callee",)), writes=frozenset(("list.size",)))


def test_vicinity_of_a_change_is_what_calls_it_what_it_calls_and_what_reads_what_it_writes() -> None:
    special = {
        "changed": CHANGED,
        "callee": function("callee", calls=frozenset(("below",))),
        "below": function("below"),
        "caller": function("caller", calls=frozenset(("changed",))),
        "above": function("above", calls=frozenset(("caller",))),
        "far above": function("far above", calls=frozenset(("above",))),
        "reader": function("reader", reads=frozenset(("list.size",))),
        "main": function("main", "main.c"),
    }
    assert near(special) == {"changed", "callee", "caller", "above", "reader", "main"}


def test_what_stands_in_headers_is_looked_at_only_where_it_changed() -> None:
    special = {"changed": CHANGED, "callee": function("callee", "a.h")}
    assert near(special) == {"changed"}
    assert near({"changed": replace(CHANGED, file="a.h")}) == {"changed"}


def test_functions_whose_probes_need_no_build_are_all_looked_at() -> None:
    special = {"changed": CHANGED, "script": function("script", "tool.py", language="python")}
    assert near(special) == {"changed", "script"}


def test_small_programs_and_changes_that_reach_most_of_a_program_are_looked_at_as_a_whole() -> None:
    assert near({"changed": CHANGED}) == {"changed"}
    assert near({"changed": CHANGED}, sorted(SOURCES)[1:]) is None
    assert near({"unchanged": function("unchanged")}) is None
    reading = {file: function(f"reader of {file}", file, reads=frozenset(("list.size",))) for file in SOURCES}
    assert near({"changed": CHANGED, **reading}) is None


def test_where_it_is_said_within_which_functions_is_looked_no_others_get_probes() -> None:
    subjects, numbers = program({"changed": CHANGED})
    within = replace(subjects, within=frozenset((numbers["changed"], numbers["far1.c"])))
    assert within.probeable(()).keys() == {numbers["changed"], numbers["far1.c"]}
    assert within.probeable(("*.c",)) == {}
