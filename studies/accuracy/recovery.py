"""Do the 95 % intervals hold the truth? Coefficients and ratios of made-up experiments, and of a program that spins for a known time.

Made-up calls scatter by 5 %, functions by 2 % from run to run, whole runs by 2 %. Every function of a world is one trial.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import binom

from experiments import Columns, Made, Noise, World
from perfdiff import pipeline
from perfdiff.analysis.analysis import analyse
from perfdiff.analysis.findings import MetricFinding
from perfdiff.config import CompareConfig
from perfdiff.progress import Silent
from perfdiff.records.schema import Change, Side
from studies.null import CONFIDENCE
from studies.support import figures, spinning
from studies.support.sizes import Size, listed, request, say, share

METRIC = "self_ns"
LOW, HIGH = 0.90, 0.99  # the bar for coverage
MISSED = "**missed**"
WORLDS = {
    Size.QUICK: {10: 5},
    Size.SHORT: {5: 40, 10: 60, 20: 20},
    Size.LONG: {5: 200, 10: 200, 20: 100},
    Size.FULL: {5: 400, 10: 400, 20: 400},
}
REAL = {Size.QUICK: 1, Size.SHORT: 1, Size.LONG: 4, Size.FULL: 20}  # comparisons with each head
REAL_RUNS = 10
SPINNING = "spinning"  # the program whose calls last as long as they are asked to
FIRST_SEED = 7_000_000


@dataclass(frozen=True, slots=True)
class Law:
    """A cost as coefficients by term, on both sides."""

    name: str
    base: Mapping[str, float]
    head: Mapping[str, float]

    def cost(self, side: Side, inputs: Columns) -> np.ndarray:
        """Return the cost of calls."""
        n = inputs["n"]
        columns = {"1": np.ones(len(n)), "n": n, "n*log2(n)": n * np.log2(n), "n^2": n * n}
        terms = self.head if side is Side.HEAD else self.base
        return np.asarray(np.sum([coefficient * columns[term] for term, coefficient in terms.items()], axis=0))

    def shift(self, term: str) -> float:
        """Return what head adds to a coefficient."""
        return self.head.get(term, 0.0) - self.base.get(term, 0.0)

    @property
    def ratio(self) -> float | None:
        """Return head over base where it is the same for all inputs."""
        ratios = {self.head[term] / self.base[term] for term in self.base}
        return ratios.pop() if len(ratios) == 1 and self.head.keys() == self.base.keys() else None


LAWS = (
    Law("unchanged", {"1": 500, "n": 20}, {"1": 500, "n": 20}),
    Law("constant + 10 %", {"1": 5000}, {"1": 5500}),
    Law("all of a line + 10 %", {"1": 2000, "n": 20}, {"1": 2200, "n": 22}),
    Law("slope + 10 %", {"1": 5000, "n": 20}, {"1": 5000, "n": 22}),
    Law("intercept + 20 %", {"1": 20_000, "n": 5}, {"1": 24_000, "n": 5}),
    Law("n log n + 10 %", {"1": 20_000, "n*log2(n)": 5}, {"1": 20_000, "n*log2(n)": 5.5}),
    Law("square + 10 %", {"1": 20_000, "n": 10, "n^2": 0.02}, {"1": 20_000, "n": 10, "n^2": 0.022}),
)


def spread(_: Side, n: float, count: int, rng: np.random.Generator) -> Columns:
    """Return inputs below the size of a point."""
    return {"n": rng.uniform(n / 4, n, count)}


def world(runs: int, seed: int) -> World:
    """Return an experiment with a function for each law."""
    functions = tuple(Made(law.name, law.cost, Change.CHANGED, calls=lambda side, n: {"": 400}, inputs=spread) for law in LAWS)
    return World(functions, sizes=(1000, 3000, 10_000), runs=runs, noise=Noise(), seed=seed)


Counts = dict[tuple[str, int, str], list[bool]]  # law, runs, what: was the truth inside?


def note(counts: Counts, law: Law, runs: int, metric: MetricFinding) -> bool:
    """Count whether the intervals of one function hold the truth; return whether base's annotation has the true terms."""
    if law.ratio is not None and metric.overall is not None:
        counts[law.name, runs, "ratio"].append(metric.overall.low <= law.ratio <= metric.overall.high)
    terms = {shift.term for shift in metric.coefficients}
    if not set(law.base) <= terms:
        return False
    for shift in metric.coefficients:
        counts[law.name, runs, shift.term].append(shift.low <= law.shift(shift.term) <= shift.high)
    return True


