"""What whole runs show before a build with probes, which takes long, tells which cases of suites reach the change."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from perfdiff.collect.runs.suitecases import SuiteCase, joined
from perfdiff.collect.runs.suites import apart
from perfdiff.config import WorkloadConfig
from perfdiff.errors import DiskFilledError, WorkloadError
from perfdiff.measuring.bench import Bench
from perfdiff.measuring.making import OwnMachine
from perfdiff.measuring.site import Site
from perfdiff.measuring.wholepairs import WholePairs
from perfdiff.records.schema import Run, Side
from perfdiff.statistics.pairs import FEWEST_PAIRS

LATE_S = 30.0  # that head's plain build took: one with probes takes as long, and until then nothing would be known
SHARE = 0.5  # of that build's time for these pairs, and as much again where that decides, or the fewest take so long


@dataclass(frozen=True, slots=True)
class FirstRuns:
    """Whole runs of all cases, or of those with the shortest runs, as many as there is time for, which take `budget_s` seconds."""

    bench: Bench
    budget_s: float
    of: str
    runs: list[Run] = field(default_factory=list)

    @classmethod
    def planned(cls, bench: Bench, site: Site, cases: Sequence[SuiteCase]) -> FirstRuns | None:
        """Return those that are made, None where the next build is soon there, or where the comparison's time is limited."""
        built_s = site.plain[bench.sides[-1]].duration_s
        if bench.request.deadline.is_limited or built_s < LATE_S:
            return None
        return cls.within(bench, cases, SHARE * built_s)

    @classmethod
    def within(cls, bench: Bench, cases: Sequence[SuiteCase], budget_s: float, written: Sequence[WorkloadConfig] = ()) -> FirstRuns | None:
        """Return those of the `written` workloads and of the cases that fit into twice a budget, None where there are none."""
        shortest = sorted(joined(cases), key=lambda case: case.run_s)
        ends_s = itertools.accumulate(case.run_s for case in shortest)
        fitting = [case for case, end_s in zip(shortest, ends_s, strict=True) if FEWEST_PAIRS * end_s <= budget_s]
        if not fitting and not written:
            return None
        own = bench.for_workloads(tuple(apart([*written, *(case.workload(case.calls) for case in fitting)])))
        return cls(own, budget_s, " of all cases" if len(fitting) == len(shortest) else " of the shortest cases")

    @property
    def tell_something(self) -> bool:
        """Return whether base and head ran."""
        return {run.side for run in self.runs} == set(Side)

    def make(self, site: Site) -> None:
        """Make pairs until they show whether head is slower, and say so, or what is open; what fails is told where it fails again."""
        config = self.bench.request.config
        brief = replace(config, measure=replace(config.measure, budget_s=self.budget_s, fast=True))
        bench = replace(self.bench, request=replace(self.bench.request, config=brief))
        maker = OwnMachine(bench, site, bench.collector(site.targets), is_spread=False)
        pairs = WholePairs(bench, maker, self.budget_s, self.of)
        try:
            pairs.make(self.runs)
            pairs.say_what_is_open(self.runs)
        except DiskFilledError:
            raise
        except WorkloadError:
            return
