"""The functions that the last comparison of a repository tells of, kept for shells: who types has no time for a recording to be read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

_NAMES = "names-"


@dataclass(frozen=True, slots=True)
class NamedFunction:
    """A function that a comparison tells of: its `name` and `file`, and the `verdict` on it in a word, None where it was not measured."""

    name: str
    file: str
    verdict: str | None


def keep(cache: Path, repository: str, functions: Sequence[NamedFunction]) -> None:
    """Keep the functions of the last comparison of the repository of this name; raise OSError."""
    (cache / f"{_NAMES}{repository}").write_text(json.dumps([astuple(function) for function in functions]), encoding="utf-8")


def functions(cache: Path, repository: str) -> tuple[NamedFunction, ...]:
    """Return the functions of the last comparison of the repository of this name, none where they are not known."""
    try:
        return tuple(NamedFunction(*entry) for entry in json.loads((cache / f"{_NAMES}{repository}").read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, RecursionError):
        return ()
