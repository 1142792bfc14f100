"""Annotations as Freud's statistics program writes them are read, and those that are written for it hold what its reader asks for."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfdiff import cli
from perfdiff.errors import AnnotationSyntaxError
from perfdiff.models.annotation import Annotation, Condition, CostClass, Operator, Scope, Term, Trend
from perfdiff.models.freud_text import converted, is_freuds, parse_freuds, print_freuds
from perfdiff.models.language import parse, print_annotation
from test_annotate import linear, logs
from test_models_language import FIGURE_2, FIGURE_8, PIECES, annotations, refusal

FREUDS = Path(__file__).parent / "freud"

TREE = """\
R C [ a <= 5, b >| 2 | <= 9 ] T ~ [det= 9.9000000000000000000e-01 ] 1.5000000000000000000e+00 +2.5e+00*c -1e-03*c^2
R C [ a > 5 ] T ~ [det= 9.8000000000000000000e-01 ] -7.0000000000000000000e+01 +2.0e+00*n*log(n) +1e+00*a^2*b*log(b)
"""
MODES = """\
R C [ CL == 0.250000 -1.000000 1500.500000 ] T ~ [det= 9.1e-01 ] 1.0e+02 +2.0e+00*t.artificial.size
R C [ CL == 0.750000 1500.500000 inf ] T ~ [det= 9.2e-01 ] 4.0e+03 +1.0e+00*t.artificial.size
"""
CLUSTERS = """\
CL[ 0.500000 ]: B( -1.000000 , 1500.500000 ), C( 1000.000000 )
CL[ 0.500000 ]: B( 1500.500000 , inf ), C( 3000.250000 )
"""
CONSTANT = "R C [ * ] M ~ [det= 1.0 ] 0 0 foo 0 1496\n"
BY_EACH_FEATURE = """\
R * [ * ] T ~ [det= 6.0e-01 ] 5.0e+00 +1.0e+00*m
R * [ * ] T ~ [det= 9.5e-01 ] 7.0e+00 +3.0e+00*n
"""


def predicted(annotation: Annotation, **values: float) -> float:
    (cost,) = annotation.predict({name: np.array([value]) for name, value in values.items()}).tolist()
    return float(cost)


def test_a_tree_of_regressions_is_read_with_units_and_bases() -> None:
    (tree,) = parse_freuds(TREE, "f")
    assert (tree.function, tree.metric, tree.features) == ("f", "wall_ns", ("a", "b", "c", "n"))
    first, second = tree.scopes
    assert first.conditions == (
        Condition("a", Operator.AT_MOST, (5.0,)),
        Condition("b", Operator.ABOVE, (2.0,)),
        Condition("b", Operator.AT_MOST, (9.0,)),
    )
    assert first.terms == (Term(1500.0), Term(2500.0, (("c", "x"),)), Term(-1.0, (("c", "x2"),)))
    assert second.terms[1:] == (Term(2000.0, (("n", "xlogx"),)), Term(1000.0, (("a", "x2"), ("b", "xlogx"))))
    assert predicted(tree, a=6, b=4, c=0, n=8) == 1000 * (-70 + 2 * 8 * 3 + 36 * 4 * 2)
    assert (first.cost_class, first.trend, tree.n) == (CostClass.QUADRATIC, Trend.MEAN, 0)


def test_modes_and_clusters_have_probabilities() -> None:
    (modes,) = parse_freuds(MODES, "f")
    assert [(scope.probability, scope.conditions) for scope in modes.scopes] == [(0.25, ()), (0.75, ())]
    assert modes.features == ("t.artificial.size",)
    (clusters,) = parse_freuds(CLUSTERS, "f")
    assert (clusters.metric, [(scope.probability, scope.terms) for scope in clusters.scopes]) == (
        "wall_ns",
        [(0.5, (Term(1_000_000.0),)), (0.5, (Term(3_000_250.0),))],
    )
    (memory,) = parse_freuds(CLUSTERS, "f", metric="mem")
    assert (memory.metric, memory.scopes[0].terms) == ("alloc_bytes", (Term(1000.0),))


def test_constants_and_the_best_of_several_selections_are_read() -> None:
    (constant,) = parse_freuds(CONSTANT, "f")
    assert (constant.metric, constant.scopes[0].terms, constant.r2) == ("alloc_bytes", (Term(1496.0),), 1.0)
    (best,) = parse_freuds(BY_EACH_FEATURE, "f")
    assert (best.features, best.r2, best.scopes[0].trend) == (("n",), 0.95, Trend.LOWER_BOUND)


def test_each_metric_of_a_file_is_an_annotation() -> None:
    letters = "".join(f"R M [ * ] {letter} ~ [det= 0.9 ] 2 +3*n\n" for letter in "TMLWpP")
    found = parse_freuds(letters, "f")
    assert {each.metric: predicted(each, n=1) for each in found} == {
        "wall_ns": 5000,
        "alloc_bytes": 5,
        "lock_hold_ns": 5000,
        "lock_wait_ns": 5000,
        "page_faults": 5,
        "major_page_faults": 5,
    }


def test_the_papers_language_is_told_from_these_files() -> None:
    assert all(is_freuds(text) for text in (TREE, MODES, CLUSTERS, CONSTANT, BY_EACH_FEATURE))
    assert not any(is_freuds(text) for text in ("", FIGURE_2, FIGURE_8, "R.time() { Norm(1, 2); }", "CL.time() { Norm(1, 2); }"))


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("R C [ * ] T ~ [det= 1.0 ] ???", 1, 27),
        (CONSTANT + "\nR C [ a ~ 5 ] T ~ [det= 1.0 ] 1", 3, 7),
        ("R C [ a <= 5, b ] T ~ [det= 1.0 ] 1", 1, 15),
        ("R C [ * ] X ~ [det= 1.0 ] 1", 1, 1),
        ("R C [ * ] T ~ [det= 1.0 ] 1 +n", 1, 29),
        ("R C [ * ] T ~ [det= 1.0 ] 1e400", 1, 27),
        ("R C [ CL == 1.5 0.0 inf ] T ~ [det= 1.0 ] 1", 1, 13),
        ("CL[ 6.5 ]: B( 0.0 , inf ), C( 1.0 )", 1, 5),
    ],
)
def test_errors_name_place(text: str, line: int, column: int) -> None:
    with pytest.raises(AnnotationSyntaxError) as caught:
        parse_freuds(text, "f")
    assert (caught.value.line, caught.value.column) == (line, column)


@given(st.one_of(st.text(), st.lists(st.sampled_from(["R C [ ", "* ] T ~ [det= 1 ] ", "CL[ ", *PIECES]), max_size=30).map("".join)))
def test_garbage_is_a_syntax_error_and_nothing_else(text: str) -> None:
    refusal(text, lambda given: parse_freuds(given, "f"))


def as_freud_reads(text: str) -> list[tuple[list[tuple[str, str, float]], float, dict[str, float]]]:
    """Return conditions, intercept and coefficients of each regression, word by word as Freud's reader takes them; fail where it ends."""
    regressions = []
    for line in text.splitlines():
        words = iter(line.split(" "))
        kind = next(words)
        if kind == "CL[":
            chance, low, high, _ = (float(line.split(" ")[place]) for place in (1, 4, 6, 9))
            assert 0 <= chance <= 1
            assert low <= high
            continue
        assert kind == "R"
        assert next(words) in {"C", "M", "*"}
        assert next(words) == "["
        conditions = []
        word = next(words)
        while word != "]":
            if word != "*":
                operator, bound = next(words), next(words)
                if word == "CL":
                    assert float(next(words)) <= float(next(words).rstrip(","))
                conditions.append((word, operator, float(bound.rstrip(","))))
            word = next(words)
        assert next(words) in {"T", "M", "L", "W", "p", "P"}
        assert next(words) == "~"
        assert next(words) == "[det="
        assert 0 <= float(next(words)) <= 1
        assert next(words) == "]"
        intercept = float(next(words))
        coefficients = {name: float(value) for value, _, name in (word.partition("*") for word in words)}
        regressions.append((conditions, intercept, coefficients))
    return regressions


