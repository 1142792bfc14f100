"""The calls of counted runs that leave the project's code: into the C library, that of C++, and other shared libraries."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from perfdiff.languages.protocol import Compiled
from perfdiff.records.recording import Recording
from perfdiff.records.schema import LibraryCalls, Run

_Sums = tuple[float, float, float]  # calls, those of them that were timed, and the time of these in ns


@dataclass(slots=True)
class Departures:
    """Collects the calls of many runs by run, function and symbol; those outside of probed calls are nobody's."""

    _calls: dict[tuple[int, int, str], _Sums] = field(default_factory=dict)
    _unseen: set[str] = field(default_factory=set)

    def add(self, run: Run, recordings: Iterable[Recording]) -> None:
        """Add the calls that left the project's code in one counted run."""
        for recording in recordings:
            self._unseen |= recording.unseen
            for (function, symbol), calls in recording.library.items():
                if function:
                    _add(self._calls, (run.id, function, symbol), (calls, *recording.library_ns.get((function, symbol), (0.0, 0.0))))

    def named(self, compiled: Compiled) -> LibraryCalls:
        """Return the calls by readable names; of a name that not all calls are seen of, on whatever side, none are told."""
        symbols = sorted({symbol for _, _, symbol in self._calls} | self._unseen)
        readable = dict(zip(symbols, compiled.readable(symbols), strict=True))
        unseen = {readable[symbol] for symbol in self._unseen}
        sums: dict[tuple[int, int, str], _Sums] = {}
        for (run, function, symbol), sums_of_call in self._calls.items():
            if readable[symbol] not in unseen:
                _add(sums, (run, function, readable[symbol]), sums_of_call)
        names = sorted({name for _, _, name in sums})
        place = {name: at for at, name in enumerate(names)}
        rows = np.array([(run, function, place[name]) for run, function, name in sums], np.int64).reshape(len(sums), 3)
        calls, timed, wall_ns = np.array(list(sums.values()), float).reshape(len(sums), 3).T.copy()
        return LibraryCalls(rows[:, 0], rows[:, 1], rows[:, 2], calls, tuple(names), timed, wall_ns)


def _add(sums: dict[tuple[int, int, str], _Sums], key: tuple[int, int, str], more: _Sums) -> None:
    calls, timed, ns = sums.get(key, (0.0, 0.0, 0.0))
    sums[key] = calls + more[0], timed + more[1], ns + more[2]
