"""Which files of two trees a JVM gets the same from."""

from __future__ import annotations

import time
import tracemalloc
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import pytest

from java_sources import compared, compile_all, helpers, jdk, write
from perfdiff.languages.java import archive_bytes, class_bytes, sameness
from perfdiff.languages.java.pack import Java
from perfdiff.languages.java.traits import JavaConfig
from perfdiff.languages.protocol import CodeComparison, Counterpart, Surroundings
from perfdiff.languages.tree_files import all_differing

ALIKE = {
    "a comment": ("class A { int f() { return 1; } }", "// more\n\nclass A { /* one */ int f() { return 1; } }"),
    "lines": ("class A { int f(int a) { return a + 1; } }", "class A {\n  int f(int a)\n  {\n    return\n    a + 1;\n  }\n}"),
}
ANNOTATED = """
import java.lang.annotation.*;
class A {{
    @Retention(RetentionPolicy.RUNTIME) @interface Size {{ int value() default {}; }}
    @Size({}) int f() {{ return 1; }}
}}
"""
UNLIKE = {
    "an annotation's value": (ANNOTATED.format(1, 2), ANNOTATED.format(1, 3)),
    "an annotation's default": (ANNOTATED.format(1, 2), ANNOTATED.format(3, 2)),
    "an annotation that goes": (
        "class A { @Deprecated int f() { return 1; } int g() { return 1; } }",
        "class A { int f() { return 1; } @Deprecated int g() { return 1; } }",
    ),
    "the order of fields": ("class A { int a; int b; }", "class A { int b; int a; }"),
    "the order of methods": (
        "class A { int f() { return 1; } int g() { return 2; } }",
        "class A { int g() { return 2; } int f() { return 1; } }",
    ),
    "a method that is added": ("class A { int f() { return 1; } }", "class A { int f() { return 1; } int g() { return 1; } }"),
    "a constant": ("class A { static final int N = 1; }", "class A { static final int N = 2; }"),
    "an interface": ("class A { }", "class A implements java.io.Serializable { }"),
    "access": ("class A { int f() { return 1; } }", "class A { synchronized int f() { return 1; } }"),
    "what it throws": ("class A { void f() { } }", "class A { void f() throws Exception { } }"),
    "a type's parameter": ("class A { java.util.List<String> f; }", "class A { java.util.List<Integer> f; }"),
    "an enum's order": ("enum A { X, Y }", "enum A { Y, X }"),
    "a lambda that is added": (
        "class A { Runnable f() { return null; } }",
        "class A { Runnable f() { return () -> System.gc(); } }",
    ),
    "a body": (
        "class A { int f(int a) { return a; } int g() { return 5000000; } }",
        "class A { int f(int a) { return a * 7000000; } int g() { return 5000000; } }",
    ),
    "a body with another string": (
        'class A { String f() { return "a"; } String g(Object o) { return o + "x"; } }',
        'class A { String f() { return "b" + hashCode(); } String g(Object o) { return o + "x"; } }',
    ),
    "jumps and handlers": (
        """class A { int f(int a) { try { switch (a) { case 1: return 2; case 900: return 3; default: return hashCode(); } }
           catch (RuntimeException e) { return 4; } }  long g() { return 1L << 40; } }""",
        """class A { int f(int a) { try { switch (a) { case 1: return 2; case 2: return 3; default: return toString().length(); } }
           catch (IllegalStateException e) { return 4; } }  long g() { return 1L << 40; } }""",
    ),
    "a constructor": ("class A { int a; A() { a = 1; } }", "class A { int a; A() { a = 2; } }"),
    "a body in an annotated class": (
        '@Deprecated class A { @SuppressWarnings("x") int f(@Deprecated int a) throws Exception { return 1; } }',
        '@Deprecated class A { @SuppressWarnings("x") int f(@Deprecated int a) throws Exception { return 20000000; } }',
    ),
    "a lambda's body": (
        "class A { java.util.function.IntSupplier f() { return () -> 1; } }",
        "class A { java.util.function.IntSupplier f() { return () -> 2; } }",
    ),
}


