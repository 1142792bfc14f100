"""Scopes and mixtures found in simulated calls with known truth."""

from __future__ import annotations

import numpy as np
import pytest

from perfdiff.models.annotation import Annotation, Condition, CostClass, Operator, Scope, Term
from perfdiff.models.fitting import fit
from perfdiff.records.arrays import Floats
from sampled import noisy, strangers, table

N = 1000


def sizes(rng: np.random.Generator) -> Floats:
    return rng.integers(1, 1000, N) + 0.0


def slopes(annotation: Annotation) -> dict[str, float]:
    """Return the coefficient of the last term by condition."""
    return {scope.condition: scope.terms[-1].coefficient for scope in annotation.scopes}


def test_mode_of_an_enum_is_two_scopes() -> None:
    rng = np.random.default_rng(1)
    x, mode = sizes(rng), rng.integers(0, 3, N) + 0.0
    cost = noisy(rng, np.where(mode == 1, 1000 + 50 * x, 5000))
    names = {0: "SLOW", 1: "FAST", 2: "OTHER"}
    annotation = fit(table({"n": x, "mode": mode} | strangers(rng, N), cost, labels={"mode": names}), "wall_ns", seed=1)
    assert slopes(annotation) == {"mode == FAST": pytest.approx(50, rel=0.05), "mode != FAST": pytest.approx(5000, rel=0.05)}
    assert annotation.cost_class is CostClass.PIECEWISE
    assert sum(scope.share for scope in annotation.scopes) == pytest.approx(1)


def test_labels_of_the_same_cost_share_a_scope() -> None:
    rng = np.random.default_rng(1)
    x, op = sizes(rng), rng.integers(0, 6, N) + 0.0
    cost = noisy(rng, 300 + np.where(np.isin(op, [1, 4]), 20, 3) * x)
    annotation = fit(table({"n": x, "op": op}, cost, labels={"op": dict(enumerate("ABCDEF"))}), "wall_ns", seed=1)
    assert set(slopes(annotation)) == {"(op == B || op == E)", "op != B && op != E"}
    assert annotation.cost_class is CostClass.LINEAR


def test_three_modes_of_a_plain_integer_are_three_scopes() -> None:
    rng = np.random.default_rng(1)
    x, mode = sizes(rng), rng.integers(0, 3, N)
    annotation = fit(table({"n": x, "mode": mode + 0.0}, noisy(rng, np.array([300, 3000, 900])[mode] + 2 * x)), "wall_ns", seed=1)
    assert len(annotation.scopes) == 3
    assert list(slopes(annotation).values()) == pytest.approx([2, 2, 2], rel=0.15)


def test_rare_slow_mode_is_no_outlier() -> None:
    rng = np.random.default_rng(1)
    x, flag = sizes(rng), (rng.random(N) < 0.03) + 0.0
    annotation = fit(table({"n": x, "flag": flag}, noisy(rng, 400 + 4000 * flag + 5 * x)), "wall_ns", seed=1)
    assert set(slopes(annotation)) == {"flag == 1", "flag != 1"}


def test_branch_outcome_is_a_scope() -> None:
    rng = np.random.default_rng(1)
    x, sliced = sizes(rng), (rng.random(N) < 0.3) + 0.0
    annotation = fit(table({"n": x}, noisy(rng, 400 + np.where(sliced > 0, 30, 5) * x), taken={"h->sliced": sliced}), "wall_ns", seed=1)
    assert set(slopes(annotation)) == {"taken(h->sliced)", "!taken(h->sliced)"}


def test_inputs_that_decide_a_branch_stand_for_it() -> None:
    rng = np.random.default_rng(1)
    x = sizes(rng)
    cost = noisy(rng, np.where(x > 512, 20000 + 30 * x, 400 + 5 * x))
    annotation = fit(table({"n": x}, cost, taken={"n > LIMIT": (x > 512) + 0.0}), "wall_ns", seed=1)
    border = x[x <= 512].max()
    assert set(slopes(annotation)) == {f"n <= {border:g}", f"n > {border:g}"}


def test_jump_within_a_range_is_piecewise() -> None:
    rng = np.random.default_rng(1)
    x = sizes(rng)
    annotation = fit(table({"n": x}, noisy(rng, np.where(x > 500, 20000 + 30 * x, 400 + 5 * x))), "wall_ns", seed=1)
    assert annotation.cost_class is CostClass.PIECEWISE
    assert len(annotation.scopes) == 2
    assert annotation.predict({"n": np.array([100.0, 900.0])}) == pytest.approx([900, 47000], rel=0.05)


