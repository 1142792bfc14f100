"""Saved places in another revision whose diff is not at hand: by function and text of the line."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from perfdiff.records.places import Place

_Owner = tuple[str, str]  # file and function


def found_again(saved: Iterable[Place], places: Sequence[Place]) -> dict[Place, int]:
    """Return the index in `places` of each saved place that is still there.

    `saved` are all places of a revision. Where a function has several lines of one text, and has as many as before, they belong together
    in their order; else each belongs to the nearest one, counted from where its function begins.
    """
    before, now = _alike(saved), _alike(places)
    numbers = {place: number for number, place in enumerate(places)}
    began, begins = _beginnings(saved), _beginnings(places)
    indices: dict[Place, int] = {}
    for key, alike in before.items():
        candidates = now.get(key, [])
        if len(candidates) == len(alike):
            indices |= {place: numbers[other] for place, other in zip(alike, candidates, strict=True)}
            continue
        for place in alike[: len(candidates)]:
            offset = place.line - began[place.file, place.function]
            offsets = [other.line - begins[other.file, other.function] for other in candidates]
            nearest = candidates.pop(int(np.argmin(np.abs(np.array(offsets) - offset))))
            indices[place] = numbers[nearest]
    return indices


def _alike(places: Iterable[Place]) -> Mapping[tuple[str, str], list[Place]]:
    """Return places by function and text, in the order of files and lines."""
    by_text: dict[tuple[str, str], list[Place]] = defaultdict(list)
    for place in sorted(dict.fromkeys(places), key=lambda place: (place.file, place.line)):
        by_text[place.function, place.text].append(place)
    return by_text


def _beginnings(places: Iterable[Place]) -> Mapping[_Owner, int]:
    """Return the first line of each function that has a place."""
    first_lines: dict[_Owner, int] = {}
    for place in places:
        owner = place.file, place.function
        first_lines[owner] = min(place.line, first_lines.get(owner, place.line))
    return first_lines
