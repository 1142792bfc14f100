"""Which of the features that can be read of a function's input are planned."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from perfdiff.languages.protocol import FeaturePlan

MAX_FEATURES = 30  # what annotations are made to sort out within a second; Freud's own program never finished on 30


def nearest(plans: Iterable[FeaturePlan], told_by: Callable[[FeaturePlan], str] = lambda plan: plan.expression) -> tuple[FeaturePlan, ...]:
    """Return the first plans, at most `MAX_FEATURES`; of those that are `told_by` the same, by how they are read or by name, the first."""
    first: dict[str, FeaturePlan] = {}
    for plan in plans:
        first.setdefault(told_by(plan), plan)
    return tuple(first.values())[:MAX_FEATURES]
