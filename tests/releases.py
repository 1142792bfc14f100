"""Two releases of a package from a registry, as a git repository: regressions that really happened, and none."""

from __future__ import annotations

import shutil
import tomllib
from dataclasses import dataclass
from pathlib import Path

import source_releases
from programs import FIXTURES, empty, git

RELEASES = FIXTURES / "releases"


@dataclass(frozen=True, slots=True)
class Pair:
    """Two releases of a package, and the folder of the program that runs them.

    Where head is slower, one of the `guilty` functions is to come first: an added function and the one that calls it share their cost.
    """

    folder: Path
    package: str
    base: str
    head: str
    verdict: str
    guilty: tuple[str, ...]
    registry: str

    @property
    def name(self) -> str:
        return self.folder.name


def pairs() -> list[Pair]:
    """Return all pairs by name."""
    return [_read(path) for path in sorted(RELEASES.glob("*/release.toml"))]


def _read(path: Path) -> Pair:
    says = tomllib.loads(path.read_text())
    return Pair(
        path.parent,
        says["package"],
        says["base"],
        says["head"],
        says["verdict"],
        tuple(says.get("guilty", ())),
        says.get("registry", "pypi"),
    )


def repository(pair: Pair, folder: Path) -> Path:
    """Download both releases into `folder`; return a repository there of two commits, tagged `base` and `head`, and what runs them."""
    checkout = folder / "repository"
    checkout.mkdir(parents=True)
    git(checkout, "init", "-q")
    for side, version in (("base", pair.base), ("head", pair.head)):
        empty(checkout)
        unpacked = source_releases.REGISTRIES[pair.registry](pair.package, version, folder / side)
        shutil.copytree(unpacked, checkout, dirs_exist_ok=True)
        git(checkout, "add", "-A", "-f")
        git(checkout, "commit", "-q", "-m", f"{pair.package} {version}")
        git(checkout, "tag", side)
    for path in pair.folder.iterdir():
        if path.name != "release.toml":
            copy = shutil.copytree if path.is_dir() else shutil.copyfile
            copy(path, checkout / path.name)
    return checkout
