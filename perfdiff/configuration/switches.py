"""Options of a project's build that its benchmarks and tests wait for: those that are off in CMake's cache, or in what Meson tells."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

_CMAKE_CACHE, _MESON_OPTIONS = "CMakeCache.txt", "meson-info/intro-buildoptions.json"
_DEPTH = 3  # of folders below the project's in which builds lie
_MEANT = re.compile(r"BENCH|TEST|FUZZ|PERF|EXAMPLE", re.IGNORECASE)
_OTHERS = re.compile(r"^(CMAKE|CTEST|CPACK|FETCHCONTENT|BENCHMARK_ENABLE|INSTALL)_", re.IGNORECASE)  # of tools, not of the project
_OFF = re.compile(r"^(\w+):BOOL=(?:OFF|0|NO|FALSE|N)$", re.MULTILINE | re.IGNORECASE)


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
    """Return options of the build that are off and may be what benchmarks or tests wait for, each with the file that tells it."""
    file_by_option: dict[str, str] = {}
    for folder in build_folders(project, _CMAKE_CACHE):
        file = folder / _CMAKE_CACHE
        for name in _OFF.findall(file.read_text(encoding="utf-8", errors="replace")):
            if _MEANT.search(name) and not _OTHERS.match(name):
                file_by_option[f"-D{name}=ON"] = file.relative_to(project).as_posix()
    for folder in build_folders(project, _MESON_OPTIONS):
        for option in _meson_options(folder / _MESON_OPTIONS):
            name, value = str(option.get("name")), option.get("value")
            if option.get("section") == "user" and _MEANT.search(name) and value in (False, "disabled"):
                on = "enabled" if value == "disabled" else "true"
                file_by_option[f"-D{name}={on}"] = (folder / _MESON_OPTIONS).relative_to(project).as_posix()
    return file_by_option


def _meson_options(file: Path) -> list[dict[str, object]]:
    try:
        options = json.loads(file.read_text(encoding="utf-8", errors="replace"))
    except (OSError, ValueError):
        return []
    return [option for option in options if isinstance(option, dict)] if isinstance(options, list) else []
