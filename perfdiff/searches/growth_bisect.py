"""The search for the commit that changed how something grows, from two revisions to the culprit.

trends of both ends → the function to follow → commits between → count the one that halves them → … → trends of culprit and what stands
before it. Counts are exact, so each answer settles half of the commits, and what was counted is kept: a search that is begun again goes on.
"""

from __future__ import annotations

from dataclasses import replace

from perfdiff import trending
from perfdiff.analysis.search import growth
from perfdiff.analysis.search.bisection import Bisection, CommitStanding, MeasuredCommit
from perfdiff.analysis.search.ends import SearchSubject
from perfdiff.analysis.search.halving import narrowed, next_commit
from perfdiff.analysis.search.symptom import GrowthSymptom
from perfdiff.errors import BuildError, MeasurementError, RevisionError, WorkloadError
from perfdiff.models.clusters import ALPHA
from perfdiff.progress import Progress, Within
from perfdiff.request import Request
from perfdiff.searches.question import SearchQuestion, stretch
from perfdiff.searches.state import reason_of
from perfdiff.searches.trail import Trail


def bisect(question: SearchQuestion, progress: Progress) -> Bisection:
    """Find the commit that made something grow faster, and compare it with what stands before it; metric and confidence play no part.

    UsageError: `ends-alike`, `ends-swapped`, `unknown-function`; RevisionError as `history` raises; MeasurementError: `ends-inconclusive`.
    """
    request = question.request
    span = stretch(question, progress)
    pins, trail = span.pins, Trail(span.pins, span.commits)
    ends = trending.trends(replace(request, revisions=(pins.base.commit, pins.head.commit)), progress, alpha=ALPHA)
    good, bad = request.revisions
    followed = growth.follow(ends, SearchSubject(good, bad, question.function, question.named))
    progress.note(f"following the {followed.says} through {len(span.commits.commits):,} commits")
    hunt = GrowthHunt(request, trail, followed, progress)
    suspects = hunt.narrowed()
    findings = trending.trends(replace(request, revisions=trail.step(suspects, hunt.skipped)), progress, alpha=ALPHA)
    return Bisection(
        good=pins.base.revision,
        bad=pins.head.revision,
        symptom=followed,
        commits=len(span.commits.commits),
        suspects=tuple(trail.revision(trail.id(number)) for number in sorted(suspects)),
        measured=tuple(hunt.measured[number] for number in sorted(hunt.measured)),
        passed=trail.passed(hunt.skipped),
        alike=trail.alike({}),
        findings=findings,
    )


class GrowthHunt:
    """One search at work: the commits, what is followed, and what is known of them so far, by number and, of those `skipped`, by id."""

    def __init__(self, request: Request, trail: Trail, followed: GrowthSymptom, progress: Progress) -> None:
        self._request, self._trail = request, trail
        self._symptom, self._progress = followed, progress
        self.measured: dict[int, MeasuredCommit] = {}
        self.skipped: dict[str, str] = {}

    def narrowed(self) -> frozenset[int]:
        """Count commits until no further one tells more, and return those that hold the culprit: none built and run like one before it."""
        trail = self._trail
        same = trail.history.same
        suspects = frozenset(number for number in range(len(same)) if same[number] == number) or frozenset(range(len(same)))
        while (number := next_commit(trail.held, suspects, {trail.numbers[commit] for commit in self.skipped})) is not None:
            commit = trail.id(number)
            progress = Within(self._progress, f"counting {commit[:10]} ({len(suspects):,} commits left)")
            try:
                experiment = trending.count(replace(self._request, revisions=(self._trail.history.good, commit)), progress)
                compare = self._request.config.compare
                standing, difference = growth.reading(experiment, self._symptom, min_effect=compare.min_effect, seed=compare.seed)
                measured = MeasuredCommit(self._trail.revision(commit), standing, difference)
            except (BuildError, WorkloadError, MeasurementError, RevisionError) as error:
                self.skipped[commit] = reason_of(error)
                self._progress.note(f"{trail.named(commit)} is skipped: {self.skipped[commit]}")
                continue
            self.measured[number] = measured
            self._progress.note(f"{trail.named(commit)} is {measured.standing}")
            suspects = narrowed(trail.held, suspects, number, is_bad=measured.standing is CommitStanding.BAD)
        return suspects
