"""The matrix of places over points as CSV (RFC 4180), for other tools."""

from __future__ import annotations

import csv as comma_separated
import io
import math
from collections.abc import Iterator

import numpy as np

from perfdiff.analysis.trends.findings import TrendFindings
from perfdiff.records.arrays import Floats
from perfdiff.records.places import PlaceCounts
from perfdiff.report.printable import printable

# What makes a spreadsheet take a cell for a formula. An apostrophe ahead makes it text: https://owasp.org/www-community/attacks/CSV_Injection
_FORMULA = ("=", "+", "-", "@")
# Beyond it whole numbers do not fit into 64 bits; nothing counts so far.
_LARGEST = 2.0**63


def csv(findings: TrendFindings) -> str:
    """Return a row for each feature, then one for each place with a column for each point; absent numbers are empty.

    The first column, `kind`, is `feature`, `place`, or `instance`; a feature's name stands in `text`, and what each instance of a template
    counted below the place. With two sides the second column is `side`. Texts
    are on one line, and those that a spreadsheet would take for a formula have an apostrophe in front.
    """
    target = io.StringIO()
    writer = comma_separated.writer(target, lineterminator="\r\n")
    sides = findings.experiment.sides
    labels = [_text(point.label) for point in findings.experiment.points]
    compared = len(sides) > 1
    writer.writerow(["kind", *(["side"] if compared else []), "function", "file", "line", "text", *labels])
    for rows in (_features, _places):
        for side, counted in sorted(sides.items()):
            named = [side.value] if compared else []
            writer.writerows([row[0], *named, *row[1:]] for row in rows(counted))
    return target.getvalue()


def _features(counted: PlaceCounts) -> Iterator[list[str | int]]:
    for name, values in counted.features.items():
        yield ["feature", "", "", "", _text(name), *_numbers(values)]


def _places(counted: PlaceCounts) -> Iterator[list[str | int]]:
    for number, (place, counts) in enumerate(zip(counted.places, counted.counts, strict=True)):
        yield ["place", _text(place.function), _text(place.file), place.line, _text(place.text), *_numbers(counts)]
        for own in counted.instances.of(number):
            named = counted.instances.names[own]
            yield ["instance", _text(named), _text(place.file), place.line, _text(place.text), *_numbers(counted.instances.counts[own])]


def _text(text: str) -> str:
    shown = printable(text)
    return f"'{shown}" if shown.lstrip().startswith(_FORMULA) else shown


def _numbers(values: Floats) -> list[str | int]:
    """Return numbers as they are written; counts, which are whole, without looking at each."""
    if (np.abs(values) < _LARGEST).all() and (values == np.floor(values)).all():
        whole: list[str | int] = values.astype(np.int64).tolist()
        return whole
    return [repr(value).removesuffix(".0") if math.isfinite(value) else "" for value in values.tolist()]
