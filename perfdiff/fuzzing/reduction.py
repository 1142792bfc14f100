"""Making an input smaller that shows something: parts are left out, halves first, as in delta debugging (Zeller and Hildebrandt 2002)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from perfdiff.fuzzing.families import Family
from perfdiff.fuzzing.proposals import tokens


def reduced(family: Family, is_kept: Callable[[Family], bool], trials: int) -> Family:
    """Return a family without the stretches of tokens that can be left out one by one, asking at most so many times.

    Of a part that repeats something stays. How many repetitions there are is no part: it is asked when growth is told.
    """
    length = max((len(tokens(segment.text)) for segment in family.segments), default=0)
    while length and not family.dial:
        for place in range(len(family.segments)):
            end = len(tokens(family.segments[place].text))
            while end > 0:
                smaller = _without(family, place, max(0, end - length), end)
                end -= length
                if smaller is None:
                    continue
                if not trials:
                    return family
                trials -= 1
                family = smaller if is_kept(smaller) else family
        length //= 2
    return family


def _without(family: Family, place: int, start: int, end: int) -> Family | None:
    """Return a family without some tokens of a segment, None where they have to stay: the last of what repeats, or what has a number."""
    segment = family.segments[place]
    pieces = tokens(segment.text)
    text = b"".join([*pieces[:start], *pieces[end:]])
    if segment.number_at is not None or (segment.repeats and not text):
        return None
    return replace(family, segments=(*family.segments[:place], replace(segment, text=text), *family.segments[place + 1 :]))
