"""Tables of what was not measured: function by function, and by folder where that would be a list that nobody reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import PurePosixPath

from perfdiff import units
from perfdiff.records.differences import SkippedFunction
from perfdiff.records.testfiles import is_of_tests
from perfdiff.report import wording
from perfdiff.report.blocks import Cell, Column, Table, Tone

_TITLE = "Not measured"
# More names, or reasons, than this in one sentence are no longer read.
_NAMED = 3
# Rows: beside the answer, the functions and the runs, a terminal's page of 60 lines has room for so many.
MOST_ROWS = 12

_Groups = dict[tuple[bool, tuple[str, ...]], list[SkippedFunction]]  # by whether they are of tests, and by the parts of a folder


def by_function(skipped: Sequence[SkippedFunction]) -> Table | None:
    """Return the functions that were not measured, one a row; those whose whole file was not are one row a reason."""
    if not skipped:
        return None
    files: dict[str, list[str]] = {}
    for item in skipped:
        if item.whole:
            files.setdefault(item.reason, []).append(item.file)
    rows = [(Cell(item.name, code=True), Cell(item.file, Tone.MUTED, code=True), Cell(item.reason)) for item in skipped if not item.whole]
    rows += [
        (Cell(wording.plural(len(names), "function")), Cell(_most_common(names), Tone.MUTED), Cell(reason))
        for reason, names in files.items()
    ]
    return Table(_TITLE, (Column("function"), Column("file"), Column("reason")), tuple(rows))


def by_folder(skipped: Sequence[SkippedFunction]) -> Table:
    """Return how many functions of which folder were not measured, and why: those of tests behind all others, the most first."""
    groups = sorted(_grouped(skipped).items(), key=lambda group: (group[0][0], -len(group[1])))
    rows = tuple(
        (
            Cell(f"{len(items):,}"),
            Cell("".join(f"{part}/" for part in folder) or "./", Tone.MUTED, code=True),
            Cell(reasons(items, counted=False)),
        )
        for (_, folder), items in groups
    )
    return Table(f"{_TITLE}, by folder", (Column("functions", right=True), Column("folder"), Column("reason")), rows)


def reasons(skipped: Sequence[SkippedFunction], *, counted: bool) -> str:
    """Return the commonest reasons of functions, each with how many there are; a single one only where they are to be `counted`."""
    numbers = Counter(item.reason for item in skipped)
    if len(numbers) == 1 and not counted:
        return next(iter(numbers))
    says = "; ".join(f"{reason} ({count:,})" for reason, count in numbers.most_common(_NAMED))
    return f"{says}{'; …' if len(numbers) > _NAMED else ''}"


def _grouped(skipped: Sequence[SkippedFunction]) -> _Groups:
    """Return functions by folder: folders with the most functions are taken apart as long as there are at most `MOST_ROWS`."""
    groups: _Groups = {}
    for item in skipped:
        groups.setdefault((is_of_tests(item.file), ()), []).append(item)
    while finer := _finer(groups):
        groups = finer
    return groups


def _finer(groups: _Groups) -> _Groups | None:
    """Return groups of which one, the largest that can be, is split into the folders in its own; None where none can."""
    for key in sorted(groups, key=lambda key: -len(groups[key])):
        of_tests, folder = key
        inside: _Groups = {}
        for item in groups[key]:
            inside.setdefault((of_tests, PurePosixPath(item.file).parts[:-1][: len(folder) + 1]), []).append(item)
        if [*inside] != [key] and len(groups) - 1 + len(inside) <= MOST_ROWS:
            return {other: items for other, items in groups.items() if other != key} | inside
    return None


def _most_common(files: Sequence[str]) -> str:
    """Name the files that functions are of, those with the most functions first."""
    names = [name for name, _ in Counter(files).most_common()]
    return units.listed(names, _NAMED)
