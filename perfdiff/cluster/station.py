"""A station: a process beside a Dask worker that builds both revisions and makes pairs of runs there, as on one machine.

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
import time
from collections.abc import Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

from perfdiff import storage
from perfdiff.bench import Bench, Recipe
from perfdiff.build.cache import BuildCache
from perfdiff.cluster import protocol
from perfdiff.cluster.protocol import Answer, Commission, Failure, Finished, Fitted, Order, Ready
from perfdiff.collect.executor import ProcessExecutor
from perfdiff.errors import DiskFilledError, MeasurementError, PerfdiffError, StoreError
from perfdiff.making import OwnMachine
from perfdiff.progress import Silent, Stopwatch
from perfdiff.request import Request
from perfdiff.revisions.bundles import put, unbundled
from perfdiff.revisions.pins import PinnedPair

CLEARING_S = 30.0  # a station before this one that is told to end has so long to clear away what it started
_LOOK_S = 0.2
_TERMINATED = 143


@dataclass(slots=True)
class Station:
    """Answers requests over a cache folder of the worker's own; `environment` is the worker's."""

    environment: Mapping[str, str]
    cache: Path
    stack: ExitStack
    _maker: OwnMachine | None = field(default=None)

    def answer(self, request: protocol.Request) -> Answer:
        """Do what is asked and return what came of it."""
        try:
            match request:
                case Commission():
                    return self._begun(request)
                case Recipe():
                    return Fitted(self._opened.fitted(request).skipped)
                case Order():
                    maker = self._opened
                    return Finished(maker.make(request.pair, request.planned), maker.notes)
        except DiskFilledError as error:
            if self._maker:
                self._maker.bench.cache.discard()
            return Failure.of(error)
        except PerfdiffError as error:
            return Failure.of(error)

    @property
    def _opened(self) -> OwnMachine:
        if self._maker is None:
            raise MeasurementError("the station was not told what to measure", slug="worker-lost")
        return self._maker

    def _room(self) -> Path:
        """Return an empty folder to work in; raise StoreError where another comparison is at work for longer than it clears away."""
        deadline = time.monotonic() + CLEARING_S
        while True:
            try:
                return self.stack.enter_context(storage.at_work(self.cache, Silent(), waiting=False))
            except StoreError as error:
                if error.slug != "cache-busy" or time.monotonic() > deadline:
                    raise
            time.sleep(_LOOK_S)

    def _begun(self, commission: Commission) -> Ready:
        """Build both revisions; raise PerfdiffError where that cannot be done, or where functions are not those of the client."""
        enter = self.stack.enter_context
        enter(storage.in_use(self.cache))
        room = self._room()
        top = room / "checkout"
        repository = unbundled(commission.bundle, storage.repository(self.cache, commission.repository), top, commission.folder)
        (repository.git_dir / "index").unlink(missing_ok=True)
        repository.tell("read-tree", "--reset", "-u", commission.head.tree)
        put(commission.files, top)
        pins = PinnedPair(commission.base.pinned(repository), commission.head.pinned(repository))
        project = top / commission.folder
        project.mkdir(parents=True, exist_ok=True)
        revisions = (commission.base.revision.rev, commission.head.revision.rev)
        request = Request(project, revisions, commission.config, self.cache, self.environment, commission.followed)
        builds = enter(BuildCache(self.cache))
        bench = Bench(request, pins, builds, room, request.packs, ProcessExecutor(), Stopwatch(Silent()))
        enter(closing(bench.upkeep))
        site = bench.site(bench.plain())
        enter(closing(bench.services))
        if protocol.numbering(site.subjects) != commission.numbering:
            raise MeasurementError(
                "its builds have other functions than those of this machine, or have them elsewhere: other headers, or another "
                "configuration, were found there",
                slug="worker-left-out",
            )
        self._maker = OwnMachine(bench, site, bench.collector(site.targets))
        return Ready(socket.gethostname(), bench.environment(site))


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
        serve(Connection(descriptor), Station(environment, storage.folder(os.environ), stack))


if __name__ == "__main__":
    main()
