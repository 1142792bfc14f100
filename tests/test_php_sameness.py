"""Which files of two PHP trees the engine gets the same from."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from perfdiff.languages.php import sameness
from perfdiff.languages.php.index import index
from perfdiff.languages.php.matching import match
from perfdiff.languages.protocol import CodeComparison, Counterpart
from perfdiff.languages.tree_files import all_differing
from php_programs import interpreter


@dataclass(frozen=True)
class Compared:
    """Two trees held against each other."""

    found: CodeComparison
    pairs: tuple[Counterpart, ...]
    differing: frozenset[str]

    def says(self, name: str) -> str:
        """Return what is said of a file."""
        return "alike" if name in self.found.alike else "unlike"


def compare(folder: Path, base: Mapping[str, str | bytes], head: Mapping[str, str | bytes], php: Path | None = None) -> Compared:
    trees = [folder / side for side in ("base", "head")]
    for tree, files in zip(trees, (base, head), strict=True):
        for name, text in files.items():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    before, after = (index(tree, depth=2) for tree in trees)
    pairs = match(before, after)
    differing = dict(all_differing(*trees))
    return Compared(sameness.same_code(differing, php or interpreter().executable, os.environ), pairs, frozenset(differing))


CLASS = "<?php class A {{ {} function f() {{ return 1; }} }}"
ALIKE = {
    "a comment": ("<?php function f() { return 1; }", "<?php // more\n# and more\nfunction f() { /* one */ return 1; }"),
    "white space": ("<?php\nfunction f($a, $b) { return $a; }", "<?php\n\n\nfunction f(\n  $a,\n  $b\n)\n{\n  return $a;\n}\n"),
    "white space behind the tag": ("<?php f();", "<?php\n\n  f();"),
    "a comment on the tag's line": ("<?php\nf();", "<?php // one\nf();"),
    "a named class": ("<?php class A {}", "<?php\n\n\nclass A {}"),
    "the name of a class": ("<?php echo A::class;", "<?php\n\necho A::class;"),
    "a page": ("<p><?= $a ?></p>", "<p><?=  $a /* a */ ?></p>"),
}
UNLIKE = {
    "an attribute": (CLASS.format("#[Size(1)]"), CLASS.format("#[Size(9000)]")),
    "a doc comment": (CLASS.format("/** @size 1 */"), CLASS.format("/** @size 9000 */")),
    "a doc comment that moves": ("<?php /** One. */ function f() {} function g() {}", "<?php function f() {} /** One. */ function g() {}"),
    "a signature": ("<?php function f($a = 1) { return 1; }", "<?php function f($a = 2) { return 1; }"),
    "a local's name, which no suspect tells": (
        "<?php function f($a) { $b = $a; return $b; }",
        "<?php function f($a) { $c = $a; return $c; }",
    ),
    "order": ("<?php function f() {} function g() {}", "<?php function g() {} function f() {}"),
    "top-level code": ("<?php $a = 1;", "<?php $a = 2;"),
    "a string": ("<?php echo 'a b';", "<?php echo 'a  b';"),
    "a string of another kind": ("<?php echo '$a';", '<?php echo "$a";'),
    "1 and 1.0": ("<?php return 1;", "<?php return 1.0;"),
    "a heredoc's text": ("<?php echo <<<A\n  x\n  A;", "<?php echo <<<A\n   x\n  A;"),
    "a heredoc's indent": ("<?php echo <<<A\n  x\n  A;", "<?php echo <<<A\n  x\n A;"),
    "a comment in a heredoc": ("<?php echo <<<A\n// x\nA;", "<?php echo <<<A\n// y\nA;"),
    "a comment in a string": ("<?php echo '/* x */';", "<?php echo '/* y */';"),
    "the end of a page": ("<?php f(); ?>\n<p>", "<?php f(); ?>\n\n<p>"),
    "a new line behind a closing tag": ("<?php f(); ?>x", "<?php f(); ?>\nx"),
    "what a comment ends with": ("<?php f(); // one ?>x", "<?php f(); // one ?>y"),
    "text around code": ("<p><?= $a ?></p>", "<b><?= $a ?></b>"),
    "__LINE__": ("<?php echo __LINE__;", "<?php\n\necho __LINE__;"),
    "the name of a nameless class": ("<?php echo get_class(new class {});", "<?php\n\necho get_class(new class {});"),
    "declare(ticks)": ("<?php declare(ticks=1); f();", "<?php declare(ticks=2); f();"),
    "strict types": ("<?php f();", "<?php declare(strict_types=1); f();"),
    "data behind the code": ("<?php f(); __halt_compiler(); 10", "<?php f(); __halt_compiler(); 9000"),
    "where data behind the code begins": ("<?php f(); __halt_compiler(); 10", "<?php f(); /* 1 */ __halt_compiler(); 10"),
    "a comment without an end": ("<?php f();", "<?php f(); /* one"),
    "short tags, where a setting says what is code": (
        '<? echo "<?php // 10\n"; ?><?php f();',
        '<? echo "<?php // 9000\n"; ?><?php f();',
    ),
    "a first line": ("#!/usr/bin/env php\n<?php f();", "#!/usr/bin/php\n<?php f();"),
    "what uses name": ("<?php use A\\B; new B;", "<?php use C\\B; new B;"),
    "a function that is added": ("<?php function f() {}", "<?php function f() {} function g() {}"),
    "white space in a cast": ("<?php return (int) 1;", "<?php return ( int ) 1;"),
    "a body": ("<?php function f($a) { return $a; }", "<?php function f($a) { return $a + 1; }"),
    "a method's body": (
        "<?php class A { /** A. */ #[B] public function f(int $a = 1): int { return $a; } function g() {} }",
        "<?php class A { /** A. */ #[B] public function f(int $a = 1): int { return $a + 1; } function g() {} }",
    ),
    "two bodies, and lines": (
        "<?php function f() { return 1; }\nfunction g() { return 1; }",
        "<?php function f() { return 2; }\n// one\n\nfunction g() { foreach ([] as $a) { } return 2; }",
    ),
    "letters of several bytes": (
        "<?php function \u00e9() { return '\u00e9'; } f();",
        "<?php function \u00e9() { return '\u00e9\u00e9'; } f();",
    ),
}


@pytest.mark.parametrize(("kind", "table"), [("alike", ALIKE), ("unlike", UNLIKE)])
def test_scripts_are_alike_where_the_engine_compiles_them_to_the_same_but_for_lines(
    kind: str, table: Mapping[str, tuple[str, str]], tmp_path: Path
) -> None:
    sides = [{f"a{number}.php": texts[side] for number, texts in enumerate(table.values())} for side in (0, 1)]
    compared = compare(tmp_path, *sides)
    assert {name: compared.says(f"a{number}.php") for number, name in enumerate(table)} == dict.fromkeys(table, kind)


def test_a_body_that_differs_is_nothing_to_go_by_where_no_suspect_tells_it(tmp_path: Path) -> None:
    base, head = UNLIKE["a body"]
    compare(tmp_path, {"a.php": base}, {"a.php": head})
    differing = dict(all_differing(tmp_path / "base", tmp_path / "head"))
    found = sameness.same_code(differing, interpreter().executable, os.environ)
    assert found.alike == frozenset()


def test_what_is_beside_the_body_of_a_changed_function_is_not_told_by_it(tmp_path: Path) -> None:
    base = "<?php class A { const N = 1; function f() { return 1; } }"
    head = base.replace("N = 1", "N = 2").replace("return 1", "return 2")
    assert compare(tmp_path, {"a.php": base}, {"a.php": head}).says("a.php") == "unlike"


def test_files_of_other_kinds_are_nobodys_whatever_they_are_called(tmp_path: Path) -> None:
    names = ("README.md", "docs/a.html", "phpstan.neon", "phpunit.xml", "composer.lock", "data.json", "view.twig")
    compared = compare(tmp_path, dict.fromkeys(names, "<?php f();"), dict.fromkeys(names, "<?php // one\nf();"))
    assert (compared.differing, compared.found.alike) == (set(names), frozenset())


def test_scripts_without_a_suffix_and_those_of_packages_are_compared_too(tmp_path: Path) -> None:
    names = ("bin/console", "vendor/a/b/src/C.php", "vendor/composer/autoload_static.php", "view.phtml")
    compared = compare(tmp_path, dict.fromkeys(names, "<?php f();"), dict.fromkeys(names, "<?php // one\nf();"))
    assert compared.found.alike == set(names)


@pytest.mark.parametrize("answer", ["exit 1", "echo '{}'", "echo no", "echo '[]'"])
def test_where_the_engine_tells_nothing_nothing_is_alike(answer: str, tmp_path: Path) -> None:
    php = tmp_path / "php"
    php.write_text(f"#!/bin/sh\n{answer}\n")
    php.chmod(0o755)
    base, head = ALIKE["a comment"]
    assert compare(tmp_path, {"a.php": base}, {"a.php": head}, php).says("a.php") == "unlike"


def test_no_code_of_the_project_runs_beside_the_comparison(tmp_path: Path) -> None:
    (tmp_path / "first.php").write_text(f"<?php file_put_contents('{tmp_path}/ran', '1'); echo 'x';")
    (tmp_path / "php.ini").write_text(f"auto_prepend_file={tmp_path}/first.php\nshort_open_tag=1\n")
    base, head = ALIKE["a comment"]
    compare(tmp_path, {"a.php": base}, {"a.php": head})
    differing = dict(all_differing(tmp_path / "base", tmp_path / "head"))
    found = sameness.same_code(differing, interpreter().executable, {**os.environ, "PHPRC": str(tmp_path)})
    assert (found.alike, (tmp_path / "ran").exists()) == ({"a.php"}, False)


def test_functions_are_told_apart(tmp_path: Path) -> None:
    text = "<?php class Box { function f() { return 1; } } class Other { function g() { return 2; } }"
    compared = compare(tmp_path, {"src/Box.php": text}, {"src/Box.php": text.replace("return 1", "return 3")})
    by_name, found = {one.shown.name: one for one in compared.pairs}, compared.found
    assert (found.is_same(by_name["Box::f"]), found.is_unlike(by_name["Box::f"])) == (False, True)
    assert (found.is_same(by_name["Other::g"]), found.is_unlike(by_name["Other::g"])) == (True, False)


def test_hundreds_of_scripts_are_compared_within_a_second(tmp_path: Path) -> None:
    body = "".join(
        f"function f{number}($a, $b = [{number}, 'x']) {{ foreach ($b as $c) {{ $a += $c; }} return $a; }}\n" for number in range(60)
    )
    for side, first in (("base", "<?php\n"), ("head", "<?php // more\n")):
        for number in range(300):
            path = tmp_path / side / f"a{number}.php"
            path.parent.mkdir(exist_ok=True)
            path.write_text(first + body)
    differing = dict(all_differing(tmp_path / "base", tmp_path / "head"))
    began = time.monotonic()
    assert len(sameness.same_code(differing, interpreter().executable, os.environ).alike) == 300
    assert time.monotonic() - began < 5.0  # 0.5 to 2.3 s on a busy machine of two cores
