"""Input files of workloads: which files of the checkout are meant by patterns."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from pathlib import Path

from perfdiff.errors import ConfigError


def matching(patterns: Iterable[str], project: Path, place: str) -> tuple[str, ...]:
    """Return the files that any of the patterns means, sorted by name, each once however many patterns and links lead to it.

    A pattern is relative to the folder `project`, or absolute: corpora are often too large for a repository. It is the name of a file, or
    has the wildcards `*`, `?`, `[…]` and, for any folders, `**`; as in a shell these match no hidden names. Files in `project` are named
    relative to it. Raises ConfigError, which names the `place` of the patterns, where one of them means no file.
    """
    known: dict[str, str] = {}
    for pattern in patterns:
        found = _files(pattern, project)
        if not found:
            raise ConfigError(
                f"{place}: no file is meant by '{pattern}' in {project}; correct it, or put the files there: they are taken from the "
                "checkout, whatever a revision holds",
                slug="config-inputs",
            )
        for name in sorted(found, key=lambda name: (len(name), name)):  # a link to a folder above makes ever longer names
            known.setdefault(os.path.realpath(project / name), _written(name, place))
    return tuple(sorted(set(known.values())))


def _files(pattern: str, project: Path) -> set[str]:
    if "\0" in pattern:
        return set()
    found = [pattern] if _is_file(project / pattern) else glob.glob(pattern, root_dir=project, recursive=True)  # noqa: PTH207 - hidden names
    return {_relative(Path(name), project) for name in found if _is_file(project / name)}


def _is_file(path: Path) -> bool:
    return os.path.isfile(path)  # noqa: PTH113 - the other raises OSError at names that are too long


def _relative(path: Path, project: Path) -> str:
    return (path.relative_to(project) if path.is_absolute() and path.is_relative_to(project) else path).as_posix()


def _written(name: str, place: str) -> str:
    """Return a name, which reports must be able to write."""
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise ConfigError(f"{place}: the name of the file {name!a} is not UTF-8; rename it", slug="config-inputs") from error
    return name
