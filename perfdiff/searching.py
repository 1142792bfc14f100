"""The search for inputs on which head does more than base, from revisions to findings.

plain builds → builds with counters in every line → inputs, tried on both sides → of the worst, several sizes: growth by counts → whole runs
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import islice, zip_longest
from pathlib import Path

import numpy as np

from perfdiff import pipeline, storage, temporary
from perfdiff.analysis.findings import Verdict
from perfdiff.analysis.trends.trending import analyse
from perfdiff.build.cache import BuildCache
from perfdiff.collect.built.workshop import Workshop
from perfdiff.collect.execution.unread import UnreadExecutor
from perfdiff.collect.runs.collector import Collector
from perfdiff.collect.runs.suites import Suites
from perfdiff.collect.trees.upkeep import Upkeep
from perfdiff.config import WorkloadConfig
from perfdiff.errors import WorkloadError, store_errors
from perfdiff.fuzzing import attacks, grammars, growth, kept, patterns, proposals
from perfdiff.fuzzing.families import InputFamily, Segment
from perfdiff.fuzzing.findings import SearchFindings, SlowInput
from perfdiff.fuzzing.search import InputSearch, SearchLimits
from perfdiff.fuzzing.trials import LEAST_EXTRA_NS, CorpusEntry
from perfdiff.measuring import lonecalls
from perfdiff.measuring import seeds as seeding
from perfdiff.measuring.inputruns import InputRuns, Sized
from perfdiff.measuring.lonecalls import ArgumentRecorder
from perfdiff.measuring.seeds import Seeds
from perfdiff.models.trend import Law
from perfdiff.progress import Progress, Within
from perfdiff.records.schema import Note, Phase, Side
from perfdiff.request import Request
from perfdiff.revisions.pins import Pin, PinnedPair, resolve_some
from perfdiff.revisions.repository import find_repository

_STEEP = 1.5  # times what linear growth from a quarter would be, of a lone revision; n log n is less from 64 repetitions on
_SIZES = 8  # of an input that is shown, for its growth
_SPAN = 64  # times, from the smallest to the largest of them
_SPAN_OF_TIME, _TIMINGS = 8, 3  # the same of sizes that are timed, and how often each is
_NEIGHBOURS, _FEW = 6, 100  # sizes next to each other, asked of inputs of few repetitions: exponential work allows no more
_KEPT_SIZES = 3  # that are written to files, each twice the one before, or one more repetition; the largest is timed
_LONG_NS = 100e6  # of CPU time that head takes more in a run which tells time
_LARGEST = 1 << 20  # bytes of an input that is timed
_LONGEST_S = 10.0  # that a run of it takes: half of it took less than head may take more
_MOST_WORDS = 100  # of the program's sources
_MOST_ATTACKS = 200  # on its patterns


def search(request: Request, progress: Progress, limits: SearchLimits, folder: Path, function: str | None = None) -> SearchFindings:
    """Search inputs on which head does more than base, or with which one revision grows steeply; keep what was found in `folder`.

    Where a `function` is named, it is called alone, with arguments like those that it has in the workloads.

    Raises UsageError where the workloads have no input that could be another, PerfdiffError where a revision cannot be built or run.
    """
    progress.stage("resolving revisions", None)
    repository, cache = find_repository(request.repository), request.cache
    apart = request.config.own_files(request.repository)
    with storage.in_use(cache, progress):
        pins, are_two = resolve_some(repository, request.revisions, snapshots=cache / "snapshots", apart=apart)
        with storage.at_work(cache, progress, wait_s=request.config.measure.wait_s) as room, BuildCache(cache) as builds:
            sides = {Side.BASE: pins.base, Side.HEAD: pins.head} if are_two else {Side.BASE: pins.base}
            searched = _searched(request, pins, sides, builds, room, progress, limits, folder, function)
    return _timed(searched, request, progress) if are_two and searched.inputs else searched


def _searched(  # noqa: PLR0913, PLR0917 (what is asked, and all that it is done with)
    request: Request,
    pins: PinnedPair,
    sides: Mapping[Side, Pin],
    builds: BuildCache,
    room: Path,
    progress: Progress,
    limits: SearchLimits,
    folder: Path,
    function: str | None,
) -> SearchFindings:
    config, unread = request.config, UnreadExecutor()
    derived = {
        workload.name: grammars.suggested(request.repository / workload.grammar) for workload in config.workloads if workload.grammar
    }
    workshop = Workshop(sides, config.build, request.environment, builds, request.cache, room, request.packs, progress)
    plain = workshop.plain()
    built = workshop.placed(plain)
    in_memory = temporary.folder(within=temporary.memory() or room)
    with closing(Upkeep()) as upkeep, closing(request.services) as services, in_memory as own, closing(unread):
        targets = {side: target for (_, side), target in workshop.targets(Phase.PLAIN, plain, {}, {}).items()}
        configs, notes = Suites(targets, request.inherited, room, upkeep).expanded(config.workloads, unread.thorough, once=True)
        counting = workshop.counting_lines(built)
        if function is None:
            starts = seeding.seeds(configs, request.repository, targets[Side.BASE].directory, derived)
        else:
            recorder = ArgumentRecorder(targets[Side.BASE], request.inherited, unread.thorough, upkeep, own, request.repository)
            readers = [target.places for target in counting.values() if target.places is not None]
            starts = recorder.seeds(lonecalls.resolved(function, [reader.places for reader in readers]), configs)
        collector = Collector(
            targets=counting,
            workloads=starts.workloads,
            environment=request.inherited,
            executor=unread,
            room=own,
            seed=config.compare.seed,
            upkeep=upkeep,
            services=services,
        )
        hunt = _Hunt(request, InputRuns(collector, pins, starts.workloads, starts.suffixes, own, unread), starts, folder)
        return hunt.findings(limits, progress, (*pins.notes, *notes))


@dataclass(frozen=True, slots=True)
class _Hunt:
    """A search with what inputs are tried with, and the folder that those are written to which are shown."""

    request: Request
    runs: InputRuns
    seeds: Seeds
    folder: Path

    def findings(self, limits: SearchLimits, progress: Progress, notes: Sequence[Note]) -> SearchFindings:
        """Search, and return what was found; no whole runs were made of it. Raises WorkloadError where no seed can be run."""
        began, compare = time.monotonic(), self.request.config.compare
        unsteady = self.runs.require_steady(self.seeds.families)
        progress.stage("searching inputs", None)
        least_ratio = _STEEP if self.runs.is_alone else 1 + compare.min_effect
        search = InputSearch(self.runs, limits, self._words, self._attacks, progress.advance, least_ratio, self.seeds.derived)
        earlier, unread = self._earlier()
        entries = search.worst_inputs(self.seeds.families, earlier)
        shown = tuple(self._shown(entry, number) for number, entry in enumerate(entries, 1))
        if (entries or search.mishaps) and not unread:
            kept.add(self.folder, [*(entry.family for entry in entries), *(mishap.family for mishap in search.mishaps)])
        mishaps = (
            replace(mishap, file=self._written(mishap.family, mishap.times, f"mishap-{kept.name(mishap.family)}-{mishap.times}"))
            for mishap in search.mishaps
        )
        return SearchFindings(
            revisions=self.runs.revisions,
            inputs=shown,
            verdict=Verdict.INCONCLUSIVE if shown and not self.runs.is_alone else Verdict.UNCHANGED,
            tried=search.tried,
            seconds=time.monotonic() - began,
            seeds=len(self.seeds.families),
            reached=search.corpus.reached,
            matters=int(search.corpus.matters.sum()),
            size=limits.size,
            most=max((entry.factor for entry in search.corpus.leading), default=1.0),
            mishaps=tuple(mishaps),
            notes=(*notes, *_unsteady(unsteady), *unread),
        )

    def _earlier(self) -> tuple[list[InputFamily], tuple[Note, ...]]:
        """Return what earlier searches kept of the workloads that there are, and a note where that cannot be read."""
        try:
            families = kept.families(self.folder)
        except ValueError as error:
            return [], (Note("inputs-unread", f"{error}: what earlier searches found was not tried, and this file stays as it is"),)
        ways = {(seed.workload, seed.dial, *sorted(seed.values)) for seed in self.seeds.families}
        return [family for family in families if (family.workload, family.dial, *sorted(family.values)) in ways], ()

    def _shown(self, entry: CorpusEntry, number: int) -> SlowInput:
        """Return an input with its growth, some of its sizes written to files."""
        compare, family = self.request.config.compare, entry.family
        is_by_lines = entry.is_told_by_lines(1 + compare.min_effect)
        factor = self._factor(entry, is_by_lines=is_by_lines)
        kept_sizes = (entry.times - step for step in range(_KEPT_SIZES)) if factor else self._kept_sizes(entry)
        repetitions = sorted({max(1, times) for times in kept_sizes})
        files = {times: path for times in repetitions if (path := self._written(family, times, f"{kept.name(family)}-{times}")) is not None}
        sized = self._sized(family, entry.times, _SPAN) if is_by_lines else None
        return SlowInput(
            entry=entry,
            workload=self._workload(entry, number, repetitions, files),
            files=files,
            trends=analyse(sized.counts, min_effect=compare.min_effect, seed=compare.seed) if sized else None,
            by_time=None if is_by_lines else self._law_of_time(family, repetitions[-1]),
            factor=factor,
            changed=None if is_by_lines else self.runs.comparison.changed_most(entry.trial),
        )

    def _sized(self, family: InputFamily, largest: int, span: int) -> Sized | None:
        """Return runs of an input in sizes up to the `largest`, the smallest so many times smaller; None where there is one size."""
        smallest = max(1, largest // span)
        sizes = sorted({round(smallest * (largest / smallest) ** (step / (_SIZES - 1))) for step in range(_SIZES)})
        return self.runs.over_sizes(family, sizes) if family.grows and len(sizes) > 1 else None

    def _law_of_time(self, family: InputFamily, largest: int) -> Law | None:
        """Return how the CPU time grows that head takes more, by the least of some runs; the largest shows it well."""
        several = [self._sized(family, largest, _SPAN_OF_TIME) for _ in range(_TIMINGS)]
        timed = [sized for sized in several if sized is not None]
        if len(timed) < _TIMINGS or self.runs.is_alone:
            return None
        base, head = (np.minimum.reduce([sized.cpu_ns[side] for sized in timed]) for side in (Side.BASE, Side.HEAD))
        ((feature, x),) = timed[0].counts.sides[Side.HEAD].features.items()
        return growth.of_time(feature, x, head - base, LEAST_EXTRA_NS / 2, seed=self.request.config.compare.seed)

    def _factor(self, entry: CorpusEntry, *, is_by_lines: bool) -> float | None:
        """Return by how much each repetition multiplies what head does more, asked of neighbouring sizes where there are few."""
        times, family = entry.times, entry.family
        if self.runs.is_alone or family.dial or not family.grows or not _NEIGHBOURS <= times <= _FEW:
            return None
        sizes = range(times - _NEIGHBOURS + 1, times + 1)
        sized = self.runs.over_sizes(family, sizes)
        if sized is None:
            return None
        extra, floor = (sized.extra_lines, 0.0) if is_by_lines else (sized.extra_ns, LEAST_EXTRA_NS / 2)
        return growth.factor(np.array(sizes, dtype=np.float64), extra, floor)

    def _kept_sizes(self, entry: CorpusEntry) -> Iterator[int]:
        """Yield numbers of repetitions up to where head takes so much longer that whole runs show it."""
        times, family, trial = entry.times, entry.family, entry.trial
        while family.grows and not family.dial and family.size(2 * times) <= _LARGEST:
            if trial.cpu_ns[Side.HEAD] - trial.cpu_ns[Side.BASE] >= _LONG_NS:
                break
            larger = self.runs.trial(family, 2 * times, _LONGEST_S)
            if not larger.is_whole:
                break
            times, trial = 2 * times, larger
        yield from (times // 2**step for step in range(_KEPT_SIZES if family.grows else 1))

    def _workload(self, entry: CorpusEntry, number: int, sizes: Sequence[int], files: Mapping[int, Path]) -> WorkloadConfig:
        family = entry.family
        values: dict[str, tuple[float | str, ...]] = {name: (value,) for name, value in family.values.items()}
        if family.dial:
            values[family.dial] = tuple(sizes)
        config = self.seeds.workloads[family.workload]
        return replace(
            config,
            name=f"{family.workload}-{number}",
            parameters=values,
            inputs=tuple(_named(path, self.request.repository) for path in files.values()),
            exit_codes=tuple(sorted({*config.exit_codes, *entry.trial.exit_codes.values()})),
        )

    def _written(self, family: InputFamily, times: int, name: str) -> Path | None:
        """Write an input to a file of the folder, which is made; return it, None where a parameter is all there is."""
        if family.dial:
            return None
        path = self.folder / f"{name}{self.seeds.suffixes[family.workload]}"
        with store_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            path.write_bytes(family.content(times))
        return path

    @property
    def _words(self) -> tuple[bytes, ...]:
        """Return what the program's sources look for in inputs, by what changed first."""
        changed, lines = self.runs.lines
        words = (*proposals.words_of(changed), *proposals.marks_of(changed), *proposals.words_of(lines))
        return tuple(dict.fromkeys(words))[:_MOST_WORDS]

    @property
    def _attacks(self) -> tuple[tuple[Segment, ...], ...]:
        """Return what may make changed patterns try much, of several patterns in turns; of a lone revision all patterns count."""
        of_patterns = [attacks.attacks(tree) for tree in patterns.changed(self.runs.sources)]
        in_turns = (attack for turn in zip_longest(*of_patterns) for attack in turn if attack is not None)
        return tuple(islice(dict.fromkeys(in_turns), _MOST_ATTACKS))


