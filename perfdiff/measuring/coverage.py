"""How much of what changed can be measured and ran."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from perfdiff.build.built import Built
from perfdiff.collect.built import reach
from perfdiff.collect.choosing import folding
from perfdiff.collect.choosing.subjects import Probes
from perfdiff.collect.choosing.vicinity import vicinity
from perfdiff.collect.counts.counted import GatheredCounts
from perfdiff.collect.runs.collector import Collector
from perfdiff.measuring.bench import Bench
from perfdiff.measuring.site import Site, Variant
from perfdiff.measuring.variants import census_probes
from perfdiff.records.schema import Side


@dataclass(frozen=True, slots=True)
class SurveyCoverage:
    """What runs with probes in all functions passed: those that `ran`, and calls as (caller, callee); probes of some were `lost`."""

    ran: frozenset[int]
    lost: frozenset[int]
    edges: Iterable[tuple[int, int]]


def vicinity_of(bench: Bench, site: Site) -> Site | None:
    """Return the site with the functions alone that may have to do with the change, None where all are looked at from the start.

    All are where one function, or each one, was asked for.
    """
    subjects = site.subjects
    if len(bench.sides) < 2 or bench.request.wants_calls:
        return None
    within = vicinity(subjects, compiled(site))
    return None if within is None else replace(site, subjects=replace(subjects, within=within))


def compiled(site: Site) -> frozenset[str]:
    """Return the files that are compiled by themselves on either side, as paths in the tree."""
    return frozenset(str(command.file.relative_to(built.tree)) for built in site.plain.values() for command in built.commands)


def require_probes(bench: Bench, site: Site) -> None:
    """Raise MeasurementError where a side has no function that can be measured."""
    reach.require_probes(census_probes(bench, site), site.subjects)


def answered_by_counts(bench: Bench, site: Site, variant: Variant, counted: GatheredCounts, collector: Collector) -> Site:
    """Return the site of a comparison that exact counts answer; raise WorkloadError if they were made with other code."""
    ran = frozenset().union(*counted.called.values())
    reach.require_tree(collector.misplaced, ran, site.subjects)
    require_calls(bench, counted.called, variant.probes, variant.built)
    lost = bench.workshop.lost(variant.built, variant.probes)
    return covered(bench, site, ran, SurveyCoverage(ran, lost, counted.assembly.edges().pairs))


def covered(bench: Bench, site: Site, measured: Collection[int], passed: SurveyCoverage) -> Site:
    """Return the site with the measured functions, the calls between functions, and the changed functions of which nothing is known."""
    exclude = bench.request.config.probes.exclude
    probed = site.subjects.probeable(exclude).keys() - passed.lost
    subjects = site.subjects.as_seen(probed, passed.edges)
    return replace(
        site,
        subjects=subjects,
        measured=frozenset(measured),
        folded=folding.unprobed(subjects, exclude, measured),
        skipped=(
            *site.skipped,
            *subjects.obstacles(exclude),
            *subjects.generated(passed.lost),
            *subjects.untouched(passed.ran, probed),
        ),
        reach=reach.reached(subjects, passed.ran, probed) if len(bench.sides) > 1 else None,
    )


def untimed(site: Site) -> Site:
    """Return what there is to tell where no build with probes could be made or run: what changed is open, and may have run."""
    reached = site.reach or reach.reached(site.subjects, (), ())
    return replace(site, measured=site.measured | site.subjects.suspects, reach=reached)


def require_calls(bench: Bench, called: Mapping[tuple[int, Side], frozenset[int]], probes: Probes, built: Mapping[Side, Built]) -> None:
    """Raise WorkloadError where no function takes part in a workload's runs of a side, MeasurementError where none has a probe."""
    workload = {point.id: point.workload for point in bench.points}
    by_workload: dict[tuple[str, Side], frozenset[int]] = {}
    for (point, side), functions in called.items():
        by_workload[workload[point], side] = by_workload.get((workload[point], side), frozenset()) | functions
    reach.require_calls(by_workload, probes, built)
