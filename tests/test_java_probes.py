"""Probes of Java methods in real JVMs: what small programs record, and that they do what they would do without probes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

import java_programs
from java_programs import Program
from perfdiff.records.plan import Entry, Mode
from perfdiff.records.recording import Recording

pytestmark = pytest.mark.integration

Make = Callable[..., Program]


@pytest.fixture(params=[17])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    """Make programs, with each JDK in turn."""
    if request.param not in java_programs.found():
        pytest.skip(f"no JDK {request.param}")
    jdk = java_programs.found()[request.param]

    def made(files: str | Mapping[str, str], methods: Mapping[str, Sequence[str]], *options: str) -> Program:
        named = {"Main.java": files} if isinstance(files, str) else files
        return java_programs.program(tmp_path, jdk, named, methods, *options)

    return made


def calls(record: Recording) -> dict[int, float]:
    """Return how often each probe was called."""
    return dict(zip(record.totals.probe.tolist(), record.totals.calls.tolist(), strict=True))


def edges(record: Recording) -> dict[tuple[int, int], float]:
    pairs = zip(record.edges.caller.tolist(), record.edges.callee.tolist(), strict=True)
    return dict(zip(pairs, record.edges.calls.tolist(), strict=True))


NESTED = """
class Main {
    static int leaf(int[] values, double n) throws Exception {
        Thread.sleep(2);
        return values.length + (int) n;
    }
    static void middle(int count) throws Exception {
        for (int i = 0; i < count; i++) leaf(new int[i], i / 2.0);
    }
    static void unprobed() throws Exception {
        middle(3);
        middle(2);
    }
    public static void main(String[] arguments) throws Exception {
        unprobed();
        System.out.println("done");
    }
}
"""
LEAF, MIDDLE = "Main leaf ([ID)I", "Main middle (I)V"


def test_calls_times_features_and_callers_are_recorded(make: Make) -> None:
    program = make(NESTED, {LEAF: ["length arg0", "number arg1"], MIDDLE: ["number arg0"]})
    outcome = program.run_undisturbed()
    assert (outcome.output, outcome.said, outcome.notes) == ("done\n", "", ())
    record = outcome.only
    assert record.complete
    assert calls(record) == {1: 5.0, 2: 2.0}
    assert edges(record) == {(0, 2): 2.0, (2, 1): 5.0}
    assert sorted(program.values(record, "Main.leaf")) == [(0.0, 0.0), (0.0, 0.0), (1.0, 0.5), (1.0, 0.5), (2.0, 1.0)]
    assert program.values(record, "Main.middle") == [(3.0,), (2.0,)]
    assert record.totals.wall_ns[0] > 10e6  # of sleep
    assert record.totals.self_ns[1] < 5e6 < record.totals.wall_ns[1]


def test_calls_are_counted_where_only_counting_is_asked_for(make: Make) -> None:
    record = make(NESTED, {LEAF: [], MIDDLE: []}).run(mode=Entry(Mode.COUNT)).only
    assert calls(record) == {1: 5.0, 2: 2.0}
    assert not record.samples
