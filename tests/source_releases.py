"""Source releases of packages, from the registries that have them."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path


def unpacked(package: str, version: str, folder: Path) -> Path:
    """Download a source release into `folder`, which is made; return the folder of its files.

    pip asks the release what it requires, for which it installs the release's back end: from wheels, as compiling that too takes minutes.
    """
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", package, "-d", str(folder)]
    subprocess.run([*pip, f"{package}=={version}"], check=True)
    return _unpacked(next(folder.glob("*.tar.gz")), folder / "unpacked")


def unpacked_from_npm(package: str, version: str, folder: Path) -> Path:
    """Download a release of npm's registry into `folder`, which is made; return the folder of its files."""
    folder.mkdir(parents=True)
    npm = ["npm", "pack", "--silent", "--pack-destination", str(folder)]
    subprocess.run([*npm, f"{package}@{version}"], check=True, stdout=subprocess.DEVNULL)
    return _unpacked(next(folder.glob("*.tgz")), folder / "unpacked")


def _unpacked(archive: Path, room: Path) -> Path:
    with tarfile.open(archive) as packed:
        packed.extractall(room, filter="data")
    (around,) = room.iterdir()
    return around


REGISTRIES: Mapping[str, Callable[[str, str, Path], Path]] = {"pypi": unpacked, "npm": unpacked_from_npm}
