"""What a comparison would do, and how long that should take, without doing any of it but a run of each point where a build is kept."""

from __future__ import annotations

import itertools
import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from perfdiff import storage
from perfdiff.build.builder import build, is_kept
from perfdiff.build.built import Built
from perfdiff.build.cache import BuildCache
from perfdiff.build.variants import BuildRequest
from perfdiff.collect.choosing.subjects import Subjects
from perfdiff.collect.execution.executor import ProcessExecutor
from perfdiff.collect.runs import schedule, workloads
from perfdiff.collect.runs.schedule import SURVEY_ROUNDS, Slot
from perfdiff.config import BUDGETS
from perfdiff.errors import RecordingError, WorkloadError
from perfdiff.progress import Progress, Stopwatch
from perfdiff.records import store
from perfdiff.records.schema import Change, FunctionInfo, Phase, Point, Revision, Side
from perfdiff.request import Request, experiment_key
from perfdiff.revisions.pins import PinnedPair, resolve
from perfdiff.revisions.repository import Repository, find_repository
from perfdiff.statistics.pairs import FEWEST_PAIRS, FIRST_LOOK, MOST_PAIRS

if TYPE_CHECKING:
    from perfdiff.measuring.bench import Bench

TRIED_S = 30.0  # that running each point once may take: who asks how long something takes does not wait for it
COUNTINGS = 2  # all functions are counted first, and the chosen ones where that leaves a question; each has the budget


@dataclass(frozen=True, slots=True)
class Outlook:
    """What `perfdiff BASE HEAD` would do.

    `measured`: all of it was done before, and only the report would be written. `built` tells which sides have a plain build; `builds` is
    how many there would be at most, `build_s` how long one took, None where none was made. `functions` are those that could be probed,
    None where that is not known before both sides are built. `fewest` and `most` are the runs by phase, but for counted ones: where whole
    runs answer at the first look, and all that there may be; `fewest_s` and `most_s` how long they should take, None where these workloads
    never ran. Counted runs take up to `counting_s`. `tried` tells how many points were run for that, 0 where it was known before, `failure`
    why one of these runs failed. Differences below `min_effect` are of no interest, but at points with
    one of their own. Each of the `suites` is one point, as its benchmarks are not known before all is built.
    """

    base: Revision
    head: Revision
    measured: bool
    built: Mapping[Side, bool]
    builds: int
    build_s: float | None
    functions: tuple[FunctionInfo, ...] | None
    points: tuple[Point, ...]
    fewest: Mapping[Phase, int]
    most: Mapping[Phase, int]
    fewest_s: float | None
    most_s: float | None
    counting_s: float
    min_effect: float
    tried: int = 0
    failure: str = ""
    suites: tuple[str, ...] = ()

    @property
    def changes(self) -> Counter[Change]:
        """Return how many functions there are of each kind."""
        return Counter(info.change for info in self.functions or ())


@dataclass(frozen=True, slots=True)
class TrialRun:
    """How long one run of each command took, in s, how many `points` are planned, or why a run failed."""

    took: Mapping[str, float]
    points: int = 0
    failure: str = ""


def outlook(request: Request, progress: Progress) -> Outlook:
    """Say what `pipeline.compare` would do; nothing is built, and only workloads that did not run before are, in builds that are kept."""
    progress.stage("resolving revisions", None)
    repository = find_repository(request.repository)
    config, tools = request.config, request.packs
    with storage.in_use(request.cache, progress), BuildCache(request.cache) as cache:
        pins = resolve(repository, request.revisions, snapshots=request.cache / "snapshots", apart=config.own_files(request.repository))
        requests = {
            side: BuildRequest(pin, side, Phase.PLAIN, config.build, request.environment, None, tools.workplace)
            for side, pin in ((Side.BASE, pins.base), (Side.HEAD, pins.head))
        }
        built = {side: is_kept(asked, cache) for side, asked in requests.items()}
        builds = {side: build(asked, cache) for side, asked in requests.items() if built[side]}
        functions = None
        if all(built.values()):
            progress.stage("finding functions", None)
            base, head = (tools.index(builds[side], depth=config.probes.depth, others=list(builds.values())) for side in Side)
            subjects = Subjects.number(tools.match(base, head))
            functions = subjects.infos(subjects.probeable(config.probes.exclude).keys())
        points = workloads.points(config.workloads)
        is_measured, suites = _is_measured(request, pins), tuple(workload.name for workload in config.workloads if workload.suite)
        trial = TrialRun(_took(request, repository))
        if builds and not is_measured and not suites and _seconds(_whole(request, points, 1), trial.took) is None:
            with storage.at_work(request.cache, progress, wait_s=config.measure.wait_s) as room:
                from perfdiff.measuring.bench import Bench  # nobody needs what measures where no build is kept

                side = next(iter(builds))
                trial = _tried(Bench(request, pins, cache, room, tools, ProcessExecutor(), Stopwatch(progress), (side,)), builds[side])
        took = trial.took
        survey, again = _survey(points, config.compare.seed)
        built_s = sum(of_side.duration_s for of_side in builds.values())
        budget_s, whole = config.measure.budget_for(built_s), _whole(request, points, FIRST_LOOK)
        if (_seconds(whole, took) or 0.0) > max(budget_s, config.measure.first_look_s):
            whole = _whole(request, points, FEWEST_PAIRS)
        longest, timed = _whole(request, points, MOST_PAIRS), _timed(request, points)
        if config.measure.fast:
            survey, again, timed = [], [], []
        fewest = whole if request.config.counters.software and not request.wants_calls else [*survey, *whole]
        counting = config.counters.software and tools.counts and not config.measure.fast
        variants = 3 + COUNTINGS * counting if tools.rebuilds and not config.measure.fast else 1  # plain, survey, timed, counted
        return Outlook(
            base=pins.base.revision,
            head=pins.head.revision,
            measured=is_measured,
            built=built,
            builds=variants * len(Side) - sum(built.values()),
            build_s=max((of_side.duration_s for of_side in builds.values()), default=None),
            functions=functions,
            points=points,
            fewest=Counter(slot.phase for slot in fewest),
            most=Counter(slot.phase for slot in (*survey, *again, *longest, *timed)),
            fewest_s=_seconds(fewest, took),
            most_s=_most_s(
                (_seconds([*survey, *again], took), math.inf),
                (_seconds(longest, took), max(BUDGETS * budget_s, _seconds(whole, took) or 0.0)),
                (_seconds(timed, took), budget_s),
            ),
            counting_s=COUNTINGS * config.counters.budget_s if counting else 0.0,
            tried=trial.points,
            failure=trial.failure,
            suites=suites,
            min_effect=config.compare.min_effect,
        )


