"""HotCloud's and perfdiff's models of the same calls side by side, with the error of each."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from perfdiff.analysis.claims import Claim, claim
from perfdiff.analysis.policy import POLICY
from perfdiff.models.annotation import Annotation, CostClass, Trend
from perfdiff.models.correlation import LEAST_PCC, MOST_ERROR, ORIGINS, CorrelationKind, CorrelationSelection, select
from perfdiff.models.growth import order
from perfdiff.models.observations import columns_of, ranks
from perfdiff.records.arrays import Floats, Ints
from perfdiff.records.schema import SampleTable

# Costs follow the calls before where neighbours resemble each other so much, and beyond chance by so many standard errors; or where so much
# of what they vary lies between runs.
RESEMBLANCE, BEYOND_CHANCE = 0.2, 4.0
# Fewer outliers than this share of the calls are worth no word.
DELAYED = 0.01
_FEWEST_NEIGHBOURS = 30


class SelectionReason(StrEnum):
    """Why the paper's method finds no correlation."""

    ANOTHER_FEATURE = "another feature"
    DELAYS = "delayed calls"
    FALLING = "it falls"
    SCATTER = "scatter"
    HIDDEN_STATE = "hidden state"
    MIXTURE = "a mixture"
    UNKNOWN = "nothing that was recorded"


@dataclass(frozen=True, slots=True)
class Selections:
    """An annotation of ours with the paper's selection for the same calls.

    `error` is ours, as the paper measures its own: the root of the mean squared error over the mean cost, delayed calls included. `reason`
    and `why` say why the paper's method finds no correlation. What each one misses is told claim by claim.
    """

    ours: Annotation
    paper: CorrelationSelection
    error: float
    reason: SelectionReason | None
    why: Claim | None
    paper_misses: tuple[Claim, ...]
    ours_misses: tuple[Claim, ...]


def side_by_side(annotation: Annotation, table: SampleTable) -> Selections:
    """Return the paper's selection for the calls that an annotation was learnt from, beside it."""
    paper = select(table, annotation.metric, function=annotation.function)
    present = np.isfinite(table.metrics[annotation.metric])
    cost = table.metrics[annotation.metric][present]
    columns = {name: column[present] for name, column in columns_of(table).items()}
    predicted = annotation.predict(columns)
    residuals = np.where(np.isfinite(predicted), cost - predicted, cost - cost.mean())
    reason, why = _reason(annotation, paper, table, residuals) if paper.kind is CorrelationKind.UNCORRELATED else (None, None)
    scale = float(np.mean(np.abs(cost)))
    error = float(np.sqrt(np.mean((residuals / scale) ** 2))) if scale else 0.0
    return Selections(
        annotation, paper, error, reason, why, tuple(_paper_misses(annotation, paper)), tuple(_ours_misses(annotation, paper, error))
    )


def _inputs(annotation: Annotation) -> tuple[str, ...]:
    """Return the features that the costs follow in the terms of an annotation."""
    return tuple(dict.fromkeys(name for scope in annotation.scopes for term in scope.terms for name, _ in term.factors))


def _conditions(annotation: Annotation) -> tuple[str, ...]:
    return tuple(dict.fromkeys(condition.feature for scope in annotation.scopes for condition in scope.conditions))


def _reason(annotation: Annotation, paper: CorrelationSelection, table: SampleTable, residuals: Floats) -> tuple[SelectionReason, Claim]:
    """Return why no single feature correlates: by our annotation where it explains the costs, else by the order of the calls."""
    if annotation.features and annotation.r2 >= POLICY.most:
        return _by_inputs(annotation, paper, table)
    if share := _state(table, annotation.metric, residuals):
        return SelectionReason.HIDDEN_STATE, share
    if annotation.cost_class is CostClass.MIXTURE:  # its modes lie apart; the paper's clusters part what is spread evenly as well
        return SelectionReason.MIXTURE, claim("modes-of-no-input", modes=len(annotation.scopes))
    return SelectionReason.UNKNOWN, claim("nothing-tells")


def _by_inputs(annotation: Annotation, paper: CorrelationSelection, table: SampleTable) -> tuple[SelectionReason, Claim]:
    """Return why the paper's method does not see what an annotation says of the same inputs."""
    inputs, conditions = _inputs(annotation), _conditions(annotation)
    candidates = {feature.name for feature in table.features if not feature.category and feature.origin in ORIGINS}
    if conditions or len(inputs) > 1 or not set(inputs) <= candidates:
        is_one = len(annotation.features) == 1
        return SelectionReason.ANOTHER_FEATURE, claim("follow-no-parameter" if is_one else "follow-together", features=annotation.features)
    feature = inputs[0]
    if paper.lowest is not None and paper.lowest[0] == feature and paper.lowest[1] <= -LEAST_PCC:
        return SelectionReason.FALLING, claim("correlation-falls", feature=feature, correlation=paper.lowest[1])
    delayed = delayed_share(annotation)
    if delayed > 0 or any(scope.trend is not Trend.MEAN for scope in annotation.scopes):
        return SelectionReason.DELAYS, claim("follow-but-for-delayed", feature=feature, share=max(delayed, 0.001))
    return SelectionReason.SCATTER, claim("follow-and-scatter", feature=feature)


