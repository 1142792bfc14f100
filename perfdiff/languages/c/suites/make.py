"""Lists what a target of make runs: the commands of its recipe, or the target as a whole where these are no simple ones."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from perfdiff.languages.c.suites import targets
from perfdiff.languages.c.suites.attempts import Attempts, quoted, why
from perfdiff.languages.c.suites.commands import CommandTest, listing_of
from perfdiff.languages.c.suites.programs import is_program
from perfdiff.languages.c.suites.switches import with_switches
from perfdiff.languages.listing import Benchmark, SuiteListing

_OWN_WORD = re.compile(r"make(\[\d+\])?:")  # what make itself says
_TESTS = "perfdiff-tests"  # a target of ours, which prints what a makefile calls its tests
_SILENT = frozenset(("echo", "printf", "true", ":"))
_OF_LIBTOOL, _SCRIPT_BYTES = "temporary wrapper script", 20_000
_LIBRARIES = re.compile(r'^ *LD_LIBRARY_PATH="(.+):\$LD_LIBRARY_PATH"$', re.MULTILINE)
_OPERATORS = frozenset("();<>|&")


def listed(value: str) -> SuiteListing:
    """Return what a target runs, without what it prints; a target that compiles first is a failure."""
    attempts = Attempts.within_limit()
    words = shlex.split(value)
    recipe = attempts.run(["make", "-n", "--no-print-directory", *words])
    if why(recipe):
        return with_switches(SuiteListing(failures={f"make {value}": why(recipe)}))
    compiled = list(dict.fromkeys(targets.compiled(recipe.output)))
    if compiled:
        reason = f"compiles {compiled[0]} first: let the build do that, with automake by `make check TESTS=`"
        return with_switches(SuiteListing(failures={f"make {value}": reason}))
    listing = listing_of(list(_of_automake(attempts)), {}, attempts) if words == ["check"] else SuiteListing()
    return listing if listing.benchmarks else _of_recipe(value, recipe.output, attempts)


def _of_recipe(value: str, recipe: str, attempts: Attempts) -> SuiteListing:
    """Return the commands of a recipe that has nothing to compile, or the target as a whole."""
    words, tests = shlex.split(value), _tests(recipe)
    programs = [CommandTest(f"./{word}", (f"./{word}",), Path.cwd()) for word in words if _is_executable(Path(word))]
    if tests == [] and not programs:
        return with_switches(SuiteListing(failures={f"make {value}": "runs nothing"}))
    if tests is not None:  # where the recipe has nothing left to do, the target is the program itself, which the build made
        return with_switches(listing_of(tests or programs, {}, attempts))
    command = f"make -s --no-print-directory {' '.join(map(quoted, words))}"
    attempt = attempts.shell(command, attempts.left_s)
    if why(attempt):
        return with_switches(SuiteListing(failures={f"make {value}": why(attempt)}))
    return SuiteListing({f"make {value}": Benchmark(f"make {value}", command, points={(): (attempt.wall_s, False)})})


def _of_automake(attempts: Attempts) -> Iterator[CommandTest]:
    """Yield the programs and scripts that automake's makefiles call tests, each in its own folder."""
    for makefile in sorted(Path().rglob("Makefile")):
        if not targets.is_of_automake(makefile) or "\ncheck-TESTS:" not in makefile.read_text(encoding="utf-8", errors="replace"):
            continue
        folder = makefile.parent
        asked = ["make", "-s", "--no-print-directory", f"--eval={_TESTS}: ; @echo $(TESTS)", _TESTS]
        for name in attempts.run(asked, folder).output.split():
            if _is_executable(folder / name):
                program, variables = _behind(folder / name)
                yield CommandTest((folder / name).as_posix(), (program,), Path.cwd() / folder, ("srcdir=.", *variables))


def _behind(path: Path) -> tuple[str, tuple[str, ...]]:
    """Return the program that a script of libtool's starts, and the variables that it sets, which tell where its libraries lie; or itself.

    The script runs some dozen processes, which may take longer than the test.
    """
    text = path.read_bytes()[:_SCRIPT_BYTES].decode(errors="replace")
    program = path.parent / ".libs" / path.name
    if _OF_LIBTOOL not in text or not is_program(program):
        return f"./{path.name}", ()
    return f"./.libs/{path.name}", tuple(f"LD_LIBRARY_PATH={folders}" for folders in _LIBRARIES.findall(text))


def _is_executable(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def _tests(recipe: str) -> list[CommandTest] | None:
    """Return the commands of a recipe, None where one is more than a program of the project's with arguments."""
    tests: dict[str, CommandTest] = {}
    for line in targets.lines(recipe):
        words = targets.split(line)
        if not words or words[0] in _SILENT or _OWN_WORD.fullmatch(words[0]):
            continue
        if any(set(word) <= _OPERATORS for word in words) or "$" in line or "/" not in words[0] or not Path(words[0]).is_file():
            return None
        name = " ".join(words)
        tests.setdefault(name, CommandTest(name, tuple(words), Path.cwd()))
    return list(tests.values())
