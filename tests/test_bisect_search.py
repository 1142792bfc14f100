"""The search among commits: evidence moves the posterior as it should, and stated confidence is honest."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import findings as examples
from perfdiff.analysis.findings import CountFinding, Ratio
from perfdiff.analysis.search import symptom
from perfdiff.analysis.search.ahead import asked_ahead
from perfdiff.analysis.search.posterior import (
    Confirm,
    CulpritSet,
    Knowledge,
    Measure,
    Reading,
    Search,
    StepTrial,
    Terms,
    chances,
    credible,
    decide,
    kinds,
    likeliest,
)
from perfdiff.analysis.search.symptom import Figure, Symptom, figures
from perfdiff.records.schema import Point
from simulated_search import World, searched

EFFECT = math.log(1.3)
BEFORE, AFTER = Reading(0.0, 0.01), Reading(EFFECT, 0.01)


def line(count: int, *, exact: bool = False) -> Search:
    return Search(np.tril(np.ones((count, count), bool)), np.ones(count) / count, AFTER, exact)


def terms(count: int, error: float = 0.01, confidence: float = 0.95) -> Terms:
    eligible = np.ones(count, bool)
    eligible[-1] = False
    return Terms(eligible, np.ones(count), error, confidence)


def test_a_commit_like_good_rules_out_what_it_holds_and_one_like_bad_the_rest() -> None:
    low = line(8).posterior(Knowledge({3: BEFORE}))
    assert low[:4].sum() < 0.02
    high = line(8).posterior(Knowledge({3: AFTER}))
    assert high[4:].sum() < 0.02


def test_a_reading_between_both_ends_tells_nothing() -> None:
    weights = line(8).posterior(Knowledge({3: Reading(EFFECT / 2, 0.01)}))
    assert weights == pytest.approx(np.full(8, 1 / 8), rel=0.35)


def test_no_single_commit_is_trusted_beyond_the_chance_that_it_misleads() -> None:
    search = line(2)
    assert 0.97 < search.holds(AFTER) < 0.999
    assert search.holds(Reading(EFFECT, 1e-6)) < 0.999


def test_exact_counts_are_trusted_more_than_times() -> None:
    assert line(2, exact=True).holds(Reading(EFFECT, 0.0)) > line(2).holds(AFTER)


def test_readings_of_one_commit_join_by_their_precision() -> None:
    joined = Reading(0.1, 0.01).joined(Reading(0.2, 0.02))
    assert joined.effect == pytest.approx((0.1 * 4 + 0.2) / 5)
    assert joined.error == pytest.approx(0.01 * math.sqrt(0.8))
    assert Reading(0.3, 0.0).joined(Reading(0.3, 0.0)) == Reading(pytest.approx(0.3), 0.0)


def test_an_interval_is_shown_only_where_its_ends_read_differently() -> None:
    assert figures(Reading(math.log(7.18), 1e-6)) == "×7.18"
    assert figures(Reading(math.log(1.31), 0.01)) == "×1.31 [1.28, 1.34]"


@pytest.mark.parametrize(("lines", "followed"), [(816.0, Figure.COUNT), (13.0, Figure.CALL)], ids=["work carries time", "time alone"])
def test_exact_counts_of_lines_are_followed_where_they_carry_the_time(lines: float, followed: Figure) -> None:
    example, factor = examples.regressed(), lines / 12
    counted = CountFinding(
        "lines", Point(0, "sort", {}, "./sort"), 12.0, lines, Ratio(factor, factor, factor, 5, 5), True, True, False, 0.0, math.nan
    )
    best = symptom.symptoms(examples.findings(), replace(example, counts={"lines": counted}), None)[0]
    assert (best.figure, best.metric) == (followed, "lines" if followed is Figure.COUNT else "wall_ns")


def test_work_that_neither_side_did_reads_as_unchanged() -> None:
    example = examples.regressed()
    same = Ratio(1.0, 1.0, 1.0, 5, 5)
    blocks = CountFinding("blocks", Point(0, "sort", {}, "./sort"), 10.0, 10.0, same, True, False, False, 0.0, math.nan)
    counted = replace(examples.findings(), functions=(replace(example, counts={"blocks": blocks}),))
    uncounted = replace(examples.findings(), functions=(replace(example, counts={}),))
    place = symptom.place_of(example.info.base)
    stores = Symptom(example.info.name, example.info.file, place, "stores", Figure.COUNT, Reading(7.6, 0.0), exact=True)
    assert symptom.read(counted, stores) == Reading(0.0, 0.0)
    assert symptom.read(counted, replace(stores, metric="l1d_misses")) is None
    assert symptom.read(uncounted, stores) is None


def test_the_middle_is_measured_first() -> None:
    assert decide(line(16), Knowledge({}), terms(16)) in (Measure(7), Measure(8))


def test_a_commit_that_costs_much_is_passed_over_for_one_that_tells_almost_as_much() -> None:
    cost = np.ones(16)
    cost[[6, 7, 8]] = 20.0
    step = decide(line(16), Knowledge({}), Terms(np.ones(16, bool), cost, 0.01))
    assert isinstance(step, Measure)
    assert step.commit in (5, 9)


def test_neighbours_of_a_commit_that_does_not_build_are_less_likely_to() -> None:
    found = chances(9, skipped=[4], measured=[5])
    assert found[4] == 0
    assert found[5] == 1
    assert found[3] == 0.5
    assert found[2] < found[1] < found[0]


def test_commits_that_only_a_broken_build_tells_apart_are_of_one_kind() -> None:
    answering = np.array([True, False, False, True])
    labels = kinds(np.tril(np.ones((4, 4), bool)), answering)
    assert labels[1] == labels[2] == labels[3] != labels[0]
    assert likeliest(np.array([0.1, 0.2, 0.3, 0.4]), labels) == (frozenset({1, 2, 3}), pytest.approx(0.9))


def test_the_fewest_commits_that_reach_the_confidence_are_credible() -> None:
    assert credible(np.array([0.1, 0.6, 0.3]), 0.9) == (1, 2)
    assert credible(np.array([0.02, 0.96, 0.02]), 0.95) == (1,)


def test_commits_that_are_the_same_share_what_is_known() -> None:
    tied = line(8).posterior(Knowledge({1: BEFORE}, ties=[(5, 1)]))
    assert tied[2:6].sum() < 0.01
    as_good = line(8).posterior(Knowledge({}, ties=[(5, None)]))
    assert as_good[:6].sum() < 0.02


def test_a_certain_culprit_is_confirmed_before_it_is_named() -> None:
    known = {commit: BEFORE if commit < 4 else AFTER for commit in range(8)}
    suspects = frozenset({4})
    assert decide(line(8), Knowledge(known), terms(8)) == Confirm(suspects)
    answer = decide(line(8), Knowledge(known, trials=[StepTrial(suspects, AFTER)]), terms(8))
    assert isinstance(answer, CulpritSet)
    assert (answer.suspects, answer.certain) == (suspects, True)
    assert answer.probability > 0.99


def test_a_confirmation_that_fails_sends_the_search_on() -> None:
    search, known = line(8), {3: BEFORE, 4: AFTER}
    trials = [StepTrial(frozenset({4}), BEFORE)]
    assert search.posterior(Knowledge(known))[4] > 0.9
    assert search.posterior(Knowledge(known, trials=trials))[4] < 0.5
    assert isinstance(decide(search, Knowledge(known, trials=trials), terms(8)), Measure)


def test_a_merge_is_after_whatever_its_branches_hold() -> None:
    # 0 and 1 lie on two branches, 2 merges them.
    contains = np.array([[1, 0, 0], [0, 1, 0], [1, 1, 1]], bool)
    weights = Search(contains, np.ones(3) / 3, AFTER).posterior(Knowledge({0: BEFORE, 1: AFTER}))
    assert weights.argmax() == 1
    assert weights[1] > 0.95


def test_information_is_largest_where_it_is_open_and_grows_with_precision() -> None:
    fine = line(2).information(np.array([0.0, 0.01, 0.1, 0.5]), None, 0.01)
    assert fine[0] == pytest.approx(0, abs=1e-9)
    assert np.all(np.diff(fine) > 0)
    assert fine[3] < 1
    assert line(2).information(np.array([0.5]), None, 0.2)[0] < fine[3]


def test_measuring_again_tells_much_where_a_reading_is_weak_and_little_where_it_is_clear() -> None:
    search = line(2)
    assert search.information(np.array([0.5]), Reading(EFFECT / 2, 0.1), 0.1)[0] > 0.1
    assert search.information(np.array([0.99]), AFTER, 0.01)[0] < 0.01


@pytest.mark.statistical
@pytest.mark.parametrize("commits", [64, 256])
@pytest.mark.parametrize(("effect", "noise"), [(math.log(1.3), 0.03), (math.log(3), 0.06)])
def test_culprits_are_found_in_noise_with_few_commits(commits: int, effect: float, noise: float) -> None:
    found = [searched(World(commits, effect, noise), seed) for seed in range(60)]
    assert sum(each.certain and each.right for each in found) >= 57
    assert not any(each.certain and not each.right for each in found)
    assert np.quantile([each.measured for each in found], 0.95) <= math.log2(commits) + 4


@pytest.mark.statistical
def test_exact_counts_find_small_effects_with_hardly_more_commits_than_halving_needs() -> None:
    found = [searched(World(64, math.log(1.1), exact=True), seed) for seed in range(60)]
    assert all(each.certain and each.right for each in found)
    assert np.mean([each.measured for each in found]) <= 6 + 1
    assert max(each.measured for each in found) <= 6 + 4


@pytest.mark.statistical
@pytest.mark.parametrize("noise", [0.02, 0.04])
def test_stated_confidence_is_honest_for_effects_near_the_noise(noise: float) -> None:
    """Where layout and noise are as large as the effect, innocents are not named: the answer stays open instead, and holds the culprit."""
    found = [searched(World(64, math.log(1.1), noise), seed) for seed in range(60)]
    named = [each for each in found if each.certain]
    assert sum(not each.right for each in named) <= 0.05 * len(found)
    assert sum(each.right for each in found) >= 54


def test_what_is_asked_ahead_is_what_the_search_asks_for_next_whatever_it_is_answered() -> None:
    search, known = line(16, exact=True), Knowledge({})
    first, *others = asked_ahead(search, known, terms(16), 3)
    assert decide(search, known, terms(16)) == Measure(first)
    after = [decide(search, Knowledge({first: reading}, measurements=1), terms(16)) for reading in (BEFORE, AFTER)]
    assert after == [Measure(other) for other in others]


def test_no_more_is_asked_ahead_than_a_search_can_ask_for() -> None:
    assert len(asked_ahead(line(4, exact=True), Knowledge({}), terms(4), 9)) <= 3
    assert asked_ahead(line(2, exact=True), Knowledge({0: BEFORE}), terms(2), 9) == ()
