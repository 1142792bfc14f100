"""What a function cost over many revisions, each recorded by itself, and where that changed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from perfdiff.analysis.annotations.annotating import MOST_ROWS, USUAL, annotate, telling
from perfdiff.analysis.annotations.assertion import Assertion, Setting, Standing, check
from perfdiff.analysis.annotations.checking import calls_against, whole_runs
from perfdiff.analysis.findings import Ratio
from perfdiff.analysis.policy import DRIFT
from perfdiff.analysis.stats.rows import thinned
from perfdiff.analysis.sums.profile import calls_of
from perfdiff.config import CompareConfig
from perfdiff.models.annotation import PHASE, STEADY_CODE, Annotation
from perfdiff.records.metrics import metric_of
from perfdiff.records.recorded import Recorded
from perfdiff.records.schema import FunctionInfo, Note, Revision, Side

SAME_CALLS = 0.01  # where threads share work, the calls of a run vary a little
TIMED_APART = Note(
    "recorded-apart",
    "the revisions were recorded one after the other, and the machine itself may change meanwhile: times count as changed from "
    f"{100 * DRIFT:.0f} % on; `perfdiff BASE HEAD` measures two revisions in turn and sees smaller changes",
)

# A revision with what was recorded of it, or the reason why there is nothing.
Recording = tuple[Revision, Recorded | str]


@dataclass(frozen=True, slots=True)
class Step:
    """A change point: calls cost `ratio` times what they did from the revision `since` on. `stratum` names the inputs, "" for all."""

    ratio: Ratio
    since: Revision
    stratum: str


@dataclass(frozen=True, slots=True)
class Cost:
    """One metric of a function in one revision.

    `value` is the cost of a call at the history's reference input, `low` to `high` its interval over runs. `broken` says why it could not
    be held against the revisions before.
    """

    annotation: Annotation
    value: float
    low: float
    high: float
    step: Step | None = None
    broken: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """A revision: the function's calls in one run of each workload point, and its costs by metric; `reason` says why there are none."""

    revision: Revision
    calls: float | None = None
    costs: Mapping[str, Cost] = field(default_factory=dict)
    reason: str = ""


@dataclass(frozen=True, slots=True)
class History:
    """A function over revisions, oldest first; `reference` are the inputs that costs are told at."""

    function: str
    file: str
    entries: tuple[Entry, ...]
    reference: Mapping[str, float]
    config: CompareConfig
    notes: tuple[Note, ...] = ()


def history(function: str, file: str, recordings: Sequence[Recording], metrics: Sequence[str], config: CompareConfig) -> History:
    """Return the history of the function of this name, that of `file` where a revision has several.

    Each revision is held against the annotation of the one that began the current level, not against its neighbour, so that many small
    changes add up to one. It begins a new level where `assertion.check` finds the annotation violated or the function faster: beyond
    chance, and for times beyond what a machine drifts by from one recording to another (`policy.DRIFT`); exact counts need no such
    allowance, only `min_effect`. No `metrics` means the usual ones that tell something in some revision.
    """
    levels = _Levels(metrics or _telling(function, file, recordings), config)
    entries = []
    for revision, found in recordings:
        info = found if isinstance(found, str) else _named(function, file, found)
        if isinstance(found, str) or isinstance(info, str):
            entries.append(Entry(revision, reason=str(info)))
            continue
        entries.append(levels.entry(revision, info, found))
    reference = _reference(entries)
    timed = any(metric_of(metric).unit == "ns" for entry in entries for metric in entry.costs)
    return History(
        function=function,
        file=file,
        entries=tuple(_at(entry, reference, config) for entry in entries),
        reference=reference,
        config=config,
        notes=(TIMED_APART,) if timed and len(entries) > 1 else (),
    )


def _telling(function: str, file: str, recordings: Sequence[Recording]) -> list[str]:
    """Return the usual metrics that tell something in some revision: a count that was always 0 before is a change, too."""
    found: set[str] = set()
    for _, recording in recordings:
        info = recording if isinstance(recording, str) else _named(function, file, recording)
        if not isinstance(recording, str) and not isinstance(info, str):
            table = recording.samples(info.id, Side.BASE)
            found |= {*telling(table)} if table is not None else set()
    return [metric for metric in USUAL if metric in found]


