"""`docs/messages.md` explains exactly the messages that the code can give."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from perfdiff.report.sentences import notes

ROOT = Path(__file__).parent.parent
DOCUMENT = ROOT / "docs" / "messages.md"


def slugs(tree: ast.AST) -> Iterator[str]:
    """Yield what stands for `slug` in calls, by keyword or first in a `Note`, and as the default of a parameter."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arguments):
            defaults = zip([*node.posonlyargs, *node.args][::-1], node.defaults[::-1], strict=False)
            named = [*defaults, *zip(node.kwonlyargs, node.kw_defaults, strict=True)]
            yield from (value.value for argument, value in named if argument.arg == "slug" and isinstance(value, ast.Constant))
        if not isinstance(node, ast.Call):
            continue
        given = [keyword.value for keyword in node.keywords if keyword.arg == "slug"]
        if ast.unparse(node.func).split(".")[-1] == "Note":
            given += node.args[:1]
        for value in given:
            yield from (part.value for part in ast.walk(value) if isinstance(part, ast.Constant) and isinstance(part.value, str))


def in_code() -> set[str]:
    parsed = (ast.parse(path.read_text(encoding="utf-8")) for path in (ROOT / "perfdiff").rglob("*.py"))
    return {*notes.WORDINGS, *(slug for tree in parsed for slug in slugs(tree))}


def entries() -> list[str]:
    return re.findall(r"^### `([^`]+)`$", DOCUMENT.read_text(encoding="utf-8"), flags=re.MULTILINE)


def test_every_message_is_explained() -> None:
    assert sorted(in_code() - set(entries())) == []


def test_every_explanation_belongs_to_a_message() -> None:
    assert sorted(set(entries()) - in_code()) == []


def test_every_message_is_explained_once_in_alphabetical_order() -> None:
    assert [slug for slug, count in Counter(entries()).items() if count > 1] == []
    assert entries() == sorted(entries())


def test_every_explanation_says_once_what_to_do() -> None:
    sections = re.split(r"^### `", DOCUMENT.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    assert [section.split("`")[0] for section in sections if section.count("**Do:**") != 1] == []


def test_slugs_are_found_in_all_their_forms() -> None:
    source = 'raise E("x", slug="a")\nNote("b", "text")\nschema.Note(slug="c", text="x")\nE("x", slug="d" if y else "e")\n'
    assert list(slugs(ast.parse(source))) == ["a", "b", "c", "d", "e"]
    assert list(slugs(ast.parse('def f(x, slug="a", *, y=1): ...\ndef g(*, slug="b"): ...'))) == ["a", "b"]
