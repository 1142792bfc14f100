"""What whole runs show before a build with probes, which takes long, tells which cases of suites reach the change."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

from perfdiff.collect.runs.suitecases import SuiteCase, joined
from perfdiff.collect.runs.suites import apart
from perfdiff.errors import DiskFilledError, WorkloadError
from perfdiff.measuring.bench import Bench
from perfdiff.measuring.making import OwnMachine
from perfdiff.measuring.site import Site
from perfdiff.measuring.wholepairs import WholePairs
from perfdiff.statistics.pairs import FEWEST_PAIRS

LATE_S = 30.0  # that head's plain build took: one with probes takes as long, and until then nothing would be known
SHARE = 0.5  # of that build's time for these pairs, and as much again where that decides, or the fewest take so long


def say(bench: Bench, site: Site, cases: Sequence[SuiteCase]) -> None:
    """Say whether head is slower in whole runs of all cases, or of those with the shortest runs, as many as there is time for.

    Nothing is said where they leave it open, where the next build is soon there, or where the comparison's time is limited. What fails is
    told where it fails again.
    """
    built_s = site.plain[bench.sides[-1]].duration_s
    shortest = sorted(joined(cases), key=lambda case: case.run_s)
    ends_s = itertools.accumulate(case.run_s for case in shortest)
    fitting = [case for case, end_s in zip(shortest, ends_s, strict=True) if 2 * FEWEST_PAIRS * end_s <= built_s]
    if not fitting or bench.request.deadline.is_limited or built_s < LATE_S:
        return
    config = bench.request.config
    workloads = tuple(apart(case.workload(case.calls) for case in fitting))
    config = replace(config, workloads=workloads, measure=replace(config.measure, budget_s=SHARE * built_s, fast=True))
    own = replace(bench, request=replace(bench.request, config=config))
    maker = OwnMachine(own, site, own.collector(site.targets), is_spread=False)
    which = " of all cases" if len(fitting) == len(shortest) else " of the shortest cases"
    try:
        WholePairs(own, maker, SHARE * built_s, which).make([])
    except DiskFilledError:
        raise
    except WorkloadError:
        return