@dataclass(frozen=True)
class Case:
    """A pair of sources of a class `A`, and what is to be said of it."""

    name: str
    kind: str
    says: str


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> list[Case]:
    """Return what is said of each pair: all lie in one tree, each in a package of its own."""
    tables = {"alike": ALIKE, "unlike": UNLIKE}
    asked = [(kind, name, texts) for kind, table in tables.items() for name, texts in table.items()]
    room = tmp_path_factory.mktemp("sameness")
    sides = [{f"p{number}/A.java": f"package p{number}; {texts[side]}" for number, (_, _, texts) in enumerate(asked)} for side in (0, 1)]
    compared(room, *sides, options=["-g"])
    found = sameness.same_code(dict(all_differing(room / "base", room / "head")))
    return [Case(name, kind, says(found, f"classes/p{number}/A.class")) for number, (kind, name, _) in enumerate(asked)]


def says(found: CodeComparison, name: str) -> str:
    return "alike" if name in found.alike else "unlike"


def names(cases: Sequence[Case], kind: str) -> dict[str, str]:
    return {case.name: case.says for case in cases if case.kind == kind}


def test_classes_that_differ_in_lines_alone_are_alike(cases: list[Case]) -> None:
    assert names(cases, "alike") == dict.fromkeys(ALIKE, "alike")


def test_classes_that_a_program_may_tell_apart_without_calling_what_changed_are_unlike(cases: list[Case]) -> None:
    assert names(cases, "unlike") == dict.fromkeys(UNLIKE, "unlike")


def classes(folder: Path, text: str, options: Sequence[str] = ()) -> dict[str, bytes]:
    """Return the class files that a source compiles to, by name."""
    compile_all(write(folder, {"A.java": text}), options)
    return {path.name: path.read_bytes() for path in sorted((folder / "classes").iterdir())}


Entries = Mapping[str, str | bytes]


def stamped(extra: bytes = b"", *, mode: int = 0o644) -> bytes:
    """Return an archive with an entry of which more is said."""
    file = BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        entry = zipfile.ZipInfo("a.txt")
        entry.extra, entry.external_attr = extra, mode << 16
        archive.writestr(entry, "a")
    return file.getvalue()


def jar(entries: Entries, *, second: int = 2, comment: bytes = b"", method: int = zipfile.ZIP_DEFLATED, start: bytes = b"") -> bytes:
    """Return an archive whose entries were written at a time."""
    file = BytesIO()
    file.write(start)
    with zipfile.ZipFile(file, "a", method) as archive:
        for name, content in entries.items():
            archive.writestr(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, second)), content, method)
        archive.comment = comment
    return file.getvalue()


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """Return a class file, the same with other lines, and one whose method does something else."""
    texts = ("class A { int f() { return 1; } }", "\n\nclass A { int f() { return 1; } }", "class A { int f() { return 2; } }")
    return [classes(tmp_path_factory.mktemp("lines"), text)["A.class"] for text in texts]


MANIFEST = "Main-Class: A\n"


def archives(lines: list[bytes]) -> dict[str, tuple[bytes, bytes, bool]]:
    """Return pairs of archives, and whether they are alike."""
    first, moved, _ = lines
    whole = {"META-INF/MANIFEST.MF": MANIFEST, "A.class": first, "table.csv": "1"}
    inner, inner_in_head = jar({"A.class": first}, second=4), jar({"A.class": moved}, second=6)
    deep: tuple[bytes, bytes] = (first, moved)
    for _ in range(6):
        deep = (jar({"x.jar" if deep[0] != first else "A.class": deep[0]}), jar({"x.jar" if deep[1] != moved else "A.class": deep[1]}))
    return {
        "times": (jar(whole), jar(whole, second=8), True),
        "lines of a class": (jar(whole), jar({**whole, "A.class": moved}), True),
        "lines of a class in a library": (jar({**whole, "lib/a.jar": inner}), jar({**whole, "lib/a.jar": inner_in_head}), True),
        "a stored library": (
            jar({"a.jar": inner}, method=zipfile.ZIP_STORED),
            jar({"a.jar": inner_in_head}, method=zipfile.ZIP_STORED),
            True,
        ),
        "Main-Class": (jar(whole), jar({**whole, "META-INF/MANIFEST.MF": "Main-Class: B\n"}), False),
        "a stamp": (jar({**whole, "META-INF/maven/pom.properties": "1"}), jar({**whole, "META-INF/maven/pom.properties": "2"}), False),
        "a licence": (jar(whole), jar({**whole, "META-INF/LICENSE.txt": "more"}), False),
        "a table": (jar(whole), jar({**whole, "table.csv": "2"}), False),
        "order": (jar(whole), jar(dict(reversed(whole.items()))), False),
        "a comment": (jar(whole), jar(whole, comment=b"more"), False),
        "compression": (jar(whole), jar(whole, method=zipfile.ZIP_STORED), False),
        "a script before it": (jar(whole, start=b"#!/bin/sh\necho 1\n"), jar(whole, start=b"#!/bin/sh\necho 2\n"), False),
        "a time of Unix": (stamped(b"UT\5\0\1\0\0\0\0"), stamped(b"UT\5\0\1\0\0\0\1"), True),
        "what else is said of an entry": (stamped(b"XX\1\0a"), stamped(b"XX\1\0b"), False),
        "what is said of an entry where it lies": (stamped(b"XX\1\0a"), stamped(b"XX\1\0a").replace(b"XX\1\0a", b"XX\1\0b", 1), False),
        "who may run a file": (stamped(), stamped(mode=0o755), False),
        "too deep": (*deep, False),
        "no archive": (b"one", b"two", False),
        "cut short": (jar(whole), jar({**whole, "A.class": moved})[:-30], False),
    }


