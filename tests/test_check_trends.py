"""`perfdiff check TRENDS`: saved trends as assertions, with known truth, and read from files that strangers may have written."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import jsonschema
import numpy as np
import pytest

import test_schemas
import trends as made
from perfdiff.analysis.claims import claim
from perfdiff.analysis.series import CheckedAssertions, Standing
from perfdiff.analysis.trends.again import found_again
from perfdiff.analysis.trends.assertions import GrowthAssertion, check_trends
from perfdiff.analysis.trends.blocks import block_counts, block_starts
from perfdiff.analysis.trends.findings import TrendFindings
from perfdiff.analysis.trends.trending import analyse
from perfdiff.config import CompareConfig
from perfdiff.errors import UsageError
from perfdiff.records.arrays import Floats
from perfdiff.records.places import Place, PlaceExperiment
from perfdiff.records.schema import Revision, Side
from perfdiff.report import check as report
from perfdiff.report.sentences.catalogue import say
from perfdiff.report.trends.clean import clean
from perfdiff.report.trends.json_document import json_document
from perfdiff.report.trends.saved import saved_trends
from test_analysis_trends import APPEND, MAIN, PRINT, WALK, Line, N, counts, times

CONFIG = CompareConfig(seed=1)
SAVED: tuple[Line, ...] = (*MAIN, *APPEND, *PRINT)


def trends(lines: Sequence[Line], n: Floats = N) -> TrendFindings:
    one = PlaceExperiment({Side.BASE: Revision("v1", "ab" * 20, "")}, {Side.BASE: counts(lines, n)}, np.empty(0, np.int64))
    return analyse(one, min_effect=0.05, seed=1)


@cache
def written(lines: tuple[Line, ...]) -> str:
    """Return the JSON of trends."""
    return json.dumps(json_document(trends(lines)))


def document(lines: Sequence[Line] = SAVED) -> dict[str, Any]:
    """Return the JSON of trends as it would be read again."""
    found: dict[str, Any] = json.loads(written(tuple(lines)))
    return found


def checked(before: Sequence[Line], after: Sequence[Line], n: Floats = N) -> CheckedAssertions[GrowthAssertion]:
    saved = saved_trends(json.dumps(document(before)), "t.json")
    assert saved is not None
    return check_trends(saved, clean(trends(after, n)), CONFIG)


def rulings(found: CheckedAssertions[GrowthAssertion]) -> list[Standing]:
    return [each.standing for each in found.assertions]


def only(found: CheckedAssertions[GrowthAssertion], standing: Standing) -> GrowthAssertion:
    (each,) = found.those(standing)
    return each


def test_what_did_not_change_holds_at_the_same_exponent() -> None:
    found = checked((*SAVED, WALK), (*SAVED, WALK))
    assert found.verdict is Standing.HOLDS
    assert [(each.saved.b, each.found) for each in found.assertions if each.saved and each.fit] == [
        (pytest.approx(each.fit.b), each.places) for each in found.assertions if each.fit
    ]


def test_a_line_that_ran_n_times_and_runs_n_squared_times_violates_its_cluster() -> None:
    before: Line = ("walk", "step = step->next;", times(1))
    found = checked((before,), (("walk", "step = step->next;", times(0.5, 2)),))
    violated = only(found, Standing.VIOLATED)
    assert found.verdict is Standing.VIOLATED
    assert len(found.assertions) == 1, "the cluster is steeper than all that was saved, but is told once"
    assert violated.saved is not None
    assert violated.fit is not None
    assert (violated.saved.b, violated.fit.b) == (pytest.approx(1.0, abs=0.01), pytest.approx(2.0, abs=0.01))
    assert violated.limit == pytest.approx(1.05, abs=0.01)
    assert violated.place is not None
    assert violated.place.text == "step = step->next;"


def test_a_new_line_that_is_steeper_than_all_is_a_violation_beside_what_holds() -> None:
    found = checked(SAVED, (*MAIN, *APPEND[:1], WALK, *APPEND[1:], *PRINT))
    violated = only(found, Standing.VIOLATED)
    assert violated.saved is None
    assert violated.place is not None
    assert violated.place.text == WALK[1]
    assert "a higher power than any that was saved" in report.answer(found)
    assert len(found.those(Standing.HOLDS)) == len(found.assertions) - 1


def test_a_new_line_as_steep_as_a_saved_one_is_none() -> None:
    other: Line = ("sort", "swap(a, b);", times(0.4, 2))
    assert checked((*SAVED, WALK), (*SAVED, WALK, other)).verdict is Standing.HOLDS


def test_a_lower_power_is_told_and_is_no_violation() -> None:
    found = checked((WALK,), (("append", WALK[1], times(3)),))
    assert rulings(found) == [Standing.LESS]
    assert found.verdict is Standing.HOLDS
    assert "Save the trends anew" in report.text(found)


def test_a_line_that_is_gone_is_not_judged() -> None:
    found = checked((WALK,), PRINT)
    assert found.verdict is Standing.NOT_JUDGED
    assert say(found.assertions[0].reason) == "none of its lines is there any more"
    assert report.answer(found).startswith("Not judged: none of 1 assertion")


def test_a_feature_that_does_not_vary_any_more_is_not_judged() -> None:
    found = checked((WALK,), (WALK,), np.full_like(N, 500.0))
    assert say(found.assertions[0].reason) == "n is no feature of these runs, or does not vary"


def test_sizes_outside_of_those_that_were_saved_do_not_count() -> None:
    curved: Line = ("scan", "look(i);", lambda n: n + 1e-6 * n**3)
    assert trends((curved,), 10 * N).sides[Side.BASE].clusters[0].fits[0].b > 1.5, "so it would be a violation"
    assert checked((curved,), (curved,), np.concatenate([N, 10 * N])).verdict is Standing.HOLDS
    beyond = checked((curved,), (curved,), 100 * N)
    assert say(beyond.assertions[0].reason) == "fewer than three sizes with a count lie in the range of n that was saved"


def test_what_loses_a_part_of_lower_order_is_open_not_violated() -> None:
    before: Line = ("read", "next(file);", times(1, more=5000))
    found = checked((before,), (("read", "next(file);", times(1)),))
    assert rulings(found) == [Standing.OPEN]
    assert found.assertions[0].reason == claim("lower-order-is-gone")


def test_a_wide_interval_is_open() -> None:
    noisy = N * np.array([0.3, 3.0, 0.4, 2.5, 0.5, 3.0, 0.9])
    found = checked((("scan", "look(i);", times(1)),), (("scan", "look(i);", lambda _: noisy),))
    assert rulings(found) == [Standing.OPEN]
    assert "add inputs of more sizes" in report.text(found, width=200)
    assert found.verdict is Standing.OPEN


def test_alike_lines_are_found_in_their_order_and_else_by_the_nearest() -> None:
    saved = [Place("f", "a.c", line, "i++;") for line in (10, 12)]
    moved = [Place("f", "a.c", line, "i++;") for line in (12, 14)]
    assert found_again(saved, moved) == {saved[0]: 0, saved[1]: 1}, "two lines were put before the function"
    shorter = [Place("f", "a.c", line, "i++;") for line in (6, 10)]
    assert found_again([Place("f", "a.c", 1, "{"), *saved], [Place("f", "a.c", 1, "{"), *shorter]) == {
        Place("f", "a.c", 1, "{"): 0,
        saved[0]: 1,
        saved[1]: 2,
    }, "lines were taken from within it"
    one_more = [Place("f", "a.c", 9, "{"), *moved[:1], Place("f", "a.c", 30, "i++;"), moved[1]]
    assert found_again([Place("f", "a.c", 7, "{"), *saved], one_more) == {Place("f", "a.c", 7, "{"): 0, saved[0]: 1, saved[1]: 3}
    assert found_again(saved, [Place("g", "a.c", 10, "i++;")]) == {}
    assert found_again(saved, [Place("f", "renamed.c", 11, "i++;")]) == {saved[0]: 0}


def test_blocks_begin_where_counts_or_functions_change() -> None:
    found = counts((*MAIN, *APPEND))
    assert block_starts(found).tolist() == [0, 1, 2, 3, 4, 4, 4]
    assert block_counts(found)[4:, 0].tolist() == [100, 0, 0]
    assert block_starts(counts((("f", "f();", times(1)), ("g", "g();", times(1))))).tolist() == [0, 1]


def test_json_of_a_check_is_as_its_schema_says() -> None:
    for found in (checked((*SAVED, WALK), (*PRINT, WALK, ("new", "cube();", times(1e-3, 3)))), checked((WALK,), PRINT)):
        written = json.loads(json.dumps(report.json_document(found), allow_nan=False))
        test_schemas.VALIDATORS["check-trends-1"].validate(written)
        assert written["verdict"] == found.verdict.value
    with pytest.raises(jsonschema.ValidationError):
        test_schemas.VALIDATORS["check-trends-1"].validate({**written, "verdict": "fine"})


def test_trends_of_two_revisions_stand_for_head() -> None:
    saved = saved_trends(json.dumps(json_document(made.two())), "t.json")
    assert saved is not None
    assert saved.revision == made.AFTER
    assert saved.clusters[0].exponents[0].b == 2.0


def test_annotations_are_no_trends() -> None:
    assert saved_trends("function: insert\n", "annotations") is None


def changed(path: Sequence[str | int], value: Any) -> str:
    """Return the text of trends with one value replaced."""
    whole = document()
    part: Any = whole
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    return json.dumps(whole)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("{", id="cut"),
        pytest.param("{" + '"a":[' * 100_000, id="nested"),
        pytest.param('{"schema": "perfdiff.report/1"}', id="another"),
        pytest.param(changed(["schema"], "perfdiff.trends/2"), id="version"),
        pytest.param(changed(["clusters"], 7), id="no list"),
        pytest.param(changed(["clusters"], [7]), id="no cluster"),
        pytest.param(changed(["clusters"], []), id="nothing to assert"),
        pytest.param(changed(["clusters", 0, "costly"], "yes"), id="no truth value"),
        pytest.param(changed(["clusters", 0, "costs"], [1, 2]), id="few costs"),
        pytest.param(changed(["clusters", 0, "fits", 0], 7), id="no fit"),
        pytest.param(changed(["clusters", 0, "fits", 0, "ci_b"], [1]), id="no interval"),
        pytest.param(changed(["clusters", 0, "fits", 0, "b"], 10**400), id="a huge number"),
        pytest.param(changed(["clusters", 0, "fits", 0, "class"], "exponential"), id="no class"),
        pytest.param(changed(["clusters", 0, "fits", 0, "feature"], "m"), id="no such feature"),
        pytest.param(changed(["clusters", 0, "places", 0], {"function": "f", "file": "a.c", "line": 3}), id="no text"),
        pytest.param(changed(["points", 0, "features"], [1]), id="no features"),
    ],
)
def test_files_that_hold_no_sound_trends_are_refused(text: str) -> None:
    with pytest.raises(UsageError) as raised:
        saved_trends(text, "t.json")
    assert raised.value.slug == "trends-unreadable"
    assert len(str(raised.value)) < 1000


def test_values_that_are_absent_leave_a_cluster_unjudged() -> None:
    for text in (changed(["clusters", 0, "fits"], []), changed(["clusters", 0, "fits", 0, "b"], None)):
        saved = saved_trends(text, "t.json")
        assert saved is not None
        found = check_trends(saved, clean(trends(SAVED)), CONFIG)
        assert found.assertions[0].reason == claim("no-feature-told")
    saved = saved_trends(changed(["points"], [{**point, "features": {"base": {"n": None}}} for point in document()["points"]]), "t.json")
    assert saved is not None
    assert check_trends(saved, clean(trends(SAVED)), CONFIG).verdict is Standing.NOT_JUDGED


def test_hostile_texts_are_found_again_and_printable() -> None:
    hostile = made.hostile()
    saved = saved_trends(json.dumps(json_document(hostile)), "t.json")
    assert saved is not None
    of_head = replace(
        hostile,
        experiment=replace(hostile.experiment, sides={Side.BASE: hostile.experiment.sides[Side.HEAD]}),
        sides={Side.BASE: hostile.sides[Side.HEAD]},
    )
    found = check_trends(saved, clean(of_head), CONFIG)
    assert found.assertions[0].found == found.assertions[0].places
    assert report.text(found).replace("\n", "").isprintable()
