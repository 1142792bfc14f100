"""A sample of weighted rows in bounded memory: which rows are kept does not depend on the order in which they came."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from perfdiff.records.parts import Rows
from perfdiff.records.schema import Floats

_SLACK = 2  # times the size, up to which rows are gathered before the largest keys are dropped


@dataclass(slots=True)
class Reservoir:
    """Keeps `size` of all rows added, each the more likely the more calls it stands for (Efraimidis and Spirakis 2006).

    A row of weight w has the key -ln(u)/w for a u of its own between 0 and 1, and the smallest keys stay: those of two reservoirs together
    are those of all rows. What the rows stand for together is known exactly.
    """

    size: int
    weight: float = 0.0
    _parts: list[tuple[Floats, Rows]] = field(default_factory=list)
    _held: int = 0

    def add(self, rows: Rows, seed: int) -> None:
        """Add rows; `seed` is that of these rows, whoever holds them."""
        weight = np.maximum(rows.weight, np.finfo(float).tiny)
        keys = np.random.default_rng(seed).exponential(size=len(rows)) / weight
        self.weight += float(rows.weight.sum())
        self._parts.append((keys, rows))
        self._held += len(rows)
        if self._held > _SLACK * self.size:
            self._shrink()

    def rows(self) -> Rows:
        """Return the kept rows, which all stand for equally many calls, as many as were added together."""
        self._shrink()
        [(_, rows)] = self._parts or [(np.empty(0), Rows({}, np.empty((0, 0)), *(np.empty(0, np.int64),) * 2, np.empty(0)))]
        count = len(rows)
        return Rows(rows.metrics, rows.values, rows.thread, rows.call, np.full(count, self.weight / count if count else 0.0))

    def _shrink(self) -> None:
        if not self._parts:
            return
        keys = np.concatenate([keys for keys, _ in self._parts])
        rows = joined([rows for _, rows in self._parts])
        kept = np.sort(np.argsort(keys, kind="stable")[: self.size])
        self._parts = [(keys[kept], taken(rows, kept))]
        self._held = len(kept)


def joined(parts: list[Rows]) -> Rows:
    """Return rows one after the other; a metric that some lack is absent there."""
    names = dict.fromkeys(name for part in parts for name in part.metrics)
    return Rows(
        {name: np.concatenate([part.metrics.get(name, np.full(len(part), np.nan)) for part in parts]) for name in names},
        np.concatenate([part.values for part in parts]),
        np.concatenate([part.thread for part in parts]),
        np.concatenate([part.call for part in parts]),
        np.concatenate([part.weight for part in parts]),
    )


def taken(rows: Rows, index: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Rows:
    """Return the rows at `index`."""
    metrics = {name: values[index] for name, values in rows.metrics.items()}
    return Rows(metrics, rows.values[index], rows.thread[index], rows.call[index], rows.weight[index])
