"""The findings of an analysis: the values that reports are written from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from perfdiff.analysis.acceptances import Acceptance
from perfdiff.analysis.callgraph import CallGraph
from perfdiff.analysis.claims import Claim, claim
from perfdiff.analysis.kernel_use import KernelFinding
from perfdiff.analysis.lasting import LastingFinding
from perfdiff.analysis.linegrowth import LineGrowth
from perfdiff.analysis.oddcalls import OddCall, RunErrors
from perfdiff.analysis.peaks import MemoryFinding
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.witnessed import PointBehaviour
from perfdiff.config import CompareConfig
from perfdiff.models.annotation import Annotation
from perfdiff.models.detectors.detector import DetectorKind
from perfdiff.models.prices import DEAREST_NS
from perfdiff.models.warmup import WarmUp
from perfdiff.records.differences import SkippedFunction
from perfdiff.records.endless import EndlessCase
from perfdiff.records.kinds import MachinePart
from perfdiff.records.reach import Reach
from perfdiff.records.schema import ComparedUnit, Environment, FunctionInfo, Note, Point, Revision, Side, Workload
from perfdiff.records.testfiles import is_of_tests
from perfdiff.statistics.tails import SlowRuns

RUN = "run_ns"  # the metric of a function's time per run, beside those of its calls
# A figure that is known to a half and to twice of it only does not tell how much, as a median of few calls of two kinds.
BLURRED = 2.0
MEAN = "mean of all calls"


class Verdict(StrEnum):
    """What can be said of a function or of the whole comparison."""

    REGRESSION = "regression"
    IMPROVEMENT = "improvement"
    UNCHANGED = "unchanged"
    INCONCLUSIVE = "inconclusive"

    @property
    def order(self) -> int:
        """Return the place of functions with this verdict among all: what must be looked at comes first."""
        return (Verdict.REGRESSION, Verdict.IMPROVEMENT, Verdict.INCONCLUSIVE, Verdict.UNCHANGED).index(self)


@dataclass(frozen=True, slots=True)
class FiredRule:
    """A rule of the judge that held: its name and its question."""

    name: str
    asks: str


@dataclass(frozen=True, slots=True)
class Ratio:
    """Head over base with its confidence interval, over `runs_base` and `runs_head` runs. 1.0 means no difference."""

    value: float
    low: float
    high: float
    runs_base: int
    runs_head: int

    @property
    def figures(self) -> tuple[float, float, float]:
        """Return value, low and high end, as a fact of a claim."""
        return self.value, self.low, self.high

    @property
    def is_unknown(self) -> bool:
        """Return whether the interval tells neither the direction nor the size: it holds 1 and what is `BLURRED` times less or more."""
        return self.low <= 1 <= self.high and (self.low * BLURRED < self.value or self.value * BLURRED < self.high)


@dataclass(frozen=True, slots=True)
class CoefficientShift:
    """One term of the cost on both sides, e.g. `n`, in the metric's unit; the interval is of head minus base; q as in the FDR."""

    term: str
    base: float
    head: float
    low: float
    high: float
    q: float


@dataclass(frozen=True, slots=True)
class CostPrediction:
    """Cost of one call at an input, by both annotations. `beyond` tells that the input lies outside what was measured."""

    inputs: Mapping[str, float]
    base: float
    head: float
    beyond: bool


@dataclass(frozen=True, slots=True)
class ModeShift:
    """A mode of a mixture whose share of the calls moved: a typical call's cost in it, the shares, interval and q of their difference."""

    cost: float
    base: float
    head: float
    low: float
    high: float
    q: float


@dataclass(frozen=True, slots=True)
class BorderShift:
    """A feature's value from which on another regime holds, on both sides."""

    feature: str
    base: float
    head: float


