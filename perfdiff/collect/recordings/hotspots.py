"""Where the threads of counted runs met most, in the words of the program."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from perfdiff.build.built import Built
from perfdiff.languages.protocol import Compiled
from perfdiff.records.hot_lines import HotLine
from perfdiff.records.recording import Recording
from perfdiff.records.schema import HotSpot, Run, Side

# Of a point and side: what costs most lies in a few lines, and each must be looked up in the program's symbols.
_MOST = 4
_LEAST_EVENTS = 32  # fewer are the start and the end of threads


@dataclass(slots=True)
class HotSpots:
    """Keeps the hottest lines of the busiest run of each point and side."""

    _lines: dict[tuple[Side, int], tuple[HotLine, ...]] = field(default_factory=dict)

    def add(self, run: Run, recordings: Iterable[Recording]) -> None:
        """Add the lines of the processes of one counted run."""
        lines = sorted((line for recording in recordings for line in recording.lines if _events(line) >= _LEAST_EVENTS), key=_events)
        hottest = tuple(reversed(lines))[:_MOST]
        if sum(map(_events, hottest)) > sum(map(_events, self._lines.get((run.side, run.point), ()))):
            self._lines[run.side, run.point] = hottest

    def named(self, compiled: Compiled, built: Mapping[Side, Built]) -> tuple[HotSpot, ...]:
        """Return the lines with what they lie in, by side and point, hottest first."""
        spots = []
        for side in built:
            places = [(point, line) for (of, point), lines in sorted(self._lines.items()) if of is side for line in lines]
            names = compiled.named([line for _, line in places], built[side].tree, built[side].commands) if places else ()
            for (point, line), name in zip(places, names, strict=True):
                spots.append(HotSpot(side, point, line.hitm, line.hitm_false, line.remote, name.threads, name.says))
        return tuple(spots)


def _events(line: HotLine) -> int:
    return line.hitm + line.remote
