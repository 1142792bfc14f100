"""The analysis: from what was measured of a comparison to what can be said of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from perfdiff.analysis.blame.attribution import Attribution, Resample, attribute, unattributed_notes
from perfdiff.analysis.blame.links import spin
from perfdiff.analysis.blame.resampling import how_often_first
from perfdiff.analysis.compare.comparison import Comparison
from perfdiff.analysis.compare.judgement import Direction, Judgement, judge, smallest
from perfdiff.analysis.compare.shift import Shift, describe
from perfdiff.analysis.compare.study import (
    ALLOCATION,
    LEARNT,
    PRIMARY,
    Study,
    learn,
    phased_tables,
    same_cost,
    study_all,
    study_decisive,
)
from perfdiff.analysis.compare.trend import RunCounts, over_runs
from perfdiff.analysis.counts.anomaly import moved, with_anomalies
from perfdiff.analysis.counts.growth import with_counted_growth, without_bends
from perfdiff.analysis.counts.library import departures
from perfdiff.analysis.counts.memory import Place
from perfdiff.analysis.counts.suspects import run_extra_ns, suspects_by_counts
from perfdiff.analysis.counts.tallies import count_all, works_more
from perfdiff.analysis.counts.work import work_of
from perfdiff.analysis.findings import RUN, Findings, FunctionFinding, MetricFinding, Verdict
from perfdiff.analysis.stats.inference import false_discovery
from perfdiff.analysis.sums.calls import call_graph
from perfdiff.analysis.sums.ledger import Ledger, open_counts, open_ledger
from perfdiff.analysis.sums.levelling import Levelled, levelled
from perfdiff.analysis.sums.pace import pace_of
from perfdiff.analysis.telling.chain import chain
from perfdiff.analysis.telling.diagnosis import Patient, diagnose
from perfdiff.analysis.telling.folded import folded_suspects, named
from perfdiff.analysis.telling.headline import Spot, headline
from perfdiff.analysis.telling.lines import with_lines
from perfdiff.analysis.telling.metric import Machines, finding, of_one_side, spot, with_shift
from perfdiff.analysis.telling.warming import warming_note
from perfdiff.analysis.trends.lines import MatchedLines, matched
from perfdiff.analysis.verdicts.case import Case
from perfdiff.analysis.verdicts.conclusion import Evidence, conclude, slower_beside
from perfdiff.analysis.verdicts.disagreement import disagreeing, disagreement_notes, settled
from perfdiff.analysis.verdicts.locking import lock_notes
from perfdiff.analysis.verdicts.requests import request_findings, waiting_notes, without_waiting
from perfdiff.analysis.verdicts.ruling import Ruling, rule
from perfdiff.analysis.verdicts.verdict import Decision
from perfdiff.analysis.verdicts.volume import volume_note
from perfdiff.analysis.verdicts.wholeruns import WholeRuns, overhead, whole_runs
from perfdiff.config import CompareConfig
from perfdiff.engines.engine import Engine
from perfdiff.models.threads import one_thread
from perfdiff.records.places import PlaceExperiment
from perfdiff.records.recorded import Samples, nothing
from perfdiff.records.schema import Change, Experiment, Point, Side

Judgements = Mapping[int, Mapping[str, Judgement]]


@one_thread()
def analyse(  # noqa: PLR0913, PLR0917 (what was measured, how it is judged, and where)
    experiment: Experiment,
    samples: Samples,
    config: CompareConfig,
    counts: Samples = nothing,
    lines: PlaceExperiment | None = None,
    engine: Engine | None = None,
) -> Findings:
    """Compare head with base, put extra cost down to the changes behind it, and say so.

    `samples(function id, side)` loads a function's sample table, or returns None where it has none. `lines` is how often lines ran, None
    where that was not counted. Many functions are studied side by side by the engine, this machine's processes where there is none, whose
    tasks each hold the tables of one.
    """
    at_one_pace = levelled(experiment, samples)
    experiment = at_one_pace.experiment
    ledger, found, samples = _studied(at_one_pace, config, matched(lines), engine)
    cases, attribution = found.cases, found.attribution
    functions = _functions(found, samples, experiment.points)

    def alone(part: Levelled) -> list[FunctionFinding]:
        _, on_part, of_part = _studied(part, config, matched(lines), engine)
        return _functions(on_part, of_part, experiment.points)

    functions = with_anomalies(_by_machine(functions, at_one_pace, alone, config), counts, config, engine)
    functions = with_counted_growth(functions, samples, counts, config)
    functions = named(functions, experiment.folded, found.evidence.suspects)
    functions = with_lines(functions, cases, found.evidence.lines, config)
    findings = _findings(experiment, functions, found.evidence, config)
    beside = (*slower_beside(findings.verdict, functions), *waiting_notes(experiment, found.runs, found.evidence.work, config))
    volume = volume_note(attribution, found.own, ledger.ids, config)
    notes = (*beside, *unattributed_notes(attribution), *lock_notes(cases, functions), *volume, *warming_note(cases))
    notes = (*notes, *disagreement_notes(functions, found.runs.ends))
    return replace(
        findings,
        functions=tuple(functions if ledger.points or found.counted is None else _counted(functions, found.counted)),
        end_to_end=found.runs.ends,
        notes=(*experiment.notes, *notes),
        overhead=overhead(experiment.runs),
        calls=call_graph(experiment, ledger),
        requests=request_findings(experiment, config),
        machines=at_one_pace.parts,
    )


@one_thread()
def look(experiment: Experiment, samples: Samples, config: CompareConfig) -> Findings:
    """Return the verdicts alone, by the same judge as `analyse`, for a look at the findings while runs go on.

    Left out is what decides nothing: cost functions of head, growth, causes, sentences, calls, metrics that only explain, and functions
    that all together are not a material share of a run. Tests that are left out still count for the false discovery rate, as failed
    ones, so that a look never finds what the end would not.
    """
    at_one_pace = levelled(experiment, samples)
    found, functions = _looked_at(at_one_pace, config)
    functions = _by_machine(functions, at_one_pace, lambda part: _looked_at(part, config)[1], config)
    return _findings(at_one_pace.experiment, functions, found.evidence, config)


def _looked_at(of: Levelled, config: CompareConfig) -> tuple[_Gathered, list[FunctionFinding]]:
    """Return what a look finds, with the verdicts on functions."""
    ledger, samples = _at_usual_pace(of.experiment, of.samples)
    found = _gathered(of, study_decisive(of.experiment, samples, ledger, config), ledger, config)
    ruling = rule(found.cases, found.evidence)
    functions = []
    for case in found.cases:
        decision = ruling.decisions[case.info.id]
        clear = decision.verdict in (Verdict.REGRESSION, Verdict.IMPROVEMENT) or case.info.id in found.machines.differing(config.fdr)
        metrics = _compared(case, decision, found, samples)[0] if clear else {}
        functions.append(_verdict_alone(case, ruling, metrics))
    return found, functions


def _studied(of: Levelled, config: CompareConfig, lines: MatchedLines | None, engine: Engine | None) -> tuple[Ledger, _Gathered, Samples]:
    """Return all that is known of an experiment at one pace, and its samples at the usual one."""
    ledger, samples = _at_usual_pace(of.experiment, of.samples)
    return ledger, _gathered(of, study_all(of.experiment, samples, ledger, config, engine), ledger, config, lines), samples


def _by_machine(
    functions: list[FunctionFinding], of: Levelled, alone: Callable[[Levelled], Sequence[FunctionFinding]], config: CompareConfig
) -> list[FunctionFinding]:
    """Return the findings with those of single machines, which `alone` makes, where machines disagree."""
    found = disagreeing(functions, config)
    if not found:
        return functions
    parts = {part.name: {each.info.id: each for each in alone(of.of(number))} for number, part in enumerate(of.parts, 1)}
    return settled(functions, found, parts, of.parts)


def _at_usual_pace(experiment: Experiment, samples: Samples) -> tuple[Ledger, Samples]:
    """Return sums and calls without what the runs they were timed in have in common."""
    ledger = open_ledger(experiment)
    pace = pace_of(ledger, experiment.functions)
    return pace.taken_off(ledger), pace.taken_off_calls(samples)


@dataclass(frozen=True, slots=True)
class _Gathered:
    """All that the verdicts rest on; `evidence` is that on the whole program, of `runs` without what the workload itself asks for."""

    cases: Sequence[Case]
    q_values: Mapping[tuple[int, str], float]
    own: Mapping[int, Comparison]
    attribution: Attribution
    counted: Ledger | None
    runs: WholeRuns
    evidence: Evidence
    machines: Machines


def _gathered(
    of: Levelled, studies: Sequence[Study], ledger: Ledger, config: CompareConfig, lines: MatchedLines | None = None
) -> _Gathered:
    """Judge the studies and put extra cost down to changes."""
    experiment = of.experiment
    q_values = _q_values(studies, config)
    judgements = {each.info.id: _judged(each, q_values, config) for each in studies}
    own = {each.info.id: each.comparisons["self_ns"] for each in studies if "self_ns" in each.comparisons}
    counted = open_counts(experiment)
    tallies = count_all(counted, {point.id: point for point in experiment.points}, config) if counted else {}
    working = [function for function, counts in tallies.items() if works_more(counts)]
    attribution = attribute(
        ledger,
        spin(ledger, {info.id: info for info in experiment.functions}, working),
        own,
        {function: found["self_ns"].direction.value for function, found in judgements.items() if "self_ns" in found},
        Resample(config.seed, config.confidence),
    )
    leaving = departures(experiment, config)
    places = {
        each.info.id: Place(each.info, tallies.get(each.info.id, {}), experiment.spots, leaving.get(each.info.id, ())) for each in studies
    }
    runs = whole_runs(experiment.points, experiment.runs, config, of.names)
    by_point = {end.point.id: end for end in runs.ends}
    suspects = suspects_by_counts(counted, ledger, experiment.functions, leaving) if counted else ()
    works = {each.function: each for each in suspects}
    run_extra = run_extra_ns(counted) if counted else np.empty(0)
    cases = [
        Case(
            each, judgements[each.info.id], attribution, ledger, config, places[each.info.id], by_point, works.get(each.info.id), run_extra
        )
        for each in studies
    ]
    suspects = tuple(sorted((*suspects, *folded_suspects(experiment, leaving)), key=lambda each: -each.total_ns))
    work = work_of(counted, len(experiment.points), leaving)
    judged = without_waiting(runs.unexplained_by(attribution), experiment, work, config)
    evidence = Evidence(judged, work, experiment.same_code, suspects, lines)
    return _Gathered(cases, q_values, own, attribution, counted, runs, evidence, Machines(of.names, _q_of_machines(studies)))


def _verdict_alone(case: Case, ruling: Ruling, metrics: Mapping[str, MetricFinding]) -> FunctionFinding:
    decision, (extra_ns, interval) = ruling.decisions[case.info.id], ruling.extra(case)
    return FunctionFinding(
        info=case.info,
        verdict=decision.verdict,
        reason=decision.reason,
        rank=None,
        calls_base=None,
        calls_head=None,
        extra_ns=extra_ns,
        extra_ci_ns=interval,
        share=None,
        metrics=metrics,
        causes=(),
        chain=(),
        headline="",
    )


def _findings(experiment: Experiment, functions: Sequence[FunctionFinding], evidence: Evidence, config: CompareConfig) -> Findings:
    """Return findings of functions, with what the experiment says of itself."""
    concluded = conclude(functions, evidence, config)
    return Findings(
        verdict=concluded.verdict,
        sentence=concluded.sentence,
        base=experiment.base,
        head=experiment.head,
        environment=experiment.environment,
        workloads=experiment.workloads,
        points=experiment.points,
        end_to_end=(),
        functions=tuple(functions),
        skipped=experiment.skipped,
        notes=experiment.notes,
        overhead=None,
        confidence=config.confidence,
        min_effect=config.min_effect,
        rung=concluded.rung,
        excluded=concluded.excluded,
        stages=experiment.stages,
    )


def _counted(functions: Iterable[FunctionFinding], counted: Ledger) -> Iterator[FunctionFinding]:
    """Return those worth a word where no call was timed, with their calls: what changed, calls such, or counts otherwise."""
    for each in functions:
        if each.info.change is not Change.UNCHANGED or moved(each):
            base, head = (counted.calls(each.info.id, side) for side in Side)
            yield replace(each, calls_base=base, calls_head=head)


def _q_values(studies: Sequence[Study], config: CompareConfig) -> dict[tuple[int, str], float]:
    """Return the false discovery rate at which each function's metric would be reported.

    Own times of changed functions, those that are a material share of a run, are one family: they decide, and are tested for a difference
    of more than what counts. All else is another, tested for any difference. What is no material share cannot be reported, and its
    q-value is 1.
    """
    families: tuple[dict[tuple[int, str], float], ...] = ({}, {})
    q_values = {}
    for each in studies:
        for metric, found in each.comparisons.items():
            key, decides = (each.info.id, metric), each.info.change.is_suspect and metric == PRIMARY
            q_values[key] = 1.0
            if found.is_material:
                families[0 if decides else 1][key] = found.p_beyond(smallest(config, suspect=True)) if decides else found.p
    for family, others in zip(families, (0, sum(each.untested for each in studies)), strict=True):
        q = false_discovery([*family.values(), *[1.0] * others])
        q_values.update(zip(family, q[: len(family)].tolist(), strict=True))
    return q_values


def _q_of_machines(studies: Sequence[Study]) -> dict[tuple[int, str], float]:
    """Return the false discovery rate at which machines would be said to disagree on each function's metric."""
    p = {
        (each.info.id, metric): found.differ
        for each in studies
        for metric, found in each.comparisons.items()
        if len(found.machines) > 1 and found.is_material
    }
    return dict(zip(p, false_discovery([*p.values()]).tolist(), strict=True))