def test_what_is_written_is_read_by_freuds_rules() -> None:
    several = Condition("speed of it", Operator.IN, (1.0, 3.0))
    scope = Scope(CostClass.N_LOG_N, (Term(5000.0), Term(20.0, (("a::n", "xlogx"),))), 9.0, 1.0, 10, (several,))
    other = Scope(CostClass.CONSTANT, (Term(7000.0),), 9.0, 1.0, 10, (several.negated(), Condition("a::n", Operator.AT_MOST, (9.5,))))
    absent = Scope(CostClass.CONSTANT, (Term(1.0),), 9.0, 1.0, 10, (Condition("a::n", Operator.ABSENT),))
    rule = Annotation("f", "wall_ns", CostClass.N_LOG_N, (scope, other, absent), ("a::n", "speed of it"), {}, {}, 0.9, 0.9, 10)
    assert as_freud_reads(print_freuds([rule])) == [
        ([("speed_of_it", "==", 1.0)], 5.0, {"a..n*log(a..n)": 0.02}),
        ([("speed_of_it", "==", 3.0)], 5.0, {"a..n*log(a..n)": 0.02}),
        ([("speed_of_it", "!=", 1.0), ("speed_of_it", "!=", 3.0), ("a..n", "<=", 9.0)], 7.0, {}),
    ]


