"""Probes of Python functions in real interpreters: what small programs record, and that they do what they would do without probes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

import python_programs
from perfdiff.records.plan import Entry, Mode
from perfdiff.records.recording import Recording
from python_programs import Program

pytestmark = pytest.mark.integration

Make = Callable[..., Program]


@pytest.fixture(scope="module")
def pythons(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """Return an interpreter of a virtual environment with the hook, for each version that is at hand."""
    versions = [version for version in python_programs.VERSIONS if python_programs.interpreter(version)]
    folder = tmp_path_factory.mktemp("environments")
    return {version: python_programs.environment(folder / version, python_programs.interpreter(version)) for version in versions}


@pytest.fixture(params=python_programs.VERSIONS)
def make(request: pytest.FixtureRequest, pythons: Mapping[str, Path], tmp_path: Path) -> Make:
    """Make programs, with each version of the interpreter in turn."""
    if request.param not in pythons:
        pytest.skip(f"no Python {request.param}")

    def made(files: str | Mapping[str, str], **functions: Sequence[str]) -> Program:
        named = {"main.py": files} if isinstance(files, str) else files
        probed = {key if "::" in key else f"main.py::{key}": features for key, features in functions.items()}
        return python_programs.program(tmp_path, pythons[request.param], named, probed)

    return made


def calls(record: Recording) -> dict[int, float]:
    """Return how often each probe was called."""
    return dict(zip(record.totals.probe.tolist(), record.totals.calls.tolist(), strict=True))


def edges(record: Recording) -> dict[tuple[int, int], float]:
    pairs = zip(record.edges.caller.tolist(), record.edges.callee.tolist(), strict=True)
    return dict(zip(pairs, record.edges.calls.tolist(), strict=True))


NESTED = """
import time

def leaf(values, n):
    time.sleep(0.002)
    return len(values) + n

def middle(count):
    for i in range(count):
        leaf([0] * i, i / 2)

def unprobed():
    middle(3)
    middle(2)

unprobed()
print("done")
"""


def test_calls_times_features_and_callers_are_recorded(make: Make) -> None:
    program = make(NESTED, leaf=["length values", "number n"], middle=["number count"])
    outcome = program.run()
    assert (outcome.status, outcome.output, outcome.errors) == (0, "done\n", "")
    record = outcome.only
    assert record.complete
    assert calls(record) == {1: 5.0, 2: 2.0}
    assert edges(record) == {(0, 2): 2.0, (2, 1): 5.0}
    assert sorted(program.values(record, "leaf")) == [(0.0, 0.0), (0.0, 0.0), (1.0, 0.5), (1.0, 0.5), (2.0, 1.0)]
    assert program.values(record, "middle") == [(3.0,), (2.0,)]
    assert 10e6 < record.totals.wall_ns[0] < 50e6
    assert record.totals.self_ns[1] < 5e6 < record.totals.wall_ns[1]


def test_calls_are_counted_where_only_counting_is_asked_for(make: Make) -> None:
    record = make(NESTED, leaf=[], middle=[]).run(mode=Entry(Mode.COUNT)).only
    assert calls(record) == {1: 5.0, 2: 2.0}
    assert not record.samples
