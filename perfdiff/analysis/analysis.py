"""The analysis: from the measurements of a comparison to its findings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from perfdiff.analysis.blame.attribution import unattributed_notes
from perfdiff.analysis.blame.resampling import how_often_first
from perfdiff.analysis.causes.diagnosis import Patient, diagnose
from perfdiff.analysis.causes.folded import folded_sharing, named
from perfdiff.analysis.claims import Claim
from perfdiff.analysis.compare.study import described, study_all
from perfdiff.analysis.compare.trend import RunCounts, over_runs
from perfdiff.analysis.counts.anomaly import moved, with_anomalies
from perfdiff.analysis.counts.growth import CountSources, with_counted_growth, without_bends
from perfdiff.analysis.counts.library import departures
from perfdiff.analysis.findings import RUN, Findings, FunctionFinding, MetricFinding, Rung, Verdict
from perfdiff.analysis.gathering import GatheredEvidence, at_usual_pace, by_machine, compared, comparison_context, concluded, gathered
from perfdiff.analysis.sums.calls import call_graph
from perfdiff.analysis.sums.ledger import Ledger
from perfdiff.analysis.sums.levelling import LevelledExperiment, levelled
from perfdiff.analysis.sums.repeats import told_of_the_clock
from perfdiff.analysis.telling.chain import chain
from perfdiff.analysis.telling.headline import MetricSpot, happened, metric_of_verdict
from perfdiff.analysis.telling.lines import with_lines
from perfdiff.analysis.telling.warming import warming_note
from perfdiff.analysis.trends.lines import MatchedLines, matched
from perfdiff.analysis.verdicts.asbuilt import few_layouts_note, layout_note, ways_note
from perfdiff.analysis.verdicts.behaviour import behaviour_notes
from perfdiff.analysis.verdicts.case import Case
from perfdiff.analysis.verdicts.conclusion import slower_beside
from perfdiff.analysis.verdicts.disagreement import disagreement_notes
from perfdiff.analysis.verdicts.kernel import kernel_finding, with_callers
from perfdiff.analysis.verdicts.lasting import lasting_finding
from perfdiff.analysis.verdicts.locking import lock_notes
from perfdiff.analysis.verdicts.memory import memory_finding
from perfdiff.analysis.verdicts.parallel import apart_in_time, apart_note
from perfdiff.analysis.verdicts.requests import request_findings, waiting_notes
from perfdiff.analysis.verdicts.rules import Decision
from perfdiff.analysis.verdicts.ruling import Ruling, rule
from perfdiff.analysis.verdicts.seldom import slow_runs_unseen
from perfdiff.analysis.verdicts.volume import volume_note
from perfdiff.analysis.verdicts.wholeruns import overhead, probed_otherwise
from perfdiff.config import CompareConfig
from perfdiff.engines.engine import Engine
from perfdiff.models.threads import one_thread
from perfdiff.records.places import PlaceExperiment
from perfdiff.records.recorded import Samples, nothing
from perfdiff.records.schema import Change, Experiment, Note, Point, Side


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
    ledger, gathered, samples = _studied(at_one_pace, config, matched(lines), engine)
    cases, attribution = gathered.cases, gathered.attribution
    functions = _functions(gathered, samples, experiment.points)

    def alone(part: LevelledExperiment) -> list[FunctionFinding]:
        _, on_part, of_part = _studied(part, config, matched(lines), engine)
        return _functions(on_part, of_part, experiment.points)

    functions = with_anomalies(by_machine(functions, at_one_pace, alone, config), counts, config, engine)
    of_runs = None if gathered.counted is None else RunCounts(gathered.counted, experiment.points, config.seed)
    functions = with_counted_growth(functions, samples, CountSources(counts, of_runs, ledger), config)
    functions = named(functions, experiment.folded, gathered.evidence.suspects, folded_sharing(experiment, config))
    functions = with_lines(functions, cases, gathered.evidence.lines, config)
    findings = concluded(experiment, functions, gathered.evidence, config)
    judging = {end.point.id for end in gathered.evidence.runs.ends}
    runs, ends = experiment.runs, gathered.runs.ends
    # Where nothing that runs differs, pairs of a single point confirm it, and the others are as they were.
    judged_in_runs = [end.point for end in ends if end.ratio] if findings.rung is Rung.CODE else experiment.points
    notes: tuple[Note | Claim, ...] = (
        *told_of_the_clock(ledger, experiment.notes),
        *at_one_pace.notes,
        *behaviour_notes(findings.behaviour),
        *apart_note(apart_in_time(findings.behaviour)),
        *slower_beside(findings.verdict, functions),
        *slow_runs_unseen(findings, ends, config),
        *waiting_notes(experiment, gathered.runs, gathered.evidence.work, config),
        *unattributed_notes(attribution),
        *lock_notes(cases, functions),
        *volume_note(attribution, gathered.own, ledger, config),
        *warming_note(cases),
        *disagreement_notes(functions, ends),
        *ways_note(runs, ends, config),
        *probed_otherwise(experiment.points, experiment.runs),
        *layout_note(runs, ends, config, experiment.environment.flags),
        *few_layouts_note(runs, ends, config),
    )
    return replace(
        findings,
        functions=tuple(functions if ledger.points or gathered.counted is None else _counted(functions, gathered.counted)),
        end_to_end=tuple(replace(end, judges=end.point.id in judging) for end in ends),
        notes=notes,
        overhead=overhead(experiment.runs),
        calls=call_graph(experiment, ledger, gathered.counted),
        requests=request_findings(experiment, config),
        machines=at_one_pace.parts,
        memory=memory_finding(judged_in_runs, runs, functions, gathered.counted or ledger, config),
        lasting=lasting_finding(experiment.points, runs, experiment.lasting),
        kernel=with_callers(kernel_finding(judged_in_runs, runs), functions, departures(experiment, config)),
    )


def _studied(
    of: LevelledExperiment, config: CompareConfig, lines: MatchedLines | None, engine: Engine | None
) -> tuple[Ledger, GatheredEvidence, Samples]:
    """Return all that is known of an experiment at one pace, and its samples at the usual one."""
    ledger, samples = at_usual_pace(of.experiment, of.samples, config)
    studies = study_all(of.experiment, samples, ledger, config, engine)  # under way, while what is known without them is put together
    return ledger, gathered(comparison_context(of, ledger, config), [*studies], lines), samples


def _counted(functions: Iterable[FunctionFinding], counted: Ledger) -> Iterator[FunctionFinding]:
    """Return those worth a word where no call was timed, with their calls: what changed, calls such, or counts otherwise."""
    for finding in functions:
        if finding.info.change is not Change.UNCHANGED or moved(finding):
            base, head = (counted.calls(finding.info.id, side) for side in Side)
            yield replace(finding, calls_base=base, calls_head=head)


def _functions(gathered: GatheredEvidence, samples: Samples, points: Sequence[Point]) -> list[FunctionFinding]:
    """Return findings on all functions: guilty ones by rank, their victims, open ones by what they may cost, the others by what they do."""
    cases, ruling = gathered.cases, rule(gathered.cases, gathered.evidence)
    with_spots = {case.info.id: _metrics(case, ruling.decisions[case.info.id], gathered, samples, points) for case in cases}
    metrics = {function: own for function, (own, _) in with_spots.items()}
    sure = {case.info.id: case.guilt.interval for case in cases if case.info.id in ruling.guilty and case.guilt and case.guilt.interval}
    firsts = how_often_first(sure)
    findings = [
        replace(_function(case, cases, ruling, metrics, with_spots[case.info.id][1]), first=firsts.get(case.info.id)) for case in cases
    ]
    costs = {case.info.id: _may_cost_ns(case, metrics[case.info.id]) for case in cases}

    def place(finding: FunctionFinding) -> tuple[tuple[bool, int, int], float, bool, int]:
        cost = costs[finding.info.id] if finding.verdict is Verdict.INCONCLUSIVE else abs(finding.extra_ns)
        return finding.order, -cost, not finding.info.change.is_suspect, finding.info.id

    return sorted(findings, key=place)


def _may_cost_ns(case: Case, metrics: Mapping[str, MetricFinding]) -> float:
    """Return how much more of its own time a function may take, by the upper bound of its calls' ratio, in one run of each point."""
    own_time = metrics.get("self_ns")
    if own_time is None or own_time.ratio is None:
        return 0.0
    (own_ns,) = case.ledger.of_a_run("self_ns", Side.BASE, case.info.id)
    return float(own_ns) * max(own_time.ratio.high - 1, 0.0)


