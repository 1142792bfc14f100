"""The evidence for verdicts on all functions: what is known before calls are compared, judgements, guilt, and single metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from perfdiff.analysis.blame.attribution import Resample, attribute, unattributed
from perfdiff.analysis.blame.guilt import Attribution
from perfdiff.analysis.blame.links import Web, spin
from perfdiff.analysis.causes.folded import folded_work
from perfdiff.analysis.compare.compared import Comparison
from perfdiff.analysis.compare.judgement import Direction, Judgement, judge, smallest
from perfdiff.analysis.compare.shares import ALLOCATION, PRIMARY
from perfdiff.analysis.compare.shift import describe
from perfdiff.analysis.compare.studied import LEARNT, Shift, Study
from perfdiff.analysis.compare.tables import learn, phased_tables
from perfdiff.analysis.counts.library import Departure, departures
from perfdiff.analysis.counts.memory import MemoryEvidence
from perfdiff.analysis.counts.own_work import works_more
from perfdiff.analysis.counts.suspects import ExtraWork, run_extra_ns, work_by_counts
from perfdiff.analysis.counts.tallies import count_all
from perfdiff.analysis.counts.work import work_of
from perfdiff.analysis.findings import CountFinding, Findings, FunctionFinding, MetricFinding, Verdict
from perfdiff.analysis.stats.inference import false_discovery
from perfdiff.analysis.stats.rows import same_cost
from perfdiff.analysis.sums.ledger import Ledger, open_counts, open_ledger
from perfdiff.analysis.sums.levelling import LevelledExperiment
from perfdiff.analysis.sums.pace import pace_of
from perfdiff.analysis.sums.repeats import by_repetitions, in_all_points
from perfdiff.analysis.telling.headline import MetricSpot
from perfdiff.analysis.telling.metric import Machines, finding, of_one_side, spot, with_shift, with_spot
from perfdiff.analysis.trends.lines import MatchedLines
from perfdiff.analysis.verdicts.behaviour import behaviours
from perfdiff.analysis.verdicts.case import Case
from perfdiff.analysis.verdicts.conclusion import conclude
from perfdiff.analysis.verdicts.disagreement import disagreeing, settled
from perfdiff.analysis.verdicts.drift import drift
from perfdiff.analysis.verdicts.evidence import Evidence
from perfdiff.analysis.verdicts.requests import without_waiting
from perfdiff.analysis.verdicts.rules import Decision
from perfdiff.analysis.verdicts.volume import repeating
from perfdiff.analysis.verdicts.wholeruns import WholeRuns, whole_runs
from perfdiff.config import CompareConfig
from perfdiff.records.arrays import Floats
from perfdiff.records.recorded import Samples
from perfdiff.records.schema import Experiment, FunctionInfo, Phase
from perfdiff.records.testfiles import sources_first


def at_usual_pace(experiment: Experiment, samples: Samples, config: CompareConfig) -> tuple[Ledger, Samples]:
    """Return sums and calls without what the runs they were timed in have in common; where a clock ends runs, by what these repeat."""
    ledger = open_ledger(experiment)
    pace = pace_of(ledger, experiment.functions)
    return by_repetitions(pace.taken_off(ledger), config.min_effect), pace.taken_off_calls(samples)


@dataclass(frozen=True, slots=True)
class GatheredEvidence:
    """All that the verdicts rest on; `evidence` is that on the whole program, of `runs` without those that only wait for services."""

    cases: Sequence[Case]
    q_values: Mapping[tuple[int, str], float]
    own: Mapping[int, Comparison]
    attribution: Attribution
    counted: Ledger | None
    runs: WholeRuns
    evidence: Evidence
    machines: Machines


@dataclass(frozen=True, slots=True)
class ComparisonContext:
    """What an experiment says before any call is compared: counts, who calls whom, and whole runs.

    `tallies` are the counts of functions, `works` what changed functions execute more or less, `run_extra_ns` what all of them together do.
    """

    experiment: Experiment
    ledger: Ledger
    config: CompareConfig
    names: tuple[str, ...]
    counted: Ledger | None
    tallies: Mapping[int, Mapping[str, CountFinding]]
    web: Web
    leaving: Mapping[int, Sequence[Departure]]
    runs: WholeRuns
    works: tuple[ExtraWork, ...]
    run_extra_ns: Floats

    @property
    def effects(self) -> Mapping[int, float]:
        """Return the smallest effect of interest at each point, as a share."""
        return {point.id: self.config.at(point.min_effect).min_effect for point in self.experiment.points}

    def judging(self, info: FunctionInfo) -> CompareConfig:
        """Return how to judge a function: by its calls, or where none was timed, by its counts."""
        ledger = self.ledger if self.ledger.points or self.counted is None else self.counted
        return ledger.judging_function(self.config, info.id)

    @property
    def clocked(self) -> frozenset[int]:
        """Return the points at which whole runs tell nothing, as a clock ends them."""
        return in_all_points(self.ledger.clocked, self.experiment.points)

    def cases(self, studies: Sequence[Study], judgements: Mapping[int, Mapping[str, Judgement]], attribution: Attribution) -> list[Case]:
        """Return studied functions with all that is known of each."""
        ends = {end.point.id: end for end in self.runs.without(self.clocked).ends}
        works = {work.function: work for work in self.works if work.total_ns > 0}
        effects, shift = self.effects, drift(self.experiment)
        cases = []
        for study in studies:
            function = study.info.id
            points = tuple(self.counted.points) if self.counted is not None else ()
            leaving = self.leaving.get(function, ())
            place = MemoryEvidence(study.info, self.tallies.get(function, {}), self.experiment.spots, leaving, points)
            cases.append(
                Case(
                    study,
                    judgements[function],
                    attribution,
                    self.ledger,
                    self.judging(study.info),
                    place,
                    ends,
                    works.get(function),
                    self.run_extra_ns,
                    self.counted,
                    effects,
                    shift,
                )
            )
        return cases


def comparison_context(of: LevelledExperiment, ledger: Ledger, config: CompareConfig) -> ComparisonContext:
    """Return the context in which an experiment's calls are compared; its sums must be at the usual pace."""
    experiment = of.experiment
    counted = open_counts(experiment)
    tallies = count_all(counted, {point.id: point for point in experiment.points}, config) if counted else {}
    working = [function for function, counts in tallies.items() if works_more(counts)]
    leaving = departures(experiment, config)
    return ComparisonContext(
        experiment=experiment,
        ledger=ledger,
        config=config,
        names=of.names,
        counted=counted,
        tallies=tallies,
        web=spin(ledger, {info.id: info for info in experiment.functions}, working),
        leaving=leaving,
        runs=whole_runs(experiment.points, experiment.runs, config, of.names),
        works=work_by_counts(counted, ledger, experiment.functions, leaving) if counted else (),
        run_extra_ns=run_extra_ns(counted) if counted else np.empty(0),
    )


