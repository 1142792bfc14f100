"""What is known of one function by its own calls and sums, without its tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from perfdiff.analysis.compare.compared import Comparison
from perfdiff.analysis.compare.firstcall import FirstCalls
from perfdiff.analysis.compare.waits import Waits
from perfdiff.analysis.findings import BorderShift, CoefficientShift, CostPrediction, MetricFinding, ModeShift, Ratio
from perfdiff.models.annotation import Annotation
from perfdiff.models.warmup import WarmUp
from perfdiff.records.schema import FunctionInfo, Side

# Learnt on base; every other metric is compared within points, and learnt only where the inputs moved or it is reported on.
LEARNT = ("self_ns", "wall_ns")


@dataclass(frozen=True, slots=True)
class Shift:
    """Both sides' annotations and what differs between them."""

    base: Annotation
    head: Annotation
    feature: str | None
    coefficients: tuple[CoefficientShift, ...] = ()
    predictions: tuple[CostPrediction, ...] = ()
    crosses: float | None = None
    class_changed: bool = False
    modes: tuple[ModeShift, ...] = ()
    borders: tuple[BorderShift, ...] = ()

    def of(self, metric: str) -> Shift:
        """Return the same of a metric that has the same values."""
        return replace(self, base=replace(self.base, metric=metric), head=replace(self.head, metric=metric))


@dataclass(frozen=True, slots=True)
class Study:
    """What one function's calls and sums tell by themselves, without its tables: some kB, however many calls there were.

    `resolved` tells which differences the clock can see, `shifts` how learnt metrics moved if their cost is not known to differ. `alone`
    holds the annotations of a function that only one side has, `growth` that of a suspect's time per run. `untested` is the number of
    comparisons that a mere look at the verdicts leaves out. `warm_up` tells of either side how its first calls cost more, where they do,
    `first` what first calls of a run cost beside later ones, `waits` how much longer calls wait for others, where that is most of what
    they take longer; both of a suspect alone.
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
    first: FirstCalls | None = None
    waits: Waits | None = None
