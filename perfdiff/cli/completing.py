"""What a shell asks while a command line is being typed, and the answer: what could stand in place of the last word."""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import typer

from perfdiff.cli import COMMANDS, command_of, first_word, loaded
from perfdiff.cli.suggestions import Suggestion
from perfdiff.errors import PerfdiffError

_BASH = "complete_bash"  # lists values without their descriptions


@dataclass(frozen=True, slots=True)
class _Typed:
    """A command line behind the program's name: whole `words`, and the one that is being typed, "" where it is not begun.

    `cut` is the number of its characters that the shell takes for a word of their own, and keeps.
    """

    words: tuple[str, ...]
    incomplete: str
    cut: int


def complete(question: str, environment: Mapping[str, str]) -> None:
    """Print what could stand in place of the word that is being typed, one a line; nothing more where that cannot be found out.

    As Typer has it, bash gives the line in COMP_WORDS and the number of its last word in COMP_CWORD, other shells give it in
    _TYPER_COMPLETE_ARGS; their values have descriptions, behind tabs.
    """
    typed = _typed(environment)
    with contextlib.suppress(PerfdiffError, OSError):  # nobody wants a message in the middle of a line
        for value, says in _suggestions(typed):
            if value.isprintable():
                described = f"\t{_line(says)}" if says and question != _BASH else ""
                os.write(1, os.fsencode(f"{value[typed.cut :]}{described}\n"))


def _typed(environment: Mapping[str, str]) -> _Typed:
    line = environment.get("COMP_WORDS", environment.get("_TYPER_COMPLETE_ARGS", ""))
    words = _split(line)[1:]
    is_begun = not line[-1:].isspace()
    if environment.get("COMP_CWORD", "").isdecimal():
        is_begun = int(environment["COMP_CWORD"]) <= len(words)
    incomplete = words.pop() if is_begun and words else ""
    marks = set(":=") & set(environment.get("COMP_WORDBREAKS", ""))
    return _Typed(tuple(words), incomplete, max((incomplete.rfind(mark) + 1 for mark in marks), default=0))


def _split(line: str) -> list[str]:
    """Return the words of a line as a shell reads them; a quotation may still be open."""
    lexer = shlex.shlex(line, posix=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    words: list[str] = []
    try:
        words.extend(lexer)
    except ValueError:
        words.append(lexer.token)
    return words


def _suggestions(typed: _Typed) -> Iterator[Suggestion]:
    if "--" in typed.words:  # behind it stands the workload, of which its program knows
        return
    if first_word((*typed.words, typed.incomplete or "command")) == len(typed.words):
        yield from ((name, "") for name in COMMANDS if name.startswith(typed.incomplete))
    name, own = command_of(typed.words)
    yield from _values(loaded(name), own, typed.incomplete)


def _values(command: Any, words: Sequence[str], incomplete: str) -> Iterator[Suggestion]:
    """Yield what could follow the words of a command: values of an option or argument, names of options or of commands within it.

    Values are not checked, as that takes longer than the rest; a shell asks at each stroke.
    """
    context, asked = typer.Context(command), None
    options = {spelling: option for option in command.params if option.param_type_name == "option" for spelling in option.opts}
    arguments = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
    for place, word in enumerate(words):
        name, equals, value = word.partition("=")
        if asked is not None:
            context.params[asked.name], asked = word, None
        elif name in options and not options[name].is_flag:
            asked = None if equals else options[name]
            context.params[options[name].name] = value
        elif word.startswith("-"):
            continue
        elif word in getattr(command, "commands", {}):
            yield from _values(command.commands[word], words[place + 1 :], incomplete)
            return
        elif arguments and arguments[0].nargs == 1:
            arguments.pop(0)
    name, equals, value = incomplete.partition("=")
    start = ""
    if asked is None and equals and name in options:
        asked, start, incomplete = options[name], f"{name}=", value
    if asked is None and not incomplete.startswith("-"):
        asked = next(iter(arguments), None)
    for item in (asked or command).shell_complete(context, incomplete):
        yield f"{start}{item.value}", item.help or ""


def _line(text: str) -> str:
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
