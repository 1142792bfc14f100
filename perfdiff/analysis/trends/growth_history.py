"""How what a function executes grows over many revisions, each counted by itself, and where that changed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from perfdiff.analysis.series import GROWTH, Cost, Entry, History, Step
from perfdiff.analysis.trends.blocks import block_counts
from perfdiff.analysis.trends.clusters import varying
from perfdiff.config import CompareConfig
from perfdiff.models.shift import exponent_shift
from perfdiff.models.threads import one_thread
from perfdiff.models.trend import Law
from perfdiff.models.trendlines import best_fit, fit
from perfdiff.records.places import PlaceCounts
from perfdiff.records.schema import Floats, Revision

# A revision with its counts, or the reason why there are none.
Counted = tuple[Revision, PlaceCounts | str]


@one_thread()
def growth_history(function: str, file: str, counted: Sequence[Counted], config: CompareConfig) -> History | None:
    """Return the history of the function of this name, that of `file` where a revision has several; None where no feature tells its growth.

    Each revision is held against the one that began the current level, so that small shifts add up: it begins a new level where the paired
    interval of the exponents' difference says that its growth is another (`models.shift`). The feature is the one that tells most of the
    newest revision that has the function.
    """
    counted = [(revision, found if isinstance(found, str) else found.at(found.known)) for revision, found in counted]
    costs = [found if isinstance(found, str) else _costs(function, file, found) for _, found in counted]
    feature = next((law.feature for law in map(_telling, reversed(counted), reversed(costs), [config.seed] * len(costs)) if law), None)
    if feature is None:
        return None
    level: tuple[Revision, Floats, Floats] | None = None
    entries = []
    for (revision, found), cost in zip(counted, costs, strict=True):
        if isinstance(found, str) or isinstance(cost, str):
            entries.append(Entry(revision, reason=str(cost)))
            continue
        x = varying(found.features).get(feature)
        trend = None if x is None else fit(feature, x, cost, seed=config.seed)
        if x is None or trend is None:
            says = f"{feature} is no feature of its runs" if x is None else f"it runs at fewer than three values of {feature}"
            entries.append(Entry(revision, reason=says))
            continue
        shift = exponent_shift(level[1], level[2], cost, seed=config.seed) if level else None
        step = Step(shift, level[0]) if level and shift and shift.is_new else None
        if level is None or step or shift is None:
            level = revision, x, cost
        told = Cost(trend, trend.b, *trend.ci_b, step=step, count=float(cost[int(np.nanargmax(x))]))
        entries.append(Entry(revision, costs={GROWTH: told}))
    return History(function, file, tuple(entries), config, feature=feature, at=_largest_point(feature, counted))


def _costs(function: str, file: str, found: PlaceCounts) -> Floats | str:
    """Return how many blocks of a function each point executes (points,), or why that is not known."""
    named = [number for number, place in enumerate(found.places) if place.function == function]
    own = [number for number in named if found.places[number].file == file] or named
    files = {found.places[number].file for number in own}
    if not own:
        return "no function of this name ran"
    if len(files) > 1:
        return f"{len(files)} functions have this name"
    costs: Floats = block_counts(found)[own].sum(axis=0)
    return costs


def _telling(counted: Counted, cost: Floats | str, seed: int) -> Law | None:
    """Return the trend that tells most of a function's cost in a revision, None where none does."""
    _, places = counted
    if isinstance(places, str) or isinstance(cost, str):
        return None
    return best_fit(varying(places.features), cost, seed=seed)


def _largest_point(feature: str, counted: Sequence[Counted]) -> str:
    """Return the label of the newest revision's point with the largest value of a feature."""
    for _, found in reversed(counted):
        if not isinstance(found, str) and feature in found.features:
            return found.points[int(np.nanargmax(found.features[feature]))].label
    return ""
