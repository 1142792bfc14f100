"""What differs between base and head, and is not compared: good news must not be told of it."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from perfdiff.analysis.policy import POLICY
from perfdiff.build.decided import decided
from perfdiff.collect.runs.schedule import Slot
from perfdiff.errors import DiskFilledError, WorkloadError
from perfdiff.measuring.bench import Bench
from perfdiff.measuring.later import took_ns
from perfdiff.measuring.site import Site
from perfdiff.measuring.unaltered import laid_out
from perfdiff.records.schema import Phase, Point, Side
from perfdiff.records.uncompared import Difference, Uncompared

_OF_GIT = ".git/"
_PAIRS = 5  # of runs with a single call, of which head's must each take longer: by chance one of 32 do
_MOST = 3  # workloads whose single calls are looked at


def uncompared(bench: Bench, site: Site, met: Collection[str], waiting: Sequence[Point]) -> Iterator[Difference]:
    """Yield what differs and is not compared, where there is any.

    `met` are files of the trees that runs met, and at the points `waiting` head waits longer for services outside the revisions.
    """
    if dirty := bench.pins.dirty:
        yield Difference(Uncompared.SUBMODULE, dirty)
    base, head = bench.pins.base, bench.pins.head
    if base.tree == head.tree and base.commit != head.commit and any(name.startswith(_OF_GIT) for name in met):
        yield Difference(Uncompared.COMMIT, (base.commit, head.commit))
    if names := bench.packs.absent(site.plain[Side.BASE], site.plain[Side.HEAD], met):
        yield Difference(Uncompared.ABSENT, names)
    guessed_from = bench.request.config.build_guessed_from
    if guessed_from and (files := decided(guessed_from, [site.plain[side].tree for side in Side])):
        yield Difference(Uncompared.BUILD, files)
    if site.failing:
        yield Difference(Uncompared.FAILING, site.failing)
    if waiting and (files := tuple(sorted(laid_out(bench, site, waiting[0])))):
        yield Difference(Uncompared.SETUP, files)
    if slower := tuple(_slower_once(bench, site)):
        yield Difference(Uncompared.FIRST, slower)


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
