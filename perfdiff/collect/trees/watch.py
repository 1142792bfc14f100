"""The names of what changes in a tree, as the kernel tells them while commands run (inotify(7))."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from perfdiff.collect.trees.inotify import IGNORED, OVERFLOW, Inotify

_ATTRIB, _CLOSE_WRITE, _MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x4, 0x8, 0x40, 0x80, 0x100, 0x200
_ONLY_FOLDERS, _FOLLOW_NO_LINKS, _NOT_UNLINKED = 0x01000000, 0x02000000, 0x04000000
# Without IN_MODIFY, which tells of each write: 0.7 µs that nearly doubled the cost of small ones, in the time that is measured; the others
# add 0.1 to 0.3 µs to it. A file opened for writing is told when it is closed, and a mapped one when its mapping ends.
_MASK = (
    _ATTRIB | _CLOSE_WRITE | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE | _ONLY_FOLDERS | _FOLLOW_NO_LINKS | _NOT_UNLINKED
)  # fmt: skip


class Watch:
    """Watches the folders of a tree. Paths are relative to its root, which is "".

    Not told are truncate(2) of a file by its name, and writes through a hard link that lies elsewhere: who must be sure scans now and then.
    """

    def __init__(self, root: Path, folders: Iterable[str]) -> None:
        """Begin to watch `folders`; raise OSError where the kernel has none or not enough watches to give."""
        self._root = root
        self._folders: dict[int, str] = {}
        self._events = Inotify()
        try:
            for folder in folders:
                self.add(folder)
        except OSError:
            self.close()
            raise

    def add(self, folder: str) -> None:
        """Watch one more folder; raise OSError."""
        self._folders[self._events.add(self._root / folder, _MASK)] = folder

    def names(self) -> set[str] | None:
        """Return the paths of which something was told since they were last asked for, None where not all could be told."""
        names: set[str] = set()
        complete = True
        for watch, mask, name in self._events.read():
            if mask & OVERFLOW:
                complete = False
            elif mask & IGNORED:
                self._folders.pop(watch, None)
            elif (folder := self._folders.get(watch)) is not None:
                names.add("/".join(part for part in (folder, name) if part))
        return names if complete else None

    def close(self) -> None:
        """End all watches."""
        self._events.close()
