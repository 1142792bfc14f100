"""Which of several functions without names of their own, that have numbers by their order, is which one of base."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Self

from perfdiff.languages.digest import digest
from perfdiff.languages.pairing import similarity
from perfdiff.languages.protocol import FunctionDefinition, Program

Tokens = Callable[[FunctionDefinition], Sequence[str]]
_ALIKE = 0.5  # share of tokens that two units must have in common where their order does not tell which is which


@dataclass(frozen=True, slots=True)
class Number:
    """Where the number of a unit stands in a key: what is before it ends at `start`, the unit's part of the key at `end`.

    The first unit may be written without: then `start` is `end`, and `mark` what would stand before the number.
    """

    start: int
    end: int
    value: int
    mark: str = ""

    @classmethod
    def matched(cls, match: re.Match[str], group: str) -> Self:
        """Return the number that a group of a match has, behind a `#`; where the group matches nothing, it is the first unit's."""
        if not match[group]:
            return cls(match.end(), match.end(), 1, "#")
        return cls(match.start(group), match.end(), int(match[group]))


Find = Callable[[str, int], Number | None]  # the first number of a key behind a place


@dataclass(frozen=True, slots=True)
class _NumberedUnit:
    """A function without a name, or a class of such: what its keys begin with, its number, and its functions."""

    prefix: str
    number: int
    functions: tuple[FunctionDefinition, ...]

    @property
    def digest(self) -> str:
        """Return a digest of what it does."""
        return digest(sorted(f"{function.key[len(self.prefix) :]} {function.tokens}" for function in self.functions))


@dataclass(frozen=True, slots=True)
class Alignment:
    """Finds counterparts of what has a number; `find` tells where that stands in a key, `tokens` what a function's text is made of."""

    find: Find
    tokens: Tokens

    def keys(
        self, base: Sequence[FunctionDefinition], head: Sequence[FunctionDefinition], before: str = "", after: str = ""
    ) -> Iterator[tuple[str, str]]:
        """Yield the keys of head and those that they have in base, of functions whose keys begin with `before` and `after` there."""
        first, second = self._units(base, before), self._units(head, after)
        for function in head:
            if self.find(function.key, len(after)) is None:
                yield function.key, before + function.key[len(after) :]
        for stem, units in second.items():
            others = first.get(stem, [])
            pairs = _pairs(others, units, self.tokens)
            free = iter(range(max((unit.number for unit in (*others, *units)), default=0) + 1, 1 << 30))
            for index, unit in enumerate(units):
                if index in pairs:
                    other = others[pairs[index]]
                    yield from self.keys(other.functions, unit.functions, other.prefix, unit.prefix)
                else:
                    prefix = f"{before}{stem}{next(free)}"
                    yield from ((function.key, prefix + function.key[len(unit.prefix) :]) for function in unit.functions)

    def _units(self, functions: Iterable[FunctionDefinition], under: str) -> dict[str, list[_NumberedUnit]]:
        """Return what has a number and begins directly under a prefix, by what stands before the number, in order."""
        groups: dict[str, dict[tuple[int, str], list[FunctionDefinition]]] = defaultdict(lambda: defaultdict(list))
        for function in functions:
            ordinal = self.find(function.key, len(under))
            if ordinal is not None:
                groups[function.key[len(under) : ordinal.start] + ordinal.mark][ordinal.value, function.key[: ordinal.end]].append(function)
        return {
            stem: [_NumberedUnit(prefix, number, tuple(group)) for (number, prefix), group in sorted(units.items())]
            for stem, units in groups.items()
        }


def rekeyed(
    head: Program, keys: Mapping[str, str], named: Callable[[FunctionDefinition, str], FunctionDefinition]
) -> tuple[Program, Mapping[str, FunctionDefinition]]:
    """Return head with its functions renumbered by base's keys, and by these keys the functions as head had them.

    `named` returns a function with the names that it has because of its key in base. Nothing changes where two would have one key.
    """
    if all(key == now for key, now in keys.items()) or len(set(keys.values())) < len(keys):
        return head, head.functions
    functions = {}
    for key, now in keys.items():
        calls = frozenset(keys.get(callee, callee) for callee in head.functions[key].calls)
        functions[now] = named(replace(head.functions[key], key=now, calls=calls), now)
    return replace(head, functions=functions), {now: head.functions[key] for key, now in keys.items()}


def with_name(function: FunctionDefinition, before: FunctionDefinition | None) -> FunctionDefinition:
    """Return a function to which its name in base is one of its own: another number or parameter is no other name."""
    is_known = before is None or before.name in function.names
    return function if is_known or before is None else replace(function, names=(*function.names, before.name))


def _pairs(base: Sequence[_NumberedUnit], head: Sequence[_NumberedUnit], tokens: Tokens) -> dict[int, int]:
    """Return by index in head which unit of base is the same: those that do the same in the same order, then what is left between."""
    before, after = [unit.digest for unit in base], [unit.digest for unit in head]
    base_index: dict[int, int] = {}
    gap = (0, 0)
    for start, other, size in SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks():
        base_index |= _between(base, head, (gap[0], start), (gap[1], other), tokens)
        base_index |= {other + step: start + step for step in range(size)}
        gap = start + size, other + size
    return base_index


def _between(
    base: Sequence[_NumberedUnit], head: Sequence[_NumberedUnit], old: tuple[int, int], new: tuple[int, int], tokens: Tokens
) -> dict[int, int]:
    if old[1] - old[0] == new[1] - new[0]:
        return dict(zip(range(*new), range(*old), strict=True))
    words = {("base", index): _words(base[index], tokens) for index in range(*old)}
    words |= {("head", index): _words(head[index], tokens) for index in range(*new)}
    scored = sorted(((similarity(words["base", i], words["head", j]), -i, -j) for i in range(*old) for j in range(*new)), reverse=True)
    base_index: dict[int, int] = {}
    for score, i, j in scored:
        if score >= _ALIKE and -j not in base_index and -i not in base_index.values():
            base_index[-j] = -i
    return base_index


def _words(unit: _NumberedUnit, tokens: Tokens) -> Counter[str]:
    return Counter(token for function in unit.functions for token in tokens(function))
