"""What differs between the built trees of base and head, and whether a run met any of it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, replace
from pathlib import Path

from perfdiff.collect.trees.accesses import Accesses
from perfdiff.languages.kept_files import is_kept
from perfdiff.languages.protocol import PlainBuild
from perfdiff.languages.tree_files import all_differing
from perfdiff.records.schema import Side

_NOT_ON_DISK = ("/proc/", "/sys/")


@dataclass(frozen=True, slots=True)
class Differences:
    """What is not the same in the folders of two plain builds, by paths in their trees.

    `contents` are files, links and empty folders on both sides of which something differs; of those in `sizes` what asking after them
    tells differs as well. `one_sided` are those that one side alone has, with the folders that only hold such, and `lists` the folders
    in whose lists that shows. What is `alike` differs, but not for the engine that runs it; it gives how often an engine opens
    the file itself in a process: who opens it more often reads it as a text.
    """

    builds: Mapping[Side, PlainBuild]
    contents: frozenset[str]
    sizes: frozenset[str]
    one_sided: frozenset[str]
    lists: frozenset[str]
    alike: Mapping[str, float]

    @classmethod
    def between(cls, builds: Mapping[Side, PlainBuild], alike: Mapping[str, float]) -> Differences:
        """Return how two builds differ; packs say which differing files are `alike` for their engines."""
        trees = [builds[side].tree for side in Side]
        contents, sizes, one_sided, lists = set(), set(), set(), set()
        for name, places in all_differing(*trees):
            if len(places) < len(trees):
                one_sided |= {name, *_own_folders(name, trees)}
                lists |= set(_folders_above(name, trees))
            elif name not in alike:
                contents.add(name)
                if _told(places[0]) != _told(places[1]):
                    sizes.add(name)
        return cls(builds, frozenset(contents), frozenset(sizes), frozenset(one_sided), frozenset(lists), alike)

    @property
    def names(self) -> frozenset[str]:
        """Return the paths whose contents differ, or that only one side has."""
        return self.contents | self.one_sided

    @property
    def are_none(self) -> bool:
        """Return whether no file differs for any run."""
        return not self.names and all(times == float("inf") for times in self.alike.values())

    @property
    def written(self) -> Differences:
        """Return the same without what interpreters keep on one side alone: runs leave it, and it is no difference of the revisions."""
        one_sided = frozenset(name for name in self.one_sided if not is_kept(name))
        shown = {folder.as_posix() for name in one_sided for folder in Path(name).parents}
        return replace(self, one_sided=one_sided, lists=frozenset(name for name in self.lists if (name or ".") in shown))

    def met(self, side: Side, accesses: Accesses) -> frozenset[str]:
        """Return what of it a run of a side met, by its path in the tree, or beside the tree in the folder of the build."""
        build = self.builds[side]
        inside = {path: name for path in _all_paths(accesses) if (name := _below(build.tree, path)) is not None}
        used = accesses.opened.keys() | accesses.ran
        met = {name for path, name in inside.items() if path in used and name in self.contents}
        met |= {name for name in inside.values() if name in self.one_sided or name in self.sizes}
        met |= {f"{inside[path] or '.'}/" for path in accesses.listed if inside.get(path) in self.lists}
        met |= {inside[path] for path, times in accesses.opened.items() if path in inside and times > self.alike.get(inside[path], times)}
        moved = {inside[path] for path in accesses.moved if path in inside}
        met |= {name for name in self.names | self.alike.keys() if not moved.isdisjoint((name, *map(str, Path(name).parents)))}
        return frozenset([*met, *self._met_beside(side, accesses)])

    def _met_beside(self, side: Side, accesses: Accesses) -> Iterator[str]:
        """Yield what a run met of the build's folder outside of its tree, and that is not the same on the other side."""
        own = self.builds[side]
        (other,) = (build for other_side, build in self.builds.items() if other_side is not side)
        for path in _all_paths(accesses):
            name = _below(own.beside, path)
            if name and _below(own.tree, path) is None:
                pair = Path(path), other.beside / name
                masks = os.fsencode(own.beside), os.fsencode(other.beside)
                if _seen(pair[0], masks[0]) != _seen(pair[1], masks[1]):
                    yield name


def elsewhere(build: PlainBuild, accesses: Accesses) -> frozenset[str]:
    """Return the files outside of a build that a run of it opened or ran, and that are still there."""
    paths = (path for path in accesses.opened.keys() | accesses.ran if _below(build.beside, path) is None)
    return frozenset(path for path in paths if not path.startswith(_NOT_ON_DISK) and Path(path).is_file())


def inside(build: PlainBuild, accesses: Accesses) -> frozenset[str]:
    """Return the names of what a run met of a build's tree: what it opened, ran, listed or asked after."""
    return frozenset(name for path in _all_paths(accesses) if (name := _below(build.tree, path)))


def is_at_work(build: PlainBuild, accesses: Accesses) -> bool:
    """Return whether a run opened or ran a file of a build: one that does its work elsewhere shows nothing of it."""
    return any(_below(build.beside, path) and Path(path).is_file() for path in accesses.opened.keys() | accesses.ran)


def _all_paths(accesses: Accesses) -> Set[str]:
    return accesses.opened.keys() | accesses.ran | accesses.listed | accesses.moved | accesses.asked


def _below(folder: Path, path: str) -> str | None:
    """Return the name of a path within a folder, "" of the folder itself, None where it is not in it."""
    start = os.path.realpath(folder)
    if path == start:
        return ""
    return path[len(start) + 1 :] if path.startswith(f"{start}/") else None


def _own_folders(name: str, trees: list[Path]) -> Iterator[str]:
    """Yield the folders around a file that one side lacks as well."""
    for folder in Path(name).parents:
        if folder == Path() or all((tree / folder).is_dir() for tree in trees):
            return
        yield folder.as_posix()


def _folders_above(name: str, trees: list[Path]) -> Iterator[str]:
    """Yield the folders in whose lists it shows that a side lacks a file: its own, and those above it up to one that both have."""
    for folder in Path(name).parents:
        yield "" if folder == Path() else folder.as_posix()
        if all((tree / folder).is_dir() for tree in trees):
            return


def _told(path: Path) -> tuple[int, int, str]:
    """Return what asking after a file tells, but for times: they differ with when trees were laid out."""
    status = path.lstat()
    target = os.fspath(path.readlink()) if path.is_symlink() else ""
    return status.st_mode, 0 if path.is_dir() else status.st_size, target


def _seen(path: Path, mask: bytes) -> tuple[str, object]:
    """Return what a program sees of a path, where the folder's own path counts as the same on both sides."""
    if path.is_symlink():
        return "link", os.fsencode(path.readlink()).replace(mask, b"")
    if path.is_dir():
        return "folder", sorted(entry.name for entry in path.iterdir())
    return ("file", path.read_bytes().replace(mask, b"")) if path.is_file() else ("nothing", "")
