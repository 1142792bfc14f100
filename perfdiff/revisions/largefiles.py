"""Git LFS: files that git itself knows only as pointers."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from perfdiff.records.schema import Note
from perfdiff.revisions.repository import Repository

_POINTER = re.compile(rb"version https://git-lfs\.github\.com/spec/v1\n(?:.*\n)*?oid sha256:([0-9a-f]{64})\n")
_POINTER_BYTES = 1024  # a pointer is shorter, says its specification


def fill_in_large_files(source: Repository, tree: Repository) -> tuple[Note, ...]:
    """Replace the pointers in `tree` by the files that the user's repository holds; nothing is downloaded."""
    missing = []
    for name in filter(None, tree.tell("ls-files", "-z", "--", ":(top,attr:filter=lfs)").split("\0")):
        file = (tree.top or Path()) / name
        oid = _pointed_at(file)
        if oid is None:
            continue
        content = source.common_dir / "lfs" / "objects" / oid[:2] / oid[2:4] / oid
        if content.is_file():
            shutil.copyfile(content, file)
        else:
            missing.append(name)
    if not missing:
        return ()
    more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
    text = f"the content of {missing[0]}{more} is not in the repository, only its Git LFS pointer; run 'git lfs fetch --all'"
    return (Note(slug="lfs-missing", text=text),)


def _pointed_at(file: Path) -> str | None:
    if file.is_symlink() or not file.is_file():
        return None
    with file.open("rb") as stream:
        pointer = _POINTER.match(stream.read(_POINTER_BYTES))
    return pointer[1].decode() if pointer else None
