"""The tokens of a definition's text, without what means nothing, for comparing texts that are not the same."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tree_sitter import Node

from perfdiff.languages.php.facts import MAIN
from perfdiff.languages.php.meaning import body_of, plain, words
from perfdiff.languages.php.syntax import FUNCTIONS, parse
from perfdiff.languages.protocol import FunctionDefinition
from perfdiff.languages.syntax_trees import inner, text_of

_WORD = re.compile(r"\$?[A-Za-z_\x80-\U0010ffff][\w\\]*\Z")


@dataclass(frozen=True, slots=True)
class PhpTextParts:
    """The tokens of a definition, part by part."""

    signature: tuple[str, ...]
    body: tuple[str, ...]

    @property
    def all(self) -> tuple[str, ...]:
        """Return the tokens in the order of the text."""
        return (*self.signature, *self.body)


def parts(definition: FunctionDefinition) -> PhpTextParts:
    """Return the tokens of a definition's text, without the bodies of functions inside it."""
    if definition.linkage[0].endswith(f" {MAIN}"):
        return PhpTextParts((), tuple(plain(words(parse(definition.text.encode())))))
    node = _function(definition.text)
    if node is None:
        return PhpTextParts((), tuple(definition.text.split()))
    body = body_of(node)
    tokens = plain(words(node))
    behind = [part for part in node.children if body is not None and part.start_byte >= body.start_byte]
    inside = plain(word for part in behind for word in words(part))
    return PhpTextParts(tuple(tokens[: len(tokens) - len(inside)]), tuple(inside))


def _function(text: str) -> Node | None:
    """Return the node of a function's text: one of a file, of a class, of an expression, or what is behind a property."""
    for before, behind in (("<?php class A {", "}"), ("<?php ", ""), ("<?php (", ");"), ("<?php class A { public $a {", "} }")):
        root = parse(f"{before}{text}{behind}".encode())
        function = next((below for below in inner(root) if below.type in FUNCTIONS and below.start_byte == len(before)), None)
        if function is not None and not root.has_error and text_of(function) == text:
            return function
    return None


def is_word(token: str) -> bool:
    """Return whether a token is a name."""
    return _WORD.match(token) is not None
