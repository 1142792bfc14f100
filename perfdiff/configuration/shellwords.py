"""Which programs a shell command starts, whatever stands around them: `sh -c`, variables that are set, `time`, `taskset`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from perfdiff.config import ASSIGNMENT

_OPERATORS = frozenset("();<>|&\n")
_SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh"))
_WRAPPERS = frozenset(
    ("time", "taskset", "env", "nice", "ionice", "chrt", "numactl", "timeout", "exec", "setarch", "stdbuf", "nohup", "command", "xvfb-run")
)
# What stands between a wrapper and the program: numbers of CPUs, masks, durations, levels, names of architectures.
_ARGUMENT = re.compile(r"[0-9][0-9a-fA-FxX.,:-]*[smhd]?|x86_64|aarch64")
_DEPTH = 3  # of shells in shells


def programs(command: str) -> Iterator[str]:
    """Yield the names of the programs that a shell command starts, without their folders; nothing where a quotation is not closed."""
    yield from _programs(command, _DEPTH)


def _programs(command: str, depth: int) -> Iterator[str]:
    words = shlex.shlex(command.replace("\n", ";"), posix=True, punctuation_chars=True)
    words.whitespace_split, words.commenters = True, ""
    try:
        tokens = list(words)
    except ValueError:  # a quotation is not closed, as the shell will say
        return
    start = 0
    for end in [*(place for place, word in enumerate(tokens) if set(word) <= _OPERATORS), len(tokens)]:
        yield from _program(tokens[start:end], depth)
        start = end + 1


def _program(words: Sequence[str], depth: int) -> Iterator[str]:
    """Yield the program of one simple command, or those of the text that it has a shell run."""
    is_wrapped = False
    for place, word in enumerate(words):
        if ASSIGNMENT.match(word) or (is_wrapped and (word.startswith("-") or _ARGUMENT.fullmatch(word))):
            continue
        name = PurePath(word).name
        if name in _WRAPPERS:
            is_wrapped = True
            continue
        texts = [words[at + 1] for at in range(place + 1, len(words) - 1) if re.fullmatch(r"-[a-z]*c", words[at])]
        if name in _SHELLS and texts and depth:
            yield from _programs(texts[0], depth - 1)
        elif name:
            yield name
        return
