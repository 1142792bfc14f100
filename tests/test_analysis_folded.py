"""Functions without a probe, named by the callers that are slower through them: each of them once, whatever calls it."""

from __future__ import annotations

from dataclasses import replace

import pytest

import findings as made
from perfdiff.analysis.findings import FunctionFinding, Verdict
from perfdiff.analysis.telling.folded import named
from perfdiff.records.schema import Change, Folded


def caller(number: int, name: str, extra_ns: float) -> FunctionFinding:
    found = made.plain(number, name, Verdict.REGRESSION, Change.AFFECTED, ratio=None, reason="it holds hash")
    return replace(found, rank=number, extra_ns=extra_ns, extra_ci_ns=(0.9 * extra_ns, 1.1 * extra_ns), share=extra_ns / 400.0)


def test_a_folded_function_stands_once_before_all_callers_that_are_slower_through_it() -> None:
    scan, fill = caller(1, "scan", 300.0), caller(2, "fill", 100.0)
    hash_ = made.plain(9, "hash", Verdict.UNCHANGED, Change.CHANGED, ratio=None, reason="").info
    folded = Folded(hash_, hosts=(scan.info.id, fill.info.id), base_calls={0: 5.0}, head_calls={0: 5.0}, call_ns=2.0, overhead=0.5)
    found = named([scan, fill], (folded,), ())
    assert [(each.info.name, each.rank) for each in found] == [("hash", 1), ("scan", 2), ("fill", 3)]
    first = found[0]
    assert first.extra_ns == pytest.approx(400.0)
    assert first.extra_ci_ns == pytest.approx((360.0, 440.0))
    assert first.share == pytest.approx(1.0)
    assert "its caller `scan` is slower through it" in first.reason
    assert [each.extra_ns for each in found[1:]] == [0.0, 0.0]
