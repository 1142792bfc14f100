"""Clusters: places whose counts vary together linearly, each group with what represents it (trend-prof §4.1)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from perfdiff.records.arrays import Bools, Floats, Ints

ALPHA = 0.02  # the paper's: members of a cluster fit each other with R² > 1 - 4α(1 - α) = 0.92
LEAST_SD = 10.0  # the paper's: counts that vary less hold little information

# In programs that count little, ten is much: nothing is little that makes up more than this share of how much whole runs vary. Twenty
# such places together make up the 2 % from which the paper calls a cluster costly.
LITTLE_SHARE = 1 / 1000

# A feature that fewer of the points know cannot represent places that ran in all of them.
KNOWN_SHARE = 1 / 2
FEWEST_KNOWN = 3  # two points fit any line

# Correlations are made in single precision, which is right to about 1e-6, and again in double precision this near the threshold.
DOUBTFUL = 1e-4
# Places at once: so that what is held beside the counts stays small (at 1,000 points, 8 MB), and products of matrices stay fast.
BLOCK = 1024

_Singles = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Clustering:
    """Clusters of places: `representatives` are a feature's name or a place's index each, features first, then places by falling variance.

    `members` are the indices of each cluster's places, rising; its representative is among them where that is a place, and a feature's
    may be empty. A place may be a member of several. `constant` are the places that never vary, or too little. `twins` are the features
    that fit one before them, by name, with the name of that one: they represent nothing.
    """

    representatives: tuple[str | int, ...]
    members: tuple[Ints, ...]
    constant: Ints
    twins: Mapping[str, str]


def least_variation(counts: Floats) -> float:
    """Return the standard deviation below which counts of places (places, points) vary too little to be told of.

    The paper's ten, or less where the program as a whole counts little: `LITTLE_SHARE` of the standard deviation of whole runs.
    """
    totals = counts.sum(axis=0)
    return min(LEAST_SD, LITTLE_SHARE * float(totals.std(ddof=1))) if len(totals) > 1 else LEAST_SD


def clustered(features: Mapping[str, Floats], counts: Floats, *, alpha: float = ALPHA, least_sd: float = LEAST_SD) -> Clustering:
    """Return the clusters of places by their `counts` (places, points), with the features (points,) as the first representatives.

    A place becomes a member of each cluster whose representative it fits linearly with R² > 1 - alpha; one that fits none represents
    a new one. Places come by falling variance, equals by their index, so that a place that represents varies more than its members.
    Places with a standard deviation below `least_sd` are apart, as are those that do not vary at all. NaN in a feature is a point where
    it is not known: R² is over the others. Beside the counts this holds them once more, in single precision.
    """
    if not 0 < alpha < 0.5:
        raise ValueError(f"alpha must lie between 0 and 0.5, not at {alpha}")
    deviations = _deviations(counts)
    varies = (deviations >= least_sd) & (deviations > 0)
    order = np.flatnonzero(varies)
    order = order[np.argsort(-deviations[order], kind="stable")]
    firsts, copies = _distinct(counts, order)
    named, twins = _representing(features, alpha)
    by_feature = np.array([_fits(column, counts, firsts, alpha) for column in named.values()], dtype=bool).reshape(len(named), len(firsts))
    own_clusters = _Clusters(counts, firsts, alpha).grown(np.asarray(by_feature.any(axis=0)))
    groups = [np.flatnonzero(row) for row in by_feature] + [members for _, members in own_clusters]
    return Clustering(
        (*named, *(int(firsts[representative]) for representative, _ in own_clusters)),
        tuple(np.sort(order[np.isin(copies, group)]) for group in groups),
        np.flatnonzero(~varies),
        twins,
    )


def _blocks(length: int) -> Iterator[slice]:
    return (slice(start, start + BLOCK) for start in range(0, length, BLOCK))


def _deviations(counts: Floats) -> Floats:
    """Return the standard deviation of each place, with the paper's bias correction; 0 where all counts are equal."""
    if counts.shape[1] < 2:
        return np.zeros(len(counts))
    deviations = np.empty(len(counts))
    for block in _blocks(len(counts)):
        rows = counts[block]
        deviations[block] = np.where(np.ptp(rows, axis=1) > 0, rows.std(axis=1, ddof=1), 0.0)
    return deviations


def _distinct(counts: Floats, order: Ints) -> tuple[Ints, Ints]:
    """Return the first place of each sequence of counts among `order`, and of each of `order` which of these it equals, by position.

    Statements that always run together have the same counts: programs have several times fewer sequences than places.
    """
    seen: dict[bytes, int] = {}
    firsts: list[int] = []
    copies = np.empty(len(order), dtype=np.int64)
    for position, place in enumerate(order):
        digest = hashlib.blake2b(np.ascontiguousarray(counts[place]).tobytes(), digest_size=16).digest()
        if digest not in seen:
            seen[digest] = len(firsts)
            firsts.append(place)
        copies[position] = seen[digest]
    return np.array(firsts, dtype=np.int64), copies


