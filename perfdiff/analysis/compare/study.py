"""Everything that is measured of one function: each metric learnt on base and compared at equal inputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from perfdiff.analysis.compare.comparison import Asked, Comparison, answer, ask, resolved
from perfdiff.analysis.compare.judgement import hidden
from perfdiff.analysis.compare.mix import Question, Tables, members
from perfdiff.analysis.compare.phases import Phased, phased
from perfdiff.analysis.compare.ratios import as_ratio
from perfdiff.analysis.compare.shift import Shift, describe
from perfdiff.analysis.compare.trend import over_runs
from perfdiff.analysis.compare.waits import Waits, waits
from perfdiff.analysis.findings import MetricFinding, Ratio
from perfdiff.analysis.policy import MATERIAL
from perfdiff.analysis.stats.inference import clear_shifts, contrasts
from perfdiff.analysis.stats.panel import Bools, panel
from perfdiff.analysis.stats.rows import thinned, without_features
from perfdiff.analysis.sums.ledger import Ledger
from perfdiff.config import CompareConfig
from perfdiff.engines.engine import Engine
from perfdiff.engines.serial import Serial
from perfdiff.engines.tables import chosen, with_tables
from perfdiff.models.annotation import Annotation
from perfdiff.models.fitting import fit
from perfdiff.models.warmup import WarmUp
from perfdiff.records.metrics import METRICS
from perfdiff.records.recorded import Samples
from perfdiff.records.schema import Experiment, Floats, FunctionInfo, Origin, Point, SampleTable, Side

# Learnt on base; every other metric is compared within points, and learnt only where the inputs moved or it is reported on.
LEARNT = ("self_ns", "wall_ns")
PRIMARY = "self_ns"  # a function's own time, by which it is guilty
ALLOCATION = ("alloc_bytes", "alloc_count")
# What verdicts on functions rest on; the other metrics explain.
DECISIVE = (*LEARNT, *ALLOCATION)
# What a look learns on base of every function: time with callees decides little of it, and is compared as the other metrics are.
LOOKED_AT = (PRIMARY,)
# Rows that an annotation is learnt from at most, in whole runs' proportions: beyond, precision is that of the runs, not of the calls.
FIT_ROWS = 1000
BATCH = 8  # functions that a task is given at a time
# Of more functions than this, those that each are no material share of a run are not studied further than verdicts need: they are most
# of an interpreter's, say, and take most of the time. Fewer take some seconds in any case.
MANY = 100
# Chance beyond which a small function costs what it did: more than the evidence that is asked for by far, as times vary more here.
SEEN = 0.1


@dataclass(frozen=True, slots=True)
class Study:
    """What one function's calls and sums tell by themselves, without its tables: some kB, however many calls there were.

    `resolved` tells which differences the clock can see, `shifts` how learnt metrics moved if their cost is not known to differ. `alone`
    holds the annotations of a function that only one side has, `growth` that of a suspect's time per run. `untested` is the number of
    comparisons that a mere look at the verdicts leaves out. `warm_up` tells of either side how its first calls cost more, where they do,
    `waits` how much longer calls of a suspect wait for others, where that is most of what they take longer.
    """

    info: FunctionInfo
    comparisons: Mapping[str, Comparison]
    resolved: Mapping[str, bool]
    shifts: Mapping[str, Shift]
    alone: Mapping[tuple[str, Side], Annotation]
    growth: MetricFinding | None
    calls: Ratio | None
    totals: Mapping[str, Ratio]
    untested: int = 0
    warm_up: Mapping[Side, WarmUp] = field(default_factory=dict)
    waits: Waits | None = None


def study_all(experiment: Experiment, samples: Samples, ledger: Ledger, config: CompareConfig, engine: Engine | None = None) -> list[Study]:
    """Return the studies of all functions, in their order; many are made side by side by the engine, a batch at a time."""
    functions = experiment.functions
    trifles = _trifles(functions, ledger)
    engine = chosen(engine, len(functions))
    lent = ledger if isinstance(engine, Serial) else ledger.without_edges()
    ground = _Ground(lent, experiment.points, config, sum_ratios(ledger, config), small=_small(functions, ledger))
    batches = [functions[first : first + BATCH] for first in range(0, len(functions), BATCH)]
    loaders = with_tables(engine, [[info.id for info in batch] for batch in batches], samples)
    studied = engine.map(_studied, zip(batches, loaders, strict=True), ground, trifles)
    return [each for batch in studied for each in batch]


def _studied(batch: tuple[Sequence[FunctionInfo], Samples], ground: _Ground, trifles: set[int]) -> list[Study]:
    """Return studies of some functions, in their order; of trifles and small ones without what could only explain more than they cost."""
    functions, samples = batch
    others = sum(name not in ("calls", *DECISIVE) for name in ground.ledger.metrics)
    narrow = replace(ground, only=DECISIVE)
    narrowed = trifles | ground.small.keys()
    found = [study(info, samples, narrow if info.id in narrowed else ground) for info in functions]
    return [replace(each, untested=others) if each.info.id in narrowed and each.comparisons else each for each in found]


def study_decisive(experiment: Experiment, samples: Samples, ledger: Ledger, config: CompareConfig) -> list[Study]:
    """Return studies of all functions with what verdicts rest on and nothing more; comparisons that are left out are counted."""
    of = Decisive(experiment, samples, ledger, config)
    return [of.study(info) for info in experiment.functions]


class Decisive:
    """Studies of single functions with what verdicts rest on and nothing more, each made when it is first asked for."""

    def __init__(self, experiment: Experiment, samples: Samples, ledger: Ledger, config: CompareConfig) -> None:
        self.trifles = frozenset(_trifles(experiment.functions, ledger))
        self.made: dict[int, Study] = {}
        self._samples = samples
        small = _small(experiment.functions, ledger)
        self._ground = _Ground(ledger, experiment.points, config, sum_ratios(ledger, config), DECISIVE, LOOKED_AT, small)
        self._kept = [name for name in ledger.metrics if name != "calls"]

    def study(self, info: FunctionInfo) -> Study:
        """Return the study of a function, of one that is no material share of a run an empty one."""
        if info.id not in self.made:
            self.made[info.id] = self._studied(info)
        return self.made[info.id]

    def _studied(self, info: FunctionInfo) -> Study:
        if info.id in self.trifles:
            return Study(info, {}, {}, {}, {}, None, None, {}, untested=len(self._kept))
        others = sum(name not in DECISIVE for name in self._kept)
        return replace(_decisive(info, self._samples, self._ground), untested=others)


def _trifles(functions: Sequence[FunctionInfo], ledger: Ledger) -> set[int]:
    """Return functions that all together cost less than a material share of a run, at any point and on either side.

    Suspects stay where they allocate: more of that is a regression without time.
    """
    stays = np.zeros(len(ledger.ids), dtype=bool)
    for book in ledger.books.values():
        for metric in ALLOCATION:
            stays |= _are_suspects(functions, ledger) & (book.medians.get(metric, np.zeros(1)) > 0)
    shares = _shares(functions, ledger)
    order = np.argsort(shares, kind="stable")
    order = order[~stays[order]]
    light = order[np.cumsum(shares[order]) < MATERIAL]
    return {ledger.ids[column] for column in light}


def _small(functions: Sequence[FunctionInfo], ledger: Ledger) -> dict[int, float]:
    """Return those of many functions that each cost no material share of a run, with their shares; none of few."""
    if len(functions) <= MANY:
        return {}
    return {function: share for function, share in zip(ledger.ids, _shares(functions, ledger).tolist(), strict=True) if share < MATERIAL}


def _shares(functions: Sequence[FunctionInfo], ledger: Ledger) -> Floats:
    """Return what part of a run each function costs at most, (f,), at any point and on either side; suspects with what they call.

    The dearest run speaks, for a function that varies much may matter more than its median says.
    """
    shares = np.zeros(len(ledger.ids))
    for book in ledger.books.values():
        cost = np.where(_are_suspects(functions, ledger), book.wall_ns.max(axis=0), book.self_ns.max(axis=0))
        shares = np.maximum(shares, cost / max(book.cost_ns, 1.0))
    return shares


def _are_suspects(functions: Sequence[FunctionInfo], ledger: Ledger) -> Bools:
    return np.isin(ledger.ids, [info.id for info in functions if info.change.is_suspect])


def _decisive(info: FunctionInfo, samples: Samples, ground: _Ground) -> Study:
    """Return a function's study by the metrics that verdicts rest on."""
    found = phased_tables(info.id, samples)
    tables = found.tables if found else None
    comparisons = _comparisons(info, tables, ground) if tables is not None else {}
    totals = {metric: ratio for metric in LEARNT if (ratio := ground.sum_ratio(info.id, metric)) is not None}
    return Study(
        info=info,
        comparisons=comparisons,
        resolved={metric: resolved(found, tables[0]) for metric, found in comparisons.items()} if tables is not None else {},
        shifts={},
        alone={},
        growth=None,
        calls=ground.sum_ratio(info.id, "calls"),
        totals=totals,
    )


