"""What hyperfine says of a pair of upstream revisions, in a given time: all runs of base, then all of head, as it makes them."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import ttest_ind

from perfdiff.collect.runs import workloads
from studies.support.peers import LEVEL, packages
from studies.support.upstream import Pair
from studies.support.upstream_truth import Bench

FEWEST = 5  # runs of each side
WARMUP = 1


@dataclass(frozen=True, slots=True)
class Told:
    """Head over base at one point: ratio of the means of so many runs a side, and the p-value of Welch's test."""

    point: str
    ratio: float
    p: float
    runs: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is told of all points, and the seconds that it took."""

    told: tuple[Told, ...]
    seconds: float

    def is_slower(self, least: float) -> bool:
        """Return whether head is slower at a point by more than `least`, with Welch's test at `LEVEL` corrected for the points."""
        return any(each.ratio > 1 + least and each.p < LEVEL / len(self.told) for each in self.told)


def ask(bench: Bench, pair: Pair, seconds: float, folder: Path) -> Verdict:
    """Run both builds of a pair under hyperfine at all points, which share the time; raise CalledProcessError.

    `folder` keeps hyperfine where it is not installed.
    """
    known = shutil.which("hyperfine")
    tool = Path(known) if known else packages(folder / "hyperfine", "hyperfine") / "usr/bin/hyperfine"
    trees = bench.trees(pair)
    points = workloads.points(bench.config.workloads)
    started, told = time.monotonic(), []
    for point in points:
        once = sum(_took(tree, point.command) for tree in trees)
        runs = max(FEWEST, math.floor(seconds / len(points) / once))
        times = _times(tool, [f"cd {tree} && {point.command}" for tree in trees], runs)
        told.append(Told(point.label, float(np.mean(times[1]) / np.mean(times[0])), float(ttest_ind(*times, equal_var=False).pvalue), runs))
    return Verdict(tuple(told), time.monotonic() - started)


def _times(tool: Path, commands: list[str], runs: int) -> list[list[float]]:
    with tempfile.TemporaryDirectory() as room:
        out = Path(room) / "times.json"
        options = ["--warmup", str(WARMUP), "--runs", str(runs), "--style", "none", "--export-json", str(out)]
        subprocess.run([str(tool), *options, *commands], check=True, capture_output=True, text=True)
        return [result["times"] for result in json.loads(out.read_text())["results"]]


def _took(tree: Path, command: str) -> float:
    started = time.monotonic()
    subprocess.run(["/bin/sh", "-c", command], cwd=tree, check=True, capture_output=True)
    return time.monotonic() - started
