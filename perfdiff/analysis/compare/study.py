"""Everything that is measured of one function: each metric learnt on base and compared at equal inputs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

import numpy as np

from perfdiff.analysis.compare.compared import Comparison
from perfdiff.analysis.compare.comparison import RunStatistics, answer, ask, resolved
from perfdiff.analysis.compare.firstcall import first_calls
from perfdiff.analysis.compare.judgement import hidden
from perfdiff.analysis.compare.mix import MetricQuestion, Tables
from perfdiff.analysis.compare.phases import PhasedTables
from perfdiff.analysis.compare.ratios import as_ratio
from perfdiff.analysis.compare.shares import ALLOCATION, PRIMARY, alike_of, small_of, trifles_of
from perfdiff.analysis.compare.shift import describe
from perfdiff.analysis.compare.studied import LEARNT, Shift, Study
from perfdiff.analysis.compare.tables import FIT_ROWS, learn, moved_inputs, phased_tables
from perfdiff.analysis.compare.trend import over_runs
from perfdiff.analysis.compare.waits import waits
from perfdiff.analysis.findings import Ratio
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.stats.inference import contrasts
from perfdiff.analysis.stats.panel import panel
from perfdiff.analysis.stats.rows import same_cost, thinned
from perfdiff.analysis.sums.ledger import Ledger
from perfdiff.config import CompareConfig
from perfdiff.engines.engine import Engine
from perfdiff.engines.serial import Serial
from perfdiff.engines.tables import chosen, with_tables
from perfdiff.models.annotation import Annotation
from perfdiff.records.arrays import Floats
from perfdiff.records.metrics import METRICS
from perfdiff.records.recorded import Samples
from perfdiff.records.schema import Experiment, FunctionInfo, Point, SampleTable, Side

# What verdicts on functions rest on; the other metrics explain.
DECISIVE = (*LEARNT, *ALLOCATION)
# What a look learns on base of every function: time with callees decides little of it, and is compared as the other metrics are.
LOOKED_AT = (PRIMARY,)
BATCH = 8  # functions that a task is given at a time
# Chance beyond which a small function costs what it did: more than the evidence that is asked for by far, as times vary more here.
SEEN = 0.1


def study_all(
    experiment: Experiment, samples: Samples, ledger: Ledger, config: CompareConfig, engine: Engine | None = None
) -> Iterator[Study]:
    """Yield the studies of all functions, in their order; many are made side by side by the engine, a batch at a time.

    This machine's processes begin at once, and go on while the caller does something else.
    """
    functions = experiment.functions
    trifles = trifles_of(functions, ledger)
    engine = chosen(engine, len(functions))
    lent = ledger if isinstance(engine, Serial) else ledger.without_edges()
    ground = _ground(lent, experiment, config)
    batches = [functions[first : first + BATCH] for first in range(0, len(functions), BATCH)]
    loaders = with_tables(engine, [[info.id for info in batch] for batch in batches], samples)
    studied = engine.map(_studied, zip(batches, loaders, strict=True), ground, trifles)
    return (study for batch in studied for study in batch)


def _studied(batch: tuple[Sequence[FunctionInfo], Samples], ground: _Ground, trifles: set[int]) -> list[Study]:
    """Return studies of some functions, in their order; of trifles and small ones without what could only explain more than they cost."""
    functions, samples = batch
    others = sum(name not in ("calls", *DECISIVE) for name in ground.ledger.metrics)
    narrow = replace(ground, only=DECISIVE)
    narrowed = trifles | ground.small.keys()
    subjects = [_StudySubject.of(info, samples, narrow if info.id in narrowed else ground) for info in functions]
    studies = [_study(subject, compared, samples) for subject, compared in zip(subjects, _comparisons(subjects), strict=True)]
    return [replace(study, untested=others) if study.info.id in narrowed and study.comparisons else study for study in studies]


class Decisive:
    """Studies of single functions with what verdicts rest on and nothing more, each made when it is first asked for."""

    def __init__(self, experiment: Experiment, samples: Samples, ledger: Ledger, config: CompareConfig) -> None:
        self.trifles = frozenset(trifles_of(experiment.functions, ledger))
        self.made: dict[int, Study] = {}
        self._samples = samples
        self._ground = replace(_ground(ledger, experiment, config), only=DECISIVE, learnt=LOOKED_AT)
        self._kept = [name for name in ledger.metrics if name != "calls"]

    def study(self, info: FunctionInfo) -> Study:
        """Return the study of a function, of one that is no material share of a run an empty one."""
        return self.studies([info])[0]

    def studies(self, functions: Sequence[FunctionInfo]) -> list[Study]:
        """Return the studies of functions, in their order."""
        asked = [info for info in functions if info.id not in self.made]
        for first in range(0, len(asked), BATCH):
            self._make(asked[first : first + BATCH])
        return [self.made[info.id] for info in functions]

    def _make(self, functions: Sequence[FunctionInfo]) -> None:
        untested = sum(name not in DECISIVE for name in self._kept)
        subjects = []
        for info in functions:
            if info.id in self.trifles:
                self.made[info.id] = Study(info, {}, {}, {}, {}, None, None, {}, untested=len(self._kept))
            else:
                subjects.append(_StudySubject.of(info, self._samples, self._ground))
        for subject, compared in zip(subjects, _comparisons(subjects), strict=True):
            self.made[subject.info.id] = replace(_decisive(subject, compared), untested=untested)


@dataclass(frozen=True, slots=True)
class _Ground:
    """What all functions are compared on, with how their `sums` over a run differ; `only` these metrics, if any are named.

    Of every function the metrics `learnt` are learnt on base, but for `small` ones, which are given with their share of a run. Those of
    them that are `alike` cost about the same on both sides, all of them together.
    """

    ledger: Ledger
    points: Sequence[Point]
    config: CompareConfig
    sums: Mapping[str, Sequence[Ratio | None]]
    only: tuple[str, ...] | None = None
    learnt: tuple[str, ...] = LEARNT
    small: Mapping[int, float] = field(default_factory=dict)
    alike: Set[int] = frozenset()

    def sum_ratio(self, function: int, metric: str) -> Ratio | None:
        """Return head over base of a metric's sum over a run, or of the number of calls."""
        return self.sums[metric][self.ledger.place[function]] if metric in self.sums else None


