"""Print how often intervals of predictions hold what is really measured, at twice and ten times the inputs that they were learnt from.

Made-up functions of every growth class, in many experiments each: 2 % from run to run, 5 % from call to call, a call in a hundred
preempted. Beside them stands what the annotation's own distribution says of calls there, as if its growth were known. With
`--real` functions of the fixtures with a size as a parameter, learnt at a tenth of it and below, measured at twice and ten times that; with
`--composed` what their parts, learnt at all sizes but the largest, come to there, beside what calls of them take.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from experiments import Columns, Made, Noise, World
from perfdiff import pipeline
from perfdiff.analysis.annotations.annotating import MOST_ROWS, annotate_prepared, prepared
from perfdiff.analysis.annotations.predicting import PredictedCosts, PredictionRequest, modelled, predicted
from perfdiff.analysis.annotations.whatif import CostChange
from perfdiff.analysis.findings import Verdict
from perfdiff.analysis.stats.rows import thinned
from perfdiff.analysis.sums.ledger import open_ledger
from perfdiff.errors import PerfdiffError, UsageError
from perfdiff.models.extrapolation import Forecast, learnt
from perfdiff.models.forecast import interval
from perfdiff.progress import Silent
from perfdiff.records.arrays import Floats
from perfdiff.records.recorded import RecordedExperiment
from perfdiff.records.schema import Phase, SampleTable, Side
from programs import JAVA, PHP, PROGRAMS, PYTHON, Case, cases
from studies.support import figures, inputs

FARTHER = (2.0, 10.0)  # times the largest measured input
SIZES = (1000, 3000, 10_000)
RUNS = 10
LEARNT = (1 / 80, 1 / 40, 1 / 20, 1 / 10)  # of a fixture's largest size
COMPOSED_AT = (1 / 8, 1 / 4, 1 / 2, 1.0)  # of a fixture's largest size; the last is held out
FEWEST = 8  # calls, and the least size
LEAST_NS = 500.0  # of a call that probes time well
NEW = 200  # calls of runs that nobody has seen
NOISE = Noise(outliers=0.01)
METRIC = "self_ns"
LAWS: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {
    "constant": lambda n: np.full(len(n), 5000.0),
    "logarithmic": lambda n: 500 + 400 * np.log2(n),
    "linear": lambda n: 500 + 20 * n,
    "n log n": lambda n: 500 + 5 * n * np.log2(n),
    "quadratic": lambda n: 2000 + 10 * n + 0.02 * n * n,
    "cubic": lambda n: 2000 + 1e-6 * n**3,
    "a line that outgrows a cache": lambda n: 500 + 20 * n * (1 + 0.5 / (1 + np.exp(-3 * np.log(n / 20_000)))),
    "a square hidden below a line": lambda n: 500 + 20 * n + 0.0002 * n * n,
}
COLUMNS = ("cost", "inputs", "times the range", "expected held", "single calls held", "width", "of the distribution alone: held", "width")


@dataclass(slots=True)
class Tally:
    """How often intervals held the truth, and how wide they were as a share of it."""

    held: list[bool] = field(default_factory=list)
    calls: list[float] = field(default_factory=list)
    widths: list[float] = field(default_factory=list)
    naive: list[float] = field(default_factory=list)
    naive_widths: list[float] = field(default_factory=list)


def width(forecast: Forecast) -> float:
    """Return how wide the interval of the expected cost is, in ns."""
    low, high = forecast.interval
    return high - low


def spread(_: Side, n: float, count: int, rng: np.random.Generator) -> Columns:
    """Return inputs up to the size of a point."""
    return {"n": rng.uniform(n / 10, n, count)}


def at_size(_: Side, n: float, count: int, _rng: np.random.Generator) -> Columns:
    """Return inputs of the size of a point."""
    return {"n": np.full(count, n)}


def tried(name: str, *, is_spread: bool, seed: int, tallies: dict[tuple[str, bool, float], Tally]) -> None:
    """Learn from one experiment, and hold its predictions against calls of runs at larger inputs."""
    law = LAWS[name]
    made = Made("f", lambda side, inputs: law(inputs["n"]), calls=lambda side, n: {"": 100}, inputs=spread if is_spread else at_size)
    world = World((made,), sizes=SIZES, runs=RUNS, noise=NOISE, seed=seed)
    world.experiment()
    calls = world.samples(1, Side.BASE)
    assert calls is not None, "it is called"
    table = prepared(calls)
    model = learnt(next(annotate_prepared("f", table, (METRIC,), seed=1)), table)
    rng = np.random.default_rng(seed)
    for farther in FARTHER:
        at = farther * max(SIZES)
        forecast = model.forecast({"n": at}, seed=seed)
        assert forecast is not None, "it has one scope at least"
        truth = float(law(np.array([at]))[0])
        levels = 1 + NOISE.run * rng.standard_normal(NEW) + NOISE.function * rng.standard_normal(NEW)
        new = truth * levels * (1 + NOISE.call * rng.standard_normal(NEW))
        low, high = (float(end[0]) for end in interval(model.annotation, {"n": np.array([at])}, 0.95))
        tally = tallies[name, is_spread, farther]
        tally.held.append(forecast.interval[0] <= truth <= forecast.interval[1])
        tally.calls.append(float(np.mean((forecast.call_interval[0] <= new) & (new <= forecast.call_interval[1]))))
        tally.widths.append(width(forecast) / truth)
        tally.naive.append(float(np.mean((low <= new) & (new <= high))))
        tally.naive_widths.append((high - low) / truth)


@dataclass(frozen=True, slots=True)
class Sized:
    """A recording of a fixture's base at some values of the parameter `name` of its workload, by point in `sizes`."""

    recorded: RecordedExperiment
    name: str
    sizes: Mapping[int, float]

    def calls(self, function: int, metric: str) -> SampleTable | None:
        """Return the calls of a function that tell a metric, as they are annotated."""
        calls = self.recorded.samples(function, Side.BASE)
        return None if calls is None or metric not in calls.metrics else prepared(thinned(calls, MOST_ROWS))

    def of(self, calls: SampleTable) -> Floats:
        """Return the size at which each call was made."""
        return np.array([self.sizes[point] for point in calls.point.tolist()])


