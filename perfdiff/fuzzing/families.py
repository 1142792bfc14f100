"""Families of inputs: a text of which some parts repeat, so that the same input is there in any size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

Values = Mapping[str, float | str]

_MOST_DIGITS = 7  # of the number of a repetition, so that a size can be told before a text is made


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of an input. Where it `repeats`, the number of each repetition is written at `number_at` of its text, None for nowhere.

    Numbers rise by 1, or fall where they are `falling`. All have as many digits, so that they are in order as texts, too.
    """

    text: bytes
    repeats: bool = False
    number_at: int | None = None
    falling: bool = False

    def content(self, times: int) -> bytes:
        """Return the bytes of the segment, repeated `times` times if it is one that repeats."""
        if not self.repeats:
            return self.text
        if self.number_at is None:
            return self.text * times
        before, behind = self.text[: self.number_at], self.text[self.number_at :]
        first = _first(times)
        numbers = range(first + times - 1, first - 1, -1) if self.falling else range(first, first + times)
        return b"".join(b"%b%d%b" % (before, number, behind) for number in numbers)

    @property
    def bytes_a_time(self) -> int:
        """Return at most how many bytes each repetition adds."""
        return len(self.text) + (_MOST_DIGITS if self.number_at is not None else 0) if self.repeats else 0


@dataclass(frozen=True, slots=True)
class InputFamily:
    """Inputs of one workload that differ only in the number of repetitions of some segments.

    `values` are the other parameters of the workload. A family of a numeric parameter has no segments: `dial` is the parameter's name,
    whose value is the number of times, `most` at most.
    """

    workload: str
    segments: tuple[Segment, ...] = ()
    values: Values = field(default_factory=dict)
    dial: str = ""
    most: int = 0

    @property
    def grows(self) -> bool:
        """Return whether its inputs have different sizes."""
        return bool(self.dial) or any(segment.repeats and segment.text for segment in self.segments)

    def content(self, times: int) -> bytes:
        """Return the input whose repeated segments stand there `times` times."""
        return b"".join(segment.content(times) for segment in self.segments)

    def parameters(self, times: int) -> Values:
        """Return the values of the workload's parameters but for the input itself."""
        return {**self.values, self.dial: times} if self.dial else self.values

    def times_within(self, size: int) -> int:
        """Return how many repetitions an input of at most `size` bytes has, at least one."""
        if self.dial:
            return self.most
        a_time = sum(segment.bytes_a_time for segment in self.segments)
        fixed = sum(len(segment.text) for segment in self.segments if not segment.repeats)
        return max(1, (size - fixed) // a_time) if a_time else 1

    def size(self, times: int) -> int:
        """Return how many bytes the input with `times` repetitions has, or the value of its dial."""
        return times if self.dial else len(self.content(times))


def _first(times: int) -> int:
    """Return the least power of ten from which on so many numbers have as many digits."""
    first = 10
    while first + times > 10 * first:
        first *= 10
    return first


def joined(families: Sequence[InputFamily]) -> InputFamily:
    """Return the family whose inputs are those of several families one after the other, an empty line between two."""
    segments = [segment for family in families for segment in (*family.segments, Segment(b"\n\n"))]
    return replace(families[0], segments=tuple(segments))


def plain(workload: str, text: bytes, values: Values) -> InputFamily:
    """Return the family of a single input."""
    return InputFamily(workload, (Segment(text),), values)
