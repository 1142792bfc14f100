"""Options of a project with which a build that was guessed can be made again, so that it makes benchmarks, tests or examples as well."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from perfdiff.configuration import buildsystem, switches


def off_in(folders: Collection[Path]) -> tuple[str, ...]:
    """Return the options that are off in all of some built projects, what tells most of speed first."""
    first, *others = (switches.switched_off(folder) for folder in folders)
    return tuple(option for option in first if all(option in other for other in others))


def commands(guessed: str, options: Collection[str], further: Collection[str] = ()) -> Iterator[tuple[str, str]]:
    """Yield what is added to a guessed build as text, and the command with it, in the order in which they are to be tried.

    That is each `further` command, which makes more in the built tree, and then sets of options.
    """
    for command in further:
        yield command, f"{guessed} && {command}"
    system = buildsystem.guessed(guessed)
    if system is not None:
        yield from ((" ".join(chosen), system.switched(chosen)) for chosen in switches.tries(options))
