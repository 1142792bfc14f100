"""Annotations predict and print themselves."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfdiff.models.annotation import (
    PHASE,
    STEADY,
    STEADY_CODE,
    Annotation,
    Condition,
    CostClass,
    Operator,
    Scope,
    Term,
    coefficients,
    design,
    term_names,
    transformed,
)
from perfdiff.models.language import readable


def annotation(*scopes: Scope, features: tuple[str, ...] = ("n",), **fields: object) -> Annotation:
    return Annotation("f", "wall_ns", CostClass.LINEAR, scopes, features, {}, {"n": (1.0, 100.0)}, 1.0, 1.0, 10, **fields)  # type: ignore[arg-type]


def scope(*terms: Term, share: float = 1.0, **fields: object) -> Scope:
    return Scope(CostClass.LINEAR, terms, 12.4, share, 10, **fields)  # type: ignore[arg-type]


SMALL = Condition("n", Operator.AT_MOST, (100.0,))
FAST = Condition("mode", Operator.IN, (1.0,), ("FAST",))


def test_text_is_the_papers() -> None:
    terms = (Term(53.3), Term(-2.1, (("n", "x"),)), Term(0.12, (("n", "xlogx"),)))
    assert readable(annotation(scope(*terms), origins={"n": "argument"})) == (
        "f.wall_ns(n) {\n  int n = arg.n;\n  Norm(53.3 - 2.1*n + 0.12*n*log2(n), 12.4);\n}"
    )


def test_text_gives_conditions_and_probabilities() -> None:
    found = annotation(
        scope(Term(1.0), conditions=(FAST, SMALL)),
        scope(Term(2.0), conditions=(FAST.negated(),), probability=0.2),
        scope(Term(-3.0, (("list->n", "x2"), ("n", "x"))), conditions=(FAST.negated(),), probability=0.8),
        features=("mode", "n", "list->n"),
    )
    text = readable(found)
    assert "[mode == FAST && n <= 100] Norm(1, 12.4);  // 100.0% of calls" in text
    assert "[mode != FAST] {\n    {0.2} Norm(2, 12.4);" in text
    assert "\n    {0.8} Norm(-3*list_n^2*n, 12.4);" in text


def test_prediction_outside_every_known_condition_weighs_scopes_by_share() -> None:
    found = annotation(scope(Term(10.0), share=0.25, conditions=(FAST,)), scope(Term(20.0), share=0.75, conditions=(FAST.negated(),)))
    assert found.predict({"mode": np.array([1.0, 0.0, np.nan])}).tolist() == [10, 20, 20]
    assert found.predict({"n": np.array([1.0])}).tolist() == [17.5]


def test_a_prediction_that_names_no_phase_is_of_calls_after_the_warm_up() -> None:
    steady = Condition(PHASE, Operator.IN, (STEADY_CODE,), (STEADY,))
    warming = Condition(PHASE, Operator.IN, (1.0,), ("first 30 calls",))
    found = annotation(scope(Term(10.0), share=0.75, conditions=(steady,)), scope(Term(80.0), share=0.25, conditions=(warming,)))
    assert found.predict({"n": np.array([1.0, 2.0])}).tolist() == [10, 10]
    assert found.predict({PHASE: np.array([1.0, STEADY_CODE])}).tolist() == [80, 10]


def test_typical_value_stands_in_for_a_feature_not_given() -> None:
    found = annotation(scope(Term(1.0, (("n", "x"), ("m", "x")))), typical={"n": 5.0, "m": 3.0})
    assert found.predict({"n": np.array([2.0])}).tolist() == [6.0]


def test_mixture_predicts_its_mean() -> None:
    found = annotation(scope(Term(10.0), probability=0.2), scope(Term(20.0), Term(1.0, (("n", "x"),)), probability=0.8))
    assert found.predict({"n": np.array([10.0])}).tolist() == pytest.approx([26.0])
    assert term_names(found) == ("1", "n")


def test_nothing_times_its_logarithm_is_nothing() -> None:
    assert transformed("xlogx", np.array([0.0, 1.0, 8.0])).tolist() == [0.0, 0.0, 24.0]


numbers = st.floats(-1e6, 1e6).map(lambda value: round(value, 3))
conditions = st.one_of(
    st.builds(Condition, st.just("n"), st.sampled_from([Operator.AT_MOST, Operator.ABOVE]), st.tuples(numbers)),
    st.builds(
        Condition, st.just("n"), st.sampled_from([Operator.IN, Operator.NOT_IN]), st.lists(numbers, min_size=1, max_size=3).map(tuple)
    ),
    st.builds(Condition, st.just("n"), st.sampled_from([Operator.ABSENT, Operator.PRESENT])),
)
values = st.lists(st.one_of(numbers, st.just(math.nan)), min_size=1, max_size=20).map(np.array)
factors = st.lists(st.tuples(st.just("n"), st.sampled_from(["x", "log", "xlogx", "x2", "x3"])), max_size=2).map(tuple)
terms = st.lists(st.builds(Term, numbers, factors), min_size=1, max_size=4, unique_by=lambda term: term.factors).map(tuple)


@given(condition=conditions, column=values)
def test_every_record_meets_a_condition_or_its_negation(condition: Condition, column: np.ndarray) -> None:
    assert (condition.holds(column) ^ condition.negated().holds(column)).all()
    assert condition.negated().negated() == condition


@given(condition=conditions, inside=terms, outside=terms, column=st.lists(numbers, min_size=1, max_size=20).map(np.array))
def test_prediction_is_the_sum_of_the_terms_of_the_records_scope(
    condition: Condition, inside: tuple[Term, ...], outside: tuple[Term, ...], column: np.ndarray
) -> None:
    found = annotation(scope(*inside, conditions=(condition,)), scope(*outside, conditions=(condition.negated(),)))
    predicted = found.predict({"n": column})
    holds = condition.holds(column)
    for row, value in enumerate(column):
        parts = [
            term.coefficient * math.prod(transformed(function, np.array([value]))[0] for _, function in term.factors)
            for term in (inside if holds[row] else outside)
        ]
        assert predicted[row] == pytest.approx(sum(parts), rel=1e-9, abs=1e-9 * sum(abs(part) for part in parts) + 1e-12)
    assert design(found, {"n": column}).shape == (len(column), len(coefficients(found)))


@given(inside=terms, condition=conditions)
def test_text_names_every_term_and_condition_once(inside: tuple[Term, ...], condition: Condition) -> None:
    text = readable(annotation(scope(*inside, conditions=(condition,))))
    assert text.count("Norm(") == 1
    body = text.split("Norm(")[1]
    for term in inside:
        assert f"{abs(term.coefficient):.6g}" in body
    shown = condition.text("n")
    assert f"[{shown}]" in text or f"[({shown})]" in text
