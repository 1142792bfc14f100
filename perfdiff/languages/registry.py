"""Which language packs serve a project."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from perfdiff.config import Config
from perfdiff.languages.c.pack import C
from perfdiff.languages.java.pack import Java
from perfdiff.languages.packs import Packs
from perfdiff.languages.php.pack import Php
from perfdiff.languages.protocol import Language
from perfdiff.languages.python.pack import Python


def packs(config: Config, project: Path, cache: Path, environment: Mapping[str, str]) -> Packs:
    """Return the packs for a project's folder; `cache` keeps what they find, from one revision to the next."""
    compiled = C(cache / "units")
    others: list[Language] = []
    if config.python:
        others.append(Python(config, project, environment, cache))
    if config.java:
        others.append(Java(config.java, project, environment, cache))
    if config.php:
        others.append(Php(config.php, project, environment, cache))
    return Packs(compiled, tuple(others))
