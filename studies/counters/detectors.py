"""Detectors on simulated counts: false alarms and misses of each, training time, functions that share models, and ROC curves.

Beside perfdiff's own stand AutoPerf's baselines (`baselines.py`). The calls are those of `tests/simulated_counts.py`: the truth
is known, and inputs, threads and scatter are such as real programs have. A head is a defect (false sharing, true sharing, remote memory,
worse locality; the first three need several threads, and with one thread are controls) or harmless.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from perfdiff.analysis.counts.anomaly import COSTLY, concluded
from perfdiff.analysis.counts.scoring import PreparedCalls, ScoredCalls, ScoredFunction, Tables, counters_of, judge, judge_together, prepare
from perfdiff.analysis.policy import POLICY
from perfdiff.config import CompareConfig
from perfdiff.models.detectors.detector import DetectorKind
from perfdiff.models.detectors.kinds import learn
from perfdiff.records.arrays import Floats
from perfdiff.report import picture
from simulated_counts import PROGRAMS, Edit, Make, Program, Setting, counts, pair, times
from studies.counters import baselines
from studies.support import figures

FIRST_SEED = 8_000_000
RUNS = 20
FULL_ROUNDS = 4
THREADS = (1, 2, 4)
CONFIG = CompareConfig()
DEFECTS = (Edit.FALSE_SHARING, Edit.TRUE_SHARING, Edit.REMOTE, Edit.LOCALITY)
SEVEN = PROGRAMS[:7]  # AutoPerf's program for Figure 5 has seven functions
MANY = 27  # functions that changed between two versions of MySQL (AutoPerf §4.3.3)
DEVIATIONS = 3.0  # a run is anomalous if its share of anomalous calls lies so far above base's runs, and materially
DRAWN = np.linspace(0, 1, 301) ** 2  # false positives at which curves are drawn
FALSE_POSITIVE_RATES = (0.01, 0.05, 0.10)
# Detectors are told apart without colours as well.
LINES = ("-", "--", "-.", ":", (0, (1, 3)), (0, (5, 1)), (0, (3, 1, 1, 1)))
TREE, MAP = "decision-tree", "behaviour-learning"  # baselines; the tree knows counters alone

Method = str  # a kind of detector by its name, or a baseline


@dataclass(frozen=True, slots=True)
class Trial:
    """One comparison: a program with so many threads, and what head changed."""

    program: Program
    threads: int
    edit: Edit
    seed: int

    @property
    def due(self) -> bool:
        """Return whether an alarm is due."""
        return not self.edit.harmless and (self.threads > 1 or not self.edit.shared)

    @property
    def setting(self) -> Setting:
        """Return the setting; a defect makes its counter 10 to 1000 times worse."""
        factor = 10 ** np.random.default_rng(self.seed).uniform(1, 3)
        return Setting(self.program, self.threads, RUNS, float(factor))

    def __str__(self) -> str:
        return f"{self.program.name}, {self.threads} threads, {self.edit} (×{self.setting.factor:.0f}), seed {self.seed}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a detector made of a trial: the verdict, the first vote, runs flagged one by one, and a score of every run, base and head."""

    alarm: bool
    first: str
    flagged: tuple[int, int]
    scores: tuple[Floats, Floats]
    seconds: float


def trials(rounds: int) -> Iterator[Trial]:
    """Yield every program with every number of threads and every edit, so many times."""
    for place, (_, program, threads, edit) in enumerate(product(range(rounds), PROGRAMS, THREADS, Edit)):
        yield Trial(program, threads, edit, FIRST_SEED + place)


def outcomes(trial: Trial, methods: Sequence[Method], make: Make) -> dict[Method, Outcome]:
    """Return what each detector makes of a trial."""
    tables = pair(trial.setting, trial.edit, trial.seed, make)
    prepared = prepare(tables, counters_of(*tables), CONFIG)
    if prepared is None:
        raise RuntimeError(f"{trial}: no calls to judge")
    found = {}
    for method in methods:
        start = time.perf_counter()
        judged = _judged(method, trial.program, prepared)
        anomaly = concluded(judged, CONFIG)
        first = anomaly.votes[0].counter if anomaly.votes else ""
        found[method] = Outcome(anomaly.is_anomalous, first, flagged(judged), _scores(judged), time.perf_counter() - start)
    return found


def _judged(method: Method, program: Program, prepared: PreparedCalls) -> ScoredFunction:
    if method == TREE:
        return baselines.judged_by_tree(program, prepared)
    if method == MAP:
        return judge([prepared], DetectorKind.MAHALANOBIS, baselines.learn_map)[0]
    return judge([prepared], DetectorKind(method))[0]


