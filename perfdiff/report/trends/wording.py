"""How trends are put into words: counts, growth, representatives and differences, in one place for all formats."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from perfdiff import units
from perfdiff.analysis.findings import Verdict
from perfdiff.analysis.trends.blocks import block_counts
from perfdiff.analysis.trends.findings import COSTLY_SHARE, GrowthDifference, GrowthDifferenceKind, PlaceCluster, TrendFindings, Trends
from perfdiff.models.annotation import CostClass
from perfdiff.models.trend import Interval, Law, TrendPrediction
from perfdiff.records.arrays import Floats
from perfdiff.records.places import Place, PlaceCounts
from perfdiff.records.schema import Side
from perfdiff.report.printable import shortened
from perfdiff.report.wording import ABSENT, ANSWERS, percent, plural

# What clusters are said to make up together, as in trend-prof §5.2: the rest is told by its number alone.
_MOST_OF_ALL = 0.99
# Overtaking clusters, and places that changed theirs, that are told of; later ones are further from what is run today, or cost less.
_TOLD = 5
# The largest R² with three decimals that is not 1.
_SHORT_OF_ONE = 0.999
# Characters of a line that a sentence quotes.
_LONGEST = 80

KINDS = {
    GrowthDifferenceKind.EXPONENT: "exponent",
    GrowthDifferenceKind.NEW: "new",
    GrowthDifferenceKind.GONE: "gone",
    GrowthDifferenceKind.COEFFICIENT: "coefficient",
}


def shown_side(findings: TrendFindings) -> Side:
    """Return the side whose clusters a report shows: head if there are two sides."""
    return Side.HEAD if Side.HEAD in findings.sides else Side.BASE


def amount(value: float, digits: int = 2) -> str:
    """Return a count, long ones with a power of ten: `42,000`, `5.0e9`."""
    return units.times(value, digits) if math.isfinite(value) else ABSENT


def amounts(interval: Interval) -> str:
    """Return an interval of counts, with a third digit where two do not tell its ends apart: `[1.9e8, 2.1e8]`, `[4.98e9, 5.02e9]`."""
    low, high = interval
    digits = 3 if amount(low) == amount(high) else 2
    return f"[{amount(low, digits)}, {amount(high, digits)}]"


def exponent(fit: Law) -> str:
    """Return a fit's exponent with its interval: `2.00 [1.98, 2.02]`."""
    return f"{fit.b:.2f} [{fit.ci_b[0]:.2f}, {fit.ci_b[1]:.2f}]"


def coefficient(fit: Law) -> str:
    """Return a fit's coefficient with its interval."""
    low, high = (units.significant(bound) for bound in fit.ci_a)
    return f"{units.significant(fit.a)} [{low}, {high}]"


def quality(r2: float) -> str:
    """Return R² with three decimals; a fit that leaves something open is not said to be 1."""
    if not math.isfinite(r2):
        return ABSENT
    return f"{r2 if r2 == 1 else min(r2, _SHORT_OF_ONE):.3f}"


def predicted(prediction: TrendPrediction, feature: str) -> str:
    """Return a prediction with its interval: `2.0e8 [1.9e8, 2.1e8] at n = 20,000`."""
    return f"{amount(prediction.cost)} {amounts(prediction.ci)} at {feature} = {amount(prediction.at)}"


def where(place: Place) -> str:
    """Return a place as its file and line."""
    return f"{place.file}:{place.line}"


def called(cluster: PlaceCluster) -> str:
    """Return the name of a cluster: `insert (list.c:40)`, or the feature that its places follow."""
    return f"places that follow {cluster.feature}" if cluster.place is None else f"{cluster.place.function} ({where(cluster.place)})"


def and_others(cluster: PlaceCluster) -> str:
    """Return how many places a cluster has beside its representative, whose cost is told with its: ` and 44 more places`."""
    others = len(cluster.members) - 1
    return f" and {plural(others, 'more place')}" if cluster.place is not None and others else ""


def steepest(trends: Trends) -> tuple[PlaceCluster, Law] | None:
    """Return the costly cluster that surely grows most, by the lower end of its exponent's interval; None where no feature tells of any."""
    candidates = [(cluster, fit) for cluster in trends.clusters if cluster.is_costly and (fit := best(cluster)) is not None]
    return max(candidates, key=lambda candidate: candidate[1].ci_b[0], default=None)


def best(cluster: PlaceCluster) -> Law | None:
    """Return the fit that tells a cluster's growth, None where no feature does."""
    return next((fit for fit in cluster.fits if fit.growth is not CostClass.NONE), None)


def grows(cluster: PlaceCluster) -> str:
    """Return how a cluster grows, `–` where no feature tells it."""
    fit = best(cluster)
    return ABSENT if fit is None else fit.says


