"""The machines of a cluster as one that makes pairs: each free one gets the next, and what one that is lost had begun, another makes."""

from __future__ import annotations

import collections
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfdiff.cluster import protocol, workers
from perfdiff.cluster.apart import Apart
from perfdiff.cluster.checkouts import checkout
from perfdiff.cluster.posts import LOST, Post, Posts
from perfdiff.cluster.protocol import Commission, Finished, Fitted, Order, Series
from perfdiff.cluster.relaying import Relaying
from perfdiff.cluster.workers import Worker
from perfdiff.collect.runs import caveats
from perfdiff.collect.runs.collector import Collector
from perfdiff.collect.runs.schedule import Block, Made, Pair
from perfdiff.engines.cluster import ClusterEngine as Engine
from perfdiff.errors import MeasurementError
from perfdiff.measuring.bench import Bench
from perfdiff.measuring.site import Recipe, Site, Variant
from perfdiff.progress import Progress
from perfdiff.records.differences import SkippedFunction
from perfdiff.records.relay import Relay
from perfdiff.records.schema import Machine, Note
from perfdiff.request import Request
from perfdiff.revisions.bundles import Bundle, Sent, bundled
from perfdiff.revisions.pins import Pin, PinnedPair

if TYPE_CHECKING:
    from distributed import Client

RETURN_S = 30.0  # a scheduler that somebody restarts, or something, is back by then, and its workers
SEEDS = 1_000_000  # between the seeds of two stations: what is drawn for runs differs between machines