def _judged(each: Study, q_values: Mapping[tuple[int, str], float], config: CompareConfig) -> dict[str, Judgement]:
    suspect = each.info.change.is_suspect
    return {
        metric: judge(found, q_values[each.info.id, metric], config, resolved=each.resolved[metric], suspect=suspect)
        for metric, found in each.comparisons.items()
    }


def _functions(gathered: _Gathered, samples: Samples, points: Sequence[Point]) -> list[FunctionFinding]:
    """Return the findings on all functions: guilty ones by rank, their victims, then the others by what they cost."""
    cases, ruling = gathered.cases, rule(gathered.cases, gathered.evidence)
    told = {case.info.id: _metrics(case, ruling.decisions[case.info.id], gathered, samples, points) for case in cases}
    metrics = {function: found for function, (found, _) in told.items()}
    sure = {case.info.id: case.guilt.interval for case in cases if case.info.id in ruling.guilty and case.guilt and case.guilt.interval}
    firsts = how_often_first(sure)
    found = [replace(_function(case, cases, ruling, metrics, told[case.info.id][1]), first=firsts.get(case.info.id)) for case in cases]
    standing = {Verdict.REGRESSION: 0, Verdict.IMPROVEMENT: 1, Verdict.INCONCLUSIVE: 2, Verdict.UNCHANGED: 3}
    return sorted(
        found, key=lambda each: (standing[each.verdict], each.rank or 0, each.extra_ns, not each.info.change.is_suspect, each.info.id)
    )