def study(info: FunctionInfo, samples: Samples, ground: _Ground) -> Study:
    """Compare the metrics of a function that both sides have; learn what one side has alone.

    How a suspect's time per run grows is learnt where all metrics are asked for.
    """
    ledger, points, config = ground.ledger, ground.points, ground.config
    found = phased_tables(info.id, samples)
    tables = found.tables if found else None
    comparisons = _comparisons(info, tables, ground) if tables is not None else {}
    totals = {metric: ratio for metric in METRICS if (ratio := ground.sum_ratio(info.id, metric)) is not None}
    grows = info.change.is_suspect and ground.only is None
    return Study(
        info=info,
        comparisons=comparisons,
        resolved={metric: resolved(found, tables[0]) for metric, found in comparisons.items()} if tables is not None else {},
        shifts=_shifts(comparisons, *tables, config) if tables is not None else {},
        alone=_alone(info, samples, ground) if tables is None else {},
        growth=over_runs(info, ledger, points, total=totals.get("wall_ns"), config=config) if grows else None,
        calls=ground.sum_ratio(info.id, "calls"),
        totals=totals,
        warm_up=found.warm_up if found else {},
        waits=waits(*tables, points) if tables is not None and info.change.is_suspect else None,
    )


@dataclass(frozen=True, slots=True)
class _Ground:
    """What all functions are compared on, with how their `sums` over a run differ; `only` these metrics, if any are named.

    Of every function the metrics `learnt` are learnt on base, but for `small` ones, which are given with their share of a run.
    """

    ledger: Ledger
    points: Sequence[Point]
    config: CompareConfig
    sums: Mapping[str, Sequence[Ratio | None]]
    only: tuple[str, ...] | None = None
    learnt: tuple[str, ...] = LEARNT
    small: Mapping[int, float] = field(default_factory=dict)

    def sum_ratio(self, function: int, metric: str) -> Ratio | None:
        """Return head over base of a metric's sum over a run, or of the number of calls."""
        return self.sums[metric][self.ledger.place[function]] if metric in self.sums else None