def test_archives_are_alike_where_their_entries_are_in_the_same_order(lines: list[bytes]) -> None:
    pairs = archives(lines)
    said = {name: archive_bytes.are_alike(base, head, sameness.are_alike_classes) for name, (base, head, _) in pairs.items()}
    assert said == {name: is_alike for name, (_, _, is_alike) in pairs.items()}


def test_what_lies_hidden_between_entries_is_no_archive_like_another(lines: list[bytes]) -> None:
    content = jar({"A.class": lines[0], "b": "1"})
    second = content.index(b"PK\3\4", 4)
    with zipfile.ZipFile(BytesIO(content)) as archive:
        start = archive.start_dir
    hidden = bytearray(content[:second] + b"????" + content[second:])
    at = hidden.rindex(b"PK\1\2")  # the second entry's place in the directory, and the directory's own
    hidden[at + 42 : at + 46] = (second + 4).to_bytes(4, "little")
    hidden[-6:-2] = (start + 4).to_bytes(4, "little")
    assert zipfile.ZipFile(BytesIO(bytes(hidden))).read("b") == b"1"
    assert archive_bytes.are_alike(content, bytes(hidden), sameness.are_alike_classes) is False


def test_archives_that_would_unpack_without_end_are_not_read(monkeypatch: pytest.MonkeyPatch, lines: list[bytes]) -> None:
    pair = [jar({"a.jar": jar({"A.class": one}) + bytes(1 << 16)}) for one in lines[:2]]
    inner = [jar({"a.jar": jar({"A.class": one, "zeros": bytes(1 << 16)})}) for one in lines[:2]]
    assert archive_bytes.are_alike(inner[0], inner[1], sameness.are_alike_classes)
    monkeypatch.setattr(archive_bytes, "MOST_BYTES", 1 << 9)
    assert archive_bytes.are_alike(inner[0], inner[1], sameness.are_alike_classes) is False
    assert archive_bytes.are_alike(pair[0], pair[1], sameness.are_alike_classes) is False


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_archives_whose_entries_cannot_be_unpacked_are_unlike(method: int) -> None:
    whole, other = (jar({"a.jar": letter * 5000}, method=method) for letter in "ab")
    for place in range(35, 60):
        damaged = other[:place] + bytes([other[place] ^ 0xFF]) + other[place + 1 :]
        assert archive_bytes.are_alike(whole, damaged, sameness.are_alike_classes) is False


def test_an_entry_is_unpacked_no_further_than_its_size_says() -> None:
    content = jar({"a.jar": bytes(1 << 25)})
    small = content.replace((1 << 25).to_bytes(4, "little"), (1 << 10).to_bytes(4, "little"))
    assert small != content
    with zipfile.ZipFile(BytesIO(small)) as archive:
        tracemalloc.start()
        with pytest.raises(zipfile.BadZipFile):
            archive_bytes._unpacked(archive, archive.infolist()[0])
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert most < 1 << 22


