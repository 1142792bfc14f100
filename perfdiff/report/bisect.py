"""The report of a bisect: the culprit in a sentence, what was measured and what could not be, as blocks and as `perfdiff.bisect/1`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from perfdiff import units
from perfdiff.analysis.findings import Ratio
from perfdiff.analysis.search.bisection import Bisection, CommitStanding, Measured
from perfdiff.analysis.search.symptom import Figure, GrowthSymptom, Symptom, figures
from perfdiff.analysis.series import GROWTH
from perfdiff.analysis.trends.findings import Difference
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


def render_json(found: Bisection, report: dict[str, Any]) -> str:
    """Return the bisect as JSON, with the comparison, or the trends, of the culprit under `report`."""
    document = {
        "schema": SCHEMA,
        "good": {"rev": found.good.rev, "commit": found.good.commit},
        "bad": {"rev": found.bad.rev, "commit": found.bad.commit},
        "culprit": found.suspects[0].commit if found.certain and len(found.suspects) == 1 else None,
        "confidence": found.confidence,
        "certain": found.certain,
        "suspects": [{"commit": suspect.commit, "summary": suspect.summary} for suspect in found.suspects],
        "measured": [{**_measured(commit), "exact": _is_exact(found.symptom)} for commit in found.measured],
        "skipped": [{"commit": commit.revision.commit, "reason": commit.reason} for commit in found.passed],
        "alike": [{"commit": commit.revision.commit, "as": commit.other.commit} for commit in found.alike],
        "commits": found.commits,
        "followed": _followed(found.symptom, found.ends),
        "report": report,
    }
    return json_text(document) + "\n"


def blocks(found: Bisection) -> tuple[Block, ...]:
    """Return what is said of the search itself."""
    return tuple(_blocks(printable_values(found)))


def _blocks(found: Bisection) -> Iterator[Block]:
    symptom, measured = found.symptom, found.measured
    ends = growing.change(symptom.difference) if isinstance(symptom, GrowthSymptom) else figures(symptom.expected)
    facts = (
        Fact("followed", f"{symptom.says}: {ends} between the ends"),
        Fact("range", f"{_named(found.good)} to {_named(found.bad)}, {plural(found.commits, 'commit')}"),
        Fact("counted" if found.is_counted else "measured", _effort(found)),
    )
    yield Sentence(say(found.sentence), Tone.REGRESSION if found.certain else Tone.INCONCLUSIVE)
    yield Facts(facts)
    if len(found.suspects) > 1:
        yield Table("Suspects", _COMMIT, tuple(map(_commit_cells, found.suspects)))
    if measured and found.is_counted:
        columns = (*_COMMIT, Column("is"), Column("growth since good"), Column("at 10 times the inputs"))
        yield Table("Counted, oldest first", columns, tuple(_row(commit, exact=True) for commit in measured))
    elif measured:
        columns = (*_COMMIT, Column("is"), Column("ratio to good", right=True), Column("times", right=True))
        yield Table("Measured, oldest first", columns, tuple(_row(commit, exact=_is_exact(symptom)) for commit in measured))
    if found.passed:
        rows = tuple((*_commit_cells(commit.revision), Cell(commit.reason)) for commit in found.passed)
        yield Table("Skipped", (*_COMMIT, Column("reason")), rows)


def _effort(found: Bisection) -> str:
    said = plural(len(found.measured), "commit")
    if not found.is_counted:
        said += f", {plural(sum(commit.times for commit in found.measured), 'measurement')}"
    if found.alike:
        said += f"; {plural(len(found.alike), 'commit')} needed none, being the same as another for what is run"
    if found.passed:
        said += f"; {len(found.passed):,} skipped"
    return said


def _row(commit: Measured, *, exact: bool) -> tuple[Cell, ...]:
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
        return {"function": function, "file": file, "metric": GROWTH, "says": symptom.says, **_shown(symptom.difference)}
    function_name = None if symptom.figure is Figure.WHOLE else symptom.name
    return {"function": function_name, "file": symptom.file or None, "metric": symptom.metric, "says": symptom.says, **_shown(ends)}


def _measured(commit: Measured) -> dict[str, Any]:
    return {"commit": commit.revision.commit, "verdict": commit.standing.value, "times": commit.times, **_shown(commit.shown)}


def _shown(shown: Ratio | Difference | None) -> dict[str, Any]:
    """Return a ratio with its interval; of growth, which is exact, head's cost over base's far beyond what was counted.

    That is 1 without a difference, and None where base has no cost.
    """
    if isinstance(shown, Ratio):
        return {"ratio": shown.value, "ci": [shown.low, shown.high]}
    if shown is None:
        return {"growth": None, "ratio": 1.0, "ci": [1.0, 1.0]}
    ratio = shown.head_cost / shown.base_cost if shown.base_cost else math.inf
    is_known = math.isfinite(ratio)
    return {"growth": growing.change(shown), "ratio": ratio if is_known else None, "ci": [ratio, ratio] if is_known else None}
