"""Workers of a cluster at work, each with a station beside it: who is there, what each does, who was lost or left out."""

from __future__ import annotations

import collections
import pickle
import queue
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from perfdiff.cluster import protocol, workers
from perfdiff.cluster.handing import Given, Handing
from perfdiff.cluster.protocol import Answer, BuildReady, Failure, GoOn, Handed, Opening, Question, Ready, Seeking, Shelf
from perfdiff.cluster.tasks import submitted
from perfdiff.cluster.workers import Worker
from perfdiff.errors import MeasurementError, PerfdiffError
from perfdiff.progress import Progress
from perfdiff.records.schema import Note
from perfdiff.revisions.bundles import Bundle

if TYPE_CHECKING:
    from distributed import Client, Future

LOST = "scheduler-lost"  # what errors say of a scheduler that is gone, and its workers with it
LOOK_S = 0.5  # between two looks whether workers that are waited for are still there

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class Post(Generic[T]):
    """A worker and its station, with the work that it does now and the rest that waits for it."""

    worker: Worker
    station: Future
    number: int
    name: str = ""  # of its machine
    machine: int = 0  # its place among the machines
    now: T | None = None
    rest: collections.deque[T] = field(default_factory=collections.deque)
    notes: tuple[Note, ...] = ()
    made: int = 0


