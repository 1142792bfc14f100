"""The trees that workloads run in, and the homes that they find, each as its build left it whenever a run begins."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from os.path import relpath
from pathlib import Path

from perfdiff.collect.execution.executor import Command, Executor, tree_removed
from perfdiff.collect.execution.outputs import files_written, inputs_left
from perfdiff.collect.trees.pristine import PristineTree
from perfdiff.errors import store_errors
from perfdiff.languages.kept_files import is_byte_code, is_kept, source_of
from perfdiff.records.behaviour import Shape


@dataclass(frozen=True, slots=True)
class Chores:
    """What is done for a run outside its time: `setup` once before all runs of a point in a tree, `prepare` before each.

    The run finds the tree in a `layout`; 0 is the build itself.
    """

    workload: str
    point: int
    layout: int = 0
    setup: Command | None = None
    prepare: Command | None = None


@dataclass(slots=True)
class Upkeep:
    """Puts trees back between runs, runs what they need beforehand, and keeps in mind what they changed.

    What a setup leaves stays for the runs of its point alone, as other points may leave other contents under the same names. It stands
    above the layout, in which the tree's programs lie in memory elsewhere.
    """

    _trees: dict[Path, PristineTree] = field(default_factory=dict)
    _scanned: set[tuple[Path, str]] = field(default_factory=set)
    _written: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _inputs: dict[tuple[Path, int], Mapping[str, Shape]] = field(default_factory=dict)
    _sources: dict[Path, frozenset[str]] = field(default_factory=dict)  # by tree, of what was set aside
    _left: dict[Path, set[str]] = field(default_factory=dict)  # by tree, byte code
    _lying: set[PristineTree] | None = None  # trees that runs which follow each other leave as they are

    @property
    def written(self) -> Mapping[str, tuple[str, ...]]:
        """Return the paths that a workload wrote to in its tree, by its name, as seen in the first run that did so."""
        return self._written

    def inputs(self, tree: Path, point: int) -> Mapping[str, Shape] | None:
        """Return the shapes of the files that a setup left in a tree for the runs of a point, None where none ran."""
        return self._inputs.get((tree, point))

    @property
    def left(self) -> int:
        """Return how many files of byte code runs have left so far."""
        return sum(map(len, self._left.values()))

    def left_in(self, tree: Path) -> Collection[str] | None:
        """Return the sources of the byte code that runs have left in a tree so far, None where none was set aside for that."""
        left = self._left.get(tree)
        return None if left is None else frozenset(filter(None, map(source_of, left)))

    def set_aside(self, tree: Path, byte_code: Collection[str]) -> None:
        """Have a tree without the byte code that was compiled for it; what runs leave of it stays for all others. Raise StoreError."""
        if not byte_code or tree in self._left:
            return
        place = self._tree(tree)
        with store_errors(tree):
            place.set_aside(byte_code)
        self._left[tree] = set()
        self._sources[tree] = frozenset(filter(None, map(source_of, byte_code)))

    @contextmanager
    def around(
        self, tree: Path, command: Command, chores: Chores, executor: Executor, home: Path | None = None
    ) -> Iterator[dict[str, Shape]]:
        """Make the whole `tree`, and a `home` beside it, ready for a run of `command`, which the `with` block makes, and put both back.

        Yields a place for the shapes of the files that the run writes in the tree, which are there once the block was left. Raises
        WorkloadError where a setup or prepare fails, or where the run removed the folder that it ran in; StoreError.
        """
        built, at_home = self._tree(tree), self._tree(home) if home is not None and home.is_dir() else None
        places = (built, at_home) if at_home is not None else (built,)
        self._set_up(places, chores, executor)
        if self._lying is not None:
            self._lying |= {*places}
            self._prepare(places, chores, executor)
            yield {}
            return
        is_gone, files = False, dict[str, Shape]()
        try:
            prepared = self._prepare(places, chores, executor)
            yield files
        finally:
            with store_errors(tree):
                is_gone = not command.directory.is_dir()
                # The first run of a workload shows whether the kernel tells of all that it changes.
                is_first = (tree, chores.workload) not in self._scanned
                self._scanned.add((tree, chores.workload))
                changed = [place.changed(everything=is_first) for place in places]
                if byte_code := self._byte_code(tree, changed[0]):
                    built.take_over(byte_code)
                    self._left[tree] |= {*filter(is_byte_code, byte_code)}
                    changed[0] = tuple(path for path in changed[0] if path not in byte_code)
                written = [[path for path in paths if not place.stands(path)] for place, paths in zip(places, changed, strict=True)]
                files |= files_written(tree, written[0], command.echoes)
                for place, paths in zip(places, changed, strict=True):
                    place.put_back(paths)
        if is_gone:
            raise tree_removed(command)
        in_tree = [path for path in written[0] if path not in prepared[0]]
        in_home = [path for path in written[-1] if path not in prepared[-1]] if at_home else []
        own = (*(relpath(tree / path, command.directory) for path in in_tree), *(f"~/{path}" for path in in_home))
        if own:
            self._written.setdefault(chores.workload, own)

    @contextmanager
    def left_as_runs_leave(self) -> Iterator[None]:
        """Put no tree back between the runs that the `with` block makes, but all at its end; raise StoreError."""
        self._lying = set()
        try:
            yield
        finally:
            lying, self._lying = self._lying, None
            for place in lying:
                with store_errors(place.tree):
                    place.put_back(place.changed(everything=True))

    def lay_out(self, tree: Path, layout: int, relink: Callable[[], bool] | None) -> bool:
        """Keep the programs that `relink` links in a tree as a layout, and return whether it did; raise StoreError.

        Where there is nothing to link, the tree is the same in each layout.
        """
        pristine = self._tree(tree)
        with store_errors(tree):
            if pristine.has_layer(_layout(layout)):  # both sides are one revision
                return True
        if relink is None:
            pristine.keep_empty_layer(_layout(layout))
            return True
        return self._kept((pristine,), _layout(layout), relink)

    def close(self) -> None:
        """Restore all trees as their builds left them; raise StoreError."""
        self._left, self._sources = {}, {}
        with contextlib.ExitStack() as stack:
            while self._trees:
                tree, pristine = self._trees.popitem()
                stack.enter_context(store_errors(tree))
                stack.callback(pristine.close)

    def _byte_code(self, tree: Path, changed: Sequence[str]) -> set[str]:
        """Return which of the files that are new in a tree are byte code of sources for which some was set aside, with new folders."""
        sources = self._sources.get(tree)
        if not sources:
            return set()
        below = (path for folder in changed if is_kept(folder) for path in (tree / folder).glob("*"))
        paths = {*changed, *(path.relative_to(tree).as_posix() for path in below)}
        files = {path for path in paths if self._tree(tree).is_new(path) and is_byte_code(path) and source_of(path) in sources}
        return files | {folder for path in files if (folder := path.rpartition("/")[0]) in changed and self._tree(tree).is_new(folder)}

    def _tree(self, tree: Path) -> PristineTree:
        with store_errors(tree):
            return self._trees.get(tree) or self._trees.setdefault(tree, PristineTree(tree))

    def _set_up(self, places: Sequence[PristineTree], chores: Chores, executor: Executor) -> None:
        layers = (_layout(chores.layout),) if chores.layout else ()
        if chores.setup is not None:
            setup = f"setup of point {chores.point} by {chores.setup.text}"
            if not places[0].has_layer(setup):
                command, place = chores.setup, places[0]
                for lying in places if self._lying is not None else ():
                    with store_errors(lying.tree):
                        lying.put_back(lying.changed(everything=True))  # what runs left is none of its

                def change() -> bool:
                    executor.execute(command)
                    left = [path for path in place.changed(everything=True) if not place.stands(path)]
                    self._inputs[place.tree, chores.point] = inputs_left(place.tree, left)
                    return True

                self._kept(places, setup, change)
            layers = (setup, *layers)
        for place in places:
            with store_errors(place.tree):
                place.enter(*filter(place.has_layer, layers))

    @staticmethod
    def _kept(places: Sequence[PristineTree], name: str, change: Callable[[], bool]) -> bool:
        """Keep as a layer what `change` makes of trees as their build left them, where it returns that it did; else put them back."""
        for place in places:
            with store_errors(place.tree):
                place.enter()
        done = False
        try:
            done = change()
        finally:
            for place in places:
                with store_errors(place.tree):
                    if done:
                        place.keep_layer(name)
                    else:
                        place.put_back(place.changed(everything=True))
        return done

    @staticmethod
    def _prepare(places: Sequence[PristineTree], chores: Chores, executor: Executor) -> list[frozenset[str]]:
        """Return the paths in each tree that preparing changed."""
        if chores.prepare is None:
            return [frozenset() for _ in places]
        executor.execute(chores.prepare)
        changed = []
        for place in places:
            with store_errors(place.tree):
                changed.append(frozenset(place.changed()))
        return changed


def _layout(number: int) -> str:
    return f"layout {number}"
