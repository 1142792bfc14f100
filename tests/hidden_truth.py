"""How much longer head truly takes than base: both sides of a case, built and run by hand, without perfdiff."""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

from programs import FIXTURES, Case, cases, environment, git, repository

SIDES = ("base", "head")
FAMILIES = ("hidden", "less")
RUNS = 15  # a median of so many CPU times repeats to some percent on a machine with other work
SLOWER = 1.4  # what every slower head takes at least
ALIKE = (0.93, 1.07)  # between which a harmless one stays


@dataclass(frozen=True, slots=True)
class Truth:
    """How long both sides took at the largest size, in seconds of CPU, children's included, and by the wall."""

    cpu_s: dict[str, float]
    wall_s: dict[str, float]
    outputs: dict[str, bytes]

    @property
    def ratio(self) -> float:
        """Return head's CPU time by base's."""
        return self.cpu_s["head"] / self.cpu_s["base"]

    @property
    def wall_ratio(self) -> float:
        """Return head's time by base's."""
        return self.wall_s["head"] / self.wall_s["base"]


def measured(case: Case, room: Path, runs: int = RUNS) -> Truth:
    """Build both sides of a case below `room`, and run them in turn at the largest size."""
    config = tomllib.loads((case.folder / "perfdiff.toml").read_text())
    [workload] = config["workload"]
    command = workload["command"].format(n=max(workload["parameters"]["n"]))
    codes = workload.get("exit_codes", [0])
    checkout = repository(case, room / case.name)
    trees = {side: room / f"{case.name}-{side}" for side in SIDES}
    for side, tree in trees.items():
        git(checkout, "worktree", "add", "-q", "--detach", str(tree), side)
        if "build" in config:
            subprocess.run(["sh", "-c", config["build"]["command"]], cwd=tree, check=True, capture_output=True, env=environment())
    cpu: dict[str, list[float]] = {side: [] for side in SIDES}
    wall: dict[str, list[float]] = {side: [] for side in SIDES}
    outputs: dict[str, bytes] = {}
    order = random.Random(0)
    for _ in range(runs):
        for side in order.sample(SIDES, 2):
            seconds, lasted, outputs[side] = _run(command, trees[side], codes)
            cpu[side].append(seconds)
            wall[side].append(lasted)
    return Truth(_medians(cpu), _medians(wall), outputs)


def _medians(seconds: dict[str, list[float]]) -> dict[str, float]:
    return {side: statistics.median(several) for side, several in seconds.items()}


def _run(command: str, tree: Path, codes: list[int]) -> tuple[float, float, bytes]:
    """Return the CPU seconds of a run with those of all children it waited for, its seconds, and what it printed."""
    with tempfile.TemporaryFile() as output:
        begun = time.perf_counter()
        process = subprocess.Popen(["sh", "-c", command], cwd=tree, env=environment(), stdin=subprocess.DEVNULL, stdout=output)
        _, status, usage = os.wait4(process.pid, 0)
        lasted = time.perf_counter() - begun
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in codes:
            raise subprocess.CalledProcessError(process.returncode, command)
        output.seek(0)
        return usage.ru_utime + usage.ru_stime, lasted, output.read()


def main() -> None:
    """Print a line a case: both sides' CPU time, and head's by base's."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("family", choices=FAMILIES)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="programs (default: all of the family)")
    parser.add_argument("--runs", type=int, default=RUNS)
    options = parser.parse_args()
    for case in cases(FIXTURES / options.family):
        if options.only and not any(case.name.startswith(name) for name in options.only):
            continue
        with tempfile.TemporaryDirectory() as room:
            truth = measured(case, Path(room), options.runs)
        same = "same output" if truth.outputs["base"] == truth.outputs["head"] else "other output"
        base, head = (1000 * truth.cpu_s[side] for side in SIDES)
        ratios = f"{base:6.0f} ms {head:6.0f} ms ×{truth.ratio:.2f} (wall ×{truth.wall_ratio:.2f}, {1000 * truth.wall_s['base']:.0f} ms)"
        print(f"{case.name:<28} {case.expected['verdict']:<16} {ratios} {same}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
