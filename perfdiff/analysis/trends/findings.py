"""What the analysis of trends finds: clusters of places with their growth, and what differs between two revisions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from perfdiff.analysis.findings import Verdict
from perfdiff.models.trend import Interval, JointLaw, Law
from perfdiff.records.arrays import Floats
from perfdiff.records.places import Place, PlaceExperiment
from perfdiff.records.schema import Side


@dataclass(frozen=True, slots=True)
class OtherPower:
    """A member of a cluster whose exponent over a feature is another than that of what represents the cluster, by `shift` with its 95 %
    interval; `share` is the largest of any run's counts that it makes up.
    """

    place: Place
    feature: str
    shift: float
    ci: Interval
    share: float


@dataclass(frozen=True, slots=True)
class PlaceCluster:
    """Places whose counts vary together, linearly: each fits the representative with R² > 1 - α (trend-prof §4.1).

    The representative is a feature or a place: exactly one of `feature` and `place` is not None. `members` are indices into the places of
    its side, the most costly first; a place may be a member of several clusters. `costs` (points,) are the sums of its members' counts,
    `largest` the largest of them, `share` the largest share of any run's counts that it makes up. `fits` are over all features that vary,
    the best first; `joint` is a model over several of them where it is clearly better than the best. `overtakes` is the value of the
    best fit's feature from which it costs more than all others of today's rank above it, None where that is never or already so.
    `apart` are costly members that grow by another power than the representative does, the most costly first.
    """

    feature: str | None
    place: Place | None
    members: tuple[int, ...]
    costs: Floats
    largest: float
    share: float
    fits: tuple[Law, ...]
    joint: JointLaw | None = None
    overtakes: float | None = None
    apart: tuple[OtherPower, ...] = ()

    @property
    def is_costly(self) -> bool:
        """Return whether it makes up 2 % or more of the counts of any run (trend-prof §5.1)."""
        return self.share >= COSTLY_SHARE

    @property
    def name(self) -> str:
        """Return the representative's name: that of a feature, or file and line."""
        if self.place is None:
            return str(self.feature)
        return f"{self.place.file}:{self.place.line}"


COSTLY_SHARE = 0.02


@dataclass(frozen=True, slots=True)
class Trends:
    """The clusters of one revision, by their largest cost, and the places that never vary (indices). `totals` (points,) are all counts."""

    clusters: tuple[PlaceCluster, ...]
    constant: tuple[int, ...]
    totals: Floats


class GrowthDifferenceKind(StrEnum):
    """What differs between a place, or a cluster of places, of base and of head."""

    EXPONENT = "exponent"  # grows by another power
    NEW = "new"  # costs where nothing did
    GONE = "gone"
    COEFFICIENT = "coefficient"  # grows by the same power, but costs more or less


@dataclass(frozen=True, slots=True)
class GrowthCause:
    """A line that is new in head, or gone from base, in another function than what it makes run more or less often."""

    side: Side
    place: Place


@dataclass(frozen=True, slots=True)
class GrowthDifference:
    """A place in a function whose growth differs; it stands for `members`, places of `side` whose counts differ along with its.

    `base_counts` and `head_counts` (points,) are the blocks that its function executes, which all figures are of.

    `base` and `head` are the fits over `feature`, None where a side has none. `ci` is the 95 % interval of the difference of exponents
    (head's less base's), None where a side has no fit. `at` is ten times the 95th percentile of the feature; `base_cost` and `head_cost`
    are what runs count there. `ratios` are the smallest and the largest of head's counts over base's at the points, None where base has
    none at one. `verdict` says whether that is a regression. `cause` is where code changed, if that is not the place itself.
    """

    kind: GrowthDifferenceKind
    place: Place
    members: tuple[int, ...]
    feature: str
    base_counts: Floats
    head_counts: Floats
    base: Law | None
    head: Law | None
    ci: Interval | None
    at: float
    base_cost: float
    head_cost: float
    verdict: Verdict
    side: Side = Side.HEAD
    ratios: Interval | None = None
    cause: GrowthCause | None = None


@dataclass(frozen=True, slots=True)
class Move:
    """A place of head that varies along with something else than in base: its most costly cluster on both sides, its `share` of any run."""

    place: Place
    base: PlaceCluster
    head: PlaceCluster
    share: float


@dataclass(frozen=True, slots=True)
class TrendFindings:
    """All that is known of trends: of one side, or of two with their differences, the worst first, and the verdict on them.

    `moves` are places that changed their cluster.
    """

    experiment: PlaceExperiment
    sides: Mapping[Side, Trends]
    differences: tuple[GrowthDifference, ...]
    verdict: Verdict
    moves: tuple[Move, ...] = ()
