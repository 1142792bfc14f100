"""Counts of lines in code that clang compiled: llvm-profdata adds up what a run left (`.profraw`), llvm-cov says which regions of code ran.

A region's count is exact as long as calls return, and do so once: what follows one in the same region counts as reached where it threw or
ended the program, and where `fork` returned twice, what follows it counts as less, down to 0. A line's count is the largest of the
regions that begin on it and of the one that it begins in (LineCoverageStats of LLVM).
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from perfdiff.errors import RecordingError
from perfdiff.languages.c import naming
from perfdiff.languages.c.built_files import look_through
from perfdiff.languages.c.coverage import CountedLine, Inventory, damaged, unusable
from perfdiff.records.arrays import Ints

_MAPPING = b"__llvm_covmap"
_BUILD_ID = re.compile(rb"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0(.{20})", re.DOTALL)  # an ELF note: sizes of name and digest, type, name
_HEAD_BYTES = 4096  # of a raw profile, which names its program there
_GAP = 3
_KINDS = (0, 1, _GAP)  # of regions: code, what a macro holds, white space between two others
_BELOW_ZERO = np.iinfo(np.int64).max  # what llvm-cov says of a difference of counters that is below 0
_TIMEOUT_S = 120.0


@dataclass(frozen=True, slots=True)
class _Region:
    """A stretch of code with a count, from line and column to line and column; `index` is its place among its function's."""

    start: tuple[int, int]
    end: tuple[int, int]
    index: int


@dataclass(frozen=True, slots=True)
class _CoveredProgram:
    """A program or library: `regions` of all its functions in llvm-cov's order are what `places` count, from `starts` on each."""

    path: Path
    build: bytes
    total: int
    regions: Ints
    starts: Ints
    places: Ints


@dataclass(frozen=True, slots=True)
class _Tools:
    profdata: str
    cov: str


@dataclass(frozen=True, slots=True)
class LlvmCov:
    """The counters of a tree that clang put in."""

    tools: _Tools | None
    programs: tuple[_CoveredProgram, ...]

    def environment(self, folder: Path) -> dict[str, str]:
        """Return the variables that make programs leave their counts in `folder`, one file each that all its processes add to."""
        return {"LLVM_PROFILE_FILE": f"{folder}/%m.profraw"}  # where our runtime does not give each program a name of its own

    def read(self, folder: Path, counts: Ints) -> None:
        """Add the counts that a run left in `folder` to `counts` of places; raise RecordingError."""
        raw = [(path, _head(path)) for path in sorted(folder.glob("*.profraw"))]
        for program in self.programs:
            files = [path for path, head in raw if program.build in head]
            if files and self.tools is not None:
                numbers = _exported(self.tools, program.path, files, folder)
                region_counts = np.array([region[4] for function in numbers for region in function["regions"]], dtype=np.int64)
                if len(region_counts) != program.total:
                    raise damaged(f"{files[0]} does not fit {program.path}")
                region_counts[region_counts == _BELOW_ZERO] = 0
                if len(program.places):
                    np.add.at(counts, program.places, np.maximum.reduceat(region_counts[program.regions], program.starts))


def find(tree: Path, compilers: Sequence[str], inventory: Inventory, room: Path) -> LlvmCov:
    """Add the lines that are counted in a built tree to `inventory`, and return what reads their counts; raise RecordingError.

    `compilers` are paths of those that built it, `room` is an empty folder.
    """
    programs: dict[bytes, Path] = {}
    for name in look_through(tree).programs:
        content = (tree / name).read_bytes()
        build = _BUILD_ID.search(content)
        if _MAPPING in content and build:
            programs.setdefault(build[1], tree / name)
    if not programs:
        return LlvmCov(None, ())
    tools = _tools(compilers)
    return LlvmCov(tools, tuple(_program(tools, path, build, inventory, room) for build, path in programs.items()))


