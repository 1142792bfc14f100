"""Files of annotations or trends on the command line: what `perfdiff annotate` and `perfdiff trends` wrote."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from perfdiff.errors import UsageError

if TYPE_CHECKING:
    from perfdiff.analysis.trends.assertions import SavedTrends
    from perfdiff.models.annotation import Annotation

_LARGEST_BYTES = 256_000_000  # annotations of some 100,000 functions


def load(file: Path) -> list[Annotation] | SavedTrends:
    """Return the annotations or the trends of a file, Freud's own in our metrics and units; raise UsageError where there are none.

    A file of Freud's statistics program is of the function that it is named after.
    """
    from perfdiff.models.freud_text import converted, is_freuds, parse_freuds
    from perfdiff.models.language import parse_all
    from perfdiff.report.trends.saved import saved_trends

    try:
        with file.open("rb") as opened:
            data = opened.read(_LARGEST_BYTES + 1)
        text = data.decode()
    except OSError as error:
        raise UsageError(f"'{file}' cannot be read: {error.strerror}", slug="annotations-unreadable") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"'{file}' is no text, from byte {error.start} on", slug="annotations-unreadable") from error
    if len(data) > _LARGEST_BYTES:
        raise UsageError(f"'{file}' is larger than 256 MB; annotate fewer functions", slug="annotations-unreadable")
    if trends := saved_trends(text, str(file)):
        return trends
    rules = parse_freuds(text, file.name.removesuffix(".txt")) if is_freuds(text) else list(map(converted, parse_all(text)))
    if not rules:
        raise UsageError(f"'{file}' holds no annotations; write them with `perfdiff annotate -o {file}`", slug="annotations-unreadable")
    return rules
