"""Lists programs of benchmarks, tests and examples that no framework and no build system lists: each runs by itself."""

from __future__ import annotations

import shlex
from pathlib import Path

from perfdiff.languages.c.suites import named
from perfdiff.languages.c.suites.attempts import Attempts
from perfdiff.languages.c.suites.commands import CommandTest, listing_of
from perfdiff.languages.c.suites.programs import MARKS, executables, holds, is_program
from perfdiff.languages.c.suites.switches import with_switches
from perfdiff.languages.listing import SuiteListing


def listed(project: str, value: str) -> SuiteListing:
    """Return the programs that end well; the value is one with its arguments, or "" for those that are named for it in a project.

    A program may be named for it by its own path, or by that of the source of its name. Those that frameworks or build systems list are
    left to them.
    """
    if value:
        program, *arguments = shlex.split(value)
        if not is_program(Path(program)):
            return with_switches(SuiteListing(failures={program: "no such program was built"}))
        return with_switches(listing_of([_test(program, *arguments)], {}, Attempts.within_limit()))
    rank_by_source, tests = named.sources(Path(project)), _of_build_systems()
    ranks = {path: named.rank(path) for path in executables(Path()) if is_program(Path(path)) and not _is_listed(path, tests)}
    ranks = {path: rank_by_source.get(Path(path).stem) if rank is None else rank for path, rank in ranks.items()}
    telling = sorted((rank, path) for path, rank in ranks.items() if rank is not None)
    return with_switches(listing_of([_test(path) for _, path in telling], {}, Attempts.within_limit()))


def _test(program: str, *arguments: str) -> CommandTest:
    return CommandTest(shlex.join([program, *arguments]), (f"./{program}", *arguments), Path.cwd())


def _is_listed(program: str, tests: str) -> bool:
    return f'/{program}"' in tests or any(holds(Path(program), marks) for marks in MARKS.values())


def _of_build_systems() -> str:
    """Return what CTest and Meson are told to run, in which programs stand by their whole paths in quotation marks."""
    files = [
        *Path().rglob("CTestTestfile.cmake"),
        *Path().rglob("meson-info/intro-tests.json"),
        *Path().rglob("meson-info/intro-benchmarks.json"),
    ]
    return "\n".join(file.read_text(encoding="utf-8", errors="replace") for file in files)