def test_absent_feature_is_a_scope() -> None:
    rng = np.random.default_rng(1)
    x = np.where(rng.random(N) < 0.3, np.nan, sizes(rng))
    annotation = fit(table({"s": x}, noisy(rng, 300 + np.nan_to_num(5 * x))), "wall_ns", seed=1)
    assert set(slopes(annotation)) == {"absent(s)", "!absent(s)"}
    assert annotation.predict({"s": np.array([np.nan, 100.0])}) == pytest.approx([300, 800], rel=0.05)


def test_flag_without_effect_makes_no_scope() -> None:
    found = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        x, flag = sizes(rng), (rng.random(N) < 0.3) + 0.0
        calls = table({"n": x, "flag": flag}, noisy(rng, 400 + 12 * x, 0.1), taken={"c": (rng.random(N) < 0.5) + 0.0})
        found.append(len(fit(calls, "wall_ns", seed=1).scopes))
    assert found == [1] * 30


def test_modes_that_no_input_separates_are_a_mixture() -> None:
    rng = np.random.default_rng(1)
    cost = noisy(rng, rng.choice([1000.0, 3000.0, 9000.0], N, p=[0.5, 0.3, 0.2]))
    annotation = fit(table(strangers(rng, N), cost), "wall_ns", seed=1)
    assert annotation.cost_class is CostClass.MIXTURE
    assert [scope.terms[0].coefficient for scope in annotation.scopes] == pytest.approx([1000, 3000, 9000], rel=0.02)
    assert [scope.probability for scope in annotation.scopes] == pytest.approx([0.5, 0.3, 0.2], abs=0.05)


def test_components_of_a_mixture_grow() -> None:
    rng = np.random.default_rng(1)
    x = sizes(rng)
    cost = noisy(rng, np.where(rng.random(N) < 0.3, 5, 1) * (400 + 5 * x))
    annotation = fit(table({"n": x}, cost), "wall_ns", seed=1)
    assert [scope.terms[-1].coefficient for scope in annotation.scopes] == pytest.approx([5, 25], rel=0.05)


def test_components_that_grow_alike_are_told_with_their_growth() -> None:
    rng = np.random.default_rng(1)
    x = sizes(rng)
    fast = rng.random(N) < 0.3
    annotation = fit(table({"n": x}, noisy(rng, np.where(fast, 1, 5) * (400 + 5 * x))), "wall_ns", seed=1)
    assert (annotation.cost_class, annotation.growth) == (CostClass.MIXTURE, CostClass.LINEAR)
    annotation = fit(table({"n": x}, noisy(rng, np.where(fast, 400.0, 400 + 50 * x))), "wall_ns", seed=1)
    assert (annotation.cost_class, annotation.growth) == (CostClass.MIXTURE, CostClass.MIXTURE)
    annotation = fit(table({"n": x}, noisy(rng, np.where(fast, 400.0, 4000.0))), "wall_ns", seed=1)
    assert (annotation.cost_class, annotation.growth) == (CostClass.MIXTURE, CostClass.CONSTANT)


@pytest.mark.parametrize(
    ("features", "conditions", "growth"),
    [
        (("n", "n"), ((), ()), CostClass.LINEAR),
        (("n", "m"), ((), ()), CostClass.MIXTURE),
        (("n", "n"), ((Condition("n", Operator.AT_MOST, (8.0,)),), (Condition("n", Operator.ABOVE, (8.0,)),)), CostClass.MIXTURE),
    ],
)
def test_components_of_other_features_or_pieces_have_no_growth_in_common(
    features: tuple[str, str], conditions: tuple[tuple[Condition, ...], tuple[Condition, ...]], growth: CostClass
) -> None:
    scopes = tuple(
        Scope(CostClass.LINEAR, (Term(5.0, ((name, "x"),)),), 1.0, 0.5, 50, conditions=each, probability=0.5)
        for name, each in zip(features, conditions, strict=True)
    )
    assert Annotation("f", "wall_ns", CostClass.MIXTURE, scopes, ("n", "m"), {}, {}, 1.0, 1.0, 100).growth is growth


def test_states_of_the_machine_are_no_mixture() -> None:
    rng = np.random.default_rng(1)
    run = np.arange(N) % 20
    annotation = fit(table({"n": sizes(rng)}, noisy(rng, np.where(run < 8, 1500.0, 1000.0)), run=run), "wall_ns", seed=1)
    assert (annotation.cost_class, len(annotation.scopes)) == (CostClass.CONSTANT, 1)
