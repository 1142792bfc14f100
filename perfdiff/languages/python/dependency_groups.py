"""The dependency groups of a project, `[dependency-groups]` in its `pyproject.toml` (PEP 735), with those that they include."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement

from perfdiff.configuration.checking import nearest
from perfdiff.errors import BuildError
from perfdiff.languages.python import pyproject
from perfdiff.languages.python.pyproject import normal, table

PREFIX = "group:"  # no requirement begins so

_INCLUDE = "include-group"


def requirements(place: Path, name: str) -> tuple[str, ...]:
    """Return the requirements of a group of the project in folder `place`; raise BuildError: `python-group`, `python-project`."""
    groups: dict[str, tuple[str, Any]] = {}
    for written, entries in table(pyproject.read(place), "dependency-groups").items():
        if normal(written) in groups:
            raise _failure(f"has two groups '{groups[normal(written)][0]}' and '{written}', whose names are the same (PEP 503)")
        groups[normal(written)] = (written, entries)
    return tuple(dict.fromkeys(_expanded(groups, name, ())))


def _expanded(groups: Mapping[str, tuple[str, Any]], name: str, within: Sequence[str]) -> Iterator[str]:
    """Yield the requirements of a group, and of groups that it includes, where they stand; `within` are those that include it."""
    if normal(name) not in groups:
        included = f", which '{within[-1]}' includes" if within else ""
        names = [written for written, _ in groups.values()]
        others = f"; there are {', '.join(names)}" if names else ""
        raise _failure(f"has no group '{name}'{included}", nearest(name, names) or others)
    own, entries = groups[normal(name)]
    if own in within:
        raise _failure(f"has groups that include each other: {' → '.join((*within, own))}")
    if not isinstance(entries, list):
        raise _failure(f"has a group '{own}' that is no list")
    for entry in entries:
        if isinstance(entry, dict) and list(entry) == [_INCLUDE] and isinstance(entry[_INCLUDE], str):
            yield from _expanded(groups, entry[_INCLUDE], (*within, own))
        elif isinstance(entry, str) and _is_requirement(entry):
            yield entry
        else:
            raise _failure(f"has {entry!r} in the group '{own}', which is neither a requirement nor {{ {_INCLUDE} = \"NAME\" }}")


def _is_requirement(text: str) -> bool:
    try:
        Requirement(text)
    except InvalidRequirement:
        return False
    return True


def _failure(what: str, others: str = "") -> BuildError:
    return BuildError(
        f"[dependency-groups] in {pyproject.FILE} of this revision {what}; correct it, or [python] requirements{others}",
        slug="python-group",
    )
