"""The report of a bisect: the culprit in a sentence, what was measured and what could not be, as blocks and as `perfdiff.bisect/1`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from perfdiff import units
from perfdiff.analysis.findings import Ratio
from perfdiff.analysis.search.bisection import Bisection, CommitStanding, MeasuredCommit
from perfdiff.analysis.search.symptom import Figure, GrowthSymptom, Symptom, figures
from perfdiff.analysis.series import GROWTH
from perfdiff.analysis.trends.findings import GrowthDifference
from perfdiff.records.schema import Revision
from perfdiff.report.blocks import Block, Cell, Column, Fact, Facts, Sentence, Table, Tone
from perfdiff.report.json_text import json_text
from perfdiff.report.printable import printable_values
from perfdiff.report.sentences.catalogue import say
from perfdiff.report.trends import wording as growing
from perfdiff.report.wording import ABSENT, interval, plural

SCHEMA = "perfdiff.bisect/1"
_SHORT = 10  # digits of a commit's id
_TONES = {CommitStanding.BAD: Tone.REGRESSION, CommitStanding.GOOD: Tone.PLAIN, CommitStanding.UNCLEAR: Tone.INCONCLUSIVE}
_COMMIT = (Column("commit"), Column("subject"))


def render_json(bisection: Bisection, report: dict[str, Any]) -> str:
    """Return the bisect as JSON, with the comparison, or the trends, of the culprit under `report`."""
    document = {
        "schema": SCHEMA,
        "good": {"rev": bisection.good.rev, "commit": bisection.good.commit},
        "bad": {"rev": bisection.bad.rev, "commit": bisection.bad.commit},
        "culprit": bisection.suspects[0].commit if bisection.certain and len(bisection.suspects) == 1 else None,
        "confidence": bisection.confidence,
        "certain": bisection.certain,
        "suspects": [{"commit": suspect.commit, "summary": suspect.summary} for suspect in bisection.suspects],
        "measured": [{**_measured(commit), "exact": _is_exact(bisection.symptom)} for commit in bisection.measured],
        "skipped": [{"commit": commit.revision.commit, "reason": commit.reason} for commit in bisection.passed],
        "alike": [{"commit": commit.revision.commit, "as": commit.other.commit} for commit in bisection.alike],
        "commits": bisection.commits,
        "followed": _followed(bisection.symptom, bisection.ends),
        "report": report,
    }
    return json_text(document) + "\n"


def blocks(bisection: Bisection) -> tuple[Block, ...]:
    """Return the blocks that describe the search itself."""
    return tuple(_blocks(printable_values(bisection)))


def _blocks(bisection: Bisection) -> Iterator[Block]:
    symptom, measured = bisection.symptom, bisection.measured
    ends = growing.change(symptom.difference) if isinstance(symptom, GrowthSymptom) else figures(symptom.expected)
    facts = (
        Fact("followed", f"{symptom.says}: {ends} between the ends"),
        Fact("range", f"{_named(bisection.good)} to {_named(bisection.bad)}, {plural(bisection.commits, 'commit')}"),
        Fact("counted" if bisection.is_counted else "measured", _effort(bisection)),
    )
    yield Sentence(say(bisection.sentence), Tone.REGRESSION if bisection.certain else Tone.INCONCLUSIVE)
    yield Facts(facts)
    if len(bisection.suspects) > 1:
        yield Table("Suspects", _COMMIT, tuple(map(_commit_cells, bisection.suspects)))
    if measured and bisection.is_counted:
        columns = (*_COMMIT, Column("is"), Column("growth since good"), Column("at 10 times the inputs"))
        yield Table("Counted, oldest first", columns, tuple(_row(commit, exact=True) for commit in measured))
    elif measured:
        columns = (*_COMMIT, Column("is"), Column("ratio to good", right=True), Column("times", right=True))
        yield Table("Measured, oldest first", columns, tuple(_row(commit, exact=_is_exact(symptom)) for commit in measured))
    if bisection.passed:
        rows = tuple((*_commit_cells(commit.revision), Cell(commit.reason)) for commit in bisection.passed)
        yield Table("Skipped", (*_COMMIT, Column("reason")), rows)


def _effort(bisection: Bisection) -> str:
    said = plural(len(bisection.measured), "commit")
    if not bisection.is_counted:
        said += f", {plural(sum(commit.times for commit in bisection.measured), 'measurement')}"
    if bisection.alike:
        said += f"; {plural(len(bisection.alike), 'commit')} needed none, being the same as another for what is run"
    if bisection.passed:
        said += f"; {len(bisection.passed):,} skipped"
    return said


def _row(commit: MeasuredCommit, *, exact: bool) -> tuple[Cell, ...]:
    shown, tone = commit.shown, _TONES[commit.standing]
    standing = (*_commit_cells(commit.revision), Cell(commit.standing.value, tone))
    if isinstance(shown, Ratio):
        return (*standing, Cell(units.ratio(shown.value) if exact else interval(shown)), Cell(f"{commit.times:,}"))
    growth, cost = (growing.change(shown), growing.both(shown)) if shown else ("as it was", ABSENT)
    return (*standing, Cell(growth, tone), Cell(cost))


def _commit_cells(revision: Revision) -> tuple[Cell, Cell]:
    return Cell((revision.commit or "")[:_SHORT], code=True), Cell(revision.summary or ABSENT, Tone.MUTED)


def _named(revision: Revision) -> str:
    """Return an end as the user named it, with its commit."""
    commit = (revision.commit or "")[:_SHORT]
    return commit if (revision.commit or "").startswith(revision.rev) else f"{revision.rev} ({commit})"


def _is_exact(symptom: Symptom | GrowthSymptom) -> bool:
    return isinstance(symptom, GrowthSymptom) or symptom.exact


def _followed(symptom: Symptom | GrowthSymptom, ends: Ratio | None) -> dict[str, Any]:
    if isinstance(symptom, GrowthSymptom):
        file, function = symptom.head
        return {"function": function, "file": file, "metric": GROWTH, "says": symptom.says, **_ratio_document(symptom.difference)}
    function_name = None if symptom.figure is Figure.WHOLE else symptom.name
    return {
        "function": function_name,
        "file": symptom.file or None,
        "metric": symptom.metric,
        "says": symptom.says,
        **_ratio_document(ends),
    }


def _measured(commit: MeasuredCommit) -> dict[str, Any]:
    return {"commit": commit.revision.commit, "verdict": commit.standing.value, "times": commit.times, **_ratio_document(commit.shown)}


def _ratio_document(difference: Ratio | GrowthDifference | None) -> dict[str, Any]:
    """Return a ratio with its interval; of growth, which is exact, head's cost over base's far beyond what was counted.

    That is 1 without a difference, and None where base has no cost.
    """
    if isinstance(difference, Ratio):
        return {"ratio": difference.value, "ci": [difference.low, difference.high]}
    if difference is None:
        return {"growth": None, "ratio": 1.0, "ci": [1.0, 1.0]}
    ratio = difference.head_cost / difference.base_cost if difference.base_cost else math.inf
    is_known = math.isfinite(ratio)
    return {"growth": growing.change(difference), "ratio": ratio if is_known else None, "ci": [ratio, ratio] if is_known else None}
