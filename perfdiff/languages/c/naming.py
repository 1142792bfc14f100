"""What hot lines are in the words of the program: its variables, the lines that allocate, its threads' stacks.

By the tools that come with every compiler, `nm` and `addr2line`; where they are missing or an object is stripped, what is known is
said by its place in the object.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfdiff.languages.c import fields
from perfdiff.languages.protocol import AllocatingCall, CompileCommand, NamedLine
from perfdiff.records.hot_lines import Allocation, CodeAddress, HotLine, Stack, Variable
from perfdiff.records.lasting_blocks import LastingBlocks

_TIMEOUT_S = 60.0  # a large object's line table takes seconds
_LINE_BYTES = 64
# A thread with fewer of a line's events than this share of the busiest one's took no part in what made it hot: it set it up, mostly.
_SHARE = 0.1
_SYMBOL = re.compile(r"([0-9a-f]+) ([0-9a-f]+) [bBdDrRvVgGsSuC] (.+)")


# What headers make of calls (`-D_FORTIFY_SOURCE`, C99's `scanf`).
_CHECKED = re.compile(r"__isoc(?:99|23)_(?P<c99>\w+)|__(?P<fortified>\w+)_chk")
_STRING = "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >"


@dataclass(frozen=True, slots=True)
class _Symbol:
    name: str
    start: int
    size: int


@dataclass(frozen=True, slots=True)
class _Call:
    """A place in the source: that of a call, inlined ones resolved."""

    function: str
    file: Path
    line: int


def named(lines: Sequence[HotLine], tree: Path, commands: Sequence[CompileCommand]) -> tuple[NamedLine, ...]:
    """Return the lines of a counted process with names; `tree` is the build's root, `commands` are its compile commands."""
    places = [place for line in lines for place in line.places]
    symbols = {path: _symbols(path) for path in sorted({place.spot.object for place in places if isinstance(place, Variable)})}
    sites = {place.site for place in places if isinstance(place, Allocation) and place.site is not None}
    calls = _calls(sites, tree)
    return tuple(_named(line, symbols, calls, tree, commands) for line in lines)


def allocations(blocks: Sequence[LastingBlocks], tree: Path) -> tuple[AllocatingCall | None, ...]:
    """Return the call of the project's own code, in the build's `tree`, that each of the blocks was asked for by, None where it is none."""
    calls = _calls({block.site for block in blocks if isinstance(block.site, CodeAddress)}, tree)
    own = [calls.get(block.site) if isinstance(block.site, CodeAddress) else None for block in blocks]
    return tuple(
        AllocatingCall(call.function, call.file.relative_to(tree).as_posix(), call.line)
        if call is not None and call.file.is_relative_to(tree)
        else None
        for call in own
    )


def readable(symbols: Sequence[str]) -> tuple[str, ...]:
    """Return the names of functions as programmers write them, without parameters: `printf` for `__printf_chk`, `operator new` for `_Znwm`.

    By `c++filt`, which comes with every compiler; where it is missing, names of C++ stay as they are.
    """
    lines = _run(["c++filt", "-p"], "".join(f"{symbol}\n" for symbol in symbols)).splitlines()
    names = lines if len(lines) == len(symbols) else symbols
    return tuple(_plain(name) for name in names)


def _plain(name: str) -> str:
    """Return the function that a checked or a C99 form of it stands for, and `std::string` for what the standard library makes of it."""
    checked = _CHECKED.fullmatch(name)
    return (checked["c99"] or checked["fortified"]) if checked else name.replace(_STRING, "std::string")


def _named(
    line: HotLine,
    symbols: dict[str, tuple[_Symbol, ...]],
    calls: dict[CodeAddress, _Call],
    tree: Path,
    commands: Sequence[CompileCommand],
) -> NamedLine:
    touched = _touched(line)
    says: list[str] = []
    for place in line.places:
        if isinstance(place, Variable):
            says += _variables(place.spot, touched, symbols[place.spot.object], commands)
        elif isinstance(place, Stack):
            says.append(f"the stack of thread {place.thread}")
        elif inside := [line.address + byte - place.address for byte in touched if 0 <= line.address + byte - place.address < place.size]:
            says.append(_allocation(place, inside, calls, tree, commands))
    return NamedLine(line, tuple(dict.fromkeys(says)), len(_busy(line)))


