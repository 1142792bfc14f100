"""What a checkout, in which nothing was built, says of the frameworks that its benchmarks and tests are written with."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from perfdiff.languages.c.suites.checkout import folders

_IN_SOURCES = {
    "googlebenchmark": re.compile(rb"#\s*include\s*[<\"](?:\.\./)*benchmark/benchmark\.h[>\"]"),
    "nanobench": re.compile(rb"#\s*include\s*[<\"](?:[\w./-]*/)?nanobench\.h[>\"]"),
    "catch2": re.compile(rb"#\s*include\s*[<\"](?:catch2/|(?:[\w./-]*/)?catch(?:_amalgamated)?\.hpp[>\"])"),
    "googletest": re.compile(rb"#\s*include\s*[<\"]g(?:test|mock)/g(?:test|mock)\.h[>\"]"),
    "doctest": re.compile(rb"#\s*include\s*[<\"](?:[\w./-]*/)?doctest\.h(?:pp)?[>\"]"),
}
_TARGETS = ("bench", "benchmark", "benchmarks", "perf", "check", "test", "tests")  # those of benchmarks before those of tests
_IN_MAKEFILES = {target: re.compile(rb"^%s[ \t]*::?(?!=)" % target.encode(), re.MULTILINE) for target in _TARGETS}
_OF_MAKE = dict.fromkeys(("Makefile", "makefile", "GNUmakefile", "Makefile.in"), _IN_MAKEFILES)
_OF_AUTOMAKE = {"Makefile.am": {"check": re.compile(rb"^TESTS[ \t]*\+?=", re.MULTILINE)}}
_CMAKE = rb"^[ \t]*(?:enable_testing|add_test|gtest_discover_tests|catch_discover_tests|include\s*\(\s*CTest)\b"
# What tells of tests in the files of each build system: those of others that lie about are not what the build uses.
_IN_BUILDS: dict[str, dict[str, dict[str, re.Pattern[bytes]]]] = {
    "cmake": {"CMakeLists.txt": {"ctest": re.compile(_CMAKE, re.MULTILINE | re.IGNORECASE)}},
    "meson": {"meson.build": {"meson": re.compile(rb"^[ \t]*(?:benchmark|test)[ \t]*\(", re.MULTILINE)}},
    "autotools": {**_OF_MAKE, **_OF_AUTOMAKE},
    "configure": {**_OF_MAKE, **_OF_AUTOMAKE},
    "make": _OF_MAKE,
}
_BUILD_FILES = frozenset(name for files in _IN_BUILDS.values() for name in files)
_SOURCE = re.compile(r".*\.(c|cc|cpp|cxx|h|hh|hpp|hxx)", re.IGNORECASE)
_NAMED = re.compile(r"bench|perf|test|spec|check", re.IGNORECASE)  # folders and files of benchmarks and tests
_MOST_READ = 400  # sources, and as many files of build systems: a few thousandths of a second each hundred
_HEAD_BYTES = 8_192  # of a source, in which its inclusions stand
_BUILD_BYTES = 200_000


@dataclass(frozen=True, slots=True)
class Hints:
    """What a project seems to have: the names of `frameworks`, and the `targets` of make that run benchmarks, and then tests."""

    frameworks: frozenset[str] = frozenset()
    targets: tuple[str, ...] = ()


def hints(project: Path) -> Hints:
    """Return the frameworks that a project seems to use, none if no build makes programs."""
    try:
        return _hints(project, project.stat().st_mtime_ns)
    except OSError:
        return Hints()


@lru_cache(maxsize=1)
def _hints(project: Path, changed_ns: int) -> Hints:
    from perfdiff.configuration import buildsystem  # whose package asks for all frameworks as it is loaded

    system = buildsystem.detect(project)
    if system is None or not buildsystem.compiles(project):
        return Hints()
    sources, builds = _files(project)
    names: set[str] = set()
    for path in sources:
        names |= _matching(path, _IN_SOURCES, _HEAD_BYTES)
    in_builds = _IN_BUILDS.get(system.name, {})
    for path in builds:
        names |= _matching(path, in_builds.get(path.name, {}), _BUILD_BYTES)
    return Hints(frozenset(names - set(_TARGETS)), tuple(target for target in _TARGETS if target in names))


def _files(project: Path) -> tuple[list[Path], list[Path]]:
    """Return the sources of benchmarks and tests, those of benchmarks first, and the files of build systems."""
    sources: list[Path] = []
    builds: list[Path] = []
    for path in (path for folder in folders(project) for path in folder.files):
        if path.name in _BUILD_FILES and (path.name not in _OF_MAKE or path.parent == Path()):  # only the makefile at the top is asked
            builds.append(project / path)
        elif _SOURCE.fullmatch(path.name) and _NAMED.search(path.as_posix()):
            sources.append(project / path)
    sources.sort(key=lambda path: "bench" not in path.as_posix().lower())
    return sources[:_MOST_READ], builds[:_MOST_READ]


def _matching(path: Path, patterns: dict[str, re.Pattern[bytes]], most_bytes: int) -> set[str]:
    try:
        with path.open("rb") as opened:
            text = opened.read(most_bytes)
    except OSError:
        return set()
    return {name for name, pattern in patterns.items() if pattern.search(text)}
