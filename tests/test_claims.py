"""Claims and their words: each kind has a wording, and each place in it a fact."""

from __future__ import annotations

import ast
import inspect
import re
import string
import textwrap
from collections.abc import Iterator

import pytest

from perfdiff.analysis.claims import Claim, Fact, claim, parts, replaced
from perfdiff.records import codec
from perfdiff.records.schema import Change
from perfdiff.report.printable import with_texts
from perfdiff.report.sentences import catalogue
from perfdiff.report.sentences.catalogue import WORDINGS, say
from perfdiff.report.sentences.spelling import SPELLINGS, Wording, choices
from test_structure import MODULES, parse, relative


def claimed() -> Iterator[tuple[str, str, set[str] | None]]:
    """Yield where a claim is made, its kind and the names of its facts, None where these are put together elsewhere."""
    for path in (path for path in MODULES if relative(path).startswith("analysis/")):
        for node in ast.walk(parse(path)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "claim":
                names = {keyword.arg for keyword in node.keywords}
                where = f"{relative(path)}:{node.lineno}"
                for kind in _kinds(node.args[0]):
                    yield where, kind, None if None in names else {name for name in names if name}


def _kinds(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.IfExp):
        yield from (*_kinds(node.body), *_kinds(node.orelse))
    else:
        assert isinstance(node, ast.Constant), f"a kind is written out where it is claimed: {ast.unparse(node)}"
        yield str(node.value)


def places(template: str) -> Iterator[tuple[str, str]]:
    """Yield the names of the facts in a template and how each is spelt, "" as it is, those within choices too."""
    for _, name, spelling, _ in string.Formatter().parse(template):
        is_choice = spelling is not None and spelling.startswith("?")
        if name:
            yield name, "" if is_choice else spelling or ""
        for choice in choices(spelling or "") if is_choice else ():
            yield from places(choice)


def asked(wording: Wording) -> set[str]:
    """Return the facts that a wording needs."""
    if isinstance(wording, str):
        return {name for name, _ in places(wording)}
    tree = ast.parse(textwrap.dedent(inspect.getsource(wording)))
    indexed = (node for node in ast.walk(tree) if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant))
    return {str(node.slice.value) for node in indexed if ast.unparse(node.value) == "facts" and isinstance(node.slice, ast.Constant)}


def test_each_claim_has_a_wording_and_each_place_in_it_a_fact() -> None:
    lacking = {}
    for where, kind, facts in claimed():
        if kind not in WORDINGS:
            lacking[where] = f"{kind}: no wording"
        elif facts is not None and (absent := asked(WORDINGS[kind]) - facts):
            lacking[where] = f"{kind}: no {absent}"
    assert lacking == {}


def test_each_wording_is_of_a_claim_that_is_made() -> None:
    assert set(WORDINGS) - {kind for _, kind, _ in claimed()} == set()


def test_each_fact_is_spelt_in_a_known_way() -> None:
    templates = [wording for wording in WORDINGS.values() if isinstance(wording, str)]
    spellings = {spelling for template in templates for _, spelling in places(template) if spelling}
    assert [spelling for spelling in sorted(spellings - set(SPELLINGS)) if not re.fullmatch(r",?\.\d[fg%]", spelling)] == []


def test_each_kind_has_one_wording() -> None:
    assert sum(len(module.WORDINGS) for module in catalogue.SUBJECTS) == len(WORDINGS)


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (
            claim("larger-inputs", inputs=("n", "m"), ratio=1.5),
            "called with larger inputs (n, m; expected cost ×1.5); its cost per input did not change",
        ),
        (claim("loads-little", extra_ns=2e6, share=0.05), "loading it takes 2 ms more, once in a process, and less than 5 % of any run"),
    ],
)
def test_claims_are_put_into_words(made: Claim, says: str) -> None:
    assert say(made) == says


@pytest.mark.parametrize(
    ("facts", "says"),
    [
        ({"name": "operator|", "base": 0.0, "instead_of": None}, ", and `operator|` 2 times, never before"),
        ({"name": "f", "base": 1.0, "instead_of": "{g}|h"}, ", and `f` 2 times, in place of `{g}|h`"),
    ],
)
def test_one_of_two_templates_is_told_by_whether_there_is_a_fact(facts: dict[str, Fact], says: str) -> None:
    assert say(claim("and-calls", head=2.0, **facts)) == says


def test_a_choice_may_stand_within_another() -> None:
    assert choices("?{n:?{n:count} of|none of} all|{m:?some|no} more") == ("{n:?{n:count} of|none of} all", "{m:?some|no} more")


def test_what_a_claim_consists_of_is_found_and_replaced_by_value() -> None:
    inner, other = claim("named", name="f"), claim("named", name="g")
    whole = claim("headline", happened=claim("happened", name="f", reason=inner), cause=None, also=(inner, claim("machine")))
    assert [part.kind for part in parts(whole)] == ["headline", "happened", "named", "named", "machine"]
    assert say(replaced(whole, inner, other)) == "`f`: `g`; `g`; machine"


def test_texts_in_a_claim_are_hidden_and_its_kind_and_the_names_of_its_facts_stay() -> None:
    whole = claim("named", name="named", at=claim("cites", texts=("name", "key"), file="name"))
    hidden = with_texts(whole, lambda text: text.replace("name", "…"))
    assert hidden == claim("named", name="…d", at=claim("cites", texts=("…", "key"), file="…"))


def test_names_with_braces_and_claims_among_facts_are_kept() -> None:
    made = claim("larger-inputs", inputs=("{main}", "f{0}"), ratio=2.0)
    assert say(made).startswith("called with larger inputs ({main}, f{0}; ")


def test_claims_are_stored_and_read_again() -> None:
    because = claim("b", parts=(claim("c"),), figures=(1.0, 0.5, 2.0))
    made = claim("a", names=("n", "m"), low=1.5, count=3, none=None, change=Change.CHANGED, because=because)
    assert repr(codec.decode(Claim, codec.encode(made))) == repr(made)
