"""The commits of a range as git has them: merges, paths, submodules, documentation, ends that lie wrongly."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfdiff.errors import RevisionError
from perfdiff.revisions.history import CommitHistory, bisected_good, changed_files, history, inert_files
from perfdiff.revisions.pins import resolve
from perfdiff.revisions.repository import find_repository
from programs import git


def commit(folder: Path, files: dict[str, str], message: str = "change") -> str:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", message)
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "-q")
    commit(folder, {"src/a.c": "0", "docs/a.md": "0"}, "start")
    git(folder, "tag", "good")
    return folder


def between(
    project: Path, good: str = "good", bad: str = "HEAD", *, first_parent: bool = False, paths: tuple[str, ...] = (), command: str = "make"
) -> CommitHistory:
    repository = find_repository(project)
    pins = resolve(repository, (good, bad), snapshots=project.parent / "snapshots")
    inert = inert_files(repository, ("bench",), (command,))
    return history(pins.base, pins.head, first_parent=first_parent, paths=paths, inert=inert)


def ids(found: CommitHistory) -> list[str]:
    return [each.id for each in found.commits]


def test_commits_come_oldest_first_with_their_subjects(project: Path) -> None:
    made = [commit(project, {"src/a.c": str(number)}, f"number {number}") for number in (1, 2, 3)]
    found = between(project)
    assert ids(found) == made
    assert [each.summary for each in found.commits] == ["number 1", "number 2", "number 3"]
    assert found.ancestry()[2] == {0, 1, 2}


def test_a_merge_holds_both_branches_and_along_first_parents_it_is_one_commit(project: Path) -> None:
    left = commit(project, {"src/a.c": "1"})
    git(project, "checkout", "-q", "-b", "topic", "good")
    right = [commit(project, {"src/b.c": str(number)}) for number in (1, 2)]
    git(project, "checkout", "-q", "main")
    git(project, "merge", "-q", "--no-edit", "topic")
    merge = git(project, "rev-parse", "HEAD")
    found = between(project)
    assert set(ids(found)) == {left, *right, merge}
    number = {each: place for place, each in enumerate(ids(found))}
    held = found.ancestry()
    assert held[number[merge]] == set(range(4))
    assert held[number[right[1]]] == {number[right[0]], number[right[1]]}
    assert held[number[left]] == {number[left]}
    assert ids(between(project, first_parent=True)) == [left, merge]


def test_only_commits_that_touch_a_path_are_taken_and_keep_their_descent(project: Path) -> None:
    first = commit(project, {"src/a.c": "1"})
    commit(project, {"other/b.c": "1"})
    last = commit(project, {"src/a.c": "2"})
    found = between(project, paths=("src",))
    assert ids(found) == [first, last]
    assert found.commits[1].parents == (0,)
    with pytest.raises(RevisionError, match="no commit between good and HEAD touches nowhere") as told:
        between(project, paths=("nowhere",))
    assert told.value.slug == "no-commits"


def test_paths_are_meant_from_the_projects_folder(project: Path) -> None:
    made = commit(project, {"sub/x.c": "1"})
    commit(project, {"x.c": "1"})
    assert ids(between(project / "sub", paths=("x.c",))) == [made]


def test_documentation_overlay_reverts_and_empty_commits_are_the_same_as_a_neighbour(project: Path) -> None:
    commit(project, {"docs/a.md": "1"})
    commit(project, {"bench/driver.c": "1"})
    commit(project, {"src/a.c": "1"})
    commit(project, {})
    commit(project, {"LICENSE": "free", "README": "1", "NEWS.txt": "1"})
    commit(project, {"src/a.c": "2"})
    assert between(project).same == (None, None, 2, 2, 2, 5)


def test_documentation_that_a_command_names_takes_part(project: Path) -> None:
    commit(project, {"docs/a.md": "1"})
    for command in ("./cmark docs/a.md", "./cmark docs/*", "./cmark *.md"):
        assert between(project, command=command).same == (0,)
    assert between(project, command="./cmark input").same == (None,)


def test_what_only_services_read_takes_no_part_unless_a_command_names_it(project: Path) -> None:
    commit(project, {".github/workflows/ci.yml": "1", ".travis.yml": "1"})
    commit(project, {"src/.github/a.c": "1"})
    assert between(project).same == (None, 1)
    assert between(project, command="sh .github/workflows/build.sh").same == (0, 1)


def test_a_merge_that_changes_nothing_is_the_same_as_its_parent(project: Path) -> None:
    git(project, "checkout", "-q", "-b", "topic", "good")
    commit(project, {"src/a.c": "1"})
    git(project, "checkout", "-q", "main")
    git(project, "merge", "-q", "--no-ff", "--no-edit", "topic")
    assert between(project).same == (0, 0)


def test_renames_count_as_changes_of_both_files(project: Path) -> None:
    git(project, "mv", "src/a.c", "src/b.c")
    moved = commit(project, {})
    assert set(changed_files(find_repository(project), "good", moved)) == {"src/a.c", "src/b.c"}
    assert between(project).same == (0,)


def test_another_commit_of_a_submodule_is_a_change(project: Path, tmp_path: Path) -> None:
    library = tmp_path / "library"
    library.mkdir()
    git(library, "init", "-q")
    first = commit(library, {"l.c": "0"})
    git(project, "-c", "protocol.file.allow=always", "submodule", "-q", "add", str(library), "lib")
    git(project, "-C", "lib", "checkout", "-q", first)
    commit(project, {}, "add the library")
    second = commit(library, {"l.c": "1"})
    git(project, "-C", "lib", "fetch", "-q")
    git(project, "-C", "lib", "checkout", "-q", second)
    commit(project, {}, "newer library")
    found = between(project)
    assert found.same == (0, 1)
    assert changed_files(find_repository(project), ids(found)[0], ids(found)[1]) == ("lib",)


def test_ends_that_are_one_commit_or_in_the_wrong_order_are_told(project: Path) -> None:
    with pytest.raises(RevisionError, match="are the same commit") as told:
        between(project)
    assert told.value.slug == "ends-alike"
    commit(project, {"src/a.c": "1"})
    with pytest.raises(RevisionError, match="perfdiff bisect good HEAD") as told:
        between(project, "HEAD", "good")
    assert told.value.slug == "ends-swapped"


def test_ends_on_different_branches_are_told_where_to_start(project: Path) -> None:
    git(project, "checkout", "-q", "-b", "topic")
    commit(project, {"src/a.c": "1"})
    git(project, "checkout", "-q", "main")
    commit(project, {"src/a.c": "2"})
    with pytest.raises(RevisionError, match=r"git merge-base topic main") as told:
        between(project, "topic", "main")
    assert told.value.slug == "ends-unrelated"


def test_a_shallow_clone_is_told_as_such(project: Path, tmp_path: Path) -> None:
    commit(project, {"src/a.c": "1"})
    commit(project, {"src/a.c": "2"})
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{project}", str(clone))
    git(clone, "fetch", "-q", "--depth", "1", "origin", "tag", "good")
    with pytest.raises(RevisionError, match="git fetch --unshallow") as told:
        between(clone)
    assert told.value.slug == "shallow-clone"


def test_git_bisects_oldest_good_commit_is_the_reference(project: Path) -> None:
    with pytest.raises(RevisionError, match="no bisect is under way") as told:
        bisected_good(find_repository(project))
    assert told.value.slug == "no-bisect"
    made = [commit(project, {"src/a.c": str(number)}) for number in range(1, 6)]
    git(project, "bisect", "start", made[4], git(project, "rev-parse", "good"))
    git(project, "bisect", "good", made[1])
    assert bisected_good(find_repository(project)) == git(project, "rev-parse", "good")
