"""Exact counts of places of code over the points of workloads (the matrix of trend-prof §2), of one revision or of two."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from perfdiff.records.schema import Floats, Ints, Note, Point, Revision, Side


@dataclass(frozen=True, slots=True)
class Place:
    """A line of code in a function: what is counted. Instances of a template are functions of their own.

    `function` is the name that its users write, `file` relative to the tree, `line` 1-based, `text` the line without white space around it.
    """

    function: str
    file: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class PlaceCounts:
    """How often each place of one revision ran at each point: `counts` (places, points), whole numbers of at least 0.

    `features` are numbers that describe each point's run, by name, (points,) each, NaN where absent. `sources` are the lines of each file
    that has places. Places stand in the order of their files and lines. `unsteady` are indices of places whose count was another when a
    point was repeated, `lost` those of points at which some process ended without its counts.
    """

    points: tuple[Point, ...]
    places: tuple[Place, ...]
    counts: Floats
    features: Mapping[str, Floats]
    sources: Mapping[str, tuple[str, ...]]
    notes: tuple[Note, ...] = ()
    unsteady: tuple[int, ...] = ()
    lost: tuple[int, ...] = ()

    @property
    def known(self) -> Ints:
        """Return the points (indices) that have all of their counts."""
        return np.setdiff1d(np.arange(len(self.points)), np.array(self.lost, dtype=np.int64))

    def at(self, points: Ints) -> PlaceCounts:
        """Return the counts of some points (indices), none of which is lost."""
        features = {name: values[points] for name, values in self.features.items()}
        ran = tuple(self.points[number] for number in points.tolist())
        return replace(self, points=ran, counts=self.counts[:, points], features=features, lost=())


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
        known = functools.reduce(np.intersect1d, [counted.known for counted in self.sides.values()])
        return replace(self, sides={side: counted.at(known) for side, counted in self.sides.items()})
