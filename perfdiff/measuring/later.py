"""Workloads whose runs find what earlier ones left in their tree: caches, locks, histories.

Each run begins with the tree as its build left it, so that all are first runs. Whose later runs take another time is measured twice: by
first runs, and by runs behind one that is not measured.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from perfdiff import units
from perfdiff.analysis.policy import POLICY
from perfdiff.collect.schedule import Slot
from perfdiff.config import WorkloadConfig
from perfdiff.errors import WorkloadError
from perfdiff.measuring.bench import Bench, Site
from perfdiff.records.schema import Note, Phase, Side

LONG_S = 2.0  # runs that last so long are made once each, others twice
_LEAST_NS = 1e6  # by which times must differ as well: less is a start of a process that was disturbed
_SUFFIX = " again"


def with_later_runs(bench: Bench, site: Site, written: Sequence[str]) -> tuple[Bench, Site]:
    """Return the bench with a workload more for each whose later runs take another time, and a note on these.

    `written` are the names of the workloads that the user wrote: benchmarks of suites call functions within one process. One run of a side
    at a workload's first point shows whether it writes in its tree at all.
    """
    config = bench.request.config
    if len(bench.sides) < 2 or config.services or bench.request.followed:
        return bench, site
    asked = [workload for workload in config.workloads if workload.name in written and _may_remember(workload)]
    later = [again for workload in asked if (again := _behind_one(workload)) and _remembers(bench, site, workload, again)]
    if not later:
        return bench, site
    names = units.listed([f"`{workload.name}`" for workload in later], len(later))
    text = (
        f"later runs find what earlier ones left in the tree, and take another time: {names} are runs behind one that is not measured, "
        "where all others are first runs"
    )
    request = replace(bench.request, config=replace(config, workloads=(*config.workloads, *later)))
    return replace(bench, request=request), replace(site, notes=(*site.notes, Note("later-runs-differ", text)))


def _may_remember(workload: WorkloadConfig) -> bool:
    """Return whether nothing else says what a run is to find."""
    return not (workload.setup or workload.prepare or workload.requests)


def _behind_one(workload: WorkloadConfig) -> WorkloadConfig:
    """Return the workload whose runs come behind one of this, whatever that exits with."""
    return replace(workload, name=f"{workload.name}{_SUFFIX}", prepare=f"( {workload.command} ) || :")


def _remembers(bench: Bench, site: Site, workload: WorkloadConfig, again: WorkloadConfig) -> bool:
    """Return whether runs of a workload write in their tree, and take another time behind one: by more than layout makes, on some side."""
    both = replace(bench, request=replace(bench.request, config=replace(bench.request.config, workloads=(workload, again))))
    for side in bench.sides:
        try:
            first_ns = _took_ns(both, site, side, 0)
            if workload.name not in bench.upkeep.written:
                continue
            behind_ns = _took_ns(both, site, side, len(both.points) // 2)
        except WorkloadError:  # it is told where it fails again
            return False
        is_more_than_noise = abs(behind_ns - first_ns) > _LEAST_NS
        if is_more_than_noise and abs(math.log(behind_ns / first_ns)) > math.log1p(POLICY.layout_shift):
            return True
    return False


def _took_ns(bench: Bench, site: Site, side: Side, place: int) -> float:
    """Return the shorter time of two runs of a point, or of one that lasts."""
    collector = bench.collector(site.targets)
    took_ns: list[float] = []
    while len(took_ns) < (2 if not took_ns or took_ns[0] < 1e9 * LONG_S else 1):
        ((run, _),) = collector.collect([Slot(Phase.PLAIN, bench.points[place], side, len(took_ns))], bench.progress.advance)
        took_ns.append(run.took_ns)
    return min(took_ns)
