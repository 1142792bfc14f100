"""Parts of sample tables: some of the features, some of the rows; and whether two of their columns are one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from perfdiff.records.schema import SampleTable


def without_features(table: SampleTable, names: set[str]) -> SampleTable:
    """Return the table without some of its features."""
    columns = [i for i, feature in enumerate(table.features) if feature.name not in names]
    if len(columns) == len(table.features):
        return table
    return replace(table, features=tuple(table.features[i] for i in columns), values=table.values[:, columns])


def thinned(table: SampleTable, most: int) -> SampleTable:
    """Return at most `most` rows, taken evenly, so that every run keeps its part."""
    if len(table) <= most:
        return table
    rows = np.unique(np.linspace(0, len(table) - 1, most).round().astype(np.int64))
    return table.rows(rows)


def same_cost(tables: Iterable[SampleTable]) -> bool:
    """Return whether no call spends time in probed callees, so that time with and without them is the same."""
    return all(np.array_equal(table.metrics["self_ns"], table.metrics["wall_ns"], equal_nan=True) for table in tables)
