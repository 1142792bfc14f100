"""The baselines of AutoPerf's Table 1 on the calls of `simulated_counts`: a decision tree, and unsupervised behaviour learning.

Neither is part of perfdiff. The tree (Jayasena et al. 2013) is taught with labelled calls of all other programs, by ratios of counters to
the work of a call; it knows sharing and bad locality, and no memory of other nodes. Behaviour learning (UBL; Dean, Nguyen and Gu 2012)
is a self-organising map of base's calls: a call is odd whose nearest neuron is far from its neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from sklearn.tree import DecisionTreeClassifier

from perfdiff.analysis.counts.scoring import PreparedCalls, ScoredCalls, ScoredFunction
from perfdiff.models.detectors.detector import DetectorKind, Threshold, Training
from perfdiff.records.arrays import Floats
from perfdiff.records.schema import SampleTable
from simulated_counts import COUNTERS, PROGRAMS, Edit, Program, Setting, pair

FIRST_SEED = 9_000_000  # of calls that trees are taught with; none of those that are judged
TAUGHT = (Edit.NONE, Edit.FALSE_SHARING, Edit.TRUE_SHARING, Edit.LOCALITY)
TAUGHT_FACTOR, TAUGHT_THREADS, TAUGHT_RUNS = 100.0, 4, 10
SHOWN_BY = {Edit.FALSE_SHARING: "hitm_false", Edit.TRUE_SHARING: "hitm", Edit.LOCALITY: "l2_misses"}
DEPTH = 6
SIDE = 32  # of the map, as in UBL; AutoPerf took 120
ROUNDS = 15  # over all calls, the neighbourhood shrinking from a quarter of the map to one neuron
ROWS = 500  # calls that a map is learnt from at most
USUAL = 0.85  # of the neurons are usual, as in UBL


@dataclass(frozen=True, slots=True)
class Map:
    """A self-organising map: `weights` (s, s, c) of its neurons, and how far each lies from its neighbours, `areas` (s, s)."""

    weights: Floats
    areas: Floats

    @classmethod
    def learn(cls, training: Training) -> Map:
        """Learn from base's calls, all at once in each round (Kohonen's batch map), from a seeded start."""
        rng = np.random.default_rng(training.seed)
        blurred = training.blurred()
        rows = blurred[:: -(-len(blurred) // ROWS)]
        weights = rows[rng.integers(0, len(rows), SIDE * SIDE)] + 0.1 * rng.standard_normal((SIDE * SIDE, rows.shape[1]))
        place = np.stack(np.meshgrid(np.arange(SIDE), np.arange(SIDE), indexing="ij"), axis=-1).reshape(-1, 2)
        apart = ((place[:, None] - place[None]) ** 2).sum(axis=2)
        for reach in np.geomspace(SIDE / 4, 0.5, ROUNDS):
            near = np.exp(-apart / (2 * reach**2))[_nearest(rows, weights)]
            shares = near.sum(axis=0)[:, None]
            weights = np.where(shares > 1e-6, near.T @ rows / np.maximum(shares, 1e-6), weights)
        return cls(weights, _areas(weights.reshape(SIDE, SIDE, -1)))

    def errors(self, rows: Floats) -> Floats:
        """Return how far each call's neuron lies from its neighbours (n,)."""
        return np.asarray(self.areas[_nearest(rows, self.weights)])

    def parts(self, rows: Floats) -> Floats:
        """Return how far each counter lies from the nearest usual neuron's (n, c)."""
        usual = self.weights[self.areas <= np.quantile(self.areas, USUAL)]
        return np.asarray(np.abs(rows - usual[_nearest(rows, usual)]))


def _nearest(rows: Floats, weights: Floats) -> Any:
    return ((weights**2).sum(axis=1)[None] - 2 * rows @ weights.T).argmin(axis=1)


def _areas(neurons: Floats) -> Floats:
    """Return the sum of Manhattan distances of each neuron to those above, below and beside it; edges have fewer, so their mean by four."""
    sums, many = np.zeros(neurons.shape[:2]), np.zeros(neurons.shape[:2])
    for axis in (0, 1):
        steps = np.abs(np.diff(neurons, axis=axis)).sum(axis=2)
        for part in (slice(None, -1), slice(1, None)):
            place = (part, slice(None)) if axis == 0 else (slice(None), part)
            sums[place] += steps
            many[place] += 1
    return np.asarray(4 * sums / many).ravel()


def learn_map(_: DetectorKind, training: Training) -> Map:
    """Learn a map, where a detector of perfdiff's would be learnt."""
    return Map.learn(training)


@cache
def _tree(left_out: str) -> DecisionTreeClassifier:
    """Return a tree that was taught with all programs but one."""
    rows, labels = [], []
    for place, program in enumerate(each for each in PROGRAMS if each.name != left_out):
        for edit in TAUGHT:
            setting = Setting(program, TAUGHT_THREADS, TAUGHT_RUNS, TAUGHT_FACTOR)
            ratios = _ratios(pair(setting, edit, FIRST_SEED + place)[1])
            rows.append(ratios)
            labels += [edit.name] * len(ratios)
    return DecisionTreeClassifier(max_depth=DEPTH, random_state=0).fit(np.concatenate(rows), labels)


def _ratios(table: SampleTable) -> Floats:
    """Return the counters of each call over its basic blocks (n, c)."""
    blocks = np.maximum(table.metrics["blocks"], 1.0)
    return np.column_stack([table.metrics[name] / blocks for name in COUNTERS if name != "blocks"])


def judged_by_tree(program: Program, prepared: PreparedCalls) -> ScoredFunction:
    """Return what a tree says of a program's calls that it has not seen: an error of 1 is a call of a class that is no good one."""
    tree = _tree(program.name)
    sides = (_classified(tree, *each, prepared.counters) for each in zip(prepared.tables, prepared.residuals, strict=True))
    base, head = sides
    return ScoredFunction(DetectorKind.MAHALANOBIS, prepared.counters, (base, head), Threshold(0.5, 0.5, 0.5))


def _classified(tree: DecisionTreeClassifier, table: SampleTable, residuals: Any, counters: Sequence[str]) -> ScoredCalls:
    classes = tree.predict(_ratios(table))
    parts = np.zeros((len(table), len(counters)))
    for edit, counter in SHOWN_BY.items():
        if counter in counters:
            parts[classes == edit.name, counters.index(counter)] = 1.0
    return ScoredCalls(table, residuals, (classes != Edit.NONE.name).astype(np.float64), parts, parts)
