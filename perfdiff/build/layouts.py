"""A plain build in several layouts: the same objects, linked in other orders and with room between them.

Where code and data happen to lie makes some percent of a program's time, once and for all for a build (Mytkowicz et al. 2009; Curtsinger
and Berger 2013). A comparison whose runs are spread over several layouts covers the next build, too (Kalibera and Jones 2013: the build is
a level of its own, above the run).
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from perfdiff import units
from perfdiff.build import treecopies
from perfdiff.build.builder import Built
from perfdiff.build.cache import BuildCache, remove_folder, size_bytes
from perfdiff.build.linker import Linker
from perfdiff.build.links import Link, is_program, is_same
from perfdiff.build.patterns import compiled, pattern
from perfdiff.build.relinking import relink
from perfdiff.build.treecopies import Root, relocated
from perfdiff.build.variants import build_environment
from perfdiff.errors import RecordingError, StoreError
from perfdiff.records import codec
from perfdiff.records.schema import Note

FORMAT = "perfdiff.layouts/1"  # of what is kept, and of what is done to a tree; another one makes kept layouts anew
MOST_BYTES = 2e9  # of all copies of a tree; as much as ten builds of a project of 200 MB, which take some seconds to copy
DISK_SHARE = 0.25  # of the free space that copies may take
LEAST_S = 30.0  # that making layouts may take, usually a second; where the build itself took longer, as long as that
_OUTCOME = "layouts.json"
_SHOWN = 3  # names that a note lists before it only counts
_OTHERS = frozenset((".git", "CMakeFiles", "meson-private", "meson-info"))  # folders with programs that build systems made for themselves


@dataclass(frozen=True, slots=True)
class Variation:
    """What is asked for: `count` layouts, the plain build among them, drawn by `seed`; `environment` is the user's."""

    count: int
    seed: str
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Layouts:
    """The folders in which workloads run, one a layout; the first is the plain build's own. Notes say what could not be varied."""

    folders: tuple[Path, ...]
    notes: tuple[Note, ...]
    duration_s: float


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What is kept of layouts: the names of their trees, beside the plain one."""

    trees: tuple[str, ...]
    notes: tuple[Note, ...]
    duration_s: float


def layouts(built: Built, cache: BuildCache, asked: Variation) -> Layouts:
    """Return a plain build in several layouts, kept in the cache beside it; fewer, with a note that says why, where no more can be had.

    The draw depends on the seed alone: what a layout makes of code that base and head share is much the same on both sides, and cancels
    where runs are compared in pairs of one layout (common random numbers). Raise StoreError.
    """
    text = "\0".join((FORMAT, str(built.tree), str(asked.count), asked.seed))
    key = hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[: len(built.tree.parent.name)]
    entry = cache.obtain(key, lambda folder: _make(built, asked, folder)).resolve()
    outcome = _read(entry)
    within = built.folder.relative_to(built.tree)
    return Layouts((built.folder, *(entry / name / within for name in outcome.trees)), outcome.notes, outcome.duration_s)


def holds_layouts(entry: Path) -> bool:
    """Return whether a folder of the cache holds layouts, and no build."""
    return (entry / _OUTCOME).is_file()


def verify(entry: Path) -> None:
    """Raise StoreError where what is known of kept layouts cannot be read, or one of their trees is gone."""
    if not all((entry / name).is_dir() for name in _read(entry).trees):
        raise StoreError(f"the layouts kept in {entry} have lost a tree; `perfdiff cache verify --remove` clears it", slug="damaged-build")


def _read(entry: Path) -> _Outcome:
    try:
        return codec.decode(_Outcome, json.loads((entry / _OUTCOME).read_text(encoding="utf-8")))
    except (OSError, ValueError, RecordingError) as error:
        raise StoreError(
            f"the layouts kept in {entry} are damaged: {error}; `perfdiff cache verify --remove` clears them", slug="damaged-build"
        ) from error


def _make(built: Built, asked: Variation, folder: Path) -> None:
    """Make the layouts of a build in a new folder of the cache."""
    started, limit_s = time.monotonic(), max(LEAST_S, built.duration_s)
    linker = Linker(build_environment(asked.environment), started + limit_s, folder / "relink.log")
    refused = {link.output: why for link in built.links if (why := link.obstacle()) is not None}
    usable = [link for link in built.links if link.output not in refused]
    count = min(asked.count, 1 + int(_most_bytes(folder) // max(1, size_bytes(built.tree))))
    trees: list[str] = []
    why = ""
    if not built.links:
        why = "no link of a program or shared library was seen in its build: it calls `ld` itself, or links outside its tree"
    elif usable and count < asked.count:
        why = f"its tree holds {units.size(size_bytes(built.tree))}, and copies may take {units.size(_most_bytes(folder))}"
    if usable and count > 1:
        try:
            trees, failed = _linked(built.tree, usable, [f"{asked.seed}:{number}" for number in range(1, count)], linker)
        except OSError as error:  # a file that cannot be read, or a disk that others have filled meanwhile
            failed, why = {}, f"its tree cannot be copied: {error}"
            for left in filter(Path.is_dir, folder.iterdir()):
                remove_folder(left)
        refused |= failed
        why = why or (f"linking again takes longer than {limit_s:.0f} s" if linker.is_late else "")
    outcome = _Outcome(tuple(trees), _notes(built, 1 + len(trees), asked.count, refused, why), time.monotonic() - started)
    (folder / _OUTCOME).write_text(json.dumps(codec.encode(outcome)), encoding="utf-8")


def _most_bytes(folder: Path) -> float:
    return min(MOST_BYTES, DISK_SHARE * shutil.disk_usage(folder).free)


def _linked(tree: Path, links: Sequence[Link], seeds: Sequence[str], linker: Linker) -> tuple[list[str], dict[Path, str]]:
    """Make a layout a seed beside the linker's log, until its deadline; return their names, and what was not linked again, with reasons."""
    folder, failed = linker.log.parent, dict[Path, str]()
    stage = folder / _name(0, tree)
    if any(link.sources for link in links):
        links, failed = compiled(tree, links, stage, linker)
    source = pattern(stage if stage.exists() else tree, links, linker)
    names: list[str] = []
    for number, seed in enumerate(seeds, 1):
        if linker.is_late or not links:
            break
        made = folder / _name(number, tree)
        kept = relink(source, made, seed, linker)
        if linker.is_late:
            remove_folder(made)
            break
        failed |= {Path(relocated(str(output), Root.of(source.tree), Root.of(tree))): why for output, why in kept.items()}
        if len(kept) == len(links):
            remove_folder(made)
            break
        names.append(made.name)
    remove_folder(stage)
    return names, failed


