"""Runs in a user's circumstances, where all others are in perfdiff's: behind each other in one tree, and as by hand.

All other runs find the tree as its build left it, print into pipes and are given what makes them comparable. Here each side's runs of all
workloads follow each other in the order of the configuration, round by round, and the tree is put back at the end; or they print on a
terminal, on all CPUs, without variables of perfdiff's own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from operator import itemgetter

import numpy as np

from perfdiff.analysis.verdicts.succession import points_slower_in_turn
from perfdiff.collect.execution.terminals import Keyboard
from perfdiff.collect.runs.schedule import Slot
from perfdiff.collect.runs.targets import Targets
from perfdiff.errors import DiskFilledError, WorkloadError
from perfdiff.measuring.bench import Bench
from perfdiff.measuring.site import Site
from perfdiff.records.schema import Phase, Point, Run, Side
from perfdiff.records.thresholds import AGAIN

BUDGET_S = 4.0  # that runs of both sides may take behind each other …
_BY_HAND_S = 2.0  # … and by hand
_MOST, _LEAST = 24, 4  # rounds
_BY_HAND = 8  # of these: what differs there does so in each run, and few are enough
_SERIES = 2
_WANTED = 8  # rounds for which the longest point of a workload is taken that allows so many
LONGEST_S = 10.0  # whose runs take longer are not made to follow each other
_HANGS, _HANGS_S = 5.0, 1.0  # runs by hand that take so many times as long as others, and so many seconds more, wait for a key


@dataclass(frozen=True, slots=True)
class Circumstance:
    """Workloads whose runs take longer in head in some circumstance, how many times as long, and those whose runs fail there alone.

    `is_stuck`: runs of both sides fail though no earlier ones were left in their trees, which tells nothing.
    """

    slower: tuple[str, ...] = ()
    ratio: float = 1.0
    failing: tuple[str, ...] = ()
    is_stuck: bool = False


def followed(bench: Bench, site: Site, runs: Sequence[Run]) -> Circumstance:
    """Make runs that follow each other in one tree, and return what they show; nothing if none of `runs` wrote in its tree."""
    if bench.upkeep.written.keys().isdisjoint(_asked(bench)):
        return Circumstance()
    points = _chosen(bench, runs, BUDGET_S, LONGEST_S)
    return _seen(_Setting(bench, site, points, site.targets, BUDGET_S, _MOST, stays=True), "making runs that follow each other")


def by_hand(bench: Bench, site: Site, runs: Sequence[Run]) -> Circumstance:
    """Make runs as a user does by hand, and return what they show; `runs` tell which workloads fit into the time."""
    points = _chosen(bench, runs, _BY_HAND_S, _BY_HAND_S / (_LEAST * len(Side)))
    limits_s = {point.workload: _HANGS * _took_s(point, runs) + _HANGS_S for point in points}
    limited = tuple(
        replace(workload, plain_timeout_s=min(workload.plain_timeout_s, limits_s.get(workload.name, math.inf)))
        for workload in bench.request.config.workloads
    )
    seen = Circumstance()
    for keyboard in Keyboard:
        targets = {place: replace(target, keyboard=keyboard) for place, target in site.targets.items()}
        setting = _Setting(bench.for_workloads(limited), site, points, targets, _BY_HAND_S, _BY_HAND, stays=False)
        seen = _seen(setting, "making runs as by hand")
        if not seen.is_stuck:
            break
    return seen


@dataclass(frozen=True, slots=True)
class _Setting:
    """Points whose runs are made in a circumstance: in these targets, so long, so often, and behind others in their tree if it `stays`."""

    bench: Bench
    site: Site
    points: Sequence[Point]
    targets: Targets
    budget_s: float
    rounds: int
    stays: bool


def _seen(setting: _Setting, stage: str) -> Circumstance:
    """Return what holds in a first series of runs and for two together; `stage` says what is done."""
    bench, points = setting.bench, setting.points
    trees = {target.tree for (phase, _), target in setting.targets.items() if phase is Phase.PLAIN}
    if not points or len(trees) < len(Side):
        return Circumstance()
    bench.progress.stage(stage, None)
    is_compiled = any(built.commands or built.links for built in setting.site.plain.values())
    compiled = [point.workload for point in points] if is_compiled else []
    config, judged, names = bench.request.config.compare, list[list[Run]](), frozenset[str]()
    slower: dict[int, float] = {}
    for series in range(_SERIES):
        later, failing, sides = _series(setting, series)
        if len(sides) == len(Side) and not setting.stays:
            return Circumstance(is_stuck=True)
        judged.append(later)
        slower = points_slower_in_turn(points, judged, config, compiled)
        names = failing if not series else names & failing
        if not (slower or names):
            return Circumstance()
    taking_longer = tuple(point.workload for point in points if point.id in slower)
    return Circumstance(taking_longer, max(slower.values(), default=1.0), tuple(sorted(names)))


def _asked(bench: Bench) -> list[str]:
    """Return the workloads that are a user's command, where no service is beside them."""
    config = bench.request.config
    if config.services or bench.request.followed:
        return []
    return [workload.name for workload in config.workloads if not workload.requests and not workload.name.endswith(AGAIN)]


