"""Workloads whose runs find what earlier ones left in their tree: caches, locks, histories.

Each run begins with the tree as its build left it, so that all are first runs. Whose later runs take another time is measured twice: by
first runs, and by runs behind some that are not measured.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from perfdiff import units
from perfdiff.analysis.policy import POLICY
from perfdiff.collect.runs.schedule import Slot
from perfdiff.config import WorkloadConfig
from perfdiff.errors import DiskFilledError, WorkloadError
from perfdiff.measuring.bench import Bench
from perfdiff.measuring.site import Site
from perfdiff.records.schema import Note, Phase, Point, Side
from perfdiff.records.thresholds import AGAIN

LONG_S = 10.0  # runs that last so long are ended, and their workload is not tried
LONG_SHARE = 0.05  # of a limited time; the same, as there are up to a dozen of these runs
_ENDS = 2  # points: the first and the last, of which one writes where inputs of some size are kept
_LOOKED_NS = 2e9  # that runs may take which show whether points between them write: little beside the pairs that each has in any case
_EARLIER = 2  # runs that a later one comes behind: some things are kept when they are asked for again
_TRIALS = 2  # that must both show another time: the machine may make one of them
_LEAST_NS = 1e6  # by which times must differ as well: less is a start of a process that was disturbed


def with_later_runs(bench: Bench, site: Site, written: Sequence[str]) -> tuple[Bench, Site]:
    """Return the bench with a workload more for each whose later runs take another time, and a note on these.

    `written` are the names of the workloads that the user wrote: benchmarks of suites call functions within one process. A run of a side at
    a workload's points, one after the other, shows whether it writes in its tree at all; then that point, the first and the last are tried.
    """
    config = bench.request.config
    if len(bench.sides) < 2 or config.services or bench.request.followed:
        return bench, site
    asked = [workload for workload in config.workloads if workload.name in written and not workload.requests]
    if asked:
        bench.progress.stage("trying later runs", None)
    later = [again for workload in asked if (again := _behind_others(workload)) and _remembers(bench, site, workload, again)]
    if not later:
        return bench, site
    names = units.listed([f"`{workload.name}`" for workload in later], len(later))
    text = (
        f"later runs find what earlier ones left in the tree, and take another time: {names} are runs behind {_EARLIER} that are not "
        "measured, where all others are first runs"
    )
    return bench.for_workloads((*config.workloads, *later)), replace(site, notes=(*site.notes, Note("later-runs-differ", text)))


def _behind_others(workload: WorkloadConfig) -> WorkloadConfig:
    """Return the workload whose runs come behind others of this, each prepared as ever, whatever those exit with."""
    own = [f"( {workload.prepare}\n)"] if workload.prepare else []
    earlier = " && ".join([*own, f"{{ ( {workload.command}\n) || :; }}"])
    return replace(workload, name=f"{workload.name}{AGAIN}", prepare=" && ".join([*[earlier] * _EARLIER, *own]))


def _remembers(bench: Bench, site: Site, workload: WorkloadConfig, again: WorkloadConfig) -> bool:
    """Return whether runs write in their tree, and take another time behind others at the point that showed it, the first or the last."""
    long_s = min(LONG_S, LONG_SHARE * max(bench.request.deadline.left_s, 0.0))
    brief = tuple(replace(variant, timeout_s=min(variant.timeout_s, long_s)) for variant in (workload, again))
    both = bench.for_workloads(brief)
    points = [tuple(point for point in both.points if point.workload == name) for name in (workload.name, again.name)]
    pairs = list(zip(*points, strict=True))
    try:
        writing = _first_writing(both, site, [pairs[0], *reversed(pairs[1:])])
        asked = [pair for pair in pairs if pair in (pairs[0], writing, pairs[-1])]
        return writing is not None and any(_differ(both, site, side, pair) for pair in asked for side in bench.sides)
    except DiskFilledError:
        raise
    except WorkloadError:  # it lasts too long, or is told where it fails again
        return False


def _first_writing(bench: Bench, site: Site, pairs: Sequence[tuple[Point, Point]]) -> tuple[Point, Point] | None:
    """Return the first of some points whose run writes in its tree; beyond the first two, points are run for a while only."""
    spent_ns = 0.0
    for count, pair in enumerate(pairs):
        if count >= _ENDS and spent_ns > _LOOKED_NS:
            break
        spent_ns += sum(took_ns(bench, site, Slot(Phase.PLAIN, pair[0], side, 0)) for side in bench.sides)
        if pair[0].workload in bench.upkeep.written:
            return pair
    return None


def _differ(bench: Bench, site: Site, side: Side, pair: tuple[Point, Point]) -> bool:
    """Return whether a first run and one behind others take another time, by more than layout makes, in each trial."""
    ways = set()
    for trial in range(_TRIALS):
        first_ns, later_ns = (took_ns(bench, site, Slot(Phase.PLAIN, point, side, trial)) for point in pair)
        is_other = abs(later_ns - first_ns) > _LEAST_NS and not POLICY.may_be_layout(abs(math.log(later_ns / first_ns)))
        if not is_other:
            return False
        ways.add(later_ns > first_ns)
    return len(ways) == 1


def took_ns(bench: Bench, site: Site, slot: Slot) -> float:
    """Return how long a run took."""
    ((run, _),) = bench.collector(site.targets).collect([slot], bench.progress.advance)
    return run.took_ns
