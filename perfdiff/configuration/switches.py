"""Options of a project's build that its benchmarks, tests and examples wait for: those that are off in what the build system tells."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterator, Mapping
from enum import IntEnum
from pathlib import Path

_CMAKE_CACHE, _MESON_OPTIONS = "CMakeCache.txt", "meson-info/intro-buildoptions.json"
_CONFIGURE, _CONFIGURED = "configure", "config.status"
_DEPTH = 3  # of folders below the project's in which builds lie
_OTHERS = re.compile(r"^(CMAKE|CTEST|CPACK|FETCHCONTENT|BENCHMARK_ENABLE)_", re.IGNORECASE)  # of tools, not of the project
_OFF = re.compile(r"^(\w+):BOOL=(?:OFF|0|NO|FALSE|N)$", re.MULTILINE | re.IGNORECASE)
# CMake's own name for whether tests are built. A project that asks for it before `include(CTest)` has it off, and not in the cache.
_BUILD_TESTING = "BUILD_TESTING"
# By convention the help of a configure script names features that are off as `--enable`, others as `--disable`.
_FEATURE = re.compile(r"^ +--enable-([\w-]+)", re.MULTILINE)
_WRITTEN = re.compile(r"^(?:-D|--enable-)|=\w+$")  # of an option as it is given, but for its name
# Parts of names of options that leave tests out, install them, or compile the project in another way than its users do.
_AGAINST = frozenset((
    "NO", "DISABLE", "DISABLED", "SKIP", "WITHOUT", "EXCLUDE", "ONLY", "INSTALL", "WERROR", "COVERAGE", "COV", "GCOV",
    "VALGRIND", "MEMCHECK", "ASAN", "MSAN", "TSAN", "UBSAN", "SANITIZE", "SANITIZER", "SANITIZERS",
))  # fmt: skip
MOST_TRIES = 6  # of builds with options switched on


class OptionKind(IntEnum):
    """What an option of a build switches on, what tells most of speed first."""

    BENCHMARKS = 0
    TESTS = 1
    FUZZ_TARGETS = 2
    EXAMPLES = 3


_NAMED = {
    OptionKind.FUZZ_TARGETS: re.compile(r"FUZZ", re.IGNORECASE),
    OptionKind.BENCHMARKS: re.compile(r"BENCH|(?:^|[_-])PERF(?:$|[_-])", re.IGNORECASE),
    OptionKind.TESTS: re.compile(r"TEST", re.IGNORECASE),
    OptionKind.EXAMPLES: re.compile(r"EXAMPLE|(?:^|[_-])(?:SAMPLE|DEMO)S?(?:$|[_-])", re.IGNORECASE),
}


def build_folders(project: Path, file: str) -> Iterator[Path]:
    """Yield the folders of a built project that hold a file which a build system leaves in its builds, the project's own first."""
    for parent, folders, _ in os.walk(project):
        path = Path(parent)
        depth = len(path.relative_to(project).parts)
        folders[:] = (
            sorted(name for name in folders if not name.startswith((".", "_deps")) and name != "CMakeFiles") if depth < _DEPTH else []
        )
        if (path / file).is_file():
            yield path


def switched_off(project: Path) -> dict[str, str]:
    """Return options that switch on what is off in a built project, what tells most of speed first, each with the file that tells it."""
    options = {(option, name): file for name, option, file in (*_of_cmake(project), *_of_meson(project), *_of_configure(project))}
    kinds = {(option, name): kind for option, name in options if (kind := _kind(name)) is not None}
    return {option: options[option, name] for option, name in sorted(kinds, key=lambda key: (kinds[key], key))}


def tries(options: Collection[str]) -> list[tuple[str, ...]]:
    """Return sets of options to build with until one builds and has something to run: those of benchmarks and tests, and ever fewer.

    Options for fuzz targets often have everything compiled for a fuzzer, and examples tell least: these are tried by themselves.
    """
    kinds = {option: _kind(_WRITTEN.sub("", option)) for option in options}
    by_kind = [tuple(option for option in options if kinds[option] is kind) for kind in OptionKind]
    together = by_kind[OptionKind.BENCHMARKS] + by_kind[OptionKind.TESTS]
    sets = dict.fromkeys((together, *by_kind, *((option,) for option in options)))
    return [options for options in sets if options][:MOST_TRIES]


def _kind(name: str) -> OptionKind | None:
    """Return what an option of this name switches on, None where it is of something else."""
    if _OTHERS.match(name) or not _AGAINST.isdisjoint(re.split(r"[_-]", name.upper())):
        return None
    return next((kind for kind, pattern in _NAMED.items() if pattern.search(name)), None)


def _of_cmake(project: Path) -> Iterator[tuple[str, str, str]]:
    """Yield the name of each option that is off in a build of CMake's, how it is switched on, and the file that tells it."""
    for folder in build_folders(project, _CMAKE_CACHE):
        text = _text(folder / _CMAKE_CACHE)
        for name in _OFF.findall(text):
            yield name, f"-D{name}=ON", (folder / _CMAKE_CACHE).relative_to(project).as_posix()
        if f"\n{_BUILD_TESTING}:" not in text and _BUILD_TESTING in _text(project / "CMakeLists.txt"):
            yield _BUILD_TESTING, f"-D{_BUILD_TESTING}=ON", "CMakeLists.txt"


def _of_meson(project: Path) -> Iterator[tuple[str, str, str]]:
    """Yield the same of builds of Meson's."""
    for folder in build_folders(project, _MESON_OPTIONS):
        for option in _meson_options(folder / _MESON_OPTIONS):
            name, value = str(option.get("name")), option.get("value")
            if option.get("section") == "user" and value in (False, "disabled"):
                on = "enabled" if value == "disabled" else "true"
                yield name, f"-D{name}={on}", (folder / _MESON_OPTIONS).relative_to(project).as_posix()


def _of_configure(project: Path) -> Iterator[tuple[str, str, str]]:
    """Yield the same of a configure script that the project was built by."""
    if (project / _CONFIGURED).is_file():
        for name in _FEATURE.findall(_text(project / _CONFIGURE)):
            yield name, f"--enable-{name}", _CONFIGURE


def _meson_options(file: Path) -> list[Mapping[str, object]]:
    try:
        options = json.loads(_text(file))
    except ValueError:
        return []
    return [option for option in options if isinstance(option, dict)] if isinstance(options, list) else []


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
