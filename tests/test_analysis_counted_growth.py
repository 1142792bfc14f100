"""Growth is told by counts where the time of calls that warm up hides it, and by nothing else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from experiments import BASE, HEAD, Made, World
from perfdiff.analysis.analysis import analyse
from perfdiff.config import CompareConfig
from perfdiff.records.schema import Change, SampleTable, Side
from perfdiff.report import wording

FIRST = {BASE: (2, 8.0), HEAD: (2, 8.0)}


def classes(bytes_per_n2: float, *, first: dict[Side, tuple[int, float]] = FIRST) -> str:
    """Return the growth that is told of a method whose calls take one time, and in head allocate with the square of n."""
    made = Made(
        "page",
        lambda side, inputs: 3e6 if side is HEAD else 1e6,
        change=Change.CHANGED,
        calls=lambda side, n: {"": 12},
        first=first,
    )
    world = World((made,), runs=10, kept=300)

    def counts(function: int, side: Side) -> SampleTable | None:
        table = world.samples(function, side)
        if table is None:
            return None
        n = table.values[:, 0]
        return replace(table, metrics={"heap_bytes": (bytes_per_n2 * n**2 if side is HEAD else n) + np.arange(len(table)) % 3})

    (finding,) = analyse(world.experiment(), world.samples, CompareConfig(), counts).functions
    return wording.classes(finding.metrics["self_ns"])


def test_bytes_that_take_a_part_of_the_time_tell_how_it_grows() -> None:
    assert classes(500.0) == "constant → quadratic (by counts)"


@pytest.mark.parametrize(("bytes_per_n2", "first"), [(0.01, FIRST), (500.0, {})], ids=["no part of the time", "no warm-up"])
def test_time_tells_by_itself_how_it_grows_else(bytes_per_n2: float, first: dict[Side, tuple[int, float]]) -> None:
    assert classes(bytes_per_n2, first=first) == "constant"