def _tried(bench: Bench, built: Built) -> TrialRun:
    """Run each point once in the kept build of the bench's side, as long as that takes no more than `TRIED_S` in all.

    What is not run, or is ended for that, is taken to last as long as the longest of the others.
    """
    (side,), points = bench.sides, bench.points
    collector = bench.collector(bench.workshop.targets(Phase.PLAIN, {side: built}, {}, {}))
    end, longest_s, took = time.monotonic() + TRIED_S, 0.0, dict[str, float]()
    bench.progress.stage(f"running each point once, as {side}", len(points))
    with closing(bench.upkeep), closing(bench.services):
        for point in points:
            started = time.monotonic()
            if started >= end:
                break
            workload = collector.workloads[point.workload]
            brief = replace(workload, timeout_s=min(workload.timeout_s, end - started))
            runner = replace(collector, workloads={workload.name: brief}, slow=None)
            try:
                ((run, _),) = runner.collect([Slot(Phase.PLAIN, point, side, 0)], bench.progress.advance)
            except WorkloadError as error:
                if error.slug != "workload-timeout" or brief.timeout_s == workload.timeout_s:
                    return TrialRun({}, failure=str(error))
                longest_s = max(longest_s, time.monotonic() - started)
                break
            took[point.command] = run.took_ns / 1e9
    longest_s = max([longest_s, *took.values()])
    return TrialRun({point.command: took.get(point.command, longest_s) for point in points}, len(took))


def _is_measured(request: Request, pins: PinnedPair) -> bool:
    comparison = storage.CachedComparison(experiment_key(request, pins), pins.base.revision, pins.head.revision, ())
    return store.exists(storage.experiment(request.cache, comparison))


def _survey(points: Sequence[Point], seed: int) -> tuple[list[Slot], list[Slot]]:
    """Return the runs of the survey: those that are made in any case, and those that may be made again."""
    first, *again = (schedule.survey_slots(points, block, seed) for block in range(SURVEY_ROUNDS))
    return [*schedule.tally_slots(points, seed), *first], list(itertools.chain.from_iterable(again))


def _whole(request: Request, points: Sequence[Point], pairs: int) -> list[Slot]:
    """Return the runs of so many pairs of whole runs at every point."""
    blocks = (schedule.whole_block(points, block, request.config.compare.seed) for block in range(pairs))
    return list(itertools.chain.from_iterable(blocks))


def _timed(request: Request, points: Sequence[Point]) -> list[Slot]:
    """Return all runs with probes that may be made; a workload has no more blocks than it has runs."""
    runs = workloads.runs_at(request.config.workloads, points)
    return list(itertools.chain.from_iterable(schedule.timed_blocks(points, runs, request.config.compare.seed)))


def _most_s(*stages: tuple[float | None, float]) -> float | None:
    """Return how long stages take, each given by what its runs take, None where that is not known, and how long it may last."""
    return None if any(seconds is None for seconds, _ in stages) else sum(min(seconds or 0.0, longest) for seconds, longest in stages)


def _took(request: Request, repository: Repository) -> dict[str, float]:
    """Return how long a run took, in s, by its command, in the last comparison of the repository."""
    comparison = storage.last(request.cache, repository.name)
    try:
        experiment = store.load(storage.experiment(request.cache, comparison)) if comparison else None
    except RecordingError:
        experiment = None
    if experiment is None:
        return {}
    commands = {point.id: point.command for point in experiment.points}
    longest: dict[str, float] = {}
    for run in experiment.runs:
        if run.phase is not Phase.COUNTED:
            longest[commands[run.point]] = max(longest.get(commands[run.point], 0.0), run.took_ns / 1e9)
    return longest


def _seconds(slots: Sequence[Slot], took: Mapping[str, float]) -> float | None:
    if any(slot.point.command not in took for slot in slots):
        return None
    return sum(took[slot.point.command] for slot in slots)
