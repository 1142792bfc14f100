"""The analysis of counts of places: clusters and their growth on each side, and the differences between two sides."""

from __future__ import annotations

from perfdiff.analysis.findings import Verdict
from perfdiff.analysis.trends.clusters import trends
from perfdiff.analysis.trends.differences import differences
from perfdiff.analysis.trends.findings import GrowthDifference, TrendFindings
from perfdiff.analysis.trends.moves import moves
from perfdiff.models.clusters import ALPHA
from perfdiff.models.threads import one_thread
from perfdiff.records.places import PlaceExperiment
from perfdiff.records.schema import Side

_ORDER = (Verdict.REGRESSION, Verdict.IMPROVEMENT, Verdict.INCONCLUSIVE)


@one_thread()
def analyse(experiment: PlaceExperiment, *, min_effect: float, seed: int, alpha: float = ALPHA) -> TrendFindings:
    """Return the trends of an experiment, with what differs where it has two sides; `min_effect` is the smallest ratio of interest less 1.

    One side alone has no verdict but *unchanged*. Between two it is that of the worst difference, and open where counts differ but no
    feature tells of growth.
    """
    sides = {side: trends(counted, seed=seed, alpha=alpha) for side, counted in experiment.sides.items()}
    if Side.HEAD not in experiment.sides:
        return TrendFindings(experiment, sides, (), Verdict.UNCHANGED)
    moved = moves(experiment, sides, alpha=alpha)
    try:
        differing = differences(experiment, min_effect=min_effect, seed=seed)
    except ValueError:
        return TrendFindings(experiment, sides, (), Verdict.INCONCLUSIVE, moved)
    return TrendFindings(experiment, sides, differing, _verdict(differing), moved)


def _verdict(differing: tuple[GrowthDifference, ...]) -> Verdict:
    seen = {difference.verdict for difference in differing}
    return next((verdict for verdict in _ORDER if verdict in seen), Verdict.UNCHANGED)
