"""Files of built trees: which there are, and how one takes another's place so that `make` notices nothing."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path


def files(tree: Path) -> Iterator[Path]:
    """Yield all regular files and symbolic links of a tree, sorted by folder."""
    for place, folders, names in os.walk(tree):
        folders.sort()
        linked = (name for name in folders if Path(place, name).is_symlink())
        for name in sorted((*names, *linked)):
            path = Path(place, name)
            if path.is_symlink() or path.is_file():
                yield path


def replace_file(path: Path, other: Path) -> None:
    """Put another file's content in a file's place, with the first one's mode and times: `make` would build anew what depends on a newer
    file.
    """
    before = path.stat()
    path.unlink()
    shutil.copyfile(other, path)
    path.chmod(stat.S_IMODE(before.st_mode))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
