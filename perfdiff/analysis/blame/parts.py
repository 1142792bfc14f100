"""The extra cost of every function in three parts: more calls, larger inputs, and more cost at equal inputs.

With n calls, mean self cost c, and m the factor by which base's cost moves with the inputs, base's code would cost
V = n_head · c_base · m on head's calls. V - S_base is *volume* (calls and inputs), S_head - V is *cost per input*.

No cost is known better than probes resolve times: every part has a *blur*, the resolution of a call times its calls.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from perfdiff.analysis.blame import recursion
from perfdiff.analysis.blame.changes import ChangeParts, CostFrame
from perfdiff.analysis.blame.moved import mostly_moved, net_by_callee, part_that_remains
from perfdiff.analysis.compare.compared import Comparison
from perfdiff.analysis.stats.inference import clear_shift
from perfdiff.analysis.sums.ledger import Book, Ledger
from perfdiff.models.clock import HIDDEN_NS, RESOLUTION_NS
from perfdiff.models.middle import median
from perfdiff.records.arrays import Bools, Floats
from perfdiff.records.schema import Change, FunctionInfo

# Keeps the call equations solvable where medians over runs make a recursion look endless.
DAMPING = 1e-9
ROUNDING = 1e-9  # of a cost: smaller parts are floating point, not inputs


@dataclass(frozen=True, slots=True)
class CostSplit:
    """Extra self cost as its two parts, and the price of a call more, each (…, f) ns; `per_call` is what a call costs on base."""

    cost: Floats
    inputs: Floats
    price: Floats
    per_call: Floats


def take_apart(point: int, ledger: Ledger, functions: Mapping[int, FunctionInfo], comparisons: Mapping[int, Comparison]) -> ChangeParts:
    """Return the parts of the extra cost at one point; `comparisons` are those of self time, by function."""
    before, after = ledger.pair(point)
    base, head = _median(before.self_ns), _median(after.self_ns)
    frame = _frame(point, ledger, functions, comparisons)
    parts = split(base, head, frame)
    resolution = np.where(parts.price > 0, RESOLUTION_NS, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        inputs_blur = np.where(parts.inputs != 0, np.abs(parts.inputs) * RESOLUTION_NS / parts.per_call, 0.0)
    outgoing = [_outgoing_calls(book) for book in (before, after)]
    a_call, a_call_blur = below(np.array([parts.price, resolution]), frame)
    with np.errstate(divide="ignore", invalid="ignore"):
        call_blur = np.where(a_call > 0, a_call_blur / a_call, 0.0)  # as a part of what a call takes, whatever limits that
    remains = part_that_remains(frame.moved, frame.priced(a_call), before, after)
    frame = replace(frame, net=frame.net * remains[:, None])
    balance = recursion.balance(frame.priced(a_call), _a_round(parts.price, a_call, frame), frame.rings, before, after)
    frame = replace(frame, net=frame.net * balance)
    unsure_calls = np.where(frame.one_sided, np.maximum(frame.calls_base, frame.calls_head), 0.0) + np.abs(outgoing[1] - outgoing[0])
    by_calls = frame.priced(a_call)
    return ChangeParts(
        base,
        head,
        _median(before.wall_ns),
        frame,
        parts.cost,
        parts.inputs,
        by_calls,
        np.minimum(np.abs(parts.cost), HIDDEN_NS * unsure_calls),
        inputs_blur,
        call_blur[:, None] * by_calls,
    )


def _frame(point: int, ledger: Ledger, functions: Mapping[int, FunctionInfo], comparisons: Mapping[int, Comparison]) -> CostFrame:
    before, after = ledger.pair(point)
    changes = [functions[function].change for function in ledger.ids]
    added = np.array([change is Change.ADDED for change in changes], dtype=bool)
    rates, more = _rate_changes(before, after, added)
    numbers = recursion.rings(before, after)
    more = recursion.by_ways(more, numbers, before, after)
    net = net_by_callee(more)
    return CostFrame(
        calls_base=_median(before.calls),
        calls_head=_median(after.calls),
        mix=np.array([comparisons[function].mix.get(point, 1.0) if function in comparisons else 1.0 for function in ledger.ids]),
        disjoint=np.array([function in comparisons and comparisons[function].disjoint for function in ledger.ids]),
        suspect=np.array([change.is_suspect for change in changes], dtype=bool),
        one_sided=np.array([change in (Change.ADDED, Change.REMOVED) for change in changes], dtype=bool),
        rates=rates,
        net=net,
        moved=mostly_moved(more, net),
        apart=np.array(
            [comparisons[function].apart.get(point, (0.0, 0.0)) if function in comparisons else (0.0, 0.0) for function in ledger.ids]
        )
        .reshape(-1, 2)
        .T,
        most=recursion.most(before, after, net, numbers),
        rings=numbers,
    )


def split(base: Floats, head: Floats, frame: CostFrame) -> CostSplit:
    """Split the difference of self costs (…, f) into cost at equal inputs, larger inputs and more calls."""
    calls_base, calls_head = frame.calls_base, frame.calls_head
    with np.errstate(divide="ignore", invalid="ignore"):
        per_call = np.where(calls_base > 0, base / calls_base, np.where(calls_head > 0, head / calls_head, 0.0))
        alike = (1 - frame.apart[0]) * per_call * np.where(calls_base > 0, frame.mix, 1.0)
        expected = np.where(frame.disjoint, head, calls_head * (alike + frame.apart[0] * frame.apart[1]))
    volume = expected - base
    cost = head - expected
    # An unchanged function that is called more often at less cost a call (or less often at more) has calls that its features
    # do not tell apart: only the sum of both parts means anything.
    opposed = ~frame.suspect & (volume * cost < 0)
    total = head - base
    volume = np.where(opposed, np.where(total * volume > 0, total, 0.0), volume)
    cost = np.where(opposed, np.where(total * cost > 0, total, 0.0), cost)
    # More work by a changed function that became cheaper costs what head pays for it: base's price for it was never paid.
    cheaper = frame.suspect & (volume > 0) & (cost < 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        paid = np.where(cheaper, head - head * base / expected, 0.0)
    volume, cost = np.where(cheaper, paid, volume), np.where(cheaper, total - paid, cost)
    volume, cost = np.where(frame.one_sided, 0.0, volume), np.where(frame.one_sided, total, cost)

    more_calls = calls_head - calls_base
    # Of calls with arguments that base never had, base's price says nothing.
    most = np.maximum(per_call, np.where(more_calls > 0, frame.apart[1], 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        price = np.where(more_calls != 0, np.clip(volume / more_calls, 0.0, most), 0.0)
    price = np.where(frame.one_sided, 0.0, np.nan_to_num(price))
    inputs = volume - price * more_calls
    return CostSplit(cost, np.where(np.abs(inputs) > ROUNDING * (base + head), inputs, 0.0), price, per_call)


def below(price: Floats, frame: CostFrame) -> Floats:
    """Return what a call of each function costs with all that it calls (…, f), at the `price` of each by itself (…, f)."""
    width = price.shape[-1]
    weights = np.linalg.solve((np.eye(width) - (1 - DAMPING) * frame.rates).T, price.reshape(math.prod(price.shape[:-1]), width).T).T
    return np.asarray(weights.reshape(price.shape), dtype=np.float64)


def _a_round(price: Floats, a_call: Floats, frame: CostFrame) -> Floats:
    """Return what a call of each function costs with all that it calls outside of its own recursion, (f,), at the `price` by itself."""
    outside = np.where(frame.rings[:, None] == frame.rings[None, :], 0.0, frame.rates)
    return np.asarray(price + a_call @ outside, dtype=np.float64)


def _median(sums: Floats) -> Floats:
    medians: Floats = np.median(sums, axis=0)
    return medians


def _outgoing_calls(book: Book) -> Floats:
    """Return how many calls of probed functions each function makes in a run, (f,)."""
    outgoing = np.zeros((len(book.runs), book.calls.shape[1] + 1))
    for (_, caller), calls in book.edges.items():
        outgoing[:, caller] += calls
    return _median(outgoing)[:-1]


def _rate_changes(before: Book, after: Book, added: Bools) -> tuple[Floats, Floats]:
    """Return base's rates of calls (f, f), and the calls that each caller makes more by calling more often, per callee, (f, f + 1).

    With rates R (calls of i by one call of j) and starts e, calls are n = R·n + e on either side, hence
    n_head - n_base = (I - R_base)⁻¹ (ΔR·n_head + Δe): every change of a rate has its exact share of the extra calls
    below it, recursion included. At a price per call that is W·ΔR·n_head with W = price·(I - R_base)⁻¹ (`below`).
    """
    width = len(added)
    rates = [_rates(book) for book in (before, after)]
    base, head = (_typical(rate, width) for rate in rates)
    ran_base, ran_head = before.calls.any(axis=0), after.calls.any(axis=0)
    # What a function that was there before did not do in base for want of calls is no change of its own.
    idle = np.append(~ran_base & ran_head & ~added, False)
    base[:, idle] = head[:, idle]
    moved = head != base
    moved[:, idle] = False
    for callee, caller in zip(*np.nonzero(moved), strict=True):
        sides = (rate.get((callee, caller), np.zeros(len(book.runs))) for rate, book in zip(rates, (before, after), strict=True))
        moved[callee, caller] = clear_shift(*sides)
    return base[:, :width], np.where(moved, head - base, 0.0) * np.append(_median(after.calls), 1.0)


def _rates(book: Book) -> dict[tuple[int, int], Floats]:
    """Return calls per call of the caller, (r,) by the columns of callee and caller; a run counts as one call of the start."""
    own = np.concatenate([book.calls, np.ones((len(book.runs), 1))], axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return {(to, by): np.where(own[:, by] > 0, calls / own[:, by], 0.0) for (to, by), calls in book.edges.items()}


def _typical(rates: Mapping[tuple[int, int], Floats], width: int) -> Floats:
    """Return the medians of rates over runs as a matrix (f, f + 1) [callee, caller]."""
    typical = np.zeros((width, width + 1))
    for pair, rate in rates.items():
        typical[pair] = median(rate)
    return typical
