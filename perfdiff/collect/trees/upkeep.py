"""The trees that workloads run in, each as its build left it whenever a run begins."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from os.path import relpath
from pathlib import Path

from perfdiff.collect.execution.executor import Command, Executor, tree_removed
from perfdiff.collect.execution.outputs import files_written
from perfdiff.collect.trees.pristine import PristineTree
from perfdiff.errors import store_errors
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

    @property
    def written(self) -> Mapping[str, tuple[str, ...]]:
        """Return the paths that a workload wrote to in its tree, by its name, as seen in the first run that did so."""
        return self._written

    @contextmanager
    def around(self, tree: Path, command: Command, chores: Chores, executor: Executor) -> Iterator[dict[str, Shape]]:
        """Make the whole `tree` ready for a run of `command`, which is for the `with` block to make, and put it back after that.

        Yields a place for the shapes of the files that the run writes in the tree, which are there once the block was left. Raises
        WorkloadError where a setup or prepare fails, or where the run removed the folder that it ran in; StoreError.
        """
        found = self._tree(tree)
        self._set_up(found, chores, executor)
        is_gone, files = False, dict[str, Shape]()
        try:
            prepared = self._prepare(found, chores, executor)
            yield files
        finally:
            with store_errors(tree):
                is_gone = not command.directory.is_dir()
                # The first run of a workload shows whether the kernel tells of all that it changes.
                changed = found.changed(everything=(tree, chores.workload) not in self._scanned)
                self._scanned.add((tree, chores.workload))
                written = [path for path in changed if not found.stands(path)]
                files |= files_written(tree, written)
                found.put_back(changed)
        if is_gone:
            raise tree_removed(command)
        own = tuple(relpath(tree / path, command.directory) for path in written if path not in prepared and path.split("/")[0] != ".git")
        if own:
            self._written.setdefault(chores.workload, own)

    def lay_out(self, tree: Path, layout: int, relink: Callable[[], bool] | None) -> bool:
        """Keep what `relink` makes of a tree's programs as a layout, where it returns that it did; return that, too. Raise StoreError.

        Where there is nothing to link, the tree is the same in each layout.
        """
        found = self._tree(tree)
        with store_errors(tree):
            if found.has_layer(_layout(layout)):  # both sides are one revision
                return True
        if relink is None:
            found.keep_empty_layer(_layout(layout))
            return True
        return self._kept(found, _layout(layout), relink)

    def close(self) -> None:
        """Leave all trees as their builds did; raise StoreError."""
        with contextlib.ExitStack() as stack:
            while self._trees:
                tree, found = self._trees.popitem()
                stack.enter_context(store_errors(tree))
                stack.callback(found.close)

    def _tree(self, tree: Path) -> PristineTree:
        with store_errors(tree):
            return self._trees.get(tree) or self._trees.setdefault(tree, PristineTree(tree))

    @staticmethod
    def _set_up(tree: PristineTree, chores: Chores, executor: Executor) -> None:
        layers = (_layout(chores.layout),) if chores.layout else ()
        if chores.setup is not None:
            setup = f"setup of point {chores.point}"
            if not tree.has_layer(setup):
                command = chores.setup
                Upkeep._kept(tree, setup, lambda: executor.execute(command) is not None)
            layers = (setup, *layers)
        with store_errors(tree.tree):
            tree.enter(*layers)

    @staticmethod
    def _kept(tree: PristineTree, name: str, change: Callable[[], bool]) -> bool:
        """Keep as a layer what `change` makes of a tree as its build left it, where it returns that it did; else put the tree back."""
        with store_errors(tree.tree):
            tree.enter()
        done = False
        try:
            done = change()
        finally:
            with store_errors(tree.tree):
                if done:
                    tree.keep_layer(name)
                else:
                    tree.put_back(tree.changed(everything=True))
        return done

    @staticmethod
    def _prepare(tree: PristineTree, chores: Chores, executor: Executor) -> frozenset[str]:
        """Return the paths that preparing changed."""
        if chores.prepare is None:
            return frozenset()
        executor.execute(chores.prepare)
        with store_errors(tree.tree):
            return frozenset(tree.changed())


def _layout(number: int) -> str:
    return f"layout {number}"
