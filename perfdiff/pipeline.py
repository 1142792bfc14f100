"""The whole method, from two revisions to findings.

revisions → plain builds → the same machine code? → changed functions → whole runs → counts of all functions →
where those leave a question: survey → counts of the chosen functions → runs with probes → where something is slower, or open:
counts of lines → models and comparison. What is measured stands in `measuring.stages`, what is concluded of it in `analysis.analysis`; the
cache of findings (`outcome`) and a cluster (`clustered`) are beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from perfdiff import latest, storage, units
from perfdiff.analysis.findings import Findings
from perfdiff.build.cache import BuildCache
from perfdiff.clustered import judges, makers
from perfdiff.collect.execution.executor import Executor, ProcessExecutor
from perfdiff.deadline import CutShortError, Ending
from perfdiff.errors import OutOfTimeError, RecordingError
from perfdiff.languages.packs import Packs
from perfdiff.latest import NamedFunction
from perfdiff.measuring.bench import Bench
from perfdiff.measuring.commands import CommandBench
from perfdiff.measuring.commands import measured as measured_commands
from perfdiff.measuring.stages import measure
from perfdiff.outcome import Outcome, analysed, judged
from perfdiff.progress import Progress, Silent, Stopwatch
from perfdiff.records import recorded, store
from perfdiff.records.recorded import RecordedExperiment
from perfdiff.records.schema import Side
from perfdiff.request import Request, experiment_key
from perfdiff.revisions.pins import left_out, resolve, resolve_one
from perfdiff.revisions.repository import find_repository


def compare(
    request: Request, progress: Progress, *, packs: Packs | None = None, executor: Executor | None = None, is_last: bool = True
) -> Outcome:
    """Compare two revisions and return the findings; raise PerfdiffError if that fails.

    It `is_last` where other commands are to take it for the last comparison.
    """
    cache = request.cache
    progress.stage("resolving revisions", None)
    repository = find_repository(request.repository)
    with storage.in_use(cache, progress):
        pins = resolve(repository, request.revisions, snapshots=cache / "snapshots", apart=request.config.own_files(request.repository))
        notes = (*pins.notes, *left_out(repository, pins, request.taken_from_checkout))
        comparison = storage.CachedComparison(experiment_key(request, pins), pins.base.revision, pins.head.revision, notes)
        tools = packs or request.packs, executor or ProcessExecutor(), Stopwatch(progress)
        try:
            with request.deadline.enforced():
                recording = measured(comparison, request, lambda builds, room: Bench(request, pins, builds, room, *tools), progress)
        except CutShortError as cut:
            if cut.ending is Ending.TIME:
                raise _nothing_known(request, tools[-1]) from cut
            raise
        engines = judges(request.config.cluster, recording, progress)
        if request.deadline.is_cut:  # it is not in the cache
            return analysed(recording, request.config.compare, progress, engines=engines)
        outcome = judged(recording, storage.experiment(cache, comparison), cache, request.config, progress, engines)
        if is_last:
            _remember(cache, repository.name, comparison, outcome, progress)
    storage.limit(cache, request.config.cache.max_gb * 1e9)
    return outcome


def compare_commands(request: Request, commands: Mapping[Side, str], progress: Progress, *, executor: Executor | None = None) -> Outcome:
    """Compare two commands in the folder of the request, by whole runs alone, and return the findings; raise PerfdiffError if that fails.

    The workload of the request says at which points, and is run by neither side's own words.
    """
    cache, watch = request.cache, Stopwatch(progress)
    with storage.in_use(cache, progress), storage.at_work(cache, progress, wait_s=request.config.measure.wait_s) as room:
        bench = CommandBench(request, commands, room, executor or ProcessExecutor(), watch)
        try:
            with request.deadline.enforced():
                recorded_runs = measured_commands(bench)
        except CutShortError as cut:
            if cut.ending is Ending.TIME:
                raise _nothing_known(request, watch) from cut
            raise
    return analysed(recorded_runs, request.config.compare, progress)


def _remember(cache: Path, name: str, comparison: storage.CachedComparison, outcome: Outcome, progress: Progress) -> None:
    try:
        storage.remember(cache, name, comparison)
        latest.keep(cache, name, _named(outcome.findings))
    except OSError as error:
        progress.note(f"`perfdiff explain` will not know of this comparison: {error}")


def _named(findings: Findings) -> tuple[NamedFunction, ...]:
    measured = (NamedFunction(finding.info.name, finding.info.file, finding.verdict.value) for finding in findings.functions)
    return (*measured, *(NamedFunction(skip.name, skip.file, None) for skip in findings.skipped))


def _nothing_known(request: Request, watch: Stopwatch) -> OutOfTimeError:
    """Return the error that the time was over before base and head had run."""
    time_s, stage = request.deadline.time_s or 0.0, watch.current or "waiting for another perfdiff"
    return OutOfTimeError(
        f"its time of {units.duration(time_s * 1e9)} was over in the stage '{stage}', before base and head had run, so that "
        "nothing is known; builds, which are kept, and the first runs cannot be made shorter: give more with --time",
        slug="out-of-time",
    )


def record(request: Request, progress: Progress, *, packs: Packs | None = None) -> RecordedExperiment:
    """Measure one revision (None: the working tree) and return its calls, all as base's.

    Every function that the workloads call is measured; raise PerfdiffError where that cannot be done.
    """
    cache = request.cache
    progress.stage("resolving revisions", None)
    repository, name = find_repository(request.repository), next(iter(request.revisions), None)
    with storage.in_use(cache, progress):
        pins = resolve_one(repository, name, snapshots=cache / "snapshots", apart=request.config.own_files(request.repository))
        comparison = storage.CachedComparison(
            experiment_key(request, pins, (Side.BASE,)), pins.base.revision, pins.head.revision, pins.notes
        )
        tools = packs or request.packs, ProcessExecutor(), Stopwatch(progress)
        return measured(comparison, request, lambda builds, room: Bench(request, pins, builds, room, *tools, (Side.BASE,)), progress)


def measured(
    comparison: storage.CachedComparison, request: Request, bench: Callable[[BuildCache, Path], Bench], progress: Progress
) -> RecordedExperiment:
    """Return the stored recording, or measure now with a bench that gets the cache of builds and a folder to work in."""
    cache, wait_s = request.cache, request.config.measure.wait_s
    folder = storage.experiment(cache, comparison)
    recording = _stored(folder, progress)
    if recording is None:
        with storage.at_work(cache, progress, wait_s=wait_s) as room, BuildCache(cache) as builds:
            recording = _stored(folder, Silent())  # whoever was waited for may have asked the same
            if recording is None:
                at_work = bench(builds, room)
                with makers(at_work) as pair_makers:
                    folder = measure(at_work, folder, pair_makers)
    recording = recording or recorded.load(folder)
    return replace(recording, experiment=comparison.names(recording.experiment))


def _stored(folder: Path, progress: Progress) -> RecordedExperiment | None:
    """Return the stored recording, or None if there is none or it is damaged."""
    if not store.exists(folder):
        return None
    try:
        store.verify(folder)
        recording = recorded.load(folder)
    except RecordingError as error:
        progress.note(f"{error}; measuring again")
        return None
    progress.note(f"measured already, at {recording.experiment.environment.created}")
    return recording
