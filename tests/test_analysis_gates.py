"""Every demand on a regression decides some cases by itself; one that never does would only be in the way."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from experiments import HEAD, Made, World, same
from perfdiff.analysis.analysis import analyse
from perfdiff.analysis.compare.compared import Comparison, StratumContrast
from perfdiff.analysis.compare.judgement import Direction, judge, smallest
from perfdiff.analysis.compare.ratios import as_ratio, with_hidden
from perfdiff.analysis.stats.inference import contrast
from perfdiff.analysis.stats.runs import Group, PointRuns
from perfdiff.config import CompareConfig
from perfdiff.records.schema import Change
from perfdiff.report.sentences.catalogue import say

CONFIG = CompareConfig()
FAMILY = 20  # changed functions, of which this one alone differs


def comparison(rng: np.random.Generator) -> tuple[Comparison, float]:
    """Return what runs of a function show, of a random number, noise, effect, length and share of a run; and its q-value."""
    runs, noise, cost_ns = int(rng.integers(4, 21)), 10 ** rng.uniform(-2, -0.3), 10 ** rng.uniform(0.7, 4)
    effect = rng.choice([0.0, 0.08, 0.2, 0.5])
    blocks = np.arange(runs)
    seen = contrast([PointRuns(Group(rng.normal(0, noise, runs), blocks), Group(rng.normal(effect, noise, runs), blocks))])
    assert seen is not None
    worst = StratumContrast("", narrows=False, contrast=seen, material=bool(rng.random() < 0.9))
    ratio = with_hidden(as_ratio(seen, CONFIG.confidence), cost_ns)
    found = Comparison(1, "self_ns", None, (worst,), worst, None, ratio, seen.p, 0.0, {}, None, (), disjoint=False)
    return found, min(1.0, FAMILY * seen.p_beyond(smallest(CONFIG, suspect=True)))


@pytest.mark.statistical
def test_every_gate_decides_some_cases(capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(5)
    decided: Counter[str] = Counter()
    for _ in range(3000):
        found, q = comparison(rng)
        resolved = bool(rng.random() < 0.9)
        if judge(found, q, CONFIG, resolved=resolved, suspect=True).direction is not Direction.NONE:
            decided["none: it is told"] += 1
            continue
        assert found.worst is not None
        assert found.ratio is not None
        wide = replace(found.ratio, low=math.inf) if found.ratio.value > 1 else replace(found.ratio, high=0.0)
        material = replace(found, worst=replace(found.worst, material=True))
        without = {
            "interval": judge(replace(found, ratio=wide), q, CONFIG, resolved=resolved, suspect=True),
            "false discovery rate": judge(found, 0.0, CONFIG, resolved=resolved, suspect=True),
            "evidence": judge(replace(found, p=0.0), q, CONFIG, resolved=resolved, suspect=True),
            "clock": judge(found, q, CONFIG, resolved=True, suspect=True),
            "share of a run": judge(material, q, CONFIG, resolved=resolved, suspect=True),
        }
        decided.update(gate for gate, judgement in without.items() if judgement.direction is not Direction.NONE)
    with capsys.disabled():
        print(f"\nof 3,000 simulated comparisons decided by one gate alone: {dict(decided)}")
    assert min(decided[gate] for gate in ("interval", "false discovery rate", "evidence", "clock", "share of a run")) > 0


def test_own_times_of_changed_functions_are_tested_against_the_smallest_effect_not_against_none() -> None:
    blocks = np.arange(10)
    noise = np.linspace(-0.002, 0.002, 10)
    seen = contrast([PointRuns(Group(noise, blocks), Group(noise[::-1] + math.log(1.04), blocks))])
    assert seen is not None
    assert seen.p < 1e-6
    assert seen.p_beyond(math.log(1.05)) == 1.0
    assert seen.p_beyond(math.log(1.02)) < 1e-6


def test_what_is_no_material_share_of_a_run_is_not_tested() -> None:
    """A changed function of 0.008 % of a run is half as slow again: no claim on it takes certainty from others."""
    tiny = Made("tiny", lambda side, inputs: 300.0 if side is HEAD else 200.0, Change.CHANGED, calls=lambda side, n: {"main": 20})
    large = Made("large", same(1e6), calls=lambda side, n: {"main": 50})
    world = World((Made("main", same(2e4)), large, tiny), runs=10)
    found = {each.info.name: each for each in analyse(world.experiment(), world.samples, CompareConfig()).functions}
    assert found["tiny"].metrics["self_ns"].q == 1.0
    assert say(found["tiny"].reason) == "its own cost is less than 1 % of a run: no difference of a call matters"
    assert found["large"].metrics["self_ns"].q < 1.0
