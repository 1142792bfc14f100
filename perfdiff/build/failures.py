"""Why a build failed, read off the end of its log."""

from __future__ import annotations

import re
from pathlib import Path

TAIL_LINES = 20
_TAIL_BYTES = 65_536  # of the log; twenty lines are rarely more than a few kilobytes

_CAUSES = (
    (r"fatal error: (\S+): No such file or directory", "'{}' not found", "install the package that holds this header"),
    (r"fatal error: '([^']+)' file not found", "'{}' not found", "install the package that holds this header"),
    (
        r"(?:^|[ /])(?:ba|da)?sh: (?:line )?(?:\d+: )?([\w.+/-]+): (?:command )?not found",
        "{}: not found",
        "install this tool or put it on PATH",
    ),
    (r"make(?:\[\d+\])?: ([\w.+/-]+): No such file or directory", "{}: not found", "install this tool or put it on PATH"),
    (r"env: [‘'](\S+?)[’']: No such file or directory", "{}: not found", "install this tool or put it on PATH"),
    (r"WARNING: '([\w.+-]+)' is missing on your system", "{}: not found", "install this tool or put it on PATH"),
    (r"cannot find -l(\S+?):? *(?:No such file or directory)?$", "library '{}' not found", "install the package that holds this library"),
    (r"unable to find library -l(\S+)", "library '{}' not found", "install the package that holds this library"),
    (r"Could NOT find (\w+)", "package '{}' not found", "install its development files"),
    (r"Package '?([\w.+-]+)'?,? (?:was )?not found", "package '{}' not found", "install its development files"),
    (r"Dependency \"([^\"]+)\" not found", "package '{}' not found", "install its development files"),
    (r"No rule to make target [`']([^']+)'", "no rule to make '{}'", "this revision may be built by another command"),
    (r"No targets specified and no makefile found()", "no makefile", "this revision may be built by another command"),
    (r"(No space left on device)", "{}", "free space, or put the cache elsewhere"),
)


def log_tail(log: Path) -> str:
    """Return the last lines of a build log."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
        text = file.read().decode(errors="replace")
    return "\n".join(text.splitlines()[-TAIL_LINES:])


def missing_thing(log: Path) -> tuple[str, str] | None:
    """Return what the build did not find, and what to do about it; None where the log does not say."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
        text = file.read().decode(errors="replace")
    for pattern, says, remedy in _CAUSES:
        found = re.search(pattern, text, re.MULTILINE)
        if found:
            return says.format(found[1]), remedy
    return None