def _ground(ledger: Ledger, experiment: Experiment, config: CompareConfig) -> _Ground:
    small = small_of(experiment.functions, ledger)
    return _Ground(ledger, experiment.points, config, sum_ratios(ledger, config), small=small, alike=alike_of(small, ledger))


@dataclass(frozen=True, slots=True)
class _StudySubject:
    """A function that is studied on some ground, with its calls; `both` and `phased` are None where one side has none."""

    info: FunctionInfo
    ground: _Ground
    phased: PhasedTables | None
    both: Tables | None

    @classmethod
    def of(cls, info: FunctionInfo, samples: Samples, ground: _Ground) -> _StudySubject:
        """Return a function with its calls."""
        phased = phased_tables(info.id, samples)
        return cls(info, ground, phased, Tables(*phased.tables, is_same=not info.change.is_suspect) if phased else None)

    @property
    def is_small(self) -> bool:
        """Return whether it is one of many that each cost no material share of a run."""
        return self.info.id in self.ground.small

    def totals(self, metrics: Iterable[str]) -> dict[str, Ratio]:
        """Return how the sums of metrics over a run differ, of those that have any."""
        return {metric: ratio for metric in metrics if (ratio := self.ground.sum_ratio(self.info.id, metric)) is not None}


def _decisive(subject: _StudySubject, comparisons: Mapping[str, Comparison]) -> Study:
    """Return a function's study by the metrics that verdicts rest on."""
    return Study(
        info=subject.info,
        comparisons=comparisons,
        resolved=_resolved(subject, comparisons),
        shifts={},
        alone={},
        growth=None,
        calls=subject.ground.sum_ratio(subject.info.id, "calls"),
        totals=subject.totals(LEARNT),
    )


