"""Making an input smaller that shows something: parts are left out, halves first, as in delta debugging (Zeller and Hildebrandt 2002)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from perfdiff.fuzzing.families import InputFamily
from perfdiff.fuzzing.proposals import tokens

_LONGEST_WORD = 16  # that may be as well one of its letters


def reduced(family: InputFamily, is_kept: Callable[[InputFamily], bool], trials: int) -> InputFamily:
    """Return a family without the stretches of tokens that can be left out one by one, in at most some `trials`.

    Something that repeats stays. How many repetitions there are is no part: it is asked when growth is told.
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


def finer(family: InputFamily) -> Iterator[tuple[InputFamily, int]]:
    """Yield a family in which one letter of the only part that repeats does so, with how many are as long: its sizes lie closer."""
    repeating = [place for place, segment in enumerate(family.segments) if segment.repeats]
    if len(repeating) != 1 or family.segments[repeating[0]].number_at is not None:
        return
    (place,) = repeating
    text = family.segments[place].text
    for letter in dict.fromkeys(text) if 1 < len(text) <= _LONGEST_WORD else ():
        single = replace(family.segments[place], text=bytes((letter,)))
        yield replace(family, segments=(*family.segments[:place], single, *family.segments[place + 1 :])), len(text)


def _without(family: InputFamily, place: int, start: int, end: int) -> InputFamily | None:
    """Return a family without some tokens of a segment; None where it would not grow any more, or a number would have no place."""
    segment = family.segments[place]
    pieces = tokens(segment.text)
    text = b"".join([*pieces[:start], *pieces[end:]])
    smaller = replace(family, segments=(*family.segments[:place], replace(segment, text=text), *family.segments[place + 1 :]))
    return smaller if smaller.grows == family.grows and (segment.number_at is None or not text) else None
