"""Inputs that a grammar suggests: what may stand within itself does so many times (the pumping lemma, Bar-Hillel, Perles and Shamir 1961).

Where a rule N leads to αNβ, the text αᵏ n βᵏ within a shortest sentence is an input of any size that the program accepts.
"""

from __future__ import annotations

import re
import re._parser as parser  # type: ignore[import-not-found]
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, permutations
from pathlib import Path
from typing import Any

from perfdiff.errors import ConfigError
from perfdiff.fuzzing import attacks
from perfdiff.fuzzing.families import Segment

START = "start"

_MOST_SUGGESTED = 200  # inputs of a grammar, sentences of each rule among them
_WORD = re.compile(r"[A-Za-z]\w*")
_CHOICES = 6  # texts of a terminal, of which the first counts that it truly matches

Context = tuple[str, str]  # what stands before and behind


def suggested(file: Path) -> tuple[tuple[Segment, ...], ...]:
    """Return the inputs that a grammar in Lark's notation suggests: a sentence of each rule, and what may stand within itself.

    Raises ConfigError where it cannot be read, or has no finite sentence; that names the file.
    """
    grammar = _read(file)
    if START not in grammar.shortest:
        raise ConfigError(f"{file}: no finite text follows from its rule '{START}'", slug="config-grammar")
    return tuple(islice(dict.fromkeys(grammar.inputs()), _MOST_SUGGESTED))


def _read(file: Path) -> Grammar:
    try:
        from lark import Lark
        from lark.exceptions import LarkError
    except ImportError as error:
        raise ConfigError(
            f"{file} is read by Lark, which is not installed: pip install 'perfdiff[search]'", slug="config-grammar"
        ) from error
    try:
        lark = Lark.open(str(file), parser="earley", start=START)
    except (OSError, UnicodeError, LarkError, re.error) as error:
        raise ConfigError(f"{file} is no grammar that Lark reads: {str(error).splitlines()[0]}", slug="config-grammar") from error
    samples = {terminal: _sample(terminal.pattern.to_regexp()) for terminal in lark.terminals}
    texts = {terminal.name: text for terminal, text in samples.items() if text is not None}
    named = {word for terminal, text in samples.items() if terminal.pattern.type == "re" for word in _WORD.findall(text or "")}
    rules = [GrammarRule(rule.origin.name, tuple(symbol.name for symbol in rule.expansion)) for rule in lark.rules]
    return Grammar(rules, texts, frozenset(named), next((texts[name] for name in lark.ignore_tokens if name in texts), ""))


def _sample(pattern: str) -> str | None:
    """Return a short text that a terminal matches, one with a word if there is any; None where none is met."""
    try:
        tree: Any = parser.parse(pattern)
    except re.error:
        return None
    matching = [text for choice in range(_CHOICES) if (text := attacks.matched(tree, choice)) and re.fullmatch(pattern, text)]
    return min(matching, key=lambda text: (_WORD.search(text) is None, len(text)), default=None)


@dataclass(frozen=True, slots=True)
class GrammarRule:
    """What a name may stand for: other names, and those of terminals, in order."""

    name: str
    parts: tuple[str, ...]


