"""Detectors learn from calls of base what is normal, whatever the counters' scales, spreads and numbers."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import sampled
import simulated_counts
from perfdiff.models.annotation import Annotation
from perfdiff.models.detectors.clusters import share
from perfdiff.models.detectors.detector import DetectorKind, Training, threshold
from perfdiff.models.detectors.kinds import learn
from perfdiff.models.detectors.mahalanobis import shrunk_covariance
from perfdiff.models.detectors.residuals import Expectation, ResidualScale, apart
from perfdiff.records.arrays import Floats
from perfdiff.records.metrics import included
from perfdiff.records.schema import SampleTable
from simulated_counts import PROGRAMS, Edit, Setting

ROOT = Path(__file__).parent.parent
COUNTERS = 6
KINDS = pytest.mark.parametrize("kind", list(DetectorKind))
# A forest cuts at random counters: one that is far off among many ordinary ones is rarely cut.
SHARP = pytest.mark.parametrize("kind", [kind for kind in DetectorKind if kind is not DetectorKind.ISOLATION])


def training(rows: Floats, slack: float = 0.1) -> Training:
    """Return calls of ten runs."""
    return Training(rows, np.arange(len(rows)) % 10, np.full(rows.shape[1], slack), 0, 1)


def correlated(n: int = 400, seed: int = 1) -> Floats:
    """Return calls whose counters share two causes, each of unit spread."""
    rng = np.random.default_rng(seed)
    causes = np.random.default_rng(0).standard_normal((2, COUNTERS))
    rows = rng.standard_normal((n, 2)) @ causes + 0.3 * rng.standard_normal((n, COUNTERS))
    return np.asarray(rows / np.sqrt((causes**2).sum(axis=0) + 0.09))


@SHARP
def test_a_call_far_from_all_of_base_in_one_counter_has_a_larger_error_than_any_of_base(kind: DetectorKind) -> None:
    detector = learn(kind, training(correlated()))
    odd = np.zeros((1, COUNTERS))
    odd[0, 2] = 30.0
    assert detector.errors(odd)[0] > np.quantile(detector.errors(correlated(seed=2)), 0.99)


def test_a_call_far_from_all_of_base_in_all_counters_is_isolated() -> None:
    detector = learn(DetectorKind.ISOLATION, training(correlated()))
    odd = np.full((1, COUNTERS), 30.0) * np.where(np.arange(COUNTERS) % 2, 1, -1)
    assert detector.errors(odd)[0] > np.quantile(detector.errors(correlated(seed=2)), 0.95)


@KINDS
def test_the_counter_that_is_off_has_the_largest_part(kind: DetectorKind) -> None:
    detector = learn(kind, training(correlated()))
    odd = np.zeros((COUNTERS, COUNTERS)) + 30.0 * np.eye(COUNTERS)
    assert (detector.parts(odd).argmax(axis=1) == np.arange(COUNTERS)).mean() >= 0.8


@SHARP
def test_counters_that_never_vary_are_no_division_by_zero_and_a_glaring_change_is_seen(kind: DetectorKind) -> None:
    detector = learn(kind, training(np.zeros((100, COUNTERS)), slack=1.0))
    rows = np.zeros((3, COUNTERS))
    rows[1, 3], rows[2, 3] = 0.1, 50.0
    still, jitter, glaring = detector.errors(rows)
    assert np.isfinite(detector.parts(rows)).all()
    bound = threshold(detector.errors(np.zeros((50, COUNTERS))), detector.errors(training(np.zeros((9, COUNTERS)), slack=1.0).harmless()))
    assert still <= jitter <= bound.value < glaring


@KINDS
def test_the_same_calls_teach_the_same_detector_to_the_byte(kind: DetectorKind) -> None:
    first, second = (learn(kind, training(correlated())).errors(correlated(seed=3)) for _ in range(2))
    assert first.tobytes() == second.tobytes()


@KINDS
def test_fewer_calls_than_counters_still_teach_a_detector(kind: DetectorKind) -> None:
    assert np.isfinite(learn(kind, training(correlated(4))).errors(correlated(20))).all()


def test_a_broken_correlation_is_seen_by_the_distance_and_not_by_single_counters() -> None:
    rng = np.random.default_rng(1)
    common = rng.standard_normal((500, 1))
    rows = np.hstack([common, common]) + 0.05 * rng.standard_normal((500, 2))
    odd = np.array([[1.5, -1.5]])
    for kind, seen in ((DetectorKind.MAHALANOBIS, True), (DetectorKind.ROBUST_Z, False)):
        detector = learn(kind, training(rows, slack=0.01))
        bound = threshold(detector.errors(rows), np.zeros(1))
        assert (detector.errors(odd)[0] > bound.value) == seen


def test_the_autoencoder_leaves_the_programs_random_numbers_and_threads_alone() -> None:
    import torch

    threads = torch.get_num_threads()
    torch.manual_seed(5)
    wanted = torch.rand(3)
    torch.manual_seed(5)
    learn(DetectorKind.AUTOENCODER, training(correlated()))
    assert torch.equal(torch.rand(3), wanted)
    assert torch.get_num_threads() == threads


def test_the_covariance_is_that_of_scikit_learn() -> None:
    from sklearn.covariance import ledoit_wolf

    for rows in (correlated(8), correlated(300)):
        centred = rows - rows.mean(axis=0)
        assert np.allclose(shrunk_covariance(centred), ledoit_wolf(centred, assume_centered=True)[0])


def test_only_the_autoencoder_needs_torch_and_the_default_needs_no_sklearn() -> None:
    program = (
        "import sys, numpy as np\n"
        "from perfdiff.models.detectors.kinds import DetectorKind, learn\n"
        "from perfdiff.models.detectors.detector import Training\n"
        "rows = np.random.default_rng(1).standard_normal((50, 4))\n"
        "learn(DetectorKind.MAHALANOBIS, Training(rows, np.arange(50) % 5, np.full(4, 0.1), 0, 1)).errors(rows)\n"
        "assert not {'torch', 'sklearn'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT)


def test_heavy_tails_do_not_raise_the_threshold_above_the_quantile() -> None:
    errors = np.concatenate([np.full(97, 1.0), np.full(3, 1000.0)])
    bound = threshold(errors, np.zeros(2))
    assert bound.normal > 300
    assert bound.value == bound.quantile == 1.0


def test_errors_that_are_all_zero_leave_the_threshold_at_what_is_harmless() -> None:
    assert threshold(np.zeros(30), np.array([1.5, 2.0])).value == 2.0


def counted(metrics: dict[str, Floats], n: Floats) -> SampleTable:
    """Return calls with several counters and one feature."""
    return replace(sampled.table({"n": n}, next(iter(metrics.values()))), metrics=metrics)


def learnt(table: SampleTable) -> Expectation:
    """Return what is expected of a table's counters."""
    return Expectation.learn(table, tuple(table.metrics), seed=1)


