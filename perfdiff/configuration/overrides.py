"""What the command line says of the configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from perfdiff.configuration.links import Worse


@dataclass(frozen=True, slots=True)
class Overrides:
    """What the command line says; None and empty leave the word to environment, file and defaults."""

    file: Path | None = None
    build: str | None = None
    command: str | None = None  # a workload of its own, in place of the file's
    workloads: tuple[str, ...] = ()  # names: only these run
    parameters: Mapping[str, tuple[float | str, ...]] = field(default_factory=dict)
    runs: int | None = None
    seed: int | None = None
    fast: bool | None = None  # None: whatever a file says, as what is asked for are functions
    thorough: bool = False
    time: str | None = None
    setup: str | None = None
    prepare: str | None = None
    warmup: int | None = None
    cluster: str | None = None
    worse: Worse = field(default_factory=Worse)  # how services are made worse to reach