def _study(subject: _StudySubject, comparisons: Mapping[str, Comparison], samples: Samples) -> Study:
    """Return a function's study; how a suspect's time per run grows is learnt where all metrics are asked for.

    What small ones of which one side has none cost, and how the cost functions of others moved, is left to `described`.
    """
    info, ground, phased = subject.info, subject.ground, subject.phased
    totals = subject.totals(METRICS)
    grows = info.change.is_suspect and ground.only is None
    return replace(
        _decisive(subject, comparisons),
        shifts=_shifts(comparisons, *phased.tables, ground.config) if phased and not subject.is_small else {},
        alone={} if phased or subject.is_small else _alone(info, samples, ground.config),
        growth=over_runs(info, ground.ledger, ground.points, total=totals.get("wall_ns"), config=ground.config) if grows else None,
        totals=totals,
        warm_up=phased.warm_up if phased else {},
        first=first_calls(phased) if phased and info.change.is_suspect else None,
        waits=waits(*phased.tables, ground.points) if phased and info.change.is_suspect else None,
    )


def described(study: Study, samples: Samples, config: CompareConfig) -> Study:
    """Return a study with the cost functions that it left out: how those of both sides moved, or what those of one side alone are."""
    if not study.comparisons:
        return study if study.alone else replace(study, alone=_alone(study.info, samples, config))
    is_learnt = any(comparison.base is not None for comparison in study.comparisons.values())
    phased = phased_tables(study.info.id, samples) if is_learnt and not study.shifts else None
    return replace(study, shifts=_shifts(study.comparisons, *phased.tables, config)) if phased else study


def _resolved(subject: _StudySubject, comparisons: Mapping[str, Comparison]) -> dict[str, bool]:
    base = subject.phased.base if subject.phased else None
    return {metric: resolved(comparison, base) for metric, comparison in comparisons.items()} if base is not None else {}


def _comparisons(subjects: Sequence[_StudySubject]) -> list[dict[str, Comparison]]:
    """Return the comparisons of each function's metrics, those that are learnt first.

    Small functions are first compared within points, as runs have the same inputs there. They are learnt only where that leaves room for a
    slow-down by a material share of a run, or where they cost something else, which matters at least together, and their inputs moved: then
    it may be these.
    """
    first = [replace(subject, ground=replace(subject.ground, learnt=())) if subject.is_small else subject for subject in subjects]
    comparisons = _compared(first, [{} for _ in first])
    again = [place for place, subject in enumerate(subjects) if subject.is_small and _must_be_learnt(subject, comparisons[place])]
    learnt = [replace(subjects[place], ground=replace(subjects[place].ground, learnt=LOOKED_AT)) for place in again]
    for place, compared in zip(again, _compared(learnt, [comparisons[place] for place in again]), strict=True):
        comparisons[place] = compared
    return comparisons


def _must_be_learnt(subject: _StudySubject, comparisons: Mapping[str, Comparison]) -> bool:
    """Return whether the comparisons of a small function within points leave its inputs a say."""
    ground, own = subject.ground, comparisons.get(PRIMARY)
    if subject.both is None:
        return False
    if own is not None and ground.small[subject.info.id] * hidden(own, ground.config) >= POLICY.material:
        return True
    differs = own is None or own.disjoint or own.p_anywhere <= SEEN
    return differs and subject.info.id not in ground.alike and moved_inputs(*subject.both.sides)


def _compared(subjects: Sequence[_StudySubject], earlier: Sequence[Mapping[str, Comparison]]) -> list[dict[str, Comparison]]:
    """Return the comparisons of functions' metrics, all answered at once; `earlier` ones are asked again only where they are learnt."""
    asked = [_questions(subject, before) for subject, before in zip(subjects, earlier, strict=True)]
    if not asked:
        return []
    ground = subjects[0].ground
    answers = iter(answer([question for by_metric in asked for question in by_metric.values()], ground.ledger, ground.config))
    return [{**before, **{metric: next(answers) for metric in by_metric}} for by_metric, before in zip(asked, earlier, strict=True)]