@dataclass(slots=True)
class Posts(Generic[T]):
    """The posts that work (`here`), and the lost ones (`gone`), with the notes on these.

    `unit` and `again` are words: what a post makes several of, and what becomes of the one that it was making when it was lost. `leaves`
    hears of each post that goes, with all that it had to do.
    """

    client: Client
    progress: Progress
    unit: str
    again: str
    leaves: Callable[[Post[T]], None]
    left_out: list[Note] = field(default_factory=list)
    names: set[str] = field(default_factory=set)  # of machines that are known already
    here: list[Post[T]] = field(default_factory=list)
    gone: list[Post[T]] = field(default_factory=list)
    last: PerfdiffError | None = None
    _handing: Handing = field(default_factory=Handing)
    _under_way: dict[Future, Post[T]] = field(default_factory=dict)
    _fetching: dict[Future, Given] = field(default_factory=dict)  # builds on their way from one worker to another
    _handed: dict[Future, Given] = field(default_factory=dict)  # what is under way of those that were given one
    _answers: queue.SimpleQueue[Future] = field(default_factory=queue.SimpleQueue)
    _is_patient: bool = True  # nobody runs anything: a build is waited for until who has it is done with others

    def open(self, able: Sequence[Worker], bundle: Bundle, opening: Callable[[int], Opening]) -> Iterator[tuple[Post[T], Ready]]:
        """Have a station on each worker, opened with what the worker's number gives; yield those that are ready; raise where none is."""
        # By the addresses of workers, and not as a part of each question: it may be large, and goes to each machine once.
        try:
            sent = self.client.scatter(pickle.dumps(bundle), workers=[worker.address for worker in able], broadcast=True, hash=False)
        except OSError as error:
            raise _gone(error) from error
        self._look_at_builds(able)
        starting: dict[Future, Post[T]] = {}
        for number, worker in enumerate(able, 1):
            station = submitted(self.client, worker.address, "opened", opening(number), held=[sent])
            post: Post[T] = Post(worker, station, number)
            self.here.append(post)
            starting[submitted(self.client, worker.address, "first_answer", held=[station])] = post
        for post, answer in self._collected(starting):
            if isinstance(answer, Ready):
                post.name = self._name(answer.host, post.worker)
                yield post, answer
        self.require()

    def ask(self, post: Post[T], request: protocol.Request | protocol.Reply) -> Future:
        """Have a station carry out a request."""
        return submitted(self.client, post.worker.address, "asked", request, held=[post.station])

    def told(self, post: Post[T]) -> str:
        """Return the name of a post's machine, and which machines handed it their builds."""
        return f"{post.name or post.worker.name}{self._handing.told(post.worker.address)}"

    def ask_all(self, request: protocol.Request) -> Iterator[tuple[Post[T], Answer]]:
        """Send a request to all stations, and yield their answers as they come; stations that fail are left out."""
        yield from self._collected({self.ask(post, request): post for post in self.here})

    def answered(
        self, give: Callable[[Post[T]], protocol.Request | None], *, leaving_out: bool = True
    ) -> Iterator[tuple[Post[T], Answer | None]]:
        """Give each free post the request that `give` returns, and yield the posts with their answers, None for one that was lost.

        `give` sets what the post does now, which whoever takes the answer takes away. With `leaving_out` a post that fails is left out.
        """
        self._is_patient = False
        try:
            while True:
                for post in [post for post in self.here if post.now is None]:
                    if (request := give(post)) is not None:
                        self._watch(self.ask(post, request), post)
                if not self._fetching and not any(post in self.here for post in self._under_way.values()):
                    return
                if heard := self._heard(leaving_out=leaving_out):
                    yield heard
        except MeasurementError as error:
            if error.slug == LOST:
                self._lose_all()
            raise
        finally:
            self._is_patient = True
            for post in self._abandoned():
                post.now = None

    def require(self) -> None:
        """Raise what ended the last post where none is here."""
        if not self.here:
            raise self.last or MeasurementError("no worker of the cluster is left that can measure", slug="no-workers")

    def leave_out(self, post: Post[T], failure: Failure) -> None:
        """Use a post no more."""
        self.last = failure.error
        after = f"after {post.made} {self.unit}" if post.made else "from the start"
        self._remove(post, Note("worker-left-out", f"{post.worker} is left out {after}: {failure.text}"))

    def _collected(self, under_way: Mapping[Future, Post[T]]) -> Iterator[tuple[Post[T], Answer]]:
        try:
            for future, post in under_way.items():
                self._watch(future, post)
            while self._under_way or self._fetching:
                if (heard := self._heard()) and heard[1]:
                    yield heard[0], heard[1]
        finally:
            self._abandoned()

    def _watch(self, future: Future, post: Post[T]) -> None:
        self._under_way[future] = post
        future.add_done_callback(self._answers.put)

    def _abandoned(self) -> list[Post[T]]:
        """Let go of all that is under way; return whose it was."""
        posts = [*self._under_way.values(), *(post for given in self._fetching.values() if (post := self._post(given.who)))]
        for future in (*self._under_way, *self._fetching):
            future.cancel()
        for pending in (self._under_way, self._fetching, self._handed):
            pending.clear()
        self._answers = queue.SimpleQueue()
        return posts

    def _heard(self, *, leaving_out: bool = True) -> tuple[Post[T], Answer | None] | None:
        """Return the next answer; None where there is none for a while, or a build was handed on instead."""
        future = self._waited()
        if future in self._fetching:
            self._hand_on(future, self._fetching.pop(future))
        if future not in self._under_way:
            return None
        post = self._under_way.pop(future)
        answer = self._answer(post, future, leaving_out=leaving_out) if post in self.here else None
        self._take_handed(answer, self._handed.pop(future, None))
        if post not in self.here:
            return post, None
        if isinstance(answer, BuildReady):
            self._handing.built(post.worker.address, answer.key)
        self._give(self._handing.heard(post.worker.address, self._busy, is_patient=self._is_patient))
        match answer:
            case Seeking(key):
                self._give(self._handing.seek(post.worker.address, key, self._busy, is_patient=self._is_patient))
                return None
            case BuildReady():
                self._watch(self.ask(post, GoOn()), post)
                return None
        return post, answer

    def _take_handed(self, answer: Answer | Question | None, given: Given | None) -> None:
        """Take whether a build of another worker served the one that it was handed to."""
        if given is None or given.source is None or answer is None:
            return
        if isinstance(answer, BuildReady) and answer.key == given.key:
            self._handing.refused(given.who, given.key, given.source)
        elif not isinstance(answer, Failure):
            self._handing.took(given.who, given.key, given.source)

    def _hand_on(self, future: Future, given: Given) -> None:
        """Give a station the build that has come to its worker; where it did not come, see what else there is."""
        post = self._post(given.who)
        if post is None:
            return
        if future.status == "finished":
            handed = submitted(self.client, given.who, "handed", held=[post.station, future])
            self._handed[handed] = given
            self._watch(handed, post)
        elif given.source is not None:
            self._handing.refused(given.who, given.key, given.source)
            self._give(self._handing.seek(given.who, given.key, self._busy, is_patient=self._is_patient))

    def _give(self, all_given: Sequence[Given]) -> None:
        """Have builds packed where they are and brought to who gets them, and tell the others to build."""
        parcels: dict[tuple[str, str], Future] = {}
        for given in all_given:
            post = self._post(given.who)
            if post is None:
                continue
            if given.source is None:
                self._watch(self.ask(post, Handed(None)), post)
                continue
            if (given.source, given.key) not in parcels:
                parcels[given.source, given.key] = submitted(self.client, given.source, "packed", given.key)
            # It is brought by a task of its own: where its source is lost meanwhile, that can be given up, and the station not.
            future = submitted(self.client, given.who, "fetched", held=[parcels[given.source, given.key]])
            self._fetching[future] = given
            future.add_done_callback(self._answers.put)

    @property
    def _busy(self) -> frozenset[str]:
        return frozenset(post.worker.address for post in self._under_way.values())

    def _post(self, address: str) -> Post[T] | None:
        return next((post for post in self.here if post.worker.address == address), None)

    def _look_at_builds(self, able: Sequence[Worker]) -> None:
        """Ask workers what they have built, and what builds depend on there; nobody is asked where there is but one."""
        from perfdiff.cluster import hosting

        addresses = [worker.address for worker in able]
        answers = self.client.run(hosting.shelf, workers=addresses, on_error="return") if len(able) > 1 else {}
        # A scheduler passes on what it may have no name for, so shelves come as bytes; what else comes is an error.
        shelves = {
            address: pickle.loads(shelf) if isinstance(shelf := answers.get(address), bytes) else Shelf(None, frozenset())
            for address in addresses
        }
        self._handing = Handing({worker.address: worker.name for worker in able})
        self._handing.begin(shelves)

    def _waited(self) -> Future | None:
        """Return the next future that is done; None where none is for a while, or a worker was lost instead."""
        try:
            return self._answers.get(timeout=LOOK_S)
        except queue.Empty:
            pass
        there = self._alive()
        for future, post in list(self._under_way.items()):
            if post.worker.address not in there and not future.done():
                del self._under_way[future]
                self._lose(post, future)
        for address in {address for given in self._fetching.values() for address in (given.who, given.source)}:
            if address is not None and address not in there and (lost := self._post(address)):
                self._lose(lost)
        return None

    def _alive(self) -> frozenset[str]:
        """Return the addresses of the workers that are there; raise MeasurementError where the scheduler is not."""
        why: object = "the connection was lost"
        try:
            if self.client.status == "running":
                workers_alive: Mapping[str, object] = workers.alive(self.client)
                return frozenset(workers_alive)
        except (OSError, TimeoutError) as error:
            why = error
        raise _gone(why)

    def _answer(self, post: Post[T], future: Future, *, leaving_out: bool) -> Answer | Question | None:
        """Return what a station answered; None where it was lost, or failed and is left out from now on."""
        if future.status != "finished":
            there = self._alive()
            why = f"its task was {future.status}" if post.worker.address in there else "it is gone"
            self._lose(post, future, f"{why}: {future.exception()!r}" if future.status == "error" else why)
            return None
        answer: Answer | Question = future.result()
        if isinstance(answer, Failure) and answer.slug == "worker-lost":
            self._lose(post, future, answer.text)
            return None
        if isinstance(answer, Failure) and leaving_out:
            self.leave_out(post, answer)
            return None
        return answer

    def _lose(self, post: Post[T], future: Future | None = None, why: str = "it is gone") -> None:
        if future is not None:
            future.cancel()
        again = f"; {self.again}" if post.now is not None else ""
        text = f"{post.worker} was lost after {post.made} {self.unit} ({why}){again}"
        self.last = self.last or MeasurementError(
            f"{text}, but no other is left: look into the workers' logs, and ask again; builds are kept", slug="worker-lost"
        )
        self._remove(post, Note("worker-lost", text))

    def _remove(self, post: Post[T], note: Note) -> None:
        if post not in self.here:
            return  # it is gone already, and this an answer that nobody waits for
        self.left_out.append(note)
        self.progress.note(note.text)
        self.leaves(post)
        post.now = None
        post.rest.clear()
        self.here.remove(post)
        self.gone.append(post)
        post.station.cancel()
        self._stop_handing(post.worker.address)

    def _lose_all(self) -> None:
        """Let all posts go, which end with the scheduler; what they had to do is given back."""
        for post in self.here:
            self.leaves(post)
            post.now = None
            post.rest.clear()
        self.gone += self.here
        self.here.clear()

    def _stop_handing(self, address: str) -> None:
        """See what others get that wait for a worker's builds, now that it is gone."""
        stopped = {future: given for future, given in self._fetching.items() if address in (given.who, given.source)}
        for future in stopped:
            del self._fetching[future]
            future.cancel()
        self._give(self._handing.gone(address, self._busy, is_patient=self._is_patient))
        for given in stopped.values():
            self._give(self._handing.seek(given.who, given.key, self._busy, is_patient=self._is_patient))

    def _name(self, host: str, worker: Worker) -> str:
        """Return a name for the machine of a worker that no other one has: the same again where the worker was gone and is back."""
        for post in self.gone:
            if (post.worker.name, post.worker.host) == (worker.name, worker.host) and post.name:
                return post.name
        name = next(name for name in (host, f"{host} ({worker.name})", f"{host} ({worker.address})") if name not in self.names)
        self.names.add(name)
        return name


def _gone(why: object) -> MeasurementError:
    return MeasurementError(
        f"the scheduler of the cluster is gone ({why}); builds, and revisions of a history that were recorded, are kept: start it and its "
        "workers again, then ask again",
        slug="scheduler-lost",
    )