def test_costs_that_inputs_divide_are_left_out_as_freud_has_no_spelling_for_them() -> None:
    def rule(function: str) -> Annotation:
        scope = Scope(CostClass.LINEAR, (Term(5000.0), Term(20.0, (("n", function),))), 9.0, 1.0, 10)
        return Annotation("f", "wall_ns", CostClass.LINEAR, (scope,), ("n",), {}, {}, 0.9, 0.9, 10)

    assert print_freuds([rule("inv")]) == ""
    assert len(as_freud_reads(print_freuds([rule("inv"), rule("x")]))) == 1


@given(annotations())
def test_all_that_is_written_is_read_by_freuds_rules(annotation: Annotation) -> None:
    as_freud_reads(print_freuds([converted(annotation)]))


@pytest.mark.parametrize(
    ("name", "right", "scopes", "values", "us"),
    [
        ("linear", CostClass.LINEAR, 1, {"f0": 1000.0}, 500 + 20 * 1000),
        ("quadratic", CostClass.QUADRATIC, 1, {"f0": 1000.0}, 500 + 3 * 1000**2),
        ("product-of-two-features", CostClass.QUADRATIC, 1, {"f0": 900.0, "f1": 800.0}, 500 + 0.5 * 900 * 800),
        ("n-log-n-exact", CostClass.N_LOG_N, 1, {"size": 2.0**16}, 500 + 5 * 2**16 * 16),
        ("two-modes-by-a-flag", CostClass.LINEAR, 2, {"flag": 1.0, "f0": 600.0}, 1000 + 50 * 600),
        ("another-cost-above-a-threshold", CostClass.PIECEWISE, 3, {"f0": 400.0}, 500 + 20 * 400),
        ("mixture-of-three", CostClass.MIXTURE, 3, {}, 0.5 * 1000 + 0.3 * 3000 + 0.2 * 9000),
        ("two-modes-at-random", CostClass.MIXTURE, 5, {"size": 550.0}, 0.7 * 2100 + 0.3 * 36_500),
        ("delayed", CostClass.LINEAR, 1, {"size": 900.0}, 500 + 20 * 900),
    ],
)
def test_what_freuds_program_wrote_of_logs_that_we_wrote_is_read(
    name: str, right: CostClass, scopes: int, values: dict[str, float], us: float
) -> None:
    """The files are what freud-statistics, built from its sources, made of perfdiff's logs of costs that are known."""
    (annotation,) = parse_freuds((FREUDS / f"{name}.txt").read_text(), "f")
    assert (annotation.cost_class, len(annotation.scopes), annotation.metric) == (right, scopes, "wall_ns")
    assert predicted(annotation, **values) == pytest.approx(1000 * us, rel=0.06)
    assert parse(print_annotation(annotation)).scopes == annotation.scopes
    again = parse_freuds(print_freuds([annotation]), "f")
    assert predicted(again[0], **values) == pytest.approx(predicted(annotation, **values), rel=1e-4)


