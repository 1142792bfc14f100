"""Print how much of the CPU time of whole runs is layout: one revision of each program, built once, linked in several layouts.

Each program runs at one size, the first doubling of its largest that takes long enough, in rounds: every layout once, in random order. Of
the logarithms of CPU time, the mean of each round is taken off, as load comes and goes; what is left is split into the variance between
layouts and that within them (one way, random effects, from the mean squares; the first is 0 where noise would explain it).
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.stats import f, t

from perfdiff.build.builder import build
from perfdiff.build.built import Built
from perfdiff.build.cache import BuildCache
from perfdiff.build.files import replace_file
from perfdiff.build.layouts import Layouts
from perfdiff.build.variants import BuildRequest
from perfdiff.collect.execution.executor import ProcessExecutor
from perfdiff.collect.runs import workloads
from perfdiff.collect.runs.collector import Collector
from perfdiff.collect.runs.schedule import Slot
from perfdiff.collect.runs.spread import LayoutSpread
from perfdiff.collect.runs.targets import Target
from perfdiff.collect.trees.upkeep import Upkeep
from perfdiff.records.schema import Phase, Point, Run, Side
from perfdiff.request import Request
from perfdiff.revisions.pins import resolve
from perfdiff.revisions.repository import find_repository
from studies.support import figures, inputs

PROGRAMS = (
    *("guilty-header", "larger-inputs", "padding-removed", "allocation", "coefficient", "recursion", "header-template"),
    *("throwing-method", "cmark paragraphs"),
)
LAYOUTS = 8
ROUNDS = 20
LEAST_MS = 50.0
MOST_DOUBLINGS = 16
STEPS = (0.02, 0.05)  # differences of layouts that are counted
CONFIDENCE = 0.95

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Split:
    """What the logarithms of CPU time (rounds, layouts) consist of: standard deviations, and the F test of no difference between layouts.

    `shares` are those of pairs of layouts that differ by more than each of `STEPS` with an interval beyond 0.
    """

    between: float
    within: float
    p: float
    shares: tuple[float, ...]

    @classmethod
    def of(cls, logs: Floats) -> Split:
        """Split the values."""
        rounds, count = logs.shape
        level = logs - logs.mean(axis=1, keepdims=True)
        means = level.mean(axis=0)
        free = (rounds - 1) * (count - 1)
        within = float(((level - means) ** 2).sum()) / free
        between = rounds * float((means**2).sum()) / (count - 1)
        sure = t.ppf((1 + CONFIDENCE) / 2, free) * np.sqrt(2 * within / rounds)
        apart = np.array([abs(one - other) for one, other in itertools.combinations(means, 2)])
        shares = tuple(float(np.mean((apart > np.log1p(step)) & (apart > sure))) for step in STEPS)
        return cls(max(0.0, (between - within) / rounds) ** 0.5, within**0.5, float(f.sf(between / within, count - 1, free)), shares)


@dataclass(frozen=True, slots=True)
class Bench:
    """A program in its layouts, ready to run; `each_s` is what a layout took."""

    asked: Request
    built: Built
    upkeep: Upkeep
    layouts: int
    each_s: float
    room: Path
    seed: int

    def runs(self, point: Point, rounds: int, count: int) -> list[Run]:
        """Run a point in rounds over the first `count` layouts."""
        rng = random.Random(self.seed)
        slots = [
            Slot(Phase.PLAIN, point, Side.BASE, block, layout) for block in range(rounds) for layout in rng.sample(range(count), count)
        ]
        target = Target(self.built.folder, None, tree=self.built.tree)
        configured = {workload.name: workload for workload in self.asked.config.workloads}
        with tempfile.TemporaryDirectory(dir=self.room) as room:
            collector = Collector(
                {(Phase.PLAIN, Side.BASE): target}, configured, self.asked.environment, ProcessExecutor(), Path(room), self.seed
            )
            collector.upkeep = self.upkeep
            return [run for run, _ in collector.collect(slots, lambda _: None)]

    def point(self) -> Point:
        """Return the first doubling of the largest size that takes long enough."""
        workload = self.asked.config.workloads[-1]
        (name, values) = next(iter(workload.parameters.items()))
        largest = max(value for value in values if isinstance(value, int | float))
        for doubling in range(MOST_DOUBLINGS):
            (point,) = workloads.points([replace(workload, parameters={name: (largest * 2**doubling,)})])
            if min(run.cpu_ns for run in self.runs(point, 3, 1)) >= LEAST_MS * 1e6:
                break
        return point


def written_again(built: Built) -> bool:
    """Write all that was linked once more as it is: what is between such layouts is none, but what files or chance make of them."""
    for link in built.links:
        replace_file(link.output, Path(shutil.copy(link.output, built.tree.parent / "copy")))
    return True


@contextmanager
def bench(name: str, count: int, room: Path, seed: int, *, control: bool) -> Iterator[Bench]:
    """Build a program's base and make its layouts, or mere copies as a control."""
    asked = inputs.request(name, room, "base", "head")
    pins = resolve(find_repository(asked.repository), asked.revisions, snapshots=asked.cache / "snapshots")
    with BuildCache(asked.cache) as cache, closing(Upkeep()) as upkeep, tempfile.TemporaryDirectory(dir=room) as own:
        built = build(BuildRequest(pins.base, Side.BASE, Phase.PLAIN, asked.config.build, asked.environment), cache)
        started = time.monotonic()
        if control:
            for number in range(1, count):
                upkeep.lay_out(built.tree, number, partial(written_again, built))
        else:
            spread = LayoutSpread({Side.BASE: Layouts(built, dict(os.environ), Path(own), count)}, upkeep, seed, count)
            spread.grow(count)
            count = spread.count
        yield Bench(asked, built, upkeep, count, (time.monotonic() - started) / max(1, count - 1), room, seed)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--case", nargs="+", choices=inputs.names(), default=PROGRAMS, metavar="NAME", help="programs (default: nine of them)"
    )
    parser.add_argument("--layouts", type=int, default=LAYOUTS, help=f"of each program (default: {LAYOUTS})")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"of runs (default: {ROUNDS})")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--control", action="store_true", help="copy the build instead of linking it again: nothing is to be between them")
    options = parser.parse_args()
    columns = (
        "program",
        "n",
        "CPU, ms",
        "layouts",
        "s a layout",
        "SD between, %",
        "SD within, %",
        "p",
        *(f"> {100 * step:g} %" for step in STEPS),
    )
    title = f"{'Copies' if options.control else 'Layouts'} of one revision, CPU time of whole runs"
    with tempfile.TemporaryDirectory() as room, figures.printed(title, *columns) as table:
        for name in options.case:
            with bench(name, options.layouts, Path(room), options.seed, control=options.control) as made:
                point = made.point()
                cpu_ns = np.empty((options.rounds, made.layouts))
                for run in made.runs(point, options.rounds, made.layouts):
                    cpu_ns[run.block, run.layout] = run.cpu_ns
            split = Split.of(np.log(cpu_ns))
            shares = (f"{100 * share:.0f} %" for share in split.shares)
            (n,) = point.parameters.values()
            table.add(
                *(name, f"{n:,}", f"{np.median(cpu_ns) / 1e6:.0f}", made.layouts, f"{made.each_s:.2f}"),
                *(f"{100 * split.between:.2f}", f"{100 * split.within:.2f}", f"{split.p:.2g}", *shares),
            )
        table.remarks.append(
            f"{options.rounds} interleaved rounds. Last columns: pairs of layouts that differ by more than this, and by more than noise."
        )
