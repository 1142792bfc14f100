"""Revisions as people name them, and trees laid out without touching the repository they come from."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

import pytest

from perfdiff.errors import RevisionError
from perfdiff.revisions.overlay import overlay_digest
from perfdiff.revisions.pins import PinnedPair, left_out, resolve
from perfdiff.revisions.repository import find_repository
from perfdiff.revisions.trees import lay_out, settle_in_order
from programs import git

ALLOW_FILE = ("-c", "protocol.file.allow=always")


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def commit(repository: Path, message: str, files: dict[str, str]) -> str:
    write(repository, files)
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", message)
    return git(repository, "rev-parse", "HEAD")


def contents(folder: Path) -> dict[str, str]:
    """Return the texts of all files outside .git."""
    files = (path for path in folder.rglob("*") if path.is_file() and ".git" not in path.relative_to(folder).parts)
    return {str(path.relative_to(folder)): path.read_text() for path in files}


def fingerprint(folder: Path) -> dict[str, tuple[int, int, str]]:
    """Return mode, time of change and content of everything in a folder, .git included."""
    found = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() and not path.is_symlink() else ""
        found[str(path.relative_to(folder))] = (status.st_mode, status.st_mtime_ns, digest)
    return found


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with tags v1 and v2, a branch `side` off v1, and v2 checked out."""
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "-q")
    commit(folder, "first", {"main.c": "int main(void) { return 1; }\n", ".gitignore": "*.o\n"})
    git(folder, "tag", "-a", "v1", "-m", "version 1")
    git(folder, "checkout", "-q", "-b", "side")
    commit(folder, "on the side", {"side.c": "int side;\n"})
    git(folder, "checkout", "-q", "main")
    commit(folder, "second", {"main.c": "int main(void) { return 2; }\n"})
    git(folder, "tag", "v2")
    return folder


def pinned(project: Path, *specification: str) -> PinnedPair:
    return resolve(find_repository(project), specification, snapshots=project.parent / "cache" / "snapshots")


def refused(project: Path, *specification: str) -> RevisionError:
    with pytest.raises(RevisionError) as caught:
        pinned(project, *specification)
    return caught.value


@pytest.mark.parametrize(
    ("specification", "base", "head"),
    [
        (("v1", "v2"), "v1", "v2"),
        (("v1..v2",), "v1", "v2"),
        (("v1..",), "v1", "v2"),
        (("..v1",), "v2", "v1"),
        (("main...side",), "v1", "side"),
        (("HEAD~1", ":/on the"), "v1", "side"),
        (("v2", "v2"), "v2", "v2"),
    ],
)
def test_revisions_are_understood_as_git_does(project: Path, specification: tuple[str, ...], base: str, head: str) -> None:
    pair = pinned(project, *specification)
    assert pair.base.commit == git(project, "rev-parse", f"{base}^{{commit}}")
    assert pair.head.commit == git(project, "rev-parse", f"{head}^{{commit}}")


def test_dots_inside_a_revision_make_no_range(project: Path) -> None:
    assert pinned(project, "HEAD^{/fi..t}").base.commit == git(project, "rev-parse", "v1^{commit}")


def test_revision_keeps_its_name_and_summary(project: Path) -> None:
    revision = pinned(project, "v1", "v2").base.revision
    assert (revision.rev, revision.summary) == ("v1", "first")
    assert revision.commit == git(project, "rev-parse", "v1^{commit}")


def test_one_revision_is_compared_with_the_working_tree(project: Path, tmp_path: Path) -> None:
    write(project, {"main.c": "int main(void) { return 3; }\n", "new/file.c": "int file;\n", "main.o": "object\n"})
    pair = pinned(project, "v1")
    assert pair.head.revision.commit is None
    lay_out(pair.head, tmp_path / "tree")
    assert contents(tmp_path / "tree") == {
        "main.c": "int main(void) { return 3; }\n",
        "new/file.c": "int file;\n",
        ".gitignore": "*.o\n",
    }


