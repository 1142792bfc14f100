"""Features that tell when a call was made, and nothing of its input: times, process ids, and all else that only counts up."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from perfdiff.analysis.compare.mix import Members, columns, members
from perfdiff.records.arrays import Floats
from perfdiff.records.schema import SampleTable

# Values of fewer runs may rise by chance: of ten runs, five of either side in turns, those of both do once in 14,400.
FEWEST_RUNS = 10


def clocks(tables: Sequence[SampleTable]) -> set[str]:
    """Return the features that all tables have whose values rise from each run to the next but one, whatever it runs.

    Points and sides that are run in turns have their inputs again and again, so that no input does so. The next run may be made at the
    same time. Runs that are not made in turns, as those behind logs that somebody collected, do not tell.
    """
    seen = [(table, members(table)) for table in tables if len(table)]
    if sum(len(of.runs) for _, of in seen) < FEWEST_RUNS or not _are_in_turns([of for _, of in seen]):
        return set()
    names = sorted(set.intersection(*({feature.name for feature in table.features if not feature.category} for table, _ in seen)))
    if not names:
        return set()
    order = np.argsort(np.concatenate([of.runs for _, of in seen]), kind="stable")
    least, most = (np.concatenate(ends)[order] for ends in zip(*(_ends(table, of, names) for table, of in seen), strict=True))
    rises = np.all(least[2:] > most[:-2], axis=0)
    return {names[place] for place in np.flatnonzero(rises).tolist()}


def _ends(table: SampleTable, of: Members, names: Sequence[str]) -> tuple[Floats, Floats]:
    """Return the least and the largest values of features in each run, (r, p); NaN where one is absent."""
    order, first = of.grouped
    by_name = columns(table)
    values = np.column_stack([by_name[name] for name in names])[order]
    return np.minimum.reduceat(values, first), np.maximum.reduceat(values, first)


def _are_in_turns(seen: Sequence[Members]) -> bool:
    """Return whether runs of several points or sides were made, each of them before the last ones of all others."""
    of_points = [of.runs[of.points == point] for of in seen for point in np.unique(of.points)]
    return len(of_points) > 1 and max(runs[0] for runs in of_points) < min(runs[-1] for runs in of_points)
