"""Why a build failed, read off its log."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from perfdiff.languages.installed import installed
from perfdiff.languages.traits import BuildCause
from perfdiff.logs import FIRST_ERROR

_LINES = 20
_AHEAD = 3  # compilers say in which file they are ahead of an error

_FIRST_ERROR = re.compile(FIRST_ERROR.decode(), re.MULTILINE)
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")  # of tools that believe in terminals
_NETWORK = "if it needs the network, download it by hand once and let [build] overlay copy it into both revisions"
_CAUSES = (
    BuildCause(
        r"fatal error: (\S+\.(?:c|cc|cpp|cxx|C|m|S|s)): No such file or directory",
        "'{}' not found",
        "this revision may be built by another command",
    ),
    BuildCause(r"fatal error: (\S+): No such file or directory", "'{}' not found", "install the package that holds this header"),
    BuildCause(r"fatal error: '([^']+)' file not found", "'{}' not found", "install the package that holds this header"),
    BuildCause(
        r"(?:^|[ /])(?:ba|da)?sh: (?:line )?(?:\d+: )?([\w.+/-]+): (?:command )?not found",
        "{}: not found",
        "install this tool or put it on PATH",
    ),
    BuildCause(r"make(?:\[\d+\])?: ([\w.+/-]+): No such file or directory", "{}: not found", "install this tool or put it on PATH"),
    BuildCause(r"env: [‘'](\S+?)[’']: No such file or directory", "{}: not found", "install this tool or put it on PATH"),
    BuildCause(r"WARNING: '([\w.+-]+)' is missing on your system", "{}: not found", "install this tool or put it on PATH"),
    BuildCause(
        r"cannot find -l(\S+?):? *(?:No such file or directory)?$", "library '{}' not found", "install the package that holds this library"
    ),
    BuildCause(r"unable to find library -l(\S+)", "library '{}' not found", "install the package that holds this library"),
    BuildCause(r"Could NOT find (\w+)", "package '{}' not found", "install its development files"),
    BuildCause(
        r"Could not find a package configuration file provided by\s+\"([^\"]+)\"", "package '{}' not found", "install its development files"
    ),
    BuildCause(r"Package '?([\w.+-]+)'?,? (?:was )?not found", "package '{}' not found", "install its development files"),
    BuildCause(r"Dependency \"([^\"]+)\" not found", "package '{}' not found", "install its development files"),
    BuildCause(r"No rule to make target [`']([^']+)'", "no rule to make '{}'", "this revision may be built by another command"),
    BuildCause(r"No targets specified and no makefile found()", "no makefile", "this revision may be built by another command"),
)
_OF_MACHINES = (
    BuildCause(r"(No space left on device)", "{}", "free space, or put the cache elsewhere"),
    BuildCause(r"[Cc]ould not resolve host(?:name)?:? '?([\w.-]+)", "host {} was not found", _NETWORK),
    BuildCause(r"unable to resolve host address [‘'`]([\w.-]+)", "host {} was not found", _NETWORK),
    BuildCause(r"(Temporary failure in name resolution|Name or service not known)", "{}", _NETWORK),
)
_OF_LANGUAGES = tuple(cause for traits in installed() for cause in traits.building.causes)
_VAGUE = tuple(cause for traits in installed() for cause in traits.building.vague_causes)


@dataclass(frozen=True, slots=True)
class BuildFailure:
    """The end of a build's log, and its cause in words with a remedy, "" where the log does not say; `excerpt` has the cause's lines.

    `missing` is what was not found, as the log names it.
    """

    tail: str
    cause: str
    remedy: str
    excerpt: str
    missing: str = ""


def read_failure(log: Path, tree: Path) -> BuildFailure:
    """Read the log of a failed build, with paths relative to `tree`."""
    text = _COLOURS.sub("", log.read_bytes().decode(errors="replace")).replace(f"{tree.resolve()}/", "")
    lines = text.rstrip("\n").split("\n")
    tail = "\n".join(lines[-_LINES:])
    error = _FIRST_ERROR.search(text)
    for cause in (*_CAUSES, *_OF_LANGUAGES, *_OF_MACHINES, *_VAGUE):
        match = re.search(cause.pattern, text, re.MULTILINE) if error is None or not cause.without_error else None
        if match:
            excerpt = _excerpt(lines, text[: match.start()].count("\n"))
            return BuildFailure(tail, cause.says.format(match[1]), cause.remedy, excerpt, match[1])
    if error is None:
        return BuildFailure(tail, "", "", tail)
    return BuildFailure(tail, error[0], "", _excerpt(lines, text[: error.start()].count("\n")))


def _excerpt(lines: Sequence[str], at: int) -> str:
    """Return the lines from shortly before line `at` on: parallel builds go on and warn, so the end may not tell."""
    first = max(0, min(at - _AHEAD, len(lines) - _LINES))
    return "\n".join(lines[first : first + _LINES])