def _busy(line: HotLine) -> list[tuple[int, int]]:
    """Return the bytes that each thread has read and written of those that make the line hot."""
    most = max((touch.events for touch in line.touches), default=0)
    return [(touch.read, touch.written) for touch in line.touches if touch.events >= most * _SHARE]


def _touched(line: HotLine) -> list[int]:
    """Return the bytes of a line that matter, all of a page."""
    mask = 0
    for read, written in _busy(line):
        mask |= read | written
    return [byte for byte in range(_LINE_BYTES) if mask >> byte & 1] or list(range(0, line.size, 8))


def _variables(spot: CodeAddress, touched: Sequence[int], symbols: Sequence[_Symbol], commands: Sequence[CompileCommand]) -> Iterator[str]:
    has_variable = False
    for symbol in symbols:
        inside = [spot.offset + byte - symbol.start for byte in touched if 0 <= spot.offset + byte - symbol.start < symbol.size]
        if inside:
            has_variable = True
            yield symbol.name + _listed(fields.of_variable(commands, symbol.name, inside))
    if not has_variable:
        yield f"{Path(spot.object).name}+{spot.offset:#x}"


def _allocation(
    place: Allocation, inside: Sequence[int], calls: dict[CodeAddress, _Call], tree: Path, commands: Sequence[CompileCommand]
) -> str:
    says = f"{place.size} bytes allocated"
    if place.site is None:
        return says
    call = calls.get(place.site)
    if call is None:
        return f"{says} at {Path(place.site.object).name}+{place.site.offset:#x}"
    parts = fields.of_allocation(commands, call.file, call.line, inside)
    file = call.file.relative_to(tree) if call.file.is_relative_to(tree) else call.file
    return f"{says} in {call.function} ({file}:{call.line}){_listed(parts)}"


def _listed(parts: Sequence[str]) -> str:
    return f": {', '.join(part.removeprefix('.') for part in parts)}" if parts else ""


def _symbols(path: str) -> tuple[_Symbol, ...]:
    """Return the data symbols of an object file; those for the dynamic linker where it is stripped."""
    for words in ([], ["-D"]):
        answer = _run(["nm", "-C", "-S", "--defined-only", *words, path])
        matches = [match for line in answer.splitlines() if (match := _SYMBOL.fullmatch(line))]
        if matches:
            return tuple(_Symbol(match[3], int(match[1], 16), int(match[2], 16)) for match in matches)
    return ()


def _calls(sites: set[CodeAddress], tree: Path) -> dict[CodeAddress, _Call]:
    """Return the places of calls, as far as line tables tell them."""
    by_object: dict[str, list[CodeAddress]] = {}
    for site in sorted(sites, key=lambda site: (site.object, site.offset)):
        by_object.setdefault(site.object, []).append(site)
    return {
        site: call
        for path, spots in by_object.items()
        for site, chain in zip(spots, _chains(path, spots), strict=False)
        if (call := _chosen(chain, tree)) is not None
    }


def _chains(path: str, spots: Sequence[CodeAddress]) -> list[list[_Call]]:
    """Return for each place of an object the call and those that it is inlined into, innermost first."""
    # Asked for the first time, addr2line (2.40) gives the innermost call the name of the symbol that all of them are inlined into.
    twice = (f"{spot.offset:#x}" for spot in spots for _ in range(2))
    answer = _run(["addr2line", "-a", "-f", "-C", "-i", "-e", path, *twice])
    chains: list[list[_Call]] = []
    lines = iter(answer.splitlines())
    for line in lines:
        if line.startswith("0x"):
            chains.append([])
            continue
        file, _, number = next(lines, "").partition(" (")[0].rpartition(":")
        if chains and number.isdecimal():
            chains[-1].append(_Call(line, Path(file), int(number)))
    return chains[1::2]


def _chosen(chain: Sequence[_Call], tree: Path) -> _Call | None:
    """Return the innermost call of the project's own code; a library's, such as a container's, says little."""
    resolved = [_Call(call.function, call.file.resolve(), call.line) for call in chain]
    return next((call for call in resolved if call.file.is_relative_to(tree)), resolved[0] if resolved else None)


def _run(command: Sequence[str], asked: str = "") -> str:
    """Return what a tool says to what it is asked, nothing where it is missing or fails."""
    try:
        ended = subprocess.run(command, input=asked, capture_output=True, text=True, errors="replace", timeout=_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return ended.stdout
