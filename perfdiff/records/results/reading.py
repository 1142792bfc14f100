"""Reading files of results: which tool wrote one is told by what it holds, and files of one folder are sessions of one side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from perfdiff.errors import RecordingError, UsageError
from perfdiff.records import bounds
from perfdiff.records.results import asvresults, gobench, googlebenchmark, hyperfine, jmh, phpbench, pytestbenchmark
from perfdiff.records.results.experiment import MOST_FILES
from perfdiff.records.results.series import BenchmarkSeries, ToolResults

LARGEST_BYTES = 256_000_000
_JSON: Sequence[Callable[[Any], ToolResults | None]] = (
    googlebenchmark.read,
    pytestbenchmark.read,
    asvresults.read,
    hyperfine.read,
    jmh.read,
)
TOOLS = (googlebenchmark.TOOL, pytestbenchmark.TOOL, asvresults.TOOL, hyperfine.TOOL, jmh.TOOL, phpbench.TOOL, gobench.TOOL)
_SUFFIXES = (".json", ".txt", ".xml")


def holds_results(path: Path) -> bool:
    """Return whether a path may be one of results: a file of text, or a folder with nothing but such files; their contents decide."""
    if path.is_dir():
        return bool(listed_files(path)) and all(file.suffix in _SUFFIXES and _is_text(file) for file in listed_files(path))
    return path.is_file() and _is_text(path)


def read_side(path: Path) -> tuple[ToolResults, ...]:
    """Return the results of one side, one entry a file; raise RecordingError where one is damaged, UsageError where it is of no tool."""
    files = listed_files(path) if path.is_dir() else [path]
    if len(files) > MOST_FILES:
        raise UsageError(f"'{path}' holds {len(files):,} files; {MOST_FILES:,} at most are read", slug="results-unknown")
    sessions = tuple(map(read, files))
    if len({session.tool for session in sessions}) > 1:
        raise UsageError(f"'{path}' holds results of several tools; give a folder for each", slug="results-apart")
    return sessions


def read(path: Path) -> ToolResults:
    """Return what a file of results holds; raise RecordingError where it is damaged, UsageError where it is of no tool that is known."""
    try:
        text = bounds.content(path, LARGEST_BYTES).decode()
        results = _recognised(text)
        merged = None if results is None else replace(results, series=_merged(results.series))
    except OSError as error:
        raise RecordingError(f"'{path}' cannot be read: {error.strerror}", slug="results-damaged") from error
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise RecordingError(f"'{path}' holds damaged results: {_says(error)}; write them anew", slug="results-damaged") from error
    if merged is None:
        raise UsageError(f"'{path}' holds results of no tool that is known: {', '.join(TOOLS)}", slug="results-unknown")
    if not merged.series:
        raise UsageError(f"'{path}' is of {merged.tool}, and holds no times", slug="results-empty")
    return merged


def _recognised(text: str) -> ToolResults | None:
    start = text.lstrip("\ufeff \t\r\n")[:1]
    if start == "<":
        return phpbench.read(text)
    if start not in ("{", "["):
        return gobench.read(text)
    data = bounds.parsed(text)
    return next((results for reader in _JSON if (results := reader(data)) is not None), None)


def _merged(series: Sequence[BenchmarkSeries]) -> tuple[BenchmarkSeries, ...]:
    """Return series of which no two are of one benchmark at the same parameters: repetitions of such go together."""
    by_place: dict[tuple[str, tuple[tuple[str, float | str], ...]], BenchmarkSeries] = {}
    for each_series in series:
        place = each_series.name, tuple(sorted(each_series.parameters.items()))
        before = by_place.get(place)
        processes = (*before.processes, *each_series.processes) if before else each_series.processes
        by_place[place] = replace(each_series, processes=processes, lacks=each_series.lacks or (before.lacks if before else ""))
    return tuple(by_place.values())


def _says(error: Exception) -> str:
    return f"it has no {error}" if isinstance(error, KeyError) else str(error)[:200]


def listed_files(folder: Path) -> list[Path]:
    """Return the files of a folder that are not hidden, in the order of their names."""
    return sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))


def _is_text(path: Path) -> bool:
    """Return whether a file begins as a text that a tool may have written, and not as a log of calls."""
    with path.open("rb") as file:
        start = file.read(4096)
    return b"\0" not in start and bool(start.strip())
