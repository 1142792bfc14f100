"""The text form of annotations, after Freud (§2.2, Figures 2, 9 and 11): printer and parser."""

from __future__ import annotations

from collections.abc import Sequence

from perfdiff.models.annotation import Annotation


def print_annotation(annotation: Annotation) -> str:
    """Return the annotation with all that prediction and checking need: `parse` gives it back, equal."""
    return annotation.text


def print_all(annotations: Sequence[Annotation]) -> str:
    """Return a file of annotations."""
    return "".join(print_annotation(annotation) + "\n\n" for annotation in annotations)


def parse(text: str) -> Annotation:
    """Return the one annotation that `text` holds; AnnotationSyntaxError with line and column where it cannot be read."""
    raise NotImplementedError


def parse_all(text: str) -> list[Annotation]:
    """Return all annotations of a file; AnnotationSyntaxError with line and column where it cannot be read."""
    raise NotImplementedError
