"""Which files of a built tree the processes of a run open: where none opens one that differs, base and head do the same."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfdiff import units
from perfdiff.collect.executor import Command, Execution, Executor
from perfdiff.collect.inotify import OVERFLOW, Inotify
from perfdiff.languages.tree_files import all_differing
from perfdiff.records.schema import Note, Side

_ACCESS, _OPEN, _IS_FOLDER = 0x1, 0x20, 0x40000000
_SHOWN = 3  # files that a sentence lists before it only counts


@dataclass(frozen=True, slots=True)
class Decisive:
    """The paths of a side's tree of which a run must open one to do something else than on the other side.

    A file that one side alone has also shows to whoever lists the folder that it lies in, so that such folders are among them.
    """

    tree: Path
    paths: frozenset[str]

    @classmethod
    def of(cls, trees: Mapping[Side, Path], differing: Mapping[str, Collection[Side]]) -> dict[Side, Decisive]:
        """Return those of both sides; `differing` are the files that are not the same, with the sides that have each."""
        found: dict[Side, set[str]] = {side: set() for side in trees}
        for name, sides in differing.items():
            for side in sides:
                found[side].add(name)
                if len(sides) < len(trees):
                    found[side] |= set(_folders_seen(name, trees))
        return {side: cls(tree, frozenset(found[side])) for side, tree in trees.items()}


def _folders_seen(name: str, trees: Mapping[Side, Path]) -> Iterator[str]:
    """Yield the folders in whose lists it shows that a side lacks a file: its own, and those above it up to one that both have."""
    place = Path(name).parent
    while True:
        yield "" if place == Path() else place.as_posix()
        if all((tree / place).is_dir() for tree in trees.values()):
            return
        place = place.parent


def differing(trees: Mapping[Side, Path], known: Collection[str] | None, alike: Collection[str] = ()) -> dict[str, tuple[Side, ...]]:
    """Return the files that are not the same, of the `known` ones where these are given, but for those that are `alike`.

    None are returned where watching one tells nothing.
    """
    found = {
        name: places
        for name, places in all_differing(trees[Side.BASE], trees[Side.HEAD])
        if name not in alike and (known is None or name in known)
    }
    if any(path.is_symlink() or not path.is_file() for places in found.values() for path in places.values()):
        return {}
    return {name: tuple((Side.BASE, Side.HEAD)[number] for number in places) for name, places in found.items()}


def note(names: Collection[str]) -> Note:
    """Tell which files differ though no run opens them, but for those of version control and what interpreters keep of sources."""
    shown = sorted(name for name in names if not name.startswith(".git/") and "__pycache__" not in name.split("/"))
    return Note("changes-not-opened", f"no run opens a file that differs{f' ({units.listed(shown, _SHOWN)})' if shown else ''}")


class Openings:
    """Watches a tree while a run goes on."""

    def __init__(self, decisive: Decisive) -> None:
        """Watch for what is decisive, and for whether a run opens anything of the tree at all; nothing is watched before `begin`."""
        self._decisive = decisive
        self._events: Inotify | None = None
        self._folders: dict[int, str] = {}
        self._files: dict[int, str] = {}
        self._is_whole = False  # all is watched

    def begin(self) -> None:
        """Begin to watch; raise OSError where the kernel gives not as many watches."""
        tree, self._events = self._decisive.tree, Inotify()
        for folder in [place for place, _, _ in os.walk(tree)]:
            place = Path(folder).relative_to(tree).as_posix()
            name = "" if place == "." else place
            # A JVM opens the folder that it starts in, so as to come back to it; only its list tells what is in it.
            self._folders[self._events.add(Path(folder), _OPEN | (_ACCESS if name in self._decisive.paths else 0))] = name
        for name in self._decisive.paths:
            if not (tree / name).is_dir():
                self._files[self._events.add(tree / name, _OPEN)] = name
        self._is_whole = True

    def end(self) -> frozenset[str] | None:
        """Return what is decisive and was opened; None where that cannot be told, or nothing of the tree was opened."""
        if self._events is None or not self._is_whole:
            return None
        opened, decisive = set(), set()
        try:
            for watch, mask, name in self._events.read():
                is_folder = bool(mask & _IS_FOLDER)
                if mask & OVERFLOW:
                    return None
                is_own = not (is_folder and name)  # a folder in a folder has a watch of its own
                if watch in self._files:
                    decisive.add(self._files[watch])
                elif watch in self._folders and is_own and mask & (_ACCESS if is_folder else _OPEN):
                    opened.add("/".join(filter(None, (self._folders[watch], name))))
        finally:
            self.close()
        return frozenset(decisive | (opened & self._decisive.paths)) if opened or decisive else None

    def close(self) -> None:
        """End all watches."""
        if self._events is not None:
            self._events.close()
            self._events = None


class Watching:
    """Runs commands one after the other, and watches the tree while they run."""

    def __init__(self, executor: Executor, decisive: Decisive) -> None:
        """Have `executor` run them."""
        self._executor, self._decisive = executor, decisive
        self.opened: frozenset[str] | None = frozenset()  # of what is decisive, by any run so far; None where that cannot be told

    def execute(self, command: Command) -> Execution:
        """Run `command` to its end; raise WorkloadError where it fails, hangs or crashes."""
        openings = Openings(self._decisive)
        try:
            with contextlib.suppress(OSError):  # without as many watches nothing is known
                openings.begin()
            found = self._executor.execute(command)
            opened = openings.end()
        finally:
            openings.close()
        self.opened = None if self.opened is None or opened is None else self.opened | opened
        return found

    def execute_together(self, commands: Sequence[Command], cpus: Collection[int]) -> list[Execution]:
        """Run commands at the same time, which tells nothing of what each of them opens."""
        self.opened = None
        return self._executor.execute_together(commands, cpus)
