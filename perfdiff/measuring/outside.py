"""Files outside of the trees that runs read, where base and head may have used one and the same.

Each side has a tree of its own, which is put back before each run; its home, the folder for temporary files and where it installs to are
the other side's as well, and so is the user's checkout, which a workload may name by its path.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Iterable, Set
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from perfdiff.build.holdings import OUTCOME
from perfdiff.collect.runs.schedule import Slot
from perfdiff.collect.trees.differences import elsewhere, inside
from perfdiff.errors import DiskFilledError, WorkloadError
from perfdiff.languages import kept_files
from perfdiff.languages.tree_files import all_differing
from perfdiff.measuring import unaltered
from perfdiff.measuring.bench import Bench
from perfdiff.measuring.later import took_ns
from perfdiff.measuring.site import Site
from perfdiff.records.schema import Phase, Point, Run, Side

_ASIDE = ".perfdiff"  # ends the name of a file that is out of the way for two runs
_TEMPORARY = ("/tmp/", "/var/tmp/", "/dev/shm/")
_OF_GIT = ".git/"  # a tree borrows the checkout's objects
LONGEST_S = 10.0  # whose shortest runs take longer are not run again for this


@dataclass(frozen=True, slots=True)
class MetFiles:
    """What a run of each side met: names in the trees, and paths of files `elsewhere`, None where they are not known.

    `is_ranked_otherwise`: processes of head ask the kernel for a priority that none of base's asks for.
    """

    in_trees: frozenset[str] = frozenset()
    elsewhere: frozenset[str] | None = None
    is_ranked_otherwise: bool = False


def read_outside(bench: Bench, site: Site, runs: list[Run]) -> tuple[tuple[str, ...], MetFiles]:
    """Return the files outside of the trees that runs read for both sides, and all that they met.

    One run of each side of the shortest point tells. The former are files that both sides open, and that were written while the last of
    their builds ran, files that head's runs alone open, and that were written since, or that runs of one side alone write where they are
    missing, and files of the user's checkout in whose place the revisions have others than each other. None of either where a run fails,
    or what it opens is not known.
    """
    plain = [run for run in runs if run.phase is Phase.PLAIN]
    if not plain or not unaltered.may_be_watched(bench):
        return (), MetFiles()
    shortest = min(plain, key=lambda run: run.took_ns)
    if shortest.took_ns > 1e9 * LONGEST_S:
        return (), MetFiles()
    point = next(point for point in bench.points if point.id == shortest.point)
    opened: dict[Side, dict[str, float]] = {}
    foreign: set[str] = set()
    met: set[str] = set()
    everywhere: set[str] = set()
    ranks: dict[Side, frozenset[int]] = {}
    began = time.time()
    for slot, accesses in unaltered.watched(bench, site, [point]):
        if accesses is None:
            return (), MetFiles()
        met |= inside(site.plain[slot.side], accesses)
        everywhere |= elsewhere(site.plain[slot.side], accesses)
        ranks[slot.side] = accesses.ranks
        files = [path for path in elsewhere(site.plain[slot.side], accesses) if not _is_kept_for_all(path, bench)]
        foreign |= _of_the_checkout(files, bench, site, point.workload)
        times = _times(files)
        opened[slot.side] = {path: written for path, written in times.items() if written < began}
        began = time.time()
    start, end = max((_window(site, side) for side in Side), key=lambda window: window[1])
    by_builds = {path for path in opened[Side.BASE].keys() & opened[Side.HEAD] if start <= opened[Side.HEAD][path] <= end}
    since = {path for path, written in opened[Side.HEAD].items() if written > end}
    by_runs = since - opened[Side.BASE].keys()
    by_one_side = _written_by_one_side(bench, site, point, since - by_runs)
    is_ranked_otherwise = not ranks[Side.HEAD] <= ranks[Side.BASE]
    shared = tuple(sorted(by_builds | by_runs | by_one_side | foreign))
    return shared, MetFiles(frozenset(met), frozenset(everywhere), is_ranked_otherwise)


def _written_by_one_side(bench: Bench, site: Site, point: Point, paths: Set[str]) -> set[str]:
    """Return which files, written since the builds, only one side's run makes anew where they are missing, as a cache that both read.

    Only those are moved that lie where programs keep what may be lost; they are put back as they were.
    """
    rewritten: dict[Side, set[str]] = {}
    with ExitStack() as stack:
        moved = set[str]()
        for path in paths:
            with contextlib.suppress(OSError):
                if Path(path).is_relative_to(tempfile.gettempdir()) or path.startswith(_TEMPORARY):
                    Path(path).rename(f"{path}{_ASIDE}")
                    stack.callback(_put_back, path)
                    moved.add(path)
        for side in Side if moved else ():
            try:
                took_ns(bench, site, Slot(Phase.PLAIN, point, side, 0))
            except DiskFilledError:
                raise
            except WorkloadError:
                rewritten[side] = set()
                continue
            rewritten[side] = {path for path in moved if os.path.lexists(path)}
            for path in rewritten[side]:
                with contextlib.suppress(OSError):
                    Path(path).unlink()
    return rewritten[Side.BASE] ^ rewritten[Side.HEAD] if rewritten else set()


def _put_back(path: str) -> None:
    with contextlib.suppress(OSError):  # what lies among temporary files may be taken away by others
        Path(f"{path}{_ASIDE}").replace(path)


def _of_the_checkout(paths: Iterable[str], bench: Bench, site: Site, workload: str) -> frozenset[str]:
    """Return which files stand in the user's checkout where base's and head's trees have different ones: who reads them runs neither.

    Inputs are read there by intent, and so is what stands beside them.
    """
    if any(other.inputs for other in bench.request.config.workloads if other.name == workload):
        return frozenset()
    top = bench.pins.head.repository.top
    inside = {path: Path(path).relative_to(top.resolve()).as_posix() for path in paths if top and Path(path).is_relative_to(top.resolve())}
    if not inside or site.code is None:
        return frozenset()
    names = dict(all_differing(*(site.plain[side].tree for side in Side)))
    return frozenset(path for path, name in inside.items() if name in names and not name.startswith(_OF_GIT))


def _is_kept_for_all(path: str, bench: Bench) -> bool:
    """Return whether a file is perfdiff's own, or an interpreter's, which are the same for whoever reads them."""
    return Path(path).is_relative_to(bench.request.cache.resolve()) or kept_files.is_of_interpreters(path)


def _times(paths: Iterable[str]) -> dict[str, float]:
    """Return when files were written, seconds since the epoch, of those that are still there."""
    times = {}
    for path in paths:
        with contextlib.suppress(OSError):
            status = Path(path).stat()
            if status.st_size:  # an empty one, as of a lock, says nothing
                times[path] = status.st_mtime
    return times


def _window(site: Site, side: Side) -> tuple[float, float]:
    """Return from when to when a side's plain build ran, seconds since the epoch."""
    built = site.plain[side]
    end = (built.beside / OUTCOME).stat().st_mtime
    return end - built.duration_s, end
