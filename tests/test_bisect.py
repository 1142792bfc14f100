"""Bisecting: the right commit, without a run too many, whatever the history and the machine do meanwhile."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import findings as made
from laboratory import ABSENT, BROKEN, FAST, SLOW, Laboratory, commit, line, request
from perfdiff import cli
from perfdiff.analysis.findings import Verdict
from perfdiff.analysis.search.bisection import Bisection, CommitStanding
from perfdiff.analysis.search.ends import SearchSubject, follow
from perfdiff.errors import MeasurementError, PerfdiffError, RevisionError, StoreError, UsageError
from perfdiff.progress import Silent
from perfdiff.report import bisect as report
from perfdiff.report import document, html, json_report, markdown, terminal
from perfdiff.report.sentences.catalogue import noted
from perfdiff.searches import bisecting
from perfdiff.searches.question import SearchQuestion
from programs import git


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "project"


class Told(Silent):
    """Progress that keeps the titles of its stages."""

    def __init__(self) -> None:
        self.stages: list[str] = []

    def stage(self, name: str, total: int | None) -> None:
        self.stages.append(name)


def laboratory(folder: Path, monkeypatch: pytest.MonkeyPatch, noise: float = 0.005) -> Laboratory:
    found = Laboratory(folder, noise)
    monkeypatch.setattr(bisecting.pipeline, "compare", found.compare)
    return found


def bisected(folder: Path, **asked: object) -> Bisection:
    return bisecting.bisect(SearchQuestion(request(folder), **asked), Silent())[0]  # type: ignore[arg-type]


def test_the_commit_that_is_slower_than_its_parent_is_named_and_compared_with_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commits = line(folder, [FAST] * 9 + [SLOW] * 8)
    laboratory(folder, monkeypatch)
    found = bisected(folder)
    assert [each.commit for each in found.suspects] == [commits[9]]
    assert found.certain
    assert found.confidence >= 0.95
    assert (found.findings.base.commit, found.findings.head.commit) == (commits[8], commits[9])
    assert len(found.measured) <= 4 + 4
    assert {each.revision.commit: each.standing for each in found.measured} == {
        each.revision.commit: CommitStanding.BAD if commits.index(each.revision.commit or "") >= 9 else CommitStanding.GOOD
        for each in found.measured
    }


def test_the_culprit_is_confirmed_by_runs_of_another_seed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commits = line(folder, [FAST, FAST, SLOW, SLOW])
    lab = laboratory(folder, monkeypatch)
    bisected(folder)
    confirmed = [(base, head, seed) for base, head, seed in lab.made if base == commits[1]]
    assert confirmed
    assert all(seed == 1 + bisecting.FRESH for _, _, seed in confirmed)


def test_progress_names_a_likeliest_commit_only_once_one_is(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commits = line(folder, [FAST] * 9 + [SLOW] * 8)
    laboratory(folder, monkeypatch)
    told = Told()
    bisecting.bisect(SearchQuestion(request(folder)), told)
    steps = [stage for stage in told.stages if " left" in stage]
    assert "16 commits left" in steps[0]
    assert "likeliest" not in steps[0]
    assert f"likeliest {commits[9][:10]} with 9" in steps[-1]
    assert "100 %" not in steps[-1]


def test_a_range_of_one_commit_is_only_confirmed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commits = line(folder, [FAST, SLOW])
    laboratory(folder, monkeypatch)
    found = bisected(folder)
    assert [each.commit for each in found.suspects] == [commits[1]]
    assert found.measured == ()


def test_commits_that_do_not_build_are_skipped_with_their_reason(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    costs = [FAST] * 8 + [SLOW] * 9
    for broken in (4, 12):
        costs[broken] = BROKEN
    commits = line(folder, costs)
    laboratory(folder, monkeypatch)
    found = bisected(folder)
    assert [each.commit for each in found.suspects] == [commits[8]]
    assert all("'make' exited 2" in each.reason and "[build-failed]" in each.reason for each in found.passed)


def test_suspects_that_no_build_tells_apart_are_all_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commits = line(folder, [FAST, FAST, FAST, BROKEN, BROKEN, SLOW, SLOW, SLOW])
    laboratory(folder, monkeypatch)
    found = bisected(folder)
    assert [each.commit for each in found.suspects] == commits[3:6]
    assert found.certain
    assert (found.findings.base.commit, found.findings.head.commit) == (commits[2], commits[5])
    written = json.loads(report.render_json(found, json_report.json_document(document.build(found.findings))))
    assert written["culprit"] is None
    assert [each["commit"] for each in written["suspects"]] == commits[3:6]
    assert {each["commit"] for each in written["skipped"]} == set(commits[3:5])


def test_weak_evidence_is_measured_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commits = line(folder, [FAST] * 5 + [SLOW] * 4)
    laboratory(folder, monkeypatch, noise=0.06)
    found = bisected(folder)
    assert max(each.times for each in found.measured) > 1
    assert commits[5] in [each.commit for each in found.suspects]


def test_ends_that_are_alike_are_told_with_figures(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line(folder, [SLOW, FAST, SLOW])
    lab = laboratory(folder, monkeypatch)
    said = r"bad is not slower than good: .*`work` is ×(1\.0|0\.9)\d; both ends are good, or both are bad"
    with pytest.raises(UsageError, match=said) as told:
        bisected(folder)
    assert told.value.slug == "ends-alike"
    assert "work: wall_ns ×" in told.value.detail
    assert len(lab.made) == 1


def test_ends_whose_bad_one_is_faster_are_told_with_figures(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line(folder, [SLOW, SLOW, FAST])
    laboratory(folder, monkeypatch)
    with pytest.raises(UsageError, match="not slower than good but faster") as told:
        bisected(folder)
    assert told.value.slug == "ends-swapped"
    assert "×0.7" in str(told.value)


def test_ends_that_cannot_be_told_apart_are_no_usage_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line(folder, [FAST, FAST, FAST])
    laboratory(folder, monkeypatch, noise=0.2)
    with pytest.raises(MeasurementError, match="add runs") as told:
        bisected(folder)
    assert told.value.slug == "ends-inconclusive"


@pytest.mark.parametrize(
    ("asked", "slug"),
    [({"function": "table_grow"}, "ends-inconclusive"), ({"function": "table_hash"}, "ends-alike"), ({"metric": "blocks"}, "ends-alike")],
    ids=["the function itself", "another function", "a metric nothing grew by"],
)
def test_ends_stay_open_only_where_what_is_asked_for_does(asked: dict[str, str], slug: str) -> None:
    found = made.findings(Verdict.INCONCLUSIVE, made.others()[1:3])
    function = asked.get("function")
    wanted = SearchSubject("good", "bad", function, (lambda name, _file: name == function) if function else None, asked.get("metric"))
    with pytest.raises(PerfdiffError) as told:
        follow(found, wanted, "nothing is slower")
    assert told.value.slug == slug


def test_ends_in_the_wrong_order_of_history_are_told_before_anything_is_built(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line(folder, [FAST, SLOW])
    lab = laboratory(folder, monkeypatch)
    with pytest.raises(RevisionError, match="perfdiff bisect good bad") as told:
        bisecting.bisect(SearchQuestion(request(folder, "bad", "good")), Silent())
    assert told.value.slug == "ends-swapped"
    assert lab.made == []


def test_an_unknown_function_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line(folder, [FAST, SLOW])
    laboratory(folder, monkeypatch)
    with pytest.raises(UsageError, match="'wrk' is no function that the comparison of good and bad looked at"):
        bisected(folder, function="wrk", named=lambda name, _file: name == "wrk")


def test_commits_without_the_function_are_skipped(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commits = line(folder, [FAST, FAST, FAST, FAST, ABSENT, SLOW, SLOW, SLOW, SLOW])
    laboratory(folder, monkeypatch)
    found = bisected(folder, function="work", named=lambda name, _file: name == "work")
    assert [each.commit for each in found.suspects] == commits[4:6]
    assert any("is not there to be measured" in each.reason for each in found.passed)


def test_an_interrupted_search_goes_on_where_it_was(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commits = line(folder, [FAST] * 20 + [SLOW] * 12)
    lab = laboratory(folder, monkeypatch)
    straight = bisected(folder)
    asked = list(lab.made)
    for file in (folder.parent / "cache" / "bisects").iterdir():
        file.unlink()
    lab.made.clear()

    def interrupted(asked_of: object, progress: object) -> object:
        if len(lab.made) == 4:
            raise KeyboardInterrupt
        return lab.compare(asked_of, progress)  # type: ignore[arg-type]

    monkeypatch.setattr(bisecting.pipeline, "compare", interrupted)
    with pytest.raises(KeyboardInterrupt):
        bisected(folder)
    monkeypatch.setattr(bisecting.pipeline, "compare", lab.compare)
    resumed = bisected(folder)
    assert [each.commit for each in resumed.suspects] == [commits[20]] == [each.commit for each in straight.suspects]
    # The ends are asked for anew, which the cache of recordings answers; no commit is measured twice.
    assert len(lab.made) == len(asked) + 1
    assert sorted(set(lab.made)) == sorted(set(asked))


def test_a_damaged_state_is_told_and_the_search_begins_anew(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commits = line(folder, [FAST] * 4 + [SLOW] * 4)
    laboratory(folder, monkeypatch)
    bisected(folder)
    for file in (folder.parent / "cache" / "bisects").iterdir():
        file.write_text('{"good": 7')
    assert [each.commit for each in bisected(folder).suspects] == [commits[4]]


def test_history_rewritten_during_the_search_is_noted_and_the_search_stays_with_its_commits(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = line(folder, [FAST] * 4 + [SLOW] * 5)
    lab = laboratory(folder, monkeypatch)

    def rewriting(asked_of: object, progress: object) -> object:
        if len(lab.made) == 2:
            git(folder, "tag", "-f", "bad", commits[3])
        return lab.compare(asked_of, progress)  # type: ignore[arg-type]

    monkeypatch.setattr(bisecting.pipeline, "compare", rewriting)
    found = bisected(folder)
    assert [each.commit for each in found.suspects] == [commits[4]]
    assert "history-rewritten" in [note.slug for note in map(noted, found.findings.notes)]


def test_history_rewritten_between_two_searches_is_noted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line(folder, [FAST] * 4 + [SLOW] * 4)
    laboratory(folder, monkeypatch)
    bisected(folder)
    culprit = commit(folder, "190")
    git(folder, "tag", "-f", "good", "bad")
    git(folder, "tag", "-f", "bad", culprit)
    found = bisected(folder)
    assert [each.commit for each in found.suspects] == [culprit]
    assert "history-rewritten" in [note.slug for note in map(noted, found.findings.notes)]


def test_a_commit_that_is_lost_from_the_repository_ends_the_search(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line(folder, [FAST] * 4 + [SLOW] * 4)
    lab = laboratory(folder, monkeypatch)

    def losing(asked_of: object, progress: object) -> object:
        if len(lab.made) == 2:
            raise RevisionError("objects of this revision are not in the repository", slug="objects-missing")
        return lab.compare(asked_of, progress)  # type: ignore[arg-type]

    monkeypatch.setattr(bisecting.pipeline, "compare", losing)
    with pytest.raises(RevisionError) as told:
        bisected(folder)
    assert told.value.slug == "objects-missing"


@pytest.mark.parametrize("words", ["No space left on device", "cannot write: No space left on device (os error 28)"])
def test_a_full_disk_is_not_taken_for_a_commit_that_does_not_build(folder: Path, monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    line(folder, [FAST] * 4 + [SLOW] * 4)
    lab = laboratory(folder, monkeypatch)

    def filling(asked_of: object, progress: object) -> object:
        if len(lab.made) == 2:
            raise bisecting.BuildError("'make' exited 2 in head", slug="build-failed", detail=words)
        return lab.compare(asked_of, progress)  # type: ignore[arg-type]

    monkeypatch.setattr(bisecting.pipeline, "compare", filling)
    with pytest.raises(bisecting.BuildError, match="exited 2"):
        bisected(folder)


def test_a_state_that_cannot_be_kept_is_told_as_the_caches_failure(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line(folder, [FAST] * 4 + [SLOW] * 4)
    laboratory(folder, monkeypatch)
    cache = folder.parent / "cache"
    cache.mkdir()
    (cache / "bisects").write_text("in the way")
    with pytest.raises(StoreError) as told:
        bisected(folder)
    assert told.value.slug == "cache-unwritable"


def test_commits_that_change_only_documentation_need_no_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line(folder, [FAST])
    documented = [_only(folder, {"README.md": f"{number}\n"}) for number in range(4)]
    culprit = commit(folder, SLOW)
    documented += [_only(folder, {"docs.rst": f"{number}\n"}) for number in range(4)]
    git(folder, "tag", "-f", "bad")
    lab = laboratory(folder, monkeypatch)
    found = bisected(folder)
    assert [each.commit for each in found.suspects] == [culprit]
    assert {each.revision.commit for each in found.alike} == set(documented)
    assert found.measured == ()
    assert len({head for _, head, _ in lab.made}) <= 2


def test_a_culprit_on_a_merged_branch_is_found_and_with_first_parents_its_merge(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    main = line(folder, [FAST, FAST, FAST])
    git(folder, "checkout", "-q", "-b", "topic", main[0])
    culprit = [commit(folder, FAST), commit(folder, SLOW), commit(folder, SLOW)][1]
    git(folder, "checkout", "-q", "main")
    git(folder, "merge", "-q", "-s", "ours", "--no-commit", "topic")
    merge = commit(folder, SLOW)
    commit(folder, SLOW)
    git(folder, "tag", "-f", "bad")
    laboratory(folder, monkeypatch)
    assert [each.commit for each in bisected(folder).suspects] == [culprit]
    assert [each.commit for each in bisected(folder, first_parent=True).suspects] == [merge]


def test_a_report_names_culprit_measured_and_skipped_commits(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    costs = [FAST] * 6 + [SLOW] * 6
    costs[3] = costs[8] = BROKEN
    commits = line(folder, costs)
    laboratory(folder, monkeypatch)
    found = bisected(folder)
    compared = replace(document.build(found.findings), search=report.blocks(found))
    text = terminal.render(compared, width=140)
    assert text.startswith(f"Culprit: {commits[6][:10]} (cost {SLOW}), with 99.9 % confidence\n")
    for written_for_people in (text, markdown.render(compared), html.render(compared)):
        assert all((each.revision.commit or "")[:10] in written_for_people for each in (*found.measured, *found.passed))
    written = json.loads(report.render_json(found, json_report.json_document(compared)))
    assert written["schema"] == "perfdiff.bisect/1"
    assert (written["good"]["commit"], written["bad"]["commit"], written["culprit"]) == (commits[0], commits[-1], commits[6])
    assert {each["verdict"] for each in written["measured"]} == {"good", "bad"}
    assert written["report"]["schema"] == "perfdiff.report/1"


def test_a_search_in_a_file_leaves_its_answer_and_its_place_on_standard_error(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    commits = line(folder, [FAST] * 2 + [SLOW] * 2)
    laboratory(folder, monkeypatch)
    monkeypatch.chdir(folder)
    with pytest.raises(SystemExit) as left:
        cli.main(["bisect", "good", "bad", "-o", "found.json", "--cache", str(folder.parent / "cache"), "--build", "true", "--", "./a"])
    assert left.value.code == 1
    answer, place = capsys.readouterr().err.splitlines()[-2:]
    assert answer.startswith(f"perfdiff: Culprit: {commits[2][:10]}")
    assert place == "perfdiff: written to found.json"


def _only(folder: Path, files: dict[str, str]) -> str:
    for name, text in files.items():
        (folder / name).write_text(text)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "document")
    return git(folder, "rev-parse", "HEAD")
