"""A station: a process beside a Dask worker that makes pairs of runs of two revisions there, or records one revision after the other.

It is a process of its own, so that the worker's threads, and what else the worker does, are not in its way; it ends, with all that it
started, when the worker does or lets go of it.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

from perfdiff import storage, temporary
from perfdiff.build import holdings, parcels
from perfdiff.build.cache import BuildCache, remove_folder
from perfdiff.cluster import protocol
from perfdiff.cluster.deliveries import delivered
from perfdiff.cluster.protocol import (
    Answer,
    BuildReady,
    Checkout,
    Commission,
    Delivery,
    Failure,
    Finished,
    Fitted,
    Handed,
    Order,
    Question,
    Ready,
    Record,
    Reply,
    Seeking,
    Series,
)
from perfdiff.collect.execution.executor import ProcessExecutor
from perfdiff.collect.hosts import machine
from perfdiff.collect.runs.suites import Suites
from perfdiff.errors import DiskFilledError, MeasurementError, PerfdiffError, RecordingError
from perfdiff.measuring.bench import Bench
from perfdiff.measuring.changes import site_of
from perfdiff.measuring.making import OwnMachine
from perfdiff.measuring.site import Recipe
from perfdiff.measuring.stages import measure
from perfdiff.progress import Silent, Stopwatch
from perfdiff.records import store
from perfdiff.records.schema import Phase, Side
from perfdiff.request import Request, experiment_key
from perfdiff.revisions.bundles import Sent, put, unbundled
from perfdiff.revisions.pins import PinnedPair
from perfdiff.revisions.repository import Repository

CLEARING_S = 30.0  # a station before this one that is told to end has so long to clear away what it started
_LOOK_S = 0.2
_TERMINATED = 143


@dataclass(slots=True)
class Station:
    """Answers requests over a cache folder of the worker's own; `environment` is the worker's."""

    environment: Mapping[str, str]
    cache: Path
    stack: ExitStack
    exchange: Callable[[Question], Reply]
    _maker: OwnMachine | None = None
    _recorder: _RevisionRecorder | None = None

    def answer(self, request: protocol.Request) -> Answer:
        """Carry out a request, and return its answer."""
        try:
            return self._answer(request)
        except DiskFilledError as error:
            if self._maker:
                self._maker.bench.cache.discard()
            return Failure.of(error)
        except PerfdiffError as error:
            return Failure.of(error)

    def _answer(self, request: protocol.Request) -> Answer:
        match request:
            case Commission():
                return self._begun(request)
            case Recipe():
                return Fitted(self._opened.fitted(request).skipped)
            case Order():
                maker = self._opened
                return Finished(maker.make(request.pair, request.planned), maker.notes)
            case Series():
                return self._prepared(request)
            case Record():
                return self._series.recorded(request.revisions)

    @property
    def _series(self) -> _RevisionRecorder:
        if self._recorder is None:
            raise MeasurementError("the station was not told what to measure", slug="worker-lost")
        return self._recorder

    @property
    def _opened(self) -> OwnMachine:
        if self._maker is None:
            raise MeasurementError("the station was not told what to measure", slug="worker-lost")
        return self._maker

    def _room(self) -> Path:
        """Return an empty folder to work in; raise StoreError where another comparison is at work for longer than it clears away."""
        return self.stack.enter_context(storage.at_work(self.cache, Silent(), wait_s=CLEARING_S))

    def _laid_out(self, checkout: Checkout) -> tuple[Repository, Path, Path]:
        """Put a checkout into an empty folder; return its repository, the project in it, and the folder."""
        self.stack.enter_context(storage.in_use(self.cache, Silent()))
        room = self._room()
        top = room / "checkout"
        repository = unbundled(checkout.bundle, storage.repository(self.cache, checkout.repository), top, checkout.folder)
        (repository.git_dir / "index").unlink(missing_ok=True)
        repository.tell("read-tree", "--reset", "-u", checkout.tree)
        put(checkout.files, top)
        project = top / checkout.folder
        project.mkdir(parents=True, exist_ok=True)
        return repository, project, room

    def _begun(self, commission: Commission) -> Ready:
        """Build both revisions; raise PerfdiffError where that cannot be done, or where functions are not those of the client."""
        enter = self.stack.enter_context
        repository, project, room = self._laid_out(commission.checkout)
        pins = PinnedPair(commission.base.pinned(repository), commission.head.pinned(repository))
        revisions = (commission.base.revision.rev, commission.head.revision.rev)
        request = Request(project, revisions, commission.config, self.cache, self.environment, commission.followed)
        builds = enter(BuildCache(self.cache, _Neighbours(self.exchange)))
        bench = Bench(request, pins, builds, room, request.packs, ProcessExecutor(), Stopwatch(Silent()))
        enter(closing(bench.upkeep))
        site = site_of(bench, bench.workshop.plain())
        enter(closing(bench.services))
        if protocol.numbering(site.subjects) != commission.numbering:
            raise MeasurementError(
                "its builds have other functions than those of this machine, or have them elsewhere: other headers, or another "
                "configuration, were found there",
                slug="worker-left-out",
            )
        plain = {side: site.targets[Phase.PLAIN, side] for side in bench.sides}
        Suites(plain, request.inherited, room, bench.upkeep).provide(request.config.listed, bench.executor)
        self._maker = OwnMachine(bench, site, bench.collector(site.targets))
        return Ready(socket.gethostname(), site.environment(bench.request.environment))

    def _prepared(self, series: Series) -> Ready:
        """Get ready to record revisions; nothing is built yet."""
        repository, project, room = self._laid_out(series.checkout)
        builds = self.stack.enter_context(BuildCache(self.cache, _Neighbours(self.exchange)))
        self._recorder = _RevisionRecorder(
            Request(project, (), series.config, self.cache, self.environment, series.followed), repository, builds, room
        )
        return Ready(socket.gethostname(), machine.environment(self.environment))


@dataclass(frozen=True, slots=True)
class _Neighbours:
    """The other workers, as the client knows of them; see `cache.Neighbours`."""

    exchange: Callable[[Question], Reply]

    def obtain(self, key: str, folder: Path, make: Callable[[Path], None]) -> None:
        """Fill a folder with what another worker has built, or by `make`, which is told then."""
        reply = self.exchange(Seeking(key))
        if isinstance(reply, Handed) and reply.parcel is not None:
            if parcels.unpacked(reply.parcel, folder):
                return
            remove_folder(folder)
            folder.mkdir()
        make(folder)
        self.exchange(BuildReady(key))


@dataclass(slots=True)
class _RevisionRecorder:
    """Records revisions on this machine, as `perfdiff log` does on the user's; what was recorded before is not run again."""

    request: Request
    repository: Repository
    builds: BuildCache
    room: Path
    _asked: int = 0

    def recorded(self, revisions: tuple[Sent, ...]) -> Delivery:
        """Record a revision with all functions that its workloads call, or compare two; raise PerfdiffError."""
        pins = [sent.pinned(self.repository) for sent in revisions]
        pair, sides = PinnedPair(pins[0], pins[-1]), tuple(Side)[: len(pins)]
        request = replace(self.request, revisions=tuple(pin.revision.rev for pin in pins))
        asked = storage.CachedComparison(experiment_key(request, pair, sides), pair.base.revision, pair.head.revision, ())
        folder = storage.experiment(request.cache, asked)
        if not self._is_kept(folder):
            self._asked += 1
            room = self.room / f"revision-{self._asked}"
            room.mkdir()
            measure(Bench(request, pair, self.builds, room, request.packs, ProcessExecutor(), Stopwatch(Silent()), sides), folder)
            temporary.clear(room)
        return delivered(asked.key, folder)

    def _is_kept(self, folder: Path) -> bool:
        try:
            if store.exists(folder):
                store.verify(folder)
                return True
        except RecordingError:
            pass  # it is measured again
        return False


