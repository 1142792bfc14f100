"""Regular expressions in a program's sources: texts in quotes that read as one, put together as the program does it."""

from __future__ import annotations

import re
import re._parser as parser  # type: ignore[import-not-found]
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Parsed = Any  # a parsed pattern: `re` has no types for it

_LITERAL = re.compile(
    r"""(?P<raw>\b[rR][bBfF]?|\b[bBfF][rR])?
    (?:(?P<quote>"{3}|'{3})(?P<long>(?:\\.|(?!(?P=quote))[^\\])*+)(?P=quote)|(?P<mark>["'])(?P<short>(?:\\.|(?!(?P=mark))[^\\\n])*+)(?P=mark))""",
    re.DOTALL | re.VERBOSE,
)
_COMMENT = re.compile(r"(?:\#|//)[^\n]*|/\*.*?\*/", re.DOTALL)
_TEXT_OR_COMMENT = re.compile(f"(?P<comment>{_COMMENT.pattern})|{_LITERAL.pattern}", re.DOTALL | re.VERBOSE)
_JOIN = re.compile(r"(?:\s|(?:#|//)[^\n]*\n|[+.]|\\\n)*")  # between texts that are one: blanks, comments and an operator
_NAME = re.compile(r"(?:[A-Za-z_$]\w*(?:\.|->|::))*(?P<name>[A-Z_][A-Z_0-9]+)\b(?!\s*[\(=])")
_NAMING = re.compile(r"(?P<name>[A-Z_][A-Z_0-9]+)\b[^=\n\"']*=\s*\(?\s*$")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", '"': '"', "'": "'", "\n": ""}
_DELIMITED = re.compile(r"(?P<mark>[/~#%@!])(?P<pattern>.*)(?P=mark)(?P<flags>[a-zA-Z]*)", re.DOTALL)
_FORMATS = {"%d": "3", "%s": "x"}
_SPELT_OTHERWISE = ((r"\h", r"[ \t]"), (r"\R", r"\n"), ("(?<", "(?P<"), ("(?P<=", "(?<="), ("(?P<!", "(?<!"))
_CLASS = re.compile(r"\\[pP]\{\^?\w+\}")  # of Unicode
_QUANTIFIER = re.compile(r"[^\\][*+}]")
_LONGEST = 4000
_DEEPEST = 8  # names within texts that have names


def changed(sources: Sequence[Mapping[str, Sequence[str]]]) -> tuple[Parsed, ...]:
    """Return the parsed patterns that some sides' sources (lines by file) have and others have not, those of the last side first."""
    of_sides = [_patterns(files) for files in sources]
    everywhere = set.intersection(*map(set, of_sides)) if len(of_sides) > 1 else set()
    texts = dict.fromkeys(text for side in reversed(of_sides) for text in side if text not in everywhere)
    return tuple(tree for text in texts if (tree := parsed(text)) is not None)


def parsed(text: str) -> Parsed | None:
    """Return the tree of a text that is a pattern with something that repeats, None of others; dialects are read as far as they go."""
    for spelt, usual in (*_FORMATS.items(), *_SPELT_OTHERWISE):
        text = text.replace(spelt, usual)
    text = _CLASS.sub("[a-z]", text)
    delimited = _DELIMITED.fullmatch(text.strip())
    is_verbose = "\n" in text and (delimited is None or "x" in delimited["flags"])
    with warnings.catch_warnings(action="ignore"):
        for pattern in filter(None, (delimited and delimited["pattern"], text)):
            try:
                return parser.parse(pattern, re.VERBOSE if is_verbose else 0)
            except (re.error, OverflowError, RecursionError):
                continue
    return None


def _patterns(files: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the texts of files that may be patterns."""
    joined = [_FileTexts("\n".join(lines)) for lines in files.values()]
    names = {name: parts for texts in joined for name, parts in texts.named}
    texts = (_put_together(parts, names, _DEEPEST) for texts_of_file in joined for parts in texts_of_file.parts)
    return [text for text in texts if len(text) <= _LONGEST and _QUANTIFIER.search(text)]


class _FileTexts:
    """The texts of a file: `parts` of each, which are texts, or names behind a NUL; `named` are those that have a name themselves."""

    def __init__(self, source: str) -> None:
        self.parts: list[list[str]] = []
        self.named: list[tuple[str, list[str]]] = []
        place = 0
        while (literal := _TEXT_OR_COMMENT.search(source, place)) is not None:
            if literal["comment"]:
                place = literal.end()
                continue
            naming = _NAMING.search(source, max(0, literal.start() - 200), literal.start())
            parts, place = _one_text(source, literal)
            self.parts.append(parts)
            if naming is not None:
                self.named.append((naming["name"], parts))


def _one_text(source: str, literal: re.Match[str]) -> tuple[list[str], int]:
    """Return the parts of a text that begins with a literal, and where it ends."""
    parts, place = [_unquoted(literal)], literal.end()
    while True:
        behind = _JOIN.match(source, place)
        assert behind is not None, "it may be empty"
        following = _LITERAL.match(source, behind.end())
        name = _NAME.match(source, behind.end()) if following is None and ("+" in behind[0] or "." in behind[0]) else None
        if following is not None:
            parts.append(_unquoted(following))
            place = following.end()
        elif name is not None:
            parts.append(f"\0{name['name']}")
            place = name.end()
        else:
            return parts, place


def _unquoted(literal: re.Match[str]) -> str:
    text: str = literal["long"] if literal["short"] is None else literal["short"]
    return text if literal["raw"] else _ESCAPE.sub(lambda match: _ESCAPES.get(match[1], match[0]), text)


def _put_together(parts: Iterable[str], names: Mapping[str, Sequence[str]], depth: int) -> str:
    """Return a text with that of each name in its place, nothing for what is not known."""

    def whole(part: str) -> str:
        if not part.startswith("\0"):
            return part
        return _put_together(names.get(part[1:], ()), names, depth - 1) if depth else ""

    return "".join(map(whole, parts))