@dataclass(frozen=True, slots=True)
class MetricFinding:
    """One metric of one function, compared at equal inputs.

    `ratio` is the cost per call at equal inputs, over the stratum of inputs named by `stratum` ("" = all calls) where head differs most,
    `overall` the same over all calls. `mix` is the ratio of base's predicted cost at head's and at base's inputs (the input mix), `calls`
    that of call counts, `total` that of the metric summed over a run, and `in_all` these sums in one run of each point on both sides.
    `floor` is the smallest ratio minus 1 that this comparison could have seen. `crosses` is the input at which head costs twice what base
    costs, if any. `modes` and `borders` are the regimes that moved. `points` are the ratios at single workload points, by id; their
    intervals hold for all of them at once. `typical` is what a typical call of base costs in the stratum, and `typical_at` the inputs of
    it: `n = 2000`, or "". `machines` are the ratios of that stratum by machine, `machines_q` is the q-value of no difference of these.
    """

    metric: str
    base: Annotation | None
    head: Annotation | None
    feature: str | None  # the main feature, x of the plot
    ratio: Ratio | None
    stratum: str
    overall: Ratio | None
    q: float
    mix: Ratio | None
    calls: Ratio | None
    total: Ratio | None
    floor: float
    coefficients: tuple[CoefficientShift, ...] = ()
    predictions: tuple[CostPrediction, ...] = ()
    crosses: float | None = None
    class_changed: bool = False
    modes: tuple[ModeShift, ...] = ()
    borders: tuple[BorderShift, ...] = ()
    points: Mapping[int, Ratio] = field(default_factory=dict)
    typical: float | None = None
    typical_at: str = ""
    in_all: tuple[float, float] | None = None
    machines: Mapping[str, Ratio] = field(default_factory=dict)
    machines_q: float = math.nan

    @property
    def overstates(self) -> bool:
        """Return whether calls are clearly fewer where each costs more, or more where each costs less: a run feels less than the ratio."""
        if self.ratio is None or self.calls is None or self.total is None or self.ratio.low <= self.total.value <= self.ratio.high:
            return False
        return self.calls.high < 1 < self.ratio.low or self.ratio.high < 1 < self.calls.low


@dataclass(frozen=True, slots=True)
class CauseFigure:
    """A number behind a cause, per call unless it says otherwise."""

    counter: str
    base: float
    head: float


@dataclass(frozen=True, slots=True)
class Cause:
    """Why the cost grew: `name` is a slug such as `more-calls`, `says` tells it with numbers and diff lines."""

    name: str
    says: Claim
    evidence: tuple[CauseFigure, ...] = ()


@dataclass(frozen=True, slots=True)
class CountFinding:
    """One counter of counted runs: a function's own counts, without those of probed callees, per call at one workload point.

    `point` is where base and head differ most, clear differences first; `base` and `head` are medians over runs there, `ratio` head over
    base (half a count added to each run's sum where a run has none). `exact`: all runs of a side counted the same. `grew` and `shrank`
    say that the difference is beyond doubt. `extra` is what head counts more in one run at `point`, `rate` how many times as many counts
    an access to memory head has there, NaN where base has none. `took_ns` is what they take a call in base and head, where that is timed.
    """

    counter: str
    point: Point
    base: float
    head: float
    ratio: Ratio
    exact: bool
    grew: bool
    shrank: bool
    extra: float
    rate: float
    took_ns: tuple[float, float] | None = None

    @property
    def most_ns(self) -> float:
        """Return the most time in ns that head's additional counts can take in one run of the point."""
        return self.extra * DEAREST_NS.get(self.counter, 0.0)

    def explains(self, extra_ns: float) -> bool:
        """Return whether it clearly grew, by what can explain a telling part of extra time at the point."""
        return self.grew and self.most_ns > POLICY.telling * extra_ns


@dataclass(frozen=True, slots=True)
class Vote:
    """A counter that differs most from what is normal in `share` of the anomalous calls (AutoPerf §4.3.2).

    `base` and `head` are its mean counts a call at equal inputs, `ratio` head over base, half a count added to each run's sum.
    """

    counter: str
    share: float
    base: float
    head: float
    ratio: Ratio | None


@dataclass(frozen=True, slots=True)
class Anomaly:
    """What a detector says of a function's calls in head.

    `threshold` is the error above which a call is anomalous; `normal` (μ + 2σ) and `quantile` of base's held-out errors are what it was
    chosen from. `anomalous_base` and `anomalous_head` are shares of the calls, `p` the probability of such a difference between runs of
    one version. `is_anomalous` is the verdict; `open` tells why there is none, None where there is.
    """

    detector: DetectorKind
    threshold: float
    normal: float
    quantile: float
    anomalous_base: float
    anomalous_head: float
    runs_base: int
    runs_head: int
    p: float
    is_anomalous: bool
    open: Claim | None
    votes: tuple[Vote, ...]
    calls: tuple[OddCall, ...]
    errors: tuple[RunErrors, ...]


