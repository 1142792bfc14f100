"""What an environment has to have installed: requirements from the configuration, from files of the tree, and of the project itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfdiff.errors import BuildError
from perfdiff.languages.python.projects import Project
from perfdiff.languages.python.pyproject import normal

_INCLUDED = re.compile(r"(?:-r|--requirement)[ =]*(\S+)")
_CONSTRAINTS = re.compile(r"(?:-c|--constraint)[ =]*(\S+)")
_EDITABLE = re.compile(r"(?:-e|--editable)[ =]*(\S+)")
_COMMENT = re.compile(r"(^|\s)#.*$")
_EXTRAS = re.compile(r"([^\[\]]+)(?:\[([^\]]*)\])?")
_FILES = ("requirements.txt",)  # read where a plain folder of scripts has it, and nothing is configured


@dataclass(frozen=True, slots=True)
class Wanted:
    """Lines of a requirements file, and of a constraints file; no line names another such file, and paths are absolute."""

    lines: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()


def wanted(place: Path, project: Project, configured: Sequence[str]) -> Wanted:
    """Return what the environment of the project in folder `place` has to have, besides the project itself.

    `configured` are requirements, or names of requirements files. BuildError (`python-requirements`) where a file is not there.
    """
    lines: list[str] = []
    constraints: list[str] = []
    if not configured and not project.is_packaged:
        configured = [name for name in _FILES if (place / name).is_file()]
    for each in configured:
        source = [f"-r {each}"] if (place / each).is_file() or each.endswith(".txt") else [each]
        for line in _expanded(source, place, place, constraints, frozenset()):
            lines.extend(_own(line, place, project))
    return Wanted(tuple(dict.fromkeys([*(project.requirements or ()), *lines])), tuple(dict.fromkeys(constraints)))


def _expanded(lines: Sequence[str], folder: Path, place: Path, constraints: list[str], within: frozenset[Path]) -> Iterator[str]:
    """Yield the lines of a requirements file in `folder`, with those of files that it includes; constraints are added to theirs."""
    for line in lines:
        if included := _INCLUDED.match(line):
            file = folder / included[1]
            if file not in within:
                yield from _expanded(_read(file, place), file.parent, place, constraints, within | {file})
        elif constrained := _CONSTRAINTS.match(line):
            constraints.extend(_read(folder / constrained[1], place))
        else:
            yield _absolute(line, folder)


def _read(file: Path, place: Path) -> list[str]:
    """Return the logical lines of a requirements file without comments."""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        shown = file.relative_to(place) if file.is_relative_to(place) else file
        raise BuildError(
            f"the requirements file {shown} cannot be read in this revision's tree ({getattr(error, 'strerror', None) or error}); where "
            "your checkout has it, name it in [build] overlay, else correct [python] requirements",
            slug="python-requirements",
        ) from error
    lines = (_COMMENT.sub("", line).strip() for line in text.replace("\\\n", " ").splitlines())
    return [line for line in lines if line]


def _absolute(line: str, folder: Path) -> str:
    """Return a line whose path, if it is one, is absolute."""
    editable = _EDITABLE.match(line)
    path = _EXTRAS.match(editable[1] if editable else line)
    if path is None or not path[1].startswith((".", "/")) or not (folder / path[1].strip()).exists():
        return line
    extras = f"[{path[2]}]" if path[2] else ""
    return f"{'-e ' if editable else ''}{(folder / path[1].strip()).resolve()}{extras}"


def _own(line: str, place: Path, project: Project) -> tuple[str, ...]:
    """Return a line as it is, or where it stands for the project itself, which is there in any case, what its extras require."""
    editable = _EDITABLE.match(line)
    path = _EXTRAS.match(editable[1] if editable else line)
    if path is None or Path(path[1]) != place.resolve():
        return (line,)
    extras = [normal(extra.strip()) for extra in (path[2] or "").split(",") if extra.strip()]
    return tuple(requirement for extra in extras for requirement in project.extras.get(extra, ()))
