"""The machines of an experiment as the analysis sees them: which of them are compared within, and what is one draw of a run's luck.

A few machines are told one by one. Of many the kinds are told, and the host is the unit: its runs share its neighbours, its load and its
days, so that only hosts count as independent of each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from perfdiff.analysis.claims import Claim, claim
from perfdiff.records.kinds import MachinePart, kinds
from perfdiff.records.schema import Experiment, Machine, Phase, Run, Side
from perfdiff.statistics.machines import MANY

FEWEST_PAIRED = 8  # hosts that have both sides: from so many on, those with one side add nothing that is worth their doubt


@dataclass(frozen=True, slots=True)
class Park:
    """`runs` are those that can be compared, with the number of their part, from 1 on, as their machine, and blocks of one machine each.

    `units` are what shares one pace, by run: a machine, or those of a kind that have one side alone. `parts` stand in the order of their
    numbers, first the one whose pace is everybody's.
    """

    runs: tuple[Run, ...]
    units: Mapping[int, int]
    parts: tuple[MachinePart, ...]
    notes: tuple[Claim, ...]


def park_of(experiment: Experiment) -> Park | None:
    """Return the machines of an experiment, None where all runs are of one."""
    used = machines_of(experiment)
    if len(used) < 2:
        return None
    machines = {number: _machine(experiment, number) for number in used}
    is_many = len(used) > MANY
    groups = _groups(machines) if is_many else [_Group(machines[number].name, machines[number], (number,)) for number in used]
    left_out, of_counted = _of_one_machine(experiment)
    phases = _judged_phases(experiment)
    judged, exact = (tuple(run for run in experiment.runs if (run.phase in phases) is timed) for timed in (True, False))
    comparable, lost = _comparable(judged, groups, is_many=is_many)
    groups = sorted(
        (group for group in groups if any(run.machine in group.members for run, _ in comparable)),
        key=lambda group: _first(group, comparable),
    )
    order = {run.id: place for place, run in enumerate(experiment.runs)}
    number_of = {machine: number for number, group in enumerate(groups, 1) for machine in group.members}
    blocks: dict[tuple[int, int], int] = {}
    units: dict[tuple[str, int, int], int] = {}
    runs, unit_of = [], {}
    for run, unit in comparable:
        unit_of[run.id] = units.setdefault(unit, len(units))
        block = blocks.setdefault((run.machine, 0 if is_many else run.block), len(blocks))
        runs.append(replace(run, machine=number_of[run.machine], block=block))
    parts = tuple(_part(group, comparable) for group in groups)
    runs += [replace(run, machine=0) for run in exact if run.id not in left_out]
    runs.sort(key=lambda run: order[run.id])
    return Park(tuple(runs), unit_of, parts, (*of_counted, *_one_sided(lost, machines)))


def machines_of(experiment: Experiment) -> list[int]:
    """Return the machines whose times are judged; others may have built and counted."""
    phases = _judged_phases(experiment)
    return sorted({run.machine for run in experiment.runs if run.phase in phases})


def _judged_phases(experiment: Experiment) -> tuple[Phase, ...]:
    """Return the phases whose runs' times are judged; the survey is where nothing was timed."""
    return Phase.PLAIN, Phase.TIMED if any(run.phase is Phase.TIMED for run in experiment.runs) else Phase.SURVEY


@dataclass(frozen=True, slots=True)
class _Group:
    name: str
    machine: Machine
    members: tuple[int, ...]


_Kept = list[tuple[Run, tuple[str, int, int]]]


def _machine(experiment: Experiment, number: int) -> Machine:
    if number < len(experiment.machines):
        return experiment.machines[number]
    return Machine(f"machine {number + 1}", experiment.environment)


def _groups(machines: Mapping[int, Machine]) -> list[_Group]:
    numbers = [*machines]
    return [
        _Group(kind.name, Machine(kind.name, kind.environment), tuple(numbers[place] for place in kind.members))
        for kind in kinds([*machines.values()])
    ]


def _comparable(runs: Sequence[Run], groups: Sequence[_Group], *, is_many: bool) -> tuple[_Kept, list[Run]]:
    """Return the runs that have something of the other side beside them, with what shares their pace, and the others."""
    group_of = {machine: place for place, group in enumerate(groups) for machine in group.members}
    places: dict[tuple[Phase, int], list[Run]] = {}
    for run in runs:
        places.setdefault((run.phase, run.point), []).append(run)
    comparable: _Kept = []
    lost: list[Run] = []
    for alike in places.values():
        sides = {run.side for run in alike}
        has = {(run.machine, run.side) for run in alike}
        both = {machine for machine, _ in has if all((machine, side) in has for side in sides)}
        alone = {(group_of[machine], side) for machine, side in has if machine not in both}
        paired = {place: sum(group_of[machine] == place for machine in both) for place in range(len(groups))}
        for run in alike:
            group = group_of[run.machine]
            if run.machine in both:
                comparable.append((run, ("machine", run.machine, 0)))
            elif is_many and paired[group] < FEWEST_PAIRED and all((group, side) in alone for side in sides):
                comparable.append((run, ("kind", group, 0)))
            else:
                lost.append(run)
    order = {run.id: place for place, run in enumerate(runs)}
    return sorted(comparable, key=lambda item: order[item[0].id]), lost


def _first(group: _Group, comparable: _Kept) -> tuple[int, float, str]:
    """Order parts: first the one with most runs, then the quickest."""
    of = [run for run, _ in comparable if run.machine in group.members]
    return -len(of), float(np.median([run.cpu_ns for run in of])), group.name


def _part(group: _Group, comparable: _Kept) -> MachinePart:
    of = [run for run, _ in comparable if run.machine in group.members]
    hosts = len({run.machine for run in of})
    base, head = (sum(run.side is side for run in of) for side in Side)
    return MachinePart(group.name, max(hosts, 1), group.machine.environment, base, head)


def _of_one_machine(experiment: Experiment) -> tuple[set[int], list[Claim]]:
    """Return the counted runs of all machines but one at each point, and what is told of them: counts are exact, and one counts for all."""
    places: dict[int, dict[int, list[Run]]] = {}
    for run in experiment.runs:
        if run.phase is Phase.COUNTED:
            places.setdefault(run.point, {}).setdefault(run.machine, []).append(run)
    others: set[int] = set()
    differing: set[str] = set()
    for machines in places.values():
        chosen = max(machines, key=lambda machine: (len({run.side for run in machines[machine]}), len(machines[machine]), -machine))
        counts = _base_counts(experiment, machines[chosen])
        for machine, runs in machines.items():
            if machine != chosen:
                others |= {run.id for run in runs}
                if _base_counts(experiment, runs) != counts:
                    differing |= {_machine(experiment, machine).name, _machine(experiment, chosen).name}
    return others, [claim("machines-count-otherwise", machines=tuple(sorted(differing)))] if differing else []


def _base_counts(experiment: Experiment, runs: Sequence[Run]) -> Mapping[int, float]:
    """Return how often base's first run called each function."""
    base = [run.id for run in runs if run.side is Side.BASE]
    if experiment.counts is None or not base:
        return {}
    of = experiment.counts.run == base[0]
    return dict(zip(experiment.counts.function[of].tolist(), experiment.counts.calls[of].tolist(), strict=True))


def _one_sided(lost: Sequence[Run], machines: Mapping[int, Machine]) -> Iterator[Claim]:
    if lost:
        yield claim("machines-one-sided", runs=len(lost), machines=tuple(sorted({machines[run.machine].name for run in lost})))
