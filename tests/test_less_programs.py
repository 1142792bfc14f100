"""Heads that are faster: none that does less is an improvement, and each that does the same is."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import families
from programs import LESS, Case, cases
from test_programs import summary

pytestmark = pytest.mark.integration
CASES = cases(LESS)
# Ends at once, leaves its session, stops and always prints something else, a thread that ends, an answer of old, a file cut short; and
# improvements beside files, other orders and numbers that always differ. All programs are compared by `scripts/bench less`.
HERE = frozenset(
    {"c-prints-error", "c-forks-away", "c-pid-and-less", "c-thread-ends", "py-stale-answer", "php-smaller-files"}
    | {"true-c-pid", "true-py-set", "true-php-hash"}
)


@pytest.mark.parametrize("case", [case for case in CASES if case.name in HERE], ids=lambda case: case.name)
def test_only_who_does_the_same_work_is_an_improvement(case: Case, tmp_path: Path, shared_cache: Path) -> None:
    findings = families.compared(case, tmp_path, shared_cache, fast=True)
    assert families.is_allowed(case, findings.verdict), summary(findings)


def test_programs_do_less_in_many_ways_and_as_many_are_truly_faster() -> None:
    counts = Counter(case.expected["verdict"] for case in CASES)
    assert counts["not-improvement"] >= 12
    assert counts["improvement"] >= 12
    assert len({case.expected["does"] for case in CASES}) == len(CASES)