def gathered(of: ComparisonContext, studies: Sequence[Study], lines: MatchedLines | None = None) -> GatheredEvidence:
    """Judge the studies of all functions and put extra cost down to changes."""
    experiment, config = of.experiment, of.config
    q_values = _q_values(studies, of)
    judgements = {study.info.id: _judged(study, q_values, of) for study in studies}
    own = {study.info.id: study.comparisons["self_ns"] for study in studies if "self_ns" in study.comparisons}
    attribution = attribute(
        of.ledger,
        of.web,
        own,
        {function: by_metric["self_ns"].direction.value for function, by_metric in judgements.items() if "self_ns" in by_metric},
        Resample(config.seed, config.confidence),
    )
    cases = of.cases(studies, judgements, attribution)
    works = sorted((*of.works, *folded_work(experiment, of.leaving)), key=lambda work: -work.total_ns)
    suspects = tuple(work for work in works if work.total_ns > 0)
    savers = tuple(work for work in reversed(works) if work.total_ns < 0)
    work = work_of(of.counted, len(experiment.points), of.leaving)
    uneven = in_all_points({point for case in cases for point in case.uneven_points}, experiment.points)
    judged = without_waiting(of.runs.without(of.clocked | uneven), experiment, work, config)
    is_timed = any(run.phase is Phase.TIMED for run in experiment.runs)
    evidence = Evidence(
        judged,
        work,
        experiment.same_code,
        suspects,
        lines,
        savers,
        is_timed,
        experiment.reach,
        experiment.met,
        experiment.outside,
        behaviours(experiment, work, config),
        tuple(run for run in experiment.runs if run.phase is Phase.COUNTED),
        _unrun(experiment, of.runs),
        experiment.endless,
        experiment.ended_by,
        experiment.uncompared,
        repeating(attribution, of.ledger, config),
        experiment.compared,
    )
    return GatheredEvidence(cases, q_values, own, attribution, of.counted, of.runs, evidence, Machines(of.names, _q_of_machines(studies)))


def _unrun(experiment: Experiment, runs: WholeRuns) -> tuple[str, ...]:
    """Return the points at which there are no whole runs of both sides although there are some at others."""
    run = {end.point.id for end in runs.ends}
    return tuple(point.label for point in experiment.points if run and point.id not in run)


def most_favourable(of: ComparisonContext, study: Study) -> Case:
    """Return a function by what it shows alone: as surely as it could be judged beside any others, and before anybody is blamed."""
    q_values = dict.fromkeys(((study.info.id, metric) for metric in study.comparisons), 0.0)
    judgements = {study.info.id: _judged(study, q_values, of)}
    (case,) = of.cases([study], judgements, unattributed(of.ledger, of.web))
    return case