@dataclass(frozen=True, slots=True)
class FunctionFinding:
    """The conclusion on one function.

    `rank` orders regressed functions, 1 = the likeliest root cause, tests behind sources; None for the rest. `extra_ns` is the cost
    attributed to this function's change per run, summed over the workload points, `share` its part of the extra cost of the whole run (0 to
    1, None where nothing got slower), `extra_ci_ns` its interval and `first` how often it is the largest of all, where blocks are drawn
    anew; both None where it is not guilty by time. `chain` tells the way from the change to where the cost shows, step by step. A
    regression that was `accepted`, by one entry a metric, does not count in the verdict on the whole.
    `lines` run more often, its own or those of functions where its change shows, and `line_counts` is how often each of its lines in head
    ran there, by number. `warm_up` tells how the first calls of a run cost more than later ones, on either side where they do.
    `machines_say` tells where machines disagree on it, None where they do not. `happened` says what came of it, its
    first cause behind that where it `tells_cause`, and `also` what follows. `rests_on` is the metric that the verdict rests on, `rules` are
    those that held, the last of which decided.
    """

    info: FunctionInfo
    verdict: Verdict
    reason: Claim
    rank: int | None
    calls_base: float | None
    calls_head: float | None
    extra_ns: float
    share: float | None
    metrics: Mapping[str, MetricFinding]
    causes: tuple[Cause, ...]
    chain: tuple[Claim, ...]
    happened: Claim | None
    counts: Mapping[str, CountFinding] = field(default_factory=dict)
    anomaly: Anomaly | None = None
    accepted: tuple[Acceptance, ...] = ()
    extra_ci_ns: tuple[float, float] | None = None
    first: float | None = None
    lines: tuple[LineGrowth, ...] = ()
    line_counts: Mapping[int, float] = field(default_factory=dict)
    warm_up: Mapping[Side, WarmUp] = field(default_factory=dict)
    machines_say: Claim | None = None
    rests_on: str | None = None
    rules: tuple[FiredRule, ...] = ()
    tells_cause: bool = False
    also: tuple[Claim, ...] = ()

    @property
    def order(self) -> tuple[bool, int, int]:
        """Return a sort key: slower functions by rank, then the others, those of tests last."""
        return self.rank is None and is_of_tests(self.info.file), self.verdict.order, self.rank or 0

    @property
    def headline(self) -> Claim:
        """Return the headline: what happened, its first cause if the finding `tells_cause`, and the further claims (`also`)."""
        cause = self.causes[0].says if self.tells_cause and self.causes else None
        return claim("headline", happened=self.happened, cause=cause, also=self.also)

    @property
    def is_open_regression(self) -> bool:
        """Return whether it is a regression that nobody accepted."""
        return self.verdict is Verdict.REGRESSION and not self.accepted


class PointStanding(StrEnum):
    """What whole runs say of a point."""

    SLOWER = "slower"
    NOT_SLOWER = "not slower"  # a slow-down of interest is excluded
    FASTER = "faster"
    OPEN = "open"
    CLOCKED = "ends by the clock"  # as long however fast the program is, so that no run tells


class Rung(StrEnum):
    """Which evidence the verdict rests on, the most certain first (the ladder of `docs/methods.md`)."""

    CODE = "code"  # the machine code is the same
    COUNTS = "counts"  # exact counts
    RUNS = "runs"  # whole runs without probes
    CALLS = "calls"  # probed calls


