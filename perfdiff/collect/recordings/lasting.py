"""What counted runs had still allocated at their ends, by the lines of the project that asked for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from perfdiff.languages.protocol import Compiled, FunctionDefinition, Probe
from perfdiff.records.hot_lines import CodeAddress
from perfdiff.records.lasting import LastingMemory, LastingSite
from perfdiff.records.lasting_blocks import InterpretedLine, LastingBlocks
from perfdiff.records.recording import Recording
from perfdiff.records.schema import Run, Side

_MODULE = "<module>"  # the code of a file that stands in no function
_TEXT = 100  # letters of a line that are kept
_LINKER = ("ld-", "ld.")  # how the dynamic linker's file begins: what it keeps of a thread whose stack waits for the next is nobody's

_Site = CodeAddress | InterpretedLine | None
_Place = tuple[str, str, int | None]  # function, file, line
_Sums = tuple[tuple[_Site, int, int, int], ...]  # site, probe, blocks and bytes of a run


@dataclass(frozen=True, slots=True)
class SideCode:
    """What counted runs of a side ran: the built tree, the plain one with the texts of lines, probes by number, and functions by file."""

    tree: Path
    plain: Path
    probes: Mapping[int, Probe]
    functions: Mapping[str, Sequence[FunctionDefinition]]

    def place(self, at: InterpretedLine) -> _Place:
        """Return where a line stands: the innermost function, if any, and the path in the tree."""
        path = Path(at.file)
        file = next((path.relative_to(tree).as_posix() for tree in (self.tree, self.plain) if path.is_relative_to(tree)), at.file)
        around = [
            function
            for function in self.functions.get(file, ())
            if function.first_line <= at.line <= function.first_line + function.text.count("\n")
        ]
        innermost = max(around, key=lambda function: function.first_line, default=None)
        return innermost.name if innermost else _MODULE, file, at.line


@dataclass(slots=True)
class LastingRuns:
    """Collects what each run had still allocated; nothing of one in which a process ended otherwise than by exit."""

    _runs: dict[tuple[Side, _Sums], list[int]] = field(default_factory=dict)

    def add(self, run: Run, recordings: Sequence[Recording]) -> None:
        """Add the memory that the processes of one counted run had still allocated."""
        blocks, size = Counter[tuple[_Site, int]](), Counter[tuple[_Site, int]]()
        for recording in recordings:
            if recording.lasting is None:
                return
            for lasting in recording.lasting:
                blocks[lasting.site, lasting.probe] += lasting.blocks
                size[lasting.site, lasting.probe] += lasting.bytes
        if recordings:
            sums = sorted(((*key, number, size[key]) for key, number in blocks.items()), key=str)
            self._runs.setdefault((run.side, tuple(sums)), []).append(run.id)

    def named(self, compiled: Compiled, codes: Mapping[Side, SideCode]) -> tuple[LastingMemory, ...]:
        """Return the memory by lines; what no code of the project asked for is left out."""
        return tuple(memory for side, code in codes.items() for memory in self._of_side(side, compiled, code))

    def _of_side(self, side: Side, compiled: Compiled, code: SideCode) -> Iterator[LastingMemory]:
        runs = {sums: numbers for (of, sums), numbers in self._runs.items() if of is side}
        raw = tuple(dict.fromkeys((site, probe) for sums in runs for site, probe, _, _ in sums))
        addresses = [(site, probe) for site, probe in raw if not isinstance(site, InterpretedLine)]
        calls = compiled.allocations([LastingBlocks(site, probe, 0, 0) for site, probe in addresses], code.tree)
        places: dict[tuple[_Site, int], _Place] = {
            (site, probe): code.place(site) for site, probe in raw if isinstance(site, InterpretedLine)
        }
        for (address, probe), call in zip(addresses, calls, strict=True):
            if call is not None:
                places[address, probe] = call.function, call.file, call.line
            elif (opened := code.probes.get(probe)) is not None and not (address and Path(address.object).name.startswith(_LINKER)):
                places[address, probe] = opened.definition.name, opened.definition.file, None
        lines = lru_cache(_lines)
        for sums, numbers in runs.items():
            blocks, size = Counter[_Place](), Counter[_Place]()
            for site, probe, number, total in sums:
                if place := places.get((site, probe)):
                    blocks[place] += number
                    size[place] += total
            ordered = sorted(blocks, key=lambda place: (-size[place], str(place)))
            sites = tuple(
                LastingSite(*place, _text(lines(code.plain / place[1]), place[2]), blocks[place], size[place]) for place in ordered
            )
            yield LastingMemory(tuple(numbers), sites)


def _text(lines: Sequence[str], line: int | None) -> str:
    return lines[line - 1].strip()[:_TEXT] if line and line <= len(lines) else ""


def _lines(path: Path) -> Sequence[str]:
    """Return the lines of a file, none where it cannot be read."""
    try:
        return path.read_text(errors="replace").splitlines()
    except OSError:
        return ()
