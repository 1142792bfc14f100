"""Versions of packages and of the interpreter that files of a project pin: lock files, requirements, environments, images.

perfdiff reads those files alone that the configuration names, so that a revision may run with other packages than its users have.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from perfdiff.languages.python import distributions
from perfdiff.languages.python.environments import ProjectEnvironment
from perfdiff.languages.python.pyproject import normal, table

_LISTED = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^\]]*\]\s*)?===?\s*([^\s;,#\\]+)")
_TABLES = re.compile(r"^\[\[(packages?)\]\]", re.MULTILINE)  # of uv, Poetry and PDM, and of PEP 751
_OF_CONDA = re.compile(r"\s*-\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*={1,3}\s*([^\s;,#=]+)")
_CONDA = ("environment.yml", "environment.yaml")
_FILES = re.compile(r"[^/]+\.lock|pylock[^/]*\.toml|(?:requirements|constraints)[^/]*\.(?:txt|in)|environment\.ya?ml")
# By file: where it says which interpreter pyenv, conda, images and services that host programs take.
_INTERPRETERS = {
    ".python-version": re.compile(r"(.+)"),
    ".tool-versions": re.compile(r"^python\s+(\S+)", re.MULTILINE),
    "runtime.txt": re.compile(r"^python-(\S+)", re.MULTILINE),
    "Dockerfile": re.compile(r"^FROM\s+(?:\S+/)?python:(\d[\w.]*)", re.MULTILINE | re.IGNORECASE),
    **dict.fromkeys(_CONDA, re.compile(r"^\s*-\s*python\s*=+\s*([^\s=]+)", re.MULTILINE)),
}


def unfollowed(
    differing: Mapping[str, Mapping[int, Path]], environments: Sequence[ProjectEnvironment], met: Collection[str] | None
) -> tuple[str, ...]:
    """Return the files at the top of a project in which base and head pin other versions, where their `environments` have one and the same.

    Packages count whose files runs `met`, all of them where that is not known.
    """
    base, head = (environment.versions for environment in environments)
    alike = {name for name, version in base.items() if head.get(name) == version}
    used = alike if met is None else alike & distributions.used(environments[1].folders, met)
    return tuple(name for name, places in differing.items() if _FILES.fullmatch(name) and _differ(places, used))


def interpreters(differing: Mapping[str, tuple[Path, Path]]) -> tuple[str, ...]:
    """Return the files at the top of a project in which base and head ask for other interpreters."""
    return tuple(name for name in _INTERPRETERS.keys() & differing.keys() if _ask_otherwise(_INTERPRETERS[name], differing[name]))


def _ask_otherwise(asking: re.Pattern[str], files: Iterable[Path]) -> bool:
    base, head = (asking.findall(file.read_text(errors="replace")) for file in files)
    return bool(base and head) and base != head


def _differ(places: Mapping[int, Path], names: Collection[str]) -> bool:
    base, head = (pinned(places[side]) if side in places else {} for side in range(2))
    return any(base[name] != head[name] for name in base.keys() & head.keys() & set(names))


def pinned(file: Path) -> dict[str, frozenset[str]]:
    """Return the versions that a file pins, by name; none where it cannot be read."""
    pins: dict[str, set[str]] = {}
    try:
        for name, version in _pins(file.name, file.read_text(encoding="utf-8-sig")):
            pins.setdefault(normal(name), set()).add(version)
    except (OSError, ValueError, RecursionError):
        return {}
    return {name: frozenset(versions) for name, versions in pins.items()}


def _pins(name: str, text: str) -> Iterator[tuple[str, str]]:
    if name == "Pipfile.lock":
        groups = [table({"": json.loads(text)}, "", group) for group in ("default", "develop")]
        yield from ((key, str(pin["version"])) for group in groups for key, pin in group.items() if "version" in table(group, key))
    elif (tables := _TABLES.search(text)) is not None:
        packages = [package for package in tomllib.loads(text)[tables[1]] if isinstance(package, dict)]
        yield from ((str(package.get("name")), str(package.get("version"))) for package in packages)
    else:
        listed = _OF_CONDA if name in _CONDA else _LISTED
        yield from ((match[1], match[2]) for match in map(listed.match, text.splitlines()) if match)
