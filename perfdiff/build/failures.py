"""Why a build failed, read off its log."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from perfdiff.logs import FIRST_ERROR

_LINES = 20
_AHEAD = 3  # compilers say in which file they are ahead of an error

_FIRST_ERROR = re.compile(FIRST_ERROR.decode(), re.MULTILINE)
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")  # Maven's, which believes in terminals
_FETCH = "builds fetch nothing: build the project once by hand without `-o` or `--offline`, so that it lies in the local repository"
_NEWER_JDK = "name a newer JDK as `home` under [java]"
_NETWORK = "if it needs the network, download it by hand once and let [build] overlay copy it into both revisions"
_CAUSES = (
    (
        r"fatal error: (\S+\.(?:c|cc|cpp|cxx|C|m|S|s)): No such file or directory",
        "'{}' not found",
        "this revision may be built by another command",
    ),
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
    (r"offline mode and the artifact (\S+) has not been downloaded", "{} is not in the local repository", _FETCH),
    (r"in offline mode: Could not find artifact (\S+)", "{} is not in the local repository", _FETCH),
    (r"No cached version of (\S+) available for offline mode", "{} is not in Gradle's cache", _FETCH),
    (r"error: release version (\d+) not supported", "the compiler knows no Java {}", _NEWER_JDK),
    (r"error: invalid (?:target|source) release: (\S+)", "the compiler knows no Java {}", _NEWER_JDK),
    (
        r"error: (?:Source|Target) option (\d+) is no longer supported",
        "the compiler makes no Java {} any more",
        "name an older JDK as `home` under [java]",
    ),
    (
        r"Unsupported class file major version (\d+)",
        "the build tool reads no class files of version {}",
        "name an older JDK as `home` under [java]",
    ),
    (r"(JAVA_HOME is not (?:set|defined correctly))", "{}", "name the folder of a JDK as `home` under [java]"),
    (r"(No space left on device)", "{}", "free space, or put the cache elsewhere"),
    (r"[Cc]ould not resolve host(?:name)?:? '?([\w.-]+)", "host {} was not found", _NETWORK),
    (r"unable to resolve host address [‘'`]([\w.-]+)", "host {} was not found", _NETWORK),
    (r"(Temporary failure in name resolution|Name or service not known)", "{}", _NETWORK),
    (r"ERROR: No matching distribution found for (\S+)", "pip found no {}", _NETWORK),
    (
        r"ModuleNotFoundError: No module named '(pkg_resources)'",
        "setuptools has had no {} since release 82",
        "`command = \"pip install 'setuptools<82' && pip install --no-build-isolation --editable .\"` under [build] takes an older one",
    ),
    (
        r"ModuleNotFoundError: No module named '(asynchat|asyncore|distutils|imp|smtpd)'",
        "Python has had no module '{}' since 3.12",
        "name an older `interpreter` under [python]",
    ),
)
# Scripts may do without what they do not find: only where nothing else tells.
_MODULE = (
    r"ModuleNotFoundError: No module named '([\w.]+)'",
    "Python found no module '{}'",
    "let `command` under [build] install what the build needs, and build with `pip install --no-build-isolation --editable .`",
)


@dataclass(frozen=True, slots=True)
class Failure:
    """The end of a build's log, and its cause in words with a remedy, "" where the log does not say; `excerpt` has the cause's lines.

    `missing` is what was not found, as the log names it.
    """

    tail: str
    cause: str
    remedy: str
    excerpt: str
    missing: str = ""


def read_failure(log: Path, tree: Path) -> Failure:
    """Read the log of a failed build, with paths relative to `tree`."""
    text = _COLOURS.sub("", log.read_bytes().decode(errors="replace")).replace(f"{tree.resolve()}/", "")
    lines = text.rstrip("\n").split("\n")
    tail = "\n".join(lines[-_LINES:])
    error = _FIRST_ERROR.search(text)
    for pattern, says, remedy in _CAUSES if error else (*_CAUSES, _MODULE):
        found = re.search(pattern, text, re.MULTILINE)
        if found:
            return Failure(tail, says.format(found[1]), remedy, _excerpt(lines, text[: found.start()].count("\n")), found[1])
    if error is None:
        return Failure(tail, "", "", tail)
    return Failure(tail, error[0], "", _excerpt(lines, text[: error.start()].count("\n")))


def _excerpt(lines: Sequence[str], at: int) -> str:
    """Return the lines from shortly before line `at` on: parallel builds go on and warn, so the end may not tell."""
    first = max(0, min(at - _AHEAD, len(lines) - _LINES))
    return "\n".join(lines[first : first + _LINES])
