"""The search for the commit that changed how something grows, from two revisions to the culprit.

trends of both ends → the function to follow → commits between → count the one that halves them → … → trends of culprit and what stands
before it. Counts are exact, so each answer settles half of the commits, and what was counted is kept: a search that is begun again goes on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from perfdiff import trending
from perfdiff.analysis.search import growth
from perfdiff.analysis.search.bisection import Alike, CommitStanding, Passed
from perfdiff.analysis.search.growth import GrowthBisection, GrowthReading, GrowthSymptom, WantedGrowth
from perfdiff.analysis.search.halving import narrowed, next_commit
from perfdiff.errors import BuildError, MeasurementError, RevisionError, WorkloadError
from perfdiff.models.clusters import ALPHA
from perfdiff.progress import Progress, Within
from perfdiff.records.schema import Revision
from perfdiff.request import Request
from perfdiff.revisions.history import History
from perfdiff.revisions.pins import PinnedPair
from perfdiff.searches.bisecting import SHORT
from perfdiff.searches.question import Question, stretch
from perfdiff.searches.state import reason_of


def bisect(question: Question, progress: Progress) -> GrowthBisection:
    """Find the commit that made something grow faster, and compare it with what stands before it; metric and confidence play no part.

    UsageError: `ends-alike`, `ends-swapped`, `unknown-function`; RevisionError as `history` raises; MeasurementError: `ends-inconclusive`.
    """
    request = question.request
    found = stretch(question, progress)
    pins, commits = found.pins, found.commits
    ends = trending.trends(replace(request, revisions=(pins.base.commit, pins.head.commit)), progress, alpha=ALPHA)
    good, bad = request.revisions
    followed = growth.follow(ends, WantedGrowth(good, bad, question.function, question.named))
    progress.note(f"following the {followed.says} through {len(commits.commits):,} commits")
    return GrowthHunt(request, pins, commits, followed, progress).concluded()


class GrowthHunt:
    """One search at work: the commits, what is followed, and what is known of them so far."""

    def __init__(self, request: Request, pins: PinnedPair, commits: History, followed: GrowthSymptom, progress: Progress) -> None:
        self._request, self._pins, self._history = request, pins, commits
        self._symptom, self._progress = followed, progress
        self._held = commits.ancestry()
        self._readings: dict[int, GrowthReading] = {}
        self._skipped: dict[int, str] = {}

    def concluded(self) -> GrowthBisection:
        """Count commits until no further one tells more, and compare the last suspect with what stands before them."""
        suspects = self._narrowed()
        names = self._before(suspects)[:SHORT], self._last(suspects)[:SHORT]
        findings = trending.trends(replace(self._request, revisions=names), self._progress, alpha=ALPHA)
        return GrowthBisection(
            good=self._pins.base.revision,
            bad=self._pins.head.revision,
            symptom=self._symptom,
            commits=len(self._history.commits),
            suspects=tuple(self._revision(number) for number in sorted(suspects)),
            measured=tuple(self._readings[number] for number in sorted(self._readings)),
            passed=tuple(Passed(self._revision(number), reason) for number, reason in sorted(self._skipped.items())),
            alike=tuple(self._alike()),
            findings=findings,
        )

    def _narrowed(self) -> frozenset[int]:
        """Return the commits that hold the culprit: none that are built and run like one before them."""
        every = range(len(self._history.commits))
        suspects = frozenset(number for number in every if self._history.same[number] == number) or frozenset(every)
        while (number := next_commit(self._held, suspects, self._skipped)) is not None:
            progress = Within(self._progress, f"counting {self._id(number)[:10]} ({len(suspects):,} commits left)")
            try:
                standing = self._standing(number, progress)
            except (BuildError, WorkloadError, MeasurementError, RevisionError) as error:
                self._skipped[number] = reason_of(error)
                self._progress.note(f"{self._named(number)} is skipped: {self._skipped[number]}")
                continue
            self._progress.note(f"{self._named(number)} is {standing}")
            suspects = narrowed(self._held, suspects, number, is_bad=standing is CommitStanding.BAD)
        return suspects

    def _standing(self, number: int, progress: Progress) -> CommitStanding:
        """Count a commit, hold it against the good end, and keep what it shows."""
        experiment = trending.count(replace(self._request, revisions=(self._history.good, self._id(number))), progress)
        compare = self._request.config.compare
        standing, difference = growth.reading(experiment, self._symptom, min_effect=compare.min_effect, seed=compare.seed)
        self._readings[number] = GrowthReading(self._revision(number), standing, difference)
        return standing

    def _last(self, suspects: frozenset[int]) -> str:
        """Return the first commit that holds all suspects and can be counted."""
        holding = (number for number, held in enumerate(self._held) if suspects <= held and number not in self._skipped)
        return next((self._id(number) for number in holding), self._history.bad)

    def _before(self, suspects: frozenset[int]) -> str:
        """Return the nearest commit along first parents that is none of the suspects and can be counted."""
        numbers: Mapping[str, int] = {commit.id: number for number, commit in enumerate(self._history.commits)}
        number = numbers.get(self._last(suspects), max(suspects))
        while number in suspects or number in self._skipped:
            parents = self._history.commits[number].parents
            if not parents:
                return self._history.good
            number = parents[0]
        return self._id(number)

    def _alike(self) -> list[Alike]:
        """Return the commits that are built from the same files as another."""
        good = self._pins.base.revision
        same = enumerate(self._history.same)
        return [
            Alike(self._revision(number), good if other is None else self._revision(other)) for number, other in same if other != number
        ]

    def _id(self, number: int) -> str:
        return self._history.commits[number].id

    def _revision(self, number: int) -> Revision:
        commit = self._history.commits[number]
        return Revision(rev=commit.id, commit=commit.id, summary=commit.summary)

    def _named(self, number: int) -> str:
        return f"{self._id(number)[:10]} ({self._history.commits[number].summary})"
