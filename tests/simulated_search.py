"""Searches for a culprit among simulated commits: noisy runs, builds whose layout moves their cost, builds that fail."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from perfdiff.analysis.search.posterior import Confirm, CulpritSet, Knowledge, Measure, Reading, Search, StepTrial, Terms, decide

LAYOUT, MOVED_LAYOUT = 0.015, 0.06  # standard deviations of what a build's layout does to its cost (logarithm) …
MOVED_SHARE = 0.05  # … and the share of builds where it does much
BROKEN_SHARE = 0.1
CAUTION = 1.2  # stated errors are Student's half widths over the normal quantile, so that much above those of the runs


@dataclass(frozen=True, slots=True)
class World:
    """What is searched: `effect` is the culprit's (logarithm), `noise` the standard error of a measurement; `exact` ones have none."""

    commits: int
    effect: float
    noise: float = 0.0
    exact: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a search ended: `right` where the culprit is among the suspects; `runs` counts measurements, `measured` commits."""

    right: bool
    certain: bool
    confidence: float
    suspects: int
    measured: int
    runs: int


class Machine:
    """Measures commits of a world, with true costs that stay and noise that does not."""

    def __init__(self, world: World, rng: np.random.Generator) -> None:
        self.world, self._rng = world, rng
        self.culprit = int(rng.integers(world.commits))
        self.broken = rng.random(world.commits) < BROKEN_SHARE
        self.broken[-1] = False
        layout = np.where(rng.random(world.commits) < MOVED_SHARE, MOVED_LAYOUT, LAYOUT) * rng.normal(size=world.commits)
        self.true = world.effect * (np.arange(world.commits) >= self.culprit) + (0.0 if world.exact else layout)

    def read(self, commit: int, *, precise: float = 1.0) -> Reading:
        """Return a measurement of a commit against the good end; `precise` ones have so many times the error."""
        if self.world.exact:
            return Reading(float(self.true[commit]), 0.0)
        error = self.world.noise * precise * self._rng.uniform(0.6, 1.5)
        return Reading(float(self.true[commit] + error * self._rng.standard_t(5)), float(error * CAUTION))

    def step(self, suspects: frozenset[int]) -> Reading:
        """Return a measurement of the last suspect against what builds before them."""
        before = min(suspects) - 1
        while before >= 0 and self.broken[before]:
            before -= 1
        after = self.read(max(suspects), precise=0.5)
        return Reading(after.effect - (float(self.true[before]) if before >= 0 else 0.0), after.error)


def searched(world: World, seed: int, confidence: float = 0.95) -> Outcome:
    """Search a world's line of commits for its culprit."""
    machine = Machine(world, np.random.default_rng(seed))
    count = world.commits
    search = Search(np.tril(np.ones((count, count), bool)), np.ones(count) / count, machine.read(count - 1, precise=0.5), world.exact)
    readings: dict[int, Reading] = {}
    skipped: list[int] = []
    trials: list[StepTrial] = []
    runs = 0
    eligible = np.ones(count, bool)
    eligible[-1] = False
    while True:
        cost = np.ones(count)
        cost[list(readings)] = 0.5
        known = Knowledge(readings, skipped, trials, (), runs)
        match decide(search, known, Terms(eligible, cost, world.noise * CAUTION, confidence)):
            case CulpritSet(suspects, probability, certain):
                return Outcome(machine.culprit in suspects, certain, probability, len(suspects), len(readings), runs)
            case Confirm(suspects):
                trials.append(StepTrial(suspects, machine.step(suspects)))
            case Measure(commit) if machine.broken[commit]:
                skipped.append(commit)
            case Measure(commit):
                runs += 1
                reading = machine.read(commit)
                readings[commit] = readings[commit].joined(reading) if commit in readings else reading


def thresholded(world: World, seed: int) -> bool:
    """Return whether `git bisect run` with a threshold at half the effect names the culprit, or one that no build tells from it."""
    machine = Machine(world, np.random.default_rng(seed))
    machine.read(world.commits - 1)
    low, high = -1, world.commits - 1
    while candidates := [each for each in range(low + 1, high) if not machine.broken[each]]:
        middle = min(candidates, key=lambda each: abs(each - (low + high) / 2))
        if machine.read(middle).effect > world.effect / 2:
            high = middle
        else:
            low = middle
    return low < machine.culprit <= high
