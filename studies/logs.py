"""Print how long reading a binary log of Freud takes, by the shape of its samples: a million calls each."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np

from perfdiff.records import freud_log
from perfdiff.records.freud_blocks import Block, encode
from studies.support import figures

CALLS = 1_000_000
PIECE = 50_000  # calls encoded at once
SHAPES = ((3, 0), (10, 2), (30, 8))  # features and branches of a call


def block(features: int, branches: int, calls: int) -> Block:
    """Return calls of a function with so many features and branches, each branch executed three times a call."""
    rng = np.random.default_rng(1)
    return Block(
        function="f",
        uid=np.arange(calls),
        metrics=rng.integers(0, 1000, (calls, 6)).astype(np.float64),
        features=tuple(f"feature{i}" for i in range(features)),
        values=rng.integers(0, 1000, (calls, features)).astype(np.float64),
        category=np.zeros(features, bool),
        system=np.zeros(features, bool),
        branches=tuple(range(branches)),
        executed=np.full((calls, branches), 3.0),
        taken=rng.integers(0, 4, (calls, branches)).astype(np.float64),
        parent=np.empty(0, np.int64),
        child=np.empty(0, np.int64),
    )


def main() -> None:
    """Write and read a log of each shape."""
    with (
        figures.printed("Reading a log of Freud", "calls", "features", "branches", "MB", "seconds") as table,
        tempfile.TemporaryDirectory() as folder,
    ):
        path = Path(folder) / "idcm_f_1.bin"
        for features, branches in SHAPES:
            path.write_bytes(encode([block(features, branches, PIECE)] * (CALLS // PIECE)))
            start = time.process_time()
            calls = len(freud_log.read(path).tables["f"])
            taken = time.process_time() - start
            table.add(f"{calls:,}", features, branches, f"{path.stat().st_size / 1e6:,.0f}", f"{taken:.1f}")
        table.remarks.append("CPU time, one core.")
