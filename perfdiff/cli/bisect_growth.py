"""`perfdiff bisect GOOD BAD --metric growth`: find the commit that made something grow faster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from perfdiff.cli import options, output
from perfdiff.errors import UsageError

if TYPE_CHECKING:
    from perfdiff.analysis.search.growth import GrowthBisection
    from perfdiff.progress import Progress
    from perfdiff.searches.question import Question

FORMATS = (options.Format.TEXT, options.Format.MARKDOWN, options.Format.HTML, options.Format.JSON)


def check_format(chosen: options.Format) -> None:
    """Raise UsageError where trends are not told in a format."""
    if chosen not in FORMATS:
        raise UsageError(f"growth is not told as {chosen.value}; there are {', '.join(FORMATS)}", slug="format-unknown")


def found(question: Question, progress: Progress) -> GrowthBisection:
    """Search; raise PerfdiffError where there is nothing to find, or it cannot be counted."""
    from perfdiff.searches import growth_bisect

    return growth_bisect.bisect(question, progress)


def rendered(bisection: GrowthBisection, chosen: options.Format, output_file: Path | None) -> str:
    """Return the report."""
    from perfdiff.report.trends import bisect as report

    match chosen:
        case options.Format.JSON:
            return report.render_json(bisection)
        case options.Format.HTML:
            return report.html(bisection)
        case options.Format.MARKDOWN:
            return report.markdown(bisection)
    return report.text(bisection, width=output.width(output_file), colour=output.colour(output_file))


def answer(bisection: GrowthBisection) -> str:
    """Return the culprit in a sentence."""
    from perfdiff.report.trends import bisect as report

    return report.answer(bisection)
