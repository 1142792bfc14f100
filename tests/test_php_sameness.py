"""What two trees of PHP programs have in common: their functions, and the other files that workloads may read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from perfdiff.languages.php.index import index
from perfdiff.languages.php.matching import match
from perfdiff.languages.php.sameness import same_code
from perfdiff.languages.protocol import CodeComparison, CompileCommand, Counterpart
from php_sources import write

BASE = {
    "src/Box.php": "class Box { function f() { return 1; } } class Other { function g() { return 2; } }",
    "views/page.phtml": "<p><?= $title ?></p>",
    "views/page.twig": "<p>{{ title }}</p>",
    "settings.json": "{}",
    "README.md": "Says.",
    "composer.lock": "{}",
    "data.csv": "1",
    "phpunit.xml": "<a/>",
}


@dataclass(frozen=True)
class Built:
    tree: Path
    beside: Path
    commands: tuple[CompileCommand, ...] = ()


def compared(folder: Path, head: Mapping[str, str | bytes]) -> tuple[CodeComparison, tuple[Counterpart, ...]]:
    builds = [Built(write(folder / side, files), folder) for side, files in (("base", BASE), ("head", {**BASE, **head}))]
    programs = [index(build.tree, depth=2) for build in builds]
    pairs = match(programs[0], programs[1])
    return same_code(builds[0], builds[1], pairs), pairs


def test_trees_that_differ_in_layout_and_documentation_are_the_same(tmp_path: Path) -> None:
    head = {
        "src/Box.php": "/** Says. */ class Box { function f() { return 1; /* one */ } }\nclass Other { function g() { return 2; } }",
        "README.md": "Says more.",
        "composer.lock": '{"content-hash": "1"}',
        "phpunit.xml": "<b/>",
        "tests.phpunit.xml.dist": "",
    }
    found, _ = compared(tmp_path, head)
    assert (found.identical, found.other_files) == (True, ())


def test_other_files_that_differ_are_told(tmp_path: Path) -> None:
    head = {
        "settings.json": '{"a": 1}',
        "views/page.twig": "<b>{{ title }}</b>",
        "data.csv": "2",
        "new.txt": "",
        "broken.php": "function f( {",
    }
    found, _ = compared(tmp_path, head)
    assert (found.identical, found.other_files) == (False, ("broken.php", "data.csv", "new.txt", "settings.json", "views/page.twig"))


def test_pages_with_code_in_them_are_code(tmp_path: Path) -> None:
    found, pairs = compared(tmp_path, {"views/page.phtml": "<b><?= $title ?></b>"})
    changed = [one.shown.name for one in pairs if one.change.is_suspect]
    assert (found.identical, found.other_files, changed) == (False, (), ["views/page.phtml::{main}"])


def test_functions_are_told_apart(tmp_path: Path) -> None:
    found, pairs = compared(tmp_path, {"src/Box.php": BASE["src/Box.php"].replace("return 1", "return 3")})
    by_name = {one.shown.name: one for one in pairs}
    assert (found.is_same(by_name["Box::f"]), found.is_unlike(by_name["Box::f"])) == (False, True)
    assert (found.is_same(by_name["Other::g"]), found.is_unlike(by_name["Other::g"])) == (True, False)
