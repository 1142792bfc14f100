"""The whole method, from two revisions to findings.

revisions → plain builds → the same machine code? → changed functions → whole runs → counts of all functions →
where those leave a question: survey → counts of the chosen functions → runs with probes → where something is slower, or open:
counts of lines → models and comparison
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path

from perfdiff import storage
from perfdiff.build.cache import BuildCache
from perfdiff.collect.execution.executor import Executor, ProcessExecutor
from perfdiff.config import ClusterConfig
from perfdiff.engines.cluster import WORTH_SENDING
from perfdiff.errors import RecordingError
from perfdiff.languages.packs import Packs
from perfdiff.measuring.bench import Bench
from perfdiff.measuring.making import Makers, OwnMachine
from perfdiff.measuring.stages import measure
from perfdiff.outcome import Engines, Outcome, judged, named
from perfdiff.progress import Progress, Silent, Stopwatch
from perfdiff.records import recorded, store
from perfdiff.records.recorded import Recorded
from perfdiff.records.relay import Relay
from perfdiff.records.schema import Side
from perfdiff.request import Request, experiment_key
from perfdiff.revisions.pins import left_out, resolve, resolve_one
from perfdiff.revisions.repository import find_repository


def compare(request: Request, progress: Progress, *, packs: Packs | None = None, executor: Executor | None = None) -> Outcome:
    """Compare two revisions and return the findings; raise PerfdiffError if that fails."""
    cache = request.cache
    progress.stage("resolving revisions", None)
    repository = find_repository(request.repository)
    with storage.in_use(cache, progress):
        pins = resolve(repository, request.revisions, snapshots=cache / "snapshots", apart=request.config.own_files(request.repository))
        notes = (*pins.notes, *left_out(repository, pins, request.taken_from_checkout))
        asked = storage.Asked(experiment_key(request, pins), pins.base.revision, pins.head.revision, notes)
        tools = packs or request.packs, executor or ProcessExecutor(), Stopwatch(progress)
        found = _recorded(asked, request, lambda builds, room: Bench(request, pins, builds, room, *tools), progress)
        engines = judges(request.config.cluster, found, progress)
        outcome = judged(found, storage.experiment(cache, asked), cache, request.config.compare, progress, engines)
        try:
            storage.remember(cache, repository.name, asked)
        except OSError as error:
            progress.note(f"`perfdiff explain` will not know of this comparison: {error}")
    return outcome


def judges(config: ClusterConfig, found: Recorded, progress: Progress) -> Engines:
    """Return the engines that analyse the recordings: a cluster's workers if there is one and much to do, else this machine."""
    if config.address is None or len(found.experiment.functions) < WORTH_SENDING:
        return nullcontext
    from perfdiff.cluster.crew import engine

    return partial(engine, config.address, progress)


def record(request: Request, progress: Progress, *, packs: Packs | None = None, executor: Executor | None = None) -> Recorded:
    """Measure one revision (None: the working tree) and return its calls, all as base's.

    Every function that the workloads call is measured; raise PerfdiffError where that cannot be done.
    """
    cache = request.cache
    progress.stage("resolving revisions", None)
    repository, name = find_repository(request.repository), next(iter(request.revisions), None)
    with storage.in_use(cache, progress):
        pins = resolve_one(repository, name, snapshots=cache / "snapshots", apart=request.config.own_files(request.repository))
        asked = storage.Asked(experiment_key(request, pins, (Side.BASE,)), pins.base.revision, pins.head.revision, pins.notes)
        tools = packs or request.packs, executor or ProcessExecutor(), Stopwatch(progress)
        return _recorded(asked, request, lambda builds, room: Bench(request, pins, builds, room, *tools, (Side.BASE,)), progress)


def relay(request: Request, address: str, names: Sequence[str | None], progress: Progress) -> Relay:
    """Record revisions of one history, oldest first, on the workers of a cluster, several at the same time; None is the working tree.

    As `record` does each; one that cannot be built or run has the reason. Raise PerfdiffError where that is so of all of them.
    """
    cache = request.cache
    from perfdiff.cluster.crew import cluster

    repository, apart = find_repository(request.repository), request.config.own_files(request.repository)
    with storage.in_use(cache, progress), cluster(address, progress) as found:
        pairs = [resolve_one(repository, name, snapshots=cache / "snapshots", apart=apart) for name in names]
        made = found.relay(request, [pair.base for pair in pairs], progress)
    return replace(made, notes=(*dict.fromkeys(note for pair in pairs for note in pair.notes), *made.notes))


def compare_ahead(address: str, wanted: Callable[[int], Sequence[Request]], progress: Progress) -> None:
    """Make several comparisons at the same time on a cluster, each on one worker, so that `compare` finds them in the cache.

    `wanted` returns as many as there are workers, alike but for the revisions. One that fails, or is the only one, is left to `compare`.
    """
    from perfdiff.cluster.crew import cluster

    with cluster(address, progress) as found:
        requests = wanted(len(found.able))
        if len(requests) < 2:
            return
        cache, repository = requests[0].cache, find_repository(requests[0].repository)
        with storage.in_use(cache, progress):
            missing = []
            for request in requests:
                pins = resolve(repository, request.revisions, snapshots=cache / "snapshots")
                asked = storage.Asked(experiment_key(request, pins), pins.base.revision, pins.head.revision, ())
                folder = storage.experiment(cache, asked)
                missing += [(pins, folder)] * (not store.exists(folder))
            if len(missing) > 1:
                found.compare_apart(requests[0], [pins for pins, _ in missing], [folder for _, folder in missing], progress)


@contextmanager
def _makers(bench: Bench) -> Iterator[Makers]:
    """Return a factory of the pair makers of a comparison: a cluster's workers if one is configured, else this machine."""
    address = bench.request.config.cluster.address
    if address is None or len(bench.sides) == 1:
        yield OwnMachine
        return
    from perfdiff.cluster.crew import cluster

    with cluster(address, bench.progress) as found:
        yield found.crew


def _recorded(asked: storage.Asked, request: Request, bench: Callable[[BuildCache, Path], Bench], progress: Progress) -> Recorded:
    """Return the stored recording, or measure now with a bench that gets the cache of builds and a folder to work in."""
    cache, wait_s = request.cache, request.config.measure.wait_s
    folder = storage.experiment(cache, asked)
    found = _kept(folder, progress)
    if found is None:
        with storage.at_work(cache, progress, wait_s=wait_s) as room, BuildCache(cache) as builds:
            found = _kept(folder, Silent())  # whoever was waited for may have asked the same
            if found is None:
                at_work = bench(builds, room)
                with _makers(at_work) as makers:
                    measure(at_work, folder, makers)
    return named(found or recorded.load(folder), asked)


def _kept(folder: Path, progress: Progress) -> Recorded | None:
    """Return the stored recording, or None if there is none or it is damaged."""
    if not store.exists(folder):
        return None
    try:
        store.verify(folder)
        found = recorded.load(folder)
    except RecordingError as error:
        progress.note(f"{error}; measuring again")
        return None
    progress.note(f"measured already, at {found.experiment.environment.created}")
    return found
