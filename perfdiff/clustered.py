"""What of the method a cluster takes over, where one is configured; what is its own is loaded only then."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial

from perfdiff import storage
from perfdiff.config import ClusterConfig
from perfdiff.engines.cluster import WORTH_SENDING
from perfdiff.engines.engine import Engines
from perfdiff.measuring.bench import Bench
from perfdiff.measuring.making import Makers, OwnMachine
from perfdiff.progress import Progress
from perfdiff.records import store
from perfdiff.records.recorded import RecordedExperiment
from perfdiff.records.relay import Relay
from perfdiff.request import Request, experiment_key
from perfdiff.revisions.pins import resolve, resolve_one
from perfdiff.revisions.repository import find_repository


@contextmanager
def makers(bench: Bench) -> Iterator[Makers]:
    """Return a factory of the pair makers of a comparison: a cluster's workers if one is configured, else this machine."""
    address = bench.request.config.cluster.address
    if address is None or len(bench.sides) == 1:
        yield OwnMachine
        return
    from perfdiff.cluster.crew import cluster

    with cluster(address, bench.progress) as workers:
        yield workers.crew


def judges(config: ClusterConfig, recorded: RecordedExperiment, progress: Progress) -> Engines:
    """Return the engines that analyse the recordings: a cluster's workers if there is one and much to do, else this machine."""
    if config.address is None or len(recorded.experiment.functions) < WORTH_SENDING:
        return nullcontext
    from perfdiff.cluster.crew import engine

    return partial(engine, config.address, progress)


def relay(request: Request, address: str, names: Sequence[str | None], progress: Progress) -> Relay:
    """Record revisions of one history, oldest first, on the workers of a cluster, several at the same time; None is the working tree.

    As `pipeline.record` does each; one that cannot be built or run has the reason. Raise PerfdiffError where that is so of all of them.
    """
    cache = request.cache
    from perfdiff.cluster.crew import cluster

    repository, apart = find_repository(request.repository), request.config.own_files(request.repository)
    with storage.in_use(cache, progress), cluster(address, progress) as workers:
        pairs = [resolve_one(repository, name, snapshots=cache / "snapshots", apart=apart) for name in names]
        recordings = workers.relay(request, [pair.base for pair in pairs], progress)
    return replace(recordings, notes=(*dict.fromkeys(note for pair in pairs for note in pair.notes), *recordings.notes))


def compare_ahead(address: str, wanted: Callable[[int], Sequence[Request]], progress: Progress) -> None:
    """Make several comparisons at the same time on a cluster, each on one worker, so that `pipeline.compare` finds them in the cache.

    `wanted` returns as many as there are workers, alike but for the revisions. One that fails, or is the only one, is left to that.
    """
    from perfdiff.cluster.crew import cluster

    with cluster(address, progress) as workers:
        requests = wanted(len(workers.able))
        if len(requests) < 2:
            return
        cache, repository = requests[0].cache, find_repository(requests[0].repository)
        with storage.in_use(cache, progress):
            missing = []
            for request in requests:
                pins = resolve(repository, request.revisions, snapshots=cache / "snapshots")
                comparison = storage.CachedComparison(experiment_key(request, pins), pins.base.revision, pins.head.revision, ())
                folder = storage.experiment(cache, comparison)
                missing += [(pins, folder)] * (not store.exists(folder))
            if len(missing) > 1:
                workers.compare_apart(requests[0], [pins for pins, _ in missing], [folder for _, folder in missing], progress)
