"""What the masquerade recorded, read back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfdiff.languages.c.driver import OUTPUTS
from perfdiff.languages.protocol import CompileCommand

_STANDARDS = {"c89": "-std=c89", "c99": "-std=c99"}  # what the drivers of these names add themselves
_OUTPUT_FLAGS = frozenset(("-fPIC", "-fpic", "-DPIC", "-MD", "-MMD", "-MP", "-MG"))


@dataclass(frozen=True, slots=True)
class DroppedProbe:
    """A probe that did not compile in `file` (relative to the tree), or all probes of that file's unit where `probe` is None."""

    probe: int | None
    file: str
    reason: str


@dataclass(frozen=True, slots=True)
class Uncounted:
    """A source or program (`file`, relative to the tree) of a counted build in which nothing is counted, or not all."""

    file: str
    reason: str


@dataclass(frozen=True, slots=True)
class CompileLog:
    """The successful compiles of a build, each once, the probes that were dropped in them, and what is not counted.

    `elsewhere` are compiled files that do not lie in the tree.
    """

    commands: tuple[CompileCommand, ...]
    dropped: tuple[DroppedProbe, ...]
    uncounted: tuple[Uncounted, ...] = ()
    elsewhere: tuple[Path, ...] = ()


def read_compile_log(calls: Path, tree: Path) -> CompileLog:
    """Read the records in `calls` of a build of `tree`; the commands come by file, whatever a parallel build's order was."""
    commands: dict[tuple[object, ...], CompileCommand] = {}
    dropped: dict[tuple[int | None, str], DroppedProbe] = {}
    uncounted: dict[str, Uncounted] = {}
    elsewhere: set[Path] = set()
    for file in sorted(calls.glob("*.json")):
        call = json.loads(file.read_text())
        if call["status"] != 0:
            continue
        for path, says in call["uncounted"].items():
            name = _inside(path, tree)
            if name is not None:
                uncounted.setdefault(name, Uncounted(name, says))
        elsewhere |= {path for source in call["sources"] if not (path := Path(source["file"]).resolve()).is_relative_to(tree)}
        for command in _commands(call, tree):
            commands.setdefault((command.file, command.directory, command.compiler, _essence(command.arguments)), command)
            name = str(command.file.relative_to(tree))
            for probe, reason in call["dropped"].items():
                number = None if probe == "all" else int(probe)
                dropped.setdefault((number, name), DroppedProbe(number, name, reason))
    by_file = sorted(commands.values(), key=lambda command: command.file)
    return CompileLog(
        tuple(by_file),
        tuple(sorted(dropped.values(), key=lambda drop: (drop.file, drop.probe or 0))),
        tuple(source for _, source in sorted(uncounted.items())),
        tuple(sorted(elsewhere)),
    )


def _inside(path: str, tree: Path) -> str | None:
    """Return a path's name in the tree, or None where it lies elsewhere."""
    resolved = Path(path).resolve()
    return str(resolved.relative_to(tree)) if resolved.is_relative_to(tree) else None


def _commands(call: dict[str, object], tree: Path) -> Iterator[CompileCommand]:
    """Yield one command a source of the tree; the others' sources are left out of it."""
    sources, arguments, name = call["sources"], call["arguments"], str(call["name"])
    assert isinstance(sources, list)
    assert isinstance(arguments, list)
    directory = Path(str(call["directory"]))
    paths = [Path(source["file"]).resolve() for source in sources]
    for path, source in zip(paths, sources, strict=True):
        if not path.is_relative_to(tree) or not path.is_file():  # configuration checks remove what they compiled
            continue
        others = [other for other in paths if other != path]
        words = [word for word in arguments if word.startswith("-") or (directory / word).resolve() not in others]
        standard = [_STANDARDS[name]] if name in _STANDARDS else []
        yield CompileCommand(path, directory, str(call["compiler"]), (*standard, *words), source["language"] == "c++")


def _essence(arguments: Sequence[str]) -> tuple[str, ...]:
    """Return the arguments without those that only say what is written where; libtool compiles everything twice."""
    essential = []
    words = iter(arguments)
    for word in words:
        if word in OUTPUTS:
            next(words, None)
        elif word not in _OUTPUT_FLAGS and not word.startswith(("-o", "-MF")):
            essential.append(word)
    return tuple(essential)
