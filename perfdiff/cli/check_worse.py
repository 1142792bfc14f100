"""Annotations held against runs in which services are worse to reach, for `perfdiff check --delay`, `--sweep` and the like."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from perfdiff.config import CompareConfig
from perfdiff.configuration import Worse, links

if TYPE_CHECKING:
    from perfdiff.analysis.annotations.assertion import AssertionStanding
    from perfdiff.analysis.annotations.checking import Checked
    from perfdiff.analysis.annotations.sweep import Sweep
    from perfdiff.models.annotation import Annotation
    from perfdiff.records.recorded import Recorded


def checked(rules: Sequence[Annotation], recorded: Recorded, worse: Worse, config: CompareConfig) -> Checked | Sweep:
    """Hold what was recorded against annotations, once, or at each delay of a sweep."""
    from perfdiff.analysis.annotations.checking import check_recorded
    from perfdiff.analysis.annotations.sweep import sweep, told

    asked = links(worse)
    swept = next((link for link in asked if link.delays_ms), None)
    notes = tuple(told([link for link in asked if not link.delays_ms], recorded.experiment))
    if swept is not None:
        of_all = sweep(rules, recorded, swept.service, swept.parameter, config)
        return replace(of_all, notes=(*notes, *of_all.notes))
    found = check_recorded(rules, recorded, recorded.sides[-1], config)
    return replace(found, notes=(*notes, *found.notes))


def verdict(found: Checked | Sweep) -> AssertionStanding:
    """Return how the whole stands; a sweep is an experiment: only what is violated without any delay is."""
    from perfdiff.analysis.annotations.assertion import AssertionStanding
    from perfdiff.analysis.annotations.checking import Checked

    if isinstance(found, Checked):
        return found.verdict
    first = found.steps[0]
    if all(step.checked.verdict is AssertionStanding.NOT_JUDGED for step in found.steps):
        return AssertionStanding.NOT_JUDGED
    return (
        first.checked.verdict
        if first.delay_ms == 0 and first.checked.verdict is not AssertionStanding.NOT_JUDGED
        else AssertionStanding.HOLDS
    )


def report(found: Checked | Sweep) -> Any:
    """Return the module that tells of it: `text`, `answer` and `json_document`."""
    from perfdiff.analysis.annotations.checking import Checked
    from perfdiff.report import check, sweep

    return check if isinstance(found, Checked) else sweep
