"""What counted runs had still allocated at their ends, by the lines of the project that asked for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from perfdiff.build.built import Built
from perfdiff.languages.protocol import Compiled, Probe
from perfdiff.records.hot_lines import CodeAddress
from perfdiff.records.lasting import LastingMemory, LastingSite
from perfdiff.records.lasting_blocks import LastingBlocks
from perfdiff.records.recording import Recording
from perfdiff.records.schema import Run, Side

_TEXT = 100  # letters of a line that are kept
_LINKER = ("ld-", "ld.")  # how the dynamic linker's file begins: what it keeps of a thread whose stack waits for the next is nobody's

_Place = tuple[str, str, int | None]  # function, file, line
_Sums = tuple[tuple[CodeAddress | None, int, int, int], ...]  # site, probe, blocks and bytes of a run


@dataclass(slots=True)
class LastingRuns:
    """Collects what each run had still allocated; nothing of one in which a process ended otherwise than by exit."""

    _runs: dict[tuple[Side, _Sums], list[int]] = field(default_factory=dict)

    def add(self, run: Run, recordings: Sequence[Recording]) -> None:
        """Add the memory that the processes of one counted run had still allocated."""
        blocks, size = Counter[tuple[CodeAddress | None, int]](), Counter[tuple[CodeAddress | None, int]]()
        for recording in recordings:
            if recording.lasting is None:
                return
            for lasting in recording.lasting:
                blocks[lasting.site, lasting.probe] += lasting.blocks
                size[lasting.site, lasting.probe] += lasting.bytes
        if recordings:
            sums = sorted(((*key, number, size[key]) for key, number in blocks.items()), key=str)
            self._runs.setdefault((run.side, tuple(sums)), []).append(run.id)

    def named(
        self, compiled: Compiled, counted: Mapping[Side, Built], plain: Mapping[Side, Built], probes: Mapping[Side, Mapping[int, Probe]]
    ) -> tuple[LastingMemory, ...]:
        """Return the memory by lines, whose texts are those of the `plain` builds; what no code of the project asked for is left out."""
        return tuple(
            memory for side in counted for memory in self._of_side(side, compiled, counted[side].tree, plain[side].tree, probes[side])
        )

    def _of_side(self, side: Side, compiled: Compiled, tree: Path, plain: Path, probes: Mapping[int, Probe]) -> Iterator[LastingMemory]:
        runs = {sums: numbers for (of, sums), numbers in self._runs.items() if of is side}
        raw = tuple(dict.fromkeys((site, probe) for sums in runs for site, probe, _, _ in sums))
        calls = compiled.allocations([LastingBlocks(site, probe, 0, 0) for site, probe in raw], tree)
        places: dict[tuple[CodeAddress | None, int], _Place] = {}
        for key, call in zip(raw, calls, strict=True):
            if call is not None:
                places[key] = call.function, call.file, call.line
            elif (opened := probes.get(key[1])) is not None and not (key[0] and Path(key[0].object).name.startswith(_LINKER)):
                places[key] = opened.definition.name, opened.definition.file, None
        lines = lru_cache(_lines)
        for sums, numbers in runs.items():
            blocks, size = Counter[_Place](), Counter[_Place]()
            for site, probe, number, total in sums:
                if place := places.get((site, probe)):
                    blocks[place] += number
                    size[place] += total
            ordered = sorted(blocks, key=lambda place: (-size[place], str(place)))
            sites = tuple(LastingSite(*place, _text(lines(plain / place[1]), place[2]), blocks[place], size[place]) for place in ordered)
            yield LastingMemory(tuple(numbers), sites)


def _text(lines: Sequence[str], line: int | None) -> str:
    return lines[line - 1].strip()[:_TEXT] if line and line <= len(lines) else ""


def _lines(path: Path) -> Sequence[str]:
    """Return the lines of a file, none where it cannot be read."""
    try:
        return path.read_text(errors="replace").splitlines()
    except OSError:
        return ()
