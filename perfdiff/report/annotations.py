"""Annotations as text and as JSON, for `annotate`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perfdiff.models.annotation import Annotation
from perfdiff.models.language import print_all

SCHEMA = "perfdiff.annotation/1"


def text(annotations: Sequence[Annotation]) -> str:
    """Return a file of annotations in their language, which `perfdiff.models.language.parse_all` reads."""
    return print_all(annotations)


def json_document(annotations: Sequence[Annotation]) -> dict[str, Any]:
    """Return what `annotate --format json` writes: `{schema, annotations: [{function, metric, class, features, …}]}`."""
    return {"schema": SCHEMA, "annotations": [_annotation(annotation) for annotation in annotations]}


def _annotation(annotation: Annotation) -> dict[str, Any]:
    return {"function": annotation.function, "metric": annotation.metric, "text": annotation.text}