def _named(path: Path, project: Path) -> str:
    whole = path.absolute()
    return (whole.relative_to(project) if whole.is_relative_to(project) else whole).as_posix()


def _timed(searched: SearchFindings, request: Request, progress: Progress) -> SearchFindings:
    """Return findings with whole runs of each input in its largest size, in pairs, and the verdict that they give."""
    measure = replace(request.config.measure, fast=True, thorough=False)
    config = replace(request.config, workloads=tuple(map(_largest_alone, searched.inputs)), measure=measure, otherwise=())
    try:
        outcome = pipeline.compare(replace(request, config=config), Within(progress, "running what was found"), is_last=False)
    except WorkloadError as error:
        return replace(searched, notes=(*searched.notes, Note("not-timed", f"whole runs of what was found failed: {error}")))
    rows = {row.point.workload: row for row in outcome.findings.end_to_end}
    inputs = tuple(replace(shown, run=rows.get(shown.workload.name)) for shown in searched.inputs)
    verdicts = {shown.verdict for shown in inputs}
    verdict = next(verdict for verdict in (Verdict.REGRESSION, Verdict.INCONCLUSIVE, Verdict.UNCHANGED) if verdict in verdicts)
    return replace(searched, inputs=inputs, verdict=verdict)


def _largest_alone(shown: SlowInput) -> WorkloadConfig:
    workload = shown.workload
    return replace(workload, inputs=workload.inputs[-1:], parameters={name: values[-1:] for name, values in workload.parameters.items()})


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
