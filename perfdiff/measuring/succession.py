"""Runs that follow each other in one tree, as a user's do: whether head takes longer for what earlier runs left there.

All other runs find the tree as its build left it. Here each side's runs of all workloads follow each other in the order of the
configuration, round by round, and the tree is put back at the end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter

import numpy as np

from perfdiff.analysis.verdicts.succession import points_slower_in_turn
from perfdiff.collect.runs.schedule import Slot
from perfdiff.errors import DiskFilledError, WorkloadError
from perfdiff.measuring.bench import Bench
from perfdiff.measuring.site import Site
from perfdiff.records.schema import Phase, Point, Run, Side
from perfdiff.records.thresholds import AGAIN

BUDGET_S = 4.0  # that runs of both sides may take
_MOST, _LEAST = 24, 4  # rounds
_SERIES = 2
_WANTED = 8  # rounds for which the longest point of a workload is taken that allows so many
LONGEST_S = 10.0  # whose runs take longer are not made to follow each other


@dataclass(frozen=True, slots=True)
class Succession:
    """Workloads whose runs that follow others take longer in head, how many times as long, and those whose runs fail there alone."""

    slower: tuple[str, ...] = ()
    ratio: float = 1.0
    failing: tuple[str, ...] = ()


def followed(bench: Bench, site: Site, runs: Sequence[Run]) -> Succession:
    """Return what runs that follow each other show, where any of these `runs` wrote in its tree.

    What a first series shows counts if it holds for two together.
    """
    points = _chosen(bench, runs)
    trees = {target.tree for (phase, _), target in site.targets.items() if phase is Phase.PLAIN}
    if not points or len(trees) < len(Side):
        return Succession()
    bench.progress.stage("making runs that follow each other", None)
    compiled = [point.workload for point in points] if any(built.commands or built.links for built in site.plain.values()) else []
    config, behind, names = bench.request.config.compare, list[list[Run]](), frozenset[str]()
    slower: dict[int, float] = {}
    for series in range(_SERIES):
        later, failing = _series(bench, site, points, series)
        behind.append(later)
        slower = points_slower_in_turn(points, behind, config, compiled)
        names = failing if not series else names & failing
        if not (slower or names):
            return Succession()
    taking_longer = tuple(point.workload for point in points if point.id in slower)
    return Succession(taking_longer, max(slower.values(), default=1.0), tuple(sorted(names)))


def _chosen(bench: Bench, runs: Sequence[Run]) -> tuple[Point, ...]:
    """Return a point of each workload that is run here, in the order of the configuration: first those that write, as time allows."""
    config, written = bench.request.config, bench.upkeep.written
    asked = [workload.name for workload in config.workloads if not workload.requests and not workload.name.endswith(AGAIN)]
    if config.services or bench.request.followed or written.keys().isdisjoint(asked):
        return ()
    chosen: dict[str, Point] = {}
    left_s = BUDGET_S / (_LEAST * len(Side))
    for name in sorted(asked, key=lambda name: name not in written):
        points = [(took_s, point) for point in bench.points if point.workload == name and (took_s := _took_s(point, runs)) <= LONGEST_S]
        if not points:
            continue
        brief = [pair for pair in points if pair[0] <= BUDGET_S / (_WANTED * len(Side))]
        took_s, point = max(brief, key=itemgetter(0)) if brief else min(points, key=itemgetter(0))
        if chosen and took_s > left_s:
            break
        chosen[name] = point
        left_s -= took_s
    needed_s = _LEAST * len(Side) * (BUDGET_S / (_LEAST * len(Side)) - left_s)
    return tuple(chosen[name] for name in asked if name in chosen) if bench.request.deadline.allows(needed_s) else ()


def _took_s(point: Point, runs: Sequence[Run]) -> float:
    """Return how long runs of a point take, infinity where there are none."""
    took_ns = [run.took_ns for run in runs if run.phase is Phase.PLAIN and run.point == point.id]
    return float(np.median(took_ns)) / 1e9 if took_ns else math.inf


def _series(bench: Bench, site: Site, points: Sequence[Point], series: int) -> tuple[list[Run], frozenset[str]]:
    """Return the runs of both sides that come behind others in their tree, and the workload that fails in head alone, which ends them."""
    collector = bench.collector(site.targets)
    behind: list[Run] = []
    spent_ns = 0.0
    with bench.upkeep.left_as_runs_leave():
        for block in range(_MOST):
            if block >= _LEAST and spent_ns > 1e9 * BUDGET_S:
                break
            for point in points:
                failing = set[Side]()
                for side in [*Side][:: -1 if block % 2 else 1]:
                    try:
                        ((run, _),) = collector.collect([Slot(Phase.PLAIN, point, side, _MOST * series + block)], bench.progress.advance)
                    except DiskFilledError:
                        raise
                    except WorkloadError:
                        failing.add(side)
                    else:
                        spent_ns += run.wall_ns
                        behind += [run] if block or point is not points[0] else []
                if failing:
                    return behind, frozenset([point.workload] if failing == {Side.HEAD} else [])
    return behind, frozenset()
