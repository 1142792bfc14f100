"""Features that tell when a call was made, and nothing of its input: times, process ids, and all else that only counts up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from perfdiff.records.schema import Floats, Ints, SampleTable

# Values of fewer runs may rise by chance: of ten runs, five of either side in turns, those of both do once in 14,400.
FEWEST_RUNS = 10


@dataclass(frozen=True, slots=True)
class _Runs:
    """The runs of a table by their `ids` (r,), which rise, with their `points` (r,), and the `least` and the `most` (p, r) of the values of
    features in each: NaN where one is absent.
    """

    ids: Ints
    points: Ints
    names: tuple[str, ...]
    least: Floats
    most: Floats

    @classmethod
    def of(cls, table: SampleTable) -> _Runs:
        """Return the runs of a table that has rows."""
        order = np.argsort(table.run, kind="stable")
        first = np.flatnonzero(np.diff(table.run[order], prepend=-1))
        columns = [place for place, feature in enumerate(table.features) if not feature.category]
        values = table.values[order][:, columns]
        names = tuple(table.features[place].name for place in columns)
        return cls(
            table.run[order][first],
            table.point[order][first],
            names,
            np.minimum.reduceat(values, first).T,
            np.maximum.reduceat(values, first).T,
        )

    def ends(self, names: Sequence[str]) -> tuple[Floats, Floats]:
        """Return the least and the largest values of features (p,) in each run, (p, r)."""
        rows = [self.names.index(name) for name in names]
        return self.least[rows], self.most[rows]

    @property
    def stretches(self) -> list[tuple[int, int]]:
        """Return the first and the last run of each point."""
        return [(int(own[0]), int(own[-1])) for point in np.unique(self.points) for own in [self.ids[self.points == point]]]


def clocks(tables: Sequence[SampleTable]) -> set[str]:
    """Return the features that all tables have whose values rise from each run to the next but one, whatever it runs.

    Points and sides that are run in turns have their inputs again and again, so that no input does so. The next run may be made at the
    same time. Runs that are not made in turns, as those behind logs that somebody collected, do not tell.
    """
    seen = [_Runs.of(table) for table in tables if len(table)]
    if sum(len(each.ids) for each in seen) < FEWEST_RUNS or not _are_in_turns(seen):
        return set()
    order = np.argsort(np.concatenate([each.ids for each in seen]), kind="stable")
    names = [name for name in seen[0].names if all(name in each.names for each in seen)]
    least, most = (np.concatenate(each, axis=1)[:, order] for each in zip(*(each.ends(names) for each in seen), strict=True))
    rises = np.all(least[:, 2:] > most[:, :-2], axis=1)
    return {names[place] for place in np.flatnonzero(rises).tolist()}


def _are_in_turns(seen: Sequence[_Runs]) -> bool:
    """Return whether runs of several points or sides were made, each of them before the last ones of all others."""
    stretches = [each for runs in seen for each in runs.stretches]
    return len(stretches) > 1 and max(first for first, _ in stretches) < min(last for _, last in stretches)
