"""The commits of a search: what each one holds, is called and stands behind."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from perfdiff.analysis.search.bisection import SameCommit, SkippedCommit
from perfdiff.records.schema import Revision
from perfdiff.revisions.history import CommitHistory
from perfdiff.revisions.pins import PinnedPair

SHORT = 12  # digits by which the report names a commit; git itself takes as few where no two begin alike


class Trail:
    """The commits between two ends, by their numbers, which are what each one `held` consists of, and by their ids."""

    def __init__(self, pins: PinnedPair, history: CommitHistory) -> None:
        self.history = history
        self.held = history.ancestry()
        self.numbers = {commit.id: number for number, commit in enumerate(history.commits)}
        self._good = pins.base.revision

    def id(self, number: int) -> str:
        """Return the id of a commit."""
        return self.history.commits[number].id

    def revision(self, commit: str) -> Revision:
        """Return a commit, which may be the good end, with its subject."""
        number = self.numbers.get(commit)
        summary = self._good.summary if number is None else self.history.commits[number].summary
        return Revision(rev=commit, commit=commit, summary=summary)

    def named(self, commit: str) -> str:
        """Return the name of a commit for messages."""
        return f"{commit[:10]} ({self.revision(commit).summary})"

    def last(self, suspects: frozenset[int], skipped: Collection[str]) -> str:
        """Return the first commit that holds all suspects and can be measured: it is none of those `skipped`."""
        holding = (self.id(number) for number, held in enumerate(self.held) if suspects <= held)
        return next((commit for commit in holding if commit not in skipped), self.history.bad)

    def before(self, suspects: frozenset[int], skipped: Collection[str]) -> str:
        """Return the nearest commit along first parents that is none of the suspects and can be measured."""
        number = self.numbers.get(self.last(suspects, skipped), max(suspects))
        while number in suspects or self.id(number) in skipped:
            parents = self.history.commits[number].parents
            if not parents:
                return self.history.good
            number = parents[0]
        return self.id(number)

    def step(self, suspects: frozenset[int], skipped: Collection[str]) -> tuple[str, str]:
        """Return the names of what shows the culprit: what stands before the suspects, and the last of them."""
        return self.before(suspects, skipped)[:SHORT], self.last(suspects, skipped)[:SHORT]

    def passed(self, skipped: Mapping[str, str]) -> tuple[SkippedCommit, ...]:
        """Return the commits that could not be measured, with their reasons, oldest first."""
        return tuple(SkippedCommit(self.revision(commit), skipped[commit]) for commit in sorted(skipped, key=self.numbers.__getitem__))

    def alike(self, same_runs: Mapping[str, str]) -> tuple[SameCommit, ...]:
        """Return the commits that are the same as another, by their files or, by `same_runs`, in what is run, oldest first."""
        same = {
            commit.id: self.history.good if other is None else self.id(other)
            for number, (commit, other) in enumerate(zip(self.history.commits, self.history.same, strict=True))
            if other != number
        }
        of_each = {**same_runs, **same}
        return tuple(SameCommit(self.revision(commit), self.revision(of_each[commit])) for commit in self.numbers if commit in of_each)