def test_a_constant_that_nothing_names_is_a_difference(lines: list[bytes]) -> None:
    cursor = class_bytes.Cursor(lines[0][8:])
    count = len(class_bytes._constants(cursor))
    behind = 8 + cursor.at
    more = lines[0][:8] + (count + 1).to_bytes(2) + lines[0][10:behind] + b"\1\0\4more" + lines[0][behind:]
    assert class_bytes.read(more).constants[-1] == (class_bytes.UTF8, b"more")
    assert not sameness.are_alike_classes(lines[0], more)


def _cut(content: bytes) -> bytes:
    return content[:-1]


def _longer(content: bytes) -> bytes:
    return content + b"\0"


def _emptied(content: bytes) -> bytes:
    return content.replace(b"\0\4Code", b"\0\4Cxde", 1)


@pytest.mark.parametrize("damage", [_cut, _longer, _emptied, bytes.lower])
def test_damaged_classes_are_unlike(damage: Callable[[bytes], bytes], lines: list[bytes]) -> None:
    first, moved, _ = lines
    assert sameness.are_alike_classes(first, moved)
    assert sameness.are_alike_classes(damage(first), moved) is False
    assert sameness.are_alike_classes(first, damage(moved)) is False


def test_no_damage_of_one_byte_ends_in_anything_but_an_answer(lines: list[bytes]) -> None:
    first, _, other = lines
    for at in range(len(first)):
        for value in (0, 1, 0x7F, 0xFF):
            damaged = first[:at] + bytes((value,)) + first[at + 1 :]
            if damaged != first:
                sameness.are_alike_classes(damaged, other)
                assert not sameness.are_alike_classes(damaged, first) or class_bytes.read(damaged) == class_bytes.read(first)


def test_files_of_other_kinds_are_nobodys_whatever_they_are_called(tmp_path: Path) -> None:
    files = ("README.md", "docs/a.html", "src/A.java", "target/maven-status/inputFiles.lst", "pom.xml", "A.class", "lib/a.jar")
    trees = [write(tmp_path / side, dict.fromkeys(files, side)) for side in ("base", "head")]
    differing = dict(all_differing(*trees))
    assert differing.keys() == set(files)
    found = sameness.same_code(differing)
    assert (found.alike, found.compiled) == (frozenset(), frozenset())


@dataclass(frozen=True)
class Tree:
    """A build of Java alone."""

    tree: Path
    beside: Path
    commands: tuple[()] = ()


def test_libraries_of_other_versions_may_lie_outside_of_the_trees(tmp_path: Path) -> None:
    named = "<groupId>g</groupId><artifactId>a</artifactId><version>{}</version>"
    pom = f"<project><dependencies><dependency>{named}</dependency></dependencies></project>"
    pack = Java(JavaConfig(str(jdk().home)), Surroundings(tmp_path, helpers(), {}))
    assert pack.workplace is not None
    builds = {}
    for name, version in (("base", 1), ("same", 1), ("head", 2)):
        builds[name] = Tree(write(tmp_path / name, {"pom.xml": pom.format(version)}), tmp_path / f"beside-{name}")
        builds[name].beside.mkdir()
        pack.workplace.finish(builds[name].beside, builds[name].tree, builds[name].tree, {})
    pairs: list[Counterpart] = []
    assert [pack.same_code(builds["base"], builds[name], pairs, {}).in_tree for name in ("same", "head")] == [True, False]


def test_hundreds_of_classes_are_compared_within_a_second(tmp_path: Path, lines: list[bytes]) -> None:
    body = "".join(f"int f{number}(int a) {{ return a * {number} + hashCode(); }}\n" for number in range(60))
    for side, first in (("base", ""), ("head", "\n")):
        content = classes(tmp_path / f"made-{side}", f"{first}class A {{ {body} }}")["A.class"]
        write(tmp_path / side, {f"A{number}.class": content for number in range(300)})
    differing = dict(all_differing(tmp_path / "base", tmp_path / "head"))
    began = time.monotonic()
    assert len(sameness.same_code(differing).alike) == 300
    assert time.monotonic() - began < 5.0  # 1.7 s on a busy machine of two cores
