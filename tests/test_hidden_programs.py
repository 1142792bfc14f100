"""Programs whose change hides outside of the functions that take longer: none that is slower is called safe, none that is not, slower."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import families
from perfdiff.report.sentences.catalogue import say
from programs import HIDDEN, cases
from test_programs import summary

pytestmark = pytest.mark.integration
CASES = {case.name: case for case in cases(HIDDEN)}
# One of each kind of hiding place, over all languages. All programs are compared by `scripts/bench hidden`.
SLOWER = (
    "c-access",
    "c-archive-order",
    "c-number-argument",
    "c-dlopen",
    "py-registry-order",
    "py-docstring-number",
    "py-readme-patterns",
    "py-symlink",
    "py-directory-listing",
    "java-main-class",
    "php-attribute",
    "php-permissions",
)
HARMLESS = (
    "c-same-constructors",
    "cpp-same-documents",
    "py-same-registry-order",
    "py-same-symlink",
    "java-same-comments",
    "php-same-doc-comment",
)
MOST_OPEN = 2  # of the harmless ones, which the noise of a busy machine may leave open


@pytest.mark.parametrize("name", SLOWER)
def test_no_slower_program_is_called_safe(name: str, tmp_path: Path, shared_cache: Path) -> None:
    findings = families.compared(CASES[name], tmp_path, shared_cache, fast=True)
    assert families.is_allowed(CASES[name], findings.verdict), summary(findings)


def test_no_harmless_program_is_called_slower_and_few_are_left_open(tmp_path: Path, shared_cache: Path) -> None:
    answers = {name: families.compared(CASES[name], tmp_path, shared_cache, fast=True) for name in HARMLESS}
    wrong = {name: summary(findings) for name, findings in answers.items() if not families.is_allowed(CASES[name], findings.verdict)}
    assert wrong == {}
    still_open = {name: say(findings.sentence) for name, findings in answers.items() if not families.is_best(CASES[name], findings.verdict)}
    assert len(still_open) <= MOST_OPEN, still_open


def test_programs_hide_their_change_in_many_places_over_all_languages() -> None:
    by_kind = Counter((case.expected["language"], case.expected["verdict"]) for case in CASES.values())
    assert {language for language, _ in by_kind} == {"c", "c++", "python", "java", "php"}
    assert sum(count for (_, verdict), count in by_kind.items() if verdict == "slower") >= 40
    assert sum(count for (_, verdict), count in by_kind.items() if verdict == "unchanged") >= 25
    places = [case.expected["hides"] for case in CASES.values() if case.expected["verdict"] == "slower"]
    assert len({*places}) >= 40