@dataclass(frozen=True, slots=True)
class EndToEnd:
    """Whole runs of the plain builds at one point, and what probes cost there (CPU time of the timed build, the costlier side's).

    `base_ns` and `head_ns` are of the cost that was judged, `by` CPU time or time: the means that `ratio` is of, medians of too few pairs.
    Its bounds hold at all looks. `needed`: about so many pairs would decide, 0 unknown. `machines` are the ratios on single machines, by
    name; where these `disagree` beyond chance, `ratio` is that of the machine that speaks for the point, and its upper bound the highest.
    `by_layouts`: these decide. `judges`: it counts in the verdict. `waits_more`: head waits more. `at_times`: head's longest by its median.
    `slow`: slow runs of the workload, where head has more of them than chance makes. `pairs`: of all runs that were made.
    """

    point: Point
    base_ns: float
    head_ns: float
    ratio: Ratio | None
    overhead: float | None
    standing: PointStanding = PointStanding.OPEN
    by: str = "cpu_ns"
    needed: int = 0
    machines: Mapping[str, Ratio] = field(default_factory=dict)
    disagree: bool = False
    by_layouts: bool = False
    judges: bool = True
    waits_more: bool = False
    at_times: float | None = None
    slow: SlowRuns | None = None
    pairs: int = 0

    @property
    def is_of_two_kinds(self) -> bool:
        """Return whether some runs of head are slow beside its others, which no place of code makes."""
        return self.at_times is not None or self.slow is not None

    def smallest(self, config: CompareConfig) -> float:
        """Return the smallest ratio of interest at the point."""
        return 1 + config.at(self.point.min_effect).min_effect

    @property
    def cost(self) -> str:
        """Return the judged quantity in words: `CPU time` or `time`."""
        return "CPU time" if self.by == "cpu_ns" else "time"

    @property
    def low(self) -> float:
        """Return the lower bound of the ratio, 0 where there is none."""
        return self.ratio.low if self.ratio else 0.0

    @property
    def high(self) -> float:
        """Return the upper bound of the ratio, infinity where there is none."""
        return self.ratio.high if self.ratio else math.inf


@dataclass(frozen=True, slots=True)
class RequestFinding:
    """Requests of one kind at one point: how many a run makes, and of these how many fail on both sides.

    The others were waited for so long, as a median and in all but 5 % of cases, medians over runs; None where all fail. `ratio` compares
    the medians of runs, pair by pair.
    """

    point: Point
    name: str
    made: int
    failed: int
    base_ns: float | None
    head_ns: float | None
    base_tail_ns: float | None
    head_tail_ns: float | None
    ratio: Ratio | None


@dataclass(frozen=True, slots=True)
class Findings:
    """The whole conclusion, in one line the `sentence`; `functions` come guilty first; `machines` are those compared within."""

    verdict: Verdict
    sentence: Claim
    base: Revision
    head: Revision
    environment: Environment
    workloads: tuple[Workload, ...]
    points: tuple[Point, ...]
    end_to_end: tuple[EndToEnd, ...]
    functions: tuple[FunctionFinding, ...]
    skipped: tuple[SkippedFunction, ...]
    notes: tuple[Note | Claim, ...]  # a claim's kind is the slug
    overhead: float | None  # added CPU time of the timed build, as a share
    confidence: float = 0.95  # of every interval
    min_effect: float = 0.05  # smaller shifts are below the threshold of interest
    calls: CallGraph | None = None
    rung: Rung = Rung.CALLS
    excluded: float | None = None  # slow-downs of the program from this ratio on are excluded at all points
    stages: Mapping[str, float] = field(default_factory=dict)  # seconds that each stage of measuring and analysing took
    requests: tuple[RequestFinding, ...] = ()
    machines: tuple[MachinePart, ...] = ()
    reach: Reach | None = None  # how much of what changed ran
    met: tuple[str, ...] = ()  # files that differ, and that slower runs open or ask after
    outside: tuple[str, ...] = ()  # files outside of the trees that runs read, and that builds or earlier runs wrote
    endless: tuple[EndlessCase, ...] = ()
    behaviour: tuple[PointBehaviour, ...] = ()
    memory: MemoryFinding | None = None  # of whole runs, None where nobody knows their peaks
    lasting: LastingFinding | None = None  # at the ends of counted runs, None where it is not known
    kernel: KernelFinding | None = None  # of whole runs, None where that is not known
    rules: tuple[FiredRule, ...] = ()  # that held: the one that decided, then those that took something back
    compared: ComparedUnit = ComparedUnit.REVISIONS


def is_mean(stratum: str) -> bool:
    """Return whether a stratum is the mean of all calls, at all points or at one."""
    return stratum.startswith(MEAN)
