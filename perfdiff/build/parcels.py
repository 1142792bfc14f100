"""A finished build as one archive, for another machine of the same kind (`kinds.py`), which lays it out at the same path."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from perfdiff import seals
from perfdiff.build import userhome
from perfdiff.build.cache import size_bytes
from perfdiff.revisions.repository import Repository

# What a worker's memory takes without a thought; a tree that is larger holds data that are not built.
MOST_BYTES = 512 * 2**20
_TREE, _RUNNING = "source", "source.running"  # the second lies there while workloads may change the tree (`collect/trees/pristine.py`)
_PARTS = (_TREE, "build", "outcome.json", seals.NAME)
_NS = 10**9


@dataclass(frozen=True, slots=True)
class Parcel:
    """A build's folder, packed, with the digest of that."""

    content: bytes
    digest: str


def packed(folder: Path) -> Parcel | None:
    """Return the build that a folder holds; None where it is too large, in use, not as it was built, or has put files into its home."""

    def timed(member: tarfile.TarInfo) -> tarfile.TarInfo:
        """Give a member its time to the nanosecond, as build systems compare it with what they wrote down, and no owner."""
        time_ns = (folder / member.name).lstat().st_mtime_ns
        member.pax_headers = {"mtime": f"{time_ns // _NS}.{time_ns % _NS:09}"}
        member.uid, member.gid, member.uname, member.gname = os.geteuid(), os.getegid(), "", ""
        return member

    content = io.BytesIO()
    try:
        if not _is_settled(folder) or sum(size_bytes(folder / name) for name in _PARTS) > MOST_BYTES:
            return None
        with tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as archive:
            for name in _PARTS:
                archive.add(folder / name, name, filter=timed)
    except (OSError, MemoryError, tarfile.TarError):  # it was cleared away meanwhile, or holds what cannot be read
        return None
    # A run that began meanwhile may have changed what was read.
    return Parcel(content.getvalue(), digest(content.getvalue())) if _is_settled(folder) else None


def unpacked(parcel: Parcel, folder: Path) -> bool:
    """Lay a build out in an empty folder, and return whether it is there as it was built elsewhere; raise OSError.

    What is left in the folder where it is not is for the caller to remove.
    """
    if digest(parcel.content) != parcel.digest:
        return False
    try:
        with tarfile.open(fileobj=io.BytesIO(parcel.content)) as archive:
            archive.extraction_filter = _as_it_is
            members = archive.getmembers()
            if not all(_is_inside(member.name) for member in members):
                return False
            archive.extractall(folder, members)
    except tarfile.TarError:
        return False
    _set_times(folder, members)
    if seals.broken(folder) is not None:
        return False
    seals.close(folder)  # with the times and inodes of here, by which it is known again without being read
    tree = folder / _TREE
    Repository(tree / ".git", tree / ".git", tree, Path()).ask("update-index", "-q", "--refresh")  # its index names those of there
    return True


def _is_settled(folder: Path) -> bool:
    if not folder.is_dir() or (folder / _RUNNING).exists() or not userhome.is_untouched(folder):
        return False
    return seals.broken(folder) is None


def _as_it_is(member: tarfile.TarInfo, _folder: str) -> tarfile.TarInfo:
    member.uid, member.gid = os.geteuid(), os.getegid()
    return member


def _is_inside(name: str) -> bool:
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts and path.parts[0] in _PARTS


def _set_times(folder: Path, members: Iterable[tarfile.TarInfo]) -> None:
    """Give all members their times, folders last: what is laid into a folder changes the folder's own."""
    for member in sorted(members, key=lambda member: member.isdir()):
        seconds, _, fraction = member.pax_headers.get("mtime", f"{member.mtime:.9f}").partition(".")
        time_ns = int(seconds) * _NS + int(f"{fraction:0<9}"[:9])
        os.utime(folder / member.name, ns=(time_ns, time_ns), follow_symlinks=False)


def digest(content: bytes) -> str:
    """Return a digest of an archive."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()
