"""Which language packs serve a project."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from perfdiff.config import Config
from perfdiff.languages.c.pack import C
from perfdiff.languages.packs import Packs
from perfdiff.languages.python.pack import Python


def packs(config: Config, project: Path, cache: Path, environment: Mapping[str, str]) -> Packs:
    """Return the packs for a project's folder; `cache` keeps what they find, from one revision to the next."""
    compiled = C(cache / "units")
    return Packs(compiled, (Python(config, project, environment, cache),) if config.python else ())
