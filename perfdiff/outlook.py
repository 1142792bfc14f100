"""What a comparison would do, and how long that should take, without doing any of it."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perfdiff import storage
from perfdiff.build.builder import build, is_kept
from perfdiff.build.cache import BuildCache
from perfdiff.build.variants import BuildRequest
from perfdiff.collect.choosing.subjects import Subjects
from perfdiff.collect.runs import schedule, workloads
from perfdiff.collect.runs.schedule import Slot
from perfdiff.config import BUDGETS, MeasureConfig
from perfdiff.errors import RecordingError
from perfdiff.languages.packs import Packs
from perfdiff.measuring.surveying import SURVEY_ROUNDS
from perfdiff.progress import Progress
from perfdiff.records import store
from perfdiff.records.schema import Change, FunctionInfo, Phase, Point, Revision, Side
from perfdiff.request import Request, experiment_key
from perfdiff.revisions.pins import PinnedPair, resolve
from perfdiff.revisions.repository import Repository, find_repository
from perfdiff.statistics.pairs import FIRST_LOOK, MOST_PAIRS

COUNTINGS = 2  # all functions are counted first, and the chosen ones where that leaves a question; each has the budget


@dataclass(frozen=True, slots=True)
class Outlook:
    """What `perfdiff BASE HEAD` would do.

    `measured`: all of it was done before, and only the report would be written. `built` tells which sides have a plain build; `builds` is
    how many there would be at most, `build_s` how long one took, None where none was made. `functions` are those that could be probed,
    None where that is not known before both sides are built. `fewest` and `most` are the runs by phase, but for counted ones: where whole
    runs answer at the first look, and all that there may be; `fewest_s` and `most_s` how long they should take, None where these workloads
    never ran. Counted runs take up to `counting_s`. Differences below `min_effect` are of no interest, but at points with one of their own.
    Each of the `suites` is one point, as its benchmarks are not known before all is built.
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
    suites: tuple[str, ...] = ()

    @property
    def changes(self) -> Counter[Change]:
        """Return how many functions there are of each kind."""
        return Counter(info.change for info in self.functions or ())


def outlook(request: Request, progress: Progress, *, packs: Packs | None = None) -> Outlook:
    """Say what `pipeline.compare` would do; nothing is built or run, but builds that are kept are read."""
    progress.stage("resolving revisions", None)
    repository = find_repository(request.repository)
    config, tools = request.config, packs or request.packs
    with storage.in_use(request.cache, progress), BuildCache(request.cache) as cache:
        pins = resolve(repository, request.revisions, snapshots=request.cache / "snapshots", apart=config.own_files(request.repository))
        requests = {
            side: BuildRequest(pin, side, Phase.PLAIN, config.build, request.environment, None, tools.workplace)
            for side, pin in ((Side.BASE, pins.base), (Side.HEAD, pins.head))
        }
        built = {side: is_kept(asked, cache) for side, asked in requests.items()}
        kept = {side: build(asked, cache) for side, asked in requests.items() if built[side]}
        functions = None
        if all(built.values()):
            progress.stage("finding functions", None)
            base, head = (tools.index(kept[side], depth=config.probes.depth, others=list(kept.values())) for side in Side)
            subjects = Subjects.number(tools.match(base, head))
            functions = subjects.infos(subjects.probeable(config.probes.exclude).keys())
        points = workloads.points(config.workloads)
        took = _took(request, repository)
        survey, again = _survey(points, config.compare.seed)
        built_s = sum(each.duration_s for each in kept.values())
        whole, longest, timed = *(_whole(request, points, pairs) for pairs in (FIRST_LOOK, MOST_PAIRS)), _timed(request, points)
        fewest = whole if _may_be_spared(request) else [*survey, *whole]
        counting = config.counters.software and tools.counts
        variants = 3 + COUNTINGS * counting if tools.rebuilds else 1  # plain, survey, timed, counted
        return Outlook(
            base=pins.base.revision,
            head=pins.head.revision,
            measured=_is_measured(request, pins),
            built=built,
            builds=variants * len(Side) - sum(built.values()),
            build_s=max((each.duration_s for each in kept.values()), default=None),
            functions=functions,
            points=points,
            fewest=Counter(slot.phase for slot in fewest),
            most=Counter(slot.phase for slot in (*survey, *again, *longest, *timed)),
            fewest_s=_seconds(fewest, took),
            most_s=_most_s(
                (_seconds([*survey, *again], took), math.inf),
                (_seconds(longest, took), _longest_s(config.measure, built_s, _seconds(whole, took) or 0.0)),
                (_seconds(timed, took), config.measure.budget_for(built_s)),
            ),
            counting_s=COUNTINGS * config.counters.budget_s if counting else 0.0,
            min_effect=config.compare.min_effect,
        )


def _is_measured(request: Request, pins: PinnedPair) -> bool:
    asked = storage.Asked(experiment_key(request, pins), pins.base.revision, pins.head.revision, ())
    return store.exists(storage.experiment(request.cache, asked))


def _may_be_spared(request: Request) -> bool:
    """Return whether whole runs and counts of all functions may answer, so that no survey is made."""
    return request.config.counters.software and not request.config.measure.thorough and not request.followed


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


def _longest_s(measure: MeasureConfig, built_s: float, first_look_s: float) -> float:
    """Return how long whole runs may take, of which those up to the first look take `first_look_s`."""
    return max(BUDGETS * measure.budget_for(built_s), first_look_s if first_look_s <= measure.first_look_s else 0.0)


def _most_s(*stages: tuple[float | None, float]) -> float | None:
    """Return how long stages take, each given by what its runs take, None where that is not known, and how long it may last."""
    return None if any(seconds is None for seconds, _ in stages) else sum(min(seconds or 0.0, longest) for seconds, longest in stages)


def _took(request: Request, repository: Repository) -> dict[str, float]:
    """Return how long a run took, in s, by its command, in the last comparison of the repository."""
    asked = storage.last(request.cache, repository.name)
    try:
        found = store.load(storage.experiment(request.cache, asked)) if asked else None
    except RecordingError:
        found = None
    if found is None:
        return {}
    commands = {point.id: point.command for point in found.points}
    longest: dict[str, float] = {}
    for run in found.runs:
        if run.phase is not Phase.COUNTED:
            longest[commands[run.point]] = max(longest.get(commands[run.point], 0.0), run.took_ns / 1e9)
    return longest


def _seconds(slots: Sequence[Slot], took: Mapping[str, float]) -> float | None:
    if any(slot.point.command not in took for slot in slots):
        return None
    return sum(took[slot.point.command] for slot in slots)
