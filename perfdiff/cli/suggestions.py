"""What a shell offers for a word that is being typed: revisions, workloads, and functions of the last comparison.

What cannot be read raises PerfdiffError or OSError, for whoever asks to offer nothing.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from perfdiff.latest import NamedFunction
    from perfdiff.revisions.repository import Repository

Suggestion = tuple[str, str]  # a value, and its description

_COMMITS = 20  # as many as a screen holds beside branches and tags
_RANGE = re.compile(r"(.*\.\.\.?)(.*)")  # `A..B` and `A...B`: what is typed is B
_KINDS = {"heads": "branch", "tags": "tag", "remotes": "remote branch"}


def revisions(context: typer.Context, incomplete: str) -> Iterator[Suggestion]:
    """Yield branches, tags, and recent commits of the repository, also at the end of a range."""
    ends = _RANGE.fullmatch(incomplete)
    start, typed = ends.groups() if ends else ("", incomplete)
    for name, says in _revisions(_repository(context), typed):
        yield f"{start}{name}", says


def _revisions(repository: Repository, typed: str) -> Iterator[Suggestion]:
    log = repository.ask("log", f"--max-count={_COMMITS}", "--format=%h %H %s", "HEAD", "--")
    if log.status == 0:
        yield "HEAD", "what is checked out"
    listed = repository.ask("for-each-ref", "--format=%(refname) %(symref)", *(f"refs/{kind}" for kind in _KINDS))
    for line in listed.output.splitlines():
        reference, _, leads_to = line.partition(" ")
        _, kind, name = reference.split("/", 2)
        if not leads_to:
            yield name, _KINDS[kind]
    for line in log.output.splitlines():
        short, whole, subject = line.split(" ", 2)
        yield (short if len(typed) <= len(short) else whole), subject


def workloads(context: typer.Context, incomplete: str) -> Iterator[Suggestion]:
    """Yield the names of the configured workloads, with their commands."""
    from perfdiff import configuration
    from perfdiff.configuration import Overrides

    overrides = Overrides(file=_path(context, "config"))
    config = configuration.load(_directory(context), overrides=overrides, environment=os.environ, measuring=False)
    for workload in config.workloads:
        yield workload.name, workload.command


def functions(context: typer.Context, incomplete: str) -> Iterator[Suggestion]:
    """Yield the functions of the last comparison, each by the shortest of its names that means it alone, with the verdict on it."""
    for name, function in _named(_last(context), incomplete):
        yield name, function.verdict or "not measured"


def regressions(context: typer.Context, incomplete: str) -> Iterator[Suggestion]:
    """Yield the functions that the last comparison found slower, with their files."""
    for name, function in _named([function for function in _last(context) if function.verdict == "regression"], incomplete):
        yield name, function.file


def _last(context: typer.Context) -> Sequence[NamedFunction]:
    from perfdiff import latest
    from perfdiff.build import holdings

    return latest.functions(_path(context, "cache") or holdings.folder(os.environ), _repository(context).name)


def _named(functions: Sequence[NamedFunction], typed: str) -> Iterator[tuple[str, NamedFunction]]:
    """Yield functions by the name that begins as what is typed; none of its own begins so where a file is typed, `FILE:NAME`."""
    names = [tuple(dict.fromkeys(_names(function))) for function in functions]
    meanings = Counter(name for own in names for name in own)
    for own, function in zip(names, functions, strict=True):
        alone = [name for name in own if meanings[name] == 1] or own[-1:]
        if name := next((name for name in alone if name.startswith(typed)), None):
            yield name, function


def _names(function: NamedFunction) -> Iterable[str]:
    bare = function.name.partition("(")[0]
    return bare, function.name, f"{function.file}:{bare}", f"{function.file}:{function.name}"


def _path(context: typer.Context, option: str) -> Path | None:
    """Return the path that the line gives for an option, as it is typed there."""
    typed = context.params.get(option)
    return Path(typed).expanduser() if typed else None


def _directory(context: typer.Context) -> Path:
    return (_path(context, "repository") or Path()).absolute()


def _repository(context: typer.Context) -> Repository:
    from perfdiff.revisions.repository import find_repository

    return find_repository(_directory(context))
