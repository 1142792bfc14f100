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
# What head takes of base's time, by what is expected of a case: at least, and at most.
BOUNDS = {"slower": (1.4, 10.0), "unchanged": (0.93, 1.07), "not-improvement": (0.0, 0.75), "improvement": (0.0, 0.75)}


@dataclass(frozen=True, slots=True)
class Truth:
    """How long both sides took at the largest size, in seconds of CPU, children's included, and by the wall."""

    cpu_s: dict[str, float]
    wall_s: dict[str, float]
    outputs: dict[str, bytes]

    def ratio(self, case: Case) -> float:
        """Return head's time by base's: of the CPU, or by the wall where a case says so, as one whose processes leave."""
        seconds = self.wall_s if case.expected.get("clock") == "wall" else self.cpu_s
        return seconds["head"] / seconds["base"]

    def holds(self, case: Case) -> bool:
        """Return whether head takes as much longer or less long as is said of it."""
        least, most = BOUNDS[case.expected["verdict"]]
        return least <= self.ratio(case) <= most


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
        process = subprocess.Popen(
            ["sh", "-c", command], cwd=tree, env=environment(), stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
        _, status, usage = os.wait4(process.pid, 0)
        lasted = time.perf_counter() - begun
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in codes:
            raise subprocess.CalledProcessError(process.returncode, command)
        output.seek(0)
        return usage.ru_utime + usage.ru_stime, lasted, output.read()


def record(case: Case, ratio: float) -> None:
    """Write a measured ratio into a case's `expected.toml`."""
    path = case.folder / "expected.toml"
    kept = [line for line in path.read_text().splitlines() if not line.startswith("ratio = ")]
    path.write_text("\n".join([*kept, f"ratio = {ratio:.2f}", ""]))


def main() -> None:
    """Print a line a case: both sides' CPU time, head's by base's, and whether it is within its bounds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("family", choices=FAMILIES)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="programs (default: all of the family)")
    parser.add_argument("--runs", type=int, default=RUNS, help="of each side (default: %(default)s)")
    parser.add_argument("--record", action="store_true", help="write the ratios into the cases")
    options = parser.parse_args()
    for case in cases(FIXTURES / options.family):
        if options.only and case.name not in options.only:
            continue
        with tempfile.TemporaryDirectory() as room:
            truth = measured(case, Path(room), options.runs)
        ratio = truth.ratio(case)
        if options.record:
            record(case, ratio)
        base, head = (1000 * truth.cpu_s[side] for side in SIDES)
        output = "same output" if truth.outputs["base"] == truth.outputs["head"] else "other output"
        right = "" if truth.holds(case) else f" not within {BOUNDS[case.expected['verdict']]}"
        print(f"{case.name:<28} {case.expected['verdict']:<16}{base:6.0f} ms {head:6.0f} ms ×{ratio:.2f}, {output}{right}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
