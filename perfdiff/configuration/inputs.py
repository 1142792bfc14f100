"""Input files of workloads: which files of the checkout are meant by patterns."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from perfdiff.errors import ConfigError


def matching(patterns: Iterable[str], project: Path, place: str) -> tuple[str, ...]:
    """Return the files that any of the patterns means, sorted by name, each once however many patterns and links lead to it.

    A pattern is relative to the folder `project`, or absolute: corpora are often too large for a repository. It is the name of a file, or
    has the wildcards `*`, `?`, `[…]` and, for any folders, `**`; as in a shell these match no hidden names. Files in `project` are named
    relative to it, others as the pattern leads to them. Raises ConfigError, which names the `place` of the patterns, where one of them
    means no file.
    """
    name_by_path: dict[str, str] = {}
    for pattern in patterns:
        files = _files(pattern, project)
        if not files:
            raise ConfigError(
                f"{place}: no file is meant by '{pattern}' in {project}; correct it, or put the files there: they are taken from the "
                "checkout, whatever a revision holds",
                slug="config-inputs",
            )
        for name in sorted(files):
            name_by_path.setdefault(os.path.realpath(project / name), _written(name, place))
    return tuple(sorted(set(name_by_path.values())))


def _files(pattern: str, project: Path) -> set[str]:
    """Return the files that a pattern means; links to folders are not followed, as they may lead back."""
    if _is_file(project / pattern):
        return {_relative(project / pattern, project)}
    whole = Path(pattern) / "*" if pattern.endswith("**") else Path(pattern)
    start = Path(whole.anchor) if whole.is_absolute() else project
    try:
        paths = list(start.glob(whole.relative_to(whole.anchor).as_posix()))
    except (ValueError, OSError):  # no pattern at all, such as "", or longer than the system's names
        return set()
    shown = [part for part in whole.parts if part.startswith(".")]
    return {
        _relative(path, project)
        for path in paths
        if _is_file(path) and all(_is_shown(part, shown) for part in path.relative_to(start).parts)
    }


def _is_shown(part: str, patterns: Sequence[str]) -> bool:
    return not part.startswith(".") or any(fnmatchcase(part, pattern) for pattern in patterns)


def _is_file(path: Path) -> bool:
    return os.path.isfile(path)  # noqa: PTH113 - the other raises OSError at names that are too long


def _relative(path: Path, project: Path) -> str:
    return (path.relative_to(project) if path.is_relative_to(project) else path).as_posix()


def _written(name: str, place: str) -> str:
    """Return a name, which reports must be able to write."""
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise ConfigError(f"{place}: the name of the file {name!a} is not UTF-8; rename it", slug="config-inputs") from error
    return name
