"""Annotations held against runs in which a service answered later and later: the experiment of HotCloud, §5, and who waits for what.

Passing rates by delay are the paper's. Beyond it: how many answers of the service a call waits for, which is the slope of its time over
the delay, from runs that do the same at each delay.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from perfdiff.analysis.annotations.assertion import Assertion
from perfdiff.analysis.annotations.checking import check_recorded
from perfdiff.analysis.claims import Claim, claim
from perfdiff.analysis.series import CheckedAssertions, Standing
from perfdiff.analysis.sums.levelling import edges_of, totals_of
from perfdiff.config import CompareConfig, ServiceLink
from perfdiff.models.annotation import Annotation
from perfdiff.models.middle import median
from perfdiff.records.arrays import Floats
from perfdiff.records.recorded import RecordedExperiment
from perfdiff.records.schema import Experiment, FunctionInfo, Note, Run, SampleTable, Side, Totals

NS_PER_MS = 1e6
# A call that waits for fewer answers than one in a hundred is not what is slow.
LEAST_ANSWERS = 0.01
_DRAWS = 400  # of the bootstrap over runs


@dataclass(frozen=True, slots=True)
class Answers:
    """How many answers of the service a call waits for at a workload point, with an interval over runs."""

    point: str
    answers: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """How a function's calls follow the service's delay.

    `answers` are those that a call waits for, on average over all points, callees included, from `low` to `high`; `own` those that it waits
    for outside of functions with probes. `call_ns` is the cost of a call at the least delay, `points` tell of each workload point.
    """

    function: str
    answers: float
    low: float
    high: float
    own: float
    own_low: float
    call_ns: float
    points: tuple[Answers, ...]

    @property
    def is_sensitive(self) -> bool:
        """Return whether its calls wait for the service, beyond chance."""
        return self.low >= LEAST_ANSWERS

    @property
    def asks(self) -> bool:
        """Return whether it waits for the service itself, and not in other functions with probes."""
        return self.own_low >= LEAST_ANSWERS


@dataclass(frozen=True, slots=True)
class DelayStep:
    """The annotations at one delay; `answers_a_run` by workload point, where a proxy counted them."""

    delay_ms: float
    checked: CheckedAssertions[Assertion]
    answers_a_run: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Sweep:
    """A revision held against annotations at rising delays of a service; `sensitivities` by falling answers."""

    service: str
    steps: tuple[DelayStep, ...]
    sensitivities: tuple[Sensitivity, ...]
    notes: tuple[Note | Claim, ...]

    @property
    def verdict(self) -> Standing:
        """Return how the whole stands; a sweep is an experiment: only what is violated without any delay is."""
        first = self.steps[0]
        if all(step.checked.verdict is Standing.NOT_JUDGED for step in self.steps):
            return Standing.NOT_JUDGED
        is_judged = first.delay_ms == 0 and first.checked.verdict is not Standing.NOT_JUDGED
        return first.checked.verdict if is_judged else Standing.HOLDS

    @property
    def sensitive(self) -> tuple[Sensitivity, ...]:
        """Return the functions whose calls wait for the service."""
        return tuple(sensitivity for sensitivity in self.sensitivities if sensitivity.is_sensitive)


def check_worse(
    annotations: Sequence[Annotation], recorded: RecordedExperiment, asked: Sequence[ServiceLink], config: CompareConfig
) -> CheckedAssertions[Assertion] | Sweep:
    """Hold what was recorded, of services that were worse to reach as `asked`, against annotations: once, or at each delay of a sweep."""
    swept = next((link for link in asked if link.delays_ms), None)
    checked = (
        sweep(annotations, recorded, swept.service, swept.parameter, config)
        if swept
        else check_recorded(annotations, recorded, recorded.sides[-1], config)
    )
    notes = worse_services([link for link in asked if not link.delays_ms], recorded.experiment)
    return replace(checked, notes=(*notes, *checked.notes))


def sweep(annotations: Sequence[Annotation], recorded: RecordedExperiment, service: str, parameter: str, config: CompareConfig) -> Sweep:
    """Hold what was recorded against annotations, for each value of the points' `parameter`, a delay in milliseconds."""
    delays = {point.id: float(point.parameters[parameter]) for point in recorded.experiment.points if parameter in point.parameters}
    side = recorded.sides[-1]
    steps = []
    for delay in sorted(set(delays.values())):
        part = at_points(recorded, frozenset(point for point, value in delays.items() if value == delay))
        checked = check_recorded(annotations, part, side, config)
        steps.append(DelayStep(delay, replace(checked, notes=()), _answers_a_run(part.experiment, service, parameter)))
    notes: tuple[Note | Claim, ...] = (*dict.fromkeys(recorded.experiment.notes), *_unanswered(steps, service))
    return Sweep(service, tuple(steps), tuple(_sensitivities(recorded.experiment, delays, service, parameter, config)), notes)


