"""Switches of a build that its benchmarks and tests wait for: options that are off in CMake's cache, or in what Meson tells of itself."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from perfdiff.languages.listing import Listing

CMAKE_CACHE, MESON_OPTIONS = "CMakeCache.txt", "meson-info/intro-buildoptions.json"
_DEPTH = 3  # of folders below the project's in which builds lie
_MEANT = re.compile(r"BENCH|TEST|FUZZ|PERF", re.IGNORECASE)
_OTHERS = re.compile(r"^(CMAKE|CTEST|CPACK|FETCHCONTENT|BENCHMARK_ENABLE|INSTALL)_", re.IGNORECASE)  # of tools, not of the project
_OFF = re.compile(r"^(\w+):BOOL=(?:OFF|0|NO|FALSE|N)$", re.MULTILINE | re.IGNORECASE)


def with_switches(listing: Listing) -> Listing:
    """Return a listing that tells, where it has nothing, which options of the build are off that may be the reason."""
    if listing.benchmarks:
        return listing
    return replace(listing, failures={**listing.failures, **dict(_switches())})


def build_folders(file: str) -> Iterator[Path]:
    """Yield the folders that hold a file which a build system leaves in its builds, the current folder first."""
    for parent, folders, _ in os.walk("."):
        path = Path(parent)
        depth = len(path.parts)
        folders[:] = (
            sorted(name for name in folders if not name.startswith((".", "_deps")) and name != "CMakeFiles") if depth < _DEPTH else []
        )
        if (path / file).is_file():
            yield path


def _switches() -> Iterator[tuple[str, str]]:
    for folder in build_folders(CMAKE_CACHE):
        for name in _OFF.findall((folder / CMAKE_CACHE).read_text(errors="replace")):
            if _MEANT.search(name) and not _OTHERS.match(name):
                yield (
                    f"-D{name}=ON",
                    f"is off in {(folder / CMAKE_CACHE).as_posix()}: add it to the build command, if benchmarks or tests wait for it",
                )
    for folder in build_folders(MESON_OPTIONS):
        for option in _meson_options(folder / MESON_OPTIONS):
            name, value = str(option.get("name")), option.get("value")
            if option.get("section") == "user" and _MEANT.search(name) and value in (False, "disabled"):
                on = "enabled" if value == "disabled" else "true"
                yield f"-D{name}={on}", f"is off in {folder.as_posix()}: add it to the build command, if benchmarks or tests wait for it"


def _meson_options(file: Path) -> list[dict[str, object]]:
    try:
        options = json.loads(file.read_text(errors="replace"))
    except (OSError, ValueError):
        return []
    return [option for option in options if isinstance(option, dict)] if isinstance(options, list) else []
