"""The survey: a build with probes in all functions runs a few times, and the functions to measure are chosen by what it shows."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from perfdiff.collect.built import reach
from perfdiff.collect.choosing import folding, survey, tally
from perfdiff.collect.choosing.rates import Rate
from perfdiff.collect.choosing.subjects import Probes
from perfdiff.collect.choosing.survey import Budget, Survey
from perfdiff.collect.choosing.tally import Tally
from perfdiff.collect.counts import counting
from perfdiff.collect.counts.abreast import Abreast
from perfdiff.collect.hosts import counters
from perfdiff.collect.recordings import remarks
from perfdiff.collect.recordings.assembly import Assembly
from perfdiff.collect.runs import caveats, schedule
from perfdiff.collect.runs.collector import Collector
from perfdiff.collect.runs.schedule import SURVEY_ROUNDS
from perfdiff.collect.runs.targets import Targets
from perfdiff.languages.protocol import Counterpart, ProbeCosts
from perfdiff.measuring import coverage, surveytime
from perfdiff.measuring.bench import Bench
from perfdiff.measuring.coverage import SurveyCoverage
from perfdiff.measuring.site import Site
from perfdiff.measuring.surveytime import SurveyTime
from perfdiff.records import plan
from perfdiff.records.arrays import Floats
from perfdiff.records.schema import Note, Phase, Point, Run, Side


@dataclass(frozen=True, slots=True)
class SurveyPoints:
    """The points that the survey runs at; it only counts calls at those `spared` of them whose runs call nothing that others do not.

    Those where head is `slower` tell most.
    """

    points: Sequence[Point]
    spared: Sequence[Point] = ()
    slower: Collection[int] = ()

    def timed(self, counted: Tally) -> list[Point]:
        """Return the points at which calls are timed, by what was counted at all."""
        points = [point for point in self.points if point.id in counted.points]
        others = [point.id for point in points if point not in self.spared]
        return [point for point in points if point.id in others or counted.calls_more(point.id, others)]


def surveyed(bench: Bench, site: Site, places: SurveyPoints, plain: Sequence[Run] = ()) -> tuple[Site, list[Point]]:
    """Run a build with probes in all functions, and use it to choose the functions to measure within the budget of probes.

    `plain` runs that were made before are not made again. Return the points to time calls at as well: those where the
    survey did, and those that shorter points of their workload stood for.
    """
    config, subjects = bench.request.config, site.subjects
    events = counters.choose(config.counters)
    probeable = subjects.probeable(config.probes.exclude)
    seen, lost, elsewhere, timed_at = _survey(bench, site, probeable, plain, places)
    overhead, compares = config.probes.overhead, len(bench.sides) > 1
    keeping = overhead if compares else max(overhead, survey.ALONE_SHARE)
    budget = Budget(overhead, keeping, bench.reservoir, _probe_costs(bench, site), bool(events.events), folds=compares)
    subjects = folding.affected_by_unprobed(subjects.as_seen(probeable.keys() - lost, seen.edges), config.probes.exclude)
    selection = survey.choose(seen, subjects.probeable(config.probes.exclude), subjects.conditions(), budget)
    subjects = folding.stood_in_for(subjects, selection.folds)
    measured = {choice.id for choice in selection.choices}
    covered = coverage.covered(bench, replace(site, subjects=subjects), measured, SurveyCoverage(seen.ran, lost, seen.edges))
    chosen = replace(
        covered,
        selection=selection,
        folded=(*folding.folded(covered.subjects, selection, seen), *covered.folded),
        steering=events.steering(),
        skipped=(*folding.untimed(subjects, selection), *covered.skipped),
        notes=(
            *covered.notes,
            *elsewhere,
            *caveats.texts_not_read(subjects, selection.choices, budget.keeping),
            *folding.note(subjects, selection.folds),
            *events.notes,
        ),
    )
    return chosen, timed_at


def _survey(
    bench: Bench, site: Site, probeable: Mapping[int, Counterpart], plain: Sequence[Run], places: SurveyPoints
) -> tuple[Survey, frozenset[int], tuple[Note, ...], list[Point]]:
    """Build with probes in all functions and run them.

    Return what was seen, whose probes were lost, which code lies elsewhere, and at which points calls were timed.
    """
    workshop = bench.workshop
    probes = {side: site.subjects.survey_probes(side, probeable) for side in bench.sides}
    built = workshop.probed(Phase.SURVEY, probes, site.plain)
    tallying = workshop.targets(Phase.SURVEY, built, dict.fromkeys(probeable, plan.ProbePlan.tally()), probes)
    sampled, costs = site.subjects.sampled_in_survey(probeable), _probe_costs(bench, site).values()

    def timing(counted: Tally, point: int) -> Targets:
        rates = counted.rates(point, costs)
        often = {id_: rates.get(id_, Rate(1)) for id_ in probeable}
        modes = {id_: plan.ProbePlan.survey(sampled=id_ in sampled).paced(**rate._asdict()) for id_, rate in often.items()}
        return workshop.targets(Phase.SURVEY, built, modes, probes)

    collector = bench.collector({**site.targets, **tallying})
    collector.sums_only = True
    runs = _plain_runs(bench, collector, plain, places.points)
    survey_time = SurveyTime.of(places.points, counting.plain_s_by_point(places.points, runs, len(bench.sides)), places.slower)
    if bench.request.wants_calls:
        survey_time = replace(survey_time, limit_s=math.inf)
    counted = _tallied(bench, collector, probes, runs, survey_time)
    collector.sums_only = False
    asked, unsteady = places.timed(counted), counted.unsteady()
    points = survey_time.timed(asked, {point.id: SURVEY_ROUNDS if point.id in unsteady else 1 for point in asked})
    untold = [point for point in places.points if point.id not in counted.points and point not in places.spared]
    left_out = [point for point in (*asked, *untold) if point not in points]
    timed = Assembly(probes, {point.id: point for point in points}, surveying=True)
    runs = [run for run in runs if run.point in {point.id for point in points}]
    runs += _timed(bench, collector, [(point, timing(counted, point.id)) for point in points], unsteady, timed)
    seen = survey.summarise(runs, timed.totals(), timed.edges(), timed.lengths(), _executions(timed))
    if len(bench.sides) > 1:
        reach.require_tree(collector.misplaced, seen.ran, site.subjects)
    coverage.require_calls(bench, seen.called, probes, built)
    notes = (*remarks.of_other_code(collector.told), *surveytime.note(left_out, survey_time.limit_s))
    return seen, workshop.lost(built, probes), notes, [*points, *left_out]


def _plain_runs(bench: Bench, collector: Collector, plain: Sequence[Run], points: Sequence[Point]) -> list[Run]:
    """Return the runs without probes at some points, which tell the CPU time without them: one is made where there are none."""
    seed, ids, before = bench.request.config.compare.seed, {point.id for point in points}, {(run.point, run.side) for run in plain}
    missing = [slot for slot in schedule.plain_slots(points, seed, bench.sides) if (slot.point.id, slot.side) not in before]
    bench.progress.stage("surveying", len(missing) + len(points) * len(bench.sides) * (1 + SURVEY_ROUNDS))
    further = (run for run, _ in collector.collect(missing, bench.progress.advance))
    return [*(run for run in plain if run.point in ids), *further]


def _tallied(bench: Bench, collector: Collector, probes: Probes, runs: Sequence[Run], survey_time: SurveyTime) -> Tally:
    """Run points once with probes that only count calls, the shortest first, as far as there is time; return what was counted."""
    assembly, abreast = Assembly(probes, {point.id: point for point in survey_time.points}), Abreast(collector)
    tallied: list[Run] = []
    asked: list[Point] = []
    for point in survey_time.points:
        if not survey_time.may_tally(point, asked):
            continue
        slots = schedule.tally_slots([point], bench.request.config.compare.seed, bench.sides)
        for run, recordings in abreast.collect(slots, runs, bench.progress.advance):
            tallied.append(run)
            assembly.add(run, recordings)
        survey_time.tallied(point, sum(run.took_ns for run in tallied[-len(slots) :]) / 1e9)
        asked.append(point)
    return tally.counted([*runs, *tallied], assembly.totals(), assembly.edges())


def _timed(
    bench: Bench, collector: Collector, targets: Sequence[tuple[Point, Targets]], unsteady: Collection[int], assembly: Assembly
) -> Iterator[Run]:
    """Yield runs of all points with probes that time, and more of `unsteady` ones; what they recorded goes to the assembly."""
    by_point = {point.id: of_point for point, of_point in targets}
    for block in range(SURVEY_ROUNDS):
        again = [point for point, _ in targets if block == 0 or point.id in unsteady]
        for slot in schedule.survey_slots(again, block, bench.request.config.compare.seed, bench.sides):
            collector.targets = by_point[slot.point.id]
            for run, recordings in collector.collect([slot], bench.progress.advance):
                assembly.add(run, recordings)
                yield run


def _executions(timed: Assembly) -> dict[tuple[Side, int], Floats]:
    """Return how often each place of a function was executed in a call, in the mean of its calls."""
    return {(table.side, table.function): np.average(table.executed, axis=0, weights=table.weight) for table in timed.tables()}


def _probe_costs(bench: Bench, site: Site) -> dict[str, ProbeCosts]:
    return {language: costs for built in site.plain.values() for language, costs in bench.packs.probe_costs(built).items()}
