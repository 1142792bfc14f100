"""Annotations in their short form, a line above the function: `@Time~Norm(2ms*path_length(path), 1ms)` (HotCloud §2).

Below each line, as a comment, what the paper's own method makes of the same calls (§3), and what each of the two misses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from perfdiff import units
from perfdiff.analysis.annotations.selections import Selections
from perfdiff.models.annotation import Annotation
from perfdiff.models.correlation import LEAST_PCC, MOST_ERROR, CorrelationKind, CorrelationSelection
from perfdiff.models.oneline import print_line
from perfdiff.report import wording
from perfdiff.report.printable import printable
from perfdiff.report.sentences.catalogue import say


def text(selections: Sequence[Selections]) -> str:
    """Return the annotations of each function above its name: a line for each metric, or for each of its scopes."""
    parts = []
    for function, group in groupby(selections, key=lambda selection: selection.ours.function):
        lines = [printable(line) for selection in group for line in (*_lines(selection.ours), *_beside(selection))]
        parts.append("\n".join([*lines, printable(function)]) + "\n")
    return "\n".join(parts)


def json_document(selection: Selections) -> dict[str, Any]:
    """Return the paper's selection as `annotate --format json` writes it beside ours; what is absent is None."""
    paper = selection.paper
    return {
        "kind": paper.kind.value,
        "reason": selection.reason.value if selection.reason else None,
        "why": say(selection.why) or None,
        "feature": paper.feature,
        "pcc": wording.finite(paper.pcc),
        "degree": paper.degree,
        "error": wording.finite(paper.error),
        "our_error": wording.finite(selection.error),
        "clusters": [
            {"centroid": scope.terms[0].coefficient, "sd": scope.sigma, "share": scope.share, "calls": scope.n} for scope in paper.clusters
        ],
        "text": list(_lines(paper.annotation)),
        "paper_misses": [*map(say, selection.paper_misses)],
        "ours_misses": [*map(say, selection.ours_misses)],
    }


def _lines(annotation: Annotation) -> Iterator[str]:
    """Yield a line a scope; the paper's form has no scopes, so their conditions and probabilities stand as in Freud's."""
    for scope in annotation.scopes:
        metric, _, cost = print_line(replace(annotation, scopes=(replace(scope, conditions=(), probability=1.0),))).partition("~")
        condition = f"[{scope.condition}] " if scope.condition else ""
        chance = f"{{{units.significant(scope.probability)}}} " if scope.probability < 1 else ""
        yield f"{metric}~{condition}{chance}{cost}"


def _beside(selection: Selections) -> Iterator[str]:
    """Yield the paper's selection, why it finds no correlation, and what each misses, as lines of comment."""
    errors = f"off by {selection.paper.error:.2g} of the mean, ours by {selection.error:.2g}"
    yield f"// by the paper: {selection.paper.kind.value}{_evidence(selection.paper)}; {errors}"
    yield from (f"//   {line}" for line in _lines(selection.paper.annotation))
    if selection.reason:
        yield f"//   reason: {selection.reason.value}, as {say(selection.why)}"
    if selection.paper_misses:
        yield f"//   the paper's misses {'; '.join(map(say, selection.paper_misses))}"
    if selection.ours_misses:
        yield f"//   ours misses {'; '.join(map(say, selection.ours_misses))}"


def _evidence(paper: CorrelationSelection) -> str:
    if paper.feature:
        degree = {1: "", 2: ", degree 2", 3: ", degree 3"}[paper.degree]
        return f" in `{paper.feature}` (correlation {paper.pcc:.2f}{degree})"
    if paper.kind is CorrelationKind.CONSTANT:
        return ""
    if paper.best is None or paper.pcc is None:
        return " (no number among the parameters varies)"
    if paper.polynomial_error is not None:
        return f" (`{paper.best}` by {paper.pcc:.2f}, but its polynomials are off by {paper.polynomial_error:.2g}, over {MOST_ERROR:g})"
    return f" (`{paper.best}` by {paper.pcc:.2f} at most, not above {LEAST_PCC:g})"
