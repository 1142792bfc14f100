"""Unchanged functions that wait for other cores or nodes because of a change elsewhere, and whose change that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from perfdiff.analysis.findings import Verdict
from perfdiff.analysis.links import behind_state
from perfdiff.analysis.memory import waits
from perfdiff.analysis.verdict import Case, Decision


def put_down(decisions: dict[int, Decision], cases: Sequence[Case]) -> dict[int, tuple[int, ...]]:
    """Put the waiting of unchanged functions down to the suspects behind it, which become guilty in `decisions`.

    Return the functions that wait, with those suspects.
    """
    found = {}
    for case in cases:
        suspects = () if case.info.change.is_suspect or not case.contended else _likeliest(case)
        for suspect in suspects:
            if decisions[suspect].verdict is not Verdict.REGRESSION:
                reason = f"through it `{case.info.name}` is slower on machines with more cores or nodes: there {waits(case.contended)}"
                decisions[suspect] = Decision(Verdict.REGRESSION, reason, case.contended)
        if suspects:
            found[case.info.id] = suspects
    return found


def held_up(cases: Sequence[Case], waiting: Mapping[int, tuple[int, ...]]) -> dict[int, Decision]:
    """Return the decisions on the functions that wait."""
    names = {case.info.id: case.info.name for case in cases}
    found = {}
    for case in cases:
        if case.info.id in waiting:
            behind = ", ".join(f"`{names[suspect]}`" for suspect in waiting[case.info.id])
            reason = f"its code is unchanged; {waits(case.contended)} because of {behind}"
            found[case.info.id] = Decision(Verdict.REGRESSION, reason, case.contended)
    return found


def _likeliest(case: Case) -> tuple[int, ...]:
    """Return the suspects likeliest behind a function's state: by shared data, else the nearest."""
    links = behind_state(case.attribution.web, case.info.id)
    most = max((link.weight for link in links), default=0.0)
    return tuple(link.suspect for link in links if link.weight == most)
