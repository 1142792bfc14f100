"""How the recording of a running process stands, so that a later look at it sees only what came since."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt

from perfdiff.records.recording_file import EDGE, Contents

_ABSENT = np.uint64(2**64 - 1)
_KEPT = ("probe", "mode")  # of totals: what is no sum


@dataclass(frozen=True, slots=True)
class RunningSums:
    """The sums of a recording at one moment: totals by probe and thread, calls and raw wall time by caller and callee."""

    totals: Mapping[tuple[int, int], npt.NDArray[np.void]]
    edges: Mapping[tuple[int, int], tuple[int, int]]

    @property
    def calls(self) -> int:
        """Return how many calls there were."""
        return sum(int(row["calls"]) for row in self.totals.values())


def since(contents: Contents, before: RunningSums | None) -> tuple[Contents, RunningSums]:
    """Return what a recording has gained since its running sums were `before`, and its sums now.

    Sums are differences; of single calls those are left that began since. Calls into libraries and hot lines are left out: recordings that
    are looked at while they grow have none.
    """
    now = RunningSums({key: np.array(row) for key, row in contents.totals.items()}, _summed(contents.edges))
    if before is None:
        return contents, now
    totals = {key: _less(row, before.totals[key]) if key in before.totals else row for key, row in now.totals.items()}
    nothing = (0, 0)
    gains = {pair: np.subtract(sums, before.edges.get(pair, nothing)).tolist() for pair, sums in now.edges.items()}
    gained = Contents(types=contents.types)
    for key, row in totals.items():
        if any(row[name] for name in ("calls", "finished", "timed")):
            gained.totals[key] = cast("np.void", row[()])
    gained.edges = [np.array([(*pair, calls, wall) for pair, (calls, wall) in gains.items() if calls > 0], EDGE)]
    for probe, segments in contents.samples.items():
        began = [(thread, cells, _began_since(records, probe, thread, before)) for thread, cells, records in segments]
        began = [segment for segment in began if (probe, segment[0]) in gained.totals]
        if began:
            gained.samples[probe] = began
    return gained, now


def _summed(blocks: list[npt.NDArray[np.void]]) -> dict[tuple[int, int], tuple[int, int]]:
    """Return calls and wall time by caller and callee."""
    sums: dict[tuple[int, int], tuple[int, int]] = {}
    for caller, callee, calls, wall in (row for block in blocks for row in block.tolist()):
        earlier_calls, earlier_wall = sums.get((caller, callee), (0, 0))
        sums[caller, callee] = earlier_calls + calls, earlier_wall + wall
    return sums


def _less(now: npt.NDArray[np.void], before: npt.NDArray[np.void]) -> npt.NDArray[np.void]:
    """Return the sums of one probe in one thread without those from before; a counter that was ever absent stays so."""
    row = now.copy()
    for name in now.dtype.names or ():
        if name not in _KEPT:
            row[name] = now[name] - before[name]
    row["counters"] = np.where(now["counters"] == _ABSENT, _ABSENT, row["counters"])
    return row


def _began_since(records: npt.NDArray[np.uint64], probe: int, thread: int, before: RunningSums) -> npt.NDArray[np.uint64]:
    earlier = before.totals.get((probe, thread))
    return records if earlier is None else records[records[:, 0] > earlier["calls"]]
