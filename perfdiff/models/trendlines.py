"""Trends of costs over a feature: the power law, and what is told beside it."""

from __future__ import annotations

from perfdiff.models.powerlaw import power_laws
from perfdiff.models.trend import Fit, Growth
from perfdiff.records.schema import Floats


def fits(feature: str, x: Floats, costs: Floats, *, seed: int) -> tuple[Fit | None, ...]:
    """Return the trend of each row of `costs` (costs, points) over a feature's values `x` (points,); None where too few points are known."""
    return tuple(
        None
        if law is None
        else Fit(
            feature=feature,
            a=law.a,
            b=law.b,
            ci_a=law.ci_a,
            ci_b=law.ci_b,
            r2=law.r2,
            n=law.n,
            ignored=law.ignored,
            predictions=law.predictions,
            growth=Growth.POWER,
            says=f"{law.a:.2g}·{feature}^{law.b:.2f}",
        )
        for law in power_laws(x, costs, seed=seed)
    )


def fit(feature: str, x: Floats, cost: Floats, *, seed: int) -> Fit | None:
    """Return the trend of one cost (points,), as in `fits`."""
    return fits(feature, x, cost[None, :], seed=seed)[0]
