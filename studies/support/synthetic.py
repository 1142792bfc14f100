"""Calls with known truth from a seeded generator: the controlled table, what Freud's own statistics program was asked, and more.

Ten features, of which `f0` matters, 5 % multiplicative noise, twenty runs, unless a case says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

import sampled
from perfdiff.records.arrays import Floats
from perfdiff.records.schema import SampleTable

NOISE = 0.05
FEATURES = 10
LARGEST = 1000
SLOPE = 20.0
Cost = Callable[[np.random.Generator, Mapping[str, Floats]], Floats]
Inputs = Callable[[np.random.Generator, Floats], Mapping[str, Floats]]


@dataclass(frozen=True, slots=True)
class Truth:
    """How calls are made, and the class that is right. `features` are those that the class must be put down to, or their twins.

    `scopes` is the number of scopes where there are several, `slope` the coefficient of its only linear term.
    """

    name: str
    right: str
    cost: Cost
    features: frozenset[str] = frozenset({"f0"})
    more: Inputs = lambda rng, x: {}
    labels: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    scopes: int | None = None
    slope: float | None = None


def calls(truth: Truth, records: int, seed: int) -> SampleTable:
    """Return so many calls."""
    rng = np.random.default_rng(seed)
    columns: dict[str, Floats] = {f"f{i}": rng.integers(0, LARGEST, records).astype(np.float64) for i in range(FEATURES)}
    columns |= truth.more(rng, columns["f0"])
    return sampled.table(columns, truth.cost(rng, columns), labels=truth.labels)


def noisy(shape: Callable[[Mapping[str, Floats]], Floats]) -> Cost:
    """Return a cost with multiplicative noise."""
    return lambda rng, columns: shape(columns) * (1 + NOISE * rng.standard_normal(len(columns["f0"])))


def exponential(rng: np.random.Generator, columns: Mapping[str, Floats]) -> Floats:
    """Return a linear cost with delays."""
    return 500 + SLOPE * columns["f0"] + rng.exponential(3000, len(columns["f0"]))


def three(rng: np.random.Generator, columns: Mapping[str, Floats]) -> Floats:
    """Return one of three costs at random."""
    n = len(columns["f0"])
    return rng.choice([1000.0, 3000.0, 9000.0], n, p=[0.5, 0.3, 0.2]) * (1 + NOISE * rng.standard_normal(n))


def log2(x: Floats) -> Floats:
    """Return the logarithm, 0 for 0."""
    return np.log2(np.maximum(x, 1))


def twin(rng: np.random.Generator, x: Floats) -> dict[str, Floats]:
    """Return a feature that nearly is `x`."""
    return {"twin": x + rng.normal(0, 20, len(x))}


def many(rng: np.random.Generator, x: Floats) -> dict[str, Floats]:
    """Return twenty more features that mean nothing."""
    return {f"g{i}": rng.integers(0, LARGEST, len(x)).astype(np.float64) for i in range(20)}


def codes(name: str, values: int) -> Inputs:
    """Return a further feature of so many values."""
    return lambda rng, x: {name: rng.integers(0, values, len(x)).astype(np.float64)}


MODES = {"mode": {0: "SLOW", 1: "FAST", 2: "OTHER"}}
FLAG = {"flag": {0: "false", 1: "true"}}
ALL = (
    Truth("linear", "linear", noisy(lambda c: 500 + SLOPE * c["f0"]), slope=SLOPE),
    Truth("quadratic", "quadratic", noisy(lambda c: 500 + 3 * c["f0"] ** 2)),
    Truth("cubic", "cubic", noisy(lambda c: 500 + 0.01 * c["f0"] ** 3)),
    Truth("logarithmic", "logarithmic", noisy(lambda c: 500 + 300 * log2(c["f0"]))),
    Truth("n log n", "n log n", noisy(lambda c: 300 + 5 * c["f0"] * log2(c["f0"]))),
    Truth(
        "product of two features",
        "quadratic",
        noisy(lambda c: 500 + 0.5 * c["f0"] * c["f1"]),
        features=frozenset({"f0", "f1"}),
    ),
    Truth(
        "two modes by an enum",
        "piecewise",
        noisy(lambda c: np.where(c["mode"] == 1, 1000 + 50 * c["f0"], 5000.0)),
        more=codes("mode", 3),
        labels=MODES,
        scopes=2,
    ),
    Truth(
        "two modes by a flag",
        "linear",  # in each of them
        noisy(lambda c: np.where(c["flag"] == 1, 1000 + 50 * c["f0"], 2000 + 10 * c["f0"])),
        more=codes("flag", 2),
        labels=FLAG,
        scopes=2,
    ),
    Truth(
        "another cost above a threshold", "piecewise", noisy(lambda c: np.where(c["f0"] > 600, 40_000.0, 500 + SLOPE * c["f0"])), scopes=2
    ),
    Truth("constant", "constant", noisy(lambda c: np.full(len(c["f0"]), 1000.0)), features=frozenset()),
    Truth("mixture of three", "mixture", three, features=frozenset()),
    Truth("linear + exponential noise", "linear", exponential, slope=SLOPE),
    Truth("correlated twin", "linear", noisy(lambda c: 500 + SLOPE * c["f0"]), more=twin, slope=SLOPE),
    Truth("30 features", "linear", noisy(lambda c: 500 + SLOPE * c["f0"]), more=many, slope=SLOPE),
)