def flagged(judged: ScoredFunction) -> tuple[int, int]:
    """Return how many runs of base and of head are anomalous, each judged alone, as AutoPerf counts (§5.2)."""
    base, head = (_shares(side, judged) for side in judged.sides)
    usual, spread = float(base[0].mean()), float(base[0].std())
    smoothed = (usual * base[1].sum() + 0.5) / (base[1].sum() + 1)
    found = []
    for shares, calls in (base, head):
        chance = np.sqrt(smoothed * (1 - smoothed) / calls)
        found.append(int((shares > usual + np.maximum(POLICY.anomalous, DEVIATIONS * np.maximum(spread, chance))).sum()))
    return found[0], found[1]


def _shares(side: ScoredCalls, judged: ScoredFunction) -> tuple[Floats, Floats]:
    """Return the share of anomalous calls and the number of calls of every run."""
    index = np.unique(side.table.run, return_inverse=True)[1]
    calls = np.bincount(index).astype(np.float64)
    return np.bincount(index, side.anomalous(judged.threshold)) / calls, calls


def _scores(judged: ScoredFunction) -> tuple[Floats, Floats]:
    """Return a score of every run, in base's standard deviations: its mean error in thresholds, no call above 3."""
    sides = []
    for side in judged.sides:
        index = np.unique(side.table.run, return_inverse=True)[1]
        sides.append(np.bincount(index, np.minimum(side.errors / judged.threshold.value, 3.0)) / np.bincount(index))
    middle, spread = sides[0].mean(), max(float(sides[0].std()), 0.02)
    return (sides[0] - middle) / spread, (sides[1] - middle) / spread


def run(size: str, plots: Path | None) -> None:
    """Print all tables of this study; draw its ROC curves into a folder where one is named."""
    rounds = FULL_ROUNDS if size == "full" else 1
    kinds = tuple(kind for kind in DetectorKind if size != "quick" or kind not in COSTLY)
    for make, source in ((counts, "counts"), (times, "times and software metrics")):
        methods = (*kinds, *((TREE, MAP) if make is counts else (MAP,)))
        seen = compared(f"Detectors on simulated {source}", make, rounds, methods)
        scores = {method: _due_and_harmless(method, seen) for method in methods}
        roc(f"ROC of single runs, by {source}", scores)
        if plots is not None:
            plots.mkdir(parents=True, exist_ok=True)
            (plots / f"roc-{make.__name__}.svg").write_bytes(drawn(f"by {source}", scores))
    clusters([kind for kind in (DetectorKind.MAHALANOBIS, DetectorKind.AUTOENCODER) if kind in kinds])
    training(kinds)


def compared(title: str, make: Make, rounds: int, kinds: Sequence[Method]) -> list[tuple[Trial, dict[Method, Outcome]]]:
    """Print false positives and negatives of every detector, of comparisons and of single runs; return the outcomes."""
    columns = ("detector", "threads", "false alarms", "missed", "cause first", "runs: false positive", "runs: false negative", "seconds")
    seen = []
    with figures.printed(title, *columns) as table:
        for trial in trials(rounds):
            seen.append((trial, outcomes(trial, kinds, make)))
        for kind in kinds:
            for threads in (*THREADS, None):
                own = [(trial, found[kind]) for trial, found in seen if threads in (None, trial.threads)]
                table.add(kind, threads or "all", *_row(own))
            wrong = [f"{trial}" for trial, found in seen if found[kind].alarm != trial.due]
            table.remarks.append(
                f"{kind}, wrong in {len(wrong)} of {len(seen)}: " + ("; ".join(wrong[:12]) or "none") + (", …" * (len(wrong) > 12))
            )
        table.remarks.append(
            f"A comparison is {RUNS} runs a side of one program with one number of threads. Runs: each run of head judged alone by base's."
        )
    return seen


def _row(own: Sequence[tuple[Trial, Outcome]]) -> list[str]:
    tally: Counter[str] = Counter()
    for trial, outcome in own:
        due = "due" if trial.due else "harmless"
        tally[due] += 1
        tally[f"{due} alarm"] += outcome.alarm
        tally[f"{due} flagged"] += outcome.flagged[1]
        tally["named"] += trial.due and outcome.alarm and outcome.first in trial.edit.guilty
    seconds = float(np.median([outcome.seconds for _, outcome in own]))
    return [
        f"{tally['harmless alarm']} of {tally['harmless']}",
        f"{tally['due'] - tally['due alarm']} of {tally['due']}",
        f"{tally['named']} of {tally['due alarm']}",
        f"{tally['harmless flagged'] / (RUNS * tally['harmless']):.3f}",
        f"{1 - tally['due flagged'] / (RUNS * tally['due']):.3f}" if tally["due"] else "",
        f"{seconds:.2f}",
    ]


Scores = tuple[Floats, Floats]