def _comparisons(info: FunctionInfo, tables: tuple[SampleTable, SampleTable], ground: _Ground) -> dict[str, Comparison]:
    """Return the comparisons of a function's metrics, those that are learnt first.

    Small functions are first compared within points, as runs have the same inputs there. They are learnt only where that leaves room for a
    slow-down by a material share of a run, or where they cost something else and their inputs moved: then it may be these.
    """
    both = Tables(*tables, is_same=not info.change.is_suspect)
    if info.id in ground.small:
        found = _compared(info, both, replace(ground, learnt=()))
        own = found.get(PRIMARY)
        may_hide = own is not None and ground.small[info.id] * hidden(own, ground.config) >= MATERIAL
        differs = own is None or own.disjoint or own.p <= SEEN
        if not may_hide and not (differs and _moved_inputs(*both.sides)):
            return found
        ground = replace(ground, learnt=LOOKED_AT)
    return _compared(info, both, ground)


def _compared(info: FunctionInfo, both: Tables, ground: _Ground) -> dict[str, Comparison]:
    few = thinned(both.base, FIT_ROWS)  # once, so that all metrics are learnt from the same rows
    asked: dict[str, Asked] = {}
    for metric in (*LEARNT, *(name for name in both.base.metrics if name not in LEARNT)):
        if ground.only is not None and metric not in ground.only:
            continue
        if all(metric in table.metrics and _present(table, metric) for table in both.sides):
            annotation = _learn(metric, few, asked.get(PRIMARY), info.name, ground)
            question = ask(Question(metric, both, annotation), ground.ledger, ground.points)
            if question is not None:
                asked[metric] = question
    return dict(zip(asked, answer([*asked.values()], ground.ledger, ground.config), strict=True))


def _shifts(comparisons: Mapping[str, Comparison], base: SampleTable, head: SampleTable, config: CompareConfig) -> dict[str, Shift]:
    """Return how the metrics that were learnt on base moved; where no call has callees, its time is its own time."""
    shifts: dict[str, Shift] = {}
    for metric in LEARNT:
        found = comparisons.get(metric)
        if metric == "wall_ns" and "self_ns" in shifts and same_cost([base, head]):
            shifts[metric] = shifts["self_ns"].of(metric)
        elif found is not None and found.base is not None:
            shifts[metric] = describe(found.base, base, head, differs=False, config=config)
    return shifts


def _alone(info: FunctionInfo, samples: Samples, ground: _Ground) -> dict[tuple[str, Side], Annotation]:
    """Return what can be learnt of the times of a function that only one side has; there is nothing to compare them with."""
    sides = {side: table for side in Side if (table := samples(info.id, side)) is not None and len(table)}
    if len(sides) != 1:
        return {}
    ((side, table),) = sides.items()
    found: dict[tuple[str, Side], Annotation] = {}
    for metric in LOOKED_AT if info.id in ground.small else LEARNT:
        if metric == "wall_ns" and (PRIMARY, side) in found and same_cost([table]):
            found[metric, side] = replace(found[PRIMARY, side], metric=metric)
        elif _present(table, metric):
            found[metric, side] = learn(table, metric, info.name, ground.config)
    return found


