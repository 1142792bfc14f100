"""What is said of functions that exact counts prove slower: beside a time that tells, it is not said that time does not."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from experiments import HEAD, Made, Noise, World
from perfdiff.analysis.compare.study import study_all
from perfdiff.analysis.findings import Verdict
from perfdiff.analysis.gathering import at_usual_pace, compared, comparison_context, gathered
from perfdiff.analysis.sums.levelling import levelled
from perfdiff.analysis.telling.headline import happened
from perfdiff.analysis.verdicts.proof import proved_by_counts
from perfdiff.analysis.verdicts.rules import Decision
from perfdiff.config import CompareConfig
from perfdiff.records.schema import Change, Side
from perfdiff.report.sentences.catalogue import say
from test_analysis_counts import counted

CONFIG = CompareConfig()


def said(slower: float, noise: float) -> tuple[str, str]:
    """Return why a function is guilty by counts that does three times the work in `slower` times the time, and its headline then."""
    visit = Made("visit", lambda side, inputs: 1e6, calls=lambda side, n: {"": 1})
    scan = Made("scan", lambda side, inputs: 40e3 * (slower if side is HEAD else 1.0), Change.CHANGED, lambda side, n: {"visit": 100})
    world = World((visit, scan), runs=10, noise=Noise(run=0.005, function=noise), plain=lambda side: 5e6 * (1.5 if side is HEAD else 1.0))

    def counts(name: str, side: Side, n: float, rng: np.random.Generator) -> Mapping[str, float]:
        return dict.fromkeys(("blocks", "loads", "stores"), 1e7 * (3 if name == "scan" and side is HEAD else 1))

    at = levelled(counted(world, counts, rounds=2), world.samples)
    ledger, samples = at_usual_pace(at.experiment, at.samples, CONFIG)
    found = gathered(comparison_context(at, ledger, CONFIG), [*study_all(at.experiment, samples, ledger, CONFIG)], None)
    case = next(each for each in found.cases if each.info.name == "scan")
    proof = proved_by_counts(case)
    assert proof is not None
    decision = Decision(Verdict.REGRESSION, proof.says, proof.grown)
    metrics, spots = compared(case, decision, found, samples)
    return say(proof.says), say(happened(case, decision, metrics, spots))


def test_a_function_whose_time_is_told_beside_its_counts_is_told_by_it() -> None:
    reason, sentence = said(3.0, noise=0.005)
    assert reason.startswith("it executes ")
    assert " became 120 µs a call (×3, " in sentence


def test_a_function_whose_time_does_not_tell_is_told_by_counts() -> None:
    reason, sentence = said(1.0, noise=1.0)
    assert reason.startswith("its time alone does not tell, but it executes ")
    assert sentence == f"`scan` changed: {reason}"
