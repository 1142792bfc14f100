"""Regimes that move between versions: simulated calls with known modes and borders."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from perfdiff.analysis.compare.regimes import moved_borders, moved_modes
from perfdiff.config import CompareConfig
from perfdiff.models.fitting import fit
from perfdiff.records.schema import SampleTable
from sampled import noisy, table

RUNS, CALLS = 10, 100


def misses(rng: np.random.Generator, share: float, spread: float = 0.02, unit_ns: float = 1000.0) -> SampleTable:
    """Return calls of one unit, a share of which misses a cache and takes eight; the share varies a little between runs."""
    shares = np.clip(share + spread * rng.standard_normal(RUNS), 0, 1)
    run = np.repeat(np.arange(RUNS), CALLS)
    slow = rng.random(len(run)) < shares[run]
    return table({"n": rng.integers(1, 100, len(run)) + 0.0}, noisy(rng, unit_ns * np.where(slow, 8.0, 1.0), 0.05, 0.0), run=run)


@pytest.mark.statistical
def test_a_mode_that_became_likelier_is_told_with_its_shares() -> None:
    found = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        base, head = misses(rng, 0.25), misses(rng, 0.45)
        shifts = moved_modes(fit(base, "wall_ns", seed=1), base, head, CompareConfig())
        found += len(shifts) == 2
        for shift in shifts:
            shares = (0.25, 0.45) if shift.cost > 4000 else (0.75, 0.55)
            assert (shift.base, shift.head) == pytest.approx(shares, abs=0.06)
            assert shift.low <= shift.head - shift.base <= shift.high
    assert found >= 19


@pytest.mark.statistical
def test_modes_that_did_not_move_are_not_told() -> None:
    told = 0
    for seed in range(40):
        rng = np.random.default_rng(100 + seed)
        base, head = misses(rng, 0.3), misses(rng, 0.3)
        told += bool(moved_modes(fit(base, "wall_ns", seed=1), base, head, CompareConfig()))
    assert told <= 4  # 5 % of 40, and two more by chance


@pytest.mark.statistical
@pytest.mark.parametrize("factor", [pytest.param(3.0, id="between base's modes"), pytest.param(8.0, id="at base's other mode")])
def test_shares_are_not_told_where_head_has_modes_of_its_own(factor: float) -> None:
    rng = np.random.default_rng(7)
    base, head = misses(rng, 0.4), misses(rng, 0.4)
    slower = replace(head, metrics={name: factor * cost for name, cost in head.metrics.items()})
    learnt = fit(base, "wall_ns", seed=1)
    assert len(learnt.scopes) == 2
    assert not moved_modes(learnt, base, slower, CompareConfig())


@pytest.mark.statistical
def test_modes_that_probes_cannot_tell_from_none_are_not_told() -> None:
    """Calls of a nanosecond are read as one or as nothing by how far the processor ran ahead of the probe."""
    rng = np.random.default_rng(5)
    base, head = misses(rng, 0.2, unit_ns=1.0), misses(rng, 0.6, unit_ns=1.0)
    assert not moved_modes(fit(base, "wall_ns", seed=1), base, head, CompareConfig())


@pytest.mark.statistical
def test_a_border_that_moved_is_told() -> None:
    rng = np.random.default_rng(3)
    run = np.repeat(np.arange(RUNS), CALLS)
    annotations = []
    for border in (500, 800):
        n = rng.integers(1, 1000, len(run)) + 0.0
        cost = noisy(rng, np.where(n <= border, 1000 + 0.1 * n, 50_000 + 3 * n), 0.03, 0.01)
        annotations.append(fit(table({"n": n}, cost, run=run), "wall_ns", seed=1))
    (shift,) = moved_borders(*annotations)
    assert shift.feature == "n"
    assert (shift.base, shift.head) == (pytest.approx(500, rel=0.15), pytest.approx(800, rel=0.15))
    assert moved_borders(annotations[0], replace(annotations[0])) == ()
