"""A variant of a build made from the plain one: a copy of its tree, in which what is compiled otherwise is compiled, and all linked again.

Runs on its own with FOLDER, that of the variant's masquerade, in the build's environment. What is to be done stands in `ORDER` there.
Modes and times of files are the plain tree's, so that `make` finds nothing to do in the copy.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Collection, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from perfdiff import seals, temporary
from perfdiff.build import linktime
from perfdiff.build.files import files
from perfdiff.build.linker import quoted
from perfdiff.build.masquerade import untouched
from perfdiff.build.repeatable import BuildRecipe, UnrepeatableError, read_recipe
from perfdiff.build.reuse import is_aligned, moved
from perfdiff.build.steps import BuildStep

ORDER = "order.json"
_LONGEST = 100_000  # bytes of arguments, from which on they go into a file; the system takes some 2 MB


@dataclass(frozen=True, slots=True)
class RepeatOrder:
    """What a variant's build is made from: records and tree of the plain build, and the other side's records where objects of both serve.

    `changed` are the files of the tree that are not as the plain build has them. Of units that serve as they are, the code `is_aligned`
    anew, and none has text of a file whose name ends in one of `line_files`. Where `used` names what runs use, nothing else is made again.
    The linker optimises units that have text of `optimised` files, or all, where it does in the plain build.
    """

    plain: str
    origin: str
    other: str | None
    changed: tuple[str, ...]
    is_aligned: bool
    line_files: tuple[str, ...] = ()
    used: tuple[str, ...] = ()
    optimised: tuple[str, ...] | None = None


def origin_of(plain: Path) -> Path:
    """Return the plain build's tree as it was built, a copy where commands run in the tree itself; raise UnrepeatableError."""
    tree = plain.parent / "source"
    copy, running = tree.with_name(f"{tree.name}.pristine"), tree.with_name(f"{tree.name}.running")  # `collect/trees/pristine.py`
    if copy.is_dir() and not seals.is_broken_copy(plain.parent, tree.name, copy.name):
        return copy
    if running.exists():
        raise UnrepeatableError("commands may have changed its tree, and there is no copy of it")
    return tree


def lay_out(plain: Path, origin: Path, tree: Path, used: Collection[str] = ()) -> None:
    """Write a copy of a plain build's tree, which is in `origin`, but for what its steps make; raise UnrepeatableError, OSError.

    Where `used` names what runs use, what is not made again for that is copied as well.
    """
    recipe, names = read_recipe(plain), _names(plain, tree)
    if names[0] == names[1] or len(names[0]) != len(names[1]):
        raise UnrepeatableError("the names of both trees have different lengths")
    own = (plain.parent / tree.name).resolve()
    outputs = {path for step in recipe.needed(own, used) for path in recipe.places(step)}
    for place, folders, names_of_files in os.walk(origin):
        to = tree / Path(place).relative_to(origin)
        to.mkdir(parents=True, exist_ok=True)
        for name in (*names_of_files, *(name for name in folders if Path(place, name).is_symlink())):
            if own / Path(place, name).relative_to(origin) not in outputs:
                _copy(Path(place, name), to / name, names)


def changed_files(origin: Path, tree: Path) -> tuple[str, ...]:
    """Return which files of a copy are not as old as the original's, or are new, relative to it."""
    names = (path.relative_to(tree) for path in files(tree))
    return tuple(str(name) for name in names if not _is_as_old(tree / name, origin / name))


def write_order(folder: Path, order: RepeatOrder) -> None:
    """Leave in the folder of a masquerade what is to be done there."""
    (folder / ORDER).write_text(json.dumps(asdict(order)), encoding="utf-8")


def main(folder: Path) -> int:
    """Make the variant; return the exit status of the step that failed, or 0."""
    content: dict[str, Any] = json.loads((folder / ORDER).read_text(encoding="utf-8"))
    fields: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in content.items()}
    order = RepeatOrder(**fields)
    plain, tree = Path(order.plain), folder.parent / "source"
    recipe = read_recipe(plain, moved=_names(plain, tree))
    with temporary.folder() as room:
        status = _Repetition(order, recipe, plain, folder.resolve(), tree.resolve(), room).run()
    if status == 0:
        _settle(tree, Path(order.origin))
    return status