def _representing(features: Mapping[str, Floats], alpha: float) -> tuple[dict[str, Floats], dict[str, str]]:
    """Return the features that represent a cluster, and those that fit one before them, with its name (§5.3: nodes and edges)."""
    named: dict[str, Floats] = {}
    twins: dict[str, str] = {}
    for name, column in features.items():
        finite = np.isfinite(column)
        if finite.sum() < max(FEWEST_KNOWN, KNOWN_SHARE * len(column)) or np.ptp(column[finite]) == 0:
            continue
        twin = next((other for other, first in named.items() if _is_fit(first, column, alpha)), None)
        if twin is None:
            named[name] = column
        else:
            twins[name] = twin
    return named, twins


def _is_fit(first: Floats, second: Floats, alpha: float) -> bool:
    both_finite = np.isfinite(first) & np.isfinite(second)
    if both_finite.sum() < max(FEWEST_KNOWN, KNOWN_SHARE * len(first)):
        return False
    return bool(_fits(np.where(both_finite, first, np.nan), second[None, :], np.array([0]), alpha)[0])


def _fits(feature: Floats, counts: Floats, places: Ints, alpha: float) -> Bools:
    """Return which places fit a feature linearly with R² > 1 - alpha, over the points where it is known."""
    finite = np.isfinite(feature)
    unit = _unit(feature[finite][None, :])[0]
    fitting = np.zeros(len(places), dtype=bool)
    for block in _blocks(len(places)):
        rows = counts[places[block]][:, finite]
        fitting[block] = (_unit(rows) @ unit) ** 2 > 1 - alpha
    return fitting


def _unit(rows: Floats) -> Floats:
    """Return rows less their means, at length 1; all zeros where a row does not vary. A product of two is their correlation."""
    centred = rows - rows.mean(axis=1, keepdims=True)
    lengths = np.sqrt(np.einsum("ij,ij->i", centred, centred))
    varies = np.ptp(rows, axis=1) > 0
    return np.asarray(centred * np.divide(1.0, lengths, out=np.zeros_like(lengths), where=varies)[:, None])


class _Clusters:
    """Finds the clusters that places represent, among `places` by falling variance."""

    def __init__(self, counts: Floats, places: Ints, alpha: float) -> None:
        self._counts = counts
        self._places = places
        self._least = 1 - alpha
        self._units: _Singles = np.empty((len(places), counts.shape[1]), dtype=np.float32)
        for block in _blocks(len(places)):
            self._units[block] = _unit(counts[places[block]])
        self._representatives: list[int] = []
        self._members: list[list[Ints]] = []

    def grown(self, taken: Bools) -> list[tuple[int, Ints]]:
        """Return the position of each representative, and of its members; `taken` are the places that fit a feature.

        A place becomes a member of the clusters that stand when its turn comes, as in the paper, so that blocks of places are first held
        against all that stand, and what fits none of them then represents one after the other for the rest of the block.
        """
        for block in _blocks(len(self._places)):
            positions = np.arange(block.start, min(block.stop, len(self._places)))
            fits = self._fitting(np.array(self._representatives, dtype=np.int64), positions)
            for cluster in np.flatnonzero(fits.any(axis=1)):
                self._members[cluster].append(positions[fits[cluster]])
            alone = ~(taken[positions] | fits.any(axis=0))
            self._represent(positions, alone)
        return [
            (representative, np.concatenate(members)) for representative, members in zip(self._representatives, self._members, strict=True)
        ]

    def _represent(self, positions: Ints, alone: Bools) -> None:
        while alone.any():
            first = int(np.argmax(alone))
            rest = positions[first:]
            fits = self._fitting(positions[first : first + 1], rest)[0]
            fits[0] = True
            self._representatives.append(int(positions[first]))
            self._members.append([rest[fits]])
            alone[first:] &= ~fits

    def _fitting(self, representatives: Ints, positions: Ints) -> Bools:
        """Return which of the positions (columns) fit which of the representatives (rows)."""
        squares = (self._units[representatives] @ self._units[positions].T) ** 2
        fits = np.asarray(squares > self._least)
        for row, column in np.argwhere(np.abs(squares - self._least) < DOUBTFUL):
            pair = _unit(self._counts[self._places[[representatives[row], positions[column]]]])
            fits[row, column] = (pair[0] @ pair[1]) ** 2 > self._least
        return fits
