"""Outcomes of conditions in Python functions: which conditions are planned, and what each call tells of them."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest

import python_programs
from perfdiff.languages.protocol import Probe
from perfdiff.languages.python.branches import plan_branches
from perfdiff.languages.python.sources import Positions
from perfdiff.records.plan import Mode, ProbePlan
from perfdiff.records.recording import RecordedSamples
from python_programs import Program

MAIN = """\
def judged(n, mode=None, *, strict=False):
    if mode is None and not strict:
        kind = "plain"
    elif mode is not None or n > 5:
        kind = "given"
    total = 0
    while total < n:
        total += 2 if total % 4 == 0 else 1
    for i in range(n):
        if 0 < i < 3:
            total += 1
    if (
        n == 3
    ):
        return [i for i in range(n) if i]
    return kind

def generated(n):
    for i in range(n):
        if i == 2:
            yield i

def ends(n):
    try:
        if n:
            return 1
    finally:
        if n > 1:
            n = 2
    while True:
        break

judged(4)
judged(3, "é", strict=True)
judged(9, strict=True)
list(generated(4))
ends(0), ends(2)
"""
NAMES = ("judged", "generated", "ends")
TEXTS = ["mode is None", "strict", "mode is not None", "n > 5", "total < n", "total % 4 == 0", "n == 3"]


def planned(name: str) -> tuple[object, ...]:
    (node,) = [each for each in ast.parse(MAIN).body if getattr(each, "name", None) == name]
    return plan_branches(node, Positions(MAIN.encode()))


def test_conditions_are_planned_one_by_one_where_a_jump_of_its_own_decides_each() -> None:
    plans = planned("judged")
    assert [plan.text for plan in plans] == TEXTS
    assert [MAIN.encode()[plan.start : plan.end].decode() for plan in plans] == TEXTS
    assert [plan.line for plan in plans] == [2, 2, 4, 4, 7, 8, 13]
    assert [plan.expression.split()[0] for plan in plans] == ["none", "true", "some", "true", "true", "true", "true"]
    assert plans[-1].expression == "true 13 8 13 14"
    assert [plan.text for plan in planned("ends")] == ["n", "n > 1"], "one that is always true decides nothing"


def program(folder: Path, version: str) -> Program:
    """Return the program with all conditions of its functions watched, under an interpreter of that version."""
    found = python_programs.interpreter(version)
    if found is None:
        pytest.skip(f"needs Python {version}")
    made = python_programs.program(folder, found, {"main.py": MAIN}, {f"main.py::{name}": ["number n"] for name in NAMES})
    return replace(made, python=python_programs.environment(folder / "venv", found), probes=tuple(map(_watched, made.probes)))


def _watched(probe: Probe) -> Probe:
    plans = planned(probe.definition.name)
    return replace(probe, definition=replace(probe.definition, branches=plans), branches=tuple(range(len(plans))))


def outcomes(samples: RecordedSamples, features: int) -> list[list[tuple[int, int]]]:
    """Return by call how often each condition was met, and how often it held."""
    ordered = samples.cells[samples.call.argsort(), features:].astype(int)
    return [list(zip(row[0::2].tolist(), row[1::2].tolist(), strict=True)) for row in ordered]


@pytest.mark.integration
@pytest.mark.parametrize("version", python_programs.VERSIONS)
def test_each_call_tells_how_often_its_conditions_were_met_and_held(tmp_path: Path, version: str) -> None:
    outcome = program(tmp_path, version).run_undisturbed()
    assert outcome.status == 0, outcome.errors
    judged, generated, ends = (outcomes(outcome.only.samples[number], 1) for number in (1, 2, 3))
    if version in ("3.10", "3.11"):
        assert {pair for table in (judged, generated, ends) for call in table for pair in call} == {(0, 0)}, "nothing tells of jumps there"
        return
    assert judged == [
        [(1, 1), (1, 0), (0, 0), (0, 0), (4, 3), (3, 1), (1, 0)],
        [(1, 0), (0, 0), (1, 1), (0, 0), (3, 2), (2, 1), (1, 1)],
        [(1, 1), (1, 1), (1, 0), (1, 1), (8, 7), (7, 3), (1, 0)],
    ]
    assert generated == [[(3, 1)], [(1, 0)]], "each resumption is a call"
    assert ends == [[(1, 0), (1, 0)], [(1, 1), (1, 1)]]


@pytest.mark.integration
def test_calls_that_are_not_sampled_tell_nothing_and_run_as_ever(tmp_path: Path) -> None:
    outcome = program(tmp_path, "3.12").run(mode=ProbePlan(Mode.COUNT))
    assert (outcome.status, outcome.only.totals.calls.tolist()) == (0, [3.0, 2.0, 2.0])
    assert not outcome.only.samples
