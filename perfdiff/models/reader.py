"""A text under a parser: what stands at the place reached, and errors that name line and column."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import NoReturn

from perfdiff.errors import AnnotationSyntaxError

_SPACE = re.compile(r"(?:\s|//[^\n]*)*")
_BLANKS = re.compile(r"[ \t]*")
_NUMBER = re.compile(r"(?:\d{1,400}(?:\.\d{0,400})?|\.\d{1,400})(?:[eE][+-]?\d{1,3})?")
_NATURAL = re.compile(r"\d{1,15}\b")
_STRING = re.compile(r'"(?:\\.|[^"\\\n])*"')
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_KEY = re.compile(r"([a-z]\w*)[ \t]*=(?!=)[ \t]*")
_UNKNOWN = re.compile(r'(?:"(?:\\.|[^"\\\n])*"|[^;\n])*')
_SHOWN = 20  # characters of what was found instead


class Reader:
    """A text and the place reached in it. All failures name line and column."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def fail(self, expected: str, at: int | None = None) -> NoReturn:
        """Raise AnnotationSyntaxError for the place reached, or for `at`."""
        at = self.at if at is None else at
        line = self.text.count("\n", 0, at) + 1
        column = at - (self.text.rfind("\n", 0, at) + 1) + 1
        rest = self.text[at:].split("\n", 1)[0][:_SHOWN]
        raise AnnotationSyntaxError(
            line, column, expected, json.dumps(rest) if rest else "the end of the line" if at < len(self.text) else "the end"
        )

    def skip(self) -> None:
        """Pass white space and comments."""
        if space := _SPACE.match(self.text, self.at):
            self.at = space.end()

    def match(self, pattern: re.Pattern[str]) -> str | None:
        """Consume the text that matches at this place, behind white space, and return it; None if none does."""
        match = pattern.match(self.text, self.at)
        if match is None:
            return None
        self.at = match.end()
        return match.group()

    def take(self, *choices: str) -> str | None:
        """Take one of some symbols and white space before it; None where none stands next, and nothing is taken."""
        start = self.at
        self.skip()
        for symbol in choices:
            if self.text.startswith(symbol, self.at):
                self.at += len(symbol)
                return symbol
        self.at = start
        return None

    def need(self, *choices: str) -> str:
        """Take one of some symbols or fail."""
        taken = self.take(*choices)
        if taken is None:
            self.skip()
            self.fail(" or ".join(f"'{symbol}'" for symbol in choices))
        return taken

    def word(self, *choices: str) -> str | None:
        """Take a word, one of `choices` where given."""
        self.skip()
        word = _WORD.match(self.text, self.at)
        if word is None or (choices and word.group() not in choices):
            return None
        self.at = word.end()
        return word.group()

    def string(self) -> str | None:
        """Take a quoted text."""
        start = self.at
        literal = self.match(_STRING)
        if literal is None:
            return None
        try:
            return str(json.loads(literal))
        except json.JSONDecodeError:
            self.fail("a string as in JSON", start)

    def name(self, pattern: str, expected: str) -> str:
        """Take a quoted text, or one that matches `pattern`."""
        self.skip()
        quoted = self.string()
        if quoted is not None:
            return quoted
        text = self.match(re.compile(pattern))
        return text.strip() if text and text.strip() else self.fail(expected)

    def decimal(self, expected: str = "a number") -> Decimal:
        """Take an unsigned number."""
        self.skip()
        start = self.at
        digits = self.match(_NUMBER)
        if digits is None:
            self.fail(expected)
        if not math.isfinite(float(digits)):
            self.fail("a finite number", start)
        return Decimal(digits)

    def number(self, expected: str = "a number") -> float:
        """Take a number with or without a sign."""
        negative = self.take("-")
        value = float(self.decimal(expected))
        return -value if negative else value

    def checked(self, good: Callable[[float], bool], expected: str) -> float:
        """Take a number that must be `good`."""
        self.skip()
        start = self.at
        value = self.number(expected)
        return value if good(value) else self.fail(expected, start)

    def natural(self, expected: str) -> int:
        """Take a whole number of 0 or more."""
        self.skip()
        digits = self.match(_NATURAL)
        return int(digits) if digits else self.fail(expected)

    def comment(self, keys: Mapping[str, Callable[[], None]]) -> None:
        """Read the `key = value; …` comment on this line, if there is one; other comments are passed over."""
        self.match(_BLANKS)
        if not self.text.startswith("//", self.at):
            return
        self.at += 2
        while True:
            self.match(_BLANKS)
            start = self.at
            key = _KEY.match(self.text, self.at)
            if key and key.group(1) in keys:
                self.at = key.end()
                keys[key.group(1)]()
                self.match(_BLANKS)
            else:
                self.match(_UNKNOWN)
            if "\n" in self.text[start : self.at]:
                self.fail("a value", start)
            if self.at >= len(self.text) or self.text[self.at] == "\n":
                return
            if self.text[self.at] != ";":
                self.fail("';' or the end of the line")
            self.at += 1
