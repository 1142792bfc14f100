"""Inputs that make a regular expression try much: what comes ahead of something that repeats, that many times, and an end that fails.

Expressions backtrack where the same text can be divided among what repeats in many ways: repetitions within or beside each other that
match the same (Kirrage, Rathnayake and Thielecke 2013), or a search that begins anew at each place.
"""

from __future__ import annotations

import re._constants as codes  # type: ignore[import-not-found]
import string
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from perfdiff.fuzzing.families import Segment

_LETTERS = frozenset(f"{string.ascii_letters}{string.digits}{string.punctuation} \n\t\\")
_USUAL = "a 1\n"  # letters that are tried first, where they match
_LEAST_MOST = 10  # repetitions that something may have at most: what has fewer makes nothing slow
_MOST_BODIES = 6
_ENDS = (b"!", b"\n!", b"\n", b"\n \n", b"\0")
_CATEGORIES: dict[Any, Callable[[str], bool]] = {
    codes.CATEGORY_DIGIT: str.isdigit,
    codes.CATEGORY_SPACE: str.isspace,
    codes.CATEGORY_WORD: lambda letter: letter.isalnum() or letter == "_",
}
_NEGATED = {
    codes.CATEGORY_NOT_DIGIT: codes.CATEGORY_DIGIT,
    codes.CATEGORY_NOT_SPACE: codes.CATEGORY_SPACE,
    codes.CATEGORY_NOT_WORD: codes.CATEGORY_WORD,
}
_REPEATS = (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT)
_CHARACTERS = (codes.LITERAL, codes.NOT_LITERAL, codes.ANY, codes.IN)

Node = tuple[Any, Any]


@dataclass(frozen=True, slots=True)
class _Loop:
    """Something that repeats: a text that leads to it, and texts that it repeats, those first that what follows matches as well.

    It `is_ambiguous` where there are such, or where a part of it repeats.
    """

    lead: str
    bodies: tuple[str, ...]
    is_ambiguous: bool

    def left_open(self) -> Iterator[tuple[Segment, ...]]:
        """Yield what leads to it, and no end."""
        yield from ((Segment(self.lead.encode()), Segment(body.encode(), repeats=True)) for body in self.bodies)

    def failing(self, bodies: Sequence[str], ends: Sequence[bytes]) -> Iterator[tuple[Segment, ...]]:
        """Yield some of its texts with some ends."""
        repeated = [Segment(body.encode(), repeats=True) for body in bodies]
        yield from ((Segment(self.lead.encode()), segment, Segment(end)) for segment in repeated for end in ends)

    def begun_anew(self) -> Iterator[tuple[Segment, ...]]:
        """Yield what leads to it again and again, with its texts."""
        for body in self.bodies if self.lead else ():
            repeated = Segment((self.lead + body).encode(), repeats=True)
            yield (repeated,)
            yield repeated, Segment(body.encode(), repeats=True)


def attacks(tree: Any) -> Iterator[tuple[Segment, ...]]:
    """Yield the segments of inputs that a parsed pattern may take long with, the likeliest of each repetition first."""
    loops = list(dict.fromkeys(loop for choice in range(2) for loop in _PatternWalk(choice).loops(list(tree), "", ())))
    ambiguous = [loop for loop in loops if loop.is_ambiguous]
    loops = [*ambiguous, *(loop for loop in loops if not loop.is_ambiguous)]
    yield from (segments for loop in loops for segments in loop.left_open())
    yield from (segments for loop in ambiguous for segments in loop.failing(loop.bodies[:1], _ENDS[:2]))
    yield from (segments for loop in loops for segments in loop.begun_anew())
    yield from (segments for loop in loops for segments in loop.failing(loop.bodies, _ENDS[:2]))
    yield from (segments for loop in ambiguous for segments in loop.failing(loop.bodies[:1], _ENDS[2:]))


def matched(tree: Any, choice: int) -> str:
    """Return a text that a parsed pattern may match, that of a number among several."""
    return _PatternWalk(choice).text(list(tree), choice=choice)


