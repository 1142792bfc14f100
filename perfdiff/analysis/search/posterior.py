"""The search for the commit that made something slower, from measurements that may be wrong: which one is it, and what to measure next.

Commits are numbers, 0 to n - 1. A measurement of commit `i` against the good end is the logarithm of a ratio of costs: near 0 where `i`
does not hold the culprit, near `expected`, what the bad end shows, where it does. The posterior over culprits follows by Bayes' rule, as
in probabilistic bisection (Horstein 1963; Waeber, Frazier and Henderson 2013), over a graph of commits instead of a line. What is measured
next is the commit that is expected to tell most about the culprit for what it costs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from perfdiff.records.arrays import Bools, Floats, Ints

# Two builds of the same function differ in where its code lies; most by less than this (a standard deviation of the logarithm). The rare
# large ones, see `layout_shift` of the policy, are what MISLED is for.
LAYOUT = 0.02
# Other commits of the range change the cost a little as well: the culprit's effect is known to about an eighth of itself.
LEAN = 0.125
# A build whose cost says nothing of the culprit, however often it is run: an unlucky layout, another defect that covers it. Measuring it
# again does not help, its neighbours do; so no single commit is trusted more than about 100 to 1.
MISLED = 0.02
MISLED_EXACT = 0.002  # counts do not depend on layout
NEARBY = 0.5  # chance that what broke the build of a commit still breaks its neighbour's, halved with every step
WORTHLESS = 0.005  # bits: a measurement that tells less is not made
UNTIED = 0.001  # chance that commits whose probed functions are the same differ all the same, by what no index of functions sees
EVEN = 0.5  # likelier culprits than this are worth a trial of their own where nothing else tells more
PATIENCE = 4  # times as many measurements as a search among answers without noise would take, and four more, end it

_NODES = np.linspace(-3.0, 3.0, 25)  # standard deviations at which readings to come are looked at
_WEIGHTS = np.exp(-0.5 * _NODES**2) / np.exp(-0.5 * _NODES**2).sum()


@dataclass(frozen=True, slots=True)
class Reading:
    """What all measurements of a commit, or of a step between two, say together: log of the ratio, and its standard error."""

    effect: float
    error: float

    def joined(self, other: Reading) -> Reading:
        """Return both as one, weighted by their precision; readings without any error are as good as each other."""
        weights = [1 / max(reading.error, 1e-9) ** 2 for reading in (self, other)]
        effect = (self.effect * weights[0] + other.effect * weights[1]) / sum(weights)
        error = 0.0 if min(self.error, other.error) == 0 else 1 / math.sqrt(sum(weights))
        return Reading(effect, error)


@dataclass(frozen=True, slots=True)
class StepTrial:
    """A reading of the step from a commit just before the suspects to one that holds them all."""

    suspects: frozenset[int]
    reading: Reading


@dataclass(frozen=True, slots=True)
class Knowledge:
    """All that is known so far: readings by commit, commits that cannot be measured, trials of suspects, pairs of commits that are the same
    for what was probed (None: as the good end), and how many measurements were made.
    """

    readings: Mapping[int, Reading]
    skipped: Sequence[int] = ()
    trials: Sequence[StepTrial] = ()
    ties: Sequence[tuple[int, int | None]] = ()
    measurements: int = 0


@dataclass(frozen=True, slots=True)
class Search:
    """What is asked: `contains[i, k]` whether commit `i` holds commit `k`; `prior` (n,) 0 for commits that change nothing.

    `expected` is what the bad end shows. `exact` readings are counts that repeat to the last digit.
    """

    contains: Bools
    prior: Floats
    expected: Reading
    exact: bool = False

    def posterior(self, knowledge: Knowledge) -> Floats:
        """Return the probability (n,) that each commit is the culprit."""
        logs = np.where(self.prior > 0, np.log(np.maximum(self.prior, 1e-300)), -np.inf)
        for commit, reading in knowledge.readings.items():
            logs = logs + self._evidence(self.contains[commit], reading)
        for trial in knowledge.trials:
            logs = logs + self._evidence(np.isin(np.arange(len(logs)), list(trial.suspects)), trial.reading)
        nothing = np.zeros(len(logs), dtype=bool)
        for commit, other in knowledge.ties:
            held = nothing if other is None else self.contains[other]
            logs = logs + np.where(self.contains[commit] != held, math.log(UNTIED), 0.0)
        weights = np.exp(logs - logs.max())
        probabilities: Floats = weights / weights.sum()
        return probabilities

    def _evidence(self, held: Bools, reading: Reading) -> Floats:
        before, after = self._log_likelihoods(np.array([reading.effect]), reading.error)
        logs: Floats = np.where(held, after[0], before[0])
        return logs

    def holds(self, reading: Reading) -> float:
        """Return the probability that a commit with this reading holds the culprit, by the reading alone."""
        before, after = self._log_likelihoods(np.array([reading.effect]), reading.error)
        return _probability(float(after[0] - before[0]))

    def information(self, held: Floats, reading: Reading | None, error: float) -> Floats:
        """Return how many bits (m,) one more measurement with `error` is expected to tell about whether a commit holds the culprit.

        `held` (m,) is the present probability that it does, `reading` what is known of it. The next value is drawn from three kinds of
        commits: before the culprit, from it on, misled; each with the mean and variance that the reading leaves it.
        """
        held = np.clip(held, 1e-12, 1 - 1e-12)
        present = np.log(held / (1 - held))
        odds = present
        if reading is not None:
            before, after = self._log_likelihoods(np.array([reading.effect]), reading.error)
            odds = present + before - after
        left = np.zeros(len(held))
        for share, kind in zip(self._shares(held, reading), self._kinds(), strict=True):
            values, joined_error = _predicted(*kind, reading, error)
            before, after = self._log_likelihoods(values, joined_error)
            left += share * (_entropies(odds[:, np.newaxis] + after - before) @ _WEIGHTS)
        bits: Floats = np.maximum(_entropies(present) - left, 0.0)
        return bits

    def _kinds(self) -> tuple[tuple[float, float], ...]:
        """Return mean and standard deviation of the true effect before the culprit, from it on, and where it misleads."""
        effect, spread = self.expected.effect, math.hypot(0.0 if self.exact else LAYOUT, LEAN * self.expected.effect)
        return (0.0, spread), (effect, math.hypot(spread, self.expected.error)), (effect / 2, abs(effect))

    @property
    def _misled(self) -> float:
        return MISLED_EXACT if self.exact else MISLED

    def _log_likelihoods(self, effects: Floats, error: float) -> tuple[Floats, Floats]:
        """Return the log-likelihoods (m,) of effects (m,) before the culprit and from it on."""
        dense = [_density(effects - mean, math.hypot(error, spread)) for mean, spread in self._kinds()]
        before, after = (np.log((1 - self._misled) * density + self._misled * dense[2]) for density in dense[:2])
        return before, after

    def _shares(self, held: Floats, reading: Reading | None) -> tuple[Floats, Floats, Floats]:
        """Return the probabilities (m,) that a commit is before the culprit, holds it, or misleads."""
        misled = np.full(len(held), self._misled)
        if reading is not None:
            dense = [float(_density(np.array(reading.effect - mean), math.hypot(reading.error, spread))) for mean, spread in self._kinds()]
            usual = (1 - held) * dense[0] + held * dense[1]
            misled = misled * dense[2] / ((1 - misled) * usual + misled * dense[2])
        return (1 - misled) * (1 - held), (1 - misled) * held, misled


def _predicted(mean: float, spread: float, reading: Reading | None, error: float) -> tuple[Floats, float]:
    """Return the values at `_NODES` that a commit's joined reading will take, and its error, after one more measurement with `error`."""
    if reading is None:
        return mean + _NODES * math.hypot(spread, error), error
    present, fresh, own = (max(deviation, 1e-9) ** 2 for deviation in (reading.error, error, spread))
    variance = 1 / (1 / present + 1 / own)
    true = variance * (reading.effect / present + mean / own)
    drawn = true + _NODES * math.sqrt(variance + fresh)
    joined: Floats = (reading.effect / present + drawn / fresh) / (1 / present + 1 / fresh)
    return joined, 1 / math.sqrt(1 / present + 1 / fresh)


