"""Pairs of revisions of upstream projects whose effect is known: what a folder says of them, and clones to compare them in.

Within it, a folder a project. `pairs.toml` names the repository and the pairs, `perfdiff.toml` says how to build and what to run; whatever
else lies there, drivers and makers of inputs, is copied into the clone, where `[build] overlay` finds it.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from programs import git

PAIRS, CONFIGURATION = "pairs.toml", "perfdiff.toml"
COMMIT = re.compile(r"[0-9a-f]{40}")
FORGE = "https://github.com/"


class Effect(StrEnum):
    """What a pair does to the time of its project's workloads."""

    NONE = "none"
    SLOWER = "slower"


@dataclass(frozen=True, slots=True)
class Pair:
    """Two commits. `guilty` and `ratio` (of the CPU time of whole runs at the largest point, its bounds) are those of slower pairs."""

    project: str
    name: str
    base: str
    head: str
    effect: Effect
    why: str
    guilty: tuple[str, ...] = ()
    ratio: tuple[float, float] | None = None

    @property
    def label(self) -> str:
        """Return how tables name it."""
        return f"{self.project} {self.name}"


@dataclass(frozen=True, slots=True)
class Project:
    """An upstream project and its folder."""

    name: str
    folder: Path
    repository: str
    pairs: tuple[Pair, ...]

    @property
    def configuration(self) -> Path:
        """Return the configuration that all of its pairs are compared with."""
        return self.folder / CONFIGURATION

    def clone(self, room: Path, mirrors: Path | None) -> Path:
        """Return a clone in `room`, with drivers and makers of inputs as they stand in the project's folder now.

        It is cloned from the bare repository OWNER+NAME in `mirrors` where that folder is given.
        """
        place = room / self.name
        if not place.exists():
            source = self.repository if mirrors is None else str(_mirror(mirrors, self.repository))
            room.mkdir(parents=True, exist_ok=True)
            unfinished = room / f"{self.name}.part"
            shutil.rmtree(unfinished, ignore_errors=True)
            git(room, "clone", "-q", "--no-checkout", source, unfinished.name)
            unfinished.rename(place)
        self.furnish(place)
        return place

    def furnish(self, checkout: Path) -> None:
        """Put drivers and makers of inputs into a checkout, in the place of what is there under their names."""
        for extra in sorted(path for path in self.folder.iterdir() if path.name not in (PAIRS, CONFIGURATION)):
            if extra.is_dir():
                shutil.rmtree(checkout / extra.name, ignore_errors=True)
                shutil.copytree(extra, checkout / extra.name)
            else:
                shutil.copy(extra, checkout / extra.name)

    def digest(self) -> str:
        """Return a digest of how the project is built and run: configuration, drivers, makers of inputs."""
        digest = hashlib.sha256()
        for path in sorted(self.folder.rglob("*")):
            if path.is_file() and path.name != PAIRS:
                digest.update(f"{path.relative_to(self.folder)}\n".encode() + path.read_bytes())
        return digest.hexdigest()[:12]


def names(upstream: Path) -> list[str]:
    """Return the projects of a folder, sorted."""
    return sorted(path.parent.name for path in upstream.glob(f"*/{PAIRS}"))


def project(folder: Path) -> Project:
    """Return a project as its folder describes it; raise ValueError where a pair makes no sense."""
    name = folder.name
    table = tomllib.loads((folder / PAIRS).read_text(encoding="utf-8"))
    if not table["repository"].startswith(FORGE) or not (folder / CONFIGURATION).is_file():
        raise ValueError(f"{name}: a project needs a repository at {FORGE} and a {CONFIGURATION}")
    pairs = tuple(_pair(name, entry) for entry in table["pair"])
    if len({pair.name for pair in pairs}) < len(pairs):
        raise ValueError(f"{name}: two pairs have one name")
    return Project(name, folder, table["repository"], pairs)


def _pair(name: str, entry: Mapping[str, Any]) -> Pair:
    pair = Pair(**{"project": name, **entry, "effect": Effect(entry["effect"]), "guilty": _texts(entry), "ratio": _bounds(entry)})
    if not COMMIT.fullmatch(pair.base) or not COMMIT.fullmatch(pair.head) or pair.base == pair.head:
        raise ValueError(f"{pair.label}: base and head are two commits, in 40 hexadecimal digits each")
    if (pair.effect is Effect.SLOWER) != (bool(pair.guilty) and pair.ratio is not None):
        raise ValueError(f"{pair.label}: slower pairs, and no others, have guilty functions and a ratio")
    if not pair.why.endswith("."):
        raise ValueError(f"{pair.label}: why the effect is known is a sentence")
    return pair


def _texts(entry: Mapping[str, Any]) -> tuple[str, ...]:
    guilty: Sequence[str] = entry.get("guilty", ())
    return tuple(guilty)


def _bounds(entry: Mapping[str, Any]) -> tuple[float, float] | None:
    if "ratio" not in entry:
        return None
    low, high = entry["ratio"]
    if not 0 < low <= high:
        raise ValueError(f"{entry['name']}: a ratio is [low, high]")
    return low, high


def _mirror(mirrors: Path, repository: str) -> Path:
    """Return the git directory of a repository in a folder of mirrors: OWNER+NAME itself, or below it."""
    place = mirrors / repository.removeprefix(FORGE).removesuffix(".git").replace("/", "+")
    found = next((head.parent for head in sorted(place.rglob("HEAD")) if (head.parent / "objects").is_dir()), None)
    if found is None:
        raise FileNotFoundError(f"{place} holds no repository")
    return found
