"""Two releases of a Python package from the package index, as a git repository: regressions that really happened, and none."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

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

    @property
    def name(self) -> str:
        return self.folder.name


def pairs() -> list[Pair]:
    """Return all pairs by name."""
    return [_read(path) for path in sorted(RELEASES.glob("*/release.toml"))]


def _read(path: Path) -> Pair:
    says = tomllib.loads(path.read_text())
    return Pair(path.parent, says["package"], says["base"], says["head"], says["verdict"], tuple(says.get("guilty", ())))


def repository(pair: Pair, folder: Path) -> Path:
    """Download both releases into `folder`; return a repository there of two commits, tagged `base` and `head`, and what runs them."""
    checkout = folder / "repository"
    checkout.mkdir(parents=True)
    git(checkout, "init", "-q")
    for side, version in (("base", pair.base), ("head", pair.head)):
        empty(checkout)
        _unpack(_downloaded(pair.package, version, folder / side), checkout)
        git(checkout, "add", "-A", "-f")
        git(checkout, "commit", "-q", "-m", f"{pair.package} {version}")
        git(checkout, "tag", side)
    for name in ("perfdiff.toml", "benchmarks"):
        copy = shutil.copytree if (pair.folder / name).is_dir() else shutil.copyfile
        copy(pair.folder / name, checkout / name)
    return checkout


def _downloaded(package: str, version: str, folder: Path) -> Path:
    """Return the source release of a package, which pip asks what it requires: its back end is installed for that."""
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", package, "-d", str(folder)]
    subprocess.run([*pip, f"{package}=={version}"], check=True)
    (archive,) = folder.glob("*.tar.gz")
    return archive


def _unpack(archive: Path, tree: Path) -> None:
    """Lay the files of a source release into `tree`, without the folder of its name and version around them."""
    room = archive.parent / "unpacked"
    with tarfile.open(archive) as packed:
        packed.extractall(room, filter="data")
    (around,) = room.iterdir()
    shutil.copytree(around, tree, dirs_exist_ok=True)