@dataclass(slots=True)
class _PatternWalk:
    """A walk through a tree by one `choice` of texts; `groups` are those that numbered groups have matched so far."""

    choice: int = 0
    groups: dict[int, str] = field(default_factory=dict)

    def loops(self, nodes: Sequence[Node], lead: str, behind: Sequence[Node]) -> Iterator[_Loop]:
        """Yield what repeats in a sequence that stands after a text and ahead of other nodes."""
        for place, (code, value) in enumerate(nodes):
            rest = [*nodes[place + 1 :], *behind]
            if code in _REPEATS:
                _, most, inner = value
                if most >= _LEAST_MOST:
                    bodies = tuple(dict.fromkeys(filter(None, self._bodies(list(inner), rest))))
                    yield _Loop(lead, bodies[:_MOST_BODIES], self._is_ambiguous(list(inner), rest))
                yield from self.loops(list(inner), lead, rest)
            else:
                for inner in _within(code, value):
                    yield from self.loops(inner, lead, rest)
            lead += self.text(nodes[place : place + 1], rest, self.choice, _ahead(nodes[place - 1]) if place else None)

    def _is_ambiguous(self, inner: Sequence[Node], rest: Sequence[Node]) -> bool:
        if len(inner) == 1 and inner[0][0] in _CHARACTERS:
            return not _letters_in(inner[0]).isdisjoint(self._first(rest))
        return any(True for _ in self.loops(inner, "", ()))

    def _bodies(self, inner: Sequence[Node], rest: Sequence[Node]) -> Iterator[str]:
        """Yield texts that a repeated part matches, those of single letters by what else matches them."""
        if len(inner) == 1 and inner[0][0] in _CHARACTERS:
            yield from self._letters(inner[0], rest)
            return
        for choice in range(_MOST_BODIES):
            yield self.text(inner, rest, choice)
        yield from (letter * 2 for letter in self._letters_of(inner) if len(letter) == 1)

    def _letters_of(self, nodes: Sequence[Node]) -> list[str]:
        """Return a letter that several nodes of a sequence match, if there is one."""
        sets = [_letters_in(node) for node in nodes if node[0] in _CHARACTERS]
        return sorted(set.intersection(*map(set, sets)), key=_rank)[:1] if len(sets) > 1 else []

    def _letters(self, node: Node, rest: Sequence[Node]) -> Iterator[str]:
        own = _letters_in(node)
        yield from sorted(own & self._first(rest), key=_rank)[:3]
        yield from sorted(own, key=_rank)[:3]
        yield "".join(sorted(own, key=_rank)[:2])

    def _first(self, nodes: Sequence[Node]) -> frozenset[str]:
        """Return the letters that a sequence may begin with."""
        letters: frozenset[str] = frozenset()
        for code, value in nodes:
            if code in _CHARACTERS:
                return letters | _letters_in((code, value))
            if code in _REPEATS:
                letters |= self._first(list(value[2]))
                if value[0]:
                    return letters
            elif inner := _within(code, value):
                return letters.union(*map(self._first, inner))
        return letters

    def text(self, nodes: Sequence[Node], rest: Sequence[Node] = (), choice: int = 0, ahead: frozenset[str] | None = None) -> str:
        """Return a text that a sequence may match, whose first letter is one of those `ahead`; of several ways, that of a number."""
        whole = ""
        for place, (code, value) in enumerate(nodes):
            ahead = _ahead(nodes[place - 1]) if place else ahead
            whole += self._text(code, value, [*nodes[place + 1 :], *rest], choice, ahead)
        return whole

    def _text(self, code: Any, value: Any, rest: Sequence[Node], choice: int, ahead: frozenset[str] | None) -> str:
        text = ""
        if code in _CHARACTERS:
            letters = _letters_in((code, value))
            ordered = sorted(letters & ahead or letters if ahead else letters, key=_rank)[: 3 if code is codes.IN else 1]
            text = ordered[choice % len(ordered)] if ordered else ""
        elif code in _REPEATS:
            least, most, inner = value
            text = self.text(list(inner), rest, choice) * max(least, choice % 2 * min(1, most))
        elif code is codes.GROUPREF:
            text = self.groups.get(value, "")
        elif within := _within(code, value):
            text = self.text(within[choice % len(within)], rest, choice // len(within))
        if code is codes.SUBPATTERN and value[0] is not None:
            self.groups[value[0]] = text
        return text


def _within(code: Any, value: Any) -> list[list[Node]]:
    """Return the sequences within a node, but for assertions, which match nothing."""
    if code is codes.BRANCH:
        return [list(branch) for branch in value[1]]
    if code is codes.SUBPATTERN:
        return [list(value[-1])]
    return [list(value)] if code is codes.ATOMIC_GROUP else []


def _ahead(node: Node) -> frozenset[str] | None:
    """Return the letters that an assertion lets the next one be, None where it is none about a single letter."""
    code, value = node
    if code not in (codes.ASSERT, codes.ASSERT_NOT) or value[0] != 1 or len(value[1]) != 1 or value[1][0][0] not in _CHARACTERS:
        return None
    letters = _letters_in(value[1][0])
    return letters if code is codes.ASSERT else _LETTERS - letters


def _letters_in(node: Node) -> frozenset[str]:
    """Return the usual letters that a node for one letter matches."""
    code, value = node
    match code:
        case codes.LITERAL:
            return frozenset((chr(value),))
        case codes.NOT_LITERAL:
            return _LETTERS - {chr(value)}
        case codes.ANY:
            return _LETTERS - {"\n"}
    matched: set[str] = set()
    for kind, what in value:
        match kind:
            case codes.LITERAL:
                matched.add(chr(what))
            case codes.RANGE:
                matched |= {letter for letter in _LETTERS if what[0] <= ord(letter) <= what[1]} or {chr(what[0])}
            case codes.CATEGORY:
                is_of = _CATEGORIES[_NEGATED.get(what, what)]
                matched |= {letter for letter in _LETTERS if is_of(letter) != (what in _NEGATED)}
    return _LETTERS - matched if value and value[0][0] is codes.NEGATE else frozenset(matched)


def _rank(letter: str) -> tuple[int, str]:
    return (_USUAL.find(letter) if letter in _USUAL else len(_USUAL), letter)
