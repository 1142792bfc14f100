"""Calls while a function warms up are told from later ones, and each compared with its like."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from experiments import BASE, HEAD, Columns, Made, World
from perfdiff import analysis
from perfdiff.analysis.compare.phases import FEATURE
from perfdiff.analysis.findings import FunctionFinding, Verdict
from perfdiff.config import CompareConfig
from perfdiff.records.schema import Change, Side


def sized(side: Side, n: float, count: int, rng: np.random.Generator) -> Columns:
    return {"n": rng.integers(1, int(n), count).astype(float)}


def found(first: Mapping[Side, tuple[int, float]], *, slower: float = 1.0) -> FunctionFinding:
    """Return what is found of a changed function whose first calls cost more, and that is slower in head."""
    made = Made(
        "render",
        lambda side, inputs: (3000 + 20 * inputs["n"]) * (slower if side is HEAD else 1.0),
        change=Change.CHANGED,
        calls=lambda side, n: {"": 300},
        inputs=sized,
        first=first,
    )
    world = World((made,), runs=10, kept=300)
    (finding,) = analysis.analyse(world.experiment(), world.samples, CompareConfig()).functions
    return finding


def test_how_long_both_sides_warm_up_is_told() -> None:
    finding = found({BASE: (100, 8.0), HEAD: (100, 8.0)})
    assert finding.verdict is Verdict.UNCHANGED
    assert {side: warm.calls for side, warm in finding.warm_up.items()} == pytest.approx({BASE: 100, HEAD: 100}, abs=3)
    assert finding.warm_up[BASE].factor == pytest.approx(8.0, rel=0.1)


def test_a_slow_down_is_seen_through_the_warm_up() -> None:
    finding = found({BASE: (150, 8.0), HEAD: (150, 8.0)}, slower=1.3)
    assert finding.verdict is Verdict.REGRESSION
    ratio = finding.metrics["self_ns"].ratio
    assert ratio is not None
    assert ratio.low < 1.3 < ratio.high
    assert ratio.high / ratio.low < 1.15


def test_a_warm_up_that_lasts_longer_is_a_regression_of_first_calls() -> None:
    finding = found({BASE: (30, 8.0), HEAD: (150, 8.0)})
    assert finding.verdict is Verdict.REGRESSION
    assert finding.metrics["self_ns"].stratum in (f"{FEATURE} = first 150 calls", "mean of all calls")


def test_functions_without_warm_up_have_no_phases() -> None:
    finding = found({})
    assert not finding.warm_up
    annotation = finding.metrics["self_ns"].base
    assert annotation is not None
    assert annotation.features == ("n",)
