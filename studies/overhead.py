"""Print what probes cost: the CPU time of the timed build over that of the plain one.

That is on the real input, on fixtures run for 100 ms and more (`--python`: on those in Python), and, with `--pairs`, on upstream projects:
the first pair of each that CONTRIBUTING.md's folder describes, at the largest point of its first workload.

A comparison of four sizes, ten runs each, is begun as always, through an executor that repeats the first timed run of the largest size
on each side in rounds with a plain one, and with one of the timed build whose probes are off: what that costs is the compiler's, which
lays out code around probes in other ways. The order within a round is random. A round gives two ratios; the intervals of their medians
are those of the sign test. With `--instructions` valgrind counts instructions in place of time, once: they say less, as pages, caches and
reading the clock cost none, and are the same on a busy machine.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import re
import subprocess
import tempfile
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.stats import binom

import programs
from perfdiff import configuration, pipeline
from perfdiff.collect.execution.executor import Command, Execution, ProcessExecutor, Purpose
from perfdiff.collect.runs import workloads
from perfdiff.progress import Silent
from perfdiff.records.schema import Phase, Side
from perfdiff.request import Request
from studies.support import figures, inputs, upstream

ROUNDS = 41
BAR = 0.02
MIDDLE_BAR = 0.05  # of the median over all programs and sides
WORST_BAR = 0.25
PYTHON_WORST_BAR = 0.15
LEAST_MS = 100.0  # shorter runs show the start of the runtime, not the cost of probes
CONFIDENCE = 0.95
SIZES = {
    "recursion": 1_000_000,
    "allocation": 2_000_000,
    "coefficient": 400_000,
    "throwing-method": 16_000,
    "list-append": 16_000,
    "interpreter tiny": 2_000_000,
    "interpreter large": 2_000_000,
    "parser tiny": 600_000,
    "parser large": 600_000,
    "queue tiny": 30_000_000,
    "queue large": 30_000_000,
    "cmark links": 30_000,
    "cmark paragraphs": 128_000,
}

PYTHON_SIZES = {"deepcopy": 3000, "list-membership": 3000, "property-recomputed": 3000, "slots": 3000, "string-in-loop": 8000}
CALLGRIND = ("valgrind", "--tool=callgrind", "--trace-children=yes", "--callgrind-out-file=/dev/null")

SMALLER = (8, 4, 2)  # times than the size that is measured; a run's share of the records to keep is that of a common comparison
RUNS = 10

Floats = npt.NDArray[np.float64]


class MeasuredError(Exception):
    """Both sides have been measured; the rest of the comparison is not wanted."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A comparison, and the point of it at which probes are measured, by a part of its label."""

    name: str
    request: Request
    point: str


@dataclass(slots=True)
class RepeatingExecutor:
    """Runs what it is asked to, and the first timed command of a side at `point` in `rounds`; MeasuredError after both sides.

    CPU times are in ns (rounds, 3): plain, off, timed. Without rounds they are instructions (1, 3).
    """

    point: str
    rounds: int
    seed: int
    cpu_ns: dict[Side, Floats] = field(default_factory=dict)
    _plain: dict[Side, Command] = field(default_factory=dict)
    _inner: ProcessExecutor = field(default_factory=ProcessExecutor)

    def execute(self, command: Command) -> Execution:
        """Run `command` and return what the last run of it cost."""
        if not self._is_measured(command):
            return self._inner.execute(command)
        side, steering = Side(command.where.split()[0].rstrip(",")), command.environment.get("PERFDIFF_PLAN")
        if steering is None:
            self._plain[side] = command
        elif Path(steering).name.startswith(Phase.TIMED) and side not in self.cpu_ns:
            plain = self._plain[side]
            self.cpu_ns[side] = self._repeated((plain, replace(command, environment=plain.environment), command))
            if len(self.cpu_ns) == len(Side):
                raise MeasuredError
        return self._inner.execute(command)

    def execute_together(self, commands: Sequence[Command], cpus: Collection[int]) -> list[Execution]:
        """Raise: no runs may be made at the same time here."""
        raise NotImplementedError

    def _is_measured(self, command: Command) -> bool:
        return command.purpose is Purpose.RUN and re.search(rf"{re.escape(self.point)}\b", command.where) is not None

    def _repeated(self, commands: Sequence[Command]) -> Floats:
        rng = random.Random(self.seed)
        out = Path(commands[-1].environment["PERFDIFF_OUT"])
        if not self.rounds:
            return np.array([[instructions(command) for command in commands]])
        cpu_ns = np.empty((self.rounds, len(commands)))
        for row in cpu_ns:
            for place in rng.sample(range(len(commands)), len(commands)):
                row[place] = self._inner.execute(commands[place]).cpu_ns
            for recording in out.iterdir():
                recording.unlink()
        return cpu_ns


def instructions(command: Command) -> float:
    """Return how many instructions a command executes, in all of its processes."""
    ended = subprocess.run(
        [*CALLGRIND, "sh", "-c", command.text], cwd=command.directory, env=command.environment, capture_output=True, text=True, check=True
    )
    return float(sum(map(int, re.findall(r"^==\d+== Collected : (\d+)", ended.stderr, re.MULTILINE))))


def median(ratios: Floats) -> str:
    """Return the median with its interval from order statistics: outside lie as many values as tosses of a coin leave in the tails."""
    outside = int(binom.ppf((1 - CONFIDENCE) / 2, len(ratios), 0.5))
    ordered = np.sort(ratios)
    return f"{np.median(ratios):.3f} ({ordered[max(0, outside - 1)]:.3f} to {ordered[min(len(ordered) - 1, len(ordered) - outside)]:.3f})"