def _chosen(bench: Bench, runs: Sequence[Run], budget_s: float, longest_s: float) -> tuple[Point, ...]:
    """Return a point of each workload that is run here, in the order of the configuration: first those that write, as time allows."""
    asked, chosen = _asked(bench), dict[str, Point]()
    left_s = budget_s / (_LEAST * len(Side))
    for name in sorted(asked, key=lambda name: name not in bench.upkeep.written):
        points = [(took_s, point) for point in bench.points if point.workload == name and (took_s := _took_s(point, runs)) <= longest_s]
        if not points:
            continue
        brief = [pair for pair in points if pair[0] <= budget_s / (_WANTED * len(Side))]
        took_s, point = max(brief, key=itemgetter(0)) if brief else min(points, key=itemgetter(0))
        if chosen and took_s > left_s:
            break
        chosen[name] = point
        left_s -= took_s
    needed_s = budget_s - _LEAST * len(Side) * left_s
    return tuple(chosen[name] for name in asked if name in chosen) if bench.request.deadline.allows(needed_s) else ()


def _took_s(point: Point, runs: Sequence[Run]) -> float:
    """Return how long runs of a point take, infinity where there are none."""
    took_ns = [run.took_ns for run in runs if run.phase is Phase.PLAIN and run.point == point.id]
    return float(np.median(took_ns)) / 1e9 if took_ns else math.inf


def _series(setting: _Setting, series: int) -> tuple[list[Run], frozenset[str], set[Side]]:
    """Return the runs of both sides, those behind others where trees stay; the workload that fails in head alone; the sides that fail.

    The first failure ends them.
    """
    bench, points = setting.bench, setting.points
    collector = bench.collector(setting.targets)
    judged: list[Run] = []
    spent_ns = 0.0
    with bench.upkeep.left_as_runs_leave() if setting.stays else nullcontext():
        for block in range(setting.rounds):
            if block >= _LEAST and spent_ns > 1e9 * setting.budget_s:
                break
            for point in points:
                failing = set[Side]()
                for side in [*Side][:: -1 if block % 2 else 1]:
                    try:
                        ((run, _),) = collector.collect(
                            [Slot(Phase.PLAIN, point, side, setting.rounds * series + block)], bench.progress.advance
                        )
                    except DiskFilledError:
                        raise
                    except WorkloadError:
                        failing.add(side)
                    else:
                        spent_ns += run.wall_ns
                        judged += [run] if block or point is not points[0] or not setting.stays else []
                if failing:
                    return judged, frozenset([point.workload] if failing == {Side.HEAD} else []), failing
    return judged, frozenset(), set()
