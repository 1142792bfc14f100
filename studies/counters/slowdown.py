"""How much slower programs of one thread run in the counted build as a comparison makes it, probes included, beside callgrind."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from math import exp, log
from pathlib import Path

import sharing
from perfdiff import pipeline
from perfdiff.collect.execution.executor import Command, Execution, ProcessExecutor
from perfdiff.errors import PerfdiffError
from perfdiff.progress import Silent
from studies import counted
from studies.support import figures

RUNS = 5
LARGER = 4  # times than the largest configured size, so that the start of the process hardly counts


class MeasuredError(Exception):
    """The counted build has been measured; the rest of the comparison is not wanted."""


@dataclass(slots=True)
class Stopwatch:
    """Runs what it is asked to; at the first counted command it measures that side's plain build, the counted one, and callgrind."""

    cost: counted.Cost = field(default_factory=counted.Cost)
    _plain: dict[str, Command] = field(default_factory=dict)
    _inner: ProcessExecutor = field(default_factory=ProcessExecutor)

    def execute(self, command: Command) -> Execution:
        """Run `command` and return what it cost."""
        side = command.where.split(maxsplit=1)[0].rstrip(",")
        if "PERFDIFF_PLAN" not in command.environment:
            self._plain[side] = command
        if "PERFDIFF_PMU" not in command.environment:
            return self._inner.execute(command)
        plain = self._plain[side]
        for _ in range(RUNS):
            self.cost.plain.append(self._inner.execute(plain).cpu_ns / 1e9)
            self.cost.counted.append(self._inner.execute(command).cpu_ns / 1e9)
        if shutil.which("valgrind"):
            under = f"valgrind -q {' '.join(counted.CALLGRIND)} {plain.text}"
            self.cost.callgrind = self._inner.execute(replace(plain, text=under)).cpu_ns / 1e9
        raise MeasuredError

    def execute_together(self, commands: Sequence[Command], cpus: Collection[int]) -> list[Execution]:
        """Run commands that count nothing at the same time, others one after the other."""
        if any("PERFDIFF_PMU" in command.environment for command in commands):
            return [self.execute(command) for command in commands]
        return self._inner.execute_together(commands, cpus)


def study(names: Sequence[str], room: Path) -> None:
    """Print the table, with the geometric mean, the worst program and the least lead over callgrind."""
    columns = ("program", "plain, ms", "counted / plain", "callgrind / plain", "callgrind / counted")
    costs = []
    with figures.printed("Counted builds of whole programs, one thread", *columns) as table:
        for program in sharing.programs():
            if program.name not in names:
                continue
            try:
                cost = _measured(program, room)
            except PerfdiffError as error:
                table.remarks.append(f"{program.name} was not measured: {error}")
                continue
            costs.append(cost)
            peer = ("-", "-") if cost.peer is None else (f"{cost.peer * cost.ratio:.0f}", f"{cost.peer:.1f}")
            table.add(program.name, f"{min(cost.plain) * 1e3:.0f}", f"{cost.ratio:.1f}", *peer)
        mean, worst = exp(sum(log(cost.ratio) for cost in costs) / len(costs)), max(cost.ratio for cost in costs)
        least = min((cost.peer for cost in costs if cost.peer is not None), default=None)
        for what, value, bar in (
            ("Geometric mean", mean, counted.GEOMETRIC_MEAN_BAR),
            ("Worst", worst, counted.WORST_BAR),
        ):
            table.remarks.append(f"{what} {value:.1f}; bar {bar:.0f}, {figures.against(value, bar)}.")
        if least is not None:
            kept = figures.against(-least, -counted.PEER_BAR)
            table.remarks.append(f"Least lead over callgrind {least:.1f} times; bar {counted.PEER_BAR:.0f}, {kept}.")


def _measured(program: sharing.Program, room: Path) -> counted.Cost:
    asked = sharing.request(program, room, "base", "defective")
    sizes = (LARGER * int(asked.config.workloads[0].parameters["n"][-1]),)
    stopwatch = Stopwatch()
    config = sharing.with_workload(asked.config, threads=(1,), sizes=sizes, runs=2)
    config = replace(config, counters=replace(config.counters, budget_s=600.0))
    try:
        pipeline.compare(replace(asked, config=config), Silent(), executor=stopwatch)
    except MeasuredError:
        return stopwatch.cost
    raise PerfdiffError("nothing was counted", slug="not-counted")