def test_what_inputs_explain_is_taken_out() -> None:
    n = np.random.default_rng(1).integers(100, 10_000, 300).astype(np.float64)
    table = counted({"blocks": 10 + 4 * n, "llc_misses": np.floor(n / 16)}, n)
    residuals = learnt(table).residuals(table)
    assert np.abs(residuals.values[:, 0]).max() < 0.01
    assert np.abs(residuals.values).max() < 0.05
    twice = counted({"blocks": 2 * (10 + 4 * n), "llc_misses": np.floor(n / 16)}, n)
    assert np.median(learnt(table).residuals(twice).values[:, 0]) == pytest.approx(np.log(2), abs=0.01)


def test_a_counter_weighs_by_what_it_may_cost_of_a_call() -> None:
    n = np.full(60, 100.0)
    base = learnt(counted({"blocks": np.full(60, 1e5), "hitm": np.zeros(60)}, n))
    few = counted({"blocks": np.full(60, 1e5), "hitm": np.full(60, 1.0)}, n)
    many = counted({"blocks": np.full(60, 1e5), "hitm": np.full(60, 1000.0)}, n)
    assert base.residuals(few).values[0, 1] == pytest.approx(0.001, rel=0.01)
    assert base.residuals(many).values[0, 1] == pytest.approx(np.log(2), rel=0.01)


