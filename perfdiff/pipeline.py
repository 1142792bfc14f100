"""The whole method, from two revisions to findings.

revisions → plain builds → the same machine code? → changed functions → whole runs → counts of all functions →
where those leave a question: survey → counts of the chosen functions → runs with probes → where something is slower, or open:
counts of lines → models and comparison. What is measured stands in `measuring.stages`, what is concluded of it in `analysis.analysis`; the
cache (`measured`, `outcome`) and a cluster (`clustered`) are beside it.
"""

from __future__ import annotations

from perfdiff import storage
from perfdiff.clustered import judges
from perfdiff.collect.execution.executor import Executor, ProcessExecutor
from perfdiff.languages.packs import Packs
from perfdiff.measured import measured
from perfdiff.measuring.bench import Bench
from perfdiff.outcome import Outcome, judged
from perfdiff.progress import Progress, Stopwatch
from perfdiff.records.recorded import Recorded
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
        found = measured(asked, request, lambda builds, room: Bench(request, pins, builds, room, *tools), progress)
        engines = judges(request.config.cluster, found, progress)
        outcome = judged(found, storage.experiment(cache, asked), cache, request.config, progress, engines)
        try:
            storage.remember(cache, repository.name, asked)
        except OSError as error:
            progress.note(f"`perfdiff explain` will not know of this comparison: {error}")
    return outcome


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
        return measured(asked, request, lambda builds, room: Bench(request, pins, builds, room, *tools, (Side.BASE,)), progress)
