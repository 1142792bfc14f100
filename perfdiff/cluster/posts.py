"""Workers of a cluster at work, each with a station beside it: who is there, what each does, who was lost or left out."""

from __future__ import annotations

import collections
import pickle
import queue
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from perfdiff.cluster import protocol, workers
from perfdiff.cluster.protocol import Answer, Failure, Opening, Ready
from perfdiff.cluster.tasks import submitted
from perfdiff.cluster.workers import Worker
from perfdiff.errors import MeasurementError, PerfdiffError
from perfdiff.progress import Progress
from perfdiff.records.schema import Note
from perfdiff.revisions.bundles import Bundle

if TYPE_CHECKING:
    from distributed import Client, Future

LOOK_S = 0.5  # between two looks whether workers that are waited for are still there

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class Post(Generic[T]):
    """A worker with its station there, what it does just now, and what is to be done there after that."""

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
    """The posts that are `here`, and those that are `gone`, with what is said of these.

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

    def open(self, able: Sequence[Worker], bundle: Bundle, opening: Callable[[int], Opening]) -> Iterator[tuple[Post[T], Ready]]:
        """Have a station on each worker, opened with what the worker's number gives; yield those that are ready; raise where none is."""
        # By the addresses of workers, and not as a part of each question: it may be large, and goes to each machine once.
        try:
            sent = self.client.scatter(pickle.dumps(bundle), workers=[each.address for each in able], broadcast=True, hash=False)
        except OSError as error:
            raise _gone(error) from error
        starting: dict[Future, Post[T]] = {}
        for number, worker in enumerate(able, 1):
            station = submitted(self.client, worker.address, "opened", opening(number), held=sent)
            post: Post[T] = Post(worker, station, number)
            self.here.append(post)
            starting[submitted(self.client, worker.address, "first_answer", held=station)] = post
        for post, answer in self._collected(starting):
            if isinstance(answer, Ready):
                post.name = self._name(answer.host, post.worker)
                yield post, answer
        self.require()

    def ask(self, post: Post[T], request: protocol.Request) -> Future:
        """Have a station carry out a request."""
        return submitted(self.client, post.worker.address, "asked", request, held=post.station)

    def ask_all(self, request: protocol.Request) -> Iterator[tuple[Post[T], Answer]]:
        """Yield what each station answers, in the order in which they do; those that fail are left out."""
        yield from self._collected({self.ask(post, request): post for post in self.here})

    def answered(
        self, give: Callable[[Post[T]], protocol.Request | None], *, leaving_out: bool = True
    ) -> Iterator[tuple[Post[T], Answer | None]]:
        """Give each post that is free something to do, as long as there is any, and yield it with its answer; None where it is gone.

        `give` sets what the post does now, which whoever takes the answer takes away. With `leaving_out` a post that fails is left out.
        """
        under_way: dict[Future, Post[T]] = {}
        answers: queue.SimpleQueue[Future] = queue.SimpleQueue()
        try:
            while True:
                for post in [post for post in self.here if post.now is None]:
                    if (request := give(post)) is not None:
                        future = self.ask(post, request)
                        under_way[future] = post
                        future.add_done_callback(answers.put)
                if not any(post in self.here for post in under_way.values()):
                    return
                future = self._waited(answers, under_way)
                if future in under_way:
                    post = under_way.pop(future)
                    if post in self.here:
                        yield post, self._answer(post, future, leaving_out=leaving_out)
        finally:
            for future, post in under_way.items():
                future.cancel()
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

    def _collected(self, under_way: dict[Future, Post[T]]) -> Iterator[tuple[Post[T], Answer]]:
        answers: queue.SimpleQueue[Future] = queue.SimpleQueue()
        for future in under_way:
            future.add_done_callback(answers.put)
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

    def _waited(self, answers: queue.SimpleQueue[Future], under_way: dict[Future, Post[T]]) -> Future | None:
        """Return the next future that is done; None where none is for a while, or a worker was lost instead."""
        try:
            return answers.get(timeout=LOOK_S)
        except queue.Empty:
            pass
        there = self._alive()
        for future, post in list(under_way.items()):
            if post.worker.address not in there and not future.done():
                del under_way[future]
                self._lose(post, future)
        return None

    def _alive(self) -> frozenset[str]:
        """Return the addresses of the workers that are there; raise MeasurementError where the scheduler is not."""
        why: object = "the connection was lost"
        try:
            if self.client.status == "running":
                known: Mapping[str, object] = workers.alive(self.client)
                return frozenset(known)
        except (OSError, TimeoutError) as error:
            why = error
        raise _gone(why)

    def _answer(self, post: Post[T], future: Future, *, leaving_out: bool = True) -> Answer | None:
        """Return what a station answered; None where it was lost, or failed and is left out from now on."""
        if future.status != "finished":
            there = self._alive()
            why = f"its task was {future.status}" if post.worker.address in there else "it is gone"
            self._lose(post, future, f"{why}: {future.exception()!r}" if future.status == "error" else why)
            return None
        answer: Answer = future.result()
        if isinstance(answer, Failure) and answer.slug == "worker-lost":
            self._lose(post, future, answer.text)
            return None
        if isinstance(answer, Failure) and leaving_out:
            self.leave_out(post, answer)
            return None
        return answer

    def _lose(self, post: Post[T], future: Future, why: str = "it is gone") -> None:
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

    def _name(self, host: str, worker: Worker) -> str:
        """Return a name for the machine of a worker that no other one has."""
        name = next(name for name in (host, f"{host} ({worker.name})", f"{host} ({worker.address})") if name not in self.names)
        self.names.add(name)
        return name


def _gone(why: object) -> MeasurementError:
    return MeasurementError(
        f"the scheduler of the cluster is gone ({why}); what was measured is lost, but builds are kept: ask again when it is back",
        slug="scheduler-lost",
    )