def reach(findings: TrendFindings, fit: Law, side: Side) -> str:
    """Return the values of a fit's feature that were run: `n from 100 to 10,000`."""
    return spans(fit.feature, findings.experiment.sides[side].features.get(fit.feature, np.array([])))


def spans(feature: str, values: Floats) -> str:
    """Return a feature with its least and largest value, as far as it has any."""
    finite = values[np.isfinite(values)]
    return f"{feature} from {amount(float(finite.min()))} to {amount(float(finite.max()))}" if len(finite) else feature


def coverage(trends: Trends, counted: PlaceCounts) -> tuple[int, float]:
    """Return how many clusters, the largest first, make up 99 % of all counts, and their share; all of them where they make up less."""
    of_place = block_counts(counted).sum(axis=1)
    total = float(trends.totals.sum())
    seen: set[int] = set()
    share = 0.0
    for number, cluster in enumerate(trends.clusters, 1):
        new = [member for member in cluster.members if member not in seen]
        seen.update(new)
        share += float(of_place[new].sum()) / total if total else 0.0
        if share >= _MOST_OF_ALL:
            return number, share
    return len(trends.clusters), share


def answer(findings: TrendFindings) -> str:
    """Return the answer in a sentence: the steepest costly cluster of one revision, or what differs most between two."""
    side = shown_side(findings)
    return _of_two(findings) if side is Side.HEAD else _of_one(findings)


def _of_one(findings: TrendFindings) -> str:
    trends, counted = findings.sides[Side.BASE], findings.experiment.sides[Side.BASE]
    if not trends.clusters:
        ran = f"{plural(len(counted.places), 'place')} at {plural(len(findings.experiment.points), 'point')}"
        return f"Nothing grows: no count varies over {ran}"
    number, share = coverage(trends, counted)
    says = f"{plural(number, 'cluster')} make{'s' if number == 1 else ''} up {percent(share)} of all counts"
    leading = steepest(trends)
    if leading is None:
        return f"{says}; no feature tells how they grow"
    cluster, fit = leading
    last = fit.predictions[-1] if fit.predictions else None
    predicts = f": {amount(last.cost)} at {fit.feature} = {amount(last.at)}" if last else ""
    grown = f"{called(cluster)}{and_others(cluster)}, grows as {fit.says} ({reach(findings, fit, Side.BASE)}, R² {quality(fit.r2)})"
    return f"{says}; the steepest costly one, {grown}{predicts}"


def _of_two(findings: TrendFindings) -> str:
    if not findings.differences:
        return _nothing_differs(findings)
    leading = next((difference for difference in findings.differences if difference.verdict is findings.verdict), findings.differences[0])
    others = len(findings.differences) - 1
    rest = f"; {plural(others, 'more trend')} differ{'s' if others == 1 else ''}" if others else ""
    if findings.verdict is Verdict.UNCHANGED:
        return f"No regression: what differs is not material; most does {differs(leading)}{rest}"
    return f"{ANSWERS[findings.verdict]}: {differs(leading)}{rest}"


def _nothing_differs(findings: TrendFindings) -> str:
    trends, counted = findings.sides[Side.HEAD], findings.experiment.sides[Side.HEAD]
    of = f"{plural(len(counted.places), 'place')} in {plural(len(trends.clusters), 'cluster')}"
    ran = f"{of} at {plural(len(findings.experiment.points), 'point')}"
    if findings.verdict is Verdict.INCONCLUSIVE:
        return f"Inconclusive: whether a trend differs cannot be told from {ran}"
    return f"No trend differs: {ran}"


def differs(difference: GrowthDifference) -> str:
    """Return a difference in words: the place, from what growth to what, and what it costs far beyond what was run."""
    place = difference.place
    line = f", `{shortened(place.text, _LONGEST)}`" if place.text else ""
    named = f"{where(place)}{line} in {place.function}"
    at = f"at {difference.feature} = {amount(difference.at)}, 10 times what was measured"
    before, after = amount(difference.base_cost), amount(difference.head_cost)
    match difference.kind:
        case GrowthDifferenceKind.NEW:
            return f"{named}: new, {_says(difference.head)}; {at}, {after} where base has none{_because(difference)}"
        case GrowthDifferenceKind.GONE:
            return f"{named}: gone, was {_says(difference.base)}; {at}, {before} before{_because(difference)}"
    return f"{named}: {change(difference)}{_by(difference)}; {at}, {after} instead of {before}{_because(difference)}"


def _because(difference: GrowthDifference) -> str:
    """Return where code changed, if that is not the place itself."""
    cause = difference.cause
    if cause is None:
        return ""
    return f"; what changed is {cause.place.function} ({where(cause.place)}, {'new' if cause.side is Side.HEAD else 'gone'})"


