"""What is said of the programs of `fixtures/search` is true: as it was measured by hand, and as it is measured again of some of them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import search_truth
from programs import SEARCH, Case, cases

CASES = {case.name: case for case in cases(SEARCH)}
LARGEST = 16_384  # bytes of a recipe's input
LARGEST_OF_LIBRARY = 65_536  # where only a library's code pays
GROWTHS = {"linear", "quadratic", "cubic", "exponential"}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_the_recorded_ratio_is_within_the_bounds_of_what_is_said(case: Case) -> None:
    least, most = (search_truth.SLOWER, float("inf")) if case.expected["verdict"] == "slower" else search_truth.ALIKE
    assert least <= case.expected["ratio"] <= most


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_samples_are_small_and_inputs_that_show_it_are_not_large(case: Case) -> None:
    sizes = [path.stat().st_size for path in (case.folder / "common" / "samples").iterdir()]
    assert 2 <= len(sizes) <= 5
    assert all(100 <= size <= 1500 for size in sizes)
    most = LARGEST_OF_LIBRARY if "library" in case.expected else LARGEST
    assert max(len(search_truth.recipe_input(recipe)) for recipe in search_truth.recipes(case)) <= most


def test_slower_programs_hide_it_in_twelve_ways_and_nearly_as_many_are_slower_on_no_input() -> None:
    counts = Counter((case.expected["verdict"], case.expected["language"]) for case in CASES.values())
    languages = ("c", "c++", "python", "java", "php")
    assert [counts["slower", language] for language in languages] == [4, 1, 3, 2, 2]
    assert [counts["unchanged", language] for language in languages] == [3, 1, 2, 2, 2]
    slower = [case.expected for case in CASES.values() if case.expected["verdict"] == "slower"]
    assert len({expected["hides"] for expected in slower}) == 12
    assert all(expected["growth"] in GROWTHS and expected["guilty"] and expected["changed"] for expected in slower)
    assert all(len(search_truth.recipes(case)) == 3 for case in CASES.values() if case.expected["verdict"] == "unchanged")


def test_a_recipe_numbers_its_repetitions() -> None:
    recipe = {"prefix": "<", "repeated": "a{i} ", "suffix": ">", "times": 3}
    assert search_truth.recipe_input(recipe) == b"<a00000 a00001 a00002 >"
    assert search_truth.recipe_input(recipe, 1) == b"<a00000 >"


@pytest.mark.integration
def test_a_slower_head_is_slower_by_hand_on_its_recipe_alone(tmp_path: Path) -> None:
    case = CASES["c-unclosed-links"]
    truth = search_truth.measured(case, tmp_path, runs=9)
    [taken] = truth.recipes
    assert taken.ratio >= search_truth.SLOWER
    assert all(taken.ratio < 2 for taken in truth.samples)
    assert all(taken.is_same_output for taken in (*truth.samples, *truth.recipes))
    growth = truth.growth(case)
    assert growth is not None
    assert 1.5 < growth < 2.5
