"""Builds: the user's own command, run in a fresh tree under the compiler masquerade."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from perfdiff.build.cache import BuildCache
from perfdiff.build.variants import BuildRequest
from perfdiff.languages.protocol import CompileCommand
from perfdiff.records.schema import Note, Phase


@dataclass(frozen=True, slots=True)
class DroppedProbe:
    """A probe that did not compile in `file` (relative to the tree), or all probes of that file's unit where `probe` is None."""

    probe: int | None
    file: str
    reason: str


@dataclass(frozen=True, slots=True)
class Built:
    """A finished build: `tree` is its root, `folder` the project's folder in it, where the build ran and workloads run."""

    variant: Phase
    tree: Path
    folder: Path
    commands: tuple[CompileCommand, ...]
    dropped: tuple[DroppedProbe, ...]
    notes: tuple[Note, ...]
    duration_s: float


def build(request: BuildRequest, cache: BuildCache) -> Built:
    """Return the build that `request` asks for, from the cache where it was made before.

    Lays out the tree, inserts the probes, runs the command. BuildError (`build-failed`, `build-timeout`, `no-compiler`) names the
    side, the command and what is missing; its detail is the end of the log.
    """
    raise NotImplementedError
