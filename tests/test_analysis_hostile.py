"""Whatever a recording holds, the analysis answers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments import BASE, Made, Noise, World, same
from perfdiff.analysis.analysis import analyse
from perfdiff.config import CompareConfig
from perfdiff.records.schema import Change, SampleTable, Side

FEATURE = st.sampled_from([0.0, -1.0, 3.0, 1e9, 1e45, -1e45, 1e-300, 1e300, np.nan, np.inf, -np.inf])
COST = st.sampled_from([0.0, 1e-3, 1.0, 40.0, 1e3, 1e9, 2.0**62])
DAMAGE = st.sampled_from(["", "", "absent", "half absent", "zero", "negative"])


@st.composite
def functions(draw: st.DrawFn) -> tuple[Made, ...]:
    """Return main and up to three functions with any costs and inputs, on either side or both, tied by calls and data."""
    made = [Made("main", same(5e4))]
    for number in range(draw(st.integers(1, 3))):
        costs = {side: draw(COST) for side in Side}
        values = {side: draw(st.lists(FEATURE, min_size=1, max_size=4)) for side in Side}
        counts = {side: draw(st.sampled_from([0, 1, 50])) for side in Side}
        counts[BASE] = counts[BASE] or 1 - min(counts.values())
        caller = draw(st.sampled_from([each.name for each in made] + [""]))
        ties = [draw(st.sampled_from([frozenset(), frozenset({"s.a"})])) for _ in range(2)]
        made.append(
            Made(
                f"f{number}",
                lambda side, inputs, costs=costs: costs[side],
                draw(st.sampled_from(Change)),
                lambda side, n, caller=caller, counts=counts: {caller: counts[side]},
                lambda side, n, count, rng, values=values: {"x": rng.choice(values[side], count), "n": np.full(count, n)},
                reads=ties[0],
                writes=ties[1],
            )
        )
    return tuple(made)


@settings(max_examples=60, derandomize=True)
@given(
    functions(),
    st.lists(st.sampled_from([-2.0, 0.0, 1.0, 10.0, 3000.0]), min_size=1, max_size=3, unique=True),
    st.integers(1, 5),
    st.sampled_from([1, 30]),
    DAMAGE,
)
def test_any_experiment_is_analysed_without_a_warning(
    made: tuple[Made, ...], sizes: list[float], runs: int, kept: int, damage: str
) -> None:
    world = World(made, sizes=tuple(sizes), runs=runs, noise=Noise(step_ns=10.0), kept=kept)

    def samples(function: int, side: Side) -> SampleTable | None:
        table = world.samples(function, side)
        return table and replace(table, metrics={name: damaged(values, damage) for name, values in table.metrics.items()})

    found = analyse(world.experiment(), samples, CompareConfig())
    assert len(found.functions) == len(made)


def damaged(values: np.ndarray, how: str) -> np.ndarray:
    match how:
        case "absent":
            return np.full(len(values), np.nan)
        case "half absent":
            return np.where(np.arange(len(values)) % 2 == 0, values, np.nan)
        case "zero":
            return np.zeros(len(values))
        case "negative":
            return -values
        case _:
            return values
