"""What differs between base and head, and is not compared: good news must not be told of it."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from perfdiff.analysis.policy import POLICY
from perfdiff.build.decided import built_otherwise, decided
from perfdiff.build.delivery import otherwise_delivered
from perfdiff.build.starting import started_otherwise
from perfdiff.collect.runs.schedule import Slot
from perfdiff.errors import DiskFilledError, WorkloadError
from perfdiff.languages import kept_files
from perfdiff.measuring.bench import Bench
from perfdiff.measuring.circumstances import by_hand, followed
from perfdiff.measuring.later import took_ns
from perfdiff.measuring.outside import MetFiles
from perfdiff.measuring.site import Site
from perfdiff.measuring.unaltered import is_compiled, laid_out
from perfdiff.records.schema import Phase, Point, Run, Side
from perfdiff.records.uncompared import ComparisonGap, UncomparedReason

_OF_GIT = ".git/"
_PAIRS = 5  # of runs with a single call, of which head's must each take longer: by chance one of 32 do
_MOST = 3  # workloads whose single calls are looked at


def uncompared(bench: Bench, site: Site, runs: Sequence[Run], met: MetFiles, waiting: Sequence[Point]) -> tuple[ComparisonGap, ...]:
    """Return the differences that are not compared; if there are none, runs in other circumstances are made to find some.

    `runs` are those so far, `met` is what they met, and at the points `waiting` head waits longer for services outside
    the revisions.
    """
    return tuple(_differences(bench, site, met, waiting)) or tuple(_in_other_circumstances(bench, site, runs))


def _differences(bench: Bench, site: Site, met: MetFiles, waiting: Sequence[Point]) -> Iterator[ComparisonGap]:
    if dirty := bench.pins.dirty:
        yield ComparisonGap(UncomparedReason.SUBMODULE, dirty)
    base, head = bench.pins.base, bench.pins.head
    if base.tree == head.tree and base.commit != head.commit and any(name.startswith(_OF_GIT) for name in met.in_trees):
        yield ComparisonGap(UncomparedReason.COMMIT, (base.commit, head.commit))
    if names := bench.packs.absent(site.plain[Side.BASE], site.plain[Side.HEAD], met.in_trees):
        yield ComparisonGap(UncomparedReason.ABSENT, names)
    everywhere = None if met.elsewhere is None else met.elsewhere | met.in_trees
    yield from bench.packs.unfollowed(site.plain[Side.BASE], site.plain[Side.HEAD], everywhere)
    if names := _in_the_checkout_alone(bench, site, met.in_trees):
        yield ComparisonGap(UncomparedReason.CHECKOUT, names)
    guessed_from = bench.request.config.build_guessed_from
    trees = [site.plain[side].tree for side in Side]
    if guessed_from and (files := decided(guessed_from, trees) or built_otherwise(trees, is_same_code=site.same_code)):
        yield ComparisonGap(UncomparedReason.BUILD, files)
    unnamed = _of_no_command(bench)
    if files := otherwise_delivered(trees, unnamed & met.in_trees):
        yield ComparisonGap(UncomparedReason.HOLDINGS, files)
    if files := started_otherwise(trees, unnamed - met.in_trees):
        yield ComparisonGap(UncomparedReason.STARTED, files)
    if site.failing:
        yield ComparisonGap(UncomparedReason.FAILING, site.failing)
    if met.is_ranked_otherwise:
        yield ComparisonGap(UncomparedReason.RANK, ())
    if waiting and (files := tuple(sorted(laid_out(bench, site, waiting[0])))):
        yield ComparisonGap(UncomparedReason.SETUP, files)
    if slower := tuple(_slower_once(bench, site)):
        yield ComparisonGap(UncomparedReason.FIRST, slower)


def _of_no_command(bench: Bench) -> frozenset[str]:
    """Return head's files but for those that commands of workloads name, as these are run as they are."""
    head, commands = bench.pins.head, [command for workload in bench.request.config.workloads for command in workload.commands]
    names = head.repository.ask("ls-tree", "-r", "-z", "--name-only", head.tree).output.split("\0")
    return frozenset(name for name in names if not any(name in command for command in commands))


def killed(incomplete: Sequence[Run], points: Sequence[Point]) -> tuple[ComparisonGap, ...]:
    """Return at which points processes of head were killed in the runs that are `incomplete`, nothing where any of base's were."""
    if {run.side for run in incomplete} != {Side.HEAD}:
        return ()
    at = {run.point for run in incomplete}
    return (ComparisonGap(UncomparedReason.KILLED, tuple(point.label for point in points if point.id in at)),)


def _in_other_circumstances(bench: Bench, site: Site, runs: Sequence[Run]) -> Iterator[ComparisonGap]:
    for tried, slower, failing in (
        (followed, UncomparedReason.SUCCESSION, UncomparedReason.REPEATED),
        (by_hand, UncomparedReason.BY_HAND, UncomparedReason.FAILING_BY_HAND),
    ):
        seen = tried(bench, site, runs)
        if seen.slower:
            yield ComparisonGap(slower, seen.slower, seen.ratio)
        if seen.failing:
            yield ComparisonGap(failing, seen.failing)


def _in_the_checkout_alone(bench: Bench, site: Site, met: Collection[str]) -> tuple[str, ...]:
    """Return what runs asked for and neither tree has, and that lies in the user's checkout without git knowing it.

    Code that was compiled there is a build's, as what runs write themselves is theirs.
    """
    repository, trees = bench.pins.head.repository, [site.plain[side].tree for side in Side]
    if repository.top is None:
        return ()
    folder = site.targets[Phase.PLAIN, Side.HEAD].directory
    written = {os.path.relpath(folder / path, trees[1]) for paths in bench.upkeep.written.values() for path in paths}
    names = []
    for name in sorted(met):
        place = repository.top / name
        is_own = name.startswith(_OF_GIT) or kept_files.is_of_interpreters(name) or kept_files.is_byte_code(name)
        if is_own or not place.exists() or any(os.path.lexists(tree / name) for tree in trees) or is_compiled(place):
            continue
        if written.isdisjoint((name, *map(str, Path(name).parents))) and not repository.tell("ls-files", "--", f":(top,literal){name}"):
            names.append(name)
    return tuple(names)


def _slower_once(bench: Bench, site: Site) -> Iterator[str]:
    """Yield the workloads whose runs repeat a call, and whose runs with a single one take longer in head, at the last point."""
    repeating = [workload for workload in bench.request.config.workloads if workload.once and not bench.request.config.services]
    for workload in repeating[:_MOST]:
        single = bench.for_workloads((replace(workload, command=workload.once or "", once=None),))
        if single.points and all(_is_slower(single, site, single.points[-1], pair) for pair in range(_PAIRS)):
            yield workload.name


def _is_slower(bench: Bench, site: Site, point: Point, pair: int) -> bool:
    """Return whether head took longer than base in a pair of runs, by more than layout makes; not where one fails, which tells no time."""
    try:
        base_ns, head_ns = (took_ns(bench, site, Slot(Phase.PLAIN, point, side, pair)) for side in Side)
    except DiskFilledError:
        raise
    except WorkloadError:
        return False
    return head_ns > base_ns and not POLICY.may_be_layout(math.log(head_ns / base_ns))
