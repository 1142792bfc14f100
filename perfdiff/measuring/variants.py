"""Builds of all sides with probes, or with counters of lines: what is in them, and that they are ready to run."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from perfdiff.build.built import Built
from perfdiff.collect.built.workshop import dropped
from perfdiff.collect.choosing.subjects import Probes
from perfdiff.collect.counts import counting, placing
from perfdiff.collect.runs.spread import LayoutSpread
from perfdiff.collect.runs.targets import Targets
from perfdiff.errors import BuildError, RecordingError
from perfdiff.measuring.bench import Bench
from perfdiff.measuring.site import Recipe, Site, Variant
from perfdiff.records import plan
from perfdiff.records.schema import Phase, Side


def spread(bench: Bench, site: Site) -> LayoutSpread:
    """Return the layouts over which whole runs are spread."""
    config = bench.request.config
    layouts = bench.workshop.layouts(site.plain, config.measure.layouts)
    return LayoutSpread(layouts, bench.upkeep, config.compare.seed, config.measure.layouts)


def recipe(bench: Bench, site: Site) -> Recipe:
    """Return the recipe for builds of both sides with the chosen probes."""
    probes = {side: site.subjects.timed_probes(side, site.selection.choices) for side in bench.sides}
    modes = {choice.id: choice.entry for choice in site.selection.choices}
    return Recipe(probes, modes, site.steering, next(iter(site.plain.values())).used)


def followed(bench: Bench, recipe: Recipe, site: Site) -> Variant:
    """Build all sides by a recipe; raise BuildError."""
    workshop, probes = bench.workshop, recipe.probes
    built = workshop.probed(Phase.TIMED, probes, {side: replace(plain, used=recipe.used) for side, plain in site.plain.items()})
    targets = workshop.targets(Phase.TIMED, built, recipe.modes, probes, recipe.steering)
    return Variant(probes, targets, built, skipped=dropped(built, probes))


def census(bench: Bench, site: Site) -> Variant:
    """Build all sides over the software PMU with all probes, which only count calls."""
    return _counting(bench, site, census_probes(bench, site), plan.ProbePlan.calls())


def counting_apart(bench: Bench, variant: Variant, functions: Collection[int]) -> Variant:
    """Return the same builds with separate counts for the calls of some functions, and other probes switched off."""
    return replace(variant, targets=_counted_targets(bench, variant.built, variant.probes, dict.fromkeys(functions, plan.ProbePlan.sums())))


def counted(bench: Bench, site: Site) -> Variant:
    """Build all sides over the software PMU with the chosen probes."""
    probes = {side: site.subjects.counted_probes(side, site.selection.choices, site.selection.folds) for side in bench.sides}
    return _counting(bench, site, probes, plan.ProbePlan.counted(reservoir=bench.reservoir))


def _counting(bench: Bench, site: Site, probes: Probes, entry: plan.ProbePlan) -> Variant:
    """Build all sides over the software PMU; a build that fails costs the counts, not the comparison."""
    config = bench.request.config
    probes = {side: bench.packs.countable(entries) for side, entries in probes.items()}
    is_asked = len(bench.sides) > 1 or bench.request.is_counted
    if not config.counters.software or not is_asked or not all(probes.values()):
        return Variant(probes, {}, {})
    try:
        built = bench.workshop.probed(Phase.COUNTED, probes, site.plain)
        targets = _counted_targets(bench, built, probes, {id_: entry for entries in probes.values() for id_ in entries})
    except BuildError as error:
        return Variant(probes, {}, {}, notes=(counting.failed(str(error)),))
    return Variant(probes, targets, built, dropped(built, probes), counting.left_plain(built.values()))


def placed(bench: Bench, site: Site, files: Collection[str] | None = None) -> Variant:
    """Build all sides with the compilers' counters of lines, of all files or some; a build that fails costs the lines alone."""
    workshop = bench.workshop
    try:
        built = workshop.placed(site.plain, files)
        return Variant({}, workshop.counting_lines(built), built)
    except (BuildError, RecordingError) as error:
        return Variant({}, {}, {}, notes=(placing.failed(str(error)),))


def _counted_targets(bench: Bench, built: Mapping[Side, Built], probes: Probes, entries: Mapping[int, plan.ProbePlan]) -> Targets:
    steering = counting.steering(bench.request.config.counters, bench.request.environment)
    return bench.workshop.targets(Phase.COUNTED, built, entries, probes, steering)


def census_probes(bench: Bench, site: Site) -> Probes:
    probeable = site.subjects.probeable(bench.request.config.probes.exclude)
    return {side: site.subjects.census_probes(side, probeable) for side in bench.sides}
