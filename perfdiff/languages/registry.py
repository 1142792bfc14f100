"""Which language packs serve a project."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from perfdiff.config import Config
from perfdiff.languages.installed import installed, loaded
from perfdiff.languages.packs import Packs
from perfdiff.languages.protocol import Compiled, Language, Surroundings


def packs(config: Config, project: Path, cache: Path, environment: Mapping[str, str]) -> Packs:
    """Return the packs for a project's folder; `cache` keeps what they find, from one revision to the next.

    A language without a section of the configuration is compiled, and serves every project.
    """
    surroundings = Surroundings(project, cache, environment)
    compiled: list[Compiled] = [loaded(traits.pack)(config, surroundings) for traits in installed() if traits.settings is None]
    others: list[Language] = [loaded(traits.pack)(config, surroundings) for traits in installed() if traits.name in config.languages]
    return Packs(compiled[0], tuple(others))
