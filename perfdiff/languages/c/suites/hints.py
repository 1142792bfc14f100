"""What a checkout, in which nothing was built, says of the frameworks that its benchmarks and tests are written with."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

_IN_SOURCES = {
    "googlebenchmark": re.compile(rb"#\s*include\s*[<\"](?:\.\./)*benchmark/benchmark\.h[>\"]"),
    "nanobench": re.compile(rb"#\s*include\s*[<\"](?:[\w./-]*/)?nanobench\.h[>\"]"),
    "catch2": re.compile(rb"#\s*include\s*[<\"](?:catch2/|(?:[\w./-]*/)?catch(?:_amalgamated)?\.hpp[>\"])"),
    "googletest": re.compile(rb"#\s*include\s*[<\"]g(?:test|mock)/g(?:test|mock)\.h[>\"]"),
    "doctest": re.compile(rb"#\s*include\s*[<\"](?:[\w./-]*/)?doctest\.h[>\"]"),
}
_IN_CMAKE = {
    "ctest": re.compile(
        rb"^\s*(?:enable_testing|add_test|gtest_discover_tests|catch_discover_tests|include\s*\(\s*CTest)\b", re.MULTILINE | re.IGNORECASE
    )
}
_IN_MESON = {"meson": re.compile(rb"^\s*(?:benchmark|test)\s*\(", re.MULTILINE)}
_OF_OTHERS = frozenset(
    ("vendor", "vendored", "third_party", "thirdparty", "3rdparty", "external", "extern", "deps", "subprojects", "node_modules", "build")
)
_SOURCE = re.compile(r".*\.(c|cc|cpp|cxx|h|hh|hpp|hxx)", re.IGNORECASE)
_NAMED = re.compile(r"bench|perf|test|spec|check", re.IGNORECASE)  # folders and files of benchmarks and tests
_MOST_FILES = 20_000  # names that are looked at
_MOST_READ = 400  # sources, and as many files of build systems: a few thousandths of a second each hundred
_HEAD_BYTES = 8_192  # of a source, in which its inclusions stand
_BUILD_BYTES = 200_000


def hints(project: Path) -> frozenset[str]:
    """Return the names of the frameworks that a project seems to use, none where no build makes programs."""
    try:
        return _hints(project, project.stat().st_mtime_ns)
    except OSError:
        return frozenset()


@lru_cache(maxsize=1)
def _hints(project: Path, changed_ns: int) -> frozenset[str]:
    from perfdiff.configuration import buildsystem  # whose package asks for all frameworks as it is loaded

    if not buildsystem.compiles(project):
        return frozenset()
    sources, builds = _files(project)
    of_builds = {"CMakeLists.txt": _IN_CMAKE, "meson.build": _IN_MESON}
    names: set[str] = set()
    for path in sources:
        names |= _matching(path, _IN_SOURCES, _HEAD_BYTES)
    for path in builds:
        names |= _matching(path, of_builds[path.name], _BUILD_BYTES)
    system = buildsystem.detect(project)
    other_systems = {"ctest": "cmake", "meson": "meson"}
    return frozenset(name for name in names if system is None or other_systems.get(name, system.name) == system.name)


def _files(project: Path) -> tuple[list[Path], list[Path]]:
    """Return the sources of benchmarks and tests, those of benchmarks first, and the files of build systems."""
    sources: list[Path] = []
    builds: list[Path] = []
    for path in _walked(project):
        if path.name in ("CMakeLists.txt", "meson.build"):
            builds.append(path)
        elif _SOURCE.fullmatch(path.name) and _NAMED.search(path.relative_to(project).as_posix()):
            sources.append(path)
    sources.sort(key=lambda path: "bench" not in path.as_posix().lower())
    return sources[:_MOST_READ], builds[:_MOST_READ]


def _walked(project: Path) -> Iterator[Path]:
    seen = 0
    for parent, folders, names in os.walk(project):
        folders[:] = [name for name in folders if not name.startswith(".") and name.lower() not in _OF_OTHERS]
        seen += len(names)
        if seen > _MOST_FILES:
            return
        for name in names:
            yield Path(parent, name)


def _matching(path: Path, patterns: dict[str, re.Pattern[bytes]], most_bytes: int) -> set[str]:
    try:
        with path.open("rb") as opened:
            text = opened.read(most_bytes)
    except OSError:
        return set()
    return {name for name, pattern in patterns.items() if pattern.search(text)}
