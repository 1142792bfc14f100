"""How what a function executes grows over many revisions, each counted by itself, and where that changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from perfdiff.analysis.claims import Claim, claim
from perfdiff.analysis.trends.blocks import block_counts
from perfdiff.analysis.trends.clusters import varying
from perfdiff.models.shift import ExponentShift, exponent_shift
from perfdiff.models.threads import one_thread
from perfdiff.models.trend import Fit
from perfdiff.models.trendlines import fit
from perfdiff.records.places import PlaceCounts
from perfdiff.records.schema import Floats, Revision

# A revision with its counts, or the reason why there are none.
Counted = tuple[Revision, PlaceCounts | str]


@dataclass(frozen=True, slots=True)
class GrowthStep:
    """A change point: the exponent is another than from the revision `since` on."""

    shift: ExponentShift
    since: Revision


@dataclass(frozen=True, slots=True)
class GrowthEntry:
    """A revision: how the blocks that the function executes grow, and how many a run executes at the largest point.

    `reason` says why there is no fit.
    """

    revision: Revision
    fit: Fit | None = None
    largest: float | None = None
    step: GrowthStep | None = None
    reason: Claim | None = None


@dataclass(frozen=True, slots=True)
class GrowthHistory:
    """A function over revisions, oldest first; growth is over `feature`, whose largest value was run at the point called `at`."""

    function: str
    file: str
    feature: str
    at: str
    entries: tuple[GrowthEntry, ...]


@one_thread()
def growth_history(function: str, file: str, counted: Sequence[Counted], *, seed: int) -> GrowthHistory | None:
    """Return the history of the function of this name, that of `file` where a revision has several; None where no feature tells its growth.

    Each revision is held against the one that began the current level, so that small shifts add up: it begins a new level where the paired
    interval of the exponents' difference says that its growth is another (`models.shift`). The feature is the one that tells most of the
    newest revision that has the function.
    """
    counted = [(revision, found if isinstance(found, str) else found.at(found.known)) for revision, found in counted]
    costs = [claim("given", reason=found) if isinstance(found, str) else _costs(function, file, found) for _, found in counted]
    feature = next((name for name in map(_telling, reversed(counted), reversed(costs), [seed] * len(costs)) if name), None)
    if feature is None:
        return None
    level: tuple[Revision, Floats, Floats] | None = None
    entries = []
    for (revision, found), cost in zip(counted, costs, strict=True):
        if isinstance(found, str) or isinstance(cost, Claim):
            entries.append(GrowthEntry(revision, reason=cost if isinstance(cost, Claim) else None))
            continue
        x = varying(found.features).get(feature)
        trend = None if x is None else fit(feature, x, cost, seed=seed)
        if x is None or trend is None:
            entries.append(GrowthEntry(revision, reason=claim("no-feature-of-runs" if x is None else "few-values", feature=feature)))
            continue
        shift = exponent_shift(level[1], level[2], cost, seed=seed) if level else None
        step = GrowthStep(shift, level[0]) if level and shift and shift.is_new else None
        if level is None or step or shift is None:
            level = revision, x, cost
        entries.append(GrowthEntry(revision, trend, float(cost[int(np.nanargmax(x))]), step))
    return GrowthHistory(function, file, feature, _largest_point(feature, counted), tuple(entries))


def _costs(function: str, file: str, found: PlaceCounts) -> Floats | Claim:
    """Return how many blocks of a function each point executes (points,), or why that is not known."""
    named = [number for number, place in enumerate(found.places) if place.function == function]
    own = [number for number in named if found.places[number].file == file] or named
    files = {found.places[number].file for number in own}
    if not own:
        return claim("no-function-ran")
    if len(files) > 1:
        return claim("many-functions", functions=len(files))
    costs: Floats = block_counts(found)[own].sum(axis=0)
    return costs


def _telling(counted: Counted, cost: Floats | Claim, seed: int) -> str | None:
    """Return the feature that tells most of a function's cost in a revision, None where none does."""
    _, found = counted
    if isinstance(found, str) or isinstance(cost, Claim):
        return None
    trends = [each for name, x in varying(found.features).items() if (each := fit(name, x, cost, seed=seed))]
    return max(trends, key=lambda each: each.r2).feature if trends else None


def _largest_point(feature: str, counted: Sequence[Counted]) -> str:
    """Return the label of the newest revision's point with the largest value of a feature."""
    for _, found in reversed(counted):
        if not isinstance(found, str) and feature in found.features:
            return found.points[int(np.nanargmax(found.features[feature]))].label
    return ""
