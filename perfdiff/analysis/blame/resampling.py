"""Intervals of guilt: the whole attribution is repeated on blocks of runs drawn with replacement.

The interleaved block is the unit (Kalibera and Jones 2013), drawn with replacement, the same for both sides. Exact counts, links and the
order of netting stay what they are; times vary. Few blocks make percentile intervals too short: the percentiles are those that an interval
by Student's t would need (the expanded percentile interval of Hesterberg 2015, *What Teachers Should Know About the Bootstrap*, §3.3).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from perfdiff.analysis.blame.changes import CostFrame
from perfdiff.analysis.blame.guilt import Interval
from perfdiff.analysis.blame.parts import below, split
from perfdiff.analysis.sums.ledger import Book, Ledger
from perfdiff.records.arrays import Floats, Ints

DRAWS = 200
LEAST_BLOCKS = 3  # with two, all draws but one in two are a single block
# Own times below this share of a run stay as they are: they cannot move an interval that anybody reads.
NEGLIGIBLE = 1e-3


@dataclass(frozen=True, slots=True)
class Drawn:
    """Parts of the extra cost in every draw, each (draws, points, f): at equal inputs, of larger inputs, and of a call with its callees."""

    cost: Floats
    inputs: Floats
    a_call: Floats


def draw(ledger: Ledger, frames: Sequence[CostFrame], seed: int) -> Drawn | None:
    """Return the parts in each of `DRAWS` resamplings of the blocks, None if there are too few blocks."""
    rng = np.random.default_rng(seed)
    blocks = [_shared_blocks(*ledger.pair(point)) for point in ledger.points]
    if not blocks or min(len(shared) for shared in blocks) < LEAST_BLOCKS:
        return None
    places = rng.random((DRAWS, max(len(shared) for shared in blocks)))
    drawings = []
    for point, frame, shared in zip(ledger.points, frames, blocks, strict=True):
        chosen = (places[:, : len(shared)] * len(shared)).astype(np.int64)
        base, head = (_medians(book, shared, chosen, NEGLIGIBLE * ledger.cost_ns(point)) for book in ledger.pair(point))
        parts = split(base, head, frame)
        drawings.append((parts.cost, parts.inputs, below(parts.price, frame)))
    cost, inputs, a_call = (np.stack([drawing[place] for drawing in drawings], axis=1) for place in range(3))
    return Drawn(cost, inputs, a_call)


def _shared_blocks(before: Book, after: Book) -> Ints:
    return np.intersect1d(before.blocks, after.blocks)


def _medians(book: Book, shared: Ints, chosen: Ints, negligible_ns: float) -> Floats:
    """Return the medians over the chosen blocks of every function's own time, (draws, f); a block's runs count by their mean."""
    by_block = np.stack([book.self_ns[book.blocks == block].mean(axis=0) for block in shared])
    medians = np.repeat(np.median(book.self_ns, axis=0)[None, :], len(chosen), axis=0)
    varying = np.flatnonzero(np.max(by_block, axis=0) > negligible_ns)
    medians[:, varying] = np.median(by_block[:, varying][chosen], axis=1)
    return medians


def intervals(drawn: Mapping[int, Floats], blocks: int, confidence: float) -> dict[int, Interval]:
    """Return the interval of each suspect's guilt by its draws (draws, points)."""
    if not drawn:
        return {}
    from scipy.special import ndtr, stdtrit

    tail = float(ndtr(math.sqrt(blocks / (blocks - 1)) * stdtrit(blocks - 1, (1 - confidence) / 2)))
    interval_by_suspect = {}
    for suspect, ns in drawn.items():
        draws = ns.sum(axis=1)
        low, high = np.quantile(draws, [tail, 1 - tail]).tolist()
        interval_by_suspect[suspect] = Interval(np.quantile(ns, tail, axis=0), (low, high), draws)
    return interval_by_suspect


def how_often_first(by_suspect: Mapping[int, Interval]) -> dict[int, float]:
    """Return in which part of the draws each suspect's guilt is the largest of these suspects'."""
    if not by_suspect:
        return {}
    totals = np.stack([interval.draws for interval in by_suspect.values()])
    often = np.bincount(totals.argmax(axis=0), minlength=len(totals)) / totals.shape[1]
    return dict(zip(by_suspect, often.tolist(), strict=True))


def blocks_of(ledger: Ledger) -> int:
    """Return the least number of blocks that any point has."""
    return min((len(_shared_blocks(*ledger.pair(point))) for point in ledger.points), default=0)


def scaled(cell: Floats, blamed: Floats, drawn: Floats) -> Floats:
    """Return the draws (draws, points) of a blame that took the part `blamed` (points,) of a `cell` (points,), whose draws are `drawn`."""
    whole, part = np.abs(cell), np.abs(blamed)
    share = float(part.sum()) / float(whole.sum()) if whole.any() else 0.0
    return drawn * np.divide(part, whole, out=np.full_like(whole, share), where=whole > 0)
