"""The command line. The first argument chooses the command; one that is no command's name is a revision to compare."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from types import TracebackType
from typing import Any

from typer import BadParameter
from typer.main import get_command

from perfdiff.cli.exits import ExitCode
from perfdiff.cli.leaving import CODES, Leave

# Each module has a Typer application `app`; only the chosen one is imported.
COMMANDS = (
    "init",
    "doctor",
    "counters",
    "explain",
    "accept",
    "annotate",
    "check",
    "predict",
    "compare",
    "commands",
    "record",
    "log",
    "profile",
    "trends",
    "search",
    "bisect",
    "bisect-step",
    "cache",
    "completion",
    "help",
)
COMPARISON = "comparison"
TWO_COMMANDS = "commands"
BETWEEN = "---"  # two commands behind `--`
COMPLETE = "_PERFDIFF_COMPLETE"  # set by a shell that asks what could follow, to its own name

_TERMS = re.compile(r"^Value error, |, unable to parse .*$")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command that `arguments` ask for and exit with its code."""
    if COMPLETE in os.environ:
        import_module("perfdiff.cli.completing").complete(os.environ[COMPLETE], os.environ)
        return
    given = list(sys.argv[1:] if arguments is None else arguments)
    sys.excepthook = _crash
    leave = Leave()
    for number in CODES:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
            signal.signal(number, leave)
    # What follows the first `--` belongs to the workload's program, options and all.
    end = given.index("--") if "--" in given else len(given)
    own, command = given[:end], given[end + 1 :]
    if own == ["version"]:
        own = ["--version"]
    name, own = command_of(own, command)
    program = "perfdiff" if name == COMPARISON else f"perfdiff {name}"
    chosen = loaded(name)
    chosen.make_context = _in_plain_words(chosen.make_context)
    chosen(args=own, prog_name=program, obj=command)


def loaded(name: str) -> Any:
    """Return a command, or the comparison, whose module alone is imported."""
    return get_command(import_module(f"perfdiff.cli.{name.replace('-', '_')}").app)


def command_of(words: Sequence[str], behind: Sequence[str] = ()) -> tuple[str, list[str]]:
    """Return which command the words of a command line choose, and the words without its name; `behind` are those that follow `--`."""
    place = first_word(words)
    names_command = any(word.partition("=")[0] == "--command" for word in words)
    if (place is None or words[place] not in COMMANDS) and (names_command or BETWEEN in behind):
        return TWO_COMMANDS, list(words)
    if place is None or words[place] not in COMMANDS:
        return COMPARISON, list(words)
    return words[place], [*words[:place], *words[place + 1 :]]


def first_word(own: Sequence[str]) -> int | None:
    """Return the place of the first argument that is neither an option nor the value of one that comparisons take."""
    if not own or not own[0].startswith("-"):
        return 0 if own else None
    options = [option for option in loaded(COMPARISON).params if option.param_type_name == "option"]
    valued = {word for option in options if not option.is_flag for word in option.opts}
    is_value = False
    for place, word in enumerate(own):
        if not is_value and not word.startswith("-"):
            return place
        is_value = not is_value and word in valued
    return None


def _in_plain_words(make_context: Callable[..., Any]) -> Callable[..., Any]:
    """Return what reads a command line, its complaints about values without the terms of the libraries that check them."""

    def make(*arguments: Any, **options: Any) -> Any:
        try:
            return make_context(*arguments, **options)
        except BadParameter as error:
            error.message = _TERMS.sub("", error.message.replace("Input should be ", "it must be "))
            raise

    return make


def _crash(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Show the traceback of a defect, and do not exit with Python's 1, which would read as a regression."""
    sys.__excepthook__(kind, error, trace)
    sys.exit(ExitCode.NOT_MEASURED)
