"""Places in their source, with how often each line ran as a heat column."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from perfdiff.analysis.trends.findings import TrendFindings
from perfdiff.records.arrays import Floats
from perfdiff.records.places import PlaceCounts
from perfdiff.records.schema import Side
from perfdiff.report.heat import shade
from perfdiff.report.printable import shortened
from perfdiff.report.trends import wording
from perfdiff.report.wording import ABSENT, plural

# Unchanged lines around a place: a loop's head with its body.
_CONTEXT = 2
# Instances of a template that are listed below a line, those that ran most often first; the CSV has all.
_MOST_INSTANCES = 5
# A line longer than this is read in an editor.
_LONGEST = 200


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line with its number and counts; those of a side without it, or of the one that was not counted, are "".

    `shade` grows with its count from 0 (`heat.shade`). `member` lines are those of the cluster. A `gap` stands for lines left out. Below
    members of templates stands each `instance`, with its name as text.
    """

    number: int
    base: str
    head: str
    shade: int
    member: bool
    text: str
    gap: bool = False
    instance: bool = False


@dataclass(frozen=True, slots=True)
class SourceListing:
    """The lines around places of one file."""

    file: str
    lines: tuple[SourceLine, ...]


@dataclass(frozen=True, slots=True)
class PlacesByLine:
    """Which places (indices) stand on each line of each file of one side, and which places of the `other` side they are, if any."""

    findings: TrendFindings
    side: Side
    by_file: Mapping[str, Mapping[int, Sequence[int]]]
    other: Mapping[int, int]

    @property
    def counted(self) -> PlaceCounts:
        """Return the side's counts."""
        return self.findings.experiment.sides[self.side]


def lines_of(findings: TrendFindings, side: Side) -> PlacesByLine:
    """Return the places of one side by file and line."""
    pairs = [(base, head) for base, head in enumerate(findings.experiment.heads.tolist()) if head >= 0]
    other = {head: base for base, head in pairs} if side is Side.HEAD else dict(pairs)
    return PlacesByLine(findings, side, findings.experiment.sides[side].by_line(), other)


def listings(lines: PlacesByLine, members: Sequence[int], point: int) -> tuple[SourceListing, ...]:
    """Return the source around places (indices), with the counts of one point (index) on every line that has any."""
    counts = lines.counted.counts[:, point]
    hottest = max((float(counts[member]) for member in members), default=0.0)
    wanted: dict[str, set[int]] = defaultdict(set)
    for member in members:
        wanted[lines.counted.places[member].file].add(lines.counted.places[member].line)
    return tuple(
        SourceListing(file, tuple(_listed(lines, file, numbers, point, hottest)))
        for file, numbers in wanted.items()
        if lines.counted.sources.get(file)
    )


def _listed(lines: PlacesByLine, file: str, members: set[int], point: int, hottest: float) -> Iterator[SourceLine]:
    text = lines.counted.sources[file]
    shown = sorted({near for number in members for near in range(number - _CONTEXT, number + _CONTEXT + 1) if 1 <= near <= len(text)})
    last = 0
    above: tuple[SourceLine, ...] = ()
    for number in shown:
        if number > last + 1:
            yield SourceLine(0, "", "", 0, False, plural(number - last - 1, "line"), gap=True)
        last = number
        places = lines.by_file[file].get(number, ())
        count = float(lines.counted.counts[list(places), point].sum())
        own, other = (wording.amount(count) if places else ""), _other(lines, places, point)
        base, head = (own, other) if lines.side is Side.BASE else (other, own)
        yield SourceLine(number, base, head, shade(count, hottest), number in members, shortened(text[number - 1], _LONGEST))
        instances = tuple(_instances(lines, places, point)) if number in members else ()
        if instances != above:  # the lines of a block, or of a function that is called as often, have the same
            yield from instances
        above = instances


def _instances(lines: PlacesByLine, places: Sequence[int], point: int) -> Iterator[SourceLine]:
    """Yield what the instances of a template counted that share the places of a line, where they are several."""
    instances = lines.counted.instances
    numbers = [number for place in places if len(instances.of(place)) > 1 for number in instances.of(place)]
    numbers.sort(key=lambda number: -instances.counts[number, point])
    for number in numbers[:_MOST_INSTANCES]:
        own, other = wording.amount(float(instances.counts[number, point])), _other_instance(lines, number, point)
        base, head = (own, other) if lines.side is Side.BASE else (other, own)
        yield SourceLine(0, base, head, 0, False, shortened(instances.names[number], _LONGEST), instance=True)
    if len(numbers) > _MOST_INSTANCES:
        yield SourceLine(0, "", "", 0, False, f"{plural(len(numbers) - _MOST_INSTANCES, 'more instance')}", instance=True)


def _other(lines: PlacesByLine, places: Sequence[int], point: int) -> str:
    """Return how often the same places ran on the other side, `–` where it has none of them, "" where it was not counted."""
    sides = [side for side in lines.findings.experiment.sides if side is not lines.side]
    if not sides or not places:
        return ""
    counterparts = [lines.other[place] for place in places if place in lines.other]
    return wording.amount(float(lines.findings.experiment.sides[sides[0]].counts[counterparts, point].sum())) if counterparts else ABSENT


def _other_instance(lines: PlacesByLine, number: int, point: int) -> str:
    """Return how often the instance of this name ran on the other side, as `_other` does of places."""
    sides = [counted.instances for side, counted in lines.findings.experiment.sides.items() if side is not lines.side]
    if not sides:
        return ""
    instances, name = lines.counted.instances, lines.counted.instances.names[number]
    there = sides[0].of(lines.other.get(int(instances.places[number]), -1))
    counterpart = next((instance for instance in there if sides[0].names[instance] == name), None)
    return ABSENT if counterpart is None else wording.amount(float(sides[0].counts[counterpart, point]))


def telling_point(costs: Floats) -> int:
    """Return the point (index) at which costs (points,) are largest."""
    return int(np.argmax(costs))