def both_tables(function: int, samples: Samples) -> tuple[SampleTable, SampleTable] | None:
    """Return a function's tables of both sides with the features that both have, or None where one side has no calls."""
    base, head = samples(function, Side.BASE), samples(function, Side.HEAD)
    if base is None or head is None or not len(base) or not len(head):
        return None
    names = ({feature.name for feature in base.features}, {feature.name for feature in head.features})
    base, head = without_features(base, names[0] - names[1]), without_features(head, names[1] - names[0])
    unsteady = _passed_with_other_values(base, head)
    return without_features(base, unsteady), without_features(head, unsteady)


def phased_tables(function: int, samples: Samples) -> Phased | None:
    """Return a function's tables of both sides as `both_tables` does, with the phases of its calls."""
    tables = both_tables(function, samples)
    return None if tables is None else phased(*tables)


def _present(table: SampleTable, metric: str) -> bool:
    return bool(np.isfinite(table.metrics[metric]).any())


def _passed_with_other_values(base: SampleTable, head: SampleTable) -> set[str]:
    """Return the workload parameters, if any feature of the calls moved within a workload point.

    A parameter stands for the inputs of a call only as long as both sides derive them from it in the same way.
    """
    parameters = {feature.name for feature in base.features if feature.origin is Origin.WORKLOAD}
    return parameters if parameters and _moved_inputs(base, head) else set()


def _moved_inputs(base: SampleTable, head: SampleTable) -> bool:
    """Return whether any feature of the calls, other than the workload's parameters, moved within a workload point."""
    names = [feature.name for feature in base.features if feature.origin is not Origin.WORKLOAD]
    if not names:
        return False
    before, after = _run_means(base, names), _run_means(head, names)
    return any(clear_shifts(before[point], after[point]).any() for point in before.keys() & after.keys())


def _run_means(table: SampleTable, names: Sequence[str]) -> dict[int, Floats]:
    """Return, by point, the mean of each feature over each run's calls (features, runs), NaN where a run has no value."""
    of = members(table)
    place = {feature.name: column for column, feature in enumerate(table.features)}
    values = table.values[:, [place[name] for name in names]]
    order = np.argsort(of.place, kind="stable")
    first = np.searchsorted(of.place[order], np.arange(len(of.runs)))
    known = ~np.isnan(values[order])
    with np.errstate(invalid="ignore"):
        sums = np.add.reduceat(np.where(known, values[order], 0.0), first)
        means = sums / np.add.reduceat(known, first, dtype=np.float64)
    return {int(point): means[of.points == point].T for point in np.unique(of.points)}


def _learn(metric: str, base: SampleTable, own: Asked | None, function: str, ground: _Ground) -> Annotation | None:
    """Return base's annotation of a metric, or None where the comparison needs none; `own` is what is asked of own time."""
    if metric == "wall_ns" and own is not None and own.question.annotation is not None and same_cost([base]):
        return replace(own.question.annotation, metric=metric)
    inputs_moved = own is not None and any(factor != 1.0 for factor in own.mix.values())
    return learn(base, metric, function, ground.config) if metric in ground.learnt or inputs_moved else None


def learn(table: SampleTable, metric: str, function: str, config: CompareConfig) -> Annotation:
    """Return the annotation of a metric learnt from (part of) a table."""
    return fit(thinned(table, FIT_ROWS), metric, seed=config.seed, function=function)


def same_cost(tables: Iterable[SampleTable]) -> bool:
    """Return whether no call spends time in probed callees, so that time with and without them is the same."""
    return all(np.array_equal(table.metrics["self_ns"], table.metrics["wall_ns"], equal_nan=True) for table in tables)


def sum_ratios(ledger: Ledger, config: CompareConfig) -> dict[str, list[Ratio | None]]:
    """Return head over base of each metric's sum over a run, and of the number of calls, by metric, in the order of `ledger.ids`.

    Metrics that some point keeps no sums of are left out.
    """
    found: dict[str, list[Ratio | None]] = {}
    for metric in ledger.metrics:
        kept = {side: [ledger.books[point, side].sums(metric) for point in ledger.points] for side in Side}
        logs: dict[Side, list[Floats]] = {side: [] for side in Side}
        with np.errstate(divide="ignore"):
            for side, sums in kept.items():
                logs[side] += [np.log(each).T for each in sums if each is not None]
        if all(len(each) == len(ledger.points) for each in logs.values()):
            seen = contrasts(panel(*(ledger.runs(side, logs[side]) for side in Side)))
            found[metric] = [as_ratio(each, config.confidence) if each else None for each in seen]
    return found
