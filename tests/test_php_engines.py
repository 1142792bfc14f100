"""What a PHP runs programs with, and which functions its counted lines belong to."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

from perfdiff.languages.php import engines, owners
from perfdiff.languages.php.engines import PhpEngine
from perfdiff.records.places import Place
from php_sources import program


def answering(folder: Path, answer: object) -> Path:
    path = folder / "php"
    path.write_text(f"#!/bin/sh\necho '{json.dumps(answer)}'\n")
    path.chmod(0o755)
    return path


def test_a_php_says_what_it_caches_and_loads() -> None:
    php = shutil.which("php")
    assert php is not None, "these tests run PHP"
    found = engines.ask(Path(php), os.environ)
    assert {"Core", "standard", "json"} <= set(found.extensions)
    assert (
        found.says
        == f"opcache {'on' if found.caches else 'off'}; JIT {'on' if found.compiles else 'off'}; {len(found.extensions)} extensions"
    )


def test_what_watches_each_call_is_told(tmp_path: Path) -> None:
    told = [True, "1", "1", True, True, "128M", ["Core", "xdebug"], ["Xdebug", "Zend OPcache"]]
    found = engines.ask(answering(tmp_path, told), os.environ)
    assert {name.lower() for name in found.watching} == {"xdebug"}
    assert (found.caches, found.compiles, found.memory_limit) == (True, True, "128M")
    assert found.says.startswith("opcache on; JIT on; 3 extensions; watched by Xdebug")


def test_a_program_that_says_something_else_is_told_of_as_nothing(tmp_path: Path) -> None:
    assert engines.ask(answering(tmp_path, "no"), os.environ) == PhpEngine(False, False, "", (), ())
    assert engines.ask(tmp_path / "missing", os.environ) == PhpEngine(False, False, "", (), ())


def test_lines_of_closures_and_of_a_files_own_code_go_by_the_names_that_users_write(tmp_path: Path) -> None:
    text = """namespace A;
function f(array $rows)
{
    return array_map(
        function ($row) {
            return fn ($one) =>
                $one + $row;
        },
        $rows,
    );
}
echo count(f([1]));
"""
    found = program(tmp_path, {"a.php": text})
    engine = [("A\\f", 5), ("A\\{closure}", 7), ("A\\{closure}", 9), ("{closure:A\\f():6}", 7), ("{main}", 13), ("{main}", 99)]
    named = owners.named([Place(name, "a.php", line, "") for name, line in engine], found.functions.values())
    assert [(place.function, place.line) for place in named] == [
        ("A\\f", 5),
        ("A\\f::{closure}::{closure}", 7),
        ("A\\f::{closure}", 9),
        ("A\\f::{closure}::{closure}", 7),
        ("a.php::{main}", 13),
        ("{main}", 99),
    ]