def _density(distances: Floats, scale: float) -> Floats:
    """Return the normal density, up to a factor that all have in common; never 0. What is further away than it allows misleads."""
    scale = max(scale, 1e-6)
    density: Floats = np.exp(-0.5 * (distances / scale) ** 2) / scale + 1e-300
    return density


def _probability(odds: float) -> float:
    return 1 / (1 + math.exp(-max(min(odds, 700.0), -700.0)))


def _entropies(odds: Floats) -> Floats:
    """Return the entropy, in bits, of a yes or no with these odds (as logarithms)."""
    odds = np.clip(np.abs(odds), 0.0, 700.0)
    p = 1 / (1 + np.exp(odds))
    entropy: Floats = (np.log1p(np.exp(-odds)) + p * odds) / math.log(2)
    return entropy


def kinds(contains: Bools, answering: Bools) -> Ints:
    """Return a label (n,) per commit: commits of one label are told apart by none of those that can be measured, `answering` (n,)."""
    seen = contains[answering]
    if not len(seen):
        return np.zeros(contains.shape[1], dtype=np.int64)
    first: dict[bytes, int] = {}
    labels: Ints = np.array([first.setdefault(column.tobytes(), len(first)) for column in seen.T], dtype=np.int64)
    return labels


def likeliest(weights: Floats, labels: Ints) -> tuple[frozenset[int], float]:
    """Return the likeliest culprit, with all possible ones that cannot be told from it, and their probability."""
    sums = np.bincount(labels, weights=weights)
    best = int(sums.argmax())
    return frozenset(np.flatnonzero((labels == best) & (weights > 0)).tolist()), float(sums[best])