@dataclass(frozen=True, slots=True)
class _Repetition:
    """The steps of a plain build at work in another tree."""

    order: RepeatOrder
    recipe: BuildRecipe
    plain: Path
    folder: Path  # of this build's masquerade
    tree: Path
    room: Path

    def run(self) -> int:
        """Do all steps; those that compile at the same time, others not before those have ended that had ended then."""
        steps = self.recipe.needed(self.tree, self.order.used)
        self._keep_calls({file.name for file in (self.plain / "calls").glob("*.json")} - {step.call for step in steps})
        with ThreadPoolExecutor(_most_at_once(steps)) as pool:
            compiles = {pool.submit(self._do, step): step for step in steps if step.is_compile}
            if status := _status(compiles):
                return status
            others: dict[Future[int], BuildStep] = {}
            for step in (step for step in steps if not step.is_compile):
                if status := _status([future for future, before in others.items() if before.ended_ns <= step.started_ns]):
                    return status
                others[pool.submit(self._do, step)] = step
            return _status(others)

    def _do(self, step: BuildStep) -> int:
        if self._may_serve(step) and self._serves(step):
            status = 0
            self._keep_calls({step.call} if step.call else ())
        else:
            status = self._repeat(step)
        for copy in self.recipe.copies.get(step.output, ()) if status == 0 else ():
            shutil.copy(step.output, copy)
        if not self._origin_of(step.output).exists():  # it was moved away
            step.output.unlink(missing_ok=True)
        return status

    def _keep_calls(self, records: Collection[str]) -> None:
        """Take over records of the plain build's compiles, which were not done again."""
        for record in records:
            content = (self.plain / "calls" / record).read_text(encoding="utf-8")
            (self.folder / "calls" / record).write_text(content.replace(*_names(self.plain, self.tree)), encoding="utf-8")

    def _may_serve(self, step: BuildStep) -> bool:
        """Return whether the plain build's object is what compiling would give: both sides have it, and nothing is added to it."""
        if not (step.is_compile and step.text and self.order.other):
            return False
        if not (Path(self.order.other) / "objects" / step.text).exists():
            return False
        return not self._is_changed(step)

    def _is_changed(self, step: BuildStep) -> bool:
        """Return whether something is added to a unit."""
        return any(file in self.order.changed or file.endswith(self.order.line_files) for file in step.files)

    def _stands_alone(self, step: BuildStep) -> bool:
        """Return whether a unit is optimised by itself that the linker optimises with others in the plain build."""
        if not step.is_compile or self.order.optimised is None or not linktime.is_asked(step.arguments):
            return False
        return bool(step.files) and set(self.order.optimised).isdisjoint(step.files)

    def _serves(self, step: BuildStep) -> bool:
        """Return whether the plain build's object could be put in place."""
        tree = (self.plain.parent / self.tree.name).resolve()
        try:
            content = moved(
                str(self._origin_of(step.output)), step.size, step.digest, tree=str(tree), to=str(self.tree), words=list(step.arguments)
            )
        except OSError:
            return False
        if content is None:
            return False
        step.output.write_bytes(content)
        return not self.order.is_aligned or is_aligned(str(step.output), os.environ["PATH"])

    def _repeat(self, step: BuildStep) -> int:
        environment = {
            **os.environ,
            "PWD": str(step.directory),
            **{name: value for name, value in step.changes.items() if value is not None},
        }
        for name in (name for name, value in step.changes.items() if value is None):
            environment.pop(name, None)
        stands_alone, compiler = self._stands_alone(step), [str(self.folder / "bin" / step.name)]
        words = linktime.without(step.arguments) if stands_alone else list(step.arguments)
        if stands_alone and self.order.other and not self._is_changed(step):
            compiler = untouched(step.name, self.folder, self.tree)
        if sum(map(len, words)) > _LONGEST:
            response = self.room / step.record
            response.write_text("\n".join(map(quoted, words)), encoding="utf-8", errors="surrogateescape")
            words = [f"@{response}"]
        if not step.existed:
            step.output.unlink(missing_ok=True)
        return subprocess.run([*compiler, *words], cwd=step.directory, env=environment, check=False).returncode

    def _origin_of(self, path: Path) -> Path:
        return Path(self.order.origin) / path.relative_to(self.tree)


def _names(plain: Path, tree: Path) -> tuple[str, str]:
    """Return the parts of paths that are the plain build's and this one's alone: keys of the cache, which nothing else holds."""
    return plain.parent.name, tree.parent.name


def _copy(path: Path, to: Path, names: tuple[str, str]) -> None:
    """Copy a file as it would have been made in another tree."""
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        to.symlink_to(str(path.readlink()).replace(*names))
        return
    if not stat.S_ISREG(status.st_mode):
        raise UnrepeatableError(f"{path.name} is no file that can be copied")
    to.write_bytes(path.read_bytes().replace(names[0].encode(), names[1].encode()))
    to.chmod(stat.S_IMODE(status.st_mode))
    os.utime(to, ns=(status.st_atime_ns, status.st_mtime_ns))


def _is_as_old(path: Path, other: Path) -> bool:
    try:
        return path.lstat().st_mtime_ns == other.lstat().st_mtime_ns or path.is_symlink()
    except FileNotFoundError:
        return False


def _settle(tree: Path, origin: Path) -> None:
    """Give files and folders of a tree the modes and times that those of another one have."""
    for place, _, names in os.walk(tree, topdown=False):
        for path in (*(Path(place, name) for name in names), Path(place)):
            other = origin / path.relative_to(tree)
            if other.exists() and not path.is_symlink():
                status = other.stat()
                path.chmod(stat.S_IMODE(status.st_mode))
                os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def _most_at_once(steps: Sequence[BuildStep]) -> int:
    """Return how many steps were done at the same time in the plain build: for so many there is memory."""
    moments = sorted([*((step.started_ns, 1) for step in steps), *((step.ended_ns, -1) for step in steps)])
    running, most = 0, 1
    for _, change in moments:
        running += change
        most = max(most, running)
    return most


def _status(futures: Collection[Future[int]]) -> int:
    """Return the status of steps when they have ended: that of one that failed, else 0."""
    wait_for(futures)
    return next((status for future in futures if (status := future.result())), 0)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
