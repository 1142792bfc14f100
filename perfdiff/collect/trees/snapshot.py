"""What stands in a tree: its files with their modes and times, and exact copies of them."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import shutil
import stat
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

_CANNOT_CLONE = (errno.EXDEV, errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP)
_COPY_BYTES = 1 << 30  # asked of the kernel at once; it may copy less


class Status(NamedTuple):
    """What lstat(2) says of a path. Size and time of status are 0 for folders, whose contents are told path by path.

    A named tuple: a scan makes one per file, and a frozen dataclass takes three times as long.
    """

    mode: int
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int

    @property
    def is_folder(self) -> bool:
        """Return whether it is a folder."""
        return stat.S_ISDIR(self.mode)


def status(path: Path | str) -> Status | None:
    """Return the status of what stands at `path`, None where nothing does; links are not followed."""
    try:
        return _status(os.lstat(path))
    except (FileNotFoundError, NotADirectoryError):
        return None


def _status(result: os.stat_result) -> Status:
    if stat.S_ISDIR(result.st_mode):
        return Status(result.st_mode, 0, result.st_mtime_ns, 0, result.st_ino)
    return Status(result.st_mode, result.st_size, result.st_mtime_ns, result.st_ctime_ns, result.st_ino)


def scan(root: Path) -> dict[str, Status]:
    """Return the status of all below `root` by its path, that of `root` by ""; links are not followed, nor is what denies reading."""
    statuses: dict[str, Status] = {}
    folders = [""]
    with contextlib.suppress(FileNotFoundError):
        statuses[""] = _status(os.lstat(root))
    while folders:
        folder = folders.pop()
        above = f"{folder}/" if folder else ""
        with contextlib.suppress(FileNotFoundError, NotADirectoryError, PermissionError), os.scandir(f"{root}/{folder}") as entries:
            for entry in entries:
                path = above + entry.name
                statuses[path] = _status(entry.stat(follow_symlinks=False))
                if entry.is_dir(follow_symlinks=False):
                    folders.append(path)
    return statuses


def copy_all(source: Path, target: Path, statuses: Mapping[str, Status]) -> None:
    """Copy these paths of `source` to `target`, with modes, times, links and hard links between them; raise OSError."""
    copied: dict[int, Path] = {}
    folders: set[Path] = set()
    for path, status in sorted(statuses.items()):
        place = target / path
        if place.parent not in folders:
            place.parent.mkdir(parents=True, exist_ok=True)
            folders.add(place.parent)
        if stat.S_ISREG(status.mode) and status.inode in copied:
            place.hardlink_to(copied[status.inode])
        else:
            copy(source / path, place, status)
            copied[status.inode] = place
    for path in sorted((path for path, status in statuses.items() if status.is_folder), reverse=True):
        settle(target / path, statuses[path])


def copy(source: Path, target: Path, status: Status) -> None:
    """Make a copy where nothing stands; a folder's contents, mode and time are left to the caller, and sockets have no copy."""
    if status.is_folder:
        target.mkdir(exist_ok=True)
    elif stat.S_ISLNK(status.mode):
        target.symlink_to(source.readlink())
        os.utime(target, ns=(status.mtime_ns, status.mtime_ns), follow_symlinks=False)
    elif stat.S_ISREG(status.mode):
        _copy_file(source, target, status)
    elif stat.S_ISFIFO(status.mode):
        os.mkfifo(target)
        settle(target, status)


def settle(path: Path, status: Status) -> None:
    """Give a file or folder, no link, its mode and time."""
    path.chmod(stat.S_IMODE(status.mode))
    os.utime(path, ns=(status.mtime_ns, status.mtime_ns))


def _copy_file(source: Path, target: Path, status: Status) -> None:
    """Copy a file with its mode and time; the kernel shares the blocks where the file system can (btrfs, XFS)."""
    with open(source, "rb", buffering=0) as read, open(target, "xb", buffering=0) as written:  # noqa: PTH123 (half the time of Path.open)
        try:
            while os.copy_file_range(read.fileno(), written.fileno(), _COPY_BYTES):
                pass
        except OSError as error:
            if error.errno not in _CANNOT_CLONE:
                raise
            whole = io.BufferedWriter(written)  # by itself a file may take a part of what is written, and say so
            shutil.copyfileobj(read, whole)
            whole.flush()
            whole.detach()
        os.fchmod(written.fileno(), stat.S_IMODE(status.mode))
        os.utime(written.fileno(), ns=(status.mtime_ns, status.mtime_ns))


def same_content(copied: Path, live: Path, status: Status) -> bool:
    """Return whether two files, links or others of one kind and size have the same contents."""
    if stat.S_ISLNK(status.mode):
        return copied.readlink() == live.readlink()
    if not stat.S_ISREG(status.mode):
        return True
    with copied.open("rb") as master, live.open("rb") as current:
        while part := master.read(1 << 16):
            if part != current.read(1 << 16):
                return False
    return True


def hard_links(statuses: Mapping[str, Status]) -> dict[str, tuple[str, ...]]:
    """Return the other names of each file that has several."""
    names = defaultdict(list)
    for path, status in statuses.items():
        if stat.S_ISREG(status.mode):
            names[status.inode].append(path)
    groups = (group for group in names.values() if len(group) > 1)
    return {path: tuple(other for other in group if other != path) for group in groups for path in group}
