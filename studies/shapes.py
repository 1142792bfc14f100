"""Made-up costs whose law is known, learnt on some runs: the class that is told, and the error at held-out inputs, for each law and design.

Laws that annotations have long had stand beside those that they lacked: no cure of the latter may make the former come out otherwise.
"""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

import sampled
from perfdiff.models.annotation import Annotation
from perfdiff.models.fitting import fit
from perfdiff.records.arrays import Floats, Ints
from perfdiff.records.schema import SampleTable
from studies.support import figures

NOISE = 0.05
RUNS = 20
CALLS = 1000
STRANGERS = 4  # features that say nothing
HELD_OUT = 200
SEEDS = 10
TIMED = 300  # fits
Columns = Mapping[str, Floats]
METRIC = "wall_ns"


@dataclass(frozen=True, slots=True)
class Law:
    """A cost over features, and what is to be told of it."""

    name: str
    classes: frozenset[str]
    cost: Callable[[Columns], Floats]
    features: tuple[str, ...] = ("n",)
    is_new: bool = False


def told(*classes: str) -> frozenset[str]:
    """Return the classes that are right."""
    return frozenset(classes)


def log2(x: Floats) -> Floats:
    """Return the logarithm."""
    return np.log2(np.maximum(x, 1.0))


FIVE = ("n", "m", "k", "q", "r")
SIX = (*FIVE, "s")
LAWS = (
    Law("constant", told("constant"), lambda c: np.full(len(c["n"]), 1000.0)),
    Law("log n", told("logarithmic"), lambda c: 200 + 300 * log2(c["n"])),
    Law("n", told("linear"), lambda c: 400 + 12 * c["n"]),
    Law("n log n", told("n log n"), lambda c: 400 + 6 * c["n"] * log2(c["n"])),
    Law("n²", told("quadratic"), lambda c: 400 + 100 * c["n"] + 2 * c["n"] ** 2),
    Law("n³", told("cubic"), lambda c: 400 + 0.5 * c["n"] ** 3),
    Law("n + m", told("linear"), lambda c: 400 + 12 * c["n"] + 9 * c["m"], ("n", "m")),
    Law("n·m", told("quadratic"), lambda c: 300 + 2 * c["n"] * c["m"], ("n", "m")),
    Law("n·log m", told("n log n"), lambda c: 300 + 9 * c["n"] * log2(c["m"]), ("n", "m")),
    Law("n + n·m", told("quadratic"), lambda c: 300 + 40 * c["n"] + 2 * c["n"] * c["m"], ("n", "m")),
    Law("n + m + k", told("linear"), lambda c: 400 + 12 * c["n"] + 9 * c["m"] + 10 * c["k"], ("n", "m", "k")),
    Law("1/t", told("inverse"), lambda c: 80_000 / c["t"], ("t",), is_new=True),
    Law("1 + 1/t", told("inverse"), lambda c: 5000 + 80_000 / c["t"], ("t",), is_new=True),
    Law("t + 1/t", told("inverse"), lambda c: 900 * c["t"] + 80_000 / c["t"], ("t",), is_new=True),
    Law("n/t", told("linear", "inverse"), lambda c: 500 + 200 * c["n"] / c["t"], ("n", "t"), is_new=True),
    Law("five inputs", told("linear"), lambda c: 400 + 10 * np.sum([c[name] for name in FIVE], axis=0), FIVE, is_new=True),
    Law("six inputs", told("linear"), lambda c: 400 + 10 * np.sum([c[name] for name in SIX], axis=0), SIX, is_new=True),
    Law("n·m²", told("cubic"), lambda c: 300 + 0.5 * c["n"] * c["m"] ** 2, ("n", "m"), is_new=True),
    Law("n - n·t", told("quadratic", "linear"), lambda c: 2000 + 150 * c["n"] - 2 * c["n"] * c["t"], ("n", "t"), is_new=True),
    Law(
        "n - n·t in a scope",
        told("quadratic", "linear", "piecewise"),
        lambda c: np.where(c["flag"] > 0, 9000 + 260 * c["n"], 2000 + 150 * c["n"] - 2 * c["n"] * c["t"]),
        ("n", "t", "flag"),
        is_new=True,
    ),
    Law("n·log n·m·log m", told("quadratic"), lambda c: 300 + 0.5 * c["n"] * log2(c["n"]) * c["m"] * log2(c["m"]), ("n", "m"), is_new=True),
)
Inputs = Callable[[np.random.Generator, int], Floats]


@dataclass(frozen=True, slots=True)
class Design:
    """Sizes and numbers of threads that calls have: those learnt from, and those held out. In some, every run repeats the same ones."""

    name: str
    sizes: Inputs
    threads: Inputs
    held_sizes: Inputs
    held_threads: Inputs
    is_repeated: bool = False