@dataclass(slots=True)
class Crew:
    """Makes pairs on the able workers of a cluster; see `making.PairMaker`.

    Where the scheduler ends, `returned` waits so many seconds for it and for workers, and gives both; what was made until then counts.
    """

    client: Client
    able: Sequence[Worker]
    bench: Bench
    site: Site
    collector: Collector
    left_out: Sequence[Note] = ()
    returned: Callable[[float], tuple[Client, Sequence[Worker]]] | None = None
    _recipe: Recipe | None = None
    _machines: list[Machine] = field(default_factory=list)
    _posts: Posts[Pair] = field(init=False)
    _back: collections.deque[Pair] = field(default_factory=collections.deque)  # of workers that are gone
    _finished: set[tuple[str, int, int]] = field(default_factory=set)
    _is_open: bool = False

    def __post_init__(self) -> None:
        again = "the pair that it was making is made on another"
        self._posts = Posts(self.client, self.bench.progress, "pairs of runs", again, self._give_back, [*self.left_out])

    @property
    def count(self) -> int:
        """Return how many machines make pairs."""
        self._open()
        return max(1, len(self._posts.here))

    @property
    def machines(self) -> tuple[Machine, ...]:
        """Return this machine, which counts, and those of the workers, in the order in which these became ready."""
        return tuple(self._machines)

    @property
    def notes(self) -> tuple[Note, ...]:
        """Return who was left out, and what stations tell: by the name of the machine where not all tell the same."""
        posts = [post for post in (*self._posts.here, *self._posts.gone) if post.made]
        notes = dict.fromkeys(note for post in posts for note in post.notes)
        labelled = []
        for note in notes:
            where = [post.name for post in posts if note in post.notes]
            labelled.append(note if len(where) == len(posts) else Note(note.slug, f"on {', '.join(where)}: {note.text}"))
        names = {point.workload for point in self.bench.points}
        return (*self._posts.left_out, *labelled, *self.collector.told, *caveats.trees_written(self.bench.upkeep.written, names))

    def fitted(self, recipe: Recipe) -> Variant:
        """Have all stations make the builds of a recipe; raise BuildError where none can."""
        self._open()
        try:
            variant = self._fitted(recipe)
        except MeasurementError as error:
            self._reopen(error)
            variant = self._fitted(recipe)
        self._recipe = recipe
        return variant

    def _fitted(self, recipe: Recipe) -> Variant:
        self.bench.progress.stage("building (timed) on workers", len(self._posts.here))
        skipped: dict[SkippedFunction, None] = {}
        for post, answer in self._posts.ask_all(recipe):
            if isinstance(answer, Fitted):
                skipped |= dict.fromkeys(answer.skipped)
                self.bench.progress.advance(self._posts.told(post))
        self._posts.require()
        return Variant(recipe.probes, {}, {}, skipped=tuple(skipped))

    def made(self, blocks: Iterable[Block], planned: int = 0) -> Iterator[Made]:
        """Yield each pair of the blocks when a worker has made it; raise what ended the last of the workers."""
        self._open()
        work, is_done = iter(blocks), False
        while not is_done:
            try:
                yield from self._made(work, planned)
                is_done = True
            except MeasurementError as error:
                self._reopen(error)

    def _made(self, work: Iterator[Block], planned: int) -> Iterator[Made]:
        def give(post: Post[Pair]) -> Order | None:
            post.now = self._next(post, work)
            return None if post.now is None else Order(post.now, planned)

        for post, answer in self._posts.answered(give):
            if isinstance(answer, Finished) and (accepted := self._accepted(post, answer)):
                yield accepted
        self._posts.require()

    def _accepted(self, post: Post[Pair], answer: Finished) -> Made | None:
        """Return a pair that was made, its runs with numbers and the machine; None of one that another machine has made."""
        pair, post.now, post.notes = post.now, None, answer.notes
        if pair is None or (key := (pair[0].phase.value, pair[0].point.id, pair[0].block)) in self._finished:
            return None
        self._finished.add(key)
        post.made += 1
        runs = [(self._told(run, post.machine), recordings) for run, recordings in answer.made.runs]
        for slot in pair:
            self.bench.progress.advance(f"{slot.point.label} on {slot.side}, {post.name} (its pair {post.made})")
        return Made(pair, runs, answer.made.seconds)

    def _told(self, run: Any, machine: int) -> Any:
        most = self.bench.request.config.measure.layouts
        layout = run.layout and run.layout + machine * most  # layouts of one number differ between machines; 0 is the build itself
        return replace(run, id=self.collector.number(), machine=machine, layout=layout)

    def _next(self, post: Post[Pair], work: Iterator[Block]) -> Pair | None:
        """Return what a free worker makes next: the rest of its block, what was lost elsewhere, a new block, or at last others' rests."""
        if not post.rest and self._back:
            return self._back.popleft()
        if not post.rest:
            post.rest.extend(next(work, ()))
        if not post.rest:
            busiest = max(self._posts.here, key=lambda other: len(other.rest))
            return busiest.rest.pop() if busiest.rest else None
        return post.rest.popleft()

    def _give_back(self, post: Post[Pair]) -> None:
        self._back.extend([*([post.now] if post.now else []), *post.rest])

    def _open(self) -> None:
        """Have a station on each able worker, once; raise what the last one failed by where none is left."""
        if self._is_open:
            return
        self._is_open = True
        here = socket.gethostname()
        self._machines = [Machine(here, self.site.environment(self.bench.request.environment))]
        self._posts.names.add(here)
        self._open_stations()

    def _reopen(self, lost: MeasurementError) -> None:
        """Have stations again after the scheduler was lost, if it comes back; raise `lost` where it does not, or something else failed."""
        if lost.slug != LOST or self.returned is None:
            raise lost
        progress, since = self.bench.progress, time.monotonic()
        progress.stage("waiting for the scheduler to come back", None)
        try:
            self._posts.client, self.able = self.returned(RETURN_S)
        except MeasurementError as error:
            raise lost from error
        self._open_stations()
        text = f"the scheduler of the cluster was gone for about {time.monotonic() - since:.0f} s; pairs that were made before count"
        note = Note("scheduler-returned", text)
        self._posts.left_out.append(note)
        progress.note(note.text)
        if self._recipe is not None:
            self._fitted(self._recipe)

    def _open_stations(self) -> None:
        commission, bundle = self._commission()
        self.bench.progress.stage("building on workers", len(self.able))

        def own(number: int) -> Commission:
            config = commission.config
            return replace(commission, config=replace(config, compare=replace(config.compare, seed=config.compare.seed + SEEDS * number)))

        for post, ready in self._posts.open(self.able, bundle, own):
            names = [machine.name for machine in self._machines]
            post.machine = names.index(post.name) if post.name in names else len(names)
            if post.machine == len(names):
                self._machines.append(Machine(post.name, ready.environment))
            self.bench.progress.advance(self._posts.told(post))

    def _commission(self) -> tuple[Commission, Bundle]:
        request, pins = self.bench.request, self.bench.pins
        commission = Commission(
            checkout=checkout(request, pins.head),
            config=request.config,
            base=Sent.of(pins.base),
            head=Sent.of(pins.head),
            followed=request.followed,
            numbering=protocol.numbering(self.site.subjects),
        )
        return commission, bundled([pins.base, pins.head])


