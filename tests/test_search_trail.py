"""The commits of a search by number and by id: which one shows the culprit, and in which order the others are told."""

from __future__ import annotations

from perfdiff.records.schema import Revision
from perfdiff.revisions.history import Commit, CommitHistory
from perfdiff.revisions.pins import Pin, PinnedPair
from perfdiff.revisions.repository import Repository
from perfdiff.searches.trail import Trail

# A line of five commits, each named by a letter that falls as they get newer, of which the third changes nothing that is run.
IDS = [letter * 40 for letter in "edcba"]
GOOD = "f" * 40


def trail(same: tuple[int | None, ...] = (0, 1, 1, 3, 4)) -> Trail:
    commits = tuple(Commit(name, f"Change {name[0]}", (number - 1,) if number else (), ()) for number, name in enumerate(IDS))
    ends = (("good", GOOD), ("bad", IDS[4]))
    pins = (Pin(Revision(name, commit, "An end"), Repository.__new__(Repository), commit, "") for name, commit in ends)
    return Trail(PinnedPair(*pins), CommitHistory(GOOD, IDS[4], commits, same))


def test_commits_that_were_skipped_are_told_oldest_first() -> None:
    passed = trail().passed({IDS[3]: "does not build", IDS[0]: "does not run"})
    assert [(commit.revision.commit, commit.reason) for commit in passed] == [(IDS[0], "does not run"), (IDS[3], "does not build")]


def test_commits_that_are_alike_are_told_oldest_first_and_by_their_files_before_all_else() -> None:
    alike = trail((None, 1, 1, 3, 4)).alike({IDS[4]: IDS[3], IDS[2]: IDS[0]})
    assert [(pair.revision.commit, pair.other.commit) for pair in alike] == [(IDS[0], GOOD), (IDS[2], IDS[1]), (IDS[4], IDS[3])]
    assert alike[0].other.summary == "An end"


def test_a_culprit_is_shown_by_the_nearest_commits_that_can_be_measured() -> None:
    between = trail()
    assert between.step(frozenset({2}), {}) == (IDS[1][:12], IDS[2][:12])
    assert between.step(frozenset({2}), {IDS[1]}) == (IDS[0][:12], IDS[2][:12])
    assert between.step(frozenset({3, 4}), {IDS[3]}) == (IDS[2][:12], IDS[4][:12])
    assert between.step(frozenset({0}), {}) == (GOOD[:12], IDS[0][:12])