def _named(function: str, file: str, found: Recorded) -> FunctionInfo | str:
    """Return the function in what was recorded, or why it is not there."""
    same = [info for info in found.experiment.functions if info.name == function]
    here = [info for info in same if info.file == file] or same
    if len(here) == 1:
        return here[0]
    if here:
        return f"{len(here)} functions have this name"
    skipped = [each.reason for each in found.experiment.skipped if each.name == function]
    return skipped[0] if skipped else "no function of this name"


class _Levels:
    """The annotations that began the current level of each metric, against which revisions are held one after the other."""

    def __init__(self, metrics: Sequence[str], config: CompareConfig) -> None:
        self._metrics = metrics
        self._config = config
        self._began: dict[str, tuple[Annotation, Revision]] = {}

    def entry(self, revision: Revision, info: FunctionInfo, found: Recorded) -> Entry:
        """Annotate one revision and hold it against the current levels, of which it may begin new ones."""
        table = found.samples(info.id, Side.BASE)
        calls = calls_of(info, found)
        if table is None or not len(table):
            return Entry(revision, calls, reason="never called by any workload" if calls is None else "none of its single calls was kept")
        learnt = list(annotate(info.name, thinned(table, MOST_ROWS), self._metrics, seed=self._config.seed))
        setting = Setting(found.experiment.points, whole_runs(found.experiment.totals), self._config)
        began = [self._began[each.metric][0] for each in learnt if each.metric in self._began]
        cases = [(each, calls_against(table, each)) for each in began]
        held = {each.annotation.metric: each for each in check(cases, setting)}
        return Entry(revision, calls, {each.metric: self._cost(each, held.get(each.metric), revision) for each in learnt})

    def _cost(self, annotation: Annotation, held: Assertion | None, revision: Revision) -> Cost:
        metric = annotation.metric
        step = _step(held, self._began[metric][1]) if held else None
        broken = held.reason if held and held.standing is Standing.NOT_JUDGED else ""
        if held is None or step or broken:
            self._began[metric] = annotation, revision
        return Cost(annotation, math.nan, math.nan, math.nan, step, broken)


def _step(assertion: Assertion, since: Revision) -> Step | None:
    if assertion.standing is Standing.VIOLATED and assertion.worst is not None:
        return Step(assertion.worst, since, assertion.stratum)
    if assertion.standing is Standing.FASTER and assertion.overall is not None:
        return Step(assertion.overall, since, "")
    return None


def _reference(entries: Sequence[Entry]) -> dict[str, float]:
    """Return typical inputs: of each feature that some cost follows, those of the first revision where one does."""
    found: dict[str, float] = {}
    for entry in entries:
        for cost in entry.costs.values():
            for name in cost.annotation.features:
                if name in cost.annotation.typical:
                    found.setdefault(name, cost.annotation.typical[name])
    return found


def _at(entry: Entry, reference: Mapping[str, float], config: CompareConfig) -> Entry:
    """Return an entry with its costs at the reference input: what the annotation says there, times the mean level of its runs."""
    costs = {}
    for metric, cost in entry.costs.items():
        annotation = cost.annotation
        values = {name: np.array([value]) for name, value in reference.items() if name in annotation.features}
        values |= {PHASE: np.array([STEADY_CODE])} if PHASE in annotation.features else {}
        value = float(annotation.predict(values)[0])
        mean, half = _level(annotation, config.confidence)
        costs[metric] = replace(cost, value=value * math.exp(mean), low=value * math.exp(mean - half), high=value * math.exp(mean + half))
    return replace(entry, costs=costs)


def _level(annotation: Annotation, confidence: float) -> tuple[float, float]:
    """Return the mean level of the annotation's runs and half the width of its interval (Student's t)."""
    from scipy.special import stdtrit

    levels = annotation.levels
    if levels is None:
        return 0.0, math.inf
    error, freedom = levels.spread / math.sqrt(levels.runs), levels.runs - levels.points
    return levels.mean, float(stdtrit(freedom, (1 + confidence) / 2)) * error if freedom > 0 else math.inf
