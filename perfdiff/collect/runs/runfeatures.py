"""Features of a run: numbers by which a point's runs differ, known before the run or printed by it (trend-prof §2)."""

from __future__ import annotations

import contextlib
import math
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from perfdiff.collect.runs import workloads
from perfdiff.collect.runs.inputs import InputFiles
from perfdiff.config import ASSIGNMENT, INPUT, WorkloadConfig
from perfdiff.records.arrays import Floats
from perfdiff.records.schema import Point

_CHUNK_BYTES = 1 << 20
_TEXT_BYTES = 8000  # at a file's beginning that hold no NUL byte where it is text, as git tells it
_OPERATORS, _REDIRECTIONS = frozenset("();<>|&"), frozenset("<>")  # of the shell


def known(workload: WorkloadConfig, point: Point, directory: Path, inputs: InputFiles) -> dict[str, float]:
    """Return the features of a point that are known when all is ready for its run in `directory`; those that it prints come on top.

    These are numeric parameters by name; `bytes` and, of text, `lines` of its input file, which lies in the tree where a suite names it;
    and `file size(WORD)`, in bytes, of each other file there is by a word of the command, as it is written with its `{parameter}` places:
    `file size(data-{n}.txt)`. Programs and what output goes to are left out. A parameter that is text stays out, also one such as "1000".
    Raises InputChangedError.
    """
    inputs.require_unchanged(point)
    features = {name: float(value) for name, value in point.parameters.items() if isinstance(value, int | float)}
    path = inputs.path(point) or _in_tree(point, directory)
    if path is not None:
        features |= _contents(path)
    parameters = inputs.located(point)
    for word in _arguments(workload.command):
        file = directory / workloads.filled(word, parameters, written=str)
        if file != path and os.path.isfile(file):  # noqa: PTH113 - the other raises OSError at words too long for a name
            features[f"file size({word})"] = float(file.stat().st_size)
    return features


def _in_tree(point: Point, directory: Path) -> Path | None:
    """Return the input file of a point of a suite, which lies in the built tree."""
    file = directory / str(point.parameters.get(INPUT, ""))
    return file if os.path.isfile(file) else None  # noqa: PTH113 - the other raises OSError at texts too long for a name


def columns(points: Sequence[Mapping[str, float]]) -> dict[str, Floats]:
    """Return the features of points as (points,) each, NaN where one has none; what is the same at all of them is no feature."""
    names = dict.fromkeys(name for features in points for name in features)
    table = {name: np.array([features.get(name, math.nan) for features in points]) for name in names}
    return {name: column for name, column in table.items() if np.unique(column[~np.isnan(column)]).size > 1}


def _arguments(command: str) -> Iterator[str]:
    """Yield the words of a shell command that may name files it reads; what stands behind the `=` of an option, too."""
    words = shlex.shlex(command, posix=True, punctuation_chars=True)
    words.whitespace_split, words.commenters = True, ""
    redirection, is_program = "", True
    with contextlib.suppress(ValueError):  # a quotation that is not closed, as in a comment of the shell's
        for word in words:
            before, redirection = redirection, ""
            if set(word) <= _OPERATORS:
                redirection = word if set(word) & _REDIRECTIONS else ""
                is_program = is_program or not redirection
            elif is_program and not before:
                is_program = ASSIGNMENT.match(word) is not None
            elif ">" not in before:
                yield from dict.fromkeys((word, word.partition("=")[2] or word))


def _contents(path: Path) -> dict[str, float]:
    size, ends, last, is_text = 0, 0, b"\n", True
    with path.open("rb") as content:
        while chunk := content.read(_CHUNK_BYTES):
            is_text = is_text and (size > 0 or b"\0" not in chunk[:_TEXT_BYTES])
            size, ends, last = size + len(chunk), ends + chunk.count(b"\n"), chunk[-1:]
    lines = {"lines": float(ends + (last != b"\n"))} if is_text else {}
    return {"bytes": float(size), **lines}
