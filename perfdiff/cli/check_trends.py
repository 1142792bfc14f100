"""Saved trends as assertions, for `perfdiff check`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from perfdiff.cli import exits, output

if TYPE_CHECKING:
    from perfdiff.analysis.trends.assertions import CheckedTrends, SavedTrends
    from perfdiff.progress import Progress
    from perfdiff.request import Request


def checked(saved: SavedTrends, asked: Request, progress: Progress) -> CheckedTrends:
    """Count the places of a revision and hold their trends against saved ones; raise PerfdiffError where that cannot be done."""
    from perfdiff import trending
    from perfdiff.analysis.trends.assertions import check_trends
    from perfdiff.models.clusters import ALPHA
    from perfdiff.report.trends.clean import clean

    found = trending.trends(asked, progress, alpha=ALPHA, instances=saved.instances)
    progress.stage("checking", None)
    return check_trends(saved, clean(found), seed=asked.config.compare.seed)


def written(found: CheckedTrends, output_file: Path | None, *, as_json: bool) -> str:
    """Return the outcome as JSON or as text."""
    from perfdiff.report.json_text import json_text
    from perfdiff.report.trends import check as report

    if as_json:
        return json_text(report.json_document(found))
    return report.text(found, width=output.width(output_file), colour=output.colour(output_file))


def answer(found: CheckedTrends) -> str:
    """Return the outcome in a sentence."""
    from perfdiff.report.trends import check as report

    return report.answer(found)


def code(found: CheckedTrends, *, strict: bool) -> exits.ExitCode:
    """Return the exit code, as for annotations."""
    from perfdiff.analysis.trends.assertions import Ruling

    match found.verdict:
        case Ruling.VIOLATED:
            return exits.ExitCode.REGRESSION
        case Ruling.NOT_JUDGED:
            return exits.ExitCode.NOT_MEASURED
        case Ruling.OPEN if strict:
            return exits.ExitCode.INCONCLUSIVE
    return exits.ExitCode.FINE