def worse_services(asked: Sequence[ServiceLink], experiment: Experiment) -> Iterator[Claim]:
    """Yield for each service that is worse to reach how so, and how often the runs asked it."""
    for link in asked:
        counted = [run.services[link.service] for run in experiment.runs if link.service in run.services]
        answers = median(np.array([traffic.exchanges for traffic in counted], dtype=np.float64)) if counted else 0.0
        yield claim(
            "service-worse",
            service=link.service,
            delay_s=link.delay_s,
            jitter_s=link.jitter_s,
            bytes_per_s=link.bytes_per_s,
            failing=link.failing,
            refused=link.refused,
            reset_after=link.reset_after,
            answers=answers if counted else None,
            failures=sum(traffic.failures for traffic in counted),
        )


def _unanswered(steps: Sequence[DelayStep], service: str) -> Iterator[Claim]:
    counted = [step for step in steps if step.answers_a_run]
    if counted and not any(sum(step.answers_a_run.values()) for step in counted):
        yield claim("service-not-asked", service=service)


def at_points(recorded: RecordedExperiment, points: frozenset[int]) -> RecordedExperiment:
    """Return the recording of some workload points alone."""
    whole = recorded.experiment
    runs = tuple(run for run in whole.runs if run.point in points)
    run_ids = np.array([run.id for run in runs], dtype=np.int64)
    experiment = replace(
        whole,
        points=tuple(point for point in whole.points if point.id in points),
        runs=runs,
        totals=totals_of(whole.totals, run_ids),
        edges=edges_of(whole.edges, run_ids),
    )
    return RecordedExperiment(experiment, _PointSamples(recorded.samples, points))


@dataclass(frozen=True, slots=True)
class _PointSamples:
    """A loader of the rows of some workload points."""

    load: Callable[[int, Side], SampleTable | None]
    points: frozenset[int]

    def __call__(self, function: int, side: Side) -> SampleTable | None:
        table = self.load(function, side)
        return None if table is None else table.rows(np.flatnonzero(np.isin(table.point, list(self.points))))


def _answers_a_run(experiment: Experiment, service: str, parameter: str) -> dict[str, float]:
    """Return the median number of answers in a run of each workload point, where proxies counted them."""
    labels = {point.id: label(experiment, point.id, parameter) for point in experiment.points}
    counted: dict[str, list[float]] = {}
    for run in experiment.runs:
        if service in run.services:
            counted.setdefault(labels[run.point], []).append(run.services[service].exchanges)
    return {name: median(np.array(values)) for name, values in counted.items()}


def label(experiment: Experiment, point: int, parameter: str) -> str:
    """Return a workload point as people name it, without its delay."""
    (workload_point,) = (candidate for candidate in experiment.points if candidate.id == point)
    return replace(workload_point, parameters={name: value for name, value in workload_point.parameters.items() if name != parameter}).label


@dataclass(frozen=True, slots=True)
class _Cell:
    """The runs of one function at one workload point and delay: `calls` (r,), and their cost in all, `wall_ns` and `self_ns` (r,)."""

    point: str
    delay_ns: float
    calls: Floats
    wall_ns: Floats
    self_ns: Floats


def _delays_ns(experiment: Experiment, delays: Mapping[int, float], service: str) -> dict[int, float]:
    """Return how late answers came at each point: as measured, where there was a proxy; a busy machine adds to what was asked for."""
    seen: dict[int, list[float]] = {}
    for run in experiment.runs:
        if (passed := run.services.get(service)) and passed.exchanges:
            seen.setdefault(run.point, []).append(passed.late_ns / passed.exchanges)
    return {point: median(np.array(seen[point])) if point in seen else delay * NS_PER_MS for point, delay in delays.items()}


def _sensitivities(
    experiment: Experiment, delays: Mapping[int, float], service: str, parameter: str, config: CompareConfig
) -> Iterator[Sensitivity]:
    """Yield how each function follows the delay, those that wait for the most answers first."""
    totals, runs = experiment.totals, {run.id: run for run in experiment.runs}
    labels = {point: label(experiment, point, parameter) for point in delays}
    delays_ns = _delays_ns(experiment, delays, service)
    seen = [
        sensitivity
        for info in experiment.functions
        if (sensitivity := _sensitivity(info, list(_cells(info, totals, runs, delays_ns, labels)), len(experiment.functions), config))
    ]
    yield from sorted(seen, key=lambda sensitivity: (-sensitivity.low, -sensitivity.answers, sensitivity.function))


