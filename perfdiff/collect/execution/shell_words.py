"""Commands as the shell reads them: which start one program and nothing else."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from pathlib import Path

_OPERATORS = frozenset("();<>|&")  # of the shell, between commands
_SETTINGS = re.compile(r"(?:[A-Za-z_]\w*=[\w./:,+-]*\s+)+")  # of variables, ahead of a command
_BUILT_IN = frozenset(("echo", "false", "kill", "printf", "pwd", "test", "time", "true"))  # as programs not quite the same
_PROGRAM = re.compile(r"[\w./+-]+(?!\S)")


def in_the_shells_place(command: str, directory: Path, path: str) -> str:
    """Return a command with `exec` before its program if the shell starts nothing else, else as it is; programs are on `path`.

    The kernel tells what the process waited for a CPU that was started, not what its children did, and `dash` stays above its last command.
    """
    words, text = shlex.shlex(command, punctuation_chars=True), command.strip()
    words.whitespace_split, words.commenters = True, ""
    try:
        if "\n" in text or any(set(word) <= _OPERATORS for word in words):
            return command
    except ValueError:  # quotes that do not end: the shell will say so
        return command
    settings = _SETTINGS.match(text)
    start = settings.end() if settings else 0
    program = _PROGRAM.match(text, start)
    if program is None or not _is_program(program.group(), directory, path):
        return command
    return f"{text[:start]}exec {text[start:]}"


def _is_program(word: str, directory: Path, path: str) -> bool:
    """Return whether a command's first word is that of a file to be executed, and not only of the shell's own."""
    if "/" in word:
        return os.access(directory / word, os.X_OK)
    return word not in _BUILT_IN and shutil.which(word, path=path) is not None
