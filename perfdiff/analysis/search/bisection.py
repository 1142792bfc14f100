"""What a bisect concludes: the values that its report is written from."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from perfdiff.analysis.claims import Claim, claim
from perfdiff.analysis.findings import Findings, Ratio
from perfdiff.analysis.search.symptom import Symptom
from perfdiff.records.schema import Revision

HIGHEST = 0.999  # confidence that is shown at most: what the model of errors leaves out is not known better


class CommitStanding(StrEnum):
    """Where a measured commit stands to the culprit, by its own readings."""

    GOOD = "good"
    BAD = "bad"
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True)
class Measured:
    """A commit that was measured against the good end `times` times: the symptom's ratio with its 95 % interval."""

    revision: Revision
    standing: CommitStanding
    ratio: Ratio
    times: int


@dataclass(frozen=True, slots=True)
class Passed:
    """A commit that could not be measured, with the reason."""

    revision: Revision
    reason: str


@dataclass(frozen=True, slots=True)
class Alike:
    """A commit that needed no run: for what was probed it is the same as `other`."""

    revision: Revision
    other: Revision


@dataclass(frozen=True, slots=True)
class Bisection:
    """The conclusion of a bisect.

    `suspects` hold the culprit with probability `confidence`, the newest last; there are several where no commit that can be measured
    tells them apart, or, not `certain`, where measuring more would not help. `ends` is the symptom's ratio between good and bad,
    `commits` how many the range has. `findings` compare the last suspect with what stands before the first, or the ends.
    """

    good: Revision
    bad: Revision
    symptom: Symptom
    ends: Ratio
    commits: int
    suspects: tuple[Revision, ...]
    confidence: float
    certain: bool
    measured: tuple[Measured, ...]
    passed: tuple[Passed, ...]
    alike: tuple[Alike, ...]
    findings: Findings

    @property
    def sentence(self) -> Claim:
        """Return the answer."""
        newest, sure = self.suspects[-1], min(self.confidence, HIGHEST)
        commit = (newest.commit or "")[:10]
        if len(self.suspects) == 1:
            return claim("culprit", commit=commit, summary=newest.summary, certain=self.certain, confidence=sure)
        return claim("culprit-among", count=len(self.suspects), commit=commit, certain=self.certain, confidence=sure)
