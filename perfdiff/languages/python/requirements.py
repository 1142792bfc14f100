"""What an environment has to have installed: requirements from the configuration, from files of the tree, and of the project itself."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from perfdiff.config import DRIVER, program
from perfdiff.errors import BuildError
from perfdiff.languages.python import dependency_groups
from perfdiff.languages.python.projects import Project
from perfdiff.languages.python.pyproject import normal

_INCLUDED = re.compile(r"(?:-r|--requirement)[ =]*(\S+)")
_CONSTRAINTS = re.compile(r"(?:-c|--constraint)[ =]*(\S+)")
_LINKS = re.compile(r"(-f|--find-links)[ =]*(\S+)")
_EDITABLE = re.compile(r"(?:-e|--editable)[ =]*(.+)")
_COMMENT = re.compile(r"(^|\s)#.*$")
_NAMED = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[([^\]]*)\])?")
_EXTRAS = re.compile(r"([^\[\]]+)(?:\[([^\]]*)\])?")
_OF_SCRIPTS = "requirements.txt"  # read where a plain folder of scripts has it, and nothing is configured
_RUNNERS = {"pytest": "pytest", "py.test": "pytest", "asv": "asv"}  # programs of workloads, and what brings them
_INTERPRETER = re.compile(r"python[0-9.]*")


@dataclass(frozen=True, slots=True)
class Requirements:
    """Lines of a requirements file, and of a constraints file; no line names another such file, and paths are absolute.

    `but` is the distribution that is not to be there, whatever requires it: the project itself, of which each revision has its own.
    Lines that are `optional` are left out where they cannot be installed.
    """

    lines: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    but: str = ""
    optional: tuple[str, ...] = ()


def runners(commands: Iterable[str]) -> tuple[str, ...]:
    """Return the packages that provide the programs that workloads run.

    Without it, one further on PATH would run, under another interpreter and with other packages.
    """
    return tuple(sorted({runner for command in commands if (runner := _runner(command)) is not None}))


def _runner(command: str) -> str | None:
    try:
        words = shlex.split(command)
        named = PurePath(program(command)).name
    except ValueError:  # a quotation is not closed, as the shell will say
        return None
    if _INTERPRETER.fullmatch(named) and "-m" in words[:-1]:
        named, *rest = words[words.index("-m") + 1 :]
        named = "pytest" if named == DRIVER and rest[1:2] == ["pytest"] else named
    return _RUNNERS.get(named)


def wanted(place: Path, project: Project, configured: Sequence[str], runners: Sequence[str]) -> Requirements:
    """Return the requirements of the environment of the project in folder `place`, without the project itself.

    `configured` are requirements, names of requirements files, or `group:NAME` for groups of the project's own. BuildError:
    `python-requirements` where a file is not there, `python-group`, `python-project`.
    """
    lines: list[str] = []
    constraints: list[str] = []
    if not configured and not project.is_packaged and (place / _OF_SCRIPTS).is_file():
        configured = [_OF_SCRIPTS]
    for entry in configured:
        for line in _expanded(_source(entry, place), place, place, constraints, frozenset()):
            lines.extend(_own(line, place, project))
    lines = [*(project.requirements or ()), *lines]
    named = {normal(name[1]) for line in lines if (name := _NAMED.match(line))}
    lines += [runner for runner in runners if runner not in named]
    return Requirements(tuple(dict.fromkeys(lines)), tuple(dict.fromkeys(constraints)), normal(project.name or ""))


def _source(configured: str, place: Path) -> Sequence[str]:
    """Return the lines that an entry of the configuration stands for."""
    if configured.startswith(dependency_groups.PREFIX):
        return dependency_groups.requirements(place, configured.removeprefix(dependency_groups.PREFIX).strip())
    return [f"-r {configured}"] if (place / configured).is_file() or configured.endswith(".txt") else [configured]


def _expanded(lines: Sequence[str], folder: Path, place: Path, constraints: list[str], within: frozenset[Path]) -> Iterator[str]:
    """Yield the lines of a requirements file in `folder`, with those of files that it includes; constraints are added to theirs.

    As for pip, names of included files and of folders with packages are relative to the file, other paths to where it is run.
    """
    for line in lines:
        if included := _INCLUDED.match(line):
            file = (folder / included[1]).resolve()
            if file not in within:
                yield from _expanded(_read(file, place), file.parent, place, constraints, within | {file})
        elif constrained := _CONSTRAINTS.match(line):
            constraints.extend(_read(folder / constrained[1], place))
        elif (links := _LINKS.match(line)) and (folder / links[2]).exists():
            yield f"--find-links {(folder / links[2]).resolve()}"
        else:
            yield _absolute(line, place)


def _read(file: Path, place: Path) -> list[str]:
    """Return the logical lines of a requirements file without comments."""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        shown = file.relative_to(place.resolve()) if file.is_relative_to(place.resolve()) else file
        raise BuildError(
            f"the requirements file {shown} cannot be read in this revision's tree ({getattr(error, 'strerror', None) or error}); where "
            "your checkout has it, name it in [build] overlay, else correct [python] requirements",
            slug="python-requirements",
        ) from error
    lines = (" ".join(_COMMENT.sub("", line).split()) for line in text.replace("\\\n", " ").splitlines())
    return [line for line in lines if line]


def _absolute(line: str, place: Path) -> str:
    """Return a line whose path, if it has one, is absolute."""
    editable = _EDITABLE.match(line)
    path = _EXTRAS.match(editable[1] if editable else line)
    if path is None or not path[1].startswith((".", "/")) or not (place / path[1].strip()).exists():
        return line
    extras = f"[{path[2]}]" if path[2] else ""
    return f"{'-e ' if editable else ''}{(place / path[1].strip()).resolve()}{extras}"


def _own(line: str, place: Path, project: Project, within: frozenset[str] = frozenset()) -> Iterator[str]:
    """Yield a line as it is, or where it stands for the project itself, which is there in any case, what its extras require.

    It stands there by its path or its name, also in its own extras, of which those are `within` that led here.
    """
    editable = _EDITABLE.match(line)
    path, name = _EXTRAS.match(editable[1] if editable else line), _NAMED.match(line)
    if path is not None and Path(path[1]) == place.resolve():
        extras = path[2]
    elif project.name and name is not None and normal(name[1]) == normal(project.name):
        extras = name[2]
    else:
        yield line
        return
    for extra in (normal(extra.strip()) for extra in (extras or "").split(",")):
        if extra not in within:
            for requirement in project.extras.get(extra, ()):
                yield from _own(requirement, place, project, within | {extra})
