"""Which files of a project seem to hold benchmarks and tests: looked for in their text, as no code is run.

perfdiff asks this of a checkout, and the driver of a built tree.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

MOST_FILES = 50_000  # that are looked at by their names: less than a tenth of a second
MOST_READ = 500  # whose text is read, which takes as long
MOST_BYTES = 128 * 1024  # of a file; what is longer was written by a program

# Folders that hold other projects, or what a build made.
_OTHERS = frozenset(("__pycache__", "node_modules", "site-packages", "build", "dist", "venv", "env", "third_party", "vendor"))
_LIKELY = re.compile(r"bench|perf|test", re.IGNORECASE)  # in the path of a file that holds benchmarks or tests
_TEST_FILE = re.compile(r"test.*\.py|.*_test\.py")

_BENCHMARK = re.compile(
    r"^[ \t]*(?:async )?def (?:test|bench)\w*\((?:[^()]|\([^()]*\))*\b(?:codspeed_)?benchmark\b"
    r"|^[ \t]*@pytest\.mark\.(?:codspeed_)?benchmark\b",  # of pytest-codspeed; that of pytest-benchmark stands at tests with its fixture
    re.MULTILINE,
)
_SCRIPT = re.compile(r"^[ \t]*(?:import|from) pyperf\b", re.MULTILINE)
_RUNNER = re.compile(r"\bRunner\(")
_PYTEST = re.compile(r"^[ \t]*(?:import|from) pytest\b|^(?:async )?def test\w*\(|^class Test\w*(?:\(\))?:", re.MULTILINE)
_UNITTEST = re.compile(r"^[ \t]*(?:import unittest\b|from unittest import\b.*TestCase)", re.MULTILINE)


def benchmark_files(folder: Path) -> Iterator[Path]:
    """Yield the files with tests that have the fixture `benchmark` or are marked as benchmarks, relative to the folder."""
    yield from (file for file, text in _texts(folder) if "benchmark" in text and _BENCHMARK.search(text))


def pyperf_scripts(folder: Path) -> Iterator[Path]:
    """Yield the scripts that have a runner of pyperf, relative to the folder."""
    yield from (file for file, text in _texts(folder) if "pyperf" in text and _SCRIPT.search(text) and _RUNNER.search(text))


def has_pytest_tests(folder: Path) -> bool:
    """Return whether there are tests that pytest alone would run."""
    return any(_PYTEST.search(text) for file, text in _texts(folder) if _TEST_FILE.fullmatch(file.name))


def unittest_files(folder: Path) -> Iterator[Path]:
    """Yield the files with test cases of `unittest` that its discovery takes for tests, relative to the folder."""
    yield from (file for file, text in _texts(folder) if file.name.startswith("test") and "unittest" in text and _UNITTEST.search(text))


def _texts(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield the files that may hold benchmarks or tests, by their names, with their texts; the likeliest folders come first."""
    likely = (path for path in islice(_files(str(folder)), MOST_FILES) if path.endswith(".py") and _LIKELY.search(path))
    for path in islice(likely, MOST_READ):
        try:
            with (folder / path).open("rb") as source:
                yield Path(path), source.read(MOST_BYTES).decode(errors="replace")
        except OSError:  # a link that leads nowhere
            continue


def _files(folder: str) -> Iterator[str]:
    """Yield the files below a folder, relative to it; hidden folders and those of other projects are left out."""
    for path, folders, names in os.walk(folder):
        own = (name for name in folders if not name.startswith(".") and name not in _OTHERS)
        folders[:] = sorted(own, key=lambda name: (_LIKELY.search(name) is None, name))
        if "pyvenv.cfg" in names:
            folders.clear()
            continue
        inside = path[len(folder) + 1 :]
        yield from (f"{inside}/{name}" if inside else name for name in sorted(names))
