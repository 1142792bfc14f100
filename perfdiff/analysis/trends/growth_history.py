"""How what a function executes grows over many revisions, each counted by itself, and where that changed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from perfdiff.analysis.claims import Claim, claim
from perfdiff.analysis.series import GROWTH, ChangePoint, Cost, FunctionHistory, RevisionEntry
from perfdiff.analysis.trends.blocks import block_counts
from perfdiff.analysis.trends.features import varying
from perfdiff.config import CompareConfig
from perfdiff.models.shift import exponent_shift
from perfdiff.models.threads import one_thread
from perfdiff.models.trend import Law
from perfdiff.models.trendlines import best_fit, fit
from perfdiff.records.arrays import Floats
from perfdiff.records.places import PlaceCounts
from perfdiff.records.schema import Revision

# A revision with its counts, or the reason why there are none.
Counted = tuple[Revision, PlaceCounts | str]


@one_thread()
def growth_history(function: str, file: str, counted: Sequence[Counted], config: CompareConfig) -> FunctionHistory | None:
    """Return the history of the function of this name, that of `file` where a revision has several; None where no feature tells its growth.

    Each revision is held against the one that began the current level, so that small shifts add up: it begins a new level where the paired
    interval of the exponents' difference says that its growth is another (`models.shift`). The feature is the one that tells most of the
    newest revision that has the function.
    """
    counted = [(revision, places if isinstance(places, str) else places.at(places.known)) for revision, places in counted]
    costs = [_costs(function, file, places) for _, places in counted]
    laws = (_telling(places, cost, config.seed) for (_, places), cost in zip(reversed(counted), reversed(costs), strict=True))
    feature = next((law.feature for law in laws if law), None)
    if feature is None:
        return None
    level: tuple[Revision, Floats, Floats] | None = None
    entries = []
    for (revision, places), cost in zip(counted, costs, strict=True):
        if isinstance(places, str) or not isinstance(cost, np.ndarray):
            entries.append(RevisionEntry(revision, reason=cost if isinstance(cost, Claim) else claim("given", reason=str(places))))
            continue
        x = varying(places.features).get(feature)
        law = None if x is None else fit(feature, x, cost, seed=config.seed)
        if x is None or law is None:
            entries.append(RevisionEntry(revision, reason=claim("no-feature-of-runs" if x is None else "few-values", feature=feature)))
            continue
        shift = exponent_shift(level[1], level[2], cost, seed=config.seed) if level else None
        step = ChangePoint(shift, level[0]) if level and shift and shift.is_new else None
        if level is None or step or shift is None:
            level = revision, x, cost
        exponent = Cost(law, law.b, *law.ci_b, step=step, count=float(cost[int(np.nanargmax(x))]))
        entries.append(RevisionEntry(revision, costs={GROWTH: exponent}))
    return FunctionHistory(function, file, tuple(entries), config, feature=feature, at=_largest_point(feature, counted))


def _costs(function: str, file: str, places: PlaceCounts | str) -> Floats | Claim | None:
    """Return how many blocks of a function each point executes (points,), or why that is not known; None where nothing was counted."""
    if isinstance(places, str):
        return None
    named = [number for number, place in enumerate(places.places) if place.function == function]
    own = [number for number in named if places.places[number].file == file] or named
    files = {places.places[number].file for number in own}
    if len(files) != 1:
        return claim("many-functions", functions=len(files)) if own else claim("no-function-ran")
    return np.asarray(block_counts(places)[own].sum(axis=0))


def _telling(places: PlaceCounts | str, cost: Floats | Claim | None, seed: int) -> Law | None:
    """Return the trend that tells most of a function's cost in a revision, None where none does."""
    if isinstance(places, str) or not isinstance(cost, np.ndarray):
        return None
    return best_fit(varying(places.features), cost, seed=seed)


def _largest_point(feature: str, counted: Sequence[Counted]) -> str:
    """Return the label of the newest revision's point with the largest value of a feature."""
    for _, places in reversed(counted):
        if not isinstance(places, str) and feature in places.features:
            return places.points[int(np.nanargmax(places.features[feature]))].label
    return ""
