"""Counts of lines in code that gcc compiled: notes (`.gcno`) say what is counted, a run leaves counts (`.gcda`), gcov reads both."""

from __future__ import annotations

import json
import os
import re
import struct
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from perfdiff.errors import RecordingError
from perfdiff.languages.c import naming
from perfdiff.languages.c.coverage import CountedLine, Inventory, Sources, damaged, unusable
from perfdiff.records.arrays import Ints

_MAGIC = (b"oncg", b"gcno")
_VERSION_BYTES = 8
_OLDEST = 9  # the first gcc whose gcov speaks JSON
_IN_BYTES = 12  # the version since which lengths in these files are in bytes, not in words, and their heads have a fourth word
_MOST_FILES = 500  # of one call of gcov: a command line has a most length
_TIMEOUT_S = 120.0
_COMPILER = re.compile(r"(?P<before>.*?)(?:gcc|g\+\+|cc|c\+\+)(?P<behind>-[\d.]+)?")
# What gcov says of files that it cannot use; it goes on with counts of 0. Of sources that are newer than their notes it speaks, too.
_DAMAGE = re.compile(r"stamp mismatch|not a gcov data file|corrupted|overflowed|profile mismatch|[Cc]ould not open|duplicate|version ")


@dataclass(frozen=True, slots=True)
class _NotesUnit:
    """What one notes file says is counted: per count that gcov prints for it, in order, the place's index, below 0 outside the tree."""

    notes: Path
    tool: str
    places: Ints


@dataclass(frozen=True, slots=True)
class Gcov:
    """The counters of a tree that gcc put in. `units` are by the path of their notes, without suffix, from the root of the file system."""

    tree: Path
    units: Mapping[str, _NotesUnit]

    def environment(self, folder: Path) -> dict[str, str]:
        """Return the variables that make programs leave their counts in `folder`, under the paths of their objects."""
        return {"GCOV_PREFIX": str(folder), "GCOV_PREFIX_STRIP": "0"}

    def read(self, folder: Path, counts: Ints) -> None:
        """Add the counts that a run left in `folder` to `counts` of places; raise RecordingError."""
        by_tool: dict[str, list[tuple[_NotesUnit, Path]]] = {}
        for path in sorted(folder.rglob("*.gcda")):
            unit = self.units.get(str(path.relative_to(folder).with_suffix("")))
            if unit is None:
                continue  # a configuration check's, or that of notes which the build removed
            if not _is_whole(path):
                raise damaged(f"{path}: it ends too early")
            notes = path.with_suffix(".gcno")
            if not notes.is_symlink():
                notes.symlink_to(unit.notes)
            by_tool.setdefault(unit.tool, []).append((unit, path))
        for tool, pairs in by_tool.items():
            documents = _documents(tool, self.tree, [path for _, path in pairs], is_counted=True)
            for (unit, path), document in zip(pairs, documents, strict=True):
                numbers = np.array([line["count"] for _, line in _lines(document)], dtype=np.int64)
                if len(numbers) != len(unit.places):
                    raise damaged(f"{path}: it does not fit the program")
                inside = unit.places >= 0
                np.add.at(counts, unit.places[inside], numbers[inside])


def find(tree: Path, compilers: Sequence[str], inventory: Inventory) -> Gcov:
    """Add the lines that are counted in a built tree to `inventory`, and return what reads their counts; raise RecordingError.

    `compilers` are paths of those that built it.
    """
    notes = [path for path in sorted(tree.rglob("*.gcno")) if path.is_file() and not path.is_symlink()]
    units: dict[str, _NotesUnit] = {}
    for tool, files in _by_tool(notes, compilers).items():
        documents = _documents(tool, tree, files, is_counted=False)
        named = [_places(document, inventory.sources) for document in documents]
        symbols = sorted({line.function for places in named for line in places if line})
        readable = dict(zip(symbols, naming.readable(symbols), strict=True)) if symbols else {}
        for file, places in zip(files, named, strict=True):
            readable_lines = [line and CountedLine(readable[line.function], line.file, line.number) for line in places]
            indices = [-1 if line is None else inventory.index(line) for line in readable_lines]
            units[str(file.with_suffix("")).removeprefix("/")] = _NotesUnit(file, tool, np.array(indices, dtype=np.int64))
    return Gcov(tree, units)


def _places(document: Mapping[str, Any], sources: Sources) -> list[CountedLine | None]:
    """Return the place of each count that a document holds, its function by its symbol; None outside the tree."""
    lines: list[CountedLine | None] = []
    for file, line in _lines(document):
        name = sources.relative(file["file"], document["current_working_directory"])
        if name is None:
            lines.append(None)
            continue
        number = line["line_number"]
        lines.append(CountedLine(_function(file["functions"], line, number) or sources.function_at(name, number), name, number))
    return lines