@pytest.mark.parametrize(
    "text", [TREE, MODES, CLUSTERS, CONSTANT, BY_EACH_FEATURE], ids=["tree", "modes", "clusters", "constant", "bounds"]
)
def test_files_of_freuds_are_written_back_with_the_same_costs(text: str) -> None:
    first = parse_freuds(text, "f")
    again = parse_freuds(print_freuds(first), "f")
    assert [(each.metric, each.features, each.scopes) for each in again] == [(each.metric, each.features, each.scopes) for each in first]
    assert [parse(print_annotation(each)).scopes for each in first] == [each.scopes for each in first]


def test_the_figures_are_converted_to_our_units() -> None:
    sort = converted(parse(FIGURE_2))
    assert (sort.metric, [scope.sigma for scope in sort.scopes]) == ("wall_ns", [12_463_880.0, 899_547_290.0, 3_379_580_270.0])
    assert predicted(parse(FIGURE_2), **{sort.features[0]: 1e6}) * 1000 == pytest.approx(predicted(sort, **{sort.features[0]: 1e6}))
    create = converted(parse(FIGURE_8))
    assert (create.metric, predicted(create, page_id=3)) == ("alloc_bytes", 1496)
    delayed = converted(parse("f.time() { {0.5} 5 + Exp(1/20); {0.5} 64 + 32*Binom(1, 0.25); }"))
    assert math.isclose(predicted(delayed), 1000 * (0.5 * 25 + 0.5 * 72))
    assert print_annotation(delayed).count("Exp(1/20000)") == print_annotation(delayed).count("64000 + 32000*Binom(1, 0.25)") == 1


def perfdiff(*arguments: object) -> int:
    with pytest.raises(SystemExit) as left:
        cli.main([str(argument) for argument in arguments])
    return int(left.value.code or 0)


@pytest.fixture
def standing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PERFDIFF_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)


@pytest.mark.usefixtures("standing")
def test_annotations_for_freud_hold_for_the_calls_that_they_come_from(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logs(tmp_path / "v1", linear(0.5), seed=1)
    logs(tmp_path / "v2", linear(0.7), seed=2)
    assert perfdiff("annotate", "-q", "v1", "--freud", "ann", "-o", "own") == 0
    text = (tmp_path / "ann" / "f.txt").read_text()
    assert {tuple(conditions) for conditions, _, _ in as_freud_reads(text)} == {(("mode", "==", 1.0),), (("mode", "!=", 1.0),), ()}
    assert perfdiff("check", "-q", "ann/f.txt", "v1") == 0
    capsys.readouterr()
    assert perfdiff("check", "-q", "ann/f.txt", "v2", "--format", "json") == 1
    standing = {each["metric"]: each["verdict"] for each in json.loads(capsys.readouterr().out)["assertions"]}
    assert standing == {"wall_ns": "violated", "alloc_bytes": "holds"}


@pytest.mark.usefixtures("standing")
def test_costs_are_predicted_by_freuds_files_and_the_papers_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "f.txt").write_text(TREE)
    (tmp_path / "figures").write_text(FIGURE_2 + FIGURE_8)
    assert perfdiff("predict", "f.time", "a=6", "b=4", "n=8", "c=0", "--from", "f.txt", "--format", "json") == 0
    assert json.loads(capsys.readouterr().out)["sides"]["base"]["expected"] == pytest.approx(266_000, rel=0.05)
    assert perfdiff("predict", "fseg_create_general.mem", "page_id=3", "--from", "figures", "--format", "json") == 0
    assert json.loads(capsys.readouterr().out)["sides"]["base"]["expected"] == pytest.approx(1496, rel=0.01)