def whole(low: int, high: int) -> Inputs:
    """Return whole numbers of a range, all as likely."""
    return lambda rng, n: rng.integers(low, high + 1, n).astype(np.float64)


def powers(base: float, highest: float) -> Inputs:
    """Return whole numbers whose logarithms are all as likely."""
    return lambda rng, n: np.asarray(np.floor(base ** rng.uniform(0, highest, n)), np.float64)


def some(*values: float) -> Inputs:
    """Return one of a few values."""
    return lambda rng, n: np.asarray(rng.choice(values, n), np.float64)


FEW = (some(100, 300, 1000, 3000, 10_000), some(1, 2, 4, 8, 16), some(200, 600, 2000, 6000), some(3, 6, 12))
DESIGNS = (
    Design("of 1,000", whole(1, 1000), whole(1, 16), whole(1, 1000), whole(1, 16)),
    Design("decades", powers(10, 4), powers(2, 6), powers(10, 4), powers(2, 6)),
    Design("few sizes", *FEW),
    Design("few, repeated", *FEW, is_repeated=True),
)


def inputs(law: Law, sizes: Inputs, threads: Inputs, rng: np.random.Generator, count: int) -> dict[str, Floats]:
    """Return the inputs of calls, with some that say nothing."""
    names = (*law.features, *(f"f{place}" for place in range(STRANGERS)))
    draws = {"t": threads, "flag": whole(0, 1)}
    return {name: draws.get(name, sizes)(rng, count) for name in names}


def calls(law: Law, design: Design, seed: int) -> tuple[SampleTable, Columns]:
    """Return calls to learn from and held-out inputs."""
    rng = np.random.default_rng(seed)
    run: Ints = np.arange(CALLS) % RUNS
    columns = inputs(law, design.sizes, design.threads, rng, CALLS)
    if design.is_repeated:
        run = np.repeat(np.arange(RUNS), CALLS // RUNS)
        columns = {name: np.tile(column[: CALLS // RUNS], RUNS) for name, column in columns.items()}
    held = inputs(law, design.held_sizes, design.held_threads, rng, HELD_OUT)
    slow = 1 + 0.02 * rng.standard_normal(RUNS)
    labels = {"flag": {0: "false", 1: "true"}} if "flag" in columns else {}
    return sampled.table(columns, sampled.noisy(rng, law.cost(columns) * slow[run], NOISE), run=run, labels=labels), held


def error(law: Law, annotation: Annotation, held: Columns) -> float:
    """Return the median error of the expected costs of held-out inputs."""
    truth = law.cost(held)
    return float(np.median(np.abs(annotation.predict(dict(held)) - truth) / truth))


def rows(seeds: int) -> Iterator[tuple[str, ...]]:
    """Yield what is told of each law in each design."""
    for law in LAWS:
        for design in DESIGNS:
            classes: Counter[str] = Counter()
            right, errors, r2 = 0, [], []
            for seed in range(seeds):
                table, held = calls(law, design, seed)
                annotation = fit(table, METRIC, seed=1)
                classes[annotation.cost_class.value] += 1
                is_right = set(annotation.features) == set(law.features if law.name != "constant" else ())
                right += annotation.cost_class.value in law.classes and is_right
                errors.append(error(law, annotation, held))
                r2.append(annotation.cv_r2)
            said = ", ".join(f"{kind} {count}" for kind, count in classes.most_common())
            yield (
                law.name,
                design.name,
                f"{right} of {seeds}",
                said,
                f"{np.median(errors):.1%}",
                f"{max(errors):.1%}",
                f"{np.median(r2):.3f}",
            )


def seconds() -> float:
    """Return the CPU time of a fit, over laws that annotations have long had."""
    tables = [calls(law, design, seed)[0] for law in LAWS if not law.is_new for design in DESIGNS for seed in range(7)][:TIMED]
    start = time.process_time()
    for table in tables:
        fit(table, METRIC, seed=1)
    return (time.process_time() - start) / len(tables)


def main() -> int:
    """Print the table."""
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else SEEDS
    fit(calls(LAWS[0], DESIGNS[0], 0)[0], METRIC, seed=1)
    columns = ("law", "inputs", "right", "classes told", "held-out error", "largest", "cross-validated R²")
    with figures.printed("Shapes of costs", *columns) as table:
        for row in rows(seeds):
            table.add(*row)
        table.remarks.append(
            f"A fit takes {1000 * seconds():.1f} ms of CPU time, the mean of {TIMED} of the laws without inverse and longer ones."
        )
    return 0
