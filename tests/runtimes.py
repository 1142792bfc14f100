"""perfdiff's runtime library, compiled once for all tests and kept by its content."""

from __future__ import annotations

import shutil
from pathlib import Path

from perfdiff.languages.c import runtime_library

KEPT = Path(__file__).parent.parent / "build" / "runtime"


def library() -> Path:
    """Return the folder of the library as gcc compiles it; nobody may change what lies in it."""
    return runtime_library.build("gcc", KEPT)


def lent_to(cache: Path) -> Path:
    """Copy the library into a cache, all of it and for engines alone, so that a comparison finds it compiled; return the cache."""
    cache.mkdir(mode=0o700, parents=True, exist_ok=True)
    for built in (library(), runtime_library.build_timed("gcc", KEPT)):
        shutil.copytree(built, cache / "runtime" / built.name, dirs_exist_ok=True)
    return cache
