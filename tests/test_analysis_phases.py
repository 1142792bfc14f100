"""Calls while a function warms up are told from later ones, and each compared with its like."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from experiments import BASE, HEAD, Columns, Made, World
from perfdiff import units
from perfdiff.analysis.analysis import analyse
from perfdiff.analysis.annotations.annotating import annotate
from perfdiff.analysis.compare import phases
from perfdiff.analysis.compare.phases import with_phase, with_phase_as_learnt
from perfdiff.analysis.findings import FunctionFinding, Verdict
from perfdiff.analysis.stats.rows import without_features
from perfdiff.config import CompareConfig
from perfdiff.models import language
from perfdiff.models.annotation import PHASE
from perfdiff.models.observations import columns_of
from perfdiff.records.schema import Change, SampleTable, Side
from perfdiff.report import wording
from perfdiff.report.sentences.catalogue import say


def sized(side: Side, n: float, count: int, rng: np.random.Generator) -> Columns:
    return {"n": rng.integers(1, int(n), count).astype(float)}


def found(first: Mapping[Side, tuple[int, float]], *, slower: float = 1.0) -> FunctionFinding:
    """Return what is found of a changed function whose first calls cost more, and that is slower in head."""
    made = Made(
        "render",
        lambda side, inputs: (3000 + 20 * inputs["n"]) * (slower if side is HEAD else 1.0),
        change=Change.CHANGED,
        calls=lambda side, n: {"": 300},
        inputs=sized,
        first=first,
    )
    world = World((made,), runs=10, kept=300)
    (finding,) = analyse(world.experiment(), world.samples, CompareConfig()).functions
    return finding


def test_how_long_both_sides_warm_up_is_told() -> None:
    finding = found({BASE: (100, 8.0), HEAD: (100, 8.0)})
    assert finding.verdict is Verdict.UNCHANGED
    assert {side: warm.calls for side, warm in finding.warm_up.items()} == pytest.approx({BASE: 100, HEAD: 100}, abs=3)
    assert finding.warm_up[BASE].factor == pytest.approx(8.0, rel=0.1)


def test_a_slow_down_is_seen_through_the_warm_up() -> None:
    finding = found({BASE: (150, 8.0), HEAD: (150, 8.0)}, slower=1.3)
    assert finding.verdict is Verdict.REGRESSION
    ratio = finding.metrics["self_ns"].ratio
    assert ratio is not None
    assert ratio.low < 1.3 < ratio.high
    assert ratio.high / ratio.low < 1.15


def test_a_warm_up_that_lasts_longer_is_a_regression_of_first_calls() -> None:
    finding = found({BASE: (30, 8.0), HEAD: (150, 8.0)})
    assert finding.verdict is Verdict.REGRESSION
    assert finding.metrics["self_ns"].stratum in ("the warm-up's first 150 calls", "mean of all calls")


def test_the_first_sentence_the_cost_and_the_ratio_are_of_the_same_calls() -> None:
    finding = found({BASE: (150, 8.0), HEAD: (150, 8.0)}, slower=1.3)
    for metric in finding.metrics.values():
        if metric.typical is not None and metric.ratio is not None and metric.metric == "wall_ns":
            base, head = wording.both_costs(metric)
            assert base is not None
            assert head == base * metric.ratio.value
            assert f"{units.duration(base)} became {units.duration(head)} a call (" in say(finding.headline)
            assert f"{wording.cost_at(metric)}, " in say(finding.headline)
            return
    pytest.fail("no typical call is told")


def test_functions_without_warm_up_have_no_phases() -> None:
    finding = found({})
    assert not finding.warm_up
    annotation = finding.metrics["self_ns"].base
    assert annotation is not None
    assert annotation.features == ("n",)


def warming() -> SampleTable:
    """Return calls that cost eight times as much in the first third of each run."""
    made = Made(
        "render", lambda side, inputs: 3000 + 20 * inputs["n"], calls=lambda side, n: {"": 300}, inputs=sized, first={BASE: (100, 8.0)}
    )
    table = World((made,), runs=10, kept=300).samples(1, BASE)
    assert table is not None
    return table


def test_an_annotation_has_a_scope_of_each_phase_and_is_written_and_read() -> None:
    (annotation,) = annotate("render", warming(), ["self_ns"], seed=1)
    assert PHASE in annotation.features
    slopes = sorted(term.coefficient for scope in annotation.scopes for term in scope.terms if term.factors == (("n", "x"),))
    assert slopes == pytest.approx([20, 160], rel=0.1)
    assert language.parse(language.print_annotation(annotation)).features == annotation.features


def test_first_calls_are_those_that_the_annotation_tells_of_however_few_runs_there_are() -> None:
    """Two runs show no warm-up, yet their first calls are as dear as the annotation says of first ones."""
    (annotation,) = annotate("render", warming(), ["self_ns"], seed=1)
    annotation = language.parse(language.print_annotation(annotation))
    calls = warming()
    few = calls.rows(np.flatnonzero(np.isin(calls.run, np.unique(calls.run)[:2])))
    assert not with_phase(few, always=True).values[:, 0].any()
    seen = with_phase_as_learnt(few, annotation)
    assert (seen.values[:, 0] == 1).mean() == pytest.approx(1 / 3, abs=0.02)
    expected = annotation.predict(columns_of(seen))
    assert np.median(np.abs(np.log(seen.metrics["self_ns"] / expected))) < 0.1


@pytest.mark.parametrize("calls", [1, 2, 31, 1500, 2_000_000])
def test_how_many_calls_a_phase_has_stands_in_its_label(calls: int) -> None:
    assert phases._calls_of(phases._label(calls)) == calls
    assert phases._calls_of("cold") == 0


def test_calls_that_do_not_warm_up_are_all_steady_where_an_annotation_asks() -> None:
    calls = without_features(with_phase(warming(), always=True), {PHASE})
    steady = with_phase(calls.rows(np.flatnonzero(calls.call > 150)), always=True)
    assert steady.features[0].name == PHASE
    assert not steady.values[:, 0].any()


def test_first_calls_that_only_allocate_more_have_a_scope_of_their_own() -> None:
    """As where the first call of a worker loads what later ones find there."""
    made = Made("report", lambda side, inputs: 3000 + 20 * inputs["n"], calls=lambda side, n: {"": 7}, inputs=sized)
    table = World((made,), runs=20, kept=7).samples(1, BASE)
    assert table is not None
    size = table.values[:, [feature.name for feature in table.features].index("n")]
    loading = np.where(table.call == table.call.min(), 150_000.0, 0.0)
    table = replace(table, metrics={**table.metrics, "alloc_bytes": 5000 + 100 * size + loading})
    assert PHASE in [feature.name for feature in with_phase(table).features]
    (annotation,) = annotate("report", table, ["alloc_bytes"], seed=1)
    expected = annotation.predict(columns_of(with_phase_as_learnt(table, annotation)))
    assert expected == pytest.approx(table.metrics["alloc_bytes"], rel=0.05)
