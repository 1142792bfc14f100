"""Print what pairs of runs show that are made one after the other, at the same time on one CPU, and at the same time on two.

A program of a known size of working set runs twice with the same work, and once more with a twentieth more of it; pairs of the three kinds
are made in turn, so that all meet the same machine. Its loop waits for each load, so that caches count.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from perfdiff.collect.execution.executor import Command, Execution, ProcessExecutor
from studies.support import figures

SECONDS = 20.0  # of each row
CASES = ((100_000, 64), (1_000_000, 64), (5_000_000, 64), (3_000_000, 512), (2_000_000, 16_384))  # steps, working set in KiB
MORE = 1.05
PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
	long steps = atol(argv[1]);
	unsigned long words = strtoul(argv[2], 0, 10) * 1024 / sizeof(unsigned), state = argc;
	unsigned *set = calloc(words, sizeof *set);
	for (unsigned long i = 0; i < words; i++)
		set[i] = i;
	for (long i = 0; i < steps; i++) {
		state = state * 6364136223846793005ul + 1442695040888963407ul;
		state ^= set[(state >> 20) % words];
	}
	printf("%lu\\n", state);
	return 0;
}
"""
KINDS = ("one after the other", "together on one CPU", "together on two CPUs")


def pair(executor: ProcessExecutor, commands: Sequence[Command], kind: str, rng: random.Random) -> float:
    """Return the logarithm of the second's CPU time over the first's, started in random order."""
    order = rng.sample(range(2), 2)
    cpus = sorted(os.sched_getaffinity(0))
    made: Sequence[Execution | _Cpu]
    if kind == KINDS[0]:
        made = [executor.execute(commands[place]) for place in order]
    elif kind == KINDS[1]:
        made = executor.execute_together([commands[place] for place in order], {rng.choice(cpus)})
    else:
        made = _on_two(commands, order, cpus)
    cpu_ns = {place: found.cpu_ns for place, found in zip(order, made, strict=True)}
    return float(np.log(cpu_ns[1] / cpu_ns[0]))


class _Cpu:
    def __init__(self, cpu_ns: float) -> None:
        self.cpu_ns = cpu_ns


def _on_two(commands: Sequence[Command], order: Sequence[int], cpus: Sequence[int]) -> list[_Cpu]:
    """Run two commands at the same time, each on a CPU of its own."""
    started = []
    for place, cpu in zip(order, (cpus[0], cpus[-1]), strict=True):
        text = ["taskset", "-c", str(cpu), "/bin/sh", "-c", commands[place].text]
        started.append(subprocess.Popen(text, cwd=commands[place].directory, stdout=subprocess.DEVNULL))
    usages = [os.wait4(process.pid, 0)[2] for process in started]
    return [_Cpu(1e9 * (usage.ru_utime + usage.ru_stime)) for usage in usages]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=SECONDS, help="how long to measure each row")
    seconds = parser.parse_args().seconds
    executor, rng = ProcessExecutor(), random.Random(1)
    columns = ("steps", "working set", "CPU time of a run", "work", *KINDS)
    with tempfile.TemporaryDirectory() as name, figures.printed("Pairs of runs", *columns) as table:
        folder = Path(name)
        (folder / "walk.c").write_text(PROGRAM)
        subprocess.run(["cc", "-O2", "-o", "walk", "walk.c"], cwd=folder, check=True)
        for steps, kib in CASES:
            for factor in (1.0, MORE):
                commands = [
                    Command(f"./walk {round(of)} {kib}", folder, dict(os.environ), 60.0, (0,), "here") for of in (steps, steps * factor)
                ]
                found: dict[str, list[float]] = {kind: [] for kind in KINDS}
                until = time.monotonic() + seconds
                while time.monotonic() < until:
                    for kind in KINDS:
                        found[kind].append(pair(executor, commands, kind, rng))
                cells = [f"{100 * np.median(logs):+.1f} %, deviation {100 * np.std(logs):.1f} %" for logs in found.values()]
                took_ms = executor.execute(commands[0]).cpu_ns / 1e6
                table.add(f"{steps:,}", f"{kib} KiB", f"{took_ms:.1f} ms", "the same" if factor == 1 else "5 % more", *cells)
        table.remarks.append("Median and standard deviation of the logarithms of ratios of CPU times, pair by pair.")
