"""What commands give as a secret: `--password x`, `API_KEY=x`, `mysql -px`, `curl -u user:x`, `user:x@host`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator

from perfdiff.report.secret_names import FIELD, OPTION, VARIABLE

_KEY = re.compile(r"(?:^|[-_])key$", re.IGNORECASE)

# A name, and what is between it and its value.
_NAMED = re.compile(r"(?<![\w-])(?P<dashes>-{0,2}+)(?P<name>\w[\w-]*+)(?P<quote>\\?[\"'])?(?P<between>=|\s*+:\s*+|[ ])")
_AFTER_DASHES = re.compile(r"(?<=[-/.:;,])(?P<dashes>)(?P<name>\w++)(?P<quote>)(?P<between>=)")
# Programs, and their options that take a secret. Not a bare -p of others, which is a port or a number of processes.
_PROGRAMS = tuple(
    (re.compile(program), re.compile(option))
    for program, option in (
        (r"\bopenssl\b", r"(?<!\w)-pass(?:in|out)?\s{1,9}(?:pass:)"),
        (r"\b(?:mysql|mariadb)[\w-]*+\s", r"(?<=\s)-p"),
        (r"\b(?:sqlcmd|bcp)\s", r"(?<=\s)-P\s*+"),
        (r"\bsshpass\s", r"(?<=\s)-p\s*+"),
        (r"\bmongo(?:sh|dump|export|import|restore)?\s", r"(?<=\s)-p\s++"),
        (r"\bredis-(?:cli|benchmark)\s", r"(?<=\s)-a\s++"),
        (r"\bldap\w++\s", r"(?<=\s)-w\s++"),
        (r"\b(?:curl|wget|https?)\s", r"(?<=\s)(?:-u\s*+|-a\s++|--(?:proxy-)?user[= ])['\"]?[^\s:'\"]++:"),
    )
)
_MOST_QUOTE = 2  # characters between a name and its value: a quote, and a backslash before it
_SEGMENT = re.compile(r"[^|;&\n]++")
_VERSION = r"v?\d+(?:\.\d+){0,2}(?![.\d])"  # of a package, behind its name
_USER_AT_HOST = re.compile(
    rf"(?<![\w/:.@-])(?P<user>[\w.-]++:)(?!\$|\{{)(?P<secret>[^\s:@/'\"]+)@(?!sha\d|{_VERSION})[\w-]++(?:\.[\w-]|[:/])"
)

_SHELL_WORD = re.compile(r"(?:'[^']*+'|\"(?:\\.|[^\"\\])*+\"|\\.|[^\s'\"\\;|&<>()])++", re.DOTALL)
_BARE = re.compile(r"(?:[^\s'\"\\]|\\(?![\"']))++")
_CLOSED = {quote: re.compile(rf"\\?{quote}((?:\\[^{quote}]|[^{quote}\\])++)") for quote in "'\""}
_PLACE = re.compile(r"\$\{?\w+\}?|\$\(.*|\{.*|[\d.,]+", re.DOTALL)


def in_commands(commands: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield what the commands give as a secret, as it is meant and as it is written, each behind what stands before it there.

    That is "" where what is meant does not stand there as such.
    """
    for command in commands:
        quotes = _quotes(command)
        for start, end in _places(command):
            for given in _given(command, end, quotes):
                if not _PLACE.fullmatch(given):
                    at = command.find(given, end, end + len(given) + _MOST_QUOTE)
                    yield command[start:at] if at >= 0 else "", given
        yield from ((match["user"], match["secret"]) for match in _USER_AT_HOST.finditer(command))


def _places(command: str) -> Iterator[tuple[int, int]]:
    """Yield where the name of a secret begins, and where the secret does."""
    for pattern in (_NAMED, _AFTER_DASHES):
        for match in pattern.finditer(command):
            if _names_secret(match):
                yield match.span()
    for segment in _SEGMENT.finditer(command):
        for program, option in _PROGRAMS:
            if called := program.search(command, segment.start(), segment.end()):
                yield from (match.span() for match in option.finditer(command, called.start(), segment.end()))


def _names_secret(match: re.Match[str]) -> bool:
    dashes, name, between = match["dashes"], match["name"], match["between"]
    value = match.string[match.end() : match.end() + 200]
    if ":" in between:
        is_text = value.lstrip("\\")[:1] in ("'", '"') if match["quote"] else between.endswith(" ") and _holds(value, r"\d")
        return is_text and bool(FIELD.search(name))
    if match["quote"]:
        return False
    if between == "=" and (FIELD.search(name) or (name.replace("-", "_").isupper() and VARIABLE.search(name))):
        return True
    if dashes and OPTION.search(name):
        return True
    if _KEY.search(name) and (dashes or between == "="):  # of short ones, most are names of a field or a map's keys
        is_long = _holds(value, r"\d") and _holds(value, "[A-Za-z]") and not re.match(r"\S{0,15}(?:\s|$)", value)
        is_longer = not re.match(r"\S{0,31}(?:\s|$)", value) and _holds(value, "[a-z]") and _holds(value, "[A-Z]")
        return is_long and (is_longer or (between == "=" and name.lower() == "key"))
    return False


def _holds(value: str, letter: str) -> bool:
    return re.match(rf"\S*?{letter}", value) is not None


def _quotes(command: str) -> str:
    """Return for each place of a command the quote that it stands in, a space where it stands in none."""
    quotes, quote, is_escaped = [], " ", False
    for letter in command:
        quotes.append(quote)
        if is_escaped:
            is_escaped = False
        elif letter == "\\" and quote != "'":
            is_escaped = True
        elif letter == quote:
            quote = " "
        elif quote == " " and letter in "'\"":
            quote = letter
    return "".join([*quotes, quote])


def _given(command: str, start: int, quotes: str) -> Iterator[str]:
    if quotes[start] == " ":
        word = _SHELL_WORD.match(command, start)
        if word is None:
            return
        try:
            plain = "".join(shlex.split(word[0]))
        except ValueError:
            plain = word[0]
        if not re.search("['\"]", word[0]):
            yield word[0]
        yield plain[1:-1] if plain[:1] in ("'", '"') and plain[:1] == plain[-1:] else plain
        return
    letter = command[start : start + 2].lstrip("\\")[:1]
    closed = _CLOSED[letter].match(command, start) if letter in ("'", '"') else None
    if closed:
        yield closed[1].removesuffix("\\")
    elif bare := _BARE.match(command, start):
        yield bare[0]
        yield re.split("[;&,}]", bare[0])[0]
