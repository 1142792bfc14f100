"""What a bisect concludes: the values that its report is written from."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from perfdiff.analysis.claims import Claim, claim
from perfdiff.analysis.findings import Findings, Ratio
from perfdiff.analysis.search.symptom import GrowthSymptom, Symptom
from perfdiff.analysis.trends.findings import GrowthDifference, TrendFindings
from perfdiff.records.schema import Revision

HIGHEST = 0.999  # confidence that is shown at most: what the model of errors leaves out is not known better


class CommitStanding(StrEnum):
    """Where a measured commit stands to the culprit, by its own readings."""

    GOOD = "good"
    BAD = "bad"
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True)
class MeasuredCommit:
    """A commit that was measured against the good end `times` times, or counted once, and what that showed of the symptom.

    That is its ratio with the 95 % interval; of growth the difference that makes the commit bad, or what little there is of it, if any.
    """

    revision: Revision
    standing: CommitStanding
    shown: Ratio | GrowthDifference | None
    times: int = 1


@dataclass(frozen=True, slots=True)
class SkippedCommit:
    """A commit that could not be measured, with the reason."""

    revision: Revision
    reason: str


@dataclass(frozen=True, slots=True)
class SameCommit:
    """A commit that needed no run: for what is run it is the same as `other`."""

    revision: Revision
    other: Revision


@dataclass(frozen=True, slots=True)
class Bisection:
    """The conclusion of a bisect.

    `suspects` hold the culprit with probability `confidence`, the newest last; there are several where no commit that can be measured
    tells them apart, or, not `certain`, where measuring more would not help. `ends` is the symptom's ratio between good and bad, None of
    growth, `commits` how many the range has. `findings` compare the last suspect with what stands before the first, or the ends.
    """

    good: Revision
    bad: Revision
    symptom: Symptom | GrowthSymptom
    commits: int
    suspects: tuple[Revision, ...]
    measured: tuple[MeasuredCommit, ...]
    passed: tuple[SkippedCommit, ...]
    alike: tuple[SameCommit, ...]
    findings: Findings | TrendFindings
    ends: Ratio | None = None
    confidence: float = 1.0
    certain: bool = True

    @property
    def is_counted(self) -> bool:
        """Return whether growth was followed, which is counted and thereby exact."""
        return isinstance(self.symptom, GrowthSymptom)

    @property
    def sentence(self) -> Claim:
        """Return the answer."""
        newest, commit = self.suspects[-1], (self.suspects[-1].commit or "")[:10]
        sure, count = min(self.confidence, HIGHEST), len(self.suspects)
        if self.is_counted and count == 1:
            return claim("growth-culprit", commit=commit, summary=newest.summary)
        if self.is_counted:
            return claim("growth-culprit-among", count=count, commit=commit)
        if count == 1:
            return claim("culprit", commit=commit, summary=newest.summary, certain=self.certain, confidence=sure)
        return claim("culprit-among", count=count, commit=commit, certain=self.certain, confidence=sure)