def _state(table: SampleTable, metric: str, residuals: Floats) -> Claim | None:
    """Return how costs follow what came before a call, its run or the calls in it; None where they do not, beyond chance."""
    present = np.isfinite(table.metrics[metric])
    run, thread, call = table.run[present], table.thread[present], table.call[present]
    if np.ptp(residuals) == 0:
        return None
    rank = ranks(residuals)
    sequence = np.lexsort((call, thread, run))
    rank, run, thread = rank[sequence] - rank.mean(), run[sequence], thread[sequence]
    between = _between(rank, run)
    if between >= POLICY.most:
        return claim("varies-between-runs", share=between)
    same = (run[1:] == run[:-1]) & (thread[1:] == thread[:-1])
    if same.sum() < _FEWEST_NEIGHBOURS:
        return None
    alike = float(np.mean(rank[1:][same] * rank[:-1][same]) / np.mean(rank**2))
    if alike < RESEMBLANCE or alike * math.sqrt(same.sum()) < BEYOND_CHANCE:
        return None
    return claim("like-calls-before", correlation=alike)


def _between(rank: Floats, run: Ints) -> float:
    """Return the share of the variance between runs, less what chance would put there (ω² of one-way analysis of variance)."""
    runs, place = np.unique(run, return_inverse=True)
    if len(runs) < 2 or len(rank) <= len(runs):
        return 0.0
    counts = np.bincount(place)
    means = np.bincount(place, rank) / counts
    within = float(np.sum((rank - means[place]) ** 2)) / (len(rank) - len(runs))
    whole = float(np.sum((rank - rank.mean()) ** 2))
    among = float(np.sum(counts * (means - rank.mean()) ** 2))
    return (among - (len(runs) - 1) * within) / (whole + within)


def _paper_misses(annotation: Annotation, paper: CorrelationSelection) -> Iterator[Claim]:
    """Yield what our annotation says, and the paper's cannot."""
    inputs, conditions = _inputs(annotation), _conditions(annotation)
    if conditions:
        yield claim("misses-scopes", features=conditions)
    unused = tuple(name for name in inputs if name != paper.feature)
    if unused and paper.kind is CorrelationKind.UNCORRELATED:
        yield claim("misses-features", features=unused)
    elif unused and paper.feature in inputs:
        yield claim("misses-more-features", features=unused)
    elif unused and paper.kind is CorrelationKind.CONSTANT:
        yield claim("misses-small-features", features=unused, share=MOST_ERROR)
    elif unused:
        yield claim("misses-other-features", features=unused, instead=paper.feature)
    shape = max((term.factors for scope in annotation.scopes for term in scope.terms), key=order, default=())
    if annotation.growth in (CostClass.LOGARITHMIC, CostClass.N_LOG_N) and shape and paper.feature in inputs:
        yield claim("misses-growth", growth=annotation.growth.value)
    if paper.kind is CorrelationKind.CONSTANT and annotation.cost_class is CostClass.MIXTURE:
        yield claim("misses-modes", modes=len(annotation.scopes), share=MOST_ERROR)
    if paper.feature and (twins := annotation.twins.get(paper.feature)):
        yield claim("misses-twins", feature=paper.feature, twins=tuple(twins))
    delayed = delayed_share(annotation)
    if delayed >= DELAYED and paper.kind is not CorrelationKind.UNCORRELATED:
        yield claim("misses-delayed", share=delayed)


def _ours_misses(annotation: Annotation, paper: CorrelationSelection, error: float) -> Iterator[Claim]:
    """Yield what the paper's selection says, and our annotation does not."""
    inputs = _inputs(annotation)
    if paper.feature and paper.pcc is not None and paper.feature not in inputs:
        twin = any(paper.feature in annotation.twins.get(name, ()) for name in annotation.features)
        if not twin:
            yield claim("misses-correlation", feature=paper.feature, correlation=paper.pcc)
    if len(paper.clusters) > 1 and len(annotation.scopes) == 1 and not inputs:
        yield claim(
            "misses-clusters", clusters=len(paper.clusters), centres=tuple(cluster.terms[0].coefficient for cluster in paper.clusters)
        )
    if paper.error < error and delayed_share(annotation) >= DELAYED:
        yield claim("leaves-out-delayed", share=delayed_share(annotation))


def delayed_share(annotation: Annotation) -> float:
    """Return the share of all calls that an annotation leaves out as outliers."""
    return sum(scope.share * scope.trimmed for scope in annotation.scopes)
