"""`perfdiff bisect GOOD BAD --metric growth`: find the commit that made something grow faster."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from perfdiff.cli import options, output
from perfdiff.cli.destinations import Destination
from perfdiff.errors import UsageError

if TYPE_CHECKING:
    from perfdiff.analysis.search.growth import GrowthBisection
    from perfdiff.progress import Progress
    from perfdiff.searches.question import Question

FORMATS = (options.Format.TEXT, options.Format.MARKDOWN, options.Format.HTML, options.Format.JSON)


def check_formats(places: Iterable[Destination]) -> None:
    """Raise UsageError where trends are not told in one of the formats."""
    for place in places:
        if place.form not in FORMATS:
            raise UsageError(f"growth is not told as {place.form.value}; there are {', '.join(FORMATS)}", slug="format-unknown")


def found(question: Question, progress: Progress) -> GrowthBisection:
    """Search; raise PerfdiffError where there is nothing to find, or it cannot be counted."""
    from perfdiff.searches import growth_bisect

    return growth_bisect.bisect(question, progress)


def rendered(bisection: GrowthBisection, place: Destination) -> str:
    """Return the report that a place gets."""
    from perfdiff.report.trends import bisect as report

    match place.form:
        case options.Format.JSON:
            return report.render_json(bisection)
        case options.Format.HTML:
            return report.html(bisection)
        case options.Format.MARKDOWN:
            return report.markdown(bisection)
    return report.text(bisection, width=output.width(place.file), colour=output.colour(place.file))


def answer(bisection: GrowthBisection) -> str:
    """Return the culprit in a sentence."""
    from perfdiff.report.trends import bisect as report

    return report.answer(bisection)
