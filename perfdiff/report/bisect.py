"""The report of a bisect: the culprit in a sentence, what was measured and what could not be, as blocks and as `perfdiff.bisect/1`."""

from __future__ import annotations

import json
from typing import Any

from perfdiff import units
from perfdiff.analysis.findings import Ratio
from perfdiff.analysis.search.bisection import Bisection, CommitStanding, Measured
from perfdiff.analysis.search.symptom import Figure, figures
from perfdiff.records.schema import Revision
from perfdiff.report.blocks import Block, Cell, Column, Fact, Facts, Sentence, Table, Tone
from perfdiff.report.document import Document
from perfdiff.report.json_report import render as render_report
from perfdiff.report.json_text import json_text
from perfdiff.report.printable import printable_values
from perfdiff.report.sentences.catalogue import say
from perfdiff.report.wording import ABSENT, interval, plural

SCHEMA = "perfdiff.bisect/1"
_SHORT = 10  # digits of a commit's id
_TONES = {CommitStanding.BAD: Tone.REGRESSION, CommitStanding.GOOD: Tone.PLAIN, CommitStanding.UNCLEAR: Tone.INCONCLUSIVE}


def render_json(found: Bisection, report: Document) -> str:
    """Return the bisect as JSON, with the comparison under `report`."""
    exact = found.symptom.exact
    document = {
        "schema": SCHEMA,
        "good": revision_document(found.good),
        "bad": revision_document(found.bad),
        "culprit": found.suspects[0].commit if found.certain and len(found.suspects) == 1 else None,
        "confidence": found.confidence,
        "certain": found.certain,
        "suspects": [{"commit": each.commit, "summary": each.summary} for each in found.suspects],
        "measured": [{**_measured(each), "exact": exact} for each in found.measured],
        "skipped": [{"commit": each.revision.commit, "reason": each.reason} for each in found.passed],
        "alike": [{"commit": each.revision.commit, "as": each.other.commit} for each in found.alike],
        "commits": found.commits,
        "followed": {
            "function": None if found.symptom.figure is Figure.WHOLE else found.symptom.name,
            "file": found.symptom.file or None,
            "metric": found.symptom.metric,
            "says": found.symptom.says,
            **_ratio(found.ends),
        },
        "report": json.loads(render_report(report)),
    }
    return json_text(document) + "\n"


def blocks(found: Bisection) -> tuple[Block, ...]:
    """Return what is said of the search itself."""
    found = printable_values(found)
    facts = [
        Fact("followed", f"{found.symptom.says}: {figures(found.symptom.expected)} between the ends"),
        Fact("range", f"{named(found.good)} to {named(found.bad)}, {plural(found.commits, 'commit')}"),
        Fact("measured", _effort(found)),
    ]
    said: list[Block] = [
        Sentence(say(found.sentence), Tone.REGRESSION if found.certain else Tone.INCONCLUSIVE),
        Facts(tuple(facts)),
    ]
    if len(found.suspects) > 1:
        said.append(Table("Suspects", (Column("commit"), Column("subject")), tuple(commit_cells(each) for each in found.suspects)))
    if found.measured:
        columns = (Column("commit"), Column("subject"), Column("is"), Column("ratio to good", right=True), Column("times", right=True))
        said.append(Table("Measured, oldest first", columns, tuple(_row(each, exact=found.symptom.exact) for each in found.measured)))
    if found.passed:
        rows = tuple((*commit_cells(each.revision), Cell(each.reason)) for each in found.passed)
        said.append(Table("Skipped", (Column("commit"), Column("subject"), Column("reason")), rows))
    return tuple(said)


def _effort(found: Bisection) -> str:
    said = f"{plural(len(found.measured), 'commit')}, {plural(sum(each.times for each in found.measured), 'measurement')}"
    if found.alike:
        said += f"; {plural(len(found.alike), 'commit')} needed none, being the same as another for what is run"
    if found.passed:
        said += f"; {len(found.passed):,} skipped"
    return said


def _row(each: Measured, *, exact: bool) -> tuple[Cell, ...]:
    shown = units.ratio(each.ratio.value) if exact else interval(each.ratio)
    return (*commit_cells(each.revision), Cell(each.standing.value, _TONES[each.standing]), Cell(shown), Cell(f"{each.times:,}"))


def commit_cells(revision: Revision) -> tuple[Cell, Cell]:
    """Return a commit in a table, with its subject."""
    return Cell((revision.commit or "")[:_SHORT], code=True), Cell(revision.summary or ABSENT, Tone.MUTED)


def named(revision: Revision) -> str:
    """Return an end as the user named it, with its commit."""
    commit = (revision.commit or "")[:_SHORT]
    return commit if (revision.commit or "").startswith(revision.rev) else f"{revision.rev} ({commit})"


def _measured(each: Measured) -> dict[str, Any]:
    return {"commit": each.revision.commit, "verdict": each.standing.value, "times": each.times, **_ratio(each.ratio)}


def _ratio(ratio: Ratio) -> dict[str, Any]:
    return {"ratio": ratio.value, "ci": [ratio.low, ratio.high]}


def revision_document(revision: Revision) -> dict[str, Any]:
    """Return an end for JSON."""
    return {"rev": revision.rev, "commit": revision.commit}
