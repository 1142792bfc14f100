"""What earlier versions stored in words is read as the values of this one."""

from __future__ import annotations

import pytest

from perfdiff.records import codec
from perfdiff.records.differences import ChangeReason, Entity, EntityKind, ReasonKind, SkipKind, SkippedFunction, text_reason
from perfdiff.records.schema import Change, FunctionInfo


@pytest.mark.parametrize(
    ("text", "kind", "word", "name"),
    [
        ("struct list", EntityKind.RECORD, "struct", "list"),
        ("class db::Table", EntityKind.RECORD, "class", "db::Table"),
        ("type word", EntityKind.ALIAS, "type", "word"),
        ("enum mode", EntityKind.TYPE, "enum", "mode"),
        ("interfaces of com.acme.Box", EntityKind.TYPE, "interfaces of", "com.acme.Box"),
        ("global pkg.limits.MOST", EntityKind.VARIABLE, "global", "pkg.limits.MOST"),
        ("property Box::$items", EntityKind.MEMBER, "property", "Box::$items"),
        ("macro HASH", EntityKind.MACRO, "macro", "HASH"),
        ("function operator new", EntityKind.FUNCTION, "function", "operator new"),
        ("compile flags of a b.c", EntityKind.FLAGS, "compile flags of", "a b.c"),
        ("imported name function sum", EntityKind.IMPORT, "imported name", "function sum"),
        ("declare(strict_types) of a.php", EntityKind.DIRECTIVE, "declare(strict_types) of", "a.php"),
        ("portal gun", EntityKind.UNKNOWN, "portal", "gun"),
    ],
)
def test_a_culprit_that_was_stored_as_text_has_its_kind_and_reads_as_before(text: str, kind: EntityKind, word: str, name: str) -> None:
    read = codec.decode(Entity, text)
    assert read == Entity(kind, word, name)
    assert str(read) == text


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("added", ReasonKind.ONE_SIDED),
        ("body changed", ReasonKind.TEXT),
        ("decorators changed", ReasonKind.DECORATED),
        ("now imports `secrets`", ReasonKind.NEWLY),
        ("moved from a.c", ReasonKind.MOVED),
        ("renamed from score", ReasonKind.MOVED),
        ("uses struct s, whose layout changed (a.c:1)", ReasonKind.DEPENDENCY),
        ("calls insert, which changed", ReasonKind.OTHER),
    ],
)
def test_a_reason_that_was_stored_as_text_has_its_kind_and_reads_as_before(text: str, kind: ReasonKind) -> None:
    assert codec.decode(ChangeReason, text) == ChangeReason(kind, text)


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("never called by any workload", SkipKind.NEVER_CALLED),
        ("no workload runs anything of its file", SkipKind.FILE_NOT_RUN),
        ("excluded by tests/*", SkipKind.EXCLUDED),
        ("constexpr functions cannot carry a probe", SkipKind.OTHER),
    ],
)
def test_what_was_skipped_is_told_apart_by_the_reason_that_was_stored(reason: str, kind: SkipKind) -> None:
    assert codec.decode(SkippedFunction, {"name": "f", "file": "a.c", "reason": reason}) == SkippedFunction("f", "a.c", reason, kind=kind)


def test_what_is_stored_now_is_read_as_it_was() -> None:
    culprits = (Entity(EntityKind.IMPORT, "imported name function", "sum"),)
    info = FunctionInfo(1, "f", "a.c", 3, "c", Change.AFFECTED, (text_reason("now and then"),), culprits)
    skipped = SkippedFunction("f", "a.c", "excluded by a", kind=SkipKind.NEVER_CALLED)
    assert codec.decode(FunctionInfo, codec.encode(info)) == info
    assert codec.decode(SkippedFunction, codec.encode(skipped)) == skipped
