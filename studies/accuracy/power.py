"""How often is a slow-down of a known size found, by its size, the length of a call, and the number of runs?

Each head slows every function by another factor, one of them by nothing, as a real revision would. A comparison makes at most so many
runs a side and ends earlier where its answer is clear. What is found at the default level of interest of 5 % cannot be less than that;
the same recordings are judged again at 1 %.
"""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from perfdiff import pipeline
from perfdiff.analysis.findings import Findings, Verdict
from perfdiff.config import CompareConfig
from perfdiff.outcome import analysed
from perfdiff.progress import Silent
from perfdiff.records.recorded import RecordedExperiment
from perfdiff.report.sentences import catalogue
from studies.support import figures, spinning
from studies.support.sizes import Size, listed, request, say, share
from studies.support.spinning import FACTORS, NOMINAL_US

FIRST_SEED = 6_000_000
RUNS = (5, 10, 20)
TRIALS = {Size.QUICK: 1, Size.SHORT: 2, Size.LONG: 3, Size.FULL: 40}
BAR, BAR_RUNS, BAR_FACTOR = 0.95, 10, 0.10
FINE = 0.01  # the other level of interest
USUAL = CompareConfig().min_effect
METRIC = "self_ns"


@dataclass(slots=True)
class Cell:
    """What became of slow-downs of one size in one function with one number of runs; `floors` as printed, one a trial."""

    found: list[bool] = field(default_factory=list)
    floors: list[float] = field(default_factory=list)

    def where_visible(self, factor: float) -> list[bool]:
        """Return what became of those that the comparison said it could see."""
        return [found for found, floor in zip(self.found, self.floors, strict=True) if floor < factor]


Cells = dict[tuple[float, int, str, float], Cell]  # level of interest, runs, function, factor


def measured(room: Path, turn: int, runs: int, seed: int) -> dict[float, Findings]:
    """Compare base with a head; return the findings by level of interest."""
    asked = request(spinning.program(room), ("base", f"head{turn}"), spinning.workload(runs), room / "cache", seed=seed)
    outcome = pipeline.compare(asked, Silent())
    if outcome.experiment is None:
        raise SystemExit("a comparison came without its experiment")
    again = analysed(RecordedExperiment(outcome.experiment, outcome.samples), CompareConfig(min_effect=FINE, seed=seed), Silent())
    return {USUAL: outcome.findings, FINE: again.findings}


def note(cells: Cells, findings: Findings, level: float, runs: int, turn: int) -> list[str]:
    """Add one comparison to the cells; return in words what was not as it should be."""
    strange = []
    by_name = {function.info.name: function for function in findings.functions}
    for name, factor in spinning.added(turn).items():
        function = by_name.get(name)
        cell = cells[level, runs, name, factor]
        metric = function.metrics.get(METRIC) if function else None
        found = function is not None and function.verdict is Verdict.REGRESSION
        cell.found.append(found)
        cell.floors.append(metric.floor if metric else np.inf)
        if (factor == 0 and found) or (function is not None and function.verdict is Verdict.IMPROVEMENT):
            strange.append(f"false alarm: {catalogue.say(function.headline) if function else name} ({runs} runs, level {level:.0%})")
        if not found and factor > level and metric is not None and metric.floor < factor:
            reason = catalogue.say(function.reason) if function else ""
            strange.append(f"`{name}` + {factor:.0%}, {runs} runs, smallest visible {metric.floor:.1%}, level {level:.0%}: {reason}")
    return strange


def run(size: Size, room: Path) -> None:
    """Print the tables."""
    cells: Cells = defaultdict(Cell)
    strange: list[str] = []
    for trial in range(TRIALS[size]):
        for turn in range(len(FACTORS)):
            for runs in RUNS:
                start, seed = time.perf_counter(), FIRST_SEED + 1000 * trial + turn
                findings = measured(room, turn, runs, seed)
                for level, found in findings.items():
                    strange += [f"head{turn}, seed {seed}: {each}" for each in note(cells, found, level, runs, turn)]
                verdicts = {function.info.name: function.verdict.value for function in findings[USUAL].functions}
                say(f"head{turn} seed {seed}, {runs} runs: {verdicts}, {time.perf_counter() - start:.1f} s")
    columns = ("level of interest", "runs", "call", *(f"+ {factor:.0%}" for factor in FACTORS), "smallest visible, median")
    with figures.printed("(d) Power: slow-downs found, by function", *columns) as table:
        for level in (USUAL, FINE):
            for runs in RUNS:
                for name in NOMINAL_US:
                    row = [cells[level, runs, name, factor] for factor in FACTORS]
                    floors = np.concatenate([cell.floors for cell in row])
                    counts = (f"{sum(cell.found)} of {len(cell.found)}" for cell in row)
                    table.add(f"{level:.0%}", runs, name.removeprefix("work_"), *counts, f"{100 * np.median(floors):.1f} %")
    columns = ("level of interest", "runs", "slow-down", "found", "of those above the smallest visible")
    with figures.printed("(d) Power: all functions", *columns) as table:
        for level in (USUAL, FINE):
            for runs in RUNS:
                for factor in FACTORS:
                    row = [cells[level, runs, name, factor] for name in NOMINAL_US]
                    every = [each for cell in row for each in cell.found]
                    visible = [each for cell in row for each in cell.where_visible(factor)]
                    table.add(f"{level:.0%}", runs, f"{factor:.0%}", share(sum(every), len(every)), share(sum(visible), len(visible)))
        judged = [each for name in NOMINAL_US for each in cells[USUAL, BAR_RUNS, name, BAR_FACTOR].where_visible(BAR_FACTOR)]
        reached = sum(judged) / len(judged) if judged else 0.0
        table.remarks.append(
            f"{TRIALS[size]} trials a head. Bar: {BAR_FACTOR:.0%} found in {BAR:.0%} of trials with {BAR_RUNS} runs where it is said to be "
            f"visible: {share(sum(judged), len(judged))}, {figures.against(BAR, reached)}. The row of 0 % counts false alarms."
        )
        table.remarks.append(listed("Missed though visible and above the level, and false alarms", strange))
