"""The search for inputs on which head does more than base, from revisions to findings.

plain builds → builds with counters in every line → inputs, tried on both → the worst in several sizes: growth by counts → whole runs of them
"""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from perfdiff import pipeline, storage
from perfdiff.analysis.findings import EndToEnd, PointStanding, Verdict
from perfdiff.analysis.trends.findings import TrendFindings
from perfdiff.analysis.trends.trending import analyse
from perfdiff.build.cache import BuildCache
from perfdiff.collect.built.workshop import Workshop
from perfdiff.collect.execution.executor import ProcessExecutor
from perfdiff.collect.runs.collector import Collector
from perfdiff.collect.runs.suites import Suites
from perfdiff.collect.trees.upkeep import Upkeep
from perfdiff.config import INPUT, WorkloadConfig
from perfdiff.errors import UsageError, WorkloadError, store_errors
from perfdiff.fuzzing import proposals
from perfdiff.fuzzing.families import Family, plain
from perfdiff.fuzzing.findings import Mishap, SearchFindings, SlowInput
from perfdiff.fuzzing.search import Limits, Search
from perfdiff.fuzzing.trials import Entry
from perfdiff.measuring.inputruns import InputRuns, Sized
from perfdiff.models import trendlines
from perfdiff.models.trend import Law
from perfdiff.progress import Progress, Within
from perfdiff.records.places import PlaceExperiment
from perfdiff.records.schema import Note, Phase, Side
from perfdiff.request import Request
from perfdiff.revisions.pins import PinnedPair, resolve, resolve_one
from perfdiff.revisions.repository import find_repository

_SIZES = 8  # of an input that is shown, for its growth
_SPAN = 64  # times, from the smallest to the largest of them
_TIMED_SIZES = 3  # of which whole runs are made, each twice the one before
_LONG_NS = 100e6  # of CPU time that head takes more in a run which tells time
_LARGEST = 1 << 20  # bytes of an input that is timed
_MOST_WORDS = 100  # of the program's sources
_MOST_SEEDS = 24
_LARGEST_SEED = 4096  # bytes: what seeds suggest is made of their tokens
_DIAL_SPAN = 4  # times a numeric parameter's largest value
_SIZE_FEATURE = "bytes"  # of an input file, as runs have it
_LONGEST_S = 60.0  # that a run of an input takes which is timed


@dataclass(frozen=True, slots=True)
class _Seeds:
    """What a search starts from: families of single inputs and of dials, and their workloads, with a place for the input."""

    families: tuple[Family, ...]
    configs: Mapping[str, WorkloadConfig]
    suffixes: Mapping[str, str]


def search(request: Request, progress: Progress, limits: Limits, folder: Path) -> SearchFindings:
    """Search inputs on which head does more than base, or on which one revision grows steeply; keep what was found in `folder`.

    Raises UsageError where the workloads have no input that could be another, PerfdiffError where a revision cannot be built or run.
    """
    progress.stage("resolving revisions", None)
    repository, cache = find_repository(request.repository), request.cache
    apart, snapshots = request.config.own_files(request.repository), request.cache / "snapshots"
    with storage.in_use(cache, progress):
        is_alone = len(request.revisions) < 2 and not any(".." in word for word in request.revisions)
        pins = (
            resolve_one(repository, next(iter(request.revisions), None), snapshots=snapshots, apart=apart)
            if is_alone
            else resolve(repository, request.revisions, snapshots=snapshots, apart=apart)
        )
        with storage.at_work(cache, progress, wait_s=request.config.measure.wait_s) as room, BuildCache(cache) as builds:
            found = _Bench(request, pins, is_alone, builds, room, progress, limits).searched(folder)
    if is_alone or not found.inputs:
        return found
    return _timed(found, request, progress)


