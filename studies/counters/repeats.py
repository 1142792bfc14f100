"""Whether counts of programs of one thread are the same in every run."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

import sharing
from perfdiff import pipeline
from perfdiff.collect.execution.executor import Command, Execution, ProcessExecutor
from perfdiff.errors import PerfdiffError
from perfdiff.languages.packs import Packs
from perfdiff.progress import Silent
from perfdiff.records import recording
from perfdiff.records.metrics import COUNTED
from studies.null import Suspicious
from studies.support import figures

RUNS = 20

Counts = dict[tuple[int, str], int]  # by probe and counter


class MeasuredError(Exception):
    """The counted build has been run; the rest of the comparison is not wanted."""


@dataclass(slots=True)
class RepeatingExecutor:
    """Runs what it is asked to, but the first counted command so many times, and raises MeasuredError. `counts` are those of each run."""

    runs: int = RUNS
    counts: list[Counts] = field(default_factory=list)
    _inner: ProcessExecutor = field(default_factory=ProcessExecutor)

    def execute(self, command: Command) -> Execution:
        """Run `command` and return what it cost."""
        if "PERFDIFF_PMU" not in command.environment:
            return self._inner.execute(command)
        out = Path(command.environment["PERFDIFF_OUT"])
        for _ in range(self.runs):
            self._inner.execute(command)
            self.counts.append(_counts(out))
        raise MeasuredError

    def execute_together(self, commands: Sequence[Command], cpus: Collection[int]) -> list[Execution]:
        """Run commands that count nothing at the same time, others one after the other."""
        if any("PERFDIFF_PMU" in command.environment for command in commands):
            return [self.execute(command) for command in commands]
        return self._inner.execute_together(commands, cpus)


def _counts(out: Path) -> Counts:
    """Return the sums of one run by probe and counter, and remove its recordings."""
    found: Counts = {}
    for path in sorted(out.glob("*.pdrec")):
        totals = recording.read(path).totals
        counters = {name: values for name, values in totals.counters.items() if name in COUNTED}
        for name, values in {"calls": totals.calls, **counters}.items():
            for probe, value in zip(totals.probe.tolist(), values.tolist(), strict=True):
                found[probe, name] = found.get((probe, name), 0) + (-1 if np.isnan(value) else int(value))
        path.unlink()
    return found


def study(names: Sequence[str], room: Path) -> None:
    """Print for each program how many of its runs counted the same as its first one, and which counters did not."""
    columns = ("program", "functions", "counters", "runs alike", "basic blocks a run", "what differed")
    with figures.printed(f"Counts of one thread in {RUNS} runs", *columns) as table:
        for program in sharing.programs():
            if program.name not in names:
                continue
            asked = sharing.request(program, room, "base", "base")
            config = sharing.with_workload(asked.config, threads=(1,), sizes=asked.config.workloads[0].parameters["n"][:1], runs=2)
            executor = RepeatingExecutor()
            try:
                suspicious = Suspicious(asked.packs.compiled)
                pipeline.compare(replace(asked, config=config), Silent(), packs=Packs(suspicious), executor=executor)
            except MeasuredError:
                pass
            except PerfdiffError as error:
                table.add(program.name, "", "", "", "", f"not measured: {error}")
                continue
            table.add(program.name, *_row(executor.counts))


def _row(counts: Sequence[Counts]) -> tuple[str, ...]:
    first = counts[0]
    differing = {key[1] for each in counts for key in first.keys() | each.keys() if each.get(key) != first.get(key)}
    blocks = sum(value for (_, name), value in first.items() if name == "blocks")
    names = {name for _, name in first}
    alike = sum(each == first for each in counts)
    return (
        str(len({probe for probe, _ in first})),
        str(len(names)),
        f"{alike} of {len(counts)}",
        f"{blocks:,}",
        ", ".join(sorted(differing)) or "nothing",
    )
