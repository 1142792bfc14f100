"""Whole runs that a clock ends: they last as long whatever they get of a CPU, so that what they take tells nothing of the program.

What a program does with given inputs takes its CPU time, and what it waits for a CPU is added to that: how long runs last varies by no
less than what they compute. Where a clock ends runs, a longer wait for a CPU leaves as much less to compute, and how long they last hardly
varies.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from perfdiff.analysis.blame.attribution import Attribution
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.sums.ledger import Ledger
from perfdiff.analysis.sums.repeats import FEWEST_RUNS
from perfdiff.config import CompareConfig
from perfdiff.records.schema import Floats, Phase, Run


def points_ended_by_a_clock(runs: Sequence[Run]) -> frozenset[int]:
    """Return the points at which the plain runs of a side last as long whatever they have of a CPU."""
    by_side: dict[tuple[int, str], list[Run]] = {}
    for run in runs:
        if run.phase is Phase.PLAIN and not run.requests:
            by_side.setdefault((run.point, run.side.value), []).append(run)
    return frozenset(point for (point, _), alike in by_side.items() if _last_as_long(alike))


def repeating(attribution: Attribution, ledger: Ledger, config: CompareConfig) -> tuple[str, ...]:
    """Return the points at which a clock ends runs, or may, and calls do not tell whether what they repeat is slower.

    Larger inputs make each repetition take longer, and it does less for that or more; of unchanged functions alone nobody asks whether
    they are slower, as whole runs would show it. What head makes clearly fewer calls of, by a number that inputs do not give, may be why
    its runs take no longer.
    """
    is_changed = any(attribution.web.functions[function].change.is_suspect for function in attribution.web.ran)
    costs = zip(attribution.points, attribution.workload, attribution.run_ns, strict=True)
    effects = {point: ledger.judging(config, [point]).min_effect for point in ledger.points}
    grown = {point for point, more, run_ns in costs if more > effects[point] * run_ns}
    clocked = {point for point in ledger.clocked if point in grown or not is_changed}
    seeming = {point for point in ledger.points if point not in ledger.clocked and _repeats_less(ledger, point, 1 + effects[point])}
    return tuple(ledger.labels[point] for point in ledger.points if point in clocked | seeming)


def _repeats_less(ledger: Ledger, point: int, least: float) -> bool:
    """Return whether head makes fewer calls of what takes a good part of a run, where their number varies from run to run on both sides."""
    base, head = ledger.pair(point)
    if min(len(base.runs), len(head.runs)) < FEWEST_RUNS:
        return False
    costs = [float(np.median([run.cpu_ns for run in book.runs])) for book in (base, head)]
    most = np.all(
        [np.median(book.wall_ns, axis=0) > POLICY.clockwork_part * cost for book, cost in zip((base, head), costs, strict=True)], axis=0
    )
    low, middle, high = np.quantile(base.calls[:, most], [0, 0.5, 1], axis=0)
    fewest, fewer, most_of_fewer = np.quantile(head.calls[:, most], [0, 0.5, 1], axis=0)
    vary = (high > least * low) & (most_of_fewer > least * fewest)
    return bool(np.any(vary & (low > fewer * least) & (middle > most_of_fewer * least)))


def _last_as_long(runs: Sequence[Run]) -> bool:
    """Return whether most runs keep a CPU busy whenever they have one, and last as long whatever they have of it."""
    if len(runs) < POLICY.clockwork_runs:
        return False
    cpu_ns, wall_ns, delay_ns = np.array([[run.cpu_ns, run.wall_ns, run.delay_ns] for run in runs]).T
    if not delay_ns.any() or np.median(np.abs(wall_ns - cpu_ns) / (wall_ns + delay_ns)) > POLICY.waits:
        return False
    lasting, computed = _deviation(wall_ns + delay_ns), _deviation(cpu_ns)
    return lasting < POLICY.clockwork * computed and computed > POLICY.clockwork_noise * float(np.median(cpu_ns))


def _deviation(values: Floats) -> float:
    """Return by how much most values (n,) differ from their median at most: a few runs are disturbed by more."""
    return float(np.quantile(np.abs(values - np.median(values)), POLICY.clockwork_most))
