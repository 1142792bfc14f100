"""Growth over many revisions, from simulated counts: where it changed, what a bisect follows, and how commits are halved."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from perfdiff.analysis.claims import claim
from perfdiff.analysis.search.bisection import Bisection, CommitStanding, MeasuredCommit, SameCommit, SkippedCommit
from perfdiff.analysis.search.ends import SearchSubject
from perfdiff.analysis.search.growth import follow, reading
from perfdiff.analysis.search.halving import narrowed, next_commit
from perfdiff.analysis.series import GROWTH, FunctionHistory
from perfdiff.analysis.trends.findings import GrowthDifference, GrowthDifferenceKind, TrendFindings
from perfdiff.analysis.trends.growth_history import Counted, growth_history
from perfdiff.cli import log, trends
from perfdiff.config import CompareConfig
from perfdiff.errors import MeasurementError, PerfdiffError, UsageError
from perfdiff.models.shift import ExponentShift
from perfdiff.records.function_names import is_named
from perfdiff.records.places import PlaceExperiment
from perfdiff.records.schema import Revision, Side
from perfdiff.report import bisect as bisect_report
from perfdiff.report import history as report
from perfdiff.report import history_plot
from perfdiff.report.sentences.catalogue import say
from perfdiff.report.trends.json_document import json_document
from test_analysis_trends import APPEND, MAIN, PRINT, WALK, Line, N, compared, counts, experiment, times

CONFIG = CompareConfig(seed=1)
GOOD: tuple[Line, ...] = (*MAIN, *APPEND, *PRINT)
BAD: tuple[Line, ...] = (*MAIN, *APPEND[:1], WALK, *APPEND[1:], *PRINT)


def renamed(lines: Sequence[Line], before: str, after: str) -> tuple[Line, ...]:
    return tuple((after if function == before else function, text, count) for function, text, count in lines)


def counted(*versions: Sequence[Line] | str) -> list[Counted]:
    """Return revisions v1, v2, …: what each is, or why it was not counted."""
    found = [version if isinstance(version, str) else counts(version) for version in versions]
    return [(Revision(f"v{number}", None, f"Release {number}"), each) for number, each in enumerate(found, 1)]


def told(*versions: Sequence[Line] | str, function: str = "append") -> FunctionHistory:
    found = growth_history(function, f"{function}.c", counted(*versions), CONFIG)
    assert found is not None
    return found


def steps(history: FunctionHistory) -> dict[str, tuple[str, float]]:
    """Return since when the exponent of each revision that begins a level was another, and by how much."""
    began = [(entry.revision.rev, cost.step) for entry in history.entries for cost in entry.costs.values() if cost.step]
    return {rev: (step.since.rev, round(step.change.exponent, 2)) for rev, step in began if isinstance(step.change, ExponentShift)}


def test_an_exponent_is_told_of_each_revision_and_where_it_changed() -> None:
    found = told(GOOD, "'make' exited 2 [build-failed]", GOOD, BAD, BAD)
    assert (found.feature, found.at) == ("n", "list n=8000.0")
    assert [say(each.reason) for each in found.entries if each.reason] == ["'make' exited 2 [build-failed]"]
    costs = [entry.costs.get(GROWTH) for entry in found.entries]
    assert [round(cost.value, 1) for cost in costs if cost] == [1.0, 1.0, 2.0, 2.0]
    most = 0.5 * 8000**2 + 2 * 8000
    assert [cost and cost.count for cost in costs] == [8000, None, 8000, most, most]
    ((place, step),) = [(place, cost.step) for place, cost in enumerate(costs) if cost and cost.step]
    assert place == 3
    assert isinstance(step.change, ExponentShift)
    assert step.since.rev == "v1"
    assert step.change.ci[0] < step.change.exponent < step.change.ci[1]
    assert step.change.exponent == pytest.approx(1.0, abs=0.1)


def test_small_shifts_add_up_and_the_way_back_is_a_change_too() -> None:
    powers = (1.0, 1.04, 1.08, 1.12, 1.0)
    found = told(*((("scan", "look(i);", times(50, power)),) for power in powers), function="scan")
    assert steps(found) == {"v3": ("v1", 0.08), "v5": ("v3", -0.08)}


def test_a_constant_factor_is_no_change_of_growth() -> None:
    assert steps(told((WALK,), (("append", WALK[1], times(5, 2)),))) == {}


def test_a_revision_without_the_function_says_so() -> None:
    found = told(MAIN, GOOD)
    assert [each.reason for each in found.entries] == [claim("no-function-ran"), None]
    assert "no function of this name ran" in report.text(found)
    assert growth_history("append", "append.c", counted(MAIN), CONFIG) is None


def test_text_json_and_plot_of_a_history_tell_the_same() -> None:
    found = told(GOOD, "'make' exited 2", BAD)
    text = report.text(found, width=160)
    assert "- v3: n → " in text
    assert "- v2: 'make' exited 2" in text
    assert report.answer(found).startswith("append: v3: n → ")
    document = json.loads(json.dumps(report.json_document(found), allow_nan=False))
    assert document["schema"] == "perfdiff.log/1"
    first, second, third = document["revisions"]
    assert first["metrics"]["growth"]["class"] == "linear"
    assert first["metrics"]["growth"]["change"] is None
    assert (second["metrics"], second["reason"]) == ({}, "'make' exited 2")
    assert third["metrics"]["growth"]["change"]["since"] == "v1"
    assert third["metrics"]["growth"]["count"] == 0.5 * 8000**2 + 2 * 8000
    svg = history_plot.draw(found, "svg")
    assert svg == history_plot.draw(found, "svg")
    assert ET.fromstring(svg).tag.endswith("svg")


def test_names_of_strangers_in_a_history_are_printable() -> None:
    evil = "in\x1b[31msert\u202e"
    found = told((("append", evil, times(1)),), function="append")
    hostile = replace(found, function=evil, file=evil, at=evil)
    assert not {"\x1b", "\u202e"} & set(report.text(hostile) + report.answer(hostile))
    assert b"\x1b" not in history_plot.draw(hostile, "svg")


@pytest.mark.parametrize(
    ("function", "versions", "slug"),
    [
        ("apend", (GOOD,), "unknown-function"),
        ("print", ((*PRINT, ("ns::print", "other();", times(1))),), "ambiguous-function"),
        ("main", ((("main", "return 0;", np.zeros_like),),), "no-feature"),
    ],
)
def test_a_function_that_cannot_be_followed_is_refused(function: str, versions: tuple[Sequence[Line], ...], slug: str) -> None:
    with pytest.raises(PerfdiffError) as raised:
        log.growth_of(function, counted(*versions), CONFIG)
    assert raised.value.slug == slug


def wanted(function: str | None = None) -> SearchSubject:
    return SearchSubject("v1", "v2", function, partial(is_named, function) if function else None)


def standing(good: Sequence[Line], commit: Sequence[Line], bad: Sequence[Line]) -> tuple[CommitStanding, GrowthDifference | None]:
    symptom = follow(compared(good, bad), wanted())
    return reading(experiment(good, commit), symptom, min_effect=0.05, seed=1)


def test_the_leading_regression_is_followed_by_its_names_in_both_ends() -> None:
    symptom = follow(compared(GOOD, BAD), wanted())
    assert symptom.base == symptom.head == ("append.c", "append")
    assert symptom.difference.place.text == WALK[1]
    assert symptom.says == "growth of `append`"
    named = follow(compared(GOOD, BAD), wanted("append.c:append"))
    assert (named.base, named.head, named.difference.place) == (symptom.base, symptom.head, symptom.difference.place)


@pytest.mark.parametrize("name", ["append", "push"])
def test_a_function_that_was_renamed_is_known_by_either_name(name: str) -> None:
    symptom = follow(compared(GOOD, renamed(BAD, "append", "push")), wanted(name))
    assert (symptom.base, symptom.head) == (("append.c", "append"), ("push.c", "push"))


def test_a_commit_is_bad_where_its_function_grows_as_in_the_bad_end() -> None:
    assert standing(GOOD, GOOD, BAD) == (CommitStanding.GOOD, None)
    is_bad, difference = standing(GOOD, BAD, BAD)
    assert is_bad is CommitStanding.BAD
    assert difference is not None
    assert difference.kind is GrowthDifferenceKind.EXPONENT
    assert standing(GOOD, renamed(BAD, "append", "push"), BAD)[0] is CommitStanding.BAD


def test_another_function_that_grows_is_not_the_one_that_is_followed() -> None:
    other = (*MAIN, *APPEND, PRINT[0], ("print", "for (;;) look();", times(0.5, 2)), PRINT[1])
    assert standing(GOOD, other, BAD)[0] is CommitStanding.GOOD


def test_a_commit_that_adds_less_than_half_is_good_but_shown() -> None:
    little = (*MAIN, *APPEND[:1], ("append", WALK[1], times(0.1, 2)), *APPEND[1:], *PRINT)
    is_good, difference = standing(GOOD, little, BAD)
    assert is_good is CommitStanding.GOOD
    assert difference is not None
    most = (*MAIN, *APPEND[:1], ("append", WALK[1], times(0.3, 2)), *APPEND[1:], *PRINT)
    assert standing(GOOD, most, BAD)[0] is CommitStanding.BAD


def test_work_that_later_moves_to_a_function_of_its_own_is_known_where_it_was_before() -> None:
    moved = (*GOOD, ("walk", WALK[1], WALK[2]))
    symptom = follow(compared(GOOD, moved), wanted())
    assert (symptom.base, symptom.head) == (None, ("walk.c", "walk"))
    assert reading(experiment(GOOD, BAD), symptom, min_effect=0.05, seed=1)[0] is CommitStanding.BAD
    assert reading(experiment(GOOD, GOOD), symptom, min_effect=0.05, seed=1)[0] is CommitStanding.GOOD
    assert reading(experiment(GOOD, moved), symptom, min_effect=0.05, seed=1)[0] is CommitStanding.BAD


def test_a_new_function_is_known_although_one_of_its_lines_runs_as_often_as_one_that_is_gone() -> None:
    before = (*GOOD, ("cut", "m = length;", times(3)), ("cut", "k = m;", times(3)), ("cut", "copy();", times(2)))
    after = (*GOOD, before[-3], before[-1], ("count", "for (;;) next();", times(3, 2)), ("count", "return i;", times(3)))
    symptom = follow(compared(before, after), wanted())
    assert (symptom.base, symptom.head, symptom.difference.kind) == (None, ("count.c", "count"), GrowthDifferenceKind.NEW)
    assert standing(before, after, after)[0] is CommitStanding.BAD
    assert standing(before, before, after)[0] is CommitStanding.GOOD


def test_growth_that_cannot_be_told_has_no_reading() -> None:
    symptom = follow(compared(GOOD, BAD), wanted())
    flat = np.full_like(N, 500.0)
    sides = {Side.BASE: counts(GOOD, flat), Side.HEAD: counts(BAD, flat)}
    with pytest.raises(MeasurementError) as raised:
        reading(PlaceExperiment({}, sides, np.full(len(GOOD), -1)), symptom, min_effect=0.05, seed=1)
    assert raised.value.slug == "no-feature"


def unclear() -> TrendFindings:
    return compared(GOOD, (*MAIN, *APPEND, ("append", "check(list);", times(1)), ("append", "check(new);", times(0.6)), *PRINT))


@pytest.mark.parametrize(
    ("found", "function", "kind", "slug"),
    [
        (lambda: compared(GOOD, GOOD), None, UsageError, "ends-alike"),
        (lambda: compared(GOOD, BAD), "print", UsageError, "ends-alike"),
        (lambda: compared(GOOD, BAD), "insert", UsageError, "unknown-function"),
        (lambda: compared(BAD, GOOD), None, UsageError, "ends-swapped"),
        (unclear, None, MeasurementError, "ends-inconclusive"),
    ],
)
def test_ends_without_anything_to_find_are_refused(
    found: Callable[[], TrendFindings], function: str | None, kind: type[PerfdiffError], slug: str
) -> None:
    with pytest.raises(kind) as raised:
        follow(found(), wanted(function))
    assert raised.value.slug == slug


LINE = tuple(frozenset(range(number + 1)) for number in range(8))
# 0 – 1 – 2 ─── 5 (merge) – 6, with 3 – 4 beside 1 – 2
BRANCHED = (
    frozenset({0}),
    frozenset({0, 1}),
    frozenset({0, 1, 2}),
    frozenset({0, 3}),
    frozenset({0, 3, 4}),
    frozenset({0, 1, 2, 3, 4, 5}),
    frozenset(range(7)),
)


def searched(held: Sequence[frozenset[int]], culprit: int, skipped: Sequence[int] = ()) -> tuple[frozenset[int], int]:
    """Return the suspects that are left, and how many answers that took."""
    suspects, answers = frozenset(range(len(held))), 0
    while (number := next_commit(held, suspects, skipped)) is not None:
        suspects = narrowed(held, suspects, number, is_bad=culprit in held[number])
        answers += 1
    return suspects, answers


@pytest.mark.parametrize("held", [LINE, BRANCHED], ids=["line", "branches"])
def test_halving_finds_every_culprit_in_at_most_log2_steps(held: Sequence[frozenset[int]]) -> None:
    for culprit in range(len(held)):
        suspects, answers = searched(held, culprit)
        assert suspects == {culprit}
        assert answers <= 3


def test_commits_without_an_answer_stay_suspects_with_the_next_one() -> None:
    assert searched(LINE, 4, skipped=(3,))[0] == {3, 4}
    assert searched(LINE, 6, skipped=(3,))[0] == {6}
    assert searched(LINE, 3, skipped=range(8))[0] == set(range(8))


def conclusion(suspects: int = 1) -> Bisection:
    symptom = follow(compared(GOOD, BAD), wanted())
    commits = [Revision(digit * 40, digit * 40, f"Change \x1b{digit}") for digit in "abcd"]
    return Bisection(
        good=Revision("v1", "0" * 40, ""),
        bad=Revision("v2", "d" * 40, ""),
        symptom=symptom,
        commits=4,
        suspects=tuple(commits[3 - suspects : 3]),
        measured=(
            MeasuredCommit(commits[0], CommitStanding.GOOD, None),
            MeasuredCommit(commits[2], CommitStanding.BAD, symptom.difference),
        ),
        passed=(SkippedCommit(commits[1], "'make' exited 2 [build-failed]"),),
        alike=(SameCommit(commits[3], commits[2]),),
        findings=compared(GOOD, BAD),
    )


def written(found: Bisection, form: str) -> str:
    """Return the report of a search in one form, as the command line writes it."""
    assert isinstance(found.findings, TrendFindings)
    return trends.rendered(found.findings, form, None, bisect_report.blocks(found))


def document_of(found: Bisection) -> dict[str, Any]:
    assert isinstance(found.findings, TrendFindings)
    whole: dict[str, Any] = json.loads(bisect_report.render_json(found, json_document(found.findings)))
    return whole


def test_a_bisect_by_growth_is_told_alike_in_all_forms() -> None:
    found = conclusion()
    assert written(found, "text").startswith("Culprit: cccccccccc (Change \\x1bc)\n")
    for said in (written(found, form) for form in ("text", "markdown", "html")):
        assert "build-failed" in said
        assert "Regression: append.c:" in said
        assert "\x1b" not in said
    assert "How these revisions were found" in written(found, "html")
    document = document_of(found)
    assert (document["schema"], document["culprit"]) == ("perfdiff.bisect/1", "c" * 40)
    assert [(each["commit"][0], each["verdict"]) for each in document["measured"]] == [("a", "good"), ("c", "bad")]
    assert document["measured"][0]["ratio"] == 1.0
    assert document["measured"][1]["ratio"] > 1000
    assert document["followed"]["metric"] == "growth"
    assert document["report"]["schema"] == "perfdiff.trends/1"


def test_suspects_that_nothing_tells_apart_are_all_named() -> None:
    found = conclusion(suspects=2)
    assert say(found.sentence) == "Culprit: one of 2 commits up to cccccccccc; no commit between them can be counted"
    document = document_of(found)
    assert document["culprit"] is None
    assert [each["commit"][0] for each in document["suspects"]] == ["b", "c"]
    assert "Suspects" in written(found, "text")
