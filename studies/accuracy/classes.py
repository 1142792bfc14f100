"""The controlled table: is the annotation right, how long does it take, and is it the same on every run?

Right means the class, the features (or shown twins) it is put down to, the number of scopes of modes, and a slope within 5 %.
"""

from __future__ import annotations

import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from perfdiff.models.annotation import Annotation, CostClass
from perfdiff.models.fitting import fit
from perfdiff.report import annotations as language
from studies.support import figures
from studies.support.sizes import Size, listed, say
from studies.support.synthetic import ALL, Truth, calls

METRIC = "wall_ns"
RECORDS = (150, 1_000, 10_000, 100_000)
SEEDS = {
    Size.QUICK: {150: 2, 1_000: 2, 10_000: 1, 100_000: 0},
    Size.SHORT: {150: 20, 1_000: 20, 10_000: 10, 100_000: 2},
    Size.LONG: {150: 50, 1_000: 50, 10_000: 20, 100_000: 5},
    Size.FULL: {150: 100, 1_000: 100, 10_000: 100, 100_000: 10},
}
BARS_S = {1_000: 0.05, 10_000: 0.3}
MANY, MANY_BAR_S = "30 features", 1.0
TOLERANCE = 0.05  # of a slope
FIT_SEED = 1


def faults(truth: Truth, annotation: Annotation) -> list[str]:
    """Return what is wrong with an annotation."""
    found = []
    if annotation.cost_class.value != truth.right:
        found.append(f"class {annotation.cost_class.value}")
    used = {name for scope in annotation.scopes for term in scope.terms for name, _ in term.factors}
    shown = used | {twin for name in used for twin in annotation.twins.get(name, ())}
    if not truth.features <= shown:
        found.append(f"put down to {', '.join(sorted(used)) or 'nothing'}")
    strangers = {name for name in used - truth.features if not truth.features & set(annotation.twins.get(name, ()))}
    if strangers:
        found.append(f"put down to {', '.join(sorted(strangers))} as well")
    if truth.scopes is not None and len(annotation.scopes) != truth.scopes:
        found.append(f"{len(annotation.scopes)} scopes")
    if truth.slope is not None and annotation.cost_class is CostClass.LINEAR:
        slope = sum(term.coefficient for scope in annotation.scopes for term in scope.terms if len(term.factors) == 1)
        if abs(slope / truth.slope - 1) > TOLERANCE:
            found.append(f"slope {slope:.3g} instead of {truth.slope:.3g}")
    return found


def text(name: str, records: int, seed: int) -> str:
    """Return the annotation of calls as text."""
    truth = next(truth for truth in ALL if truth.name == name)
    return language.text([fit(calls(truth, records, seed), METRIC, seed=FIT_SEED, function="f")])


def bar_s(truth: Truth, records: int) -> float | None:
    """Return the time that a function may take."""
    return MANY_BAR_S if truth.name == MANY and records == 10_000 else BARS_S.get(records)


def run(size: Size, room: Path) -> None:
    """Print the table."""
    fit(calls(ALL[0], 150, 0), METRIC, seed=FIT_SEED)  # imports are no part of the times
    columns = ("records", "truth", "right", "seconds, median", "slowest", "bar", "the same bytes", "wrong")
    misses: list[str] = []
    with (
        figures.printed("(b) The controlled table", *columns) as table,
        ProcessPoolExecutor(1, mp_context=get_context("spawn")) as elsewhere,  # with hashes of its own
    ):
        for records in RECORDS:
            for truth in ALL:
                seeds = range(1, SEEDS[size][records] + 1)
                seconds, wrong, same = [], [], True
                for seed in seeds:
                    tabled = calls(truth, records, seed)
                    start = time.process_time()
                    annotation = fit(tabled, METRIC, seed=FIT_SEED, function="f")
                    seconds.append(time.process_time() - start)
                    wrong += [f"seed {seed}: {fault}" for fault in (", ".join(faults(truth, annotation)),) if fault]
                    if seed == 1:
                        same = language.text([annotation]) == elsewhere.submit(text, truth.name, records, seed).result()
                if not seconds:
                    continue
                limit = bar_s(truth, records)
                middle, right = float(np.median(seconds)), f"{len(seconds) - len(wrong)} of {len(seconds)}"
                judged = f"{limit} s, {figures.against(middle, limit)}" if limit else ""
                shown = f"{middle:.3f}", f"{max(seconds):.3f}", judged, "yes" if same else "**no**", wrong[0] if wrong else ""
                table.add(f"{records:,}", truth.name, right, *shown)
                say(f"{records:,} {truth.name}: {right}, {middle:.3f} s {wrong}")
                misses += [f"{truth.name} at {records:,}: {right} right"] * bool(wrong)
                misses += [f"{truth.name} at {records:,}: {middle:.3f} s"] * (limit is not None and middle > limit)
                misses += [f"{truth.name} at {records:,}: other bytes in another process"] * (not same)
        table.remarks += [
            "CPU time of one core, of the fit alone; each seed makes other calls. "
            "`perfdiff annotate` learns from at most 10,000 of a function's calls.",
            listed("Missed", misses),
        ]
