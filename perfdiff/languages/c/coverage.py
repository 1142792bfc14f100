"""What readers of the compilers' counters have in common: lines as they are counted, and the sources that these stand in."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from perfdiff.errors import RecordingError
from perfdiff.languages.c import cython

_MOST_LINES_UP = 200  # a function's head stands above its body
_COMMENT = re.compile(r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.DOTALL)
_ATTRIBUTE = re.compile(r"__attribute__\s*\(\(.*?\)\)|\[\[.*?\]\]")
_HEAD = re.compile(r"^[A-Za-z_][^;#]*?(~?\w+)\s*\([^;]*$")


def unusable(tool: str, why: str) -> RecordingError:
    """Return that a tool of a compiler does not tell what was counted."""
    return RecordingError(f"'{tool}' does not read the counts of lines: {why}", slug="places-tool", detail=why)


def damaged(why: str) -> RecordingError:
    """Return that what a run left of its counts is of no use."""
    return RecordingError(
        f"counts of lines cannot be read: {why}; a program that was killed while it wrote them leaves such files; run it again",
        slug="places-damaged",
        detail=why,
    )


@dataclass(frozen=True, slots=True)
class CountedLine:
    """A line in a function, `file` relative to the tree, `number` 1-based."""

    function: str
    file: str
    number: int


@dataclass(frozen=True, slots=True)
class Sources:
    """The sources of a built tree, read as they are asked for."""

    tree: Path
    _names: dict[tuple[str, str], str | None] = field(default_factory=dict)
    _texts: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _written: dict[str, dict[int, tuple[str, int]]] = field(default_factory=dict)

    def relative(self, file: str, directory: str) -> str | None:
        """Return the path in the tree of a file that a compiler names, as seen from `directory`; None of one outside."""
        key = file, directory
        if key not in self._names:
            path = os.path.realpath(os.path.join(directory, file))  # noqa: PTH118 - as compilers join them
            inside = path.startswith(f"{self.tree}{os.sep}")
            self._names[key] = os.path.relpath(path, self.tree) if inside else None
        return self._names[key]

    def text(self, file: str) -> tuple[str, ...]:
        """Return the lines of a file of the tree; none where it is gone, as what a generator made and `#line` renamed."""
        if file not in self._texts:
            try:
                self._texts[file] = tuple((self.tree / file).read_text(errors="replace").split("\n"))
            except OSError:
                self._texts[file] = ()
        return self._texts[file]

    def written(self, file: str) -> dict[int, tuple[str, int]]:
        """Return in which file and line the lines of a file were written, by their numbers; nothing of a file that no tool made."""
        if file not in self._written:
            self._written[file] = cython.lines(file, self.text(file), self.tree)
        return self._written[file]

    def code(self, file: str) -> tuple[str, ...]:
        """Return the lines of a file with nothing in place of comments and of directives."""
        text = _COMMENT.sub(lambda match: match[0] if match[0][0] in "\"'" else "\n" * match[0].count("\n"), "\n".join(self.text(file)))
        return tuple("" if line.lstrip().startswith("#") else line for line in text.split("\n"))

    def line(self, file: str, number: int) -> str:
        """Return a line without white space around it."""
        lines = self.text(file)
        return lines[number - 1].strip() if number <= len(lines) else ""

    def function_at(self, file: str, number: int) -> str:
        """Return the function that a line stands in as its text tells: the last that begins above, at the margin; empty where none does."""
        lines = self.text(file)[:number][-_MOST_LINES_UP:]
        heads = (_HEAD.match(_ATTRIBUTE.sub("", line).lstrip() if line[:1].strip() else line) for line in reversed(lines))
        return next((head[1] for head in heads if head), "")


@dataclass(frozen=True, slots=True)
class Inventory:
    """The counted lines of a tree with their indices, and the sources that hold them."""

    sources: Sources
    lines: dict[CountedLine, int] = field(default_factory=dict)

    def index(self, line: CountedLine) -> int:
        """Return the index of a line, which is a new one where it was not met before."""
        return self.lines.setdefault(line, len(self.lines))
