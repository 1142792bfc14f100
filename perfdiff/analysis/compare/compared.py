"""What a comparison of one metric of one function came to: stratum by stratum, and the one where head differs most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from perfdiff.analysis.findings import Ratio
from perfdiff.analysis.stats.runs import Contrast
from perfdiff.models.annotation import Annotation
from perfdiff.records.schema import Feature


@dataclass(frozen=True, slots=True)
class StratumContrast:
    """What one stratum of calls shows; `name` is "" for all calls.

    `narrows`: the name says more than a value of the main feature does. `material` says that the stratum's cost is a share of a run worth
    reporting on. `point` is the id of the workload point that the stratum is.
    """

    name: str
    narrows: bool
    contrast: Contrast
    material: bool
    point: int | None = None


@dataclass(frozen=True, slots=True)
class Typical:
    """A typical call of base: its cost, and the median of each feature that has one."""

    cost: float
    inputs: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Head against base in one metric of one function.

    `overall` is over all calls, `strata` all that were tested (the first is `overall`), `worst` the one where head differs most beyond
    doubt, `typical` a call of it, and `ratio` what is judged and told of it, with an interval that holds for all strata at once and covers
    what probes cannot resolve. `p` holds for all strata at once, too. `floor` is base against base (log scale). `mix` is base's expected
    cost at head's inputs over that at base's, as a factor per workload point; 1.0 where the inputs did not clearly move. `disjoint`: no
    inputs of head are equal to any of base, and nothing can be said of the cost per input. `grown` are the features whose values moved.
    `machines` are the contrasts of `worst` on single machines, by their number, where several measured. `apart` are head's calls with
    arguments that base never had, per workload point: their part of all, and what one costs.
    """

    function: int
    metric: str
    base: Annotation | None
    strata: tuple[StratumContrast, ...]
    worst: StratumContrast | None
    typical: Typical | None
    ratio: Ratio | None
    p: float
    floor: float
    mix: Mapping[int, float]
    mix_ratio: Ratio | None
    grown: tuple[Feature, ...]
    disjoint: bool
    machines: Mapping[int, Contrast] = field(default_factory=dict)
    apart: Mapping[int, tuple[float, float]] = field(default_factory=dict)

    @property
    def differ(self) -> float:
        """Return the p-value of no difference between machines in any material stratum, for all of them at once."""
        return min(1.0, self.tested * min((stratum.contrast.differ for stratum in self.strata if stratum.material), default=1.0))

    @property
    def is_material(self) -> bool:
        """Return whether any stratum is a share of a run worth reporting on."""
        return any(stratum.material for stratum in self.strata)

    @property
    def p_anywhere(self) -> float:
        """Return the p-value of no effect in any stratum, be it a share of a run or not, for all of them at once."""
        return min(1.0, len(self.strata) * min((stratum.contrast.p for stratum in self.strata), default=1.0))

    def p_beyond(self, least: float) -> float:
        """Return the p-value of no effect beyond `least` (log scale) in any material stratum, for all of them at once."""
        return min(1.0, self.tested * min((stratum.contrast.p_beyond(least) for stratum in self.strata if stratum.material), default=1.0))

    @property
    def tested(self) -> int:
        """Return how many strata were looked at; intervals of the worst one must hold for all."""
        return tested(self.strata)

    @property
    def overall(self) -> Contrast | None:
        """Return the contrast over all calls."""
        return self.strata[0].contrast if self.strata else None


def tested(strata: Sequence[StratumContrast]) -> int:
    """Return how many strata are looked at."""
    return max(1, sum(stratum.material for stratum in strata))
