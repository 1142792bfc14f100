"""Reading profiles: which form one has is told by what it holds, and the files of one folder are runs of one side."""

from __future__ import annotations

from pathlib import Path

from perfdiff.errors import RecordingError, UsageError
from perfdiff.records import bounds
from perfdiff.records.results.experiment import MOST_FILES
from perfdiff.records.results.reading import listed_files
from perfdiff.records.sampled import folded, perfdata, perfscript, pprof, speedscope
from perfdiff.records.sampled.samples import FunctionSamples

LARGEST_BYTES = 1_000_000_000
_SNIFFED_BYTES = 65_536


def holds_profiles(path: Path) -> bool:
    """Return whether a path is a profile, or a folder of nothing but such, by how files begin."""
    files = listed_files(path) if path.is_dir() else [path] if path.is_file() else []
    return bool(files) and all(map(_begins_as_one, files))


def read_side(path: Path) -> list[FunctionSamples]:
    """Return the profiles of one side, one a file; raise RecordingError where one is damaged or empty, UsageError where forms differ."""
    files = listed_files(path) if path.is_dir() else [path]
    if len(files) > MOST_FILES:
        raise UsageError(f"'{path}' holds {len(files):,} files; {MOST_FILES:,} at most are read", slug="results-unknown")
    profiles = [_read(file) for file in files]
    if len({profile.form for profile in profiles}) > 1:
        raise UsageError(f"'{path}' holds profiles of several forms; give those of one", slug="results-apart")
    return profiles


def _read(path: Path) -> FunctionSamples:
    try:
        content = bounds.content(path, LARGEST_BYTES)
        if content.startswith(pprof.MAGIC):
            profile: FunctionSamples | None = pprof.read(content)
        elif content.startswith(perfdata.MAGIC):
            profile = perfscript.read(perfdata.text_of(path, LARGEST_BYTES))
        else:
            profile = _of_text(content.decode(errors="replace"))
    except OSError as error:
        raise RecordingError(f"'{path}' cannot be read: {error.strerror}", slug="results-damaged") from error
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise RecordingError(f"'{path}' holds a damaged profile: {str(error)[:200]}; write it anew", slug="results-damaged") from error
    if profile is None or not profile.total > 0:
        raise RecordingError(f"'{path}' holds no samples; profile a run that takes longer", slug="results-empty")
    return profile


def _of_text(text: str) -> FunctionSamples | None:
    if text.lstrip("\ufeff \t\r\n").startswith("{"):
        return speedscope.read(bounds.parsed(text))
    return folded.read(text) or perfscript.read(text)


def _begins_as_one(path: Path) -> bool:
    with path.open("rb") as file:
        start = file.read(_SNIFFED_BYTES)
    if start.startswith((perfdata.MAGIC, pprof.MAGIC)):
        return True
    text = start.decode(errors="replace")
    if text.lstrip("\ufeff \t\r\n").startswith("{"):
        return '"shared"' in text and '"frames"' in text
    whole_lines = text[: text.rfind("\n") + 1] or text
    return perfscript.read(whole_lines) is not None or _is_folded(whole_lines)


def _is_folded(text: str) -> bool:
    try:
        return folded.read(text) is not None
    except ValueError:
        return True  # of two sides, which the reader refuses with its reason
