"""What is said of whole runs that leave the answer open."""

from __future__ import annotations

import pytest

from perfdiff.analysis.findings import EndToEnd, Ratio, Verdict
from perfdiff.analysis.verdicts.conclusion import Evidence, conclude
from perfdiff.analysis.verdicts.wholeruns import WholeRuns
from perfdiff.config import CompareConfig
from perfdiff.records.schema import Point


@pytest.mark.parametrize(
    ("needed", "says"),
    [
        (160, "(26 pairs); about 160 pairs of runs would decide: raise measure.budget_s"),
        (29_579, "(26 pairs), too near to the smallest effect of interest for 320 pairs to decide: try a quieter machine"),
        (0, "(26 pairs): raise measure.budget_s, or run on a quieter machine"),
    ],
)
def test_what_would_decide_is_told_where_it_is_within_reach(needed: int, says: str) -> None:
    point = Point(0, "run", {}, "./prog")
    end = EndToEnd(point, 1e8, 1.05e8, Ratio(1.05, 0.97, 1.12, 26, 26), None, needed=needed)
    found = conclude((), Evidence(WholeRuns((end,))), CompareConfig())
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.sentence == f"Inconclusive: whole runs at run take ×1.05 [0.97, 1.12] the CPU time {says}"
