"""Probes of PHP functions in a real PHP: what small programs record, and that they do what they would do without probes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

import php_programs
from perfdiff.records.plan import Entry, Mode
from perfdiff.records.recording import Recording
from php_programs import Program

pytestmark = pytest.mark.integration

Make = Callable[..., Program]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Make programs: functions by their names, of `main.php` where no file is named."""

    def made(files: str | Mapping[str, str], functions: Mapping[str, Sequence[str]]) -> Program:
        named = {"main.php": files} if isinstance(files, str) else files
        probed = {key if ".php::" in key else f"main.php::{key}": features for key, features in functions.items()}
        return php_programs.program(tmp_path, named, probed)

    return made


def calls(record: Recording) -> dict[int, float]:
    """Return how often each probe was called."""
    return dict(zip(record.totals.probe.tolist(), record.totals.calls.tolist(), strict=True))


def edges(record: Recording) -> dict[tuple[int, int], float]:
    pairs = zip(record.edges.caller.tolist(), record.edges.callee.tolist(), strict=True)
    return dict(zip(pairs, record.edges.calls.tolist(), strict=True))


NESTED = """<?php
function leaf($values, $n) {
    usleep(2000);
    return count($values) + $n;
}
function middle($count) {
    for ($i = 0; $i < $count; $i++) {
        leaf(array_fill(0, $i, 0), $i / 2);
    }
}
function unprobed() {
    middle(3);
    middle(2);
}
unprobed();
echo "done";
"""


def test_calls_times_features_and_callers_are_recorded(make: Make) -> None:
    program = make(NESTED, {"leaf": ["length $values", "number $n"], "middle": ["number $count"]})
    outcome = program.run_undisturbed()
    assert (outcome.status, outcome.output, outcome.errors) == (0, "done", "")
    record = outcome.only
    assert record.complete
    assert calls(record) == {1: 5.0, 2: 2.0}
    assert edges(record) == {(0, 2): 2.0, (2, 1): 5.0}
    assert sorted(program.values(record, "leaf")) == [(0.0, 0.0), (0.0, 0.0), (1.0, 0.5), (1.0, 0.5), (2.0, 1.0)]
    assert program.values(record, "middle") == [(3.0,), (2.0,)]
    assert record.totals.wall_ns[0] > 10e6  # of sleep
    assert record.totals.self_ns[1] < 5e6 < record.totals.wall_ns[1]


def test_calls_are_counted_where_only_counting_is_asked_for(make: Make) -> None:
    record = make(NESTED, {"leaf": [], "middle": []}).run(mode=Entry(Mode.COUNT)).only
    assert calls(record) == {1: 5.0, 2: 2.0}
    assert not record.samples
