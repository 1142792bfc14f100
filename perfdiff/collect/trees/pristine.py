"""A built tree as its build left it: a copy beside it, what differs from that, and how it is put back."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from perfdiff import seals
from perfdiff.build.cache import remove_folder
from perfdiff.collect.trees.snapshot import Status, copy, copy_all, hard_links, same_content, scan, settle, status
from perfdiff.collect.trees.watch import Watch


@dataclass(slots=True, eq=False)
class Layer:
    """What was changed in a tree: the status of each path, None where it was removed, and the folder that has the copies."""

    folder: Path
    left: dict[str, Status | None] = field(default_factory=dict)


class PristineTree:
    """A tree that commands run in, and that is put back between them to what its build left, or layers above that.

    Changes are known from `Watch`. A full scan replaces it where the kernel offers no watches, where events were lost, and for good once a
    scan has shown something of which no event told. The copy lies beside the tree, so that what ended a perfdiff in the middle of a run is
    made good by the next one. Programs of the tree must have ended before it is looked at.
    """

    def __init__(self, tree: Path) -> None:
        """Copy `tree`, or put it back where it is not as an earlier copy; raise OSError."""
        self.tree = tree
        self._copy = tree.with_name(f"{tree.name}.pristine")
        self._layers_folder = tree.with_name(f"{tree.name}.layers")
        self._running = tree.with_name(f"{tree.name}.running")  # lies there from the first command to `close`
        self._built: dict[str, Status] = {}
        self._links: dict[str, tuple[str, ...]] = {}
        self._layers: dict[str, Layer] = {}
        self._ground: tuple[Layer, ...] = ()  # below all others: what was set aside, and what runs left in its place
        self._entered: tuple[Layer, ...] = ()  # the topmost first
        self._watch: Watch | None = None
        self._told: set[str] = set()  # of which the kernel told since all was put back
        self._is_told_all = True
        self._is_told_truly = True  # no scan has shown more than the kernel told
        remove_folder(self._layers_folder)
        if self._copy.is_dir() and seals.is_broken_copy(tree.parent, tree.name, self._copy.name):
            remove_folder(self._copy)  # or the tree would be put back to what somebody made of it
        if self._copy.is_dir():
            self._recover()
        else:
            self._built = scan(tree)
            self._links = hard_links(self._built)
            unfinished = self._copy.with_name(f"{self._copy.name}.unfinished")
            remove_folder(unfinished)
            copy_all(tree, unfinished, self._built)
            unfinished.rename(self._copy)
        self._running.touch()
        self._watch_anew()

    def close(self) -> None:
        """Restore the tree as its build left it, and remove everything beside it except the copy."""
        self.put_back(self.changed(everything=True))
        self._ground = ()
        self.enter()
        self._close_watch()
        remove_folder(self._layers_folder)
        self._running.unlink(missing_ok=True)

    def changed(self, *, everything: bool = False) -> tuple[str, ...]:
        """Return the paths that are not as they should be, sorted; of what is new, the topmost folder alone.

        With `everything` all files are looked at, not those alone of which the kernel told.
        """
        names = self._watch.names() if self._watch else None
        self._is_told_all &= names is not None
        for path in names or ():
            self._told |= {path, _parent(path), *self._twins(path)}  # of a file with several names one is told
        if everything or not self._is_told_all:
            changed = self._scanned()
            if self._is_told_all and any(path not in self._told and self.stands(_parent(path)) for path in changed):
                self._is_told_truly = False
                self._close_watch()
        else:
            changed = {path for path in ("", *self._told) if status(self.tree / path) != self._expected(path)}
        return tuple(sorted(path for path in changed if self._expected(path) or _is_folder(self._expected(_parent(path)))))

    def put_back(self, paths: Iterable[str]) -> None:
        """Restore `paths`, which are all that differ from what the build left; raise OSError.

        Always from the root down: what has taken the place of a folder, such as a link out of the tree, goes before anything in it is
        touched. Files are replaced and never written to, as they may be links to what lies outside.
        """
        wanted = set(paths)
        gone = [path for path in sorted(wanted) if self._clear(path)]
        below = tuple(f"{path}/".lstrip("/") for path in gone if _is_folder(self._expected(path)))
        if below:
            wanted |= {path for path in self._all_expected() if path.startswith(below)}
        for path in sorted(wanted):
            self._put(path)
        for folder in sorted({folder for path in wanted for folder in (path, _parent(path))}, reverse=True):
            self._settle(folder)
        self._forget()

    def stands(self, path: str) -> bool:
        """Return whether `path` should be a folder and is the one that it was, whatever it holds."""
        live, should = status(self.tree / path), self._expected(path)
        return bool(live and should and live.is_folder and should.is_folder and live.inode == should.inode)

    def is_new(self, path: str) -> bool:
        """Return whether something stands at `path`, and nothing should."""
        return self._expected(path) is None and status(self.tree / path) is not None

    def set_aside(self, paths: Iterable[str]) -> None:
        """Have the tree without some of its files, and the folders of nothing else, from now on; raise OSError."""
        if self._ground:
            return
        gone = self._built.keys() & {*paths}
        gone |= set(map(_parent, gone)) - set(map(_parent, self._built.keys() - gone))
        self._ground = (Layer(self._layers_folder / "ground", dict.fromkeys(gone)),)
        self._entered += self._ground
        self.put_back(gone)

    def take_over(self, paths: Iterable[str]) -> None:
        """Take what stands at `paths`, where nothing should, for what stands there from now on, and put all else back; raise OSError."""
        (ground,) = self._ground
        left = {path: should for path in paths if (should := status(self.tree / path)) is not None}
        copy_all(self.tree, ground.folder, left)
        ground.left |= left
        self.put_back(self._scanned())
        self._watch_anew()

    def has_layer(self, name: str) -> bool:
        """Return whether there is a layer of this name."""
        return name in self._layers

    def keep_layer(self, name: str) -> None:
        """Take what differs now, while no layer of a name is entered, for a layer, and enter it; raise OSError."""
        live = scan(self.tree)
        changed = self.changed(everything=True)
        created = tuple(f"{path}/" for path in changed if path in live and live[path].is_folder and not self.stands(path))
        paths = {*changed, *(path for path in live if path.startswith(created))}
        layer = Layer(self._layers_folder / str(len(self._layers)), {path: live.get(path) for path in sorted(paths)})
        copy_all(self.tree, layer.folder, {path: should for path, should in layer.left.items() if should})
        self._layers[name] = layer
        self._entered = (layer, *self._ground)
        self._watch_anew()

    def keep_empty_layer(self, name: str) -> None:
        """Take what the build left for a layer, too."""
        self._layers[name] = Layer(self._layers_folder / str(len(self._layers)), {})

    def enter(self, *names: str) -> None:
        """Put the layers of these names, the topmost first, in the place of the present ones; nothing may differ but by those.

        Raise OSError.
        """
        layers = (*(self._layers[name] for name in names), *self._ground)
        differing = {path for layer in {*self._entered} ^ {*layers} for path in layer.left}
        self._entered = layers
        if differing:
            self.put_back(differing)

    def _layer_of(self, path: str) -> Layer | None:
        """Return the layer that says what should stand at `path`, None where the build does."""
        return next((layer for layer in self._entered if path in layer.left), None)

    def _expected(self, path: str) -> Status | None:
        layer = self._layer_of(path)
        return layer.left[path] if layer else self._built.get(path)

    def _all_expected(self) -> dict[str, Status]:
        left = {path: should for layer in reversed(self._entered) for path, should in layer.left.items()}
        return {path: should for path, should in (self._built | left).items() if should}

    def _master(self, path: str) -> Path:
        layer = self._layer_of(path)
        return (layer.folder if layer else self._copy) / path

    def _note(self, path: str) -> None:
        """Take what stands at `path` now for what should; a folder keeps its mode and time, which it gets by `_settle`."""
        live, should = status(self.tree / path), self._expected(path)
        if live is None or should is None:
            return
        noted = should._replace(inode=live.inode) if should.is_folder else live
        layer = self._layer_of(path)
        (layer.left if layer else self._built)[path] = noted

    def _recover(self) -> None:
        """Put the tree back where it is not as the copy; after a crash, contents are compared as well."""
        self._built, live = scan(self._copy), scan(self.tree)
        self._links = hard_links(self._built)
        crashed = self._running.exists()
        differing = {path for path in self._built.keys() | live.keys() if not self._is_as_copied(path, live, contents=crashed)}
        for path in self._built.keys() & live.keys():
            if path not in differing:
                self._built[path] = live[path]
            elif self._built[path].is_folder and live[path].is_folder:
                self._built[path] = self._built[path]._replace(inode=live[path].inode)
        self.put_back(differing)

    def _is_as_copied(self, path: str, live: Mapping[str, Status], *, contents: bool) -> bool:
        built, standing = self._built.get(path), live.get(path)
        if built is None or standing is None or built[:3] != standing[:3]:
            return False
        return not contents or same_content(self._copy / path, self.tree / path, standing)

    def _scanned(self) -> set[str]:
        """Return all paths that differ, but for files of which the time of status alone does, as by a hard link to them."""
        live, expected = scan(self.tree), self._all_expected()
        differing = expected.keys() - live.keys()
        for path, standing in live.items():
            should = expected.get(path)
            if standing == should:
                continue
            is_touched = should and standing._replace(ctime_ns=0) == should._replace(ctime_ns=0)
            if is_touched and same_content(self._master(path), self.tree / path, standing):
                self._note(path)
            else:
                differing.add(path)
        return differing

    def _forget(self) -> None:
        """Take what the kernel told so far for no change."""
        if self._watch:
            self._watch.names()
        self._told, self._is_told_all = set(), True

    def _twins(self, path: str) -> tuple[str, ...]:
        """Return the other names of a file that its build linked; a layer has none."""
        names = () if self._layer_of(path) else self._links.get(path, ())
        return tuple(other for other in names if self._layer_of(other) is None)

    def _clear(self, path: str) -> bool:
        """Remove what stands at `path` unless it is the folder that should; return whether nothing stands there now."""
        place = self.tree / path
        standing = status(place)
        if standing is None:
            return True
        if self.stands(path):
            return False
        _make_writable(place.parent)
        if standing.is_folder:
            remove_folder(place)
        else:
            place.unlink()
        return True

    def _put(self, path: str) -> None:
        """Put at `path` what should stand there, unless it does; folders get their modes and times by `_settle`."""
        place, should = self.tree / path, self._expected(path)
        if should is None or self.stands(path):
            return
        _make_writable(place.parent)
        twin = next((other for other in self._twins(path) if status(self.tree / other) == self._expected(other)), None)
        if twin is not None:
            place.hardlink_to(self.tree / twin)
            self._note(twin)
        else:
            copy(self._master(path), place, should)
        self._note(path)
        if should.is_folder and self._watch:
            try:
                self._watch.add(path)
            except OSError:
                self._close_watch()

    def _settle(self, path: str) -> None:
        """Give a folder the mode and time that it should have."""
        should = self._expected(path)
        if should and self.stands(path):
            settle(self.tree / path, should)

    def _watch_anew(self) -> None:
        self._close_watch()
        self._forget()
        if not self._is_told_truly:
            return
        with contextlib.suppress(OSError):  # no watches, or too few: then it is scanned
            self._watch = Watch(self.tree, (path for path, should in self._all_expected().items() if should.is_folder))

    def _close_watch(self) -> None:
        if self._watch:
            self._watch.close()
        self._watch = None


def _make_writable(folder: Path) -> None:
    if not os.access(folder, os.W_OK | os.X_OK):
        folder.chmod(stat.S_IRWXU)


def _is_folder(status: Status | None) -> bool:
    return status is not None and status.is_folder


def _parent(path: str) -> str:
    return path.rpartition("/")[0]
