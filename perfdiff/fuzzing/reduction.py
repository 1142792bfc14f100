"""Making an input smaller that shows something: parts are left out, halves first, as in delta debugging (Zeller and Hildebrandt 2002)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from perfdiff.fuzzing.families import Family
from perfdiff.fuzzing.proposals import tokens

KEPT = 0.9  # of what an input shows, which a smaller one has to show as well


def smaller(family: Family, smallest: Callable[[], Family]) -> Iterator[Family]:
    """Yield smaller families to be tried, each made from the `smallest` that was taken by then.

    Repetitions are no parts: how many there are is asked when growth is told.
    """
    if family.dial:
        return
    pieces = max((len(tokens(segment.text)) for segment in family.segments), default=0)
    while pieces:
        for place in range(len(family.segments)):
            yield from _without(place, pieces, smallest)
        pieces //= 2


def _without(place: int, length: int, smallest: Callable[[], Family]) -> Iterator[Family]:
    """Yield families without one stretch of so many tokens in a segment, from its end on."""
    start = len(tokens(smallest().segments[place].text)) - length
    while start > -length:
        family = smallest()
        segment, pieces = family.segments[place], tokens(family.segments[place].text)
        text = b"".join([*pieces[: max(start, 0)], *pieces[start + length :]])
        if segment.number_at is None and len(text) < len(segment.text) and (text or not segment.repeats):
            segments = (*family.segments[:place], replace(segment, text=text), *family.segments[place + 1 :])
            yield replace(family, segments=segments)
        start -= length
