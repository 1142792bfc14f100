"""The two families of programs whose answers must rest on evidence: what is expected of one, compared, and whether the answer keeps to it.

Those of `fixtures/hidden` differ elsewhere than in the functions that take longer, or differ as much and take no longer; those of
`fixtures/less` are faster because they do less, or are truly faster.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from perfdiff import configuration, pipeline
from perfdiff.analysis.findings import Findings, Verdict
from perfdiff.config import CountersConfig, MeasureConfig
from perfdiff.progress import Silent
from perfdiff.request import Request
from programs import Case, environment, repository

BUDGET_S = 8.0  # for whole runs, and again for runs with probes

# What may be said of a case, by its `expected.toml`, so that nobody acts on good news that is wrong, and no one is alarmed for nothing.
ALLOWED = {
    "slower": frozenset({Verdict.REGRESSION, Verdict.INCONCLUSIVE}),
    "unchanged": frozenset({Verdict.UNCHANGED, Verdict.INCONCLUSIVE}),
    "not-improvement": frozenset({Verdict.REGRESSION, Verdict.UNCHANGED, Verdict.INCONCLUSIVE}),
    "improvement": frozenset({Verdict.IMPROVEMENT}),
}
# What is best said of it: a slower program is told to be slower, and a harmless one not to be.
BEST = {
    "slower": Verdict.REGRESSION,
    "unchanged": Verdict.UNCHANGED,
    "not-improvement": Verdict.INCONCLUSIVE,
    "improvement": Verdict.IMPROVEMENT,
}


def compared(case: Case, room: Path, cache: Path, budget_s: float = BUDGET_S, *, counted: bool = False, fast: bool = False) -> Findings:
    """Compare both sides of a case within a short budget, by time alone or with counts; its repository is made in `room`.

    If it is `fast`, whole runs alone give the answer.
    """
    checkout = repository(case, room / case.name)
    config = configuration.load(checkout, environment={})
    counters = CountersConfig(software=counted, budget_s=budget_s)
    config = replace(config, measure=MeasureConfig(budget_s=budget_s, fast=fast), counters=counters)
    return pipeline.compare(Request(checkout, ("base", "head"), config, cache, environment()), Silent()).findings


def is_allowed(case: Case, verdict: Verdict) -> bool:
    """Return whether an answer may be given of a case."""
    return verdict in ALLOWED[case.expected["verdict"]]


def is_best(case: Case, verdict: Verdict) -> bool:
    """Return whether an answer is the best of those that may be given."""
    return verdict is BEST[case.expected["verdict"]]
