"""The cost of a function over many revisions, each recorded separately, and its change points."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from perfdiff.analysis.annotations.annotating import MOST_ROWS, USUAL, annotate, telling
from perfdiff.analysis.annotations.assertion import Assertion, AssertionSetting, check
from perfdiff.analysis.annotations.checking import calls_against, whole_runs
from perfdiff.analysis.claims import Claim, claim
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.series import ChangePoint, Cost, FunctionHistory, RevisionEntry, Standing
from perfdiff.analysis.stats.rows import thinned
from perfdiff.analysis.sums.profile import calls_of
from perfdiff.config import CompareConfig
from perfdiff.models.annotation import PHASE, STEADY_CODE, Annotation
from perfdiff.records.metrics import metric_of
from perfdiff.records.recorded import RecordedExperiment
from perfdiff.records.relay import Handover, Relay
from perfdiff.records.schema import FunctionInfo, Note, Revision, SampleTable, Side

SAME_CALLS = 0.01  # where threads share work, the calls of a run vary a little
ELSEWHERE = claim("recorded-elsewhere")

# A revision with what was recorded of it, or the reason why there is nothing.
Recording = tuple[Revision, RecordedExperiment | str]


def history(  # noqa: PLR0913 (what is followed, through what, and how it is judged)
    function: str,
    file: str,
    recordings: Sequence[Recording],
    metrics: Sequence[str],
    config: CompareConfig,
    *,
    relay: Relay | None = None,
) -> FunctionHistory:
    """Return the history of the function of this name, that of `file` where a revision has several.

    Each revision is held against the annotation of the one that began the current level, not against its neighbour, so that many small
    changes add up to one. It begins a new level where `assertion.check` finds the annotation violated or the function faster: beyond
    chance, and for times beyond what a machine drifts by from one recording to another (`drift` of the policy); exact counts need no such
    allowance, only `min_effect`. No `metrics` means the usual ones that tell something in some revision.

    Where a `relay` of machines recorded the revisions, the level goes over to the next machine by the revision that both recorded: it is
    what that one costs there, less what it had gained on the level before, as far as that is sure.
    """
    levels = _Levels(function, file, metrics or _telling(function, file, recordings), config)
    handovers = relay.handovers if relay else {}
    entries, moved = [], []
    for place, (revision, recording) in enumerate(recordings):
        if place in handovers:
            levels.hand_over(handovers[place])
        entry = _entry(revision, recording, function, file, levels)
        entries.append(replace(entry, machine=relay.on[place] if relay else ""))
        moved.append(levels.moved)
    reference = _reference(entries)
    timed = any(metric_of(metric).unit == "ns" for entry in entries for metric in entry.costs)
    return FunctionHistory(
        function=function,
        file=file,
        entries=tuple(_at(entry, reference, config, by) for entry, by in zip(entries, moved, strict=True)),
        reference=reference,
        config=config,
        notes=notes_of(relay, timed=timed and len(entries) > 1),
        machines=relay.machines if relay else (),
    )


def _entry(revision: Revision, recording: RecordedExperiment | str, function: str, file: str, levels: _Levels) -> RevisionEntry:
    if isinstance(recording, str):
        return RevisionEntry(revision, reason=claim("given", reason=recording))
    info = _named(function, file, recording)
    return RevisionEntry(revision, reason=info) if isinstance(info, Claim) else levels.entry(revision, info, recording)


def notes_of(relay: Relay | None, *, timed: bool) -> tuple[Note | Claim, ...]:
    """Return what there is to tell of revisions that were recorded apart, by one machine or several."""
    apart = [claim("recorded-apart", drift=POLICY.drift)] if timed else []
    in_turn = [claim("recorded-in-turn")] if relay and len(relay.machines) > 1 else []
    return (*apart, *in_turn, *(relay.notes if relay else ()))


def _telling(function: str, file: str, recordings: Sequence[Recording]) -> list[str]:
    """Return the usual metrics that tell something in some revision: a count that was always 0 before is a change, too."""
    present: set[str] = set()
    for _, recording in recordings:
        info = recording if isinstance(recording, str) else _named(function, file, recording)
        if not isinstance(recording, str) and isinstance(info, FunctionInfo):
            table = recording.samples(info.id, Side.BASE)
            present |= {*telling(table)} if table is not None else set()
    return [metric for metric in USUAL if metric in present]


def _named(function: str, file: str, recorded: RecordedExperiment) -> FunctionInfo | Claim:
    """Return the function in what was recorded, or why it is not there."""
    same = [info for info in recorded.experiment.functions if info.name == function]
    here = [info for info in same if info.file == file] or same
    if len(here) == 1:
        return here[0]
    if here:
        return claim("many-functions", functions=len(here))
    skipped = [skip.reason for skip in recorded.experiment.skipped if skip.name == function]
    return claim("given", reason=skipped[0]) if skipped else claim("no-function")


# Of each metric, what the revision that two machines recorded costs on the first and on the second, for each time that another one went on.
_Moved = Mapping[str, tuple[tuple[Annotation, Annotation], ...]]


class _Levels:
    """The annotations that began the current level of each metric, against which revisions are held one after the other."""

    def __init__(self, function: str, file: str, metrics: Sequence[str], config: CompareConfig) -> None:
        self._function, self._file = function, file
        self._metrics = metrics
        self._config = config
        self._began: dict[str, tuple[Annotation, Revision]] = {}
        self._broken: dict[str, Claim] = {}
        self._calls: float | None = None
        self.moved: _Moved = {}

    def entry(self, revision: Revision, info: FunctionInfo, recorded: RecordedExperiment) -> RevisionEntry:
        """Annotate one revision and hold it against the current levels, of which it may begin new ones."""
        table = recorded.samples(info.id, Side.BASE)
        calls, before = calls_of(info, recorded), self._calls
        self._calls = before if calls is None else calls
        if table is None or not len(table):
            reason = claim("never-called" if calls is None else "no-calls-kept")
            return RevisionEntry(revision, calls, reason=reason, calls_before=before)
        learnt = self._annotated(info, table)
        held = self._held([annotation for annotation, _ in self._began.values() if annotation.metric in learnt], table, recorded)
        costs = {metric: self._cost(annotation, held.get(metric), revision) for metric, annotation in learnt.items()}
        return RevisionEntry(revision, calls, costs, calls_before=before)

    def hand_over(self, handover: Handover) -> None:
        """Go on with another machine: what began levels on the one before is replaced by what it costs on this one."""
        before, after = (self._found(recorded) for recorded in (handover.before, handover.after))
        if before is None or after is None:
            self._broken = dict.fromkeys(self._began, ELSEWHERE)
            self._began, self._calls = {}, None
            return
        costs, ours = (self._annotated(info, table) for info, table, _ in (before, after))
        held = self._held([annotation for annotation, _ in self._began.values()], before[1], before[2])
        for metric, (_, since) in list(self._began.items()):
            if metric in costs and metric in ours:
                self._began[metric] = _less(ours[metric], held[metric]), since
            else:
                del self._began[metric]
                self._broken[metric] = ELSEWHERE
        common = [metric for metric in costs if metric in ours]
        self.moved = {**self.moved, **{metric: (*self.moved.get(metric, ()), (costs[metric], ours[metric])) for metric in common}}
        self._calls = calls_of(after[0], after[2])

    def _found(self, recorded: RecordedExperiment | None) -> tuple[FunctionInfo, SampleTable, RecordedExperiment] | None:
        """Return the function in what was recorded, with its calls; None where it is not there."""
        info = _named(self._function, self._file, recorded) if recorded else None
        if recorded is None or not isinstance(info, FunctionInfo):
            return None
        table = recorded.samples(info.id, Side.BASE)
        return (info, table, recorded) if table is not None and len(table) else None

    def _annotated(self, info: FunctionInfo, table: SampleTable) -> dict[str, Annotation]:
        learnt = annotate(info.name, thinned(table, MOST_ROWS), self._metrics, seed=self._config.seed)
        return {annotation.metric: annotation for annotation in learnt}

    def _held(self, began: Sequence[Annotation], table: SampleTable, recorded: RecordedExperiment) -> dict[str, Assertion]:
        """Hold calls against the annotations of levels."""
        setting = AssertionSetting(recorded.experiment.points, whole_runs(recorded.experiment.totals), self._config)
        assertions = check([(annotation, calls_against(table, annotation)) for annotation in began], setting)
        return {assertion.annotation.metric: assertion for assertion in assertions}

    def _cost(self, annotation: Annotation, held: Assertion | None, revision: Revision) -> Cost:
        metric = annotation.metric
        step = _step(held, self._began[metric][1]) if held else None
        broken = held.reason if held and held.standing is Standing.NOT_JUDGED else self._broken.pop(metric, None)
        if held is None or step or broken:
            self._began[metric] = annotation, revision
        return Cost(annotation, math.nan, math.nan, math.nan, step, broken)


def _less(annotation: Annotation, held: Assertion) -> Annotation:
    """Return the annotation of a revision without what this revision gained on its level, by what is sure of that: the nearer bound."""
    gained = held.overall
    if annotation.levels is None or gained is None:
        return annotation
    sure = gained.low if gained.low > 1 else gained.high if gained.high < 1 else 1.0
    return replace(annotation, levels=replace(annotation.levels, mean=annotation.levels.mean - math.log(sure)))


def _step(assertion: Assertion, since: Revision) -> ChangePoint | None:
    if assertion.standing is Standing.VIOLATED and assertion.worst is not None:
        return ChangePoint(assertion.worst, since, assertion.stratum)
    if assertion.standing is Standing.FASTER and assertion.overall is not None:
        return ChangePoint(assertion.overall, since)
    return None


def _reference(entries: Sequence[RevisionEntry]) -> dict[str, float]:
    """Return typical inputs: of each feature that some cost follows, those of the first revision where one does."""
    reference: dict[str, float] = {}
    for entry in entries:
        for cost in entry.costs.values():
            for name in cost.annotation.features:
                if name in cost.annotation.typical:
                    reference.setdefault(name, cost.annotation.typical[name])
    return reference


def _at(entry: RevisionEntry, reference: Mapping[str, float], config: CompareConfig, moved: _Moved) -> RevisionEntry:
    """Return an entry with its costs at the reference input, as the first machine would have them."""
    costs = {}
    for metric, cost in entry.costs.items():
        value, variance = _cost_at(cost.annotation, reference, config)
        for before, after in moved.get(metric, ()):
            (former, former_variance), (latter, latter_variance) = (
                _cost_at(annotation, reference, config) for annotation in (before, after)
            )
            if former > 0 and latter > 0:
                value, variance = value * former / latter, variance + former_variance + latter_variance
        half = math.sqrt(variance)
        costs[metric] = replace(cost, value=value, low=value * math.exp(-half), high=value * math.exp(half))
    return replace(entry, costs=costs)


def _cost_at(annotation: Annotation, reference: Mapping[str, float], config: CompareConfig) -> tuple[float, float]:
    """Return what an annotation says of the reference input, times the mean level of its runs, with the square of its half-width (log)."""
    values = {name: np.array([value]) for name, value in reference.items() if name in annotation.features}
    values |= {PHASE: np.array([STEADY_CODE])} if PHASE in annotation.features else {}
    mean, half = _level(annotation, config.confidence)
    return float(annotation.predict(values)[0]) * math.exp(mean), half**2


def _level(annotation: Annotation, confidence: float) -> tuple[float, float]:
    """Return the mean level of the annotation's runs and half the width of its interval (Student's t)."""
    from scipy.special import stdtrit

    levels = annotation.levels
    if levels is None:
        return 0.0, math.inf
    error, freedom = levels.spread / math.sqrt(levels.runs), levels.runs - levels.points
    return levels.mean, float(stdtrit(freedom, (1 + confidence) / 2)) * error if freedom > 0 else math.inf