def _function(
    case: Case,
    cases: Sequence[Case],
    ruling: Ruling,
    metrics: Mapping[int, Mapping[str, MetricFinding]],
    spots: Mapping[str, MetricSpot],
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
        rules=decision.rules,
        rank=ruling.rank(function),
        calls_base=case.ledger.calls(function, Side.BASE),
        calls_head=case.ledger.calls(function, Side.HEAD),
        extra_ns=extra,
        extra_ci_ns=interval,
        share=case.attribution.share(extra) if is_guilty and extra else None,
        metrics=metrics[function],
        causes=causes,
        chain=chain(case, metrics) if is_guilty and not decision.grown else (),
        happened=happened(case, decision, metrics[function], spots),
        tells_cause=decision.verdict is Verdict.REGRESSION,
        counts=case.counts,
        warm_up=case.study.warm_up,
        rests_on=metric_of_verdict(case, decision),
    )


def _patient(
    case: Case, cases: Sequence[Case], decision: Decision, metrics: Mapping[str, MetricFinding], waiting: Mapping[int, tuple[int, ...]]
) -> Patient:
    """Return a guilty function with the places where its change may show in counts."""
    function = case.info.id
    blamed = {blame.at for blame in case.guilt.blames} if case.guilt else set()
    others = [
        other for other in cases if other.info.id != function and (other.info.id in blamed or function in waiting.get(other.info.id, ()))
    ]
    places = tuple(concerned.place for concerned in (case, *others))
    return Patient(case.study, metrics, case.attribution, case.ledger, case.config, decision.grown, places)


def _metrics(
    case: Case, decision: Decision, gathered: GatheredEvidence, samples: Samples, points: Sequence[Point]
) -> tuple[dict[str, MetricFinding], dict[str, MetricSpot]]:
    """Return the findings on each metric of a function and on its runs, with annotations of both sides where they were learnt or matter."""
    if decision.verdict is not Verdict.UNCHANGED:
        case = replace(case, study=described(case.study, samples, case.config))
    metrics, spots = compared(case, decision, gathered, samples)
    runs = case.study.growth
    if runs is None and decision.verdict is not Verdict.UNCHANGED:
        runs = over_runs(case.info, case.ledger, points, total=case.study.totals.get("wall_ns"), config=case.config)
    if runs is not None:
        metrics[RUN] = runs
    if gathered.counted is not None:
        metrics = without_bends(metrics, case.info.id, case.ledger, RunCounts(gathered.counted, points, case.config.seed))
    return metrics, spots
