"""Exact counts of places of code over the points of workloads (the matrix of trend-prof §2), of one revision or of two."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from perfdiff.records.arrays import Floats, Ints
from perfdiff.records.schema import Note, Point, Revision, Side


@dataclass(frozen=True, slots=True)
class Place:
    """A line of code in a function: what is counted.

    `function` is the name that its users write, `file` relative to the tree, `line` 1-based, `text` the line without white space around it.
    `instance` is the name of the one function that is meant of several that the compiler made of this code, as of a template; "" where
    there is but one, or all are meant.
    """

    function: str
    file: str
    line: int
    text: str
    instance: str = ""


@dataclass(frozen=True, slots=True)
class Instances:
    """The functions that the compiler made of the same code, as of templates: what each counted.

    `places` (instances,) are indices of the places that they are instances of, rising, `names` their own, `counts` (instances, points).
    """

    places: Ints
    names: tuple[str, ...]
    counts: Floats

    @classmethod
    def none(cls) -> Instances:
        """Return no instances, as of code without templates."""
        return cls(np.empty(0, dtype=np.int64), (), np.empty((0, 0)))

    def of(self, place: int) -> range:
        """Return the indices of the instances of one place."""
        first, end = np.searchsorted(self.places, [place, place + 1]).tolist()
        return range(first, end)

    def at(self, points: Ints) -> Instances:
        """Return the instances with their counts at some points, which are given by indices."""
        return replace(self, counts=self.counts[:, points]) if self.names else self


@dataclass(frozen=True, slots=True)
class PlaceCounts:
    """How often each place of one revision ran at each point: `counts` (places, points), whole numbers of at least 0.

    `features` are numbers that describe each point's run, by name, (points,) each, NaN where absent. `sources` are the lines of each file
    that has places. Places stand in the order of their files and lines, the instances of a template together as one; `instances` has them
    one by one. `unsteady` are indices of places whose count was another when a point was repeated, `lost` those of points at which some
    process ended without its counts.
    """

    points: tuple[Point, ...]
    places: tuple[Place, ...]
    counts: Floats
    features: Mapping[str, Floats]
    sources: Mapping[str, tuple[str, ...]]
    notes: tuple[Note, ...] = ()
    unsteady: tuple[int, ...] = ()
    lost: tuple[int, ...] = ()
    instances: Instances = field(default_factory=Instances.none)

    @property
    def known(self) -> Ints:
        """Return the indices of the points with a complete set of counts."""
        return np.setdiff1d(np.arange(len(self.points)), np.array(self.lost, dtype=np.int64))

    def at(self, points: Ints) -> PlaceCounts:
        """Return the counts of some points (indices), none of which is lost."""
        features = {name: values[points] for name, values in self.features.items()}
        ran = tuple(self.points[number] for number in points.tolist())
        return replace(self, points=ran, counts=self.counts[:, points], features=features, lost=(), instances=self.instances.at(points))

    def by_line(self) -> dict[str, dict[int, list[int]]]:
        """Return the places (indices, rising) of each line of each file."""
        by_file: dict[str, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        for number, place in enumerate(self.places):
            by_file[place.file][place.line].append(number)
        return by_file

    @property
    def apart(self) -> PlaceCounts:
        """Return the same with each instance as a function of its own; all are unsteady where their sum is."""
        if not self.instances.names:
            return self
        alone = np.setdiff1d(np.arange(len(self.places)), self.instances.places)
        rows = np.concatenate([alone, self.instances.places])
        order = np.argsort(rows, kind="stable")
        own = [*(self.places[row].function for row in alone.tolist()), *self.instances.names]
        named = ((self.places[rows[number]], own[number]) for number in order.tolist())
        places = tuple(replace(place, function=name, instance=name if name != place.function else "") for place, name in named)
        counts = np.concatenate([self.counts[alone], self.instances.counts])[order]
        unsteady = np.flatnonzero(np.isin(rows[order], self.unsteady))
        return replace(self, places=places, counts=counts, unsteady=tuple(unsteady.tolist()), instances=Instances.none())


def merged(places: Sequence[Place]) -> tuple[tuple[Place, ...], Ints]:
    """Return places with all instances of one code as one place, and the index there of each of `places`."""
    numbers: dict[Place, int] = {}
    rows = np.array([numbers.setdefault(replace(place, instance=""), len(numbers)) for place in places], dtype=np.int64)
    return tuple(numbers), rows


def together(places: Sequence[Place], counts: Floats) -> tuple[tuple[Place, ...], Floats, Instances]:
    """Return places (in order) and their counts (places, points) with all instances of one code as one place, and the instances."""
    if not any(place.instance for place in places):
        return tuple(places), counts, Instances.none()
    whole, rows = merged(places)
    sums = np.zeros((len(whole), counts.shape[1]))
    np.add.at(sums, rows, counts)
    several = np.bincount(rows) > 1
    shared = np.flatnonzero(several[rows] | np.array([bool(place.instance) for place in places]))
    shared = shared[np.argsort(rows[shared], kind="stable")]
    names = tuple(places[number].instance or places[number].function for number in shared.tolist())
    return whole, sums, Instances(rows[shared], names, counts[shared])


@dataclass(frozen=True, slots=True)
class PlaceExperiment:
    """What counting places of one or two revisions recorded, at the same points.

    `sides` has base alone where one revision was counted. `heads` (places of base,) are the indices of the same places in head, below 0
    where the place is gone, and empty without a head.
    """

    revisions: Mapping[Side, Revision]
    sides: Mapping[Side, PlaceCounts]
    heads: Ints
    notes: tuple[Note, ...] = ()

    @property
    def points(self) -> tuple[Point, ...]:
        """Return the points of all sides."""
        return self.sides[Side.BASE].points

    @property
    def complete(self) -> PlaceExperiment:
        """Return the experiment at the points where no side has lost counts: what is missing would read as less, or more."""
        if not any(counted.lost for counted in self.sides.values()):
            return self
        points = functools.reduce(np.intersect1d, [counted.known for counted in self.sides.values()])
        return replace(self, sides={side: counted.at(points) for side, counted in self.sides.items()})