@pytest.mark.parametrize("flag", ["--skip-worktree", "--assume-unchanged"])
def test_files_that_git_takes_for_unchanged_are_in_the_working_tree_as_they_are(project: Path, tmp_path: Path, flag: str) -> None:
    commit(project, "third", {"absent.c": "int absent;\n"})
    git(project, "update-index", flag, "main.c", "absent.c")
    (project / "main.c").write_text("int main(void) { return 4; }\n")
    (project / "absent.c").unlink()
    before = fingerprint(project)
    lay_out(pinned(project, "v1").head, tmp_path / "tree")
    assert contents(tmp_path / "tree")["main.c"] == "int main(void) { return 4; }\n"
    assert contents(tmp_path / "tree")["absent.c"] == "int absent;\n"
    assert fingerprint(project) == before


def test_changes_that_no_side_has_are_told_where_a_side_is_what_is_checked_out(project: Path) -> None:
    def told(*specification: str) -> list[str]:
        pins = pinned(project, *specification)
        return [note.text for note in left_out(pins.base.repository, pins, [project / "side.c"])]

    assert told("v1", "v2") == []
    (project / "untracked.c").write_text("int n;\n")
    commit(project, "third", {"side.c": "int side;\n"})
    (project / "side.c").write_text("int side = 3;\n")
    assert told("v1", "HEAD") == []
    (project / "main.c").write_text("int main(void) { return 3; }\n")
    (text,) = told("v1", "HEAD")
    assert text == "uncommitted changes of main.c are part of neither side; `perfdiff BASE` alone compares with them"
    assert told("v1", "v2") == told("v1") == []


@pytest.mark.parametrize("staged", [False, True])
def test_files_apart_are_in_the_working_tree_as_its_commit_has_them(project: Path, tmp_path: Path, staged: bool) -> None:
    repository, snapshots = find_repository(project), tmp_path / "snapshots"
    commit(project, "third", {"README": "as committed\n"})
    before = resolve(repository, ["HEAD"], snapshots=snapshots).head
    write(project, {"perf/accepted.toml": "one\n", "README": "two\n"})
    apart = [project / "perf" / "accepted.toml", project / "README", tmp_path / "perfdiff.toml"]
    if staged:
        git(project, "add", "-A")
    assert resolve(repository, ["HEAD"], snapshots=snapshots).head.tree != before.tree
    after = resolve(repository, ["HEAD"], snapshots=snapshots, apart=apart).head
    assert after == before
    tree = tmp_path / "tree"
    lay_out(after, tree)
    assert (tree / "README").read_text() == "as committed\n"
    assert not (tree / "perf").exists()


def test_deleted_and_staged_files_are_as_in_the_working_tree(project: Path, tmp_path: Path) -> None:
    commit(project, "third", {"gone.c": "", "staged.c": "1\n"})
    (project / "gone.c").unlink()
    write(project, {"staged.c": "2\n"})
    git(project, "add", "staged.c")
    write(project, {"staged.c": "3\n"})
    lay_out(pinned(project, "HEAD").head, tmp_path / "tree")
    assert contents(tmp_path / "tree").keys() == {"main.c", ".gitignore", "staged.c"}
    assert (tmp_path / "tree" / "staged.c").read_text() == "3\n"


def test_working_tree_without_changes_is_the_tree_of_its_commit(project: Path) -> None:
    pair = pinned(project, "v2")
    assert pair.base.tree == pair.head.tree
    assert pair.head.revision.summary.startswith("no uncommitted changes on ")


def test_working_tree_laid_out_later_is_the_one_that_was_pinned(project: Path, tmp_path: Path) -> None:
    write(project, {"main.c": "pinned\n"})
    pin = pinned(project, "v1").head
    write(project, {"main.c": "edited since\n"})
    lay_out(pin, tmp_path / "tree")
    assert (tmp_path / "tree" / "main.c").read_text() == "pinned\n"