def test_inputs_that_base_never_had_are_not_judged() -> None:
    n = np.linspace(100, 200, 60)
    known = learnt(counted({"blocks": 3 * n}, n)).residuals(counted({"blocks": np.array([450.0, 9000.0])}, np.array([150.0, 3000.0]))).known
    assert known.tolist() == [True, False]


def test_a_condition_that_head_no_longer_has_leaves_its_calls_known() -> None:
    taken = np.arange(120) % 2.0
    blocks = np.where(taken > 0, 5000.0, 100.0)
    base = sampled.table({"n": np.ones(120)}, blocks, metric="blocks", taken={"n > limit": taken})
    head = sampled.table({"n": np.ones(120)}, blocks, metric="blocks")
    expectation = learnt(base)
    assert isinstance(expectation.annotations["blocks"], Annotation)
    assert expectation.annotations["blocks"].features == ("taken(n > limit)",)
    assert expectation.residuals(head).known.all()


def test_a_counter_that_is_absent_takes_nothing_off_another() -> None:
    n = np.ones(2)
    assert apart(counted({"llc_misses": 5 * n, "remote_dram": np.nan * n}, n), "llc_misses").tolist() == [5.0, 5.0]


def test_an_access_counts_once_where_it_was_served() -> None:
    n = np.ones(2)
    table = counted({"l1d_misses": n * 10, "l2_misses": n * 6, "llc_misses": n, "hitm": n * 4, "hitm_false": n * 3}, n)
    assert [apart(table, name)[0] for name in table.metrics] == [4.0, 1.0, 1.0, 1.0, 3.0]
    assert included("l2_misses") == ("l2_misses", "llc_misses", "remote_dram", "hitm", "hitm_false")


def test_the_spread_is_that_of_calls_of_like_size_and_never_zero() -> None:
    rng = np.random.default_rng(1)
    n = np.repeat([100.0, 100_000.0], 200)
    noisy = np.where(n == 100.0, 50 * rng.lognormal(0, 0.5, 400), 50.0)
    table = counted({"blocks": 10 * n, "hitm": noisy}, n)
    residuals = learnt(table).residuals(table)
    scale = ResidualScale.learn(residuals, table.run, slack=0.02)
    rows = scale.standardised(residuals)
    assert np.std(rows[n == 100.0, 1]) == pytest.approx(1.0, abs=0.2)
    assert np.abs(rows[n > 100.0]).max() < 0.5
    assert scale.slacks(residuals.rows(np.flatnonzero(n > 100.0)))[1] == pytest.approx(1.0)


def test_functions_join_the_cluster_that_holds_most_of_their_calls() -> None:
    rng = np.random.default_rng(1)
    near = {function: rng.normal(0, 0.1, (40, 3)) for function in (1, 2)}
    far = {function: rng.normal(5, 0.1, (30 + function, 3)) for function in (3, 4)}
    clusters = share(near | far, 2, seed=1)
    assert clusters[1] == clusters[2] != clusters[3] == clusters[4]
    assert len(set(share(near | far, 4, seed=1).values())) == 4


@pytest.mark.statistical
def test_a_step_where_data_outgrow_a_cache_is_followed() -> None:
    """Residuals of base's own calls stay within three spreads in all but 5 % of the calls, on either side of the step."""
    table, _ = simulated_counts.pair(Setting(PROGRAMS[6], 1, 20), Edit.NONE, seed=4)
    expectation = Expectation.learn(table, ("blocks", "l1d_misses", "l2_misses"), seed=1)
    residuals = expectation.residuals(table)
    rows = ResidualScale.learn(residuals, table.run, slack=0.02).standardised(residuals)
    large = table.values[:, 0] > 700
    for part in (rows[large], rows[~large]):
        assert (np.abs(part[:, 1]) > 3).mean() <= 0.05
