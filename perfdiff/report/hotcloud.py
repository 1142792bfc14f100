"""Annotations in their short form, a line above the function: `@Time~Norm(2ms*path_length(path), 1ms)` (HotCloud §2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from perfdiff import units
from perfdiff.models.annotation import Annotation
from perfdiff.models.oneline import print_line
from perfdiff.report.printable import printable


def text(annotations: Sequence[Annotation]) -> str:
    """Return the annotations of each function above its name: a line for each metric, or for each of its scopes."""
    parts = []
    for function, group in groupby(annotations, key=lambda annotation: annotation.function):
        lines = [printable(line) for annotation in group for line in _lines(annotation)]
        parts.append("\n".join([*lines, printable(function)]) + "\n")
    return "\n".join(parts)


def _lines(annotation: Annotation) -> Iterator[str]:
    """Yield a line a scope; the paper's form has no scopes, so their conditions and probabilities stand as in Freud's."""
    for scope in annotation.scopes:
        metric, _, cost = print_line(replace(annotation, scopes=(replace(scope, conditions=(), probability=1.0),))).partition("~")
        condition = f"[{scope.condition}] " if scope.condition else ""
        chance = f"{{{units.significant(scope.probability)}}} " if scope.probability < 1 else ""
        yield f"{metric}~{condition}{chance}{cost}"