def _function(
    case: Case,
    cases: Sequence[Case],
    ruling: Ruling,
    metrics: Mapping[int, Mapping[str, MetricFinding]],
    spots: Mapping[str, Spot],
) -> FunctionFinding:
    """Return the finding on one function."""
    function = case.info.id
    decision, is_guilty = ruling.decisions[function], function in ruling.guilty
    causes = diagnose(_patient(case, cases, decision, metrics[function], ruling.waiting)) if is_guilty else ()
    extra, interval = ruling.extra(case)
    return FunctionFinding(
        info=case.info,
        verdict=decision.verdict,
        reason=decision.reason,
        rank=ruling.rank(function),
        calls_base=case.ledger.calls(function, Side.BASE),
        calls_head=case.ledger.calls(function, Side.HEAD),
        extra_ns=extra,
        extra_ci_ns=interval,
        share=case.attribution.share(extra) if is_guilty and extra else None,
        metrics=metrics[function],
        causes=causes,
        chain=chain(case, metrics) if is_guilty and not decision.heavier else (),
        headline=headline(case, decision, metrics[function], spots, causes),
        counts=case.counts,
        warm_up=case.study.warm_up,
        rests_on=decision.heavier[0] if decision.heavier else None,
    )


def _patient(
    case: Case, cases: Sequence[Case], decision: Decision, metrics: Mapping[str, MetricFinding], waiting: Mapping[int, tuple[int, ...]]
) -> Patient:
    """Return a guilty function with the places where its change may show in counts."""
    function = case.info.id
    blamed = {blame.at for blame in case.guilt.blames} if case.guilt else set()
    others = [each for each in cases if each.info.id != function and (each.info.id in blamed or function in waiting.get(each.info.id, ()))]
    places = tuple(each.place for each in (case, *others))
    return Patient(case.study, metrics, case.attribution, case.ledger, case.config, decision.heavier, places)