def _questions(subject: _StudySubject, earlier: Mapping[str, Comparison]) -> dict[str, RunStatistics]:
    ground, both = subject.ground, subject.both
    asked: dict[str, RunStatistics] = {}
    if both is None:
        return asked
    few = thinned(both.base, FIT_ROWS)  # once, so that all metrics are learnt from the same rows
    for metric in (*LEARNT, *(name for name in both.base.metrics if name not in LEARNT)):
        if ground.only is not None and metric not in ground.only:
            continue
        if all(metric in table.metrics and _present(table, metric) for table in both.sides):
            annotation = _learn(metric, few, asked.get(PRIMARY), subject.info.name, ground)
            if annotation is None and metric in earlier:
                continue
            question = ask(MetricQuestion(metric, both, annotation), ground.ledger, ground.points)
            if question is not None:
                asked[metric] = question
    return asked


def _shifts(comparisons: Mapping[str, Comparison], base: SampleTable, head: SampleTable, config: CompareConfig) -> dict[str, Shift]:
    """Return how the metrics that were learnt on base moved; where no call has callees, its time is its own time."""
    shifts: dict[str, Shift] = {}
    for metric in LEARNT:
        comparison = comparisons.get(metric)
        if metric == "wall_ns" and "self_ns" in shifts and same_cost([base, head]):
            shifts[metric] = shifts["self_ns"].of(metric)
        elif comparison is not None and comparison.base is not None:
            shifts[metric] = describe(comparison.base, base, head, differs=False, config=config)
    return shifts


def _alone(info: FunctionInfo, samples: Samples, config: CompareConfig) -> dict[tuple[str, Side], Annotation]:
    """Return what can be learnt of the times of a function that only one side has; there is nothing to compare them with."""
    sides = {side: table for side in Side if (table := samples(info.id, side)) is not None and len(table)}
    if len(sides) != 1:
        return {}
    ((side, table),) = sides.items()
    annotations: dict[tuple[str, Side], Annotation] = {}
    for metric in LEARNT:
        if metric == "wall_ns" and (PRIMARY, side) in annotations and same_cost([table]):
            annotations[metric, side] = replace(annotations[PRIMARY, side], metric=metric)
        elif _present(table, metric):
            annotations[metric, side] = learn(table, metric, info.name, config)
    return annotations


def _present(table: SampleTable, metric: str) -> bool:
    return bool(np.isfinite(table.metrics[metric]).any())


def _learn(metric: str, base: SampleTable, own: RunStatistics | None, function: str, ground: _Ground) -> Annotation | None:
    """Return base's annotation of a metric, or None where the comparison needs none; `own` is what is asked of own time."""
    if metric == "wall_ns" and own is not None and own.question.annotation is not None and same_cost([base]):
        return replace(own.question.annotation, metric=metric)
    inputs_moved = own is not None and any(factor != 1.0 for factor in own.yardstick.mix.values())
    return learn(base, metric, function, ground.config) if metric in ground.learnt or inputs_moved else None


def sum_ratios(ledger: Ledger, config: CompareConfig) -> dict[str, list[Ratio | None]]:
    """Return head over base of each metric's sum over a run, and of the number of calls, by metric, in the order of `ledger.ids`.

    Metrics that some point keeps no sums of are left out.
    """
    ratios: dict[str, list[Ratio | None]] = {}
    for metric in ledger.metrics:
        by_side = {side: [ledger.books[point, side].sums(metric) for point in ledger.points] for side in Side}
        logs: dict[Side, list[Floats]] = {side: [] for side in Side}
        with np.errstate(divide="ignore"):
            for side, sums in by_side.items():
                logs[side] += [np.log(at_point).T for at_point in sums if at_point is not None]
        if all(len(side_logs) == len(ledger.points) for side_logs in logs.values()):
            seen = contrasts(panel(*(ledger.runs(side, logs[side]) for side in Side)))
            ratios[metric] = [as_ratio(contrast, config.confidence) if contrast else None for contrast in seen]
    return ratios
