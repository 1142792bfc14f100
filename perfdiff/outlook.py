"""What a comparison would do, and how long that should take, without doing any of it."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perfdiff import pipeline, storage
from perfdiff.build.builder import build, is_kept
from perfdiff.build.cache import BuildCache
from perfdiff.build.variants import BuildRequest
from perfdiff.collect import schedule, workloads
from perfdiff.collect.schedule import Slot
from perfdiff.collect.subjects import Subjects
from perfdiff.errors import RecordingError
from perfdiff.languages.c.pack import C
from perfdiff.languages.protocol import Language
from perfdiff.pipeline import FIRST_LOOK, SURVEY_ROUNDS, Request
from perfdiff.progress import Progress
from perfdiff.records import store
from perfdiff.records.schema import Change, FunctionInfo, Phase, Point, Revision, Side
from perfdiff.revisions.pins import PinnedPair, resolve
from perfdiff.revisions.repository import Repository, find_repository


@dataclass(frozen=True, slots=True)
class Outlook:
    """What `perfdiff BASE HEAD` would do.

    `measured`: all of it was done before, and only the report would be written. `built` tells which sides have a plain build; `builds` is
    how many there would be at most, `build_s` how long one took, None where none was made. `functions` are those that could be probed,
    None where that is not known before both sides are built. `fewest` and `most` are the runs by phase, without and with all that may
    follow a look at the findings; `fewest_s` and `most_s` how long they should take, None where these workloads never ran.
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

    @property
    def changes(self) -> Counter[Change]:
        """Return how many functions there are of each kind."""
        return Counter(info.change for info in self.functions or ())


def outlook(request: Request, progress: Progress, *, language: Language | None = None) -> Outlook:
    """Say what `pipeline.compare` would do; nothing is built or run, but builds that are kept are read."""
    progress.stage("resolving revisions", None)
    repository = find_repository(request.repository)
    config = request.config
    with storage.in_use(request.cache), BuildCache(request.cache) as cache:
        pins = resolve(repository, request.revisions, snapshots=request.cache / "snapshots", apart=config.own_files(request.repository))
        requests = {
            side: BuildRequest(pin, side, Phase.PLAIN, config.build, request.environment, None)
            for side, pin in ((Side.BASE, pins.base), (Side.HEAD, pins.head))
        }
        built = {side: is_kept(asked, cache) for side, asked in requests.items()}
        kept = {side: build(asked, cache) for side, asked in requests.items() if built[side]}
        functions = None
        if all(built.values()):
            progress.stage("finding functions", None)
            tools = language or C(request.cache / "units")
            base, head = (tools.index(kept[side].tree, kept[side].commands, depth=config.probes.depth) for side in Side)
            subjects = Subjects.number(tools.match(base, head), tools.name)
            functions = subjects.infos(subjects.probeable(config.probes.exclude).keys())
        points = workloads.points(config.workloads)
        took = _took(request, repository)
        blocks = max(workload.runs for workload in config.workloads)
        fewest, most = (_slots(request, points, number) for number in (min(FIRST_LOOK, blocks), blocks))
        variants = 3 + config.counters.software  # plain, survey, timed, counted
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
            most=Counter(slot.phase for slot in most),
            fewest_s=_seconds(fewest, took),
            most_s=_seconds(most, took),
            counting_s=config.counters.budget_s if config.counters.software else 0.0,
        )


def _is_measured(request: Request, pins: PinnedPair) -> bool:
    asked = storage.Asked(pipeline.experiment_key(request, pins), pins.base.revision, pins.head.revision, ())
    return store.exists(storage.experiment(request.cache, asked))


def _slots(request: Request, points: Sequence[Point], blocks: int) -> list[Slot]:
    """Return the runs of the survey and of so many blocks; a workload has no more blocks than it has runs."""
    seed = request.config.compare.seed
    runs = {workload.name: workload.runs for workload in request.config.workloads}
    timed = schedule.timed_blocks(points, runs, seed)[:blocks]
    return [*schedule.survey_slots(points, SURVEY_ROUNDS, seed), *itertools.chain.from_iterable(timed)]


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
            longest[commands[run.point]] = max(longest.get(commands[run.point], 0.0), run.wall_ns / 1e9)
    return longest


def _seconds(slots: Sequence[Slot], took: Mapping[str, float]) -> float | None:
    if any(slot.point.command not in took for slot in slots):
        return None
    return sum(took[slot.point.command] for slot in slots)
