"""How what head does beyond base grows with an input's repetitions, where the trends of counts do not say it: exponentially, or in time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from perfdiff.models import trendlines
from perfdiff.models.annotation import CostClass
from perfdiff.models.laws import power_in_words
from perfdiff.models.trend import Law
from perfdiff.records.arrays import Floats

REPETITIONS = "repetitions"

_STEEPEST = 6.0  # exponent of a power law that a program may have; what grows faster over neighbouring sizes is exponential
_FEWEST = 3  # sizes that tell of a factor
_STEADY = 1 / 3  # of the usual factor's logarithm, which each step has at least
_NEAR = 0.25  # of a whole exponent, within which times as noisy as those of runs have it
_WHOLE = {1: CostClass.LINEAR, 2: CostClass.QUADRATIC, 3: CostClass.CUBIC}


def factor(times: Floats, extra: Floats, floor: float) -> float | None:
    """Return by how much each repetition multiplies the `extra` work at neighbouring numbers of `times`, None where that is no constant.

    What is below the `floor` at the smallest of them tells nothing. 2^n grows at n = 20 as n^14 does; powers that programs have are lower.
    """
    below = np.flatnonzero(extra <= floor)
    start = int(below[-1]) + 1 if len(below) else 0
    times, logs = times[start:], np.log(extra[start:])
    if len(times) < _FEWEST:
        return None
    slope = float(np.polyfit(times, logs, 1)[0])
    is_steady = bool((np.diff(logs) / np.diff(times) >= _STEADY * slope).all())
    return float(np.exp(slope)) if is_steady and slope * float(times.mean()) > _STEEPEST else None


def of_time(feature: str, x: Floats, extra_ns: Floats, floor_ns: float, *, seed: int) -> Law | None:
    """Return the law of the CPU time that head takes more over a feature `x`, where it is above the floor; None from too few sizes."""
    is_clear = extra_ns > floor_ns
    law = trendlines.fit(feature, x[is_clear], extra_ns[is_clear], seed=seed) if is_clear.any() else None
    if law is None:
        return None
    whole = round(law.b)
    if abs(law.b - whole) > _NEAR or whole not in _WHOLE:
        return replace(law, growth=CostClass.POWER, says=power_in_words(feature, law.a, law.b))
    return replace(law, growth=_WHOLE[whole], says=power_in_words(feature, law.a, law.b))
