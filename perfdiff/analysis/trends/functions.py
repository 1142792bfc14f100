"""Functions of two revisions by their places: which belong together, and what each executes on both sides."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from perfdiff.analysis.trends.blocks import block_counts
from perfdiff.analysis.trends.counterparts import carried_over, counterparts
from perfdiff.records.arrays import Floats, Ints
from perfdiff.records.places import PlaceCounts, PlaceExperiment
from perfdiff.records.schema import Side

_Name = tuple[str, str]  # file and function, as head has them where it has them


@dataclass(frozen=True, slots=True)
class FunctionCounts:
    """A function of either side or of both: the places of each side that are its own, and how many blocks they execute, (points,) each.

    `places` are indices into head's places, `base_places` into base's. `kept_base` and `kept_head` (points,) are how often the lines that
    both sides have ran, all together. `is_steady` tells that a repeated run counted the same. `before` are counts of base for each of
    `places` (places, points), 0 for those at `new`, which are no counterpart of anything; `gone` are indices into `base_places` of those
    that are none in head.
    """

    places: Ints
    base_places: Ints
    base: Floats
    head: Floats
    kept_base: Floats
    kept_head: Floats
    is_steady: bool
    before: Floats
    new: Ints
    gone: Ints

    @property
    def differs(self) -> bool:
        """Return whether it executes more or fewer blocks than before."""
        return not np.array_equal(self.base, self.head)

    @property
    def has_changed(self) -> bool:
        """Return whether code of it is new or gone."""
        return bool(len(self.new) or len(self.gone))


def functions(experiment: PlaceExperiment) -> tuple[FunctionCounts, ...]:
    """Return the functions of both sides, in the order of head's places; those that head lacks at the end.

    A place of base counts for the function that its counterpart is in, so that code which moved is compared where it is now. One that is
    gone counts for the function that most of its neighbours went to.
    """
    base, head = experiment.sides[Side.BASE], experiment.sides[Side.HEAD]
    in_head = counterparts(experiment)
    owners = _owners(base, head, in_head)
    costs = {Side.BASE: block_counts(base), Side.HEAD: block_counts(head)}
    before, is_new = carried_over(experiment, in_head)
    own: dict[_Name, tuple[list[int], list[int]]] = {}
    for number, place in enumerate(head.places):
        own.setdefault((place.file, place.function), ([], []))[1].append(number)
    for number, owner in enumerate(owners):
        own.setdefault(owner, ([], []))[0].append(number)
    unsteady = {Side.BASE: set(base.unsteady), Side.HEAD: set(head.unsteady)}
    return tuple(
        FunctionCounts(
            places=(now := np.array(ours, dtype=np.int64)),
            base_places=(then := np.array(theirs, dtype=np.int64)),
            base=costs[Side.BASE][then].sum(axis=0),
            head=costs[Side.HEAD][now].sum(axis=0),
            kept_base=before[now].sum(axis=0),
            kept_head=head.counts[now[~is_new[now]]].sum(axis=0),
            is_steady=unsteady[Side.BASE].isdisjoint(theirs) and unsteady[Side.HEAD].isdisjoint(ours),
            before=before[now],
            new=np.flatnonzero(is_new[now]),
            gone=np.flatnonzero(in_head[then] < 0),
        )
        for theirs, ours in own.values()
    )


def _owners(base: PlaceCounts, head: PlaceCounts, in_head: Ints) -> list[_Name]:
    """Return the function of head that each place of base counts for; its own where head has none."""
    went: dict[_Name, Counter[_Name]] = {}
    for place, index in zip(base.places, in_head.tolist(), strict=True):
        if index >= 0:
            went.setdefault((place.file, place.function), Counter())[head.places[index].file, head.places[index].function] += 1
    main = {name: counts.most_common(1)[0][0] for name, counts in went.items()}
    return [
        (head.places[index].file, head.places[index].function) if index >= 0 else main.get(own := (place.file, place.function), own)
        for place, index in zip(base.places, in_head.tolist(), strict=True)
    ]
