"""Trends of simulated counts: clusters of one revision, and which difference between two is told, where, and which is none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from perfdiff.analysis.findings import Verdict
from perfdiff.analysis.trends.features import with_calls
from perfdiff.analysis.trends.findings import GrowthDifference, GrowthDifferenceKind, TrendFindings
from perfdiff.analysis.trends.trending import analyse
from perfdiff.records.arrays import Floats
from perfdiff.records.places import Place, PlaceCounts, PlaceExperiment
from perfdiff.records.schema import Point, Revision, Side

N = np.array([100.0, 200.0, 500.0, 1000.0, 2000.0, 4000.0, 8000.0])
Line = tuple[str, str, Callable[[Floats], Floats]]  # function, text, count over n


def always(count: float) -> Callable[[Floats], Floats]:
    return lambda n: np.full_like(n, count)


def times(factor: float, power: float = 1.0, more: float = 0.0) -> Callable[[Floats], Floats]:
    return lambda n: np.round(factor * n**power + more)


MAIN: tuple[Line, ...] = (
    ("main", "int n = atoi(argv[1]);", always(1)),
    ("main", "for (int i = 0; i < n; i++)", times(1, more=1)),
    ("main", "list = append(list, i);", times(1)),
    ("main", "print(list);", always(1)),
)
APPEND: tuple[Line, ...] = (
    ("append", "node *new = malloc(sizeof *new);", times(1)),
    ("append", "tail->next = new;", times(1)),
    ("append", "return new;", times(1)),
)
PRINT: tuple[Line, ...] = (
    ("print", "for (; list; list = list->next)", times(1, more=1)),
    ("print", 'printf("%d", list->value);', times(1)),
)
WALK: Line = ("append", "while (tail->next) tail = tail->next;", times(0.5, 2))


def counts(lines: Sequence[Line], n: Floats = N) -> PlaceCounts:
    places = tuple(Place(function, f"{function}.c", number, text) for number, (function, text, _) in enumerate(lines, 1))
    points = tuple(Point(number, "list", {"n": value}, f"./list {value:g}") for number, value in enumerate(n.tolist()))
    sources = {f"{function}.c": tuple(text for _, text, _ in lines) for function, _, _ in lines}
    return PlaceCounts(points, places, np.array([count(n) for _, _, count in lines]), {"n": n}, sources)


def experiment(base: Sequence[Line], head: Sequence[Line]) -> PlaceExperiment:
    """Return two programs whose lines belong together where function and text are the same, as the diff would tell."""
    known = {(function, text): number for number, (function, text, _) in enumerate(head)}
    heads = np.array([known.get((function, text), -1) for function, text, _ in base], dtype=np.int64)
    revisions = {side: Revision(side.value, None, "") for side in Side}
    return PlaceExperiment(revisions, {Side.BASE: counts(base), Side.HEAD: counts(head)}, heads)


def compared(base: Sequence[Line], head: Sequence[Line]) -> TrendFindings:
    """Compare two such programs."""
    return analyse(experiment(base, head), min_effect=0.05, seed=1)


def only(found: TrendFindings) -> GrowthDifference:
    assert len(found.differences) == 1, [each.place.text for each in found.differences]
    return found.differences[0]


def test_clusters_of_one_revision_are_ranked_by_what_they_cost() -> None:
    one = PlaceExperiment({Side.BASE: Revision("v1", None, "")}, {Side.BASE: counts((*MAIN, *APPEND, *PRINT, WALK))}, np.empty(0, np.int64))
    found = analyse(one, min_effect=0.05, seed=1)
    walking, linear = found.sides[Side.BASE].clusters
    assert walking.name == "append.c:10"
    assert walking.fits[0].b == pytest.approx(2.0, abs=0.01)
    assert walking.largest == 0.5 * 8000**2
    assert linear.feature == "n"
    assert linear.fits[0].b == pytest.approx(1.0, abs=0.01)
    assert len(linear.members) == 7
    assert {found.sides[Side.BASE].clusters.index(each) for each in (walking, linear) if each.is_costly} == {0, 1}
    assert set(found.sides[Side.BASE].constant) == {0, 3}


def test_a_small_cluster_that_grows_faster_is_foretold_to_overtake() -> None:
    small: Line = ("check", "compare(a, b);", times(1e-3, 2))
    large: Line = ("work", "sum += a[i];", times(100))
    one = PlaceExperiment({Side.BASE: Revision("v1", None, "")}, {Side.BASE: counts((large, small))}, np.empty(0, np.int64))
    first, second = analyse(one, min_effect=0.05, seed=1).sides[Side.BASE].clusters
    assert first.overtakes is None
    assert second.overtakes == pytest.approx(1e5, rel=0.05)


@pytest.mark.parametrize(
    ("line", "shift"),
    [
        (("work", "swap(a, b);", times(0.25, 1.9)), -0.1),
        (("work", "swap(a, b);", times(0.02, 2.2)), 0.2),
        (("work", "swap(a, b);", times(0.25, 2)), None),
        (("work", "swap(a, b);", lambda n: 0.25 * n**2 + 40 * n + 500), None),  # of lower order: no growth of its own
        (("work", "swap(a, b);", times(0.001, 1.9)), None),  # too little to matter
    ],
)
def test_a_member_that_grows_by_another_power_than_its_cluster_is_told(line: Line, shift: float | None) -> None:
    compare: Line = ("work", "if (a > b)", times(0.5, 2))
    one = PlaceExperiment({Side.BASE: Revision("v1", None, "")}, {Side.BASE: counts((compare, line))}, np.empty(0, np.int64))
    first, *others = analyse(one, min_effect=0.05, seed=1).sides[Side.BASE].clusters
    assert not others
    assert first.members == (0, 1)
    assert [(other.place.text, other.feature, round(other.shift, 2)) for other in first.apart] == (
        [] if shift is None else [("swap(a, b);", "n", shift)]
    )


def test_a_logarithm_within_the_cluster_that_follows_the_input_is_told() -> None:
    large = np.geomspace(1e3, 1e6, 9).round()
    lines: tuple[Line, ...] = (("work", "sum += a[i];", times(1)), ("sort", "if (less(a, b))", lambda n: np.round(0.3 * n * np.log2(n))))
    one = PlaceExperiment({Side.BASE: Revision("v1", None, "")}, {Side.BASE: counts(lines, large)}, np.empty(0, np.int64))
    (cluster,) = analyse(one, min_effect=0.05, seed=1).sides[Side.BASE].clusters
    assert cluster.feature == "n"
    (other,) = cluster.apart
    assert (other.place.text, 0.05 < other.shift < 0.1, other.ci[0] > 0) == ("if (less(a, b))", True, True)


def test_a_list_whose_tail_is_walked_is_a_regression_at_the_line_that_walks() -> None:
    found = compared((*MAIN, *APPEND, *PRINT), (*MAIN, *APPEND[:1], WALK, *APPEND[1:], *PRINT))
    difference = only(found)
    assert found.verdict is difference.verdict is Verdict.REGRESSION
    assert difference.kind is GrowthDifferenceKind.EXPONENT
    assert difference.place.text == WALK[1]
    assert difference.ci is not None
    assert difference.ci[0] > 0.5
    assert difference.head_cost / difference.base_cost > 1000


def test_the_same_the_other_way_round_is_an_improvement_at_the_line_that_is_gone() -> None:
    found = compared((*MAIN, *APPEND[:1], WALK, *APPEND[1:], *PRINT), (*MAIN, *APPEND, *PRINT))
    assert found.verdict is Verdict.IMPROVEMENT
    assert only(found).place.text == WALK[1]


def test_a_line_that_varies_along_with_something_else_is_told_with_both() -> None:
    found = compared((*MAIN, *APPEND, *PRINT, ("append", WALK[1], times(2))), (*MAIN, *APPEND, *PRINT, WALK))
    (move,) = found.moves
    assert (move.place.text, move.base.feature, move.head.feature) == (WALK[1], "n", None)
    assert move.head.place == move.place
    assert move.share > 0.9
    back = compared((*MAIN, *APPEND, *PRINT, WALK), (*MAIN, *APPEND, *PRINT, ("append", WALK[1], times(2))))
    assert [(each.base.feature, each.head.feature) for each in back.moves] == [(None, "n")]


@pytest.mark.parametrize(
    "head",
    [
        pytest.param((*MAIN, *APPEND, *PRINT, WALK), id="as it was"),
        pytest.param((*MAIN, *APPEND, *PRINT, ("append", WALK[1], times(3, 2))), id="a factor"),
        pytest.param((*MAIN, *APPEND, ("print", PRINT[0][1], times(1e-3, 2)), WALK), id="what costs little"),
        pytest.param((*MAIN, *APPEND, ("sort", "swap();", times(2, 2)), *PRINT, WALK), id="a cluster with another representative"),
    ],
)
def test_a_line_that_varies_along_with_the_same_is_not_told(head: Sequence[Line]) -> None:
    assert compared((*MAIN, *APPEND, *PRINT, WALK), head).moves == ()


def test_what_a_new_loop_makes_others_do_belongs_to_it() -> None:
    inner: Line = ("main", "for (int j = 0; j < i; j++)", times(0.5, 2))
    often = tuple((function, text, times(0.5, 2)) for function, text, _ in APPEND)
    found = compared((*MAIN, *APPEND, *PRINT), (*MAIN[:2], inner, ("main", MAIN[2][1], times(0.5, 2)), MAIN[3], *often, *PRINT))
    difference = only(found)
    assert difference.place.text == inner[1]
    assert found.verdict is Verdict.REGRESSION
    assert len(difference.members) >= 4


def test_the_same_code_that_runs_more_often_is_a_regression() -> None:
    often = tuple((function, text, times(3)) for function, text, _ in PRINT)
    found = compared((*MAIN, *APPEND, *PRINT), (*MAIN, *APPEND, *often))
    assert found.verdict is Verdict.REGRESSION
    assert only(found).kind is GrowthDifferenceKind.COEFFICIENT
    assert only(found).place.text == PRINT[1][1]


def test_no_change_is_no_difference() -> None:
    assert compared((*MAIN, WALK), (*MAIN, WALK)).differences == ()


@pytest.mark.parametrize(
    "head",
    [
        pytest.param(
            (*MAIN, ("append", "node *new;", times(1)), ("append", "new = malloc(sizeof *new);", times(1)), *APPEND[1:], *PRINT),
            id="split line",
        ),
        pytest.param((*MAIN, *(("push", text, count) for _, text, count in APPEND), *PRINT), id="renamed function"),
        pytest.param((*MAIN, *APPEND, *(("main", text, count) for _, text, count in PRINT)), id="moved work"),
        pytest.param(
            (*MAIN, *APPEND, ("print", "while (list) {", times(1, more=2)), PRINT[1], ("print", "list = list->next; }", times(1))),
            id="other loop",
        ),
        pytest.param((*MAIN, *APPEND, *PRINT, ("main", "log(1);", always(40))), id="constant work"),
    ],
)
def test_the_same_growth_in_other_words_is_no_regression(head: Sequence[Line]) -> None:
    found = compared((*MAIN, *APPEND, *PRINT), head)
    assert found.verdict in (Verdict.UNCHANGED, Verdict.INCONCLUSIVE)
    assert all(difference.verdict is Verdict.INCONCLUSIVE for difference in found.differences)


def test_growth_that_does_not_matter_at_ten_times_the_size_is_not_told() -> None:
    rare: Line = ("print", "flush();", times(1e-9, 2, more=1))
    assert compared((*MAIN, *APPEND, *PRINT), (*MAIN, *APPEND, *PRINT, rare)).verdict is Verdict.UNCHANGED


def test_calls_of_a_function_are_a_feature_that_tells_what_follows_from_them() -> None:
    square: Line = ("last", "struct node *last(struct list *list)", times(0.1, 2))
    step: Line = ("last", "while (n->next)", times(0.7, 2))
    one = PlaceExperiment({Side.BASE: Revision("v1", None, "")}, {Side.BASE: counts((*MAIN, square, step))}, np.empty(0, np.int64))
    told = with_calls(one, {"last": lambda name, _: name == "last"})
    assert np.array_equal(told.sides[Side.BASE].features["calls of last"], np.round(0.1 * N**2))
    first = analyse(told, min_effect=0.05, seed=1).sides[Side.BASE].clusters[0]
    assert first.feature == "calls of last"
    assert next(fit for fit in first.fits if fit.feature == "calls of last").b == pytest.approx(1.0, abs=0.01)
    with pytest.raises(KeyError, match="first"):
        with_calls(one, {"first": lambda name, _: name == "first"})


def test_counts_that_were_lost_are_neither_an_improvement_nor_a_regression() -> None:
    whole, part = (
        counts((*MAIN, *APPEND, *PRINT)),
        counts((*MAIN, *APPEND[:1], *((name, text, always(0)) for name, text, _ in (*APPEND[1:], *PRINT)))),
    )
    revisions, heads = {side: Revision(side.value, None, "") for side in Side}, np.arange(len(whole.places))

    def told(base: PlaceCounts, head: PlaceCounts, lost: tuple[int, ...]) -> Verdict:
        sides = {Side.BASE: base, Side.HEAD: replace(head, lost=lost)}
        return analyse(PlaceExperiment(revisions, sides, heads), min_effect=0.05, seed=1).verdict

    everywhere = tuple(range(len(N)))
    assert told(whole, part, ()) is Verdict.IMPROVEMENT
    assert told(whole, part, everywhere) is Verdict.INCONCLUSIVE
    assert told(part, whole, everywhere) is Verdict.INCONCLUSIVE
    once = replace(whole, counts=np.where(np.arange(len(N)) == 2, part.counts, whole.counts))
    assert told(whole, once, (2,)) is Verdict.UNCHANGED


@pytest.mark.parametrize("n", [[100.0, 100.0], [100.0, 200.0], [100.0]], ids=["no feature varies", "two points", "one point"])
def test_where_nothing_tells_of_growth_different_counts_leave_it_open(n: list[float]) -> None:
    base, head = counts(MAIN, np.array(n)), counts((*MAIN, WALK), np.array(n))
    revisions = {side: Revision(side.value, None, "") for side in Side}
    found = analyse(PlaceExperiment(revisions, {Side.BASE: base, Side.HEAD: head}, np.arange(4)), min_effect=0.05, seed=1)
    assert found.verdict is Verdict.INCONCLUSIVE
