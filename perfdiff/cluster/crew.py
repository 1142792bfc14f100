"""The machines of a cluster as one that makes pairs: each free one gets the next, and what one that is lost had begun, another makes."""

from __future__ import annotations

import collections
import pickle
import queue
import socket
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from perfdiff.bench import Bench, Recipe, Site, Variant
from perfdiff.cluster import protocol, workers
from perfdiff.cluster.protocol import Answer, Commission, Failure, Finished, Fitted, Order, Ready
from perfdiff.cluster.tasks import submitted
from perfdiff.cluster.workers import Worker
from perfdiff.collect import caveats
from perfdiff.collect.collector import Collector
from perfdiff.collect.schedule import Slot
from perfdiff.engines.cluster import Cluster as Engine
from perfdiff.errors import MeasurementError, PerfdiffError
from perfdiff.making import Block, Made, Pair
from perfdiff.progress import Progress
from perfdiff.records.schema import Machine, Note, Skipped
from perfdiff.revisions.bundles import Bundle, Sent, SentFile, bundled
from perfdiff.revisions.overlay import overlay_files

if TYPE_CHECKING:
    from distributed import Client, Future

LOOK_S = 0.5  # between two looks whether workers that are waited for are still there
SEEDS = 1_000_000  # between the seeds of two stations: what is drawn for runs differs between machines


@dataclass(slots=True)
class _Post:
    """A worker with its station there, what it makes just now, and what remains of its block."""

    worker: Worker
    station: Future
    number: int  # of its seeds
    machine: int = 0  # its place among the machines
    now: Pair | None = None
    rest: collections.deque[Pair] = field(default_factory=collections.deque)
    notes: tuple[Note, ...] = ()
    made: int = 0


