"""Lists programs of benchmarks, tests and examples that no framework and no build system lists: each runs by itself."""

from __future__ import annotations

import shlex
from pathlib import Path

from perfdiff.languages.c.suites import named
from perfdiff.languages.c.suites.attempts import Attempts
from perfdiff.languages.c.suites.commands import CommandTest, listing_of
from perfdiff.languages.c.suites.programs import MARKS, executables, holds, is_program
from perfdiff.languages.c.suites.switches import with_switches
from perfdiff.languages.listing import Listing


def listed(project: str, value: str) -> Listing:
    """Return the programs that end well; the value is one with its arguments, or "" for those that are named for it in a project.

    A program may be named for it by its own path, or by that of the source of its name.
    """
    if value:
        program, *arguments = shlex.split(value)
        if not is_program(Path(program)):
            return with_switches(Listing(failures={program: "no such program was built"}))
        return with_switches(listing_of([_test(program, *arguments)], {}, Attempts.within_limit()))
    rank_by_source = named.sources(Path(project))
    ranks = {path: named.rank(path) for path in executables(Path()) if is_program(Path(path)) and not _has_framework(Path(path))}
    ranks = {path: rank_by_source.get(Path(path).stem) if rank is None else rank for path, rank in ranks.items()}
    telling = sorted((rank, path) for path, rank in ranks.items() if rank is not None)
    return with_switches(listing_of([_test(path) for _, path in telling], {}, Attempts.within_limit()))


def _test(program: str, *arguments: str) -> CommandTest:
    return CommandTest(shlex.join([program, *arguments]), (f"./{program}", *arguments), Path.cwd())


def _has_framework(program: Path) -> bool:
    return any(holds(program, marks) for marks in MARKS.values())