def fixtures(names: Sequence[str], room: Path) -> Iterator[Subject]:
    """Give programs of our own and the real input, at the sizes above."""
    for name in names:
        asked = inputs.request(name, room, "base", "head")
        sizes = (*(SIZES[name] // smaller for smaller in SMALLER), SIZES[name])
        workload = replace(asked.config.workloads[0], parameters={"n": sizes}, runs=RUNS)
        yield Subject(name, replace(asked, config=replace(asked.config, workloads=(workload,))), f"n={SIZES[name]}")


def in_python(room: Path) -> Iterator[Subject]:
    """Give programs of our own in Python, as a user compares them who wants calls in any case."""
    for case in programs.cases(programs.PYTHON):
        if case.name not in PYTHON_SIZES:
            continue
        checkout, size = programs.repository(case, room / case.name), PYTHON_SIZES[case.name]
        config = configuration.load(checkout, environment={})
        workload = replace(config.workloads[0], parameters={"n": (*(size // smaller for smaller in SMALLER), size)})
        config = replace(config, workloads=(workload,), measure=replace(config.measure, thorough=True))
        yield Subject(case.name, Request(checkout, ("base", "head"), config, room / "cache", dict(os.environ)), f"n={size}")


def projects(folder: Path, room: Path, mirrors: Path | None) -> Iterator[Subject]:
    """Give upstream projects, as a user compares them who wants calls in any case."""
    for project in (upstream.project(folder.absolute() / name) for name in upstream.names(folder)):
        clone, pair = project.clone(room / "clones", mirrors), project.pairs[0]
        config = configuration.load(clone, overrides=configuration.Overrides(file=project.configuration), environment={})
        config = replace(config, workloads=config.workloads[:1], measure=replace(config.measure, thorough=True))
        request = Request(clone, (pair.base, pair.head), config, room / "cache", dict(os.environ))
        yield Subject(project.name, request, workloads.points(config.workloads)[-1].label)


def measured(subject: Subject, rounds: int, events: Sequence[str]) -> dict[Side, Floats]:
    """Return CPU times in ns (rounds, 3) of each side: plain, probes off, timed; with PAPI's `events` on sampled calls.

    A side is absent where the comparison ends before it is timed. Runs are made one after the other, so that they can be repeated.
    """
    config = subject.request.config
    config = replace(config, workloads=tuple(replace(workload, alone=True) for workload in config.workloads))
    if events:
        config = replace(config, counters=replace(config.counters, events=tuple(events)))
    executor = RepeatingExecutor(subject.point, rounds, seed=1)
    with contextlib.suppress(MeasuredError):
        pipeline.compare(replace(subject.request, config=config), Silent(), executor=executor)
    return executor.cpu_ns


def subjects(options: argparse.Namespace, room: Path) -> Iterator[Subject]:
    """Give what the command line asks for."""
    if options.pairs:
        return projects(options.pairs, room, options.mirrors)
    return in_python(room) if options.python else fixtures(options.case, room)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"of runs of each program and side (default: {ROUNDS})")
    parser.add_argument("--case", nargs="+", choices=SIZES, default=list(SIZES), metavar="NAME", help="programs (default: all)")
    parser.add_argument("--events", nargs="+", default=(), metavar="EVENT", help="PAPI's, of sampled calls (default: this machine's own)")
    parser.add_argument("--python", action="store_true", help="measure fixtures in Python")
    parser.add_argument("--instructions", action="store_true", help="count instructions by valgrind, in place of time")
    parser.add_argument("--pairs", type=Path, metavar="FOLDER", help="measure the upstream projects of this folder, and no fixtures")
    parser.add_argument("--mirrors", type=Path, help="clone from bare repositories OWNER+NAME in this folder")
    options = parser.parse_args()
    columns = (
        "program",
        "point",
        "side",
        "plain, 10^6 instructions" if options.instructions else "plain, ms",
        "timed / plain",
        "least / least",
        "probes off / plain",
        "bar",
    )
    title = f"Timed build against plain, {'instructions' if options.instructions else 'CPU time'}" + (
        f", counting {', '.join(options.events)}" if options.events else ""
    )
    ratios: list[float] = []
    with tempfile.TemporaryDirectory() as room, figures.printed(title, *columns) as table:
        rounds = 0 if options.instructions else options.rounds
        for subject in subjects(options, Path(room)):
            for side, times in sorted(measured(subject, rounds, options.events).items()):
                plain, off, timed = times.T
                plain_ms = float(np.median(plain)) / 1e6
                ratios.append(float(np.median(timed / plain)))
                judged = figures.against(float(np.median(timed / plain)), 1 + BAR) if plain_ms >= LEAST_MS else "too short"
                least = f"{timed.min() / plain.min():.3f}"
                table.add(subject.name, subject.point, side, f"{plain_ms:.0f}", median(timed / plain), least, median(off / plain), judged)
        if not ratios:
            raise SystemExit("no comparison came to timed runs")
        worst_bar = PYTHON_WORST_BAR if options.python else WORST_BAR
        table.remarks.append(
            f"Medians of {max(rounds, 1)} interleaved rounds with {100 * CONFIDENCE:.0f} % intervals; bar: {100 * BAR:.0f} % more. "
            f"Runs under {LEAST_MS:.0f} ms are not judged."
        )
        table.remarks.append(
            f"Of all rows the median is {np.median(ratios):.3f} (bar {1 + MIDDLE_BAR:.2f}, "
            f"{figures.against(float(np.median(ratios)), 1 + MIDDLE_BAR)}), the worst {max(ratios):.3f} "
            f"(bar {1 + worst_bar:.2f}, {figures.against(max(ratios), 1 + worst_bar)})."
        )
