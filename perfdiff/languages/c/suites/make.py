"""Lists what a target of make runs: the commands of its recipe, or the target as a whole where these are no simple ones."""

from __future__ import annotations

import itertools
import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from perfdiff.languages.c.suites.attempts import Attempts, quoted, why
from perfdiff.languages.c.suites.commands import CommandTest, listing_of
from perfdiff.languages.c.suites.switches import with_switches
from perfdiff.languages.listing import Benchmark, SuiteListing

_COMPILER = re.compile(r"(?:[\w.+-]*-)?(?:cc|c\+\+|gcc|g\+\+|clang|clang\+\+|ld|ar|libtool)(?:-[\d.]+)?")
_OWN_WORD = re.compile(r"make(\[\d+\])?:")  # what make itself says
_SILENT = frozenset(("echo", "printf", "true", ":"))
_OPERATORS = frozenset("();<>|&")


def listed(value: str) -> SuiteListing:
    """Return what a target runs, without what it prints; a target that compiles first is a failure."""
    attempts = Attempts.within_limit()
    words = shlex.split(value)
    recipe = attempts.run(["make", "-n", "--no-print-directory", *words])
    if why(recipe):
        return with_switches(SuiteListing(failures={f"make {value}": why(recipe)}))
    compiled = list(dict.fromkeys(_compiled(recipe.output)))
    if compiled:
        reason = f"compiles {compiled[0]} first: let the build do that, with automake by `make check TESTS=`"
        return with_switches(SuiteListing(failures={f"make {value}": reason}))
    tests = _tests(recipe.output)
    programs = [CommandTest(f"./{word}", (f"./{word}",), Path.cwd()) for word in words if _is_program(Path(word))]
    if tests == [] and not programs:
        return with_switches(SuiteListing(failures={f"make {value}": "runs nothing"}))
    if tests is not None:  # where the recipe has nothing left to do, the target is the program itself, which the build made
        return with_switches(listing_of(tests or programs, {}, attempts))
    command = f"make -s --no-print-directory {' '.join(map(quoted, words))}"
    attempt = attempts.shell(command, attempts.left_s)
    if why(attempt):
        return with_switches(SuiteListing(failures={f"make {value}": why(attempt)}))
    return SuiteListing({f"make {value}": Benchmark(f"make {value}", command, points={(): (attempt.wall_s, False)})})


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def _compiled(recipe: str) -> Iterator[str]:
    """Yield what a recipe compiles."""
    for line in recipe.replace("\\\n", " ").splitlines():
        words = _split(line)
        if any(_COMPILER.fullmatch(Path(word).name) for word in words):
            yield next((after for word, after in itertools.pairwise(words) if word == "-o"), "something")


def _tests(recipe: str) -> list[CommandTest] | None:
    """Return the commands of a recipe, None where one is more than a program of the project's with arguments."""
    tests: dict[str, CommandTest] = {}
    for line in recipe.replace("\\\n", " ").splitlines():
        words = _split(line)
        if not words or words[0] in _SILENT or _OWN_WORD.fullmatch(words[0]):
            continue
        if any(set(word) <= _OPERATORS for word in words) or "$" in line or "/" not in words[0] or not Path(words[0]).is_file():
            return None
        name = " ".join(words)
        tests.setdefault(name, CommandTest(name, tuple(words), Path.cwd()))
    return list(tests.values())


def _split(line: str) -> list[str]:
    words = shlex.shlex(line, posix=True, punctuation_chars=True)
    words.whitespace_split, words.commenters = True, ""
    try:
        return list(words)
    except ValueError:  # a quotation goes on in the next line
        return line.split()