@dataclass(slots=True)
class Cluster:
    """A scheduler with the workers that can measure, before a comparison makes use of them, and what is said of the others."""

    client: Client
    able: Sequence[Worker]
    left_out: Sequence[Note]
    address: str
    stack: ExitStack

    @property
    def engine(self) -> Engine:
        """Return the engine that analyses functions on the workers that can measure."""
        return Engine(self.client, workers=tuple(worker.address for worker in self.able))

    def crew(self, bench: Bench, site: Site, collector: Collector) -> Crew:
        """Return the crew that makes the pairs of a comparison."""
        return Crew(self.client, self.able, bench, site, collector, self.left_out, self._returned)

    def _returned(self, within_s: float) -> tuple[Client, Sequence[Worker]]:
        """Return a client of the scheduler that is back, and as many workers as before, or some at last; raise MeasurementError."""
        self.client, candidates = workers.returned(self.address, len(self.able), within_s, self.stack)
        self.able = [worker for worker in candidates if not worker.obstacle]
        return self.client, self.able

    def relay(self, request: Request, pins: Sequence[Pin], progress: Progress) -> Relay:
        """Record revisions of one history, oldest first, several at the same time; raise PerfdiffError where none can be."""
        again = "another one records what is left of its stretch"
        posts: Posts[int] = Posts(self.client, progress, "revisions", again, lambda _: None, [*self.left_out])
        return Relaying(posts, pins, request.cache, progress).record(self.able, request)

    def compare_apart(self, request: Request, pairs: Sequence[PinnedPair], folders: Sequence[Path], progress: Progress) -> None:
        """Make several comparisons at the same time, each whole on one worker; what fails is missing in `folders` afterwards."""
        posts: Posts[int] = Posts(self.client, progress, "comparisons", "it is compared when it is needed", lambda _: None)
        series = Series(checkout(request, pairs[-1].head), request.config, request.followed)
        pins = [pin for pair in pairs for pin in (pair.base, pair.head)]
        Apart(posts, pairs, folders, progress).measure(self.able[: len(pairs)], series, bundled(pins))


@contextmanager
def cluster(address: str, progress: Progress) -> Iterator[Cluster]:
    """Connect to a cluster for the length of a `with` block and say who can measure; nothing of ours goes on there afterwards."""
    progress.stage("connecting to the cluster", None)
    with ExitStack() as stack:
        client = stack.enter_context(workers.connected(address))
        candidates = workers.looked_at(client)
        able = [worker for worker in candidates if not worker.obstacle]
        progress.note(f"{len(able)} of {len(candidates)} workers of {address} can measure; watch them at {client.dashboard_link}")
        left_out = [Note("worker-left-out", f"{worker} is left out: {worker.obstacle}") for worker in candidates if worker.obstacle]
        for note in left_out:
            progress.note(note.text)
        if not able:
            raise MeasurementError(
                "no worker of the cluster can measure: " + "; ".join(f"{worker.name}: {worker.obstacle}" for worker in candidates),
                slug="no-workers",
            )
        yield Cluster(client, able, left_out, address, stack)


@contextmanager
def engine(address: str, progress: Progress) -> Iterator[Engine]:
    """Connect to a cluster for the length of a `with` block, to analyse functions there."""
    with cluster(address, progress) as connected:
        yield connected.engine