def _q_values(studies: Sequence[Study], of: ComparisonContext) -> dict[tuple[int, str], float]:
    """Return the false discovery rate at which each function's metric would be reported.

    Own times of changed functions, those that are a material share of a run, are one family: they decide, and are tested for a difference
    of more than what counts. All else is another, tested for any difference. What is no material share cannot be reported, and its
    q-value is 1.
    """
    families: tuple[dict[tuple[int, str], float], ...] = ({}, {})
    q_values = {}
    for study in studies:
        for metric, comparison in study.comparisons.items():
            key, decides = (study.info.id, metric), study.info.change.is_suspect and metric == PRIMARY
            q_values[key] = 1.0
            if comparison.is_material:
                families[0 if decides else 1][key] = (
                    comparison.p_beyond(smallest(of.judging(study.info), suspect=True)) if decides else comparison.p
                )
    for family, others in zip(families, (0, sum(study.untested for study in studies)), strict=True):
        q = false_discovery([*family.values(), *[1.0] * others])
        q_values.update(zip(family, q[: len(family)].tolist(), strict=True))
    return q_values


def _q_of_machines(studies: Sequence[Study]) -> dict[tuple[int, str], float]:
    """Return the false discovery rate at which machines would be said to disagree on each function's metric."""
    p = {
        (study.info.id, metric): comparison.differ
        for study in studies
        for metric, comparison in study.comparisons.items()
        if len(comparison.machines) > 1 and comparison.is_material
    }
    return dict(zip(p, false_discovery([*p.values()]).tolist(), strict=True))


def _judged(study: Study, q_values: Mapping[tuple[int, str], float], of: ComparisonContext) -> dict[str, Judgement]:
    suspect, config, effects = study.info.change.is_suspect, of.judging(study.info), of.effects
    return {
        metric: judge(
            comparison, q_values[study.info.id, metric], config, resolved=study.resolved[metric], suspect=suspect, effects=effects
        )
        for metric, comparison in study.comparisons.items()
    }


def compared(
    case: Case, decision: Decision, of: GatheredEvidence, samples: Samples
) -> tuple[dict[str, MetricFinding], dict[str, MetricSpot]]:
    """Return the findings on each metric of a function's calls."""
    findings = {metric: of_one_side(annotation, side) for (metric, side), annotation in case.study.alone.items()}
    spots: dict[str, MetricSpot] = {}
    differing = _differing(case, decision)
    shifts = dict(case.study.shifts) | _shifts(case, differing, samples)
    for metric, comparison in case.study.comparisons.items():
        metric_finding = finding(case, comparison, of.q_values[case.info.id, metric], of.machines)
        findings[metric] = with_shift(metric_finding, shifts[metric]) if metric in shifts else metric_finding
        at = spot(comparison, findings[metric])
        findings[metric] = with_spot(case, findings[metric], at)
        if at is not None:
            spots[metric] = at
    return findings, spots


def _differing(case: Case, decision: Decision) -> list[str]:
    """Return the metrics whose cost functions are told of both sides: those that differ, of a function that is reported on."""
    if decision.verdict is Verdict.UNCHANGED:
        return []
    shown = (*LEARNT, *ALLOCATION)
    return [metric for metric in case.study.comparisons if metric in shown and case.judgements[metric].direction is not Direction.NONE]


def _shifts(case: Case, metrics: Sequence[str], samples: Samples) -> dict[str, Shift]:
    """Return how the cost functions of metrics that differ moved."""
    shifts: dict[str, Shift] = {}
    phased = phased_tables(case.info.id, samples) if metrics else None
    if phased is None:
        return shifts
    tables = phased.tables
    for metric in metrics:
        if metric == "wall_ns" and "self_ns" in shifts and same_cost(tables):
            shifts[metric] = shifts["self_ns"].of(metric)
        else:
            annotation = case.study.comparisons[metric].base or learn(tables[0], metric, case.info.name, case.config)
            shifts[metric] = describe(annotation, *tables, differs=True, config=case.config)
    return shifts


def concluded(experiment: Experiment, functions: Sequence[FunctionFinding], evidence: Evidence, config: CompareConfig) -> Findings:
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
        skipped=tuple(sources_first(experiment.skipped, lambda skipped: skipped.file)),
        notes=experiment.notes,
        overhead=None,
        confidence=config.confidence,
        min_effect=config.min_effect,
        rung=concluded.rung,
        excluded=concluded.excluded,
        stages=experiment.stages,
        reach=experiment.reach,
        met=experiment.met,
        outside=experiment.outside,
        endless=experiment.endless,
        behaviour=evidence.witnessed,
        rules=concluded.rules,
        compared=experiment.compared,
    )


def by_machine(
    functions: list[FunctionFinding],
    of: LevelledExperiment,
    alone: Callable[[LevelledExperiment], Sequence[FunctionFinding]],
    config: CompareConfig,
) -> list[FunctionFinding]:
    """Return the findings with those of single machines, which `alone` makes, where machines disagree."""
    disagreements = disagreeing(functions, config)
    if not disagreements:
        return functions
    parts = {part.name: {finding.info.id: finding for finding in alone(of.of(number))} for number, part in enumerate(of.parts, 1)}
    return settled(functions, disagreements, parts, of.parts)