def both(difference: GrowthDifference) -> str:
    """Return the cost on both sides: `42,000 → 2.0e8`."""
    return f"{amount(difference.base_cost)} → {amount(difference.head_cost)}"


def change(difference: GrowthDifference) -> str:
    """Return the growth on both sides: `2.1·n → 0.5·n²`; that of a place that a side lacks is `none`."""
    if difference.kind is GrowthDifferenceKind.NEW:
        return f"none → {_says(difference.head)}"
    if difference.kind is GrowthDifferenceKind.GONE:
        return f"{_says(difference.base)} → none"
    return f"{_says(difference.base)} → {_says(difference.head)}"


def _says(fit: Law | None) -> str:
    return ABSENT if fit is None else fit.says


def _by(difference: GrowthDifference) -> str:
    if difference.kind is GrowthDifferenceKind.COEFFICIENT:
        return "" if difference.ratios is None else f", {ratios(difference.ratios)} as often"
    says = exponent_difference(difference)
    return f" (exponent {says})" if says != ABSENT else ""


def ratios(bounds: Interval) -> str:
    """Return the least and the most of how often something ran, by how often it did before: `×2.1 to ×3.4`."""
    low, high = (units.ratio(bound) for bound in bounds)
    return low if low == high else f"{low} to {high}"


def exponent_difference(difference: GrowthDifference) -> str:
    """Return by how much the exponents differ, with the interval: `+1.00 [0.98, 1.02]`; nothing where they are not known to differ."""
    if difference.kind is GrowthDifferenceKind.COEFFICIENT or difference.base is None or difference.head is None or difference.ci is None:
        return ABSENT
    return f"{difference.head.b - difference.base.b:+.2f} [{difference.ci[0]:.2f}, {difference.ci[1]:.2f}]"


def moved(findings: TrendFindings) -> Iterator[str]:
    """Yield the places that changed their cluster, the most costly first, with both clusters."""
    for move in findings.moves[:_TOLD]:
        yield f"{where(move.place)} in {move.place.function}: {called(move.base)} → {called(move.head)}"
    more = len(findings.moves) - _TOLD
    if more > 0:
        yield f"{more:,} more."


def rest(trends: Trends) -> Iterator[str]:
    """Yield what is told of clusters and places that a table of costly clusters leaves out."""
    small = sum(not cluster.is_costly for cluster in trends.clusters)
    if small:
        yield f"{plural(small, 'more cluster')} make{'s' if small == 1 else ''} up less than {percent(COSTLY_SHARE)} of every run."
    if trends.constant:
        yield f"{plural(len(trends.constant), 'place')} never var{'ies' if len(trends.constant) == 1 else 'y'}."


def overtaking(trends: Trends) -> Iterator[str]:
    """Yield which clusters will cost more than all above them, and from where on, the nearest first."""
    crossings = []
    for cluster in trends.clusters:
        fit = best(cluster)
        if cluster.overtakes is not None and fit is not None:
            run = fit.predictions[0].at if fit.predictions else 1.0
            crossings.append((cluster.overtakes / run, cluster, fit.feature))
    crossings.sort(key=lambda crossing: crossing[0])
    for _, cluster, feature in crossings[:_TOLD]:
        yield f"{called(cluster)} overtakes everything above it from {feature} = {amount(cluster.overtakes or 0.0)} on."
    more = len(crossings) - _TOLD
    if more > 0:
        yield f"{more:,} more overtake{'s' if more == 1 else ''} what is above {'it' if more == 1 else 'them'} further on."


def apart(trends: Trends) -> Iterator[str]:
    """Yield which lines grow by another power than what represents their cluster, the most costly cluster's first."""
    others = [(cluster, other) for cluster in trends.clusters for other in cluster.apart]
    for cluster, other in others[:_TOLD]:
        by = f"{other.shift:+.2f} [{other.ci[0]:.2f}, {other.ci[1]:.2f}]"
        line = f"{where(other.place)} in {other.place.function} ({percent(other.share)} of a run)"
        yield f"{line}: {by} beside that of {called(cluster)}, over {other.feature}"
    more = len(others) - _TOLD
    if more > 0:
        yield f"{more:,} more."


def remarks(cluster: PlaceCluster) -> Iterator[str]:
    """Yield what must be known beside a cluster's best fit: points left out, what residuals show, other features."""
    fit = best(cluster)
    if fit is None:
        yield "no feature tells how it grows"
        return
    if fit.ignored:
        yield f"{fit.ignored:,} of {plural(fit.ignored + fit.n, 'point')} not in the fit, as the count or {fit.feature} is 0"
    if fit.diagnosis:
        yield fit.diagnosis
    if cluster.joint is not None:
        yield f"over {' and '.join(cluster.joint.features)} together {cluster.joint.says} (R² {quality(cluster.joint.r2)})"
