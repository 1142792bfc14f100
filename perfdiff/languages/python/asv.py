"""The configuration of a suite of asv: where its benchmarks lie, and what they require."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfdiff.errors import ConfigError
from perfdiff.languages.python import asv_matrix

FILE = "asv.conf.json"

_TEXT = r'("(?:\\.|[^"\\])*")'
_COMMENT = re.compile(rf"{_TEXT}|//[^\n]*|/\*.*?\*/", re.DOTALL)
_LAST_COMMA = re.compile(rf"{_TEXT}|,(?=\s*[}}\]])")


@dataclass(frozen=True, slots=True)
class AsvSuite:
    """A suite: its `file` and the `folder` of its benchmarks, relative to the project, and what its first environment has.

    These are requirements, and variables that are set when benchmarks run.
    """

    file: str
    folder: str
    requirements: tuple[str, ...]
    variables: Mapping[str, str]


def find(project: Path) -> AsvSuite | None:
    """Return the suite of a project, whose configuration lies in its folder or in one within that; None where there is none.

    Raises ConfigError (`config-asv`) where the configuration cannot be read, leaves no environment, or has no such folder of benchmarks.
    """
    file = next((path for path in (project / FILE, *sorted(project.glob(f"*/{FILE}"))) if path.is_file()), None)
    if file is None:
        return None
    table = _read(file)
    folder = (file.parent / str(table.get("benchmark_dir", "benchmarks"))).resolve()
    if not folder.is_dir() or not folder.is_relative_to(project.resolve()):
        raise ConfigError(f"{file}: there is no folder of benchmarks {folder} in the project; correct 'benchmark_dir'", slug="config-asv")
    environment = asv_matrix.first(table, file)
    return AsvSuite(
        file.relative_to(project).as_posix(),
        folder.relative_to(project.resolve()).as_posix(),
        environment.requirements,
        environment.variables,
    )


def _read(file: Path) -> Mapping[str, Any]:
    """Return what asv's JSON says, which may have comments, and commas behind the last element."""
    try:
        text = _COMMENT.sub(lambda match: match[1] or " ", file.read_text(encoding="utf-8"))
        table = json.loads(_LAST_COMMA.sub(lambda match: match[1] or "", text))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{file}: cannot be read: {error}", slug="config-asv") from error
    if not isinstance(table, dict):
        raise ConfigError(f"{file}: must hold an object", slug="config-asv")
    return table
