"""When two trees of Java are the same program, and which other files differ that a workload may read."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from java_sources import compile_all, helpers, jdk, write
from perfdiff.config import JavaConfig
from perfdiff.languages.java.pack import Java
from perfdiff.languages.meanings import MeaningComparison
from perfdiff.languages.packs import Packs
from perfdiff.languages.protocol import CodeComparison, CompileCommand

SOURCE = {"src/main/java/p/A.java": "package p; public class A { public int f() { return 1; } }"}


@dataclass(frozen=True)
class Tree:
    """A build of Java alone."""

    tree: Path
    beside: Path
    commands: tuple[CompileCommand, ...] = ()


def build(tree: Path, files: Mapping[str, str | bytes]) -> Tree:
    compile_all(write(tree, files), under="src/main/java", into="target/classes")
    beside = tree.parent / f"beside-{tree.name}"
    beside.mkdir()
    return Tree(tree, beside)


def compare(base: Tree, head: Tree) -> CodeComparison:
    pack = Java(JavaConfig(str(jdk().home)), base.tree, {}, helpers())
    assert pack.workplace is not None
    for each in (base, head):
        pack.workplace.finish(each.beside, each.tree, each.tree, {})
    programs = [pack.index(each, depth=1) for each in (base, head)]
    return pack.same_code(base, head, pack.match(*programs))


def test_trees_that_differ_in_comments_notes_and_documentation_are_the_same(tmp_path: Path) -> None:
    base = build(tmp_path / "base", SOURCE)
    head = build(tmp_path / "head", {name: f"// more\n\n{text}" for name, text in SOURCE.items()})
    for name in (
        "README.md",
        "docs/index.html",
        "target/maven-status/inputFiles.lst",
        "target/surefire-reports/a.xml",
        "RELEASE-NOTES.txt",
    ):
        write(head.tree, {name: "more"})
    found = compare(base, head)
    assert (found.identical, found.other_files) == (True, ())


@pytest.mark.parametrize("name", ["src/main/resources/table.csv", "pom.xml", "data/input.java", "lib/Other.class"])
def test_files_that_a_workload_may_read_are_told(tmp_path: Path, name: str) -> None:
    base, head = build(tmp_path / "base", SOURCE), build(tmp_path / "head", SOURCE)
    write(base.tree, {name: "one"})
    write(head.tree, {name: "two"})
    found = compare(base, head)
    assert (found.identical, found.other_files) == (True, (name,))


def test_trees_with_other_libraries_are_not_the_same(tmp_path: Path) -> None:
    base, head = build(tmp_path / "base", SOURCE), build(tmp_path / "head", SOURCE)
    write(base.tree, {"lib/other.jar": "one"})
    write(head.tree, {"lib/other.jar": "two"})
    found = compare(base, head)
    assert (found.identical, found.other_files) == (False, ("lib/other.jar",))


def test_methods_that_differ_are_not_the_same(tmp_path: Path) -> None:
    base = build(tmp_path / "base", SOURCE)
    head = build(tmp_path / "head", {name: text.replace("1", "2") for name, text in SOURCE.items()})
    found = compare(base, head)
    assert (found.identical, found.other_files) == (False, ())


def jar(tree: Path, entries: Mapping[str, str], *, second: int) -> None:
    with zipfile.ZipFile(tree / "target/app.jar", "w") as archive:
        archive.write(tree / "target/classes/p/A.class", "p/A.class")
        for name, text in entries.items():
            archive.writestr(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, second)), text)


def test_archives_are_compared_by_what_is_in_them(tmp_path: Path) -> None:
    base, head = build(tmp_path / "base", SOURCE), build(tmp_path / "head", {name: f"// more\n{text}" for name, text in SOURCE.items()})
    jar(base.tree, {"META-INF/MANIFEST.MF": "Built: today", "table.csv": "1"}, second=2)
    jar(head.tree, {"META-INF/MANIFEST.MF": "Built: tomorrow", "table.csv": "1", "META-INF/LICENSE.txt": "more"}, second=4)
    assert compare(base, head).other_files == ()
    jar(head.tree, {"table.csv": "2", "other.csv": "1"}, second=4)
    assert compare(base, head).other_files == ("target/app.jar!/other.csv", "target/app.jar!/table.csv")


@dataclass(frozen=True)
class Telling:
    """A pack that says which files differ, and nothing else."""

    name: str
    files: tuple[str, ...]

    def same_code(self, *_builds: object) -> CodeComparison:
        return MeaningComparison(identical=True, other_files=self.files)


def test_beside_compiled_code_what_differs_in_an_archive_is_no_less_another_file(tmp_path: Path) -> None:
    built = Tree(tmp_path, tmp_path, (CompileCommand(tmp_path / "a.c", tmp_path, "cc", (), cplusplus=False),))
    packs = Packs(Telling("c", ("app.jar", "data.csv", "p/A.class")), (Telling("java", ("app.jar!/table.csv", "data.csv", "b.so")),))
    assert packs.same_code(built, built, ()).other_files == ("data.csv", "app.jar!/table.csv")
