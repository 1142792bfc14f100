"""Trends of costs over a feature: the power law, the class of growth, and what the residuals show, together."""

from __future__ import annotations

from perfdiff.models.diagnosis import diagnoses
from perfdiff.models.laws import laws, power_in_words
from perfdiff.models.powerlaw import PowerLaw, power_laws
from perfdiff.models.trend import Fit, Growth
from perfdiff.records.schema import Floats

TWO_PHASES = "two phases"


def fit(feature: str, x: Floats, cost: Floats, *, seed: int) -> Fit | None:
    """Return the trend of one cost (points,) over a feature's values `x` (points,), as in `fits`."""
    return fits(feature, x, cost[None, :], seed=seed)[0]


def fits(feature: str, x: Floats, costs: Floats, *, seed: int) -> tuple[Fit | None, ...]:
    """Return the trend of each row of `costs` (costs, points) over a feature's values `x` (points,).

    None stands where fewer than three points have both above 0, or all lie at one value of the feature.
    """
    told = zip(power_laws(x, costs, seed=seed), laws(feature, x, costs), diagnoses(feature, x, costs), strict=True)
    return tuple(
        None
        if power is None or law is None
        else _fit(feature, power, law.growth, law.says, TWO_PHASES if law.growth is Growth.PIECEWISE else diagnosis)
        for power, law, diagnosis in told
    )


def power_fits(feature: str, x: Floats, costs: Floats, *, seed: int) -> tuple[Fit | None, ...]:
    """Return the same without classes and diagnosis, which take three quarters of the time: for the many costs that matter little."""
    found = power_laws(x, costs, seed=seed)
    return tuple(
        None if power is None else _fit(feature, power, Growth.POWER, power_in_words(feature, power.a, power.b), "") for power in found
    )


def _fit(feature: str, power: PowerLaw, growth: Growth, says: str, diagnosis: str) -> Fit:
    return Fit(
        feature=feature,
        a=power.a,
        b=power.b,
        ci_a=power.ci_a,
        ci_b=power.ci_b,
        r2=power.r2,
        n=power.n,
        ignored=power.ignored,
        predictions=power.predictions,
        growth=growth,
        says=says,
        diagnosis=diagnosis,
    )
