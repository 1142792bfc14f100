"""`perfdiff completion SHELL`: the script that makes a shell complete commands and options."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer
from typer.completion import get_completion_script  # type: ignore[attr-defined]

from perfdiff.cli import COMPLETE, options, output
from perfdiff.cli.whole import PROGRAM

app = options.application()

_HELP = """
Print a script that makes the shell complete perfdiff's commands and options. Evaluate it in the shell's start-up file:

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
    output.write(get_completion_script(prog_name=PROGRAM, complete_var=COMPLETE, shell=shell.value))