def sized(case: Case, language: str, room: Path, shares: Sequence[float]) -> Sized | None:
    """Return base's recording at some shares of its largest size; None where these are too small, or nothing is a size."""
    asked = inputs.request(case.name, room, "base", language=language)
    workload = next((workload for workload in asked.config.workloads if _size(workload.parameters) is not None), None)
    name = _size(workload.parameters) if workload is not None else None
    if workload is None or name is None:
        return None
    largest = max(map(float, workload.parameters[name]))
    values = tuple(dict.fromkeys(round(largest * share) for share in shares))
    if len(values) < len(shares) or min(values) < FEWEST:
        return None
    workload = replace(workload, parameters={**workload.parameters, name: values})
    recorded = pipeline.record(replace(asked, config=replace(asked.config, workloads=(workload,))), Silent())
    return Sized(recorded, name, {point.id: float(point.parameters[name]) for point in recorded.experiment.points})


def measured(case: Case, language: str, room: Path) -> Iterator[tuple[str, float, bool, float, float]]:
    """Yield function, times the range, whether the mean held, the share of calls that did, and the width, of a fixture's base."""
    runs = sized(case, language, room, (*LEARNT, *(LEARNT[-1] * times for times in FARTHER)))
    if runs is None:
        return
    *learnt_at, twice, ten_times = sorted(set(runs.sizes.values()))
    for info in runs.recorded.experiment.functions:
        calls = runs.calls(info.id, METRIC)
        if calls is None:
            continue
        at = runs.of(calls)
        known = calls.rows(np.flatnonzero(at <= learnt_at[-1]))
        if len(np.unique(known.point)) < len(LEARNT) or not np.isfinite(known.metrics[METRIC]).any():
            continue
        model = modelled(info.name, known, METRIC, (runs.name,), 1)
        for times, size in zip(FARTHER, (twice, ten_times), strict=True):
            costs = calls.metrics[METRIC][(at == size) & np.isfinite(calls.metrics[METRIC])]
            forecast = model.forecast({runs.name: size}, seed=1)
            if not len(costs) or forecast is None or forecast.expected < LEAST_NS:
                continue
            truth = float(np.median(costs)) if len(costs) < FEWEST else float(np.mean(np.sort(costs)[: -(-len(costs) * 95 // 100)]))
            within = float(np.mean((forecast.call_interval[0] <= costs) & (costs <= forecast.call_interval[1])))
            holds = forecast.interval[0] <= truth <= forecast.interval[1]
            yield info.name, times, holds, within, width(forecast) / max(truth, 1.0)


def composed(case: Case, language: str, room: Path) -> Iterator[tuple[str, int, float, float]]:
    """Yield callers with how many callees have a part of them, what their parts come to at the largest size, and what calls take there.

    They are composed of what runs of all smaller sizes tell. What calls take is the median over runs of their mean.
    """
    runs = sized(case, language, room, COMPOSED_AT)
    if runs is None:
        return
    experiment, last = runs.recorded.experiment, max(runs.sizes, key=lambda point: runs.sizes[point])
    smaller = replace(experiment, points=tuple(point for point in experiment.points if point.id != last))
    without_last = replace(runs.recorded, experiment=smaller)
    book = open_ledger(experiment, (Side.BASE,))
    for info in experiment.functions:
        calls = runs.calls(info.id, "wall_ns")
        column = book.place.get(info.id)
        sums = book.books[last, Side.BASE]
        if calls is None or column is None or not sums.calls[:, column].all() or (column, column) in sums.edges:
            continue
        request = PredictionRequest(info, "wall_ns", False, {runs.name: f"{runs.sizes[last]:g}"})
        try:
            parts = predicted(without_last, request, seed=1).composition.get(Side.BASE)
        except UsageError:  # its calls were not timed at smaller sizes
            continue
        truth = float(np.median(sums.wall_ns[:, column] / sums.calls[:, column]))
        if parts is not None and parts.callees and truth >= LEAST_NS:
            yield info.name, len(parts.callees), float(np.median(parts.draws)), truth


def compose(only: Sequence[str]) -> None:
    """Hold what callers are composed of against what they take at a size that no part was learnt at."""
    columns = ("language", "program", "function", "callees", "composed, µs", "measured, µs", "off")
    with figures.printed("Callers composed of their parts", *columns) as table, tempfile.TemporaryDirectory() as room:
        off: list[float] = []
        for language, folder in (("c", PROGRAMS), ("python", PYTHON), ("java", JAVA), ("php", PHP)):
            for case in cases(folder):
                if only and case.name not in only:
                    continue
                try:
                    for function, callees, parts_ns, truth_ns in composed(case, language, Path(room) / language / case.name):
                        off.append(abs(parts_ns / truth_ns - 1))
                        costs = (f"{ns / 1e3:.1f}" for ns in (parts_ns, truth_ns))
                        table.add(language, case.name, function, callees, *costs, f"{100 * off[-1]:.0f} %")
                except PerfdiffError as error:
                    print(f"{case.name}: {error}", file=sys.stderr)
        if off:
            table.remarks.append(f"median {100 * np.median(off):.0f} %, {sum(error > 0.25 for error in off)} of {len(off)} beyond 25 %")


def _size(parameters: Mapping[str, tuple[float | str, ...]]) -> str | None:
    """Return the parameter of a workload that is a size."""
    names = [name for name, values in parameters.items() if len(values) > 1 and all(isinstance(value, int | float) for value in values)]
    return names[0] if len(names) == 1 else None


def real(only: Sequence[str]) -> None:
    """Try the fixtures of C and Python."""
    with (
        figures.printed("Predictions of real functions", "language", "program", "function", *COLUMNS[2:6]) as table,
        tempfile.TemporaryDirectory() as room,
    ):
        held: dict[float, list[tuple[bool, float]]] = defaultdict(list)
        for language, folder in (("c", PROGRAMS), ("python", PYTHON)):
            for case in cases(folder):
                if only and case.name not in only:
                    continue
                try:
                    for function, times, mean, calls, width in measured(case, language, Path(room) / language / case.name):
                        held[times].append((mean, calls))
                        table.add(
                            language,
                            case.name,
                            function,
                            f"{times:g}",
                            "yes" if mean else "no",
                            f"{100 * calls:.0f} %",
                            f"{100 * width:.0f} %",
                        )
                except PerfdiffError as error:
                    print(f"{case.name}: {error}", file=sys.stderr)
        for times, results in sorted(held.items()):
            mean, calls = np.mean(results, axis=0)
            table.remarks.append(
                f"at {times:g} times the range: {100 * mean:.0f} % of {len(results)} expected costs, {100 * calls:.0f} % of calls held"
            )


def happened(case: Case, language: str, room: Path) -> tuple[str, float, float, float] | None:
    """Return the guilty function of a fixture, what runs take in base and head at the last point, and what they were said to take.

    It is said of base with the function's own time as many times as large as in head. None where nobody is guilty, or is called otherwise.
    """
    asked = inputs.request(case.name, room, "base", "head", language=language)
    asked = replace(asked, config=replace(asked.config, measure=replace(asked.config.measure, thorough=True)))
    outcome = pipeline.compare(asked, Silent())
    guilty = [function for function in outcome.findings.functions if function.verdict is Verdict.REGRESSION and function.rank == 1]
    if not guilty or outcome.experiment is None or outcome.recorded is None:
        return None
    experiment, function = outcome.experiment, guilty[0].info
    ledger = open_ledger(experiment)
    last = ledger.points[-1]
    books, column = ledger.pair(last), ledger.place.get(function.id)
    if column is None:  # folded into its callers
        return None
    own, calls = ([float(book.medians[metric][column]) for book in books] for metric in ("self_ns", "calls"))
    if not all((*own, *calls)) or calls[0] != calls[1]:
        return None
    point = next(point for point in experiment.points if point.id == last)
    inputs_of_run = {name: str(value) for name, value in point.parameters.items()}
    change = CostChange(function.id, factor=own[1] / own[0], own=True)
    said = predicted(outcome.recorded, PredictionRequest(None, "wall_ns", True, inputs_of_run, point.workload, (change,)), seed=1)
    plain = {
        side: [run.took_ns for run in experiment.runs if (run.phase, run.point, run.side) == (Phase.PLAIN, last, side)] for side in Side
    }
    base, head = (float(np.median(plain[side])) for side in Side)
    return function.name, base, head, base + said.changed[Side.BASE].expected - _expected(said, Side.BASE)


def _expected(said: PredictedCosts, side: Side) -> float:
    forecast = said.sides[side]
    assert forecast is not None, "the side ran"
    return forecast.expected


def what_if(only: Sequence[str]) -> None:
    """Hold what runs were said to take if a function took as long as in head against what they take in head."""
    columns = ("language", "program", "function", "base, ms", "head, ms", "said, ms", "off, of the change")
    with figures.printed("What if, and what happened", *columns) as table, tempfile.TemporaryDirectory() as room:
        for language, folder in (("c", PROGRAMS), ("python", PYTHON), ("java", JAVA), ("php", PHP)):
            for case in cases(folder):
                if only and case.name not in only:
                    continue
                try:
                    told = happened(case, language, Path(room) / language / case.name)
                except PerfdiffError as error:
                    print(f"{case.name}: {error}", file=sys.stderr)
                    continue
                if told is not None:
                    function, *times = told
                    base, head, said = times
                    off = abs(said - head) / max(abs(head - base), 1.0)
                    table.add(language, case.name, function, *(f"{ns / 1e6:.2f}" for ns in times), f"{100 * off:.0f} %")


def main() -> None:
    """Try all classes, or real functions."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--worlds", type=int, default=100, help="experiments of each class (default: 100)")
    parser.add_argument("--real", action="store_true", help="functions of the fixtures, not made-up ones")
    parser.add_argument("--composed", action="store_true", help="what callers are composed of, beside what they take")
    parser.add_argument("--what-if", action="store_true", help="whether fixtures take as long as a changed function says")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="fixtures (default: all)")
    options = parser.parse_args()
    if options.what_if:
        what_if(options.only)
        return
    if options.composed:
        compose(options.only)
        return
    if options.real:
        real(options.only)
        return
    tallies: dict[tuple[str, bool, float], Tally] = defaultdict(Tally)
    started = time.process_time()
    with figures.printed("Predictions beyond what was measured", *COLUMNS) as table:
        for name in LAWS:
            for is_spread in (False, True):
                for seed in range(options.worlds):
                    tried(name, is_spread=is_spread, seed=seed, tallies=tallies)
        for (name, is_spread, farther), tally in tallies.items():
            shown = (
                np.mean(tally.held),
                np.mean(tally.calls),
                np.median(tally.widths),
                np.mean(tally.naive),
                np.median(tally.naive_widths),
            )
            table.add(name, "spread" if is_spread else "three sizes", f"{farther:g}", *(f"{100 * value:.0f} %" for value in shown))
        table.remarks.append(f"{options.worlds} experiments a row; {time.process_time() - started:.0f} s of CPU")
