"""What a build is asked for: a revision, a variant, and what is inserted for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from perfdiff.config import BuildConfig
from perfdiff.records.schema import Phase, Side
from perfdiff.revisions.pins import Pin


@dataclass(frozen=True, slots=True)
class Instrumentation:
    """What turns the plain build into a probed one.

    `insert` writes the probes into the sources of a fresh tree (its root is given) and returns the header that is included ahead of
    every translation unit; `digest` stands for the text it will insert. `runtime` is a folder with `libperfdiff.so`, `libperfdiff.a`
    and `perfdiff_probe.h`.
    """

    digest: str
    insert: Callable[[Path], Path]
    runtime: Path


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """One variant of one side. `environment` is the user's; `instrumentation` is None for the plain variant alone."""

    pin: Pin
    side: Side
    variant: Phase
    config: BuildConfig
    environment: Mapping[str, str]
    instrumentation: Instrumentation | None = None
