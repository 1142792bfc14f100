"""Annotations as text and as JSON, for `annotate`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perfdiff.analysis.annotations.selections import Selections
from perfdiff.models.annotation import Annotation, Scope
from perfdiff.models.language import print_all, print_annotation, print_scope
from perfdiff.report import hotcloud, wording

SCHEMA = "perfdiff.annotation/1"


def text(annotations: Sequence[Annotation]) -> str:
    """Return a file of annotations in their language, which `perfdiff.models.language.parse_all` reads."""
    return print_all(annotations)


def answer(annotations: Sequence[Annotation]) -> str:
    """Return in a sentence how much was learnt."""
    functions = len({annotation.function for annotation in annotations})
    return f"{wording.plural(len(annotations), 'annotation')} of {wording.plural(functions, 'function')}"


def json_document(annotations: Sequence[Annotation], selections: Sequence[Selections] = ()) -> dict[str, Any]:
    """Return what `annotate --format json` writes; `text` is the annotation in its language, with all that checking needs.

    `scopes` is empty where one serves all calls. The components of a mixture share their condition and have a probability each.
    `hotcloud`, where `selections` of the same length are given, is what that paper's method selects for the same calls. What is absent is
    None.
    """
    documents = [_annotation(annotation) for annotation in annotations]
    for document, selection in zip(documents, selections, strict=bool(selections)):
        document["hotcloud"] = hotcloud.json_document(selection)
    return {"schema": SCHEMA, "annotations": documents}


def _annotation(annotation: Annotation) -> dict[str, Any]:
    single = len(annotation.scopes) == 1 and not annotation.scopes[0].conditions
    return {
        "function": annotation.function,
        "metric": annotation.metric,
        "class": annotation.cost_class.value,
        "features": list(annotation.features),
        "ranges": {name: list(bounds) for name, bounds in annotation.ranges.items()},
        "twins": {name: list(others) for name, others in annotation.twins.items()},
        "r2": wording.finite(annotation.r2),
        "cv_r2": wording.finite(annotation.cv_r2),
        "n": annotation.n,
        "further": annotation.further,
        "trend": annotation.scopes[0].trend.value if single else None,
        "text": print_annotation(annotation),
        "scopes": [] if single else [_scope(annotation, scope) for scope in annotation.scopes],
    }


def _scope(annotation: Annotation, scope: Scope) -> dict[str, Any]:
    return {
        "condition": scope.condition,
        "class": scope.cost_class.value,
        "features": list(dict.fromkeys(name for term in scope.terms for name, _ in term.factors)),
        "share": scope.share,
        "probability": scope.probability,
        "n": scope.n,
        "trend": scope.trend.value,
        "text": print_scope(annotation, scope),
    }
