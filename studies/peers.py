"""Print what Freud's own statistics program makes of the same logs as perfdiff: is the annotation right, and how long does it take?

The calls are those of the controlled table (`studies/support/synthetic.py`), a µs for each ns, written as Freud's logs. Freud's program
is built from its sources, which need R: `scripts/packages R:r-base-dev`, then `bench peers --source CHECKOUT`, or none to clone it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from perfdiff.models.annotation import Annotation
from perfdiff.models.fitting import fit
from perfdiff.models.freud_text import parse_freuds
from perfdiff.records import freud_log
from perfdiff.records.log_experiment import from_logs
from perfdiff.records.schema import Side
from studies.accuracy.classes import faults
from studies.support import figures
from studies.support.synthetic import ALL, Truth, calls

SOURCE = "https://github.com/usi-systems/freud"
R_HOME = "/usr/lib/R"
FUNCTION, METRIC = "f", "wall_ns"
RECORDS = 1000
SEEDS = 5
LONGEST_S = 120  # for one function, after which Freud's program is ended
TREE, TIME = "3", "0"  # arguments of Freud's program: make annotations, of times
LEAST_R2 = "0.9"  # as its own tests ask for
UNIT = 1000  # ns in a µs


def built(source: Path | None, room: Path) -> Path:
    """Build Freud's statistics program in a folder of its own, and return the folder."""
    checkout = room / "freud"
    if source is None:
        subprocess.run(["git", "clone", "-q", "--depth", "1", SOURCE, str(checkout)], check=True)
    else:
        shutil.copytree(source, checkout)
    folder = checkout / "freud-statistics"
    subprocess.run(["make", "-s", "-C", str(folder)], check=True, capture_output=True, text=True)
    return folder


def written(truth: Truth, seed: int, folder: Path) -> list[Path]:
    """Write the calls of a truth as logs, a file a run, and return these."""
    folder.mkdir(parents=True)
    table = calls(truth, RECORDS, seed)
    table = replace(table, metrics={METRIC: table.metrics[METRIC] * UNIT})
    paths = []
    for run in np.unique(table.run).tolist():
        paths.append(folder / f"idcm_{FUNCTION}_{run}.bin")
        freud_log.write(paths[-1], {FUNCTION: table.rows(np.flatnonzero(table.run == run))})
    return paths


def by_freud(program: Path, logs: Path, room: Path) -> tuple[Annotation | None, str, float]:
    """Return what Freud's program annotates, why it does not, and its seconds."""
    for name in ("ann", "eps", "plots"):
        (room / name).mkdir(parents=True)
    shutil.copy(program / "hpi.R", room)
    words = [str(program / "freud-statistics"), TREE, LEAST_R2, TIME, FUNCTION, f"{logs}/"]
    environment = os.environ | {"R_HOME": R_HOME}
    start = time.perf_counter()
    try:
        ended = subprocess.run(words, cwd=room, env=environment, capture_output=True, timeout=LONGEST_S, check=False)
    except subprocess.TimeoutExpired:
        return None, f"no answer in {LONGEST_S} s", LONGEST_S
    seconds = time.perf_counter() - start
    file = room / "ann" / f"{FUNCTION}.txt"
    text = file.read_text() if file.is_file() else ""
    if ended.returncode or not text.strip():
        return None, f"ended with {ended.returncode}" if ended.returncode else "no annotation", seconds
    (annotation,) = parse_freuds(text, FUNCTION)
    return annotation, "", seconds


def by_perfdiff(paths: list[Path]) -> tuple[Annotation, float]:
    """Return what perfdiff annotates of the same logs, reading included, and its seconds."""
    start = time.perf_counter()
    recorded = from_logs({Side.BASE: paths})
    table = recorded.samples(recorded.experiment.functions[0].id, Side.BASE)
    assert table is not None
    return fit(table, METRIC, seed=1, function=FUNCTION), time.perf_counter() - start


def scaled(truth: Truth) -> Truth:
    """Return the truth of costs that take a µs for each ns."""
    return replace(truth, slope=truth.slope * UNIT if truth.slope is not None else None)


def main() -> None:
    """Build Freud's program, ask both and print the table."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--source", type=Path, help="a checkout of Freud")
    options.add_argument("--seeds", type=int, default=SEEDS)
    chosen = options.parse_args()
    columns = ("truth", "perfdiff right", "seconds", "Freud right", "seconds", "Freud's first miss")
    with tempfile.TemporaryDirectory() as folder, figures.printed("Freud's statistics program on the same logs", *columns) as table:
        room = Path(folder)
        program = built(chosen.source, room)
        right = np.zeros(2, int)
        for place, truth in enumerate(ALL):
            seconds: tuple[list[float], list[float]] = ([], [])
            misses: list[str] = []
            here = np.zeros(2, int)
            for seed in range(1, chosen.seeds + 1):
                logs = room / f"logs-{place}-{seed}"
                paths = written(truth, seed, logs)
                own, own_s = by_perfdiff(paths)
                freuds, says, freuds_s = by_freud(program, logs, room / f"freud-{place}-{seed}")
                says = says or ", ".join(faults(scaled(truth), freuds)) if freuds else says
                here += [not faults(scaled(truth), own), freuds is not None and not says]
                misses += [says] if says else []
                seconds[0].append(own_s)
                seconds[1].append(freuds_s)
            right += here
            shown = [f"{count} of {chosen.seeds}" for count in here]
            middle = [f"{np.median(of):.2f}" for of in seconds]
            table.add(truth.name, shown[0], middle[0], shown[1], middle[1], misses[0] if misses else "")
        asked = len(ALL) * chosen.seeds
        table.remarks.append(
            f"Right: perfdiff {right[0]} of {asked}, Freud's program {right[1]} of {asked}. {RECORDS:,} calls in 20 logs each; Freud's "
            f"annotations with R² of {LEAST_R2} or more, as its own tests ask for. It names one of correlated features, "
            "at random and alone, which counts as wrong where that is the twin."
        )