@dataclass(frozen=True, slots=True)
class _Bench:
    """What inputs are tried with."""

    request: Request
    pins: PinnedPair
    is_alone: bool
    cache: BuildCache
    room: Path
    progress: Progress
    limits: Limits

    def searched(self, folder: Path) -> SearchFindings:
        request, config, executor = self.request, self.request.config, ProcessExecutor()
        sides = {Side.BASE: self.pins.base} if self.is_alone else {Side.BASE: self.pins.base, Side.HEAD: self.pins.head}
        workshop = Workshop(sides, config.build, request.environment, self.cache, request.cache, self.room, request.packs, self.progress)
        plain_builds = workshop.plain()
        built = workshop.placed(plain_builds)
        with closing(Upkeep()) as upkeep, closing(request.services) as services:
            targets = {side: target for (_, side), target in workshop.targets(Phase.PLAIN, plain_builds, {}, {}).items()}
            configs, notes = Suites(targets, request.inherited, self.room, upkeep).expanded(config.workloads, executor, once=True)
            seeds = _seeds(configs, request.repository, targets[Side.BASE].directory)
            collector = Collector(
                targets=workshop.counting_lines(built),
                workloads=seeds.configs,
                environment=request.inherited,
                executor=executor,
                room=self.room,
                seed=config.compare.seed,
                upkeep=upkeep,
                services=services,
            )
            own = self.room / "inputs"
            own.mkdir()
            runs = InputRuns(collector, self.pins, seeds.configs, seeds.suffixes, own)
            return self._found(runs, seeds, folder, notes)

    def _found(self, runs: InputRuns, seeds: _Seeds, folder: Path, notes: Sequence[Note]) -> SearchFindings:
        began = time.monotonic()
        unsteady = runs.require_steady(seeds.families[0])
        self.progress.stage("searching inputs", None)
        search = Search(runs, self.limits, _words(runs), self.progress.advance, 1 + self.request.config.compare.min_effect)
        entries = search.found(seeds.families)
        if not search.corpus.worst and not search.mishaps:
            raise WorkloadError(
                "no seed runs to its end on both sides in the same way: let the workload's own inputs be such that it accepts them",
                slug="no-seeds",
            )
        kept = [self._shown(entry, number, runs, seeds, folder) for number, entry in enumerate(entries, 1)]
        return SearchFindings(
            revisions={side: (self.pins.base if side is Side.BASE else self.pins.head).revision for side in runs.sides},
            inputs=tuple(kept),
            verdict=Verdict.INCONCLUSIVE if kept and not self.is_alone else Verdict.UNCHANGED,
            tried=search.tried,
            seconds=time.monotonic() - began,
            seeds=len(seeds.families),
            reached=search.corpus.reached,
            matters=int(search.corpus.matters.sum()),
            size=self.limits.size,
            most=max((entry.factor for entry in search.corpus.leading), default=1.0),
            mishaps=tuple(
                Mishap(each.family, each.failures, _written(each.family, each.times, seeds, folder, f"mishap-{number}"))
                for number, each in enumerate(search.mishaps, 1)
            ),
            notes=(*self.pins.notes, *notes, *_unsteady(unsteady)),
        )

    def _shown(self, entry: Entry, number: int, runs: InputRuns, seeds: _Seeds, folder: Path) -> SlowInput:
        """Return an input with its growth by counts, its sizes written to files."""
        smallest = max(1, entry.times // _SPAN)
        sizes = sorted({round(smallest * (entry.times / smallest) ** (step / (_SIZES - 1))) for step in range(_SIZES)})
        sized = runs.over_sizes(entry.family, sizes) if entry.family.grows and len(sizes) > 1 else None
        timed = sorted({max(1, times) for times in _timed_sizes(entry, runs)})
        files = {
            times: path for times in timed if (path := _written(entry.family, times, seeds, folder, f"{number}-{times}")) is not None
        }
        is_by_lines = entry.ratio >= 1 + self.request.config.compare.min_effect
        return SlowInput(
            entry,
            self._workload(entry, number, timed, files, seeds),
            files,
            self._trends(sized.counts) if sized and is_by_lines else None,
            _laws_of_time(sized, self.request.config.compare.seed) if sized and not is_by_lines else {},
            None if is_by_lines else runs.comparison.changed_most(entry.trial),
        )

    def _trends(self, experiment: PlaceExperiment) -> TrendFindings:
        compare = self.request.config.compare
        return analyse(experiment, min_effect=compare.min_effect, seed=compare.seed)

    def _workload(
        self, entry: Entry, number: int, sizes: Sequence[int], files: Mapping[int, Path], seeds: _Seeds
    ) -> WorkloadConfig:
        config, family = seeds.configs[entry.family.workload], entry.family
        values: dict[str, tuple[float | str, ...]] = {name: (value,) for name, value in family.values.items()}
        if family.dial:
            values[family.dial] = tuple(float(size) if isinstance(size, float) else size for size in sizes)
        return replace(
            config,
            name=f"{family.workload}-{number}",
            parameters=values,
            inputs=tuple(_named(path, self.request.repository) for path in files.values()),
        )


def _laws_of_time(sized: Sized, seed: int) -> Mapping[Side, Law]:
    """Return how the CPU time of runs grows with the input, by side, as far as it does."""
    laws: dict[Side, Law] = {}
    for side, cpu_ns in sized.cpu_ns.items():
        features = sized.counts.sides[side].features
        name = _SIZE_FEATURE if _SIZE_FEATURE in features else next(iter(features))
        law = trendlines.fit(name, features[name], cpu_ns, seed=seed)
        if law is not None:
            laws[side] = law
    return laws


def _named(path: Path, project: Path) -> str:
    whole = path.absolute()
    return (whole.relative_to(project) if whole.is_relative_to(project) else whole).as_posix()


def _timed(found: SearchFindings, request: Request, progress: Progress) -> SearchFindings:
    """Return findings with whole runs of each input in pairs, and the verdict that they give."""
    config = replace(
        request.config,
        workloads=tuple(each.workload for each in found.inputs),
        measure=replace(request.config.measure, fast=True, thorough=False),
        otherwise=(),
    )
    outcome = pipeline.compare(replace(request, config=config), Within(progress, "running what was found"))
    runs: dict[str, list[EndToEnd]] = {}
    for row in outcome.findings.end_to_end:
        runs.setdefault(row.point.workload, []).append(row)
    inputs = tuple(_judged(each, runs.get(each.workload.name, [])) for each in found.inputs)
    verdicts = {each.verdict for each in inputs}
    verdict = next(each for each in (Verdict.REGRESSION, Verdict.INCONCLUSIVE, Verdict.UNCHANGED) if each in verdicts)
    return replace(found, inputs=inputs, verdict=verdict)


def _judged(shown: SlowInput, runs: Sequence[EndToEnd]) -> SlowInput:
    """Return an input with what whole runs say of it: slower at one of its sizes, or at none, which they exclude or do not."""
    standings = {row.standing for row in runs}
    if PointStanding.SLOWER in standings:
        verdict = Verdict.REGRESSION
    elif standings and standings <= {PointStanding.NOT_SLOWER, PointStanding.FASTER}:
        verdict = Verdict.UNCHANGED
    else:
        verdict = Verdict.INCONCLUSIVE
    return replace(shown, runs=tuple(runs), verdict=verdict)


def _timed_sizes(entry: Entry, runs: InputRuns) -> Iterator[int]:
    """Yield the numbers of repetitions of an input that are timed: up to where head takes so much longer that runs show it."""
    times, family = entry.times, entry.family
    trial = entry.trial
    while family.grows and not family.dial and family.size(2 * times) <= _LARGEST:
        if trial.cpu_ns[Side.HEAD] - trial.cpu_ns[Side.BASE] >= _LONG_NS:
            break
        larger = runs.trial(family, 2 * times, _LONGEST_S)
        if not larger.is_whole:
            break
        times, trial = 2 * times, larger
    yield from (times // 2**step for step in range(_TIMED_SIZES if family.grows else 1))


def _written(family: Family, times: int, seeds: _Seeds, folder: Path, name: str) -> Path | None:
    """Write an input to a file of the folder, which is made; return it, None where a parameter is all there is."""
    if family.dial:
        return None
    path = folder / f"{name}{seeds.suffixes[family.workload]}"
    with store_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        path.write_bytes(family.content(times))
    return path


def _unsteady(share: float) -> tuple[Note, ...]:
    if not share:
        return ()
    return (
        Note(
            "places-unsteady",
            f"{100 * share:.0f} % of the lines ran another number of times when an input was run again: these hang on threads, time or "
            "chance, and were left out",
        ),
    )


def _words(runs: InputRuns) -> tuple[bytes, ...]:
    """Return the words that the program's sources hold, those of changed functions first."""
    comparison = runs.comparison
    changed = comparison.changed.tolist()
    texts = [place.text for place, is_changed in zip(comparison.places, changed, strict=True) if is_changed]
    return proposals.words_of([*texts, *(place.text for place in comparison.places)])[:_MOST_WORDS]



def _seeds(configs: Sequence[WorkloadConfig], project: Path, tree: Path) -> _Seeds:
    """Return what the workloads have to start from; raise UsageError where that is nothing."""
    families: list[Family] = []
    known: dict[str, WorkloadConfig] = {}
    suffixes: dict[str, str] = {}
    for config in configs:
        with_place, files = _with_input(config, project, tree)
        others = {name: values for name, values in with_place.parameters.items() if name != INPUT}
        usual = {name: values[0] for name, values in others.items()}
        if files:
            by_size = sorted(files, key=lambda path: path.stat().st_size)[:_MOST_SEEDS]
            suffixes[config.name] = by_size[0].suffix
            for path in by_size:
                text = path.read_bytes()[:_LARGEST_SEED]
                families += [plain(config.name, text, usual | {name: value}) for name, value in _alternatives(others)] or [
                    plain(config.name, text, usual)
                ]
        else:
            families += [
                Family(config.name, values=usual, dial=name, most=int(_DIAL_SPAN * max(map(float, values))))
                for name, values in others.items()
                if all(isinstance(value, int | float) and value >= 1 for value in values)
            ]
            suffixes[config.name] = ""
        if files or any(family.workload == config.name for family in families):
            known[config.name] = replace(with_place, inputs=(), parameters=others)
    if not families:
        raise UsageError(
            "no workload has an input that could be another: give one with files, as in command = \"./program {input}\" and "
            'inputs = ["samples/*"], or with a numeric parameter',
            slug="no-seeds",
        )
    return _Seeds(tuple(families), known, suffixes)


def _alternatives(others: Mapping[str, Sequence[float | str]]) -> Iterator[tuple[str, float | str]]:
    """Yield each value of each parameter, which stands beside the first of all others."""
    yield from ((name, value) for name, values in others.items() for value in values)


def _with_input(config: WorkloadConfig, project: Path, tree: Path) -> tuple[WorkloadConfig, list[Path]]:
    """Return a workload whose command has a place for its input, and the files that are its inputs so far.

    These are its `inputs`, the values of a parameter that are files, or a file of the tree that the command names.
    """
    if config.inputs:
        return config, [project / name for name in config.inputs]
    for name, values in config.parameters.items():
        files = [path for value in values if isinstance(value, str) and (path := _file(value, tree, project)) is not None]
        if files and len(files) == len(values):
            command = re.sub(rf"(?<![^\s'\"])\S*\{{{name}\}}", f"{{{INPUT}}}", config.command)
            parameters = {other: kept for other, kept in config.parameters.items() if other != name}
            return replace(config, command=command, parameters=parameters), files
    for word in _words_of_command(config.command)[1:]:
        path = _file(word, tree, project)
        if path is not None:
            return replace(config, command=config.command.replace(word, f"{{{INPUT}}}", 1)), [path]
    return config, []


def _words_of_command(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return []


def _file(word: str, tree: Path, project: Path) -> Path | None:
    """Return the file of the project that a word names, None where it names none, or a program."""
    for folder in (project, tree):
        path = folder / word
        if path.is_file() and path.suffix not in _PROGRAMS:
            return path
    return None


_PROGRAMS = frozenset((".py", ".php", ".sh", ".jar", ".class", ".java", ".so", ""))
