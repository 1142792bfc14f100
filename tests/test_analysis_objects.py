"""Memory that functions ask an interpreter for, told as a cause where it grew by more than their work."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from perfdiff.analysis.claims import claim
from perfdiff.analysis.counts.memory import MemoryEvidence
from perfdiff.analysis.counts.objects import memory_causes
from perfdiff.analysis.findings import CountFinding, Ratio
from perfdiff.records.schema import Change, FunctionInfo, Point
from perfdiff.report.sentences.catalogue import say


def count(counter: str, base: float, head: float) -> CountFinding:
    """Return a count that repeats to the last digit, of a function that a run calls ten times."""
    ratio = math.inf if base == 0 else head / base
    grew, shrank = head > 1.01 * base, head < 0.99 * base
    return CountFinding(
        counter,
        Point(0, "read", {"n": 4}, "./read 4"),
        base,
        head,
        Ratio(ratio, ratio, ratio, 2, 2),
        True,
        grew,
        shrank,
        10 * (head - base),
        math.nan,
    )


def told(*counts: CountFinding) -> dict[str, tuple[float, str]]:
    """Return the causes by name: the ns that each may explain, and what it says."""
    place = MemoryEvidence(FunctionInfo(1, "read", "read.py", 1, "python", Change.CHANGED), {each.counter: each for each in counts})
    return {cause.name: (ns, say(cause.says)) for ns, cause in memory_causes(place, claim("given", reason=" (read.py, line 2)"))}


def test_more_objects_are_told_with_both_numbers() -> None:
    found = told(count("lines", 8, 8), count("objects", 1, 12), count("object_bytes", 50, 600))
    assert found == {"more-allocation": (pytest.approx(55_000), "it makes 12 allocations a call at read n=4, 1 before (read.py, line 2)")}


def test_as_many_but_larger_objects_are_told_in_bytes() -> None:
    found = told(count("lines", 8, 8), count("objects", 40, 40), count("object_bytes", 5e5, 7.5e8))
    assert found["more-allocation"][1] == "it allocates 750 MB a call at read n=4, 500 kB before (read.py, line 2)"


def test_more_in_use_at_once_is_told_with_what_is_allocated() -> None:
    found = told(count("opcodes", 8, 8), count("objects", 1, 12), count("peak_bytes", 1e5, 3e6))
    assert (
        found["more-allocation"][1]
        == "it makes 12 allocations a call at read n=4, 1 before, up to 3 MB in use at once (100 kB) (read.py, line 2)"
    )
    held = told(count("opcodes", 8, 8), count("objects", 12, 12), count("peak_bytes", 1e5, 3e6))
    assert held["more-memory"] == (pytest.approx(29e6), "it has 3 MB of memory in use at once at read n=4, 100 kB before (read.py, line 2)")


def test_what_more_work_asks_for_is_no_cause_of_its_own() -> None:
    assert not told(count("lines", 10, 100), count("objects", 20, 200), count("object_bytes", 1e3, 1e4), count("collections", 0.1, 1))
    assert told(count("lines", 10, 20), count("objects", 20, 200))


def test_fewer_objects_are_no_cause() -> None:
    assert not told(count("lines", 8, 8), count("objects", 12, 1))


def test_the_time_of_collections_is_told_with_them_and_bounds_what_they_explain() -> None:
    found = told(count("lines", 8, 8), replace(count("collections", 1, 4), took_ns=(3e4, 1.2e6)))
    assert found == {
        "garbage-collection": (
            pytest.approx(1.17e7),
            "it sets off 4 collections of garbage a call at read n=4, 1 before, in 1.2 ms, 30 µs before (read.py, line 2)",
        )
    }


def test_collections_are_told_beside_what_is_allocated() -> None:
    found = told(count("lines", 8, 8), count("objects", 100, 2e4), count("collections", 0, 2))
    assert found["garbage-collection"][1] == "it sets off 2 collections of garbage a call at read n=4, 0 before (read.py, line 2)"
    assert set(found) == {"more-allocation", "garbage-collection"}