def simulated(size: Size, counts: Counts, misfits: dict[str, int]) -> None:
    """Analyse made-up experiments."""
    for runs, worlds in WORLDS[size].items():
        start = time.perf_counter()
        for seed in range(1, worlds + 1):
            made = world(runs, 1000 * runs + seed)
            findings = analyse(made.experiment(), made.samples, CompareConfig())
            by_name = {function.info.name: function.metrics[METRIC] for function in findings.functions}
            for law in LAWS:
                misfits[law.name] += not note(counts, law, runs, by_name[law.name])
        say(f"{worlds} worlds with {runs} runs a side: {time.perf_counter() - start:.1f} s")


def real(size: Size, room: Path, counts: Counts) -> list[str]:
    """Compare the spinning program with its slower heads; return the ratios that missed the truth.

    The true coefficient of base is not known, so that the shift is held against base's estimate times the known factor.
    """
    missed = []
    for trial in range(REAL[size]):
        for turn in range(len(spinning.FACTORS)):
            asked = request(
                spinning.program(room),
                ("base", f"head{turn}"),
                spinning.workload(REAL_RUNS),
                room / "cache",
                seed=FIRST_SEED + 1000 * trial + turn,
            )
            findings = pipeline.compare(asked, Silent()).findings
            by_name = {function.info.name: function.metrics[METRIC] for function in findings.functions if METRIC in function.metrics}
            say(f"spinning, head{turn}, trial {trial + 1}: {', '.join(by_name)}")
            for name, factor in spinning.added(turn).items():
                metric = by_name.get(name)
                if metric is None or metric.overall is None:
                    missed.append(f"`{name}` + {factor:.0%} has no ratio")
                    continue
                inside = metric.overall.low <= 1 + factor <= metric.overall.high
                counts[SPINNING, REAL_RUNS, "ratio"].append(inside)
                if not inside:
                    missed.append(f"`{name}` + {factor:.0%}: {metric.overall.low:.3f} to {metric.overall.high:.3f}")
                for shift in metric.coefficients:
                    if shift.term == "n":
                        counts[SPINNING, REAL_RUNS, "n"].append(shift.low <= factor * shift.base <= shift.high)
    return missed


def judge(inside: Sequence[bool]) -> str:
    """Say whether coverage keeps the bar; "open" where the trials are too few to say that it does not."""
    n, seen = len(inside), sum(inside)
    if n and LOW <= seen / n <= HIGH:
        return "kept"
    # Both tails of the binomial distribution at the bars.
    missed = binom.cdf(seen, n, LOW) < (1 - CONFIDENCE) / 2 or binom.sf(seen - 1, n, HIGH) < (1 - CONFIDENCE) / 2
    return MISSED if missed else "open"


def run(size: Size, room: Path) -> None:
    """Print the table."""
    counts: Counts = defaultdict(list)
    misfits: dict[str, int] = defaultdict(int)
    with figures.printed("(e) Intervals that hold the truth", "experiment", "runs", "of", "inside", f"{LOW:.0%} to {HIGH:.0%}") as table:
        simulated(size, counts, misfits)
        missed = real(size, room, counts)
        misses = []
        for (name, runs, what), inside in counts.items():
            judged = judge(inside)
            table.add(name, runs, what, share(sum(inside), len(inside)), judged)
            misses += [f"{what} of {name} with {runs} runs"] * (judged == MISSED)
        for label, is_real in (("all made up", False), ("all real", True)):
            for what in ("ratios", "coefficients"):
                all_of = [
                    each
                    for (name, _, term), inside in counts.items()
                    if (name == SPINNING) == is_real and (term == "ratio") == (what == "ratios")
                    for each in inside
                ]
                table.add(label, "all", what, share(sum(all_of), len(all_of)), judge(all_of))
        others = ", ".join(f"{name} {count}" for name, count in misfits.items() if count)
        table.remarks += [
            f"Annotations of base without one of the true terms, where coefficients cannot be compared: {others or 'none'}.",
            listed("Missed", misses),
            listed("Real ratios outside", missed),
        ]
