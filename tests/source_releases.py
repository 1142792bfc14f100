"""Source releases of packages, from the package index."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path


def unpacked(package: str, version: str, folder: Path) -> Path:
    """Download a source release into `folder`, which is made; return the folder of its files.

    pip asks the release what it requires, for which it installs the release's back end: from wheels, as compiling that too takes minutes.
    """
    room = folder / "unpacked"
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", package, "-d", str(folder)]
    subprocess.run([*pip, f"{package}=={version}"], check=True)
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(room, filter="data")
    (around,) = room.iterdir()  # of its name and version
    return around
