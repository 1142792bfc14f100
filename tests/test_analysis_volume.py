"""Runs that take longer for want of nothing but work: the report says so beside its answer."""

from __future__ import annotations

import numpy as np

from experiments import BASE, Columns, Made, Noise, World, same
from perfdiff.analysis.analysis import analyse
from perfdiff.analysis.findings import Findings, Verdict
from perfdiff.config import CompareConfig
from perfdiff.records.schema import Change, Side
from perfdiff.report import document
from perfdiff.report.blocks import Sentence
from perfdiff.report.sentences.catalogue import noted


def findings(grown: float, *, slower: float = 1.0) -> Findings:
    """Return what is told where `work` gets inputs `grown` times as large from the workload, and the changed `make` is `slower`."""

    def inputs(side: Side, n: float, count: int, rng: np.random.Generator) -> Columns:
        return {"size": rng.uniform(0.5, 1.5, count) * n * (1.0 if side == BASE else grown)}

    alloc = dict.fromkeys(Side, 640.0)
    work = Made("work", same(lambda x: 100 * x["size"]), calls=lambda side, n: {"": 20}, inputs=inputs, alloc=alloc)
    make = Made("make", lambda side, x: 2e6 if side == BASE else 2e6 * slower, Change.CHANGED)
    world = World((work, make))
    return analyse(world.experiment(), world.samples, CompareConfig())


def said(found: Findings) -> list[str]:
    return [block.text for block in document.build(found).answer if isinstance(block, Sentence)]


def test_larger_inputs_that_make_most_of_the_time_are_told_beside_a_small_regression() -> None:
    found = findings(2.0, slower=1.6)
    assert found.verdict is Verdict.REGRESSION
    first, second = said(found)
    assert first.startswith("Regression: `make`")
    assert second.startswith("Most of what runs take longer, ")
    assert "larger inputs (size), mostly of `work`: not a higher cost per input" in second
    assert document.build(found).notes is None


def test_a_regression_that_makes_most_of_the_time_stands_alone() -> None:
    assert len(said(findings(1.0, slower=1.6))) == 1
    assert len(said(findings(1.02, slower=4.0))) == 1


def test_a_function_that_was_not_compared_shows_no_ratio_of_another_metric() -> None:
    found = findings(1000.0)
    overview = document.build(found).overview
    (row,) = [row for row in overview.rows if "work" in [cell.text for cell in row]]
    assert not any("×1, exact" in cell.text for cell in row)


def test_runs_that_became_faster_take_no_longer_for_their_inputs() -> None:
    """`work` gets larger inputs, but the changed `make` saves more."""
    work = Made(
        "work",
        same(lambda x: 3 * x["size"]),
        calls=lambda side, n: {"": 200},
        inputs=lambda side, n, count, rng: {"size": np.exp(rng.normal(0, 0.3, count)) * n * (1.0 if side == BASE else 1.6)},
    )
    make = Made("make", lambda side, x: 6e4 if side == BASE else 2e4, Change.CHANGED, calls=lambda side, n: {"": 60})
    world = World((work, make), runs=10, noise=Noise(run=0.01))
    found = analyse(world.experiment(), world.samples, CompareConfig())
    assert found.verdict is Verdict.IMPROVEMENT
    assert not any(note.slug == "workload-grown" for note in map(noted, found.notes))
