#!/usr/bin/env python3
"""Print the CPU time of the timed build over that of the plain one, on the real input and on fixtures run for 100 ms and more.

A comparison is made as always, through an executor that repeats the first timed run of each side in pairs with a plain one, in random
order within the pair. A pair gives a ratio; the interval of their median is that of the sign test.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import figures
import inputs
import numpy as np
from scipy.stats import binom

from perfdiff import pipeline
from perfdiff.collect.executor import Command, Execution, ProcessExecutor
from perfdiff.progress import Silent
from perfdiff.records.schema import Phase, Side

PAIRS = 41
BAR = 0.02
LEAST_MS = 100.0  # shorter runs show the start of the runtime, not the cost of probes
CONFIDENCE = 0.95
SIZES = {"recursion": 1_000_000, "allocation": 2_000_000, "coefficient": 400_000, "cmark links": 30_000, "cmark paragraphs": 64_000}


@dataclass(slots=True)
class PairingExecutor:
    """Runs what it is asked to, and each timed command in `pairs` with its plain one; keeps CPU times (plain, timed) in ns by side."""

    pairs: int
    seed: int
    cpu_ns: dict[Side, list[tuple[float, float]]] = field(default_factory=dict)
    _plain: dict[Side, Command] = field(default_factory=dict)
    _inner: ProcessExecutor = field(default_factory=ProcessExecutor)

    def execute(self, command: Command) -> Execution:
        """Run `command` once, or in pairs where it is the first timed one of its side."""
        side = Side(command.where.split()[0].rstrip(","))
        steering = command.environment.get("PERFDIFF_PLAN")
        if steering is None:
            self._plain[side] = command
        elif Path(steering).name.startswith(Phase.TIMED) and side not in self.cpu_ns:
            self.cpu_ns[side] = self._paired(self._plain[side], command)
        return self._inner.execute(command)

    def _paired(self, plain: Command, timed: Command) -> list[tuple[float, float]]:
        rng = random.Random(self.seed)
        out = Path(timed.environment["PERFDIFF_OUT"])
        found = []
        for _ in range(self.pairs):
            cpu_ns = {}
            for command in rng.sample((plain, timed), 2):
                cpu_ns[command is timed] = self._inner.execute(command).cpu_ns
            for recording in out.iterdir():
                recording.unlink()
            found.append((cpu_ns[False], cpu_ns[True]))
        return found


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the interval of the median from order statistics: as many values below and above as fair coins leave in the tails."""
    ordered = sorted(values)
    outside = int(binom.ppf((1 - CONFIDENCE) / 2, len(ordered), 0.5))
    return ordered[max(0, outside - 1)], ordered[min(len(ordered) - 1, len(ordered) - outside)]


def measured(name: str, pairs: int, room: Path) -> dict[Side, list[tuple[float, float]]]:
    """Return CPU times (plain, timed) in ns of each side."""
    asked = inputs.request(name, room, "base", "head")
    workload = replace(asked.config.workloads[0], parameters={"n": (SIZES[name],)}, runs=1)
    executor = PairingExecutor(pairs, seed=1)
    pipeline.compare(replace(asked, config=replace(asked.config, workloads=(workload,))), Silent(), executor=executor)
    return executor.cpu_ns


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=PAIRS, help=f"pairs of runs of each program and side (default: {PAIRS})")
    parser.add_argument("--case", nargs="+", choices=SIZES, default=list(SIZES), metavar="NAME", help="programs (default: all)")
    options = parser.parse_args()
    columns = ("program", "n", "side", "plain, ms", "timed over plain", "95 % interval", "least over least", "bar")
    with tempfile.TemporaryDirectory() as room, figures.printed("Timed build against plain, CPU time", *columns) as table:
        for name in options.case:
            for side, times in measured(name, options.pairs, Path(room)).items():
                plain, timed = np.array(times).T
                median_ms = float(np.median(plain)) / 1e6
                ratio = float(np.median(timed / plain))
                low, high = median_interval(list(timed / plain))
                judged = figures.against(ratio, 1 + BAR) if median_ms >= LEAST_MS else "too short"
                least = timed.min() / plain.min()
                table.add(name, SIZES[name], side, f"{median_ms:.0f}", f"{ratio:.3f}", f"{low:.3f} to {high:.3f}", f"{least:.3f}", judged)
        table.remarks.append(
            f"Medians of {options.pairs} interleaved pairs of runs; bar: {100 * BAR:.0f} % more. Runs under {LEAST_MS:.0f} ms are not judged."
        )


if __name__ == "__main__":
    main()
