"""PHP's pack by itself: what it asks of PHP, and which packages of others belong to a program."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

import pytest

import runtimes
from perfdiff.languages.php.pack import Php
from perfdiff.languages.php.traits import PhpConfig
from perfdiff.languages.protocol import CompileCommand, Probe, Surroundings
from perfdiff.records.schema import Change, Phase
from php_sources import write

RUN = "require __DIR__ . '/vendor/acme/box/Box.php'; echo (new Acme\\Box())->open(), helper();"


@dataclass(frozen=True)
class Built:
    tree: Path
    beside: Path
    commands: tuple[CompileCommand, ...] = ()


def built(pack: Php, folder: Path, version: str, body: str) -> Built:
    """Return a tree with an installed package, whose PHP and packages were taken down."""
    installed = json.dumps({"packages": [{"name": "acme/box", "version": version}]}).encode()
    files = {
        "run.php": RUN,
        "helper.php": "function helper() { return 1; }",
        "vendor/autoload.php": "return 1;",
        "vendor/composer/installed.json": installed,
        "vendor/acme/box/Box.php": f"namespace Acme; class Box {{ function open() {{ {body} }} }}",
    }
    tree = write(folder / "tree", files)
    assert pack.workplace is not None
    prepared = pack.workplace.prepare(folder, tree, tree, os.environ)
    pack.workplace.finish(folder, tree, tree, {**os.environ, **prepared.variables})
    return Built(tree, folder)


@pytest.fixture
def pack(tmp_path: Path) -> Php:
    return Php(PhpConfig(), Surroundings(tmp_path, runtimes.lent_to(tmp_path / "cache"), dict(os.environ)))


def test_a_package_is_the_projects_where_its_version_differs(pack: Php, tmp_path: Path) -> None:
    base = built(pack, tmp_path / "base", "1.0.0", "return 1;")
    head = built(pack, tmp_path / "head", "1.1.0", "return 2;")
    names = {one.name for one in pack.index(head, depth=2).functions.values()}
    assert names == {"helper", "helper.php::{main}", "run.php::{main}"}
    before, after = pack.index(base, depth=2, others=[head]), pack.index(head, depth=2, others=[base])
    found = {one.shown.name: one.change for one in pack.match(before, after) if one.change is not Change.UNCHANGED}
    assert found == {"Acme\\Box::open": Change.CHANGED, "run.php::{main}": Change.CALLER}
    assert [(note.slug, note.text) for note in pack.told(base, head)] == [("dependency-changed", "head now uses acme/box 1.1.0, was 1.0.0")]
    pairs = pack.match(before, after)
    assert [pack.same_code(base, other, pairs, {}).in_tree for other in (base, head)] == [True, False]


def test_what_programs_run_on_is_told_with_versions(pack: Php, tmp_path: Path) -> None:
    one = built(pack, tmp_path / "one", "1.0.0", "return 1;")
    engine, package = pack.runs_on(one)
    assert (engine.startswith("PHP 8."), "; JIT " in engine) == (True, True)
    assert package == "acme/box 1.0.0"


def test_a_run_gets_the_sheet_of_its_probes_and_our_extension(pack: Php, tmp_path: Path) -> None:
    one = built(pack, tmp_path / "one", "1.0.0", "return 1;")
    [function] = [each for each in pack.index(one, depth=2).functions.values() if each.name == "helper"]
    assert pack.attach(Phase.TIMED, one, [], tmp_path) == {}
    variables = pack.attach(Phase.TIMED, one, [Probe(7, function, (), ())], tmp_path)
    text = Path(variables["PERFDIFF_PHP"]).read_text()
    assert text == f"perfdiff php 1\nfile helper.php\nplace {one.tree / 'helper.php'}\nprobe 7 2 2 helper\n"
    folder = Path(variables["PHP_INI_SCAN_DIR"].rpartition(":")[2])
    assert [path.suffix for path in folder.iterdir()] == [".ini"]