def _program(tools: _Tools, path: Path, build: bytes, inventory: Inventory, room: Path) -> _CoveredProgram:
    functions = _exported(tools, path, [], room)
    names = naming.readable([function["name"].rpartition(":")[2] for function in functions]) if functions else ()
    regions: list[int] = []
    starts: list[int] = []
    places: list[int] = []
    first = 0
    for function, name in zip(functions, names, strict=True):
        file = inventory.sources.relative(function["filenames"][0], str(path.parent))
        if file is not None:
            for number, members in _lines(function["regions"], inventory.sources.code(file)):
                starts.append(len(regions))
                regions += [first + index for index in members]
                places.append(inventory.index(CountedLine(name, file, number)))
        first += len(function["regions"])
    return _CoveredProgram(path, build, first, np.array(regions, np.int64), np.array(starts, np.int64), np.array(places, np.int64))


def _lines(regions: Sequence[Sequence[int]], code: Sequence[str]) -> Iterator[tuple[int, list[int]]]:
    """Yield the lines of a function that hold code, and the regions of which the largest count is theirs.

    Regions are `[line, column, line, column, count, file, expanded file, kind]`. What macros hold is left to the line that they stand in.
    """
    own = [_Region((raw[0], raw[1]), (raw[2], raw[3]), i) for i, raw in enumerate(regions) if raw[5] == 0 and raw[7] in _KINDS]
    gaps = {region.index for region in own if regions[region.index][7] == _GAP}
    if not own:
        return
    for number in range(min(region.start[0] for region in own), max(region.end[0] for region in own) + 1):
        if number > len(code) or not code[number - 1].strip("{}; \t\r"):
            continue
        around = [region for region in own if region.start <= (number, 1) < region.end]
        begun = [region.index for region in own if region.start[0] == number and region.index not in gaps]
        innermost = max(around, key=lambda region: (region.start, (-region.end[0], -region.end[1])), default=None)
        members = sorted({*begun, *([innermost.index] if innermost else [])})
        if members:
            yield number, members


def _exported(tools: _Tools, program: Path, raw: Sequence[Path], room: Path) -> list[Mapping[str, Any]]:
    """Return what llvm-cov says of a program's functions, with the counts of raw profiles; raise RecordingError."""
    profile = room / f"{program.name}.profdata"
    inputs = list(raw)
    if not raw:
        inputs = [room / "empty.proftext"]
        inputs[0].write_text("")  # a profile of nothing, in its text form
    _ran([tools.profdata, "merge", "--sparse", "--failure-mode=any", "-o", str(profile), *map(str, inputs)], is_counted=bool(raw))
    answer = _ran([tools.cov, "export", "--format=text", f"--instr-profile={profile}", str(program)], is_counted=False)
    try:
        functions = json.loads(answer)["data"][0]["functions"]
    except (ValueError, LookupError, TypeError) as error:
        raise unusable(tools.cov, f"what it says cannot be read ({error})") from error
    return [function for function in functions if function["filenames"]]


def _ran(command: Sequence[str], *, is_counted: bool) -> bytes:
    try:
        ended = subprocess.run(command, capture_output=True, timeout=_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise unusable(command[0], str(error)) from error
    if ended.returncode == 0:
        return ended.stdout
    complaint = ended.stderr.decode(errors="replace").strip()
    raise damaged(complaint) if is_counted else unusable(command[0], complaint)


def _head(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_HEAD_BYTES)


def _tools(compilers: Sequence[str]) -> _Tools:
    """Return the tools of the clang that was used: beside it, or named by its version."""
    clang = next((path for path in map(Path, compilers) if "clang" in os.path.realpath(path)), Path("clang"))
    beside = Path(os.path.realpath(clang)).parent
    version = re.search(r"llvm-(\d+)|clang(?:\+\+)?-(\d+)", os.path.realpath(clang))
    number = (version[1] or version[2]) if version else ""
    paths = []
    for tool in ("llvm-profdata", "llvm-cov"):
        for name in (str(beside / tool), f"{tool}-{number}", tool):
            try:
                works = subprocess.run([name, "--help"], capture_output=True, timeout=_TIMEOUT_S, check=False).returncode == 0
            except (OSError, subprocess.TimeoutExpired):
                continue
            if works:
                paths.append(name)
                break
        else:
            raise RecordingError(
                f"{tool} was not found: it reads the counts of lines that {clang} compiled; install the package "
                f"{f'llvm-{number}' if number else 'llvm'}",
                slug="places-tool",
            )
    return _Tools(*paths)