@dataclass(slots=True)
class Crew:
    """Makes pairs on the able workers of a cluster; see `making.PairMaker`."""

    client: Client
    able: Sequence[Worker]
    bench: Bench
    site: Site
    collector: Collector
    left_out: list[Note] = field(default_factory=list)
    _machines: list[Machine] = field(default_factory=list)
    _posts: list[_Post] = field(default_factory=list)
    _gone: list[_Post] = field(default_factory=list)
    _back: collections.deque[Pair] = field(default_factory=collections.deque)  # of workers that are gone
    _finished: set[tuple[str, int, int]] = field(default_factory=set)
    _is_open: bool = False
    _last: PerfdiffError | None = None

    @property
    def count(self) -> int:
        """Return how many machines make pairs."""
        self._open()
        return max(1, len(self._posts))

    @property
    def machines(self) -> tuple[Machine, ...]:
        """Return this machine, which counts, and those of the workers, in the order in which these became ready."""
        return tuple(self._machines)

    @property
    def notes(self) -> tuple[Note, ...]:
        """Return who was left out, and what stations tell: by the name of the machine where not all tell the same."""
        posts = [post for post in (*self._posts, *self._gone) if post.made]
        told = dict.fromkeys(note for post in posts for note in post.notes)
        found = []
        for note in told:
            where = [self._machines[post.machine].name for post in posts if note in post.notes]
            found.append(note if len(where) == len(posts) else Note(note.slug, f"on {', '.join(where)}: {note.text}"))
        return (*self.left_out, *found, *self.collector.told, *caveats.trees_written(self.bench.upkeep.written))

    def fitted(self, recipe: Recipe) -> Variant:
        """Have all stations make the builds of a recipe; raise BuildError where none can."""
        self._open()
        self.bench.progress.stage("building (timed) on workers", len(self._posts))
        skipped: dict[Skipped, None] = {}
        for post, answer in self._asked(recipe):
            if isinstance(answer, Fitted):
                skipped |= dict.fromkeys(answer.skipped)
                self.bench.progress.advance(post.worker.name)
        self._require_posts()
        return Variant(recipe.probes, {}, {}, skipped=tuple(skipped))

    def made(self, blocks: Iterable[Block], planned: int = 0) -> Iterator[Made]:
        """Yield each pair of the blocks when a worker has made it; raise what ended the last of the workers."""
        self._open()
        work = iter(blocks)
        under_way: dict[Future, _Post] = {}
        answers: queue.SimpleQueue[Future] = queue.SimpleQueue()
        try:
            while True:
                for post in [post for post in self._posts if post.now is None]:
                    post.now = self._next(post, work)
                    if post.now is not None:
                        future = self._ask(post, Order(post.now, planned))
                        under_way[future] = post
                        future.add_done_callback(answers.put)
                if not under_way:
                    self._require_posts()
                    return
                future = self._waited(answers, under_way)
                if future is None or future not in under_way:
                    continue
                post = under_way.pop(future)
                answer = self._answer(post, future)
                if isinstance(answer, Finished) and (made := self._accepted(post, answer)):
                    yield made
        finally:
            for future, post in under_way.items():
                future.cancel()
                post.now = None

    def _accepted(self, post: _Post, answer: Finished) -> Made | None:
        """Return a pair that was made, its runs with numbers and the machine; None of one that another machine has made."""
        pair, post.now, post.notes = post.now, None, answer.notes
        if pair is None or (key := _key(pair)) in self._finished:
            return None
        self._finished.add(key)
        post.made += 1
        runs = [(self._told(run, post.machine), recordings) for run, recordings in answer.made.runs]
        for slot in pair:
            self.bench.progress.advance(f"{slot.point.label} on {slot.side}, {self._machines[post.machine].name} (its pair {post.made})")
        return Made(pair, runs, answer.made.seconds)

    def _told(self, run: Any, machine: int) -> Any:
        most = self.bench.request.config.measure.layouts
        layout = run.layout and run.layout + machine * most  # layouts of one number differ between machines; 0 is the build itself
        return replace(run, id=self.collector.number(), machine=machine, layout=layout)

    def _next(self, post: _Post, work: Iterator[Block]) -> Pair | None:
        """Return what a free worker makes next: the rest of its block, what was lost elsewhere, a new block, or at last others' rests."""
        if not post.rest and self._back:
            return self._back.popleft()
        if not post.rest:
            post.rest.extend(next(work, ()))
        if not post.rest:
            busiest = max(self._posts, key=lambda each: len(each.rest))
            return busiest.rest.pop() if busiest.rest else None
        return post.rest.popleft()

    def _waited(self, answers: queue.SimpleQueue[Future], under_way: dict[Future, _Post]) -> Future | None:
        """Return the next future that is done; None where none is for a while, or a worker was lost instead."""
        try:
            return answers.get(timeout=LOOK_S)
        except queue.Empty:
            pass
        there = self._alive()
        for future, post in list(under_way.items()):
            if post.worker.address not in there and not future.done():
                del under_way[future]
                self._lose(post, [future])
        return None

    def _alive(self) -> frozenset[str]:
        """Return the addresses of the workers that are there; raise MeasurementError where the scheduler is not."""
        why: object = "the connection was lost"
        try:
            if self.client.status == "running":
                return frozenset(workers.alive(self.client))
        except (OSError, TimeoutError) as error:
            why = error
        raise MeasurementError(
            f"the scheduler of the cluster is gone ({why}); what was measured is lost, but builds are kept: ask again when it is back",
            slug="scheduler-lost",
        )

    def _ask(self, post: _Post, request: protocol.Request) -> Future:
        return submitted(self.client, post.worker.address, "asked", request, held=post.station)

    def _asked(self, request: protocol.Request) -> Iterator[tuple[_Post, Answer]]:
        """Yield what each station answers, in the order in which they do."""
        answers: queue.SimpleQueue[Future] = queue.SimpleQueue()
        under_way = {self._ask(post, request): post for post in self._posts}
        for future in under_way:
            future.add_done_callback(answers.put)
        yield from self._collected(answers, under_way)

    def _collected(self, answers: queue.SimpleQueue[Future], under_way: dict[Future, _Post]) -> Iterator[tuple[_Post, Answer]]:
        try:
            while under_way:
                future = self._waited(answers, under_way)
                if future in under_way:
                    post = under_way.pop(future)
                    if answer := self._answer(post, future):
                        yield post, answer
        finally:
            for future in under_way:
                future.cancel()

    def _answer(self, post: _Post, future: Future) -> Answer | None:
        """Return what a station answered; None where it failed or was lost, and is left out from now on."""
        if future.status != "finished":
            there = self._alive()
            why = f"its task was {future.status}" if post.worker.address in there else "it is gone"
            self._lose(post, [future], f"{why}: {future.exception()!r}" if future.status == "error" else why)
            return None
        answer: Answer = future.result()
        if isinstance(answer, Failure):
            if answer.slug == "worker-lost":
                self._lose(post, [future], answer.text)
            else:
                self._leave_out(post, answer)
            return None
        return answer

    def _lose(self, post: _Post, futures: Sequence[Future], why: str = "it is gone") -> None:
        for future in futures:
            future.cancel()
        again = "; the pair that it was making is made on another" if post.now else ""
        text = f"{post.worker} was lost after {post.made} pairs of runs ({why}){again}"
        self._last = self._last or MeasurementError(
            f"{text}, but no other is left: look into the workers' logs, and ask again; builds are kept", slug="worker-lost"
        )
        self._remove(post, Note("worker-lost", text))

    def _leave_out(self, post: _Post, failure: Failure) -> None:
        self._last = failure.error
        after = f"after {post.made} pairs of runs" if post.made else "from the start"
        self._remove(post, Note("worker-left-out", f"{post.worker} is left out {after}: {failure.text}"))

    def _remove(self, post: _Post, note: Note) -> None:
        self.left_out.append(note)
        self.bench.progress.note(note.text)
        self._back.extend([*([post.now] if post.now else []), *post.rest])
        post.now = None
        post.rest.clear()
        self._posts.remove(post)
        self._gone.append(post)
        post.station.cancel()

    def _require_posts(self) -> None:
        if not self._posts:
            raise self._last or MeasurementError("no worker of the cluster is left that can measure", slug="no-workers")

    def _open(self) -> None:
        """Have a station on each able worker, once; raise what the last one failed by where none is left."""
        if self._is_open:
            return
        self._is_open = True
        self._machines = [Machine(socket.gethostname(), self.bench.environment(self.site))]
        commission, bundle = self._commission()
        self.bench.progress.stage("building on workers", len(self.able))
        # By the addresses of workers, and not as a part of each question: it may be large, and goes to each machine once.
        sent = self.client.scatter(pickle.dumps(bundle), workers=[each.address for each in self.able], broadcast=True, hash=False)
        starting: dict[Future, _Post] = {}
        answers: queue.SimpleQueue[Future] = queue.SimpleQueue()
        for number, worker in enumerate(self.able, 1):
            config = commission.config
            own = replace(commission, config=replace(config, compare=replace(config.compare, seed=config.compare.seed + SEEDS * number)))
            station = submitted(self.client, worker.address, "opened", own, held=sent)
            post = _Post(worker, station, number)
            self._posts.append(post)
            future = submitted(self.client, worker.address, "first_answer", held=station)
            starting[future] = post
            future.add_done_callback(answers.put)
        for post, answer in self._collected(answers, starting):
            if isinstance(answer, Ready):
                post.machine = len(self._machines)
                self._machines.append(Machine(self._name(answer.host, post.worker), answer.environment))
                self.bench.progress.advance(self._machines[post.machine].name)
        self._require_posts()

    def _name(self, host: str, worker: Worker) -> str:
        """Return a name for the machine of a worker that no other one has."""
        taken = {machine.name for machine in self._machines}
        return next(name for name in (host, f"{host} ({worker.name})", f"{host} ({worker.address})") if name not in taken)

    def _commission(self) -> tuple[Commission, Bundle]:
        request, pins = self.bench.request, self.bench.pins
        repository = pins.head.repository
        top = repository.top or request.repository
        overlay = overlay_files(repository, request.config.build.overlay)
        project = request.repository.resolve()
        inputs = {project / name for workload in request.config.workloads for name in workload.inputs}
        within = sorted(file.relative_to(top) for file in inputs if file.is_relative_to(top))
        commission = Commission(
            config=request.config,
            base=Sent.of(pins.base),
            head=Sent.of(pins.head),
            repository=repository.name,
            folder=repository.folder,
            bundle=Bundle(b"", "", b"", ""),
            files=tuple(SentFile.read(top, file) for file in dict.fromkeys((*overlay, *within))),
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

    @property
    def engine(self) -> Engine:
        """Return what analyses functions on the workers that can measure."""
        return Engine(self.client, workers=tuple(each.address for each in self.able))

    def crew(self, bench: Bench, site: Site, collector: Collector) -> Crew:
        """Return what makes the pairs of a comparison."""
        return Crew(self.client, self.able, bench, site, collector, [*self.left_out])


@contextmanager
def cluster(address: str, progress: Progress) -> Iterator[Cluster]:
    """Connect to a cluster for the length of a `with` block and say who can measure; nothing of ours goes on there afterwards."""
    progress.stage("connecting to the cluster", None)
    with workers.connected(address) as client:
        found = workers.looked_at(client)
        able = [each for each in found if not each.obstacle]
        progress.note(f"{len(able)} of {len(found)} workers of {address} can measure; watch them at {client.dashboard_link}")
        left_out = [Note("worker-left-out", f"{each} is left out: {each.obstacle}") for each in found if each.obstacle]
        for note in left_out:
            progress.note(note.text)
        if not able:
            raise MeasurementError(
                "no worker of the cluster can measure: " + "; ".join(f"{each.name}: {each.obstacle}" for each in found), slug="no-workers"
            )
        yield Cluster(client, able, left_out)


@contextmanager
def engine(address: str, progress: Progress) -> Iterator[Engine]:
    """Connect to a cluster for the length of a `with` block, to analyse functions there."""
    with cluster(address, progress) as found:
        yield found.engine


def _key(pair: Sequence[Slot]) -> tuple[str, int, int]:
    return pair[0].phase.value, pair[0].point.id, pair[0].block
