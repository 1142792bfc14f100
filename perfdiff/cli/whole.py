"""The command line as one tree of commands, for what must see all of it: the manual page, the reference."""

from __future__ import annotations

from collections.abc import Mapping

from typer.core import TyperCommand, TyperGroup

from perfdiff.cli import COMMANDS, loaded

PROGRAM = "perfdiff"

Command = TyperCommand | TyperGroup


def commands() -> Mapping[str, Command]:
    """Return the commands by name; the comparison, which has none, is not among them."""
    return {name: command(name) for name in COMMANDS}


def command(name: str) -> Command:
    """Return a command, or the comparison."""
    whole = loaded(name)
    assert isinstance(whole, TyperCommand | TyperGroup)
    return whole
