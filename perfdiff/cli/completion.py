"""`perfdiff completion SHELL`: the script that makes a shell complete commands, options, revisions and names."""

from __future__ import annotations

from enum import StrEnum
from importlib import resources
from typing import Annotated

import typer

from perfdiff.cli import options, output

app = options.application()

_HELP = """
Print a script that makes the shell complete perfdiff's commands and options, revisions, workloads, and functions of the last comparison.
Evaluate it in the shell's start-up file:

\b
  eval "$(perfdiff completion bash)"       in ~/.bashrc
  eval "$(perfdiff completion zsh)"        in ~/.zshrc, below compinit
  perfdiff completion fish | source        in ~/.config/fish/config.fish
"""


class Shell(StrEnum):
    """The shells that can complete."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


@app.command(help=_HELP)
def completion(shell: Annotated[Shell, typer.Argument(help="The shell.")]) -> None:
    """Print the script."""
    output.write((resources.files("perfdiff.cli") / "pages" / f"completion.{shell.value}").read_text(encoding="utf-8"))