def _due_and_harmless(kind: Method, seen: Sequence[tuple[Trial, dict[Method, Outcome]]]) -> Scores:
    """Return a detector's scores of all runs of defective heads, and of harmless ones."""
    due, harmless = (np.concatenate([found[kind].scores[1] for trial, found in seen if trial.due is wanted]) for wanted in (True, False))
    return due, harmless


def roc(title: str, scores: Mapping[Method, Scores]) -> None:
    """Print the area under each detector's ROC curve of single runs, and the true positives at some rates of false ones."""
    columns = ("detector", "area", *(f"true positives at {rate:.2f}" for rate in FALSE_POSITIVE_RATES))
    with figures.printed(title, *columns) as table:
        for kind, (due, harmless) in scores.items():
            ranks = np.searchsorted(np.sort(harmless), due) / len(harmless)
            rates = [float((due > np.quantile(harmless, 1 - rate)).mean()) for rate in FALSE_POSITIVE_RATES]
            table.add(kind, f"{ranks.mean():.3f}", *(f"{rate:.3f}" for rate in rates))


def drawn(title: str, scores: Mapping[Method, Scores]) -> bytes:
    """Return the ROC curves of single runs as SVG; false positives on a scale of roots, which shows where users live."""
    from matplotlib.figure import Figure

    with picture.style():
        figure = Figure(figsize=(5.0, 4.0), layout="constrained")
        axes = figure.add_subplot(xlabel="false positives (scale of square roots)", ylabel="true positives", title=f"Single runs, {title}")
        axes.set_xscale("function", functions=(np.sqrt, np.square))
        axes.set_xlim(0, 1)
        axes.set_xticks((0, 0.01, 0.05, 0.1, 0.25, 0.5, 1))
        for (kind, (due, harmless)), colour, line in zip(scores.items(), picture.COLOURS, LINES, strict=False):
            true = [float((due > np.quantile(harmless, 1 - level, method="higher")).mean()) for level in DRAWN]
            axes.step(DRAWN, true, where="post", color=colour, linestyle=line, label=kind)
        axes.legend(loc="lower right", frameon=False)
        return picture.saved(figure, "svg")


def clusters(kinds: Sequence[DetectorKind], threads: int = 4) -> None:
    """Print F1 over single runs of seven functions, each with a defect and its harmless twin, that share k models (AutoPerf, Figure 5)."""
    with figures.printed("F1 over k models for seven functions", "models", *kinds) as table:
        due, harmless = (_seven(threads, defective=wanted) for wanted in (True, False))
        for models in range(1, len(SEVEN) + 1):
            table.add(models, *(f"{_f1(due, harmless, kind, models):.3f}" for kind in kinds))


def _seven(threads: int, *, defective: bool) -> dict[int, Tables]:
    functions = {}
    for place, program in enumerate(SEVEN):
        edit = DEFECTS[place % len(DEFECTS)] if defective else (Edit.STATE, Edit.INPUTS, Edit.WORK)[place % 3]
        functions[place] = pair(Setting(program, threads, RUNS, 10.0), edit, FIRST_SEED + place)
    return functions


def _f1(due: dict[int, Tables], harmless: dict[int, Tables], kind: DetectorKind, models: int) -> float:
    hits, alarms = (
        sum(flagged(judged)[1] for judged in judge_together(functions, kind, CONFIG, models=models).values())
        for functions in (due, harmless)
    )
    return 2 * hits / (2 * hits + alarms + (RUNS * len(due) - hits))


def training(kinds: Sequence[DetectorKind]) -> None:
    """Print the seconds that models for 27 functions take, one after the other, and with what surrounds them."""
    tables = [pair(Setting(PROGRAMS[place % len(PROGRAMS)], 2, RUNS), Edit.NONE, FIRST_SEED + place) for place in range(MANY)]
    with figures.printed(
        f"Models for {MANY} functions", "detector", "one model each, seconds", "judged by five each, seconds", "bar"
    ) as table:
        prepared = [each for each in (prepare(both, counters_of(*both), CONFIG) for both in tables) if each is not None]
        for kind in kinds:
            learn(kind, prepared[0].training(0))  # its library is imported
            start = time.perf_counter()
            for each in prepared:
                learn(kind, each.training(0))
            alone = time.perf_counter() - start
            start = time.perf_counter()
            for each in prepared:
                judge([each], kind)
            table.add(kind, f"{alone:.1f}", f"{time.perf_counter() - start:.1f}", f"30 s: {figures.against(alone, 30.0)}")


def main() -> None:
    """Print the study in the size that was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--size", choices=("quick", "short", "full"), default="short", help="cheap detectors, all, or all several times")
    parser.add_argument("--plots", type=Path, metavar="FOLDER", help="draw the ROC curves into this folder")
    options = parser.parse_args()
    run(options.size, options.plots)
