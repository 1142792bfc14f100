"""How whole runs of two upstream revisions compare, found without perfdiff's builds, schedule and statistics.

Both are built once as the configuration says, in folders of their own; pairs of runs, base and head in random order; CPU time of each run
by getrusage; the median of the logarithms of head over base with its bootstrap interval. A single build of each side: of a difference of 1
to 2 %, some may be layout.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from perfdiff import configuration
from perfdiff.collect.runs import workloads
from perfdiff.config import Config, WorkloadConfig
from perfdiff.records.schema import Point
from programs import git
from studies.support.upstream import Pair, Project

CONFIDENCE = 0.95
RESAMPLES = 2000

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Truth:
    """Head over base at one point: median ratio and interval over pairs of runs, median CPU time of base's runs in milliseconds."""

    point: str
    ratio: float
    low: float
    high: float
    base_ms: float

    @classmethod
    def of(cls, point: str, cpu_s: Floats, *, seed: int) -> Truth:
        """Judge runs (pairs, 2): CPU seconds of base and of head."""
        logs = np.log(cpu_s[:, 1] / cpu_s[:, 0])
        drawn = np.random.default_rng(seed).choice(logs, (RESAMPLES, len(logs)))
        tail = (1 - CONFIDENCE) / 2
        low, high = np.exp(np.quantile(np.median(drawn, axis=1), (tail, 1 - tail)))
        return cls(point, float(np.exp(np.median(logs))), float(low), float(high), 1e3 * float(np.median(cpu_s[:, 0])))


@dataclass(frozen=True, slots=True)
class Bench:
    """Where the pairs of a project are built and run, how many pairs of runs are made, and in which random order."""

    project: Project
    clone: Path
    room: Path
    pairs: int
    seed: int

    def truths(self, pair: Pair) -> list[Truth]:
        """Build both sides, unless they stand there, and judge the last point of each workload, the largest.

        Raises CalledProcessError where a command fails.
        """
        trees = self.trees(pair)
        found = []
        for workload in self.config.workloads:
            point = workloads.points([workload])[-1]
            for tree in trees:
                _shell(tree, workload.setup, point.parameters)
            found.append(Truth.of(point.label, self._runs(trees, workload, point), seed=self.seed))
        return found

    @property
    def config(self) -> Config:
        """Return how the project is built and run."""
        return configuration.load(self.clone, overrides=configuration.Overrides(file=self.project.configuration), environment={})

    def trees(self, pair: Pair) -> list[Path]:
        """Return the built trees of base and head; raise CalledProcessError where a command fails."""
        return [self._built(commit, self.config.build.command) for commit in (pair.base, pair.head)]

    def _built(self, commit: str, command: str) -> Path:
        """Return the built tree of a commit; what it is made of is in its name, so that no stale one is taken."""
        place = self.room / self.project.name / f"{commit}-{self.project.digest()}"
        tree = place / "tree"
        if (place / "built").exists():
            return tree
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        git(place, "clone", "-q", "--no-checkout", str(self.clone), tree.name)
        git(tree, "checkout", "-q", "--detach", commit)
        self.project.furnish(tree)
        _shell(tree, command, {})
        (place / "built").touch()
        return tree

    def _runs(self, trees: Sequence[Path], workload: WorkloadConfig, point: Point) -> Floats:
        """Return the CPU seconds (pairs, sides) of runs of a point."""
        rng = random.Random(self.seed)
        cpu_s = np.empty((self.pairs, len(trees)))
        for each in (0, *range(self.pairs)):  # the first pair warms the caches and is written over
            for side in rng.sample(range(len(trees)), len(trees)):
                _shell(trees[side], workload.prepare, point.parameters)
                cpu_s[each, side] = _cpu_s(trees[side], point.command)
        return cpu_s


def _shell(tree: Path, command: str | None, parameters: Mapping[str, float | str]) -> None:
    """Run a command of the configuration, where there is one; raise CalledProcessError with what it said where it fails."""
    if command:
        subprocess.run(["/bin/sh", "-c", workloads.filled(command, parameters)], cwd=tree, check=True, capture_output=True, text=True)


def _cpu_s(tree: Path, command: str) -> float:
    """Run a command and return the CPU time of it and of its children."""
    null = os.open(os.devnull, os.O_RDWR)
    try:
        process = subprocess.Popen(["/bin/sh", "-c", command], cwd=tree, stdin=null, stdout=null, stderr=null)
        _, status, usage = os.wait4(process.pid, 0)
    finally:
        os.close(null)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return usage.ru_utime + usage.ru_stime
