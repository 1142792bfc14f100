"""Exact counts of lines of Java code: what is counted in a tree, and what one run of its programs left."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from perfdiff.languages import compiled, line_counts
from perfdiff.languages.java import counting, start, tools, weaving
from perfdiff.languages.java.jdks import Jdk
from perfdiff.languages.line_counts import InterpretedPlaces
from perfdiff.languages.protocol import FunctionDefinition
from perfdiff.records.arrays import Ints
from perfdiff.records.places import Place

_LOOM = "perfdiff.loom.LineLoom"
_TABLE = "lines"
_HEAD = np.dtype([*line_counts.HEAD.descr, ("part", "<u8"), ("parts", "<u8")])  # of lines/file.c
_MAGIC = b"PDJLINE1"
_FIRST = 4096  # bytes before the first thread's part
_THREAD = 64  # bytes of a part before its counts
_NUMBERS = np.dtype(">i4")


@dataclass(frozen=True, slots=True)
class JvmLineCounter:
    """What counts lines in JVMs: the agent (`agent.build_lines`), and the `options` that JVMs are given anyway."""

    agent: Path
    options: str


def places(jdk: Jdk, tree: Path, functions: Iterable[FunctionDefinition], host: JvmLineCounter, cache: Path) -> InterpretedPlaces:
    """Return the places of a tree's `functions`, the same in each run of its programs.

    Raises BuildError where the loom fails or the JDK has none, StoreError where `cache` cannot be written.
    """
    jdk = counting.weaver(jdk)
    by_method = {method: function for function in functions for method in function.linkage}
    sheet, table = _woven(jdk, tree, sorted(by_method), cache)
    methods = [by_method[method] for method in sorted(by_method)]
    rows = [(methods[method], line, number) for number, (method, line) in enumerate(table) if method >= 0]
    rows.sort(key=lambda row: (row[0].file, row[1], row[0].name))
    sources = {file: _text(tree / file) for file in dict.fromkeys(function.file for function, _, _ in rows)}
    counted_lines = tuple(
        Place(function.name, function.file, line, line_counts.text_of(sources[function.file], line)) for function, line, _ in rows
    )
    numbers = np.array([number for _, _, number in rows], dtype=np.int64)
    return InterpretedPlaces(
        counted_lines, sources, start.lines(sheet, len(table), host.agent, host.options), sheet, numbers, len(table), _sums
    )


def _woven(jdk: Jdk, tree: Path, methods: Sequence[str], cache: Path) -> tuple[Path, list[list[int]]]:
    """Return the sheet of the classes in which lines of these methods are counted, and the method and line of each place in it."""
    files = weaving.class_files(tree, {method.split()[0] for method in methods})
    encoded = (method.encode(errors="surrogatepass") for method in methods)
    request = weaving.listed(map(weaving.sized, encoded)) + weaving.listed(map(weaving.sized, files))
    name = hashlib.sha256(tools.build(jdk, cache, "loom").name.encode() + b"lines" + request).hexdigest()[:24]
    folder = compiled.kept(cache, f"java-lines-{name}", partial(_make, jdk, tree, cache, request))
    table = np.frombuffer((folder / _TABLE).read_bytes(), _NUMBERS).reshape(-1, 2)
    return folder / weaving.SHEET, table.tolist()


def _make(jdk: Jdk, tree: Path, cache: Path, request: bytes, folder: Path) -> None:
    answer = tools.run(jdk, cache, _LOOM, counting.arguments(tree), request)
    end = _NUMBERS.itemsize + int(np.frombuffer(answer, _NUMBERS, 1)[0])
    (folder / weaving.SHEET).write_bytes(answer[_NUMBERS.itemsize : end])
    (folder / _TABLE).write_bytes(answer[end:])


def _sums(content: bytes, counted: int) -> Ints | None:
    """Return what the threads of a process counted together, None where that cannot be what it wrote."""
    if len(content) < _FIRST or not content.startswith(_MAGIC):
        return None
    head = np.frombuffer(content, _HEAD, 1)[0]
    part, parts = int(head["part"]), int(head["parts"])
    if int(head["places"]) != counted or part < _THREAD + 8 * counted or len(content) < _FIRST + parts * part:
        return None
    rows = (np.frombuffer(content, "<u8", counted, _FIRST + number * part + _THREAD) for number in range(parts))
    return np.sum([row.astype(np.int64) for row in rows], axis=0, dtype=np.int64) + np.zeros(counted, dtype=np.int64)


def _text(path: Path) -> tuple[str, ...]:
    """Return the lines of a file; what is not UTF-8 is Latin-1."""
    data = path.read_bytes()
    try:
        return tuple(data.decode("utf-8").split("\n"))
    except UnicodeDecodeError:
        return tuple(data.decode("latin-1").split("\n"))
