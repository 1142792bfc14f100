"""Growth of a function's time per run, over made-up workloads."""

from __future__ import annotations

import pytest

from experiments import Made, Noise, Side, World, same
from perfdiff.analysis.compare.trend import over_runs
from perfdiff.analysis.findings import RUN
from perfdiff.analysis.sums.ledger import open_ledger
from perfdiff.config import CompareConfig
from perfdiff.models.annotation import CostClass
from perfdiff.records.schema import Change


def growth(cost_ns: float, power: float, noise: Noise, seed: int = 1) -> tuple[CostClass, CostClass]:
    """Return the classes of a function that is called once per input on base, input^power times on head."""
    made = Made(
        "f", same(cost_ns), change=Change.CHANGED, calls=lambda side, n: {"": n if side is Side.BASE else n**power / 1000 ** (power - 1)}
    )
    world = World((made,), sizes=(1000, 3000, 10_000, 30_000), runs=5, noise=noise, seed=seed)
    experiment = world.experiment()
    found = over_runs(experiment.functions[0], open_ledger(experiment), experiment.points, total=None, config=CompareConfig())
    assert found is not None
    assert found.metric == RUN
    assert found.base is not None
    assert found.head is not None
    return found.base.cost_class, found.head.cost_class


def test_more_calls_are_growth_of_the_run() -> None:
    assert growth(500.0, 2, Noise()) == (CostClass.LINEAR, CostClass.QUADRATIC)


@pytest.mark.statistical
def test_calls_shorter_than_a_step_of_the_clock_grow_as_their_number_does() -> None:
    wild = Noise(function=1.0)  # one interrupted call stands for many: sums differ between runs by factors
    assert {growth(2.0, 2, wild, seed) for seed in range(20)} == {(CostClass.LINEAR, CostClass.QUADRATIC)}
