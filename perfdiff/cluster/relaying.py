"""Revisions of one history, recorded by several workers at the same time: each a stretch of it, with the revision before.

Times of two machines cannot be compared, so a machine that begins a stretch first records the last revision of the stretch before: what
changed in a revision is told from two recordings of one machine. What a worker that is lost has not recorded is a stretch for another.
"""

from __future__ import annotations

import collections
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from perfdiff import storage
from perfdiff.cluster.checkouts import checkout
from perfdiff.cluster.deliveries import kept
from perfdiff.cluster.posts import Post, Posts
from perfdiff.cluster.protocol import Answer, Delivery, Failure, Record, Series
from perfdiff.cluster.workers import Worker
from perfdiff.errors import MeasurementError
from perfdiff.progress import Progress
from perfdiff.records import recorded
from perfdiff.records.recorded import RecordedExperiment
from perfdiff.records.relay import Relay
from perfdiff.records.schema import Machine
from perfdiff.request import Request
from perfdiff.revisions.bundles import Sent, bundled
from perfdiff.revisions.pins import Pin

MOST_ANCHORS = 3  # revisions before a stretch that are tried, where the last ones before it do not build
_OF_THE_WORKER = ("DiskFilledError", "StoreError")  # failures that are no revision's


@dataclass(slots=True)
class Relaying:
    """Recordings of the revisions `pins`, oldest first, at work."""

    posts: Posts[int]
    pins: Sequence[Pin]
    cache: Path
    progress: Progress
    _on: dict[int, str] = field(default_factory=dict)
    _made: dict[tuple[str, int], RecordedExperiment | str] = field(default_factory=dict)
    _waiting: collections.deque[list[int]] = field(default_factory=collections.deque)  # stretches that nobody has begun
    _doubts: dict[int, tuple[Post[int], Failure]] = field(default_factory=dict)  # revisions that failed, until another worker has tried
    _failure: MeasurementError | None = None

    def __post_init__(self) -> None:
        self.posts.leaves = self._give_back

    def record(self, able: Sequence[Worker], request: Request) -> Relay:
        """Record all revisions; raise what the last worker failed by, or the failure of a revision where that is all there is."""
        series = Series(checkout(request, self.pins[-1]), request.config)
        self.progress.stage("preparing workers", len(able))
        for post, _ in self.posts.open(able, bundled(self.pins), lambda _: series):
            self.progress.advance(post.name)
        self._waiting.extend(stretches(len(self.pins), len(self.posts.here)))
        self.progress.stage("recording revisions on workers", len(self.pins) + len(self._waiting) - 1)
        self.posts.here.sort(key=lambda post: post.number)  # the same worker takes the same stretch when asked again, and may have it still
        for post, answer in self.posts.answered(self._give, leaving_out=False):
            if answer is not None and post.now is not None:
                place, post.now = post.now, None
                self._take(post, place, answer)
        if len(self._on) < len(self.pins):
            self.posts.require()
        relay = Relay(tuple(self._on[place] for place in range(len(self.pins))), self._made, self._machines(), tuple(self.posts.left_out))
        if self._failure is not None and all(isinstance(relay.recorded(place), str) for place in range(len(self.pins))):
            raise self._failure
        return relay

    def _give(self, post: Post[int]) -> Record | None:
        """Return what a free worker records next: what another one failed at, the revision before its stretch, or the next of that."""
        post.now = self._next(post)
        return None if post.now is None else Record((Sent.of(self.pins[post.now]),))

    def _next(self, post: Post[int]) -> int | None:
        for place, (other, _) in self._doubts.items():
            if post in self._witnesses(place, other) and not any(peer.now == place for peer in self.posts.here):
                return place
        if (own := next((place for place, (other, _) in self._doubts.items() if other is post), None)) is not None:
            if self._witnesses(own, post):
                return None
            self._settle_failed(post, own, self._doubts.pop(own)[1])
        if not post.rest and self._waiting:
            post.rest.extend(self._waiting.popleft())
        if not post.rest:
            return None
        anchor = self._anchor(post.name, post.rest[0])
        return post.rest[0] if anchor is None else anchor

    def _witnesses(self, place: int, other: Post[int]) -> list[Post[int]]:
        """Return who can try a revision that another worker failed at, and has not yet."""
        return [post for post in self.posts.here if post is not other and (post.name, place) not in self._made]

    def _anchor(self, machine: str, place: int) -> int | None:
        """Return an earlier revision that a machine is to record first: the last one that it can; None where that is done."""
        for before in reversed(range(max(0, place - MOST_ANCHORS), place)):
            outcome = self._made.get((machine, before))
            if outcome is None:
                return before
            if isinstance(outcome, RecordedExperiment):
                return None
        return None

    def _take(self, post: Post[int], place: int, answer: Answer) -> None:
        match answer:
            case Failure():
                self._take_failure(post, place, answer)
            case Delivery():
                self._take_recording(post, place, answer)
            case _:
                raise MeasurementError(f"{post.worker} answered out of turn", slug="worker-lost")

    def _take_recording(self, post: Post[int], place: int, answer: Delivery) -> None:
        post.made += 1
        self._made[post.name, place] = _loaded(answer, post.name, self.pins[place], self.cache)
        if place in self._doubts:
            self.posts.leave_out(*self._doubts.pop(place))
        elif post.rest and post.rest[0] == place:
            self._settle(post, place)
        self.progress.advance(f"{self.pins[place].revision.rev} on {self.posts.told(post)}")

    def _take_failure(self, post: Post[int], place: int, failure: Failure) -> None:
        """Take a failure as the revision's where another worker fails at it, too, or there is no other; else as the worker's.

        One that has recorded nothing yet may fail at everything, and is believed only where there is no further one.
        """
        if failure.kind in _OF_THE_WORKER or not isinstance(failure.error, MeasurementError):
            self.posts.leave_out(post, failure)
            return
        self._made[post.name, place] = f"{failure.error} [{failure.slug}]"
        if place in self._doubts:
            other, first = self._doubts[place]
            if post.made or not self._witnesses(place, other):
                del self._doubts[place]
                self._settle_failed(other, place, first)
            return
        if not (post.rest and post.rest[0] == place):
            return  # a revision before the stretch: whose fault it is, the stretch that it belongs to will tell
        others = [other for other in self.posts.here if other is not post]
        if any(isinstance(self._made.get((other.name, place)), RecordedExperiment) for other in others):
            self.posts.leave_out(post, failure)
        elif not self._witnesses(place, post) or any(other.made and (other.name, place) in self._made for other in others):
            self._settle_failed(post, place, failure)
        else:
            self._doubts[place] = post, failure

    def _settle_failed(self, post: Post[int], place: int, failure: Failure) -> None:
        if isinstance(failure.error, MeasurementError):
            self._failure = failure.error
        self._settle(post, place)
        self.progress.advance(f"{self.pins[place].revision.rev}: {failure.text}")

    def _settle(self, post: Post[int], place: int) -> None:
        self._on[place] = post.name
        post.rest.popleft()

    def _give_back(self, post: Post[int]) -> None:
        """Leave the stretch of a worker that is gone to others; what it doubted in is no more in doubt."""
        self._doubts = {place: doubt for place, doubt in self._doubts.items() if doubt[0] is not post}
        if post.rest:
            self._waiting.append(list(post.rest))

    def _machines(self) -> tuple[Machine, ...]:
        """Return the machines that recorded something, with what each is, in the order of their stretches."""
        machines: dict[str, Machine] = {}
        for (name, _), outcome in sorted(self._made.items(), key=lambda item: item[0][1]):
            if isinstance(outcome, RecordedExperiment) and name in self._on.values():
                machines.setdefault(name, Machine(name, outcome.experiment.environment))
        return tuple(machines.values())


def stretches(revisions: int, workers: int) -> list[list[int]]:
    """Return the revisions of each worker, evenly shared; each stretch but the first begins with the last revision of the one before."""
    count = min(range(1, workers + 1), key=lambda parts: (-(-(revisions + parts - 1) // parts), parts))
    work = revisions + count - 1
    ends = [-(-work * part // count) - part + 1 for part in range(1, count + 1)]
    return [list(range(begin, end)) for begin, end in zip([0, *ends], ends, strict=False)]


def _loaded(delivery: Delivery, machine: str, pin: Pin, cache: Path) -> RecordedExperiment:
    """Keep what a machine recorded of a revision in the cache, and return it; raise RecordingError where it is damaged."""
    key = hashlib.blake2b(f"{delivery.key} {machine}".encode(), digest_size=16).hexdigest()
    folder = storage.experiment(cache, storage.CachedComparison(key, pin.revision, pin.revision, ()))
    kept(delivery, folder, machine)
    delivered = recorded.load(folder)
    return replace(delivered, experiment=replace(delivered.experiment, base=pin.revision, head=pin.revision))  # by the names asked for now