class Grammar:
    """Rules, with a text of each terminal, words that are `named` as users like, and what is ignored between texts.

    `shortest` are texts that names stand for.
    """

    def __init__(self, rules: Sequence[GrammarRule], terminals: Mapping[str, str], named: frozenset[str], blank: str) -> None:
        self._rules, self._named, self._blank = rules, named, blank
        self.shortest = dict(terminals)
        self._names = frozenset(rule.name for rule in rules)
        self._complete()

    def _complete(self) -> None:
        """Give each name the shortest text that follows from it."""
        is_shorter = True
        while is_shorter:
            is_shorter = False
            for rule in self._rules:
                text = self._text(rule.parts)
                if text is not None and (rule.name not in self.shortest or len(text) < len(self.shortest[rule.name])):
                    self.shortest[rule.name] = text
                    is_shorter = True

    def inputs(self) -> Iterator[tuple[Segment, ...]]:
        """Yield what repeats within itself by each name, alike and numbered, a sentence of each rule, and both together."""
        around = self._contexts(START)
        pumps = [(name, pump) for name in around for pump in self._pumps(name)]
        for name, pump in pumps:
            yield self._input(around[name], pump, self.shortest[name])
            if any(self._ends_of_names(text) for text in pump):
                yield self._input(around[name], pump, self.shortest[name], are_numbered=True)
        sentences = [(rule.name, text) for rule in self._rules if rule.name in around and (text := self._text(rule.parts)) is not None]
        for name, text in sentences:
            yield self._input(around[name], ("", ""), text)
        for (name, outer), (other, inner) in permutations(pumps, 2):
            if name == other:
                yield self._input(around[name], (self._joined(outer[0], inner[0]), self._joined(inner[1], outer[1])), self.shortest[name])
        yield from (self._input(around[name], pump, text) for name, pump in pumps for inner, text in sentences if inner == name)

    def _input(self, around: Context, pump: Context, inner: str, *, are_numbered: bool = False) -> tuple[Segment, ...]:
        """Return the parts of an input, of which those of a pump repeat, with a number behind the last name in each."""
        before, behind = around
        opening, closing = (self._repeated(text, is_numbered=are_numbered) for text in pump)
        lead = Segment((before + self._gap(before, pump[0] + inner)).encode())
        return tuple(segment for segment in (lead, opening, Segment(inner.encode()), closing, Segment(behind.encode())) if segment.text)

    def _repeated(self, text: str, *, is_numbered: bool) -> Segment:
        ends = self._ends_of_names(text) if is_numbered else []
        return Segment(text.encode(), repeats=True, number_at=len(text[: ends[-1]].encode()) if ends else None)

    def _ends_of_names(self, text: str) -> list[int]:
        """Return where words end that may be others, as keywords may not."""
        return [word.end() for word in _WORD.finditer(text) if word[0] in self._named]

    def _pumps(self, name: str) -> Iterator[Context]:
        """Yield what stands around a name within itself, by each of its rules and each name there that leads back to it."""
        for rule in (rule for rule in self._rules if rule.name == name):
            for inner, (before, behind) in self._steps(rule):
                back = self._contexts(inner).get(name)
                if back is not None and (pump := (self._joined(before, back[0]), self._joined(back[1], behind))) != ("", ""):
                    yield pump[0] + self._gap(pump[0], pump[0]), self._gap(pump[1], pump[1]) + pump[1]

    def _contexts(self, start: str) -> dict[str, Context]:
        """Return the names that a name leads to, itself among them, with the shortest that stands around each."""
        around = {start: ("", "")}
        waiting = [start]
        while waiting:
            name = waiting.pop(0)
            for rule in (rule for rule in self._rules if rule.name == name):
                for inner, (before, behind) in self._steps(rule):
                    context = self._joined(around[name][0], before), self._joined(behind, around[name][1])
                    if inner not in around or sum(map(len, context)) < sum(map(len, around[inner])):
                        around[inner] = context
                        waiting.append(inner)
        return around

    def _steps(self, rule: GrammarRule) -> Iterator[tuple[str, Context]]:
        """Yield the names among the parts of a rule, with what stands around each."""
        for place, part in enumerate(rule.parts):
            before, behind = self._text(rule.parts[:place]), self._text(rule.parts[place + 1 :])
            if part in self._names and part in self.shortest and before is not None and behind is not None:
                yield part, (before, behind)

    def _text(self, parts: Sequence[str]) -> str | None:
        """Return the shortest text of some names, None where one has none."""
        return self._joined(*(self.shortest[part] for part in parts)) if all(part in self.shortest for part in parts) else None

    def _joined(self, *texts: str) -> str:
        whole = ""
        for text in filter(None, texts):
            whole += self._gap(whole, text) + text
        return whole

    def _gap(self, before: str, behind: str) -> str:
        """Return what has to stand between two texts."""
        return self._blank if _is_word(before[-1:]) and _is_word(behind[:1]) else ""


def _is_word(letter: str) -> bool:
    return letter.isalnum() or letter == "_"