def credible(weights: Floats, confidence: float) -> tuple[int, ...]:
    """Return the fewest commits that hold the culprit with `confidence`, the likeliest first."""
    order = np.argsort(-weights, kind="stable")
    count = int(np.searchsorted(np.cumsum(weights[order]), confidence - 1e-12)) + 1
    return tuple(order[:count].tolist())


def chances(count: int, skipped: Sequence[int], measured: Sequence[int]) -> Floats:
    """Return the chance (n,) that each commit can be measured: what broke one may well break its neighbours in the list."""
    chance = np.ones(count)
    places = np.arange(count)
    for commit in skipped:
        chance *= 1 - NEARBY ** np.maximum(np.abs(places - commit), 1)
    chance[list(measured)] = 1.0
    chance[list(skipped)] = 0.0
    return chance


@dataclass(frozen=True, slots=True)
class Measure:
    """Next, measure this commit against the good end."""

    commit: int


@dataclass(frozen=True, slots=True)
class Confirm:
    """Next, measure the step from what stands before the suspects to the last of them, with fresh runs."""

    suspects: frozenset[int]


@dataclass(frozen=True, slots=True)
class CulpritSet:
    """The end: the culprit is among `suspects` with `probability`. More than one where no measurement can tell them apart.

    Not `certain`: the asked confidence was not reached, and the suspects are the fewest commits that hold the culprit with it.
    """

    suspects: frozenset[int]
    probability: float
    certain: bool


@dataclass(frozen=True, slots=True)
class Terms:
    """What a search may spend: commits (n,) that may be measured, the cost (n,) of measuring each, the error expected of a measurement, and
    the confidence that ends it.
    """

    eligible: Bools
    cost: Floats
    error: float
    confidence: float = 0.95


def next_commit(search: Search, weights: Floats, knowledge: Knowledge, terms: Terms) -> int | None:
    """Return the commit whose measurement is expected to tell most for its cost, None where none would tell anything."""
    held = np.clip(search.contains @ weights, 0.0, 1.0)
    values = search.information(held, None, terms.error)
    for commit, reading in knowledge.readings.items():
        values[commit] = search.information(held[commit : commit + 1], reading, terms.error)[0]
    values[values < WORTHLESS] = 0.0
    chance = chances(len(weights), knowledge.skipped, list(knowledge.readings)) * terms.eligible
    worth = values * chance / terms.cost
    return int(worth.argmax()) if worth.max() > 0 else None


def decide(search: Search, knowledge: Knowledge, terms: Terms) -> Measure | Confirm | CulpritSet:
    """Return the next step: measure a commit, confirm suspects, or end."""
    count = len(search.prior)
    weights = search.posterior(knowledge)
    answering = np.ones(count, dtype=bool)
    answering[list(knowledge.skipped)] = False
    best, probability = likeliest(weights, kinds(search.contains, answering))
    tried = any(trial.suspects == best for trial in knowledge.trials)
    if probability >= terms.confidence:
        return CulpritSet(best, probability, certain=True) if tried else Confirm(best)
    commit = None
    if knowledge.measurements < PATIENCE * (math.log2(count) + 4):
        commit = next_commit(search, weights, knowledge, terms)
    if commit is not None:
        return Measure(commit)
    if probability >= EVEN and not tried:
        return Confirm(best)
    among = credible(weights, terms.confidence)
    return CulpritSet(frozenset(among), float(weights[list(among)].sum()), certain=False)


def remaining(weights: Floats) -> float:
    """Return how many bits are missing to know the culprit, which is about how many measurements are left."""
    present = weights[weights > 0]
    return float(-(present * np.log2(present)).sum())
