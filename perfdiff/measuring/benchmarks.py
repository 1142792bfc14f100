"""Suites of benchmarks, as workloads: which there are, the builds tell."""

from __future__ import annotations

from dataclasses import replace

from perfdiff.collect.runs.suites import Suites
from perfdiff.measuring.bench import Bench
from perfdiff.measuring.site import Site
from perfdiff.records.schema import Phase


def with_benchmarks(bench: Bench, site: Site) -> tuple[Bench, Site]:
    """Return the bench with suites replaced by their benchmarks; raise WorkloadError if there are none."""
    config = bench.request.config
    if not any(workload.suite for workload in config.workloads):
        return bench, site
    bench.progress.stage("listing benchmarks", None)
    suites = Suites({side: site.targets[Phase.PLAIN, side] for side in bench.sides}, bench.request.inherited, bench.room, bench.upkeep)
    workloads, notes = suites.expanded(config.workloads, bench.executor)
    request = replace(bench.request, config=replace(config, workloads=workloads))
    return replace(bench, request=request), replace(site, notes=(*site.notes, *notes))
