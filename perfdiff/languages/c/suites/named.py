"""Sources and programs that people name for benchmarks, tests and examples."""

from __future__ import annotations

import re
from pathlib import Path

from perfdiff.languages.c.suites.checkout import SOURCES, folders

# Parts of paths that name what shows a project at work, what tells most of speed first.
_PATTERNS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"bench|(?:^|[-_./])perf(?:[-_./]|$)",
        r"(?:^|[-_./])(?:unit)?tests?(?![a-z])|[-_a-z]tests?(?:[-_./]|$)|(?:^|[-_./])smoke",
        r"example|(?:^|[-_./])(?:sample|demo)s?(?![a-z])",
    )
)


def rank(path: str) -> int | None:
    """Return how telling what lies at a path is, 0 the most; None where it is not named for benchmarks, tests or examples."""
    return next((place for place, pattern in enumerate(_PATTERNS) if pattern.search(path)), None)


def sources(project: Path) -> dict[str, int]:
    """Return how telling the sources of a checkout are that are so named, by their names without suffix."""
    paths = [file for folder in folders(project) for file in folder.files if file.suffix in SOURCES]
    return {path.stem: number for path in paths if (number := rank(path.as_posix())) is not None}
