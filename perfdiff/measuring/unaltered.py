"""Whether runs of base and head do the same although files differ: by the files that they open, and the functions that they call."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from perfdiff.collect import caveats, openings, reach, remarks
from perfdiff.collect.assembly import Assembly
from perfdiff.collect.collector import Collector
from perfdiff.collect.openings import Decisive, Watching
from perfdiff.collect.schedule import Slot
from perfdiff.errors import BuildError, WorkloadError
from perfdiff.languages.protocol import CodeComparison
from perfdiff.measuring.bench import Bench, Site, Variant
from perfdiff.records.recording import Recording
from perfdiff.records.schema import Phase, Run, Side


def marked(bench: Bench, site: Site) -> Site:
    """Return the same site, or that nothing that runs differs, where one run of each point on both sides shows so.

    The first run that shows more ends the question. It is not asked of workloads that need something done before or beside their runs.
    """
    code, trees = site.code, {side: built.tree for side, built in site.plain.items()}
    if site.same_code or code is None or not _may_be_asked(bench, code):
        return site
    differing = openings.differing(trees, None, code.alike)
    if not differing:
        return site
    bench.progress.stage("looking which files runs open", None)
    try:
        opened = _opened(bench, site, Decisive.of(trees, differing))
        if opened is None or not opened.issubset(code.by_function):
            return site
        called = _unchanged_calls(bench, site, differing, code) if opened or _may_run_copies(site, code) else frozenset()
        if called is None:
            return site
    except WorkloadError:  # it is told where it fails again
        return site
    reach.require_tree({}, called, site.subjects)
    note = () if opened else (openings.note(differing),)
    return replace(site, same_code=True, notes=(*site.notes, *note, *caveats.changes_not_run(site.subjects, (), site.subjects.pairs)))


def _may_be_asked(bench: Bench, code: CodeComparison) -> bool:
    config = bench.request.config
    is_asked = not (config.measure.thorough or bench.request.followed or config.services) and code.in_tree
    return is_asked and not any(workload.setup or workload.prepare or workload.requests for workload in config.workloads)


def _opened(bench: Bench, site: Site, decisive: Mapping[Side, Decisive]) -> frozenset[str] | None:
    """Return which decisive files the first run opens that opens any; None where that cannot be told."""
    for watching, _, _ in _runs(bench, bench.collector(site.targets), Phase.PLAIN, decisive):
        if watching.opened is None or watching.opened:
            return watching.opened
    return frozenset()


def _may_run_copies(site: Site, code: CodeComparison) -> bool:
    """Return whether what changed may not be opened because runs load other copies of it."""
    return code.may_be_copied and any(pair.change.is_suspect for pair in site.subjects.pairs.values())


def _unchanged_calls(bench: Bench, site: Site, differing: Mapping[str, Collection[Side]], code: CodeComparison) -> frozenset[int] | None:
    """Return the functions that runs call, None where one of them changed, what is told by no function is opened, or nobody can tell."""
    suspects = site.subjects.suspects
    if not suspects.issubset(site.subjects.probeable(bench.request.config.probes.exclude)):
        return None
    try:
        variant = bench.tallied(site)
    except BuildError:
        return None
    if variant.skipped:
        return None
    found: frozenset[int] = frozenset()
    collector = bench.collector({**site.targets, **variant.targets})
    decisive = Decisive.of({side: built.tree for side, built in variant.built.items()}, differing)
    for watching, run, recordings in _runs(bench, collector, Phase.SURVEY, decisive):
        called = _called(bench, variant, run, recordings)
        is_whole = bool(called) and all(recording.complete for recording in recordings) and not remarks.of_lost_calls(collector.told)
        if not is_whole or called & suspects or watching.opened is None or not watching.opened.issubset(code.by_function):
            return None
        found |= called
    return found


def _runs(
    bench: Bench, collector: Collector, phase: Phase, decisive: Mapping[Side, Decisive]
) -> Iterator[tuple[Watching, Run, list[Recording]]]:
    """Yield a run of each point on both sides, with who watched it, the points in the order of the configuration."""
    for slot in (Slot(phase, point, side, 0) for point in bench.points for side in bench.sides):
        watching = Watching(bench.executor, decisive[slot.side])
        for run, recordings in replace(collector, executor=watching).collect([slot], bench.progress.advance):
            yield watching, run, recordings


def _called(bench: Bench, variant: Variant, run: Run, recordings: list[Recording]) -> frozenset[int]:
    """Return the functions that a run called."""
    assembly = Assembly(variant.probes, {point.id: point for point in bench.points})
    assembly.add(run, recordings)
    totals = assembly.totals()
    return frozenset(function for function, calls in zip(totals.function.tolist(), totals.calls.tolist(), strict=True) if calls)