def _name(number: int, tree: Path) -> str:
    """Return the name of a layout's tree, as long as the plain one's."""
    return f"{number:0{len(tree.name)}d}"


def _notes(built: Built, count: int, asked: int, refused: Mapping[Path, str], why: str) -> tuple[Note, ...]:
    """Say why there are fewer layouts than asked for, and which programs lie in all of them as in the plain build."""
    reasons = [*dict.fromkeys(refused.values())]
    if asked == 1:
        return ()
    if count == 1:
        reason = why or reasons[0]
        return (
            Note("one-layout", f"the build could be had in one layout only, so that what layout makes of times is not known: {reason}"),
        )
    notes = []
    if count < asked:
        notes.append(Note("fewer-layouts", f"{count} layouts of the build were made and not {asked}: {why}"))
    linked = {link.output.resolve() for link in built.links} - {path.resolve() for path in refused}
    sizes = {path.stat().st_size for path in linked}
    others = [
        path for path in _programs(built.tree) if path not in linked and path not in refused and not _is_copy(path, built.links, sizes)
    ]
    reasons += [f"{path.relative_to(built.tree)} was not seen to be linked" for path in others]
    if reasons:
        shown = "; ".join(reasons[:_SHOWN]) + (f"; and {len(reasons) - _SHOWN} more" if len(reasons) > _SHOWN else "")
        notes.append(Note("layout-kept", f"some programs of the build lie in memory as they do in its first layout: {shown}"))
    return tuple(notes)


def _is_copy(path: Path, links: Sequence[Link], sizes: Set[int]) -> bool:
    size = path.stat().st_size
    return size in sizes and any(is_same(path, link.size, link.digest) for link in links)


def _programs(tree: Path) -> Iterator[Path]:
    """Yield the programs and shared libraries of a tree, without those that build systems made to try compilers out."""
    for path in treecopies.files(tree):
        if not path.is_symlink() and _OTHERS.isdisjoint(path.relative_to(tree).parts) and is_program(path):
            yield path
