"""Which line of one revision's files is which line of another's, through git's own diff."""

from __future__ import annotations

import bisect
import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from perfdiff.revisions.pins import Pin

_FROM, _TO = re.compile(r"^rename from (.*)$"), re.compile(r"^rename to (.*)$")
_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


@dataclass(frozen=True, slots=True)
class Hunk:
    """Lines from `start` to before `end` of base (1-based), which have become `lines` lines of head."""

    start: int
    end: int
    lines: int


@dataclass(frozen=True, slots=True)
class LineMap:
    """How the lines of base's files lie in head's: `renamed` files by base's name, and the hunks of changed ones, in their order."""

    renamed: Mapping[str, str]
    hunks: Mapping[str, tuple[Hunk, ...]]

    def file(self, file: str) -> str:
        """Return the path in head of a file of base."""
        return self.renamed.get(file, file)

    def line(self, file: str, line: int) -> int | None:
        """Return where an unchanged line of base's `file` lies in head (1-based), None for one that was changed or removed."""
        hunks = self.hunks.get(file, ())
        before = bisect.bisect_right([hunk.start for hunk in hunks], line)
        if before and line < hunks[before - 1].end:
            return None
        shifts = list(accumulate(hunk.lines - (hunk.end - hunk.start) for hunk in hunks[:before]))
        return line + (shifts[-1] if shifts else 0)


def line_map(base: Pin, head: Pin, texts: Mapping[str, tuple[Sequence[str], Sequence[str]]]) -> LineMap:
    """Return how the lines of two pinned trees belong together; raise RevisionError.

    `texts` are the lines of files in base and head where these differ: those that git does not know, as builds make them, are compared
    here.
    """
    stores = [str(pin.snapshots) for pin in (base, head) if pin.snapshots]
    environment = {"GIT_ALTERNATE_OBJECT_DIRECTORIES": ":".join(dict.fromkeys(stores))} if stores else {}
    patch = base.repository.tell(
        "-c", "core.quotePath=false", "diff-tree", "-r", "-p", "-M", "-U0", "--no-ext-diff", "--no-textconv", "--no-color",
        "--src-prefix=a/", "--dst-prefix=b/", base.tree, head.tree, environment=environment,
    )  # fmt: skip
    renamed, hunks = _read(patch)
    for file in texts.keys() - hunks.keys() - renamed.keys():
        hunks[file] = _compared(*texts[file])
    return LineMap(renamed, {file: tuple(file_hunks) for file, file_hunks in hunks.items()})


def _read(patch: str) -> tuple[dict[str, str], dict[str, list[Hunk]]]:
    """Return the renamed files and the hunks of each file of base, of a patch without lines of context."""
    renamed: dict[str, str] = {}
    hunks: dict[str, list[Hunk]] = {}
    file, left = "", 0
    for line in patch.split("\n"):
        if left and line[:1] in "+-":  # a changed line, whatever it looks like
            left -= 1
        elif line.startswith("diff --git "):
            file = ""
        elif match := _FROM.match(line):
            file = _unquoted(match[1])
        elif match := _TO.match(line):
            renamed[file] = _unquoted(match[1])
        elif line.startswith(("--- a/", '--- "a/')):
            file = _unquoted(line[4:].rstrip("\t"))[2:]
        elif match := _HUNK.match(line):
            start, removed, added = int(match[1]), int(match[2] or 1), int(match[4] or 1)
            first = start if removed else start + 1  # where nothing is removed, git names the line before
            hunks.setdefault(file, []).append(Hunk(first, first + removed, added))
            left = removed + added
    return renamed, hunks


def _unquoted(name: str) -> str:
    """Return a path as git tells it: those with quotes, backslashes or control characters are in quotes, as in C."""
    if not name.startswith('"'):
        return name
    return (
        name[1:-1]
        .encode("utf-8", "surrogateescape")
        .decode("unicode_escape")
        .encode("latin-1", "replace")
        .decode("utf-8", "surrogateescape")
    )


def _compared(before: Sequence[str], after: Sequence[str]) -> list[Hunk]:
    """Return the hunks between two texts."""
    matcher = difflib.SequenceMatcher(None, before, after)
    return [Hunk(i1 + 1, i2 + 1, j2 - j1) for tag, i1, i2, j1, j2 in matcher.get_opcodes() if tag != "equal"]
