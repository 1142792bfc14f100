"""Random changes of families, for what no proposal holds: parts of several inputs together, and words at other places."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from perfdiff.fuzzing.families import InputFamily, Segment
from perfdiff.fuzzing.proposals import BRACKETS, tokens

_LONGEST_STRETCH = 6  # tokens
_MOST_SEGMENTS = 12
_MOST_CHANGES = 3  # of one family at once


@dataclass(frozen=True, slots=True)
class Mutator:
    """Changes families with the words of the program and parts of other families, by numbers of `chance` alone."""

    words: Sequence[bytes]
    chance: random.Random

    def mutated(self, family: InputFamily, others: Sequence[InputFamily]) -> InputFamily:
        """Return a family with one to three changes, parts of `others` among them."""
        changes = (self._repeat, self._nest, self._insert, self._replace, self._delete, self._number)
        for _ in range(self.chance.randint(1, _MOST_CHANGES)):
            if self.chance.randrange(len(changes) + 1):
                segments = self.chance.choice(changes)(family.segments)
            else:
                segments = self._splice(family.segments, self.chance.choice(others).segments)
            family = replace(family, segments=segments)
        filled = tuple(segment for segment in family.segments if segment.text)
        return replace(family, segments=filled[:_MOST_SEGMENTS])

    def _split(self, segments: tuple[Segment, ...]) -> tuple[tuple[Segment, ...], list[bytes], tuple[Segment, ...], Segment]:
        """Return the tokens of one of the segments, what stands before and behind it, and the segment."""
        if not segments:
            return (), [], (), Segment(b"")
        place = self.chance.randrange(len(segments))
        return segments[:place], tokens(segments[place].text), segments[place + 1 :], segments[place]

    def _stretch(self, pieces: Sequence[bytes]) -> tuple[int, int]:
        start = self.chance.randint(0, len(pieces))
        return start, min(len(pieces), start + self.chance.randint(1, _LONGEST_STRETCH))

    def _word(self, pieces: Sequence[bytes]) -> bytes:
        return self.chance.choice([*self.words, *pieces] or [b" "])

    def _repeat(self, segments: tuple[Segment, ...]) -> tuple[Segment, ...]:
        before, pieces, behind, segment = self._split(segments)
        if segment.repeats:
            return segments
        start, end = self._stretch(pieces)
        parts = Segment(b"".join(pieces[:start])), Segment(b"".join(pieces[start:end]), repeats=True), Segment(b"".join(pieces[end:]))
        return (*before, *parts, *behind)

    def _nest(self, segments: tuple[Segment, ...]) -> tuple[Segment, ...]:
        before, pieces, behind, segment = self._split(segments)
        if segment.repeats:
            return segments
        start, end = self._stretch(pieces)
        opening, closing = self.chance.choice(BRACKETS)
        inner = (Segment(opening, repeats=True), Segment(b"".join(pieces[start:end])), Segment(closing, repeats=True))
        return (*before, Segment(b"".join(pieces[:start])), *inner, Segment(b"".join(pieces[end:])), *behind)

    def _insert(self, segments: tuple[Segment, ...]) -> tuple[Segment, ...]:
        before, pieces, behind, segment = self._split(segments)
        start, _end = self._stretch(pieces)
        return (*before, replace(segment, text=b"".join([*pieces[:start], self._word(pieces), *pieces[start:]])), *behind)

    def _replace(self, segments: tuple[Segment, ...]) -> tuple[Segment, ...]:
        before, pieces, behind, segment = self._split(segments)
        start, end = self._stretch(pieces)
        text = b"".join([*pieces[:start], self._word(pieces), *pieces[end:]])
        return (*before, replace(segment, text=text, number_at=_within(segment.number_at, text)), *behind)

    def _delete(self, segments: tuple[Segment, ...]) -> tuple[Segment, ...]:
        before, pieces, behind, segment = self._split(segments)
        start, end = self._stretch(pieces)
        text = b"".join([*pieces[:start], *pieces[end:]])
        return (*before, replace(segment, text=text, number_at=_within(segment.number_at, text)), *behind)

    def _number(self, segments: tuple[Segment, ...]) -> tuple[Segment, ...]:
        before, pieces, behind, segment = self._split(segments)
        if not segment.repeats:
            return segments
        place = len(b"".join(pieces[: self.chance.randint(0, len(pieces))]))
        return (*before, replace(segment, number_at=place, falling=self.chance.random() < 0.5), *behind)

    def _splice(self, segments: tuple[Segment, ...], others: tuple[Segment, ...]) -> tuple[Segment, ...]:
        return (*segments[: self.chance.randint(0, len(segments))], *others[self.chance.randint(0, len(others)) :])


def _within(place: int | None, text: bytes) -> int | None:
    return None if place is None else min(place, len(text))
