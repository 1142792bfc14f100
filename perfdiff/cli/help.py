"""`perfdiff help [COMMAND | SLUG]`: what a command does, or what the slug behind a message means and what to do."""

from __future__ import annotations

import re
from importlib import resources
from typing import Annotated

import typer

from perfdiff.cli import COMMANDS, COMPARISON, exits, options, output
from perfdiff.cli.whole import PROGRAM, command
from perfdiff.configuration.checking import nearest
from perfdiff.errors import UsageError

app = options.application()

_LINK = re.compile(r"\[([^\]]+)\]\((?!https?:)[^)]+\)")
_ENTRY = re.compile(r"^### `([\w-]+)`$", re.MULTILINE)
_HELP = """
Show what a command does, or what the slug in brackets behind a message means and what to do about it.

\b
  perfdiff help
  perfdiff help bisect
  perfdiff help build-failed
"""


@app.command(name="help", help=_HELP)
def help_(word: Annotated[str | None, typer.Argument(metavar="[COMMAND | SLUG]", help="What to explain.")] = None) -> None:
    """Print the help of a command, of the comparison where none is named, or the text behind a slug."""
    with exits.exceptions_become_codes():
        name = word.strip("[]()") if word else COMPARISON
        if name in (*COMMANDS, COMPARISON):
            program = PROGRAM if name == COMPARISON else f"{PROGRAM} {name}"
            output.write(command(name).get_help(command(name).make_context(program, [], resilient_parsing=True)))
            return
        page = (resources.files("perfdiff.cli") / "pages" / "messages.md").read_text(encoding="utf-8")
        _, *parts = _ENTRY.split(page)
        texts = {slug: _LINK.sub(r"\1", text).strip() for slug, text in zip(parts[::2], parts[1::2], strict=True)}
        if name not in texts:
            raise UsageError(f"there is no command and no message '{name}'{nearest(name, (*COMMANDS, *texts))}", slug="no-help")
        output.write(texts[name])