def _metrics(
    case: Case, decision: Decision, gathered: _Gathered, samples: Samples, points: Sequence[Point]
) -> tuple[dict[str, MetricFinding], dict[str, Spot]]:
    """Return the findings on each metric of a function and on its runs, with annotations of both sides where they were learnt or matter."""
    found, spots = _compared(case, decision, gathered, samples)
    runs = case.study.growth
    if runs is None and decision.verdict is not Verdict.UNCHANGED:
        runs = over_runs(case.info, case.ledger, points, total=case.study.totals.get("wall_ns"), config=case.config)
    if runs is not None:
        found[RUN] = runs
    if gathered.counted is not None:
        found = without_bends(found, case.info.id, case.ledger, RunCounts(gathered.counted, points, case.config.seed))
    return found, spots


def _compared(case: Case, decision: Decision, gathered: _Gathered, samples: Samples) -> tuple[dict[str, MetricFinding], dict[str, Spot]]:
    """Return the findings on each metric of a function's calls."""
    found = {metric: of_one_side(annotation, side) for (metric, side), annotation in case.study.alone.items()}
    spots: dict[str, Spot] = {}
    differing = _differing(case, decision)
    shifts = dict(case.study.shifts) | _shifts(case, differing, samples)
    for metric, comparison in case.study.comparisons.items():
        told = finding(case, comparison, gathered.q_values[case.info.id, metric], gathered.machines)
        found[metric] = with_shift(told, shifts[metric]) if metric in shifts else told
        at = spot(comparison, found[metric])
        if at is not None:
            spots[metric] = at
    return found, spots


def _differing(case: Case, decision: Decision) -> list[str]:
    """Return the metrics whose cost functions are told of both sides: those that differ, of a function that is reported on."""
    if decision.verdict is Verdict.UNCHANGED:
        return []
    told = (*LEARNT, *ALLOCATION)
    return [metric for metric in case.study.comparisons if metric in told and case.judgements[metric].direction is not Direction.NONE]


def _shifts(case: Case, metrics: Sequence[str], samples: Samples) -> dict[str, Shift]:
    """Return how the cost functions of metrics that differ moved."""
    shifts: dict[str, Shift] = {}
    found = phased_tables(case.info.id, samples) if metrics else None
    if found is None:
        return shifts
    tables = found.tables
    for metric in metrics:
        if metric == "wall_ns" and "self_ns" in shifts and same_cost(tables):
            shifts[metric] = shifts["self_ns"].of(metric)
        else:
            annotation = case.study.comparisons[metric].base or learn(tables[0], metric, case.info.name, case.config)
            shifts[metric] = describe(annotation, *tables, differs=True, config=case.config)
    return shifts
