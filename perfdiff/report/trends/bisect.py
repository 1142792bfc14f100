"""The report of a bisect by growth: the culprit in a sentence, what was counted on the way, and the trends of the culprit."""

from __future__ import annotations

import math
from typing import Any

from perfdiff.analysis.search.bisection import CommitStanding
from perfdiff.analysis.search.growth import GrowthBisection, GrowthReading
from perfdiff.analysis.trends.findings import Difference
from perfdiff.report import markdown as tickets
from perfdiff.report import terminal
from perfdiff.report.bisect import SCHEMA, commit_cells, named, revision_document
from perfdiff.report.blocks import Block, Cell, Column, Fact, Facts, Sentence, Table, Tone
from perfdiff.report.json_text import json_text
from perfdiff.report.printable import printable, printable_values
from perfdiff.report.sentences.catalogue import say
from perfdiff.report.trends import wording
from perfdiff.report.trends.clean import clean
from perfdiff.report.trends.document import answered, title
from perfdiff.report.trends.document import blocks as trend_blocks
from perfdiff.report.trends.json_document import json_document
from perfdiff.report.trends.page import page
from perfdiff.report.trends.text import answer as trend_answer
from perfdiff.report.wording import ABSENT, plural

METRIC = "growth"


def answer(found: GrowthBisection) -> str:
    """Return the culprit, and how it differs from what stands before it."""
    return f"{printable(say(found.sentence))}; {trend_answer(found.findings)}"


def text(found: GrowthBisection, *, width: int = 100, colour: bool = False) -> str:
    """Return the search, then the trends of the culprit."""
    shown = clean(found.findings)
    behind = [Sentence(title(shown), Tone.MUTED), answered(shown), *trend_blocks(shown)]
    return terminal.render_blocks([*blocks(found), *behind], width=width, colour=colour, all_rows=True)


def markdown(found: GrowthBisection) -> str:
    """Return the same for a ticket."""
    shown = clean(found.findings)
    said, *search = blocks(found)
    assert isinstance(said, Sentence)
    return tickets.render_blocks(said, title(shown), (*search, answered(shown), *trend_blocks(shown)))


def html(found: GrowthBisection) -> str:
    """Return the page of the culprit's trends, the search ahead of them."""
    return page(found.findings, blocks(found))


def render_json(found: GrowthBisection) -> str:
    """Return the bisect as `perfdiff.bisect/1`, with the trends of the culprit, `perfdiff.trends/1`, under `report`."""
    difference = found.symptom.difference
    file, function = found.symptom.head
    document = {
        "schema": SCHEMA,
        "good": revision_document(found.good),
        "bad": revision_document(found.bad),
        "culprit": found.suspects[0].commit if len(found.suspects) == 1 else None,
        "confidence": 1.0,
        "certain": True,
        "suspects": [{"commit": each.commit, "summary": each.summary} for each in found.suspects],
        "measured": [_measured(each) for each in found.measured],
        "skipped": [{"commit": each.revision.commit, "reason": each.reason} for each in found.passed],
        "alike": [{"commit": each.revision.commit, "as": each.other.commit} for each in found.alike],
        "commits": found.commits,
        "followed": {
            "function": function,
            "file": file,
            "metric": METRIC,
            "says": found.symptom.says,
            "growth": wording.change(difference),
            **_ratio(difference),
        },
        "report": json_document(found.findings),
    }
    return json_text(document) + "\n"


def blocks(found: GrowthBisection) -> tuple[Block, ...]:
    """Return what is said of the search itself, the answer first."""
    found = printable_values(found)
    effort = plural(len(found.measured), "commit")
    if found.alike:
        effort += f"; {plural(len(found.alike), 'commit')} needed none, being the same as another for what is run"
    if found.passed:
        effort += f"; {len(found.passed):,} skipped"
    facts = (
        Fact("followed", f"{found.symptom.says}: {wording.change(found.symptom.difference)} between the ends"),
        Fact("range", f"{named(found.good)} to {named(found.bad)}, {plural(found.commits, 'commit')}"),
        Fact("counted", effort),
    )
    said: list[Block] = [Sentence(say(found.sentence), Tone.REGRESSION), Facts(facts)]
    if len(found.suspects) > 1:
        said.append(Table("Suspects", (Column("commit"), Column("subject")), tuple(commit_cells(each) for each in found.suspects)))
    if found.measured:
        columns = (Column("commit"), Column("subject"), Column("is"), Column("growth since good"), Column("at 10 times the inputs"))
        said.append(Table("Counted, oldest first", columns, tuple(_row(each) for each in found.measured)))
    if found.passed:
        rows = tuple((*commit_cells(each.revision), Cell(each.reason)) for each in found.passed)
        said.append(Table("Skipped", (Column("commit"), Column("subject"), Column("reason")), rows))
    return tuple(said)


def _row(each: GrowthReading) -> tuple[Cell, ...]:
    tone = Tone.REGRESSION if each.standing is CommitStanding.BAD else Tone.PLAIN
    growth = wording.change(each.difference) if each.difference else "as it was"
    cost = wording.both(each.difference) if each.difference else ABSENT
    return (*commit_cells(each.revision), Cell(each.standing.value, tone), Cell(growth, tone), Cell(cost))


def _measured(each: GrowthReading) -> dict[str, Any]:
    return {
        "commit": each.revision.commit,
        "verdict": each.standing.value,
        "times": 1,
        "exact": True,
        "growth": wording.change(each.difference) if each.difference else None,
        **_ratio(each.difference),
    }


def _ratio(difference: Difference | None) -> dict[str, Any]:
    """Return head's cost over base's far beyond what was counted, 1 without a difference, None where base has none; counts are exact."""
    if difference is None:
        return {"ratio": 1.0, "ci": [1.0, 1.0]}
    ratio = difference.head_cost / difference.base_cost if difference.base_cost else math.inf
    return {"ratio": ratio, "ci": [ratio, ratio]} if math.isfinite(ratio) else {"ratio": None, "ci": None}
