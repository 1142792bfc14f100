"""Which lines of a function run more often, by how much and how that grows; and what a comparison makes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from experiments import Made, World, same
from perfdiff.analysis.analysis import analyse
from perfdiff.analysis.causes.timed import by_lines, time_only
from perfdiff.analysis.claims import claim
from perfdiff.analysis.findings import Cause, Findings, FunctionFinding, Verdict
from perfdiff.analysis.linegrowth import LineGrowth
from perfdiff.analysis.telling.lines import is_cited, steeper_line
from perfdiff.analysis.trends.lines import MatchedLines, matched
from perfdiff.config import CompareConfig
from perfdiff.records.arrays import Floats
from perfdiff.records.places import Place, PlaceCounts, PlaceExperiment
from perfdiff.records.schema import Change, FunctionInfo, Point, Revision, Side, Source
from perfdiff.report.sentences.catalogue import say

N = (1000.0, 2000.0, 4000.0, 8000.0)
Count = Callable[[Floats], Floats]
Line = tuple[int, str, Count]  # number, text, count over n
REVISIONS = {side: Revision(side.value, None, "") for side in Side}


def times(factor: float, power: float = 1.0) -> Count:
    return lambda n: np.round(factor * n**power)


FILL: tuple[Line, ...] = ((10, "fill(list, n)", times(1, 0)), (12, "for (i = 0; i < n; i++) {", times(1)), (13, "append(i);", times(1)))
WALK: Line = (14, "while (*end) end = next(end);", times(0.5, 2))
INFO = FunctionInfo(
    1, "fill", "a.c", 10, "c", Change.CHANGED, base=Source("a.c", 10, "{\n" * 9 + "}\n"), head=Source("a.c", 10, "{\n" * 9 + "}\n")
)


def counted(lines: Sequence[Line], sizes: Sequence[float] = N, function: str = "fill") -> PlaceCounts:
    n = np.array(sizes)
    return PlaceCounts(
        points=tuple(Point(number, "list", {"n": size}, "./list") for number, size in enumerate(sizes)),
        places=tuple(Place(function, "a.c", number, text) for number, text, _ in lines),
        counts=np.array([count(n) for _, _, count in lines]).reshape(len(lines), len(n)),
        features={"n": n},
        sources={"a.c": ()},
    )


def both(base: PlaceCounts, head: PlaceCounts) -> PlaceExperiment:
    """Return an experiment in which lines of the same text and function are the same."""
    known = {(place.function, place.text): number for number, place in enumerate(head.places)}
    heads = np.array([known.get((place.function, place.text), -1) for place in base.places], dtype=np.int64)
    return PlaceExperiment(REVISIONS, {Side.BASE: base, Side.HEAD: head}, heads)


def lines_of(base: PlaceCounts, head: PlaceCounts) -> MatchedLines:
    found = matched(both(base, head))
    assert found is not None
    return found


def grown(base: PlaceCounts, head: PlaceCounts, *infos: FunctionInfo) -> tuple[LineGrowth, ...]:
    lines = lines_of(base, head)
    return lines.grown(lines.of(infos or (INFO,)), min_effect=0.05, seed=1)


def test_a_new_line_that_grows_with_the_square_is_told_with_its_counts() -> None:
    (walk,) = grown(counted(FILL), counted((*FILL, WALK)))
    assert (walk.line, walk.text, walk.point) == (14, WALK[1], "list n=8000.0")
    assert (walk.base, walk.head) == (0.0, 32e6)
    assert (walk.feature, walk.base_says, walk.head_says) == ("n", "", "0.5·n²")
    assert (walk.is_new, walk.is_steeper) == (True, True)


def test_a_line_that_runs_once_more_per_element_is_told_from_what_to_what() -> None:
    (body,) = grown(counted(FILL), counted((*FILL[:2], (13, "append(i);", times(1, 2)))))
    assert (body.base_says, body.head_says, body.is_new, body.is_steeper) == ("n", "n²", False, True)
    assert (body.base, body.head) == (8000.0, 64e6)


def test_more_of_the_same_growth_is_not_steeper() -> None:
    (body,) = grown(counted(FILL), counted((*FILL[:2], (13, "append(i);", times(5)))))
    assert (body.base_says, body.head_says, body.is_steeper) == ("n", "5·n", False)


def test_a_line_that_ran_once_and_now_runs_for_each_element_is_steeper() -> None:
    (first,) = grown(counted(FILL), counted(((10, FILL[0][1], times(1)), *FILL[1:])))
    assert (first.base_says, first.head_says, first.is_steeper) == ("1", "n", True)


def test_three_points_tell_an_exponent_that_is_met_exactly() -> None:
    (walk,) = grown(counted(FILL, N[:3]), counted((*FILL, WALK), N[:3]))
    assert (walk.head_says, walk.is_steeper, walk.head) == ("0.5·n²", True, 8e6)


def test_two_points_tell_counts_alone() -> None:
    (walk,) = grown(counted(FILL, N[:2]), counted((*FILL, WALK), N[:2]))
    assert (walk.feature, walk.head_says, walk.is_steeper, walk.head) == (None, "", False, 2e6)


def test_counts_that_follow_no_power_are_told_without_growth() -> None:
    rough: Line = (14, WALK[1], lambda n: n * np.array([900.0, 30.0, 800.0, 1000.0]))
    (line,) = grown(counted(FILL), counted((*FILL, rough)))
    assert (line.head_says, line.is_steeper, line.head) == ("", False, 8e6)


def test_nothing_is_told_where_nothing_grew_or_too_little_did() -> None:
    assert not grown(counted(FILL), counted(FILL))
    little: Line = (14, "if (i == 0) begin();", times(0.04))
    assert not grown(counted(FILL), counted((*FILL, little)))


def test_of_a_block_its_first_line_is_told_and_three_lines_at_most() -> None:
    block = tuple((number, f"step{number}();", times(0.5, 2)) for number in (14, 15))
    (only,) = grown(counted(FILL), counted((*FILL, *block)))
    assert only.line == 14
    steps = tuple((14 + place, f"step{place}();", times(0.5 - place / 20, 2)) for place in range(5))
    assert [line.line for line in grown(counted(FILL), counted((*FILL, *steps)))] == [14, 15, 16]


def test_lines_of_other_functions_do_not_count() -> None:
    far: Line = (40, "other();", times(0.5, 2))
    assert not grown(counted(FILL), counted((*FILL, far)))
    lines = lines_of(counted(FILL), counted((*FILL, far)))
    assert [line.line for line in lines.grown(lines.beside([INFO]), min_effect=0.05, seed=1)] == [40]


def test_instances_of_a_template_count_together() -> None:
    head = counted((*FILL, WALK))
    again = PlaceCounts(head.points, (*head.places, Place("fill<int>", "a.c", 14, WALK[1])), np.vstack([head.counts, head.counts[-1]]),
                        head.features, head.sources)  # fmt: skip
    (walk,) = grown(counted(FILL), again)
    assert (walk.head, walk.head_says) == (64e6, "n²")


def test_growth_is_told_over_the_workload_in_which_the_line_grew() -> None:
    def twice(found: PlaceCounts, factor: float) -> PlaceCounts:
        other = tuple(Point(10 + point.id, "other", point.parameters, point.command) for point in found.points)
        features = {"n": np.tile(found.features["n"], 2)}
        return PlaceCounts(
            (*found.points, *other), found.places, np.hstack([found.counts, factor * found.counts[:, :1].repeat(4, 1)]), features, {}
        )

    (walk,) = grown(twice(counted(FILL), 1.0), twice(counted((*FILL, WALK)), 7.0))
    assert (walk.point, walk.head_says) == ("list n=8000.0", "0.5·n²")


def test_how_often_each_line_of_a_function_ran_is_known_by_number() -> None:
    lines = lines_of(counted(FILL), counted((*FILL, WALK)))
    assert lines.counts(INFO, "list n=1000.0") == {10: 1.0, 12: 1000.0, 13: 1000.0, 14: 5e5}


SIZES = (1000.0, 3000.0, 10000.0)
CALLS = 1e5


def compared(places: PlaceExperiment | None, *, whole: float = 1.3, changed: Sequence[str] = ("fill", "find")) -> Findings:
    """Return what is found where no function stands out by its time, whole runs take so many times as long, and lines were counted."""
    functions = [Made(name, same(5.0), Change.CHANGED, lambda side, n: {"main": CALLS}) for name in changed]
    world = World((Made("main", same(2e7)), *functions), plain=lambda side: 2e7 * (whole if side is Side.HEAD else 1.0))
    return analyse(world.experiment(), world.samples, CompareConfig(), lines=places)


def at_functions(**counts: Mapping[Side, Count]) -> PlaceExperiment:
    """Return counts of one line a function, at the line where `World` has it: `main` in line 10, `fill` in 20, `find` in 30."""
    sides = {}
    for side in Side:
        n = np.array(SIZES)
        places = tuple(Place(name, "prog.c", 10 * number, f"{name}();") for number, name in enumerate(counts, 1))
        points = tuple(Point(number, "w", {"n": size}, "run") for number, size in enumerate(SIZES))
        rows = np.array([count[side](n) for count in counts.values()])
        sides[side] = PlaceCounts(points, places, rows, {"n": n}, {"prog.c": ()})
    return PlaceExperiment(REVISIONS, sides, np.arange(len(counts)))


def steady(count: float) -> Mapping[Side, Count]:
    return dict.fromkeys(Side, lambda n: np.full_like(n, count))


def growing(base: float, head: float) -> Mapping[Side, Count]:
    return {Side.BASE: lambda n: np.full_like(n, base), Side.HEAD: lambda n: np.full_like(n, head)}


def named(found: Findings, name: str) -> FunctionFinding:
    return next(each for each in found.functions if each.info.name == name)


def test_slower_runs_are_put_down_to_the_only_changed_function_whose_lines_explain_them() -> None:
    assert say(compared(None).sentence).startswith("Regression, not located")
    found = compared(at_functions(main=steady(10), fill=growing(1e5, 4e6), find=steady(1e5)))
    guilty = named(found, "fill")
    assert (found.verdict, guilty.verdict, guilty.rank) == (Verdict.REGRESSION, Verdict.REGRESSION, 1)
    assert "the only changed function whose lines run so much more often" in say(guilty.reason)
    assert [(line.line, line.base, line.head) for line in guilty.lines] == [(20, 1e5, 4e6)]


@pytest.mark.parametrize(
    "places",
    [
        at_functions(main=steady(10), fill=growing(1e5, 4e6), find=growing(1e5, 4e6)),  # two may be it
        at_functions(main=steady(10), fill=growing(1e5, 1.2e5), find=steady(1e5)),  # too little to explain it, or written otherwise
        at_functions(main=growing(5e6, 1e6), fill=growing(1e5, 4e6), find=steady(1e5)),  # work that moved from elsewhere
        at_functions(main=growing(1e5, 4e6), fill=steady(1e5), find=steady(1e5)),  # of unchanged code
    ],
    ids=["two", "little", "moved", "unchanged"],
)
def test_lines_that_leave_a_doubt_locate_nothing(places: PlaceExperiment) -> None:
    found = compared(places)
    assert say(found.sentence).startswith("Regression, not located")
    assert all(each.verdict is not Verdict.REGRESSION for each in found.functions)


def test_lines_alone_make_no_regression() -> None:
    found = compared(at_functions(main=steady(10), fill=growing(1e5, 4e6), find=steady(1e5)), whole=1.0)
    assert found.verdict is not Verdict.REGRESSION


def slower(places: PlaceExperiment | None) -> Findings:
    """Return what is found of a function whose time per call grew from linear to quadratic, and of an unchanged one."""
    cost = lambda side, x: 20 * x["n"] if side is Side.BASE else 0.1 * x["n"] ** 2  # noqa: E731
    world = World((Made("main", same(5e4)), Made("fill", cost, Change.CHANGED, lambda side, n: {"main": 10}), Made("find", same(1e4))))
    return analyse(world.experiment(), world.samples, CompareConfig(), lines=places)


def test_a_function_whose_line_grows_steeper_names_it_in_its_sentence() -> None:
    fill = {Side.BASE: times(1), Side.HEAD: times(1, 2)}
    found = slower(at_functions(main=steady(10), fill=fill, find=steady(1e5)))
    guilty = named(found, "fill")
    assert say(guilty.headline).endswith("; line 20, `fill();`, runs n² times, n before")
    assert "line 20, `fill();`, runs n² times, n before" in say(found.sentence)
    assert guilty.line_counts == {20: 1e8}
    assert not named(found, "find").lines
    assert not named(slower(None), "fill").lines


def told_by_lines(lines: tuple[LineGrowth, ...]) -> FunctionFinding:
    """Return a finding whose cause was time alone, told with lines of `fill`."""
    cause = time_only(INFO, ("blocks",))
    finding = FunctionFinding(INFO, Verdict.REGRESSION, "", 1, 1.0, 1.0, 1.0, None, {}, (cause,), (), "`fill` is slower", tells_cause=True)
    return by_lines(finding, lines)


def test_a_line_that_runs_more_often_is_the_cause_where_blocks_are_fewer() -> None:
    line = LineGrowth("fill", "a.c", 12, "walk();", "list n=8000", 2000.0, 8000.0)
    told = told_by_lines((replace(line, line=99), line))
    assert [cause.name for cause in told.causes] == ["more-work"]
    assert say(told.causes[0].says) == "its line 12, `walk();`, runs 8000 times in one run of list n=8000, 2000 before"
    assert say(told.headline) == f"`fill` is slower; cause: {say(told.causes[0].says)}"
    assert say(told_by_lines((replace(line, is_new=True, base=0.0),)).causes[0].says).endswith("never before")


def test_lines_of_other_functions_explain_no_time_of_this_one() -> None:
    told = told_by_lines((LineGrowth("other", "a.c", 99, "walk();", "list n=8000", 2000.0, 8000.0),))
    alone = "its time grew and nothing that was counted did: dearer instructions in what changed, machine, layout or I/O"
    assert say(told.causes[0].says) == alone


def test_a_new_line_whose_text_base_has_is_one_that_it_does_not_compile() -> None:
    line = LineGrowth("fill", "a.c", 12, "walk();", "list n=8000", 0.0, 8000.0, "n", "", "n²", is_new=True, is_steeper=True)
    info = replace(INFO, base=Source("a.c", 10, "fill()\n{\nwalk();\n}\n"), head=Source("a.c", 10, "fill()\n{\nwalk();\n}\n"))
    affected, changed = (say(steeper_line(line, replace(info, change=change))) for change in (Change.AFFECTED, Change.CHANGED))
    assert affected == "line 12, `walk();`, which base does not compile, runs n² times"
    assert changed == "new line 12, `walk();`, runs n² times"


@pytest.mark.parametrize(("texts", "says"), [(("walk();",), "new line 12 runs"), (("stop();",), "new line 12, `walk();`, runs")])
def test_a_steeper_line_is_quoted_once_in_a_sentence(texts: tuple[str, ...], says: str) -> None:
    line = LineGrowth("fill", "a.c", 12, "walk();", "list n=8000", 0.0, 8000.0, "n", "", "n²", is_new=True, is_steeper=True)
    lines = claim("cites", newly=(), gone=False, file="a.c", numbers=(12,), texts=texts, more=0)
    cause = Cause("more-work", claim("takes-longer", ratio=2.0, alone=False, lines=lines))
    finding = FunctionFinding(INFO, Verdict.REGRESSION, "", 1, 1.0, 1.0, 1.0, None, {}, (cause,), (), "`fill` is slower", tells_cause=True)
    assert say(steeper_line(line, INFO, is_cited=is_cited(finding, line))).startswith(says)


def test_lines_of_a_function_without_a_probe_are_told_with_the_change_that_makes_it_slower() -> None:
    places = at_functions(main=steady(10), fill=steady(10), find=steady(10), hidden={Side.BASE: times(1), Side.HEAD: times(1, 2)})
    guilty = named(slower(places), "fill")
    assert [(line.function, line.line, line.head_says) for line in guilty.lines] == [("hidden", 40, "n²")]
    assert say(guilty.headline).endswith("; line 40 of `hidden`, `hidden();`, runs n² times, n before")