def _lines(document: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    for file in document["files"]:
        for line in file["lines"]:
            yield file, line


def _function(functions: Sequence[Mapping[str, Any]], line: Mapping[str, Any], number: int) -> str | None:
    """Return the symbol of the function that a count belongs to, None where what stands there was always inlined.

    gcov names it for instances of templates. Of other lines it names the last function that began before, which may have ended since.
    """
    around = [function for function in functions if function["start_line"] <= number <= function["end_line"]]
    starts = {function["start_line"] for function in around}
    if len(starts) < len(around) and any(function["name"] == line.get("function_name") for function in around):
        return str(line["function_name"])
    innermost = max(around, key=lambda function: (function["start_line"], -function["end_line"]), default=None)
    return None if innermost is None else str(innermost["name"])


def _documents(tool: str, tree: Path, files: Sequence[Path], *, is_counted: bool) -> list[Mapping[str, Any]]:
    """Return what gcov says of notes or of counts, one document each; of notes alone all counts are 0. Raise RecordingError."""
    all_documents: list[Mapping[str, Any]] = []
    for start in range(0, len(files), _MOST_FILES):
        part = files[start : start + _MOST_FILES]
        command = [tool, "--json-format", "--stdout", "--relative-only", "--source-prefix", str(tree), *map(str, part)]
        try:
            ended = subprocess.run(command, capture_output=True, env={"LC_ALL": "C"}, cwd=tree, timeout=_TIMEOUT_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise unusable(tool, str(error)) from error
        complaints = ended.stderr.decode(errors="replace")
        damage = next((line for line in complaints.splitlines() if _DAMAGE.search(line)), None)
        if is_counted and damage is not None:
            raise damaged(damage)
        try:
            documents = [json.loads(line) for line in ended.stdout.splitlines() if line.strip()]
        except ValueError as error:
            raise unusable(tool, f"what it says is no JSON ({error})") from error
        if len(documents) != len(part) or any("files" not in document for document in documents):
            raise unusable(tool, complaints.strip() or f"it says nothing of {len(part) - len(documents)} files")
        all_documents += documents
    return all_documents


def _by_tool(notes: Sequence[Path], compilers: Sequence[str]) -> dict[str, list[Path]]:
    """Return the notes by the gcov that reads them: that of the compiler which wrote them."""
    by_tool: dict[str, list[Path]] = {}
    by_version: dict[int, str] = {}
    for path in notes:
        version = _version(path)
        if version is None or version < _OLDEST:
            continue  # clang's, which the project itself asks for; they say they are of gcc 4
        if version not in by_version:
            by_version[version] = _tool(version, compilers)
        by_tool.setdefault(by_version[version], []).append(path)
    return by_tool


def _version(notes: Path) -> int | None:
    """Return the major version of the gcc that wrote a notes file (gcov-io.h: `B22*` is 12.2)."""
    with notes.open("rb") as file:
        head = file.read(_VERSION_BYTES)
    if len(head) < _VERSION_BYTES or head[:4] not in _MAGIC:
        return None
    return _major(head[4:8][::-1] if head[:4] == _MAGIC[0] else head[4:8])


def _major(version: bytes) -> int:
    return (version[0] - ord("A")) * 10 + version[1] - ord("0")


def _is_whole(counts: Path) -> bool:
    """Return whether a file of counts has its end: gcov takes what is missing for 0 (gcov-io.h: records of a tag, a length and words)."""
    content = counts.read_bytes()
    order = "<" if content[:4] == b"adcg" else ">"
    version = content[4:8][::-1] if order == "<" else content[4:8]
    if len(version) < len("B22*"):
        return False
    in_bytes = _major(version) >= _IN_BYTES
    at = 16 if in_bytes else 12
    while at + 8 <= len(content):
        tag, length = struct.unpack_from(f"{order}Ii", content, at)
        if tag == 0:
            return False
        at += 8 + max(0, length if in_bytes else 4 * length)  # of counters that are all 0 the length is negative, and nothing follows
    return content[at:] == bytes(4)


def _tool(version: int, compilers: Sequence[str]) -> str:
    """Return the gcov of a version: beside a compiler that was used, else on the usual path."""
    names = dict.fromkeys(name for compiler in compilers for name in _beside(Path(compiler)))
    for name in [*names, f"gcov-{version}", "gcov"]:
        try:
            version_text = subprocess.run([name, "--version"], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False).stdout
        except (OSError, subprocess.TimeoutExpired):
            continue
        says = re.search(r"(\d+)\.\d+", version_text.partition("\n")[0].rpartition(")")[2] or version_text)
        if says and int(says[1]) == version:
            return name
    raise RecordingError(
        f"gcov of gcc {version} was not found: it reads the counts of lines; install the package gcc-{version}, which has it",
        slug="places-tool",
    )


def _beside(compiler: Path) -> Iterator[str]:
    for path in (compiler, Path(os.path.realpath(compiler))):
        match = _COMPILER.fullmatch(path.name)
        if match:
            yield str(path.with_name(f"{match['before']}gcov{match['behind'] or ''}"))