def _cells(
    info: FunctionInfo, totals: Totals, runs: Mapping[int, Run], delays: Mapping[int, float], labels: Mapping[int, str]
) -> Iterator[_Cell]:
    own = np.flatnonzero((totals.function == info.id) & (totals.calls > 0))
    points = np.array([runs[int(run)].point for run in totals.run[own]], dtype=np.int64)
    for point, delay_ns in delays.items():
        rows = own[points == point]
        if len(rows):
            yield _Cell(labels[point], delay_ns, totals.calls[rows], totals.wall_ns[rows], totals.self_ns[rows])


def _sensitivity(info: FunctionInfo, cells: Sequence[_Cell], functions: int, config: CompareConfig) -> Sensitivity | None:
    """Return how a function's time follows the delay; None where it ran at fewer than two delays of each point, or once at each."""
    points = {name: [cell for cell in cells if cell.point == name] for name in dict.fromkeys(cell.point for cell in cells)}
    points = {name: those for name, those in points.items() if len(those) > 1}
    freedom = sum(len(cell.calls) - 1 for those in points.values() for cell in those)
    if not freedom:
        return None
    rng = np.random.default_rng(config.seed)
    quantile = _quantile(config.confidence, functions, freedom)
    wall = {name: _slopes(those, lambda cell: cell.wall_ns, rng) for name, those in points.items()}
    own = {name: _slopes(those, lambda cell: cell.self_ns, rng) for name, those in points.items()}
    weights = {name: median(those[0].calls) for name, those in points.items()}
    answers, error = _pooled(wall, weights)
    of_itself, own_error = _pooled(own, weights)
    least = [those[0] for those in points.values()]
    return Sensitivity(
        function=info.name,
        answers=answers,
        low=answers - quantile * error,
        high=answers + quantile * error,
        own=of_itself,
        own_low=of_itself - quantile * own_error,
        call_ns=sum(median(cell.wall_ns) for cell in least) / sum(median(cell.calls) for cell in least),
        points=tuple(
            Answers(name, slope, slope - quantile * spread, slope + quantile * spread)
            for name, (slope, draws) in wall.items()
            for spread in (float(draws.std()),)
        ),
    )


def _quantile(confidence: float, comparisons: int, freedom: int) -> float:
    """Return the half width, in standard errors of so much freedom, of intervals that hold for all of `comparisons` (Bonferroni)."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 1 - (1 - confidence) / (2 * max(1, comparisons))))


def _slopes(cells: Sequence[_Cell], cost: Callable[[_Cell], Floats], rng: np.random.Generator) -> tuple[float, Floats]:
    """Return the slope of the cost of a call over the delay, and that of runs drawn anew (draws,).

    The line of Theil and Sen through the medians over runs: the median of the slopes between all pairs of delays. What is drawn of r runs
    varies by (r - 1)/r of what they do (Efron and Tibshirani 1993, §5.3), and is moved away from their median by that much.
    """
    rates = [cost(cell) / cell.calls for cell in cells]
    delays = np.array([cell.delay_ns for cell in cells])
    first, second = np.triu_indices(len(cells), 1)
    drawn = np.array([_drawn_medians(rate, rng) for rate in rates])

    def slope(medians: Floats) -> Floats:
        return np.asarray(np.median((medians[second] - medians[first]) / (delays[second] - delays[first])[:, None], axis=0))

    middle = np.array([[median(rate)] for rate in rates])
    return float(slope(middle)[0]), slope(drawn)


def _drawn_medians(rate: Floats, rng: np.random.Generator) -> Floats:
    medians, middle = np.median(rng.choice(rate, (_DRAWS, len(rate))), axis=1), median(rate)
    return np.asarray(middle + (medians - middle) * math.sqrt(len(rate) / max(len(rate) - 1, 1)))


def _pooled(slopes: Mapping[str, tuple[float, Floats]], weights: Mapping[str, float]) -> tuple[float, float]:
    """Return the mean slope of all points, weighted by their calls, with its standard error."""
    whole = sum(weights.values())
    value = sum(weights[name] * slope for name, (slope, _) in slopes.items()) / whole
    draws = sum((weights[name] * drawn for name, (_, drawn) in slopes.items()), np.zeros(_DRAWS)) / whole
    return value, float(draws.std())