def test_cache_inside_the_checkout_is_no_part_of_the_working_tree(project: Path) -> None:
    repository = find_repository(project)
    first = resolve(repository, ["v2"], snapshots=project / ".perfdiff" / "snapshots").head
    second = resolve(repository, ["v2"], snapshots=project / ".perfdiff" / "snapshots").head
    assert first.tree == second.tree == pinned(project, "v2", "v2").base.tree


def test_tree_describes_itself_as_git_would(project: Path, tmp_path: Path) -> None:
    lay_out(pinned(project, "v1", "v2").base, tmp_path / "tree")
    assert git(tmp_path / "tree", "describe", "--dirty") == "v1"
    assert git(tmp_path / "tree", "status", "--porcelain") == ""
    write(project, {"main.c": "changed\n"})
    lay_out(pinned(project, "v1").head, tmp_path / "dirty")
    assert git(tmp_path / "dirty", "describe", "--dirty").endswith("-dirty")


def test_all_files_of_a_tree_have_one_time(project: Path, tmp_path: Path) -> None:
    lay_out(pinned(project, "v1", "side").head, tmp_path / "tree")
    assert len({(tmp_path / "tree" / name).stat().st_mtime_ns for name in contents(tmp_path / "tree")}) == 1


def test_files_that_nothing_builds_have_times_in_the_order_of_a_checkout(project: Path, tmp_path: Path) -> None:
    commit(project, "more", {"a/c.txt": "c", "a.txt": "a", "b.txt": "b"})
    tree = tmp_path / "tree"
    lay_out(pinned(project, "HEAD", "HEAD").head, tree)
    before = (tree / "b.txt").stat().st_mtime_ns
    settle_in_order(tree, but=[Path("b.txt")])
    times = {name: (tree / name).stat().st_mtime_ns for name in contents(tree)}
    assert times.pop("b.txt") == before
    assert sorted(times, key=times.__getitem__) == [".gitignore", "a.txt", "a/c.txt", "main.c"]
    assert len({time // 10**9 for time in times.values()}) == 1
    assert git(tree, "diff-index", "HEAD") == ""


def test_user_repository_is_untouched(project: Path, tmp_path: Path) -> None:
    write(project, {"main.c": "changed\n", "untracked.c": "int u;\n", "bench/run": "#!/bin/sh\n"})
    git(project, "add", "main.c")
    write(project, {"main.c": "changed again\n"})
    hook = project / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    for name in ("post-checkout", "post-index-change", "reference-transaction"):
        write(hook.parent, {name: "#!/bin/sh\ntouch hooked\n"})
        (hook.parent / name).chmod(0o755)
    before = fingerprint(project)
    pair = pinned(project, "v1")
    for number, pin in enumerate((pair.base, pair.head)):
        lay_out(pin, tmp_path / f"tree{number}", overlay=["bench/"])
    overlay_digest(pair.base.repository, ["bench/"])
    assert fingerprint(project) == before


def test_variables_of_a_calling_hook_do_not_lead_elsewhere(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_DIR", str(project / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(project))
    monkeypatch.setenv("GIT_INDEX_FILE", str(project / ".git" / "index"))
    before = fingerprint(project)
    lay_out(pinned(project, "v1", "v2").base, tmp_path / "tree")
    assert (tmp_path / "tree" / "main.c").read_text() == "int main(void) { return 1; }\n"
    assert fingerprint(project) == before


def test_linked_worktree_is_a_repository_of_its_own(project: Path, tmp_path: Path) -> None:
    git(project, "worktree", "add", "-q", str(tmp_path / "linked"), "side")
    write(tmp_path / "linked", {"side.c": "int changed;\n"})
    lay_out(pinned(tmp_path / "linked", "v1").head, tmp_path / "tree")
    assert (tmp_path / "tree" / "side.c").read_text() == "int changed;\n"


def test_worktree_of_a_bare_repository_has_a_working_tree(project: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--bare", str(project), "bare.git")
    git(tmp_path / "bare.git", "worktree", "add", "-q", str(tmp_path / "linked"), "main")
    write(tmp_path / "linked", {"main.c": "int changed;\n"})
    lay_out(pinned(tmp_path / "linked", "v1").head, tmp_path / "tree")
    assert (tmp_path / "tree/main.c").read_text() == "int changed;\n"


def test_untracked_clone_inside_the_checkout_is_laid_out_too(project: Path, tmp_path: Path) -> None:
    git(project, "clone", "-q", str(project), "vendored")
    lay_out(pinned(project, "v1").head, tmp_path / "tree")
    assert (tmp_path / "tree/vendored/main.c").read_text() == "int main(void) { return 2; }\n"


def test_project_in_a_subfolder_is_known(project: Path) -> None:
    write(project, {"tools/sort/main.c": ""})
    assert find_repository(project / "tools" / "sort").folder == Path("tools/sort")


def test_unknown_revision_offers_the_nearest_names(project: Path) -> None:
    git(project, "branch", "feature/parser")
    error = refused(project, "feature/praser~1", "v2")
    assert error.slug == "unknown-revision"
    assert "did you mean feature/parser?" in str(error)


def test_revision_before_the_first_commit_is_told_by_the_length_of_the_history(project: Path) -> None:
    git(project, "checkout", "-q", "v2")
    count = git(project, "rev-list", "--count", "--first-parent", "HEAD")
    error = refused(project, "HEAD~50", "v2")
    assert error.slug == "unknown-revision"
    assert f"the history of HEAD has {count} commits" in str(error)
    assert "did you mean" not in str(error)


@pytest.mark.parametrize("name", ["nothing-like-it", "v2:main.c", "--all", ""])
def test_what_is_no_commit_is_refused(project: Path, name: str) -> None:
    assert refused(project, name, "v2").slug == "unknown-revision"


def test_name_of_both_a_tag_and_a_branch_is_refused(project: Path) -> None:
    git(project, "branch", "v1", "side")
    error = refused(project, "v1", "v2")
    assert error.slug == "ambiguous-revision"
    assert "tags/v1" in str(error)
    assert pinned(project, "tags/v1", "v2").base.commit == git(project, "rev-parse", "refs/tags/v1^{commit}")


def test_name_of_a_tag_and_a_branch_of_one_commit_means_that_commit(project: Path) -> None:
    git(project, "branch", "v2", "tags/v2")
    assert pinned(project, "v1", "v2").head.commit == git(project, "rev-parse", "refs/heads/v2")
    assert pinned(project, "v2~1", "v2").base.commit == git(project, "rev-parse", "refs/heads/v2~1")


def test_three_revisions_are_refused(project: Path) -> None:
    assert refused(project, "v1", "v2", "side").slug == "bad-specification"


def test_a_range_beside_another_revision_is_refused(project: Path) -> None:
    assert "'v1..v2' names both ends already" in str(refused(project, "v1..v2", "side"))


def test_unrelated_histories_have_no_merge_base(project: Path) -> None:
    git(project, "checkout", "-q", "--orphan", "other")
    commit(project, "unrelated", {"other.c": ""})
    assert refused(project, "main...other").slug == "no-merge-base"


def test_shallow_clone_is_told_how_to_deepen(project: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{project}", "shallow")
    error = refused(tmp_path / "shallow", "HEAD~1", "HEAD")
    assert error.slug == "shallow-clone"
    assert "git fetch --unshallow" in str(error)
    lay_out(pinned(tmp_path / "shallow", "HEAD", "HEAD").base, tmp_path / "tree")
    assert git(tmp_path / "tree", "log", "--format=%s") == "second"


def test_bare_repository_compares_commits_but_has_no_working_tree(project: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--bare", str(project), "bare.git")
    lay_out(pinned(tmp_path / "bare.git", "v1", "v2").head, tmp_path / "tree")
    assert (tmp_path / "tree" / "main.c").read_text() == "int main(void) { return 2; }\n"
    assert refused(tmp_path / "bare.git", "v1").slug == "bare-repository"


def test_folder_outside_any_repository_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RevisionError) as caught:
        find_repository(tmp_path)
    assert caught.value.slug == "not-a-repository"


def test_repository_without_commits_says_so(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    assert "no commits yet" in str(refused(tmp_path, "HEAD"))


def test_objects_missing_from_a_partial_clone_are_told(project: Path, tmp_path: Path) -> None:
    git(project, "config", "uploadpack.allowFilter", "true")
    git(tmp_path, "clone", "-q", "--filter=blob:none", "--no-checkout", f"file://{project}", "partial")
    with pytest.raises(RevisionError) as caught:
        lay_out(pinned(tmp_path / "partial", "HEAD~1", "HEAD").base, tmp_path / "tree")
    assert caught.value.slug == "objects-missing"


@pytest.fixture
def with_submodule(project: Path, tmp_path: Path) -> Path:
    """`project` with a repository `library` as submodule `lib/sub` at its first commit."""
    library = tmp_path / "library"
    library.mkdir()
    git(library, "init", "-q")
    commit(library, "one", {"sub.c": "int one;\n"})
    git(project, *ALLOW_FILE, "submodule", "--quiet", "add", "--name", "sub", str(library), "lib/sub")
    git(project, "commit", "-q", "-m", "with a submodule")
    git(project, "tag", "with-one")
    return project


def test_submodules_come_from_the_users_own_copies(with_submodule: Path, tmp_path: Path) -> None:
    commit(with_submodule / "lib/sub", "two", {"sub.c": "int two;\n"})
    commit(with_submodule, "moves the submodule", {})
    before = fingerprint(with_submodule)
    for name, text in (("with-one", "int one;\n"), ("HEAD", "int two;\n")):
        assert lay_out(pinned(with_submodule, name, name).base, tmp_path / name) == ()
        assert (tmp_path / name / "lib/sub/sub.c").read_text() == text
    assert fingerprint(with_submodule) == before


def test_submodule_removed_since_is_found_among_the_modules(with_submodule: Path, tmp_path: Path) -> None:
    git(with_submodule, "rm", "-q", "-f", "lib/sub")
    git(with_submodule, "commit", "-q", "-m", "without it")
    lay_out(pinned(with_submodule, "with-one", "HEAD").base, tmp_path / "tree")
    assert (tmp_path / "tree/lib/sub/sub.c").read_text() == "int one;\n"


def test_submodule_commit_that_is_not_here_is_told(with_submodule: Path, tmp_path: Path) -> None:
    absent = "1" * 40
    git(with_submodule, "update-index", "--cacheinfo", f"160000,{absent},lib/sub")
    git(with_submodule, "commit", "-q", "-m", "moves to a commit that nobody has")
    with pytest.raises(RevisionError) as caught:
        lay_out(pinned(with_submodule, "HEAD", "HEAD").base, tmp_path / "tree")
    assert caught.value.slug == "submodule-missing"
    assert f"git -C lib/sub fetch origin {absent}" in str(caught.value)


def test_submodule_that_the_user_did_not_initialise_stays_empty_with_a_note(with_submodule: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", str(with_submodule), "clone")
    (note,) = lay_out(pinned(tmp_path / "clone", "HEAD", "HEAD").base, tmp_path / "tree")
    assert note.slug == "submodule-missing"
    assert "git submodule update --init lib/sub" in note.text
    commit(tmp_path / "clone", "another", {"a.txt": "more\n"})
    before = lay_out(pinned(tmp_path / "clone", "HEAD~1", "HEAD").base, tmp_path / "before")
    assert before == (note,), "both sides tell it in the same words"


def test_submodules_that_are_not_initialised_are_told_together(with_submodule: Path, tmp_path: Path) -> None:
    git(with_submodule, *ALLOW_FILE, "submodule", "--quiet", "add", "--name", "other", str(tmp_path / "library"), "other one")
    commit(with_submodule, "with another submodule", {})
    git(tmp_path, "clone", "-q", str(with_submodule), "clone")
    (note,) = lay_out(pinned(tmp_path / "clone", "HEAD", "HEAD").base, tmp_path / "tree")
    assert note.text.startswith("submodules lib/sub, other one are empty: not initialised; run ")
    assert "'git submodule update --init lib/sub 'other one'' if the build needs them" in note.text


def test_uncommitted_changes_in_a_submodule_are_noted(with_submodule: Path) -> None:
    assert pinned(with_submodule, "v1").notes == ()
    write(with_submodule, {"lib/sub/sub.c": "int edited;\n"})
    (note,) = pinned(with_submodule, "v1").notes
    assert note.slug == "submodule-dirty"
    assert "lib/sub" in note.text


def test_overlay_replaces_what_stands_there(project: Path, tmp_path: Path) -> None:
    commit(project, "old bench", {"bench/old.c": "", "bench/sort.c": "old\n", "keep.c": ""})
    git(project, "rm", "-q", "bench/old.c")
    write(project, {"bench/sort.c": "new\n", "bench/data/input": "1\n", "bench/sort.o": "stale object\n", "driver.sh": "echo\n"})
    (project / "driver.sh").chmod(0o755)
    lay_out(pinned(project, "HEAD", "HEAD").base, tmp_path / "tree", overlay=["bench/", "./driver.sh"])
    files = contents(tmp_path / "tree")
    assert {name: text for name, text in files.items() if name.startswith("bench")} == {"bench/sort.c": "new\n", "bench/data/input": "1\n"}
    assert os.access(tmp_path / "tree" / "driver.sh", os.X_OK)
    assert "keep.c" in files


def test_overlay_takes_ignored_files_but_no_products_of_an_earlier_build_and_no_backups(project: Path, tmp_path: Path) -> None:
    commit(project, "ignoring", {".gitignore": "*.o\n*.bin\n*~\n*.swp\n/bench/run\n/bench/build/\n/bench/made/\n"})
    wanted = {"bench/run.c": "run\n", "bench/large.bin": "data\n", "bench/made/input.txt": "input\n"}
    products = {
        "bench/run.o": "object\n",
        "bench/run.c~": "backup\n",
        "bench/.run.c.swp": "backup\n",
        "bench/build/CMakeCache.txt": "here\n",
    }
    write(project, wanted | products | {"bench/build/table.txt": "of the build\n", "bench/run": ""})
    (project / "bench/run").write_bytes(b"\x7fELF of the checkout")
    (project / "bench/latest.bin").symlink_to("large.bin")
    lay_out(pinned(project, "v1", "HEAD").base, tmp_path / "tree", overlay=["bench"])
    found = {path.relative_to(tmp_path / "tree").as_posix() for path in (tmp_path / "tree/bench").rglob("*") if not path.is_dir()}
    assert found == wanted.keys() | {"bench/latest.bin"}
    assert (tmp_path / "tree/bench/latest.bin").readlink() == Path("large.bin")


def test_overlay_digest_follows_ignored_files_that_are_copied(project: Path) -> None:
    repository = find_repository(project)
    write(project, {".gitignore": "*.bin\n*.o\n", "bench/a.c": "1\n", "bench/large.bin": "1\n", "bench/a.o": "1\n"})
    digests = [overlay_digest(repository, ["bench"])]
    write(project, {"bench/a.o": "2\n"})
    digests.append(overlay_digest(repository, ["bench"]))
    write(project, {"bench/large.bin": "2\n"})
    digests.append(overlay_digest(repository, ["bench"]))
    assert digests[0] == digests[1] != digests[2]


def test_overlay_is_relative_to_the_projects_folder(project: Path, tmp_path: Path) -> None:
    commit(project, "sub-project", {"tools/main.c": ""})
    write(project, {"tools/bench/run.c": "run\n"})
    lay_out(pinned(project / "tools", "HEAD", "HEAD").base, tmp_path / "tree", overlay=["bench"])
    assert (tmp_path / "tree/tools/bench/run.c").read_text() == "run\n"


def test_overlay_of_an_ignored_file_is_taken_where_it_is_named(project: Path, tmp_path: Path) -> None:
    write(project, {"blob.o": "wanted\n"})
    lay_out(pinned(project, "v1", "v2").base, tmp_path / "tree", overlay=["blob.o"])
    assert (tmp_path / "tree/blob.o").read_text() == "wanted\n"


@pytest.mark.parametrize(
    ("path", "slug"),
    [("missing/", "overlay-missing"), ("../elsewhere", "overlay-outside"), (".", "overlay-outside"), ("/etc", "overlay-outside")],
)
def test_overlay_must_lie_in_the_project(project: Path, path: str, slug: str) -> None:
    with pytest.raises(RevisionError) as caught:
        overlay_digest(find_repository(project), [path])
    assert caught.value.slug == slug


def test_overlay_does_not_follow_a_link_out_of_the_tree(project: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    write(outside, {"run.c": "precious\n"})
    (project / "bench").symlink_to(outside)
    git(project, "add", "-A")
    git(project, "commit", "-q", "-m", "bench is a link")
    (project / "bench").unlink()
    write(project, {"bench/run.c": "new\n"})
    with pytest.raises(RevisionError) as caught:
        lay_out(pinned(project, "HEAD", "HEAD").base, tmp_path / "tree", overlay=["bench/run.c"])
    assert caught.value.slug == "overlay-outside"
    assert (outside / "run.c").read_text() == "precious\n"


def test_overlay_digest_follows_content_name_and_mode(project: Path) -> None:
    repository = find_repository(project)
    write(project, {"bench/a.c": "1\n"})
    digests = [overlay_digest(repository, ["bench"])]
    write(project, {"bench/a.c": "2\n"})
    digests.append(overlay_digest(repository, ["bench"]))
    (project / "bench/a.c").chmod(0o755)
    digests.append(overlay_digest(repository, ["bench"]))
    (project / "bench/a.c").rename(project / "bench/b.c")
    digests.append(overlay_digest(repository, ["bench"]))
    assert len(set(digests)) == 4
    assert digests[-1] == overlay_digest(repository, ["bench"])


def test_large_files_are_filled_in_from_what_is_at_hand(project: Path, tmp_path: Path) -> None:
    content = b"large\n"
    oid = hashlib.sha256(content).hexdigest()
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{{}}\nsize {len(content)}\n"
    commit(project, "large files", {"here.bin": pointer.format(oid), "away.bin": pointer.format("0" * 64), ".gitattributes": ""})
    commit(project, "tracked by lfs", {".gitattributes": "*.bin filter=lfs\n"})
    stored = project / ".git/lfs/objects" / oid[:2] / oid[2:4] / oid
    stored.parent.mkdir(parents=True)
    stored.write_bytes(content)
    (note,) = lay_out(pinned(project, "HEAD", "HEAD").base, tmp_path / "tree")
    assert (tmp_path / "tree/here.bin").read_bytes() == content
    assert note.slug == "lfs-missing"
    assert "away.bin" in note.text


def test_repository_of_another_user_can_be_read(project: Path, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    subprocess.run(["chown", "-R", "12345", str(project)], check=True)
    lay_out(pinned(project, "v1").head, tmp_path / "tree")
    assert (tmp_path / "tree" / "main.c").read_text() == "int main(void) { return 2; }\n"
