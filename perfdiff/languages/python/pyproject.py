"""A project's `pyproject.toml`: its tables, whatever somebody wrote there."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perfdiff.errors import BuildError

FILE = "pyproject.toml"


def read(folder: Path) -> dict[str, Any]:
    """Return the tables of a folder's file, none where there is no such file; raise BuildError where it cannot be read."""
    file = folder / FILE
    try:
        return tomllib.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    except (OSError, ValueError, RecursionError) as error:
        raise BuildError(f"{file} cannot be read: {error}; mend it, or compare other revisions", slug="python-project") from error


def table(tables: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """Return a table in tables, an empty one where there is none."""
    value: Any = tables
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def text(tables: Mapping[str, Any], key: str) -> str | None:
    """Return the text at a key, None where something else or nothing stands there."""
    value = tables.get(key)
    return value if isinstance(value, str) else None


def texts(tables: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """Return the texts of the list at a key, none where there is no list."""
    array = tables.get(key)
    return tuple(text for text in array if isinstance(text, str)) if isinstance(array, list) else ()


def normal(name: str) -> str:
    """Return a distribution's name in the form in which names are compared (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()
