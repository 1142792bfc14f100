"""Facts read from the text of a function without a compiler: changed lines, returned values, whether it frees memory."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import TypeVar

from perfdiff.languages.installed import installed
from perfdiff.records.schema import FunctionInfo, Source

T = TypeVar("T")

_RETURN = re.compile(r"\breturn\b")
# Statements end by a semicolon where a line of the text does; else with the line, but for what stands in brackets.
_SEMICOLONS = re.compile(r";\s*(?:[}/]|$)", re.MULTILINE)
_OPENED, _CLOSED = "([{", ")]}"
_ASSIGNMENT = re.compile(r"(?P<target>[^=!<>()]+?)(?:[-+*/%&|^.]|\*\*|//|<<|>>|\?\?)?=(?![=>])[^()]*")
_REACHED = re.compile(r"\.|->|::|\[")
_ITSELF = frozenset(word for traits in installed() for word in traits.wording.itself)
_WORD = re.compile(r"[A-Za-z_]\w*")
# Values that say how a call ended, not what it found.
_STATUS = _ITSELF.union(word for traits in installed() for word in traits.wording.statuses)
# Words between values.
_KEYWORDS = frozenset(word for traits in installed() for word in traits.wording.between)
_WORDS, _TELLING = re.compile(r"\w+"), 3  # so many words make a line that is recognised elsewhere
_FREES = re.compile(r"free|delete|dealloc|release|destroy|unref|sweep|collect|reclaim", re.IGNORECASE)


def changed_lines(info: FunctionInfo) -> tuple[tuple[int, str], ...]:
    """Return the lines of head's code that base's lacks, as (line of the file, text)."""
    if info.head is None:
        return ()
    return _lines_missing(info.head, info.base)


def dropped_lines(info: FunctionInfo) -> tuple[tuple[int, str], ...]:
    """Return the lines of base's code that head's lacks, as (line of the file, text)."""
    if info.base is None:
        return ()
    return _lines_missing(info.base, info.head)


@lru_cache(maxsize=4096)  # asked for again by every link that a suspect may have
def _lines_missing(source: Source, other: Source | None) -> tuple[tuple[int, str], ...]:
    here, there = [*source.code.items()], [*other.code.values()] if other is not None else []
    matcher = difflib.SequenceMatcher(a=there, b=[text for _, text in here], autojunk=False)
    changed = (here[start:end] for tag, _, _, start, end in matcher.get_opcodes() if tag != "equal")
    return tuple((line, text) for lines in changed for line, text in lines if text)


def words_of(info: FunctionInfo) -> frozenset[str]:
    """Return the names in the changed lines of either side."""
    lines = [line for _, line in (*changed_lines(info), *dropped_lines(info))]
    return frozenset(_WORD.findall("\n".join(lines)))


def only_sets_aside(info: FunctionInfo) -> bool:
    """Return whether all that changed are assignments, without a call, of what nothing else in the function names: it goes on as before."""
    for source, lines in ((info.head, changed_lines(info)), (info.base, dropped_lines(info))):
        if source is None:
            return False
        telling = {line: text for line, text in lines if any(map(str.isalnum, text))}
        assignments = [_ASSIGNMENT.fullmatch(text) for text in telling.values()]
        rest = frozenset(_WORD.findall("\n".join(text for line, text in source.code.items() if line not in telling)))
        if not all(assignment is not None and rest.isdisjoint(_assigned(assignment["target"])) for assignment in assignments):
            return False
    return True


def _assigned(target: str) -> set[str]:
    """Return the names that lead to what an assignment sets: of a declaration the variable, of a field what it is reached by."""
    names = _WORD.findall(target)
    return set(names) - _ITSELF if _REACHED.search(target) else set(names[-1:])


def returned_words(info: FunctionInfo) -> frozenset[str]:
    """Return the names in what head's function returns; none where it returns nothing, or only constants that say how it ended."""
    values = _returned("\n".join(info.head.code.values())) if info.head is not None else ()
    names = {name for value in values for name in _WORD.findall(value)} - _STATUS - _KEYWORDS
    return frozenset(name for name in names if not name.isupper())


def _returned(code: str) -> Iterator[str]:
    """Yield what stands behind each `return`, up to the statement's end."""
    ends = ";" if _SEMICOLONS.search(code) else "\n"
    for statement in _RETURN.finditer(code):
        open_brackets, at = 0, statement.end()
        while at < len(code) and (code[at] != ends or open_brackets > 0):
            open_brackets += (code[at] in _OPENED) - (code[at] in _CLOSED)
            at += 1
        yield code[statement.end() : at]


def frees(info: FunctionInfo) -> bool:
    """Return whether the text, or the name, speaks of giving memory back."""
    return any(_FREES.search(text) for text in (info.name, *(source.text for source in (info.base, info.head) if source is not None)))


def _tells(line: str) -> bool:
    """Return whether a line says enough to be recognised elsewhere; braces and returns stand everywhere."""
    return len(_WORDS.findall(line)) >= _TELLING


class Texts:
    """What the texts of functions tell, read once of each: guilt asks it of every pair of functions."""

    def __init__(self, functions: Mapping[int, FunctionInfo]) -> None:
        self._functions = functions
        self._words: dict[int, frozenset[str]] = {}
        self._returned: dict[int, frozenset[str]] = {}
        self._set_aside: dict[int, bool] = {}
        self._added: dict[int, frozenset[str]] = {}
        self._dropped: dict[int, frozenset[str]] = {}

    def words(self, function: int) -> frozenset[str]:
        """Return `words_of` a function."""
        return self._once(self._words, function, words_of)

    def returned(self, function: int) -> frozenset[str]:
        """Return the `returned_words` of a function."""
        return self._once(self._returned, function, returned_words)

    def only_sets_aside(self, function: int) -> bool:
        """Return whether a function's change `only_sets_aside`."""
        return self._once(self._set_aside, function, only_sets_aside)

    def added(self, function: int) -> frozenset[str]:
        """Return the texts of its `changed_lines`."""
        return self._once(self._added, function, lambda info: frozenset(line for _, line in changed_lines(info)))

    def dropped(self, function: int) -> frozenset[str]:
        """Return the texts of its `dropped_lines` that say enough to be recognised elsewhere."""
        return self._once(self._dropped, function, lambda info: frozenset(line for _, line in dropped_lines(info) if _tells(line)))

    def _once(self, cache: dict[int, T], function: int, read: Callable[[FunctionInfo], T]) -> T:
        if function not in cache:
            cache[function] = read(self._functions[function])
        return cache[function]
