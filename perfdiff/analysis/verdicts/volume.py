"""Runs that take longer because there is more to do: larger inputs and more calls, which are no function's regression."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from perfdiff.analysis.blame.guilt import Attribution
from perfdiff.analysis.claims import Claim, claim
from perfdiff.analysis.compare.compared import Comparison
from perfdiff.analysis.policy import POLICY
from perfdiff.analysis.sums.ledger import Ledger
from perfdiff.analysis.sums.repeats import FEWEST_RUNS
from perfdiff.config import CompareConfig


def volume_note(attribution: Attribution, comparisons: Mapping[int, Comparison], ledger: Ledger, config: CompareConfig) -> Iterator[Claim]:
    """Yield a note where most of the extra time of whole runs is that of larger inputs or more calls which no change hands on.

    `comparisons` are those of self time by function.
    """
    extra = np.array([float(part.head.sum() - part.base.sum()) for part in attribution.parts])
    grown = attribution.workload
    effects = np.array([ledger.judging(config, [point]).min_effect for point in attribution.points])
    is_material = np.any(grown > effects * attribution.run_ns)
    if not is_material or extra.sum() <= 0 or grown.sum() <= POLICY.most * extra.sum():
        return
    inputs = np.sum([part.inputs for part in attribution.parts], axis=0)
    place = int(np.argmax(inputs))
    function = ledger.ids[place]
    name, seen = attribution.web.functions[function].name, comparisons.get(function)
    by = claim("more-calls")
    if inputs[place] > 0 and seen is not None:
        by = claim("larger-inputs-of", inputs=tuple(feature.name for feature in seen.grown), name=name, is_comparable=not seen.disjoint)
    yield claim("workload-grown", grown_ns=float(grown.sum()), extra_ns=float(extra.sum()), by=by)


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
