"""The command line as one tree of commands, for what must see all of it: shell completion, the manual page, the reference."""

from __future__ import annotations

from collections.abc import Mapping

from typer.completion import completion_init  # type: ignore[attr-defined]
from typer.core import TyperCommand, TyperGroup

from perfdiff.cli import COMMANDS, COMPARISON, COMPLETE, loaded

PROGRAM = "perfdiff"

Command = TyperCommand | TyperGroup


def commands() -> Mapping[str, Command]:
    """Return the commands by name; the comparison, which has none, is not among them."""
    return {name: command(name) for name in COMMANDS}


def command(name: str) -> Command:
    """Return a command, or the comparison."""
    found = loaded(name)
    assert isinstance(found, TyperCommand | TyperGroup)
    return found


def complete() -> None:
    """Answer the shell's question, which is in the environment, and exit."""
    completion_init()
    comparison = command(COMPARISON)
    # A revision is no command's name, so what is completed after it are the comparison's options.
    options = [parameter for parameter in comparison.params if parameter.param_type_name == "option"]
    whole = TyperGroup(name=PROGRAM, commands=dict(commands()), params=options)
    whole.main(args=[], prog_name=PROGRAM, complete_var=COMPLETE)