def exchanged(connection: Connection, question: Question) -> Reply:
    """Return the reply to a question; end this process where the other side is gone."""
    try:
        connection.send(question)
        reply: Reply = connection.recv()
    except (EOFError, OSError):
        sys.exit(_TERMINATED)
    return reply


def serve(connection: Connection, station: Station) -> None:
    """Answer until the other side is gone."""
    while True:
        try:
            request = connection.recv()
        except (EOFError, OSError):
            return
        answer = station.answer(request)
        try:
            connection.send(answer)
        except OSError:
            return


def _leave(_number: int, _frame: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(_TERMINATED)


def _end_with(descriptor: int) -> None:
    """End this process, in the middle of a run or a build if need be, as soon as the other side is gone."""
    poll = select.poll()
    poll.register(descriptor, select.POLLRDHUP)
    poll.poll()
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> None:
    """Serve the connection of a descriptor; variables that are as Dask's nanny sets them are no part of the worker's environment."""
    descriptor, nannys = int(sys.argv[1]), json.loads(sys.argv[2])
    os.set_inheritable(descriptor, False)
    environment = {name: value for name, value in os.environ.items() if nannys.get(name) != value and not name.startswith("DASK_")}
    signal.signal(signal.SIGTERM, _leave)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(descriptor,), daemon=True).start()
    with ExitStack() as stack, contextlib.suppress(KeyboardInterrupt):
        connection = Connection(descriptor)
        try:
            serve(connection, Station(environment, holdings.folder(os.environ), stack, partial(exchanged, connection)))
        finally:
            # Clearing away, which begins now, is not left in the middle: trees would stay marked as in use.
            signal.signal(signal.SIGTERM, signal.SIG_IGN)


if __name__ == "__main__":
    main()
