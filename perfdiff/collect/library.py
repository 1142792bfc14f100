"""The calls of counted runs that leave the project's code: into the C library, that of C++, and other shared libraries."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from perfdiff.languages.protocol import Compiled
from perfdiff.records.recording import Recording
from perfdiff.records.schema import LibraryCalls, Run


@dataclass(slots=True)
class Departures:
    """Collects the calls of many runs by run, function and symbol; those outside of probed calls are nobody's."""

    _calls: dict[tuple[int, int, str], float] = field(default_factory=dict)
    _unseen: set[str] = field(default_factory=set)

    def add(self, run: Run, recordings: Iterable[Recording]) -> None:
        """Add what the processes of one counted run called."""
        for recording in recordings:
            self._unseen |= recording.unseen
            for (function, symbol), calls in recording.library.items():
                if function:
                    key = run.id, function, symbol
                    self._calls[key] = self._calls.get(key, 0.0) + calls

    def named(self, compiled: Compiled) -> LibraryCalls:
        """Return the calls by readable names; of a name that not all calls are seen of, on whatever side, none are told."""
        symbols = sorted({symbol for _, _, symbol in self._calls} | self._unseen)
        readable = dict(zip(symbols, compiled.readable(symbols), strict=True))
        unseen = {readable[symbol] for symbol in self._unseen}
        sums: dict[tuple[int, int, str], float] = {}
        for (run, function, symbol), calls in self._calls.items():
            if readable[symbol] not in unseen:
                key = run, function, readable[symbol]
                sums[key] = sums.get(key, 0.0) + calls
        names = sorted({name for _, _, name in sums})
        place = {name: at for at, name in enumerate(names)}
        rows = np.array([(run, function, place[name]) for run, function, name in sums], np.int64).reshape(len(sums), 3)
        return LibraryCalls(rows[:, 0], rows[:, 1], rows[:, 2], np.array(list(sums.values()), float), tuple(names))
