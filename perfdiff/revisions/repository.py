"""The user's repository, which is only ever read."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfdiff.errors import PerfdiffError, RevisionError, StoreError

# Nothing of the user's may run or be written: no hooks, no daemons, no index in parts, no filters that fetch.
_QUIET = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.splitIndex=false",
    "core.safecrlf=false",
    "core.warnAmbiguousRefs=true",
    "advice.addEmbeddedRepo=false",
    "init.defaultBranch=main",
    "filter.lfs.process=",
    "filter.lfs.smudge=",
    "filter.lfs.clean=",
    "filter.lfs.required=false",
)


@dataclass(frozen=True, slots=True)
class GitAnswer:
    """The exit code and output of one git command."""

    status: int
    output: str
    errors: str


@dataclass(frozen=True, slots=True)
class Repository:
    """A git repository as found from a folder in it.

    `top` is the root of the checkout, None for a bare repository; `folder` is where the project lies below it ("." for the root).
    """

    git_dir: Path
    common_dir: Path
    top: Path | None
    folder: Path

    @property
    def objects(self) -> Path:
        """Return the folder of its objects."""
        return self.common_dir / "objects"

    @property
    def name(self) -> str:
        """Return a name for files that belong to this repository alone; all its worktrees share it."""
        return hashlib.blake2b(os.fsencode(self.common_dir), digest_size=16).hexdigest()

    @property
    def is_shallow(self) -> bool:
        """Return whether its history was cut off by the clone."""
        return (self.common_dir / "shallow").exists()

    def ask(self, *arguments: str, environment: Mapping[str, str] | None = None) -> GitAnswer:
        """Run a git command on the repository and return its answer, whatever its status."""
        status, output, errors = self._run(arguments, environment, b"")
        return GitAnswer(status, *(text.decode("utf-8", "surrogateescape") for text in (output, errors)))

    def changed(self, revisions: Sequence[str]) -> tuple[str, ...]:
        """Return the tracked files that differ between revisions, as `BASE HEAD`, a range, or one against the working tree; none where
        these cannot be had, which is for whoever pins them to say.
        """
        if any(name.startswith("-") for name in revisions):
            return ()
        answer = self.ask("diff", "--name-only", "-z", *revisions, "--")
        return tuple(filter(None, answer.output.split("\0"))) if answer.status == 0 else ()

    def pipe(self, *arguments: str, data: bytes, environment: Mapping[str, str] | None = None) -> bytes:
        """Run a git command that must succeed over `data` and return the bytes that it printed; raises as `tell` does."""
        status, output, errors = self._run(arguments, environment, data)
        if status != 0:
            raise _failure(arguments, GitAnswer(status, "", errors.decode("utf-8", "surrogateescape")))
        return output

    def _run(self, arguments: tuple[str, ...], environment: Mapping[str, str] | None, data: bytes) -> tuple[int, bytes, bytes]:
        """Return the status of a git command, what it printed, and what it complained of.

        Every place is told explicitly: variables that a hook or a caller left behind must not lead git elsewhere, and git does not
        question the ownership of a repository that it was told by name.
        """
        import git

        places = {
            "GIT_DIR": str(self.git_dir),
            "GIT_COMMON_DIR": str(self.common_dir),
            "GIT_WORK_TREE": str(self.top or self.git_dir),
            "GIT_INDEX_FILE": str(self.git_dir / "index"),
            "GIT_OBJECT_DIRECTORY": str(self.objects),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": "",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_LFS_SKIP_SMUDGE": "1",
            "GIT_DEFAULT_REF_FORMAT": "files",
            "LC_ALL": "C",
        }
        settings = [word for setting in _QUIET for word in ("-c", setting)]
        with tempfile.TemporaryFile() as given:
            given.write(data)
            given.seek(0)
            process = git.Git(self.top or self.git_dir).execute(
                ["git", *settings, *arguments], env={**places, **(environment or {})}, as_process=True, istream=given if data else None
            )
        try:
            output, errors = process.communicate()
        except BaseException:  # a signal: git must not go on writing where its caller clears up
            process.kill()
            process.communicate()
            raise
        return process.returncode, output, errors

    def tell(self, *arguments: str, environment: Mapping[str, str] | None = None) -> str:
        """Run a git command that must succeed and return what it printed.

        RevisionError: `git-failed`, `objects-missing`; StoreError: `disk-full`.
        """
        answer = self.ask(*arguments, environment=environment)
        if answer.status != 0:
            raise _failure(arguments, answer)
        return answer.output


def _failure(arguments: tuple[str, ...], answer: GitAnswer) -> PerfdiffError:
    if "No space left on device" in answer.errors:
        return StoreError(
            "no space left for the tree of a revision; run 'perfdiff cache prune', or put the cache elsewhere", slug="disk-full"
        )
    if any(phrase in answer.errors for phrase in ("unable to read", "bad object", "missing blob", "missing tree", "could not fetch")):
        return RevisionError(
            "objects of this revision are not in the repository (a partial clone?); run 'git fetch --refetch --no-filter' and try again",
            slug="objects-missing",
            detail=answer.errors,
        )
    reason = answer.errors.strip().splitlines()[-1:] or [f"status {answer.status}"]
    return RevisionError(f"'git {arguments[0]}' failed: {reason[0]}", slug="git-failed", detail=answer.errors)


def find_repository(start: Path) -> Repository:
    """Return the repository that the folder `start` lies in; RevisionError `not-a-repository`, `no-git`."""
    try:
        import git
    except ImportError as error:  # GitPython looks for the executable when it is imported
        raise RevisionError("git was not found; install it or put it on PATH", slug="no-git") from error
    start = start.resolve()
    try:
        with git.Repo(start, search_parent_directories=True) as opened:
            git_dir, common_dir = Path(opened.git_dir).resolve(), Path(opened.common_dir).resolve()
            link = git_dir / "gitdir"  # of a linked worktree; the repository behind it may be bare
            top = Path(link.read_text().strip()).parent.resolve() if link.is_file() else None
            if top is None and not opened.bare and opened.working_tree_dir is not None:
                top = Path(opened.working_tree_dir).resolve()
    except (git.InvalidGitRepositoryError, git.NoSuchPathError) as error:
        raise RevisionError(
            f"{start} is not in a git repository; run perfdiff in a checkout of the project", slug="not-a-repository"
        ) from error
    folder = start.relative_to(top) if top is not None and start.is_relative_to(top) else Path()
    return Repository(git_dir=git_dir, common_dir=common_dir, top=top, folder=folder)
