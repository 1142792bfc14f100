"""Which function of head is which function of base: by key, by name, by place, by text."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any

from perfdiff.languages.dialect import Dialect
from perfdiff.languages.digest import digest
from perfdiff.languages.protocol import FunctionDefinition, Program

# Share of three-token sequences that two bodies must have in common to be the same function under another name. git asks for half of a
# file's lines; tokens of unrelated code agree more easily than lines do (a quarter to a third), so the bar is a little higher.
SIMILAR = 0.6
# Bodies of fewer tokens (one short statement) are alike by chance; they are matched by name alone, or by text within one file.
SMALL = 24
_CANDIDATES = 5  # the most similar ones, by a cheap count, that are compared in full

Trigrams = Counter[tuple[str, str, str]]


@dataclass(frozen=True, slots=True)
class FunctionPair:
    """A function on both sides; one of them is None where it was added or removed."""

    base: FunctionDefinition | None
    head: FunctionDefinition | None

    @property
    def shown(self) -> FunctionDefinition:
        """Return its definition, head's where there is one."""
        definition = self.head or self.base
        assert definition is not None, "it exists on one side at least"
        return definition


def pair(base: Program, head: Program, dialect: Dialect) -> list[FunctionPair]:
    """Return every function of both programs once, paired where it is the same function."""
    return _Pairing(base, head, dialect).pairs()


class _Pairing:
    def __init__(self, base: Program, head: Program, dialect: Dialect) -> None:
        self._dialect = dialect
        shared = base.functions.keys() & head.functions.keys()
        self._pairs = [FunctionPair(base.functions[key], head.functions[key]) for key in shared]
        self._base = {key: function for key, function in base.functions.items() if key not in shared}
        self._head = {key: function for key, function in head.functions.items() if key not in shared}

    def pairs(self) -> list[FunctionPair]:
        """Return the pairs, by place in head, those without head last."""
        self._by(lambda function: (function.name, function.file))
        self._by(lambda function: (function.name, function.signature))
        self._by(lambda function: function.name)
        self._by(lambda function: function.tokens if function.tokens and self._is_large(function) else function.key)
        self._by(lambda function: (function.file, self._anonymous_text(function)))
        self._by(lambda function: self._anonymous_text(function) if self._is_large(function) else function.key)
        self._by_similarity()
        alone = [FunctionPair(function, None) for function in self._base.values()] + [
            FunctionPair(None, function) for function in self._head.values()
        ]
        return sorted(self._pairs + alone, key=lambda pair: (pair.head is None, pair.shown.file, pair.shown.start, pair.shown.key))

    def _by(self, feature: Callable[[FunctionDefinition], Hashable]) -> None:
        """Pair what is left where `feature` is found exactly once on either side."""
        base, head = _unique(self._base.values(), feature), _unique(self._head.values(), feature)
        for value in base.keys() & head.keys():
            self._take(base[value], head[value])

    def _take(self, base: FunctionDefinition, head: FunctionDefinition) -> None:
        self._pairs.append(FunctionPair(base, head))
        del self._base[base.key]
        del self._head[head.key]

    def _by_similarity(self) -> None:
        base = {function.key: self._trigrams(function) for function in self._base.values() if self._is_large(function)}
        head = {function.key: self._trigrams(function) for function in self._head.values() if self._is_large(function)}
        scored = [
            (similarity(base[key], head[other]), self._base[key].name == self._head[other].name, key, other)
            for key, others in _candidates(base, head).items()
            for other in others
        ]
        for score, _, key, other in sorted(scored, reverse=True):
            if score >= SIMILAR and key in self._base and other in self._head:
                self._take(self._base[key], self._head[other])

    def _anonymous_text(self, definition: FunctionDefinition) -> str:
        """Return a digest of the text in which the function's own name, and that of its class, is blotted out."""
        return digest(self._anonymous_tokens(definition))

    def _is_large(self, definition: FunctionDefinition) -> bool:
        return len(self._dialect.tokens(definition)) >= SMALL

    def _trigrams(self, definition: FunctionDefinition) -> Trigrams:
        tokens = self._anonymous_tokens(definition)
        return Counter(zip(tokens, tokens[1:], tokens[2:], strict=False))

    def _anonymous_tokens(self, definition: FunctionDefinition) -> list[str]:
        own = set(self._dialect.parts(definition.name))
        return ["" if token in own else token for token in self._dialect.tokens(definition)]


def _unique(
    definitions: Iterable[FunctionDefinition], feature: Callable[[FunctionDefinition], Hashable]
) -> dict[Hashable, FunctionDefinition]:
    groups: dict[Hashable, list[FunctionDefinition]] = defaultdict(list)
    for definition in definitions:
        groups[feature(definition)].append(definition)
    return {value: group[0] for value, group in groups.items() if len(group) == 1}


def similarity(base: Counter[Any], head: Counter[Any]) -> float:
    """Return Dice's coefficient of two multisets, 0 to 1."""
    return 2 * (base & head).total() / max(base.total() + head.total(), 1)


def _candidates(base: dict[str, Trigrams], head: dict[str, Trigrams]) -> dict[str, list[str]]:
    """Return for each key of base the keys of head that share most kinds of trigrams with it."""
    holders: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for key, trigrams in head.items():
        for trigram in trigrams:
            holders[trigram].append(key)
    similar = {}
    for key, trigrams in base.items():
        shared = Counter(other for trigram in trigrams for other in holders.get(trigram, ()))
        similar[key] = [other for other, _ in shared.most_common(_CANDIDATES)]
    return similar
