"""PHP projects: how they are known, what `perfdiff init` writes for them, and what they run under."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from perfdiff import configuration
from perfdiff.cli.init import project_in, template
from perfdiff.config import WorkloadConfig
from perfdiff.configuration.recognition import is_led
from perfdiff.errors import BuildError, ConfigError, StoreError
from perfdiff.exploring import Tryout
from perfdiff.languages.dependencies import changes
from perfdiff.languages.php import homes, packages
from perfdiff.languages.php.homes import PhpHomes
from perfdiff.languages.php.interpreters import PhpInterpreter
from perfdiff.languages.php.project import PhpProject
from perfdiff.languages.php.project import script as script_of
from perfdiff.languages.php.traits import PhpConfig

LOCK = {
    "packages": [
        {"name": "acme/box", "version": "1.2.0"},
        {"name": "acme/tip", "version": "dev-main", "source": {"reference": "0123456789abcdef"}},
    ],
    "packages-dev": [{"name": "acme/tests", "version": "9.0"}],
}


def tree(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize(
    ("files", "commands", "sign"),
    [
        ({"composer.json": "{}"}, [], "composer.json"),
        ({"index.php": ""}, ["curl http://127.0.0.1/"], "index.php"),
        ({"public/index.php": ""}, [], "public/index.php"),
        ({"lib.php": ""}, ["php8.2 run.php 3"], "php8.2 run.php 3"),
        ({}, ["sh -c 'cd a && ./run.php 3'"], "sh -c 'cd a && ./run.php 3'"),
        ({"lib.php": ""}, ["./program 3"], None),
        ({"composer.json": "{}", "CMakeLists.txt": ""}, ["./program"], None),
        ({"composer.json": "{}", "CMakeLists.txt": ""}, ["php a.php"], "php a.php"),
        ({"composer.json": "{}", "config.m4": ""}, [], None),
        ({"composer.json": "{}", "Makefile": ""}, [], "composer.json"),
        ({"composer.json": "{}", "Makefile": "", "main.c": ""}, [], None),
    ],
)
def test_what_tells_a_php_project(files: Mapping[str, str], commands: list[str], sign: str | None, tmp_path: Path) -> None:
    kind = PhpProject()
    assert kind.recognise(tree(tmp_path, files), commands, is_led=is_led(tmp_path, kind)) == sign


def test_a_php_project_needs_no_build_command(tmp_path: Path) -> None:
    tree(
        tmp_path,
        {"composer.json": "{}", "perfdiff.toml": '[[workload]]\nname = "a"\ncommand = "php bin/run {n}"\nparameters = { n = [1, 2] }'},
    )
    config = configuration.load(tmp_path, environment={})
    assert (config.languages, config.build.command) == ({"php": PhpConfig()}, "")
    assert config.build_guessed_from == "composer.json"
    named = configuration.load(tmp_path, environment={"PERFDIFF_PHP_INTERPRETER": "php8.2"})
    assert named.languages["php"] == PhpConfig("php8.2")


def test_what_is_compiled_beside_php_is_built(tmp_path: Path) -> None:
    text = '[[workload]]\nname = "a"\ncommand = "php run.php"'
    tree(tmp_path, {"run.php": "", "Makefile": "all:\n", "ext/fast.c": "", "perfdiff.toml": text})
    config = configuration.load(tmp_path, environment={})
    assert (config.languages["php"], config.build.command) == (PhpConfig(), "make -j$(nproc)")


def test_a_makefile_that_compiles_nothing_is_not_run(tmp_path: Path) -> None:
    text = '[[workload]]\nname = "a"\ncommand = "php run.php"'
    tree(
        tmp_path,
        {"composer.json": "{}", "run.php": "", "Makefile": "test:\n\tvendor/bin/phpunit\n", "vendor/a/b.c": "", "perfdiff.toml": text},
    )
    config = configuration.load(tmp_path, environment={})
    assert (config.languages["php"], config.build.command, config.build_guessed_from) == (PhpConfig(), "", "composer.json")


def test_a_program_that_is_no_php_must_say_how_it_is_built(tmp_path: Path) -> None:
    tree(tmp_path, {"lib.php": "", "perfdiff.toml": '[[workload]]\nname = "a"\ncommand = "./program"'})
    with pytest.raises(ConfigError, match="no build command"):
        configuration.load(tmp_path, environment={})


@pytest.mark.parametrize(
    ("files", "script"),
    [
        ({"composer.json": '{"bin": ["bin/tool", "bin/other"]}', "bin/tool": "", "a.php": ""}, "bin/tool"),
        ({"composer.json": '{"bin": "missing"}', "benchmarks/run.php": "<?php work();", "bin/tool": ""}, "benchmarks/run.php"),
        ({"composer.json": "[", "index.php": "", "run.php": "<?php new Work();"}, "run.php"),
        ({"index.php": ""}, None),
        (
            {"benchmarks/SortBench.php": "<?php class SortBench { function benchSort() { sort_all(); } }", "lib.php": "<?php CONST A = 1;"},
            None,
        ),
    ],
)
def test_a_script_that_may_be_a_workload_is_found(files: Mapping[str, str], script: str | None, tmp_path: Path) -> None:
    assert script_of(tree(tmp_path, files)) == script


def test_init_writes_a_configuration_that_is_read(tmp_path: Path) -> None:
    found = project_in(tree(tmp_path, {"composer.json": '{"bin": "bin/run.php"}', "bin/run.php": ""}))
    text = template(found, tryout=Tryout(command=WorkloadConfig("main", "php bin/run.php {n}", {"n": (1,)})))
    assert 'command = "php bin/run.php {n}"' in text
    assert "# interpreter = " in text
    tree(tmp_path, {"composer.json": "{}", "perfdiff.toml": text})
    config = configuration.load(tmp_path, environment={})
    assert (config.languages["php"], config.build.command, [each.command for each in config.workloads]) == (
        PhpConfig(),
        "",
        ["php bin/run.php {n}"],
    )


def test_versions_of_packages_are_those_installed_else_those_locked(tmp_path: Path) -> None:
    assert packages.versions(tmp_path) == {}
    tree(tmp_path, {"composer.lock": json.dumps(LOCK)})
    assert packages.versions(tmp_path) == {"acme/box": "1.2.0", "acme/tip": "dev-main 0123456"}
    tree(tmp_path, {"vendor/composer/installed.json": json.dumps([{"name": "acme/box", "version": "1.3.0"}])})
    assert packages.versions(tmp_path) == {"acme/box": "1.3.0"}


def test_what_a_build_runs_under_is_kept_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "php9"
    program.write_text("")
    php = PhpInterpreter(program, "8.2.1", (8, 2), False, "API", None)
    monkeypatch.setattr(PhpHomes, "php", property(lambda _: php))
    place = tree(tmp_path / "tree", {"composer.lock": json.dumps(LOCK)})
    found: list[Path] = []
    for side, config in (("base", PhpConfig()), ("head", PhpConfig(str(program)))):
        beside = tmp_path / side
        beside.mkdir()
        made = PhpHomes(config, tmp_path, {})
        prepared = made.prepare(beside, place, place, {"PATH": "/usr/bin"})
        made.finish(beside, place, place, {})
        assert homes.read(beside) == homes.PhpHome(program, "8.2.1", {"acme/box": "1.2.0", "acme/tip": "dev-main 0123456"})
        drivers = homes.variables(beside, {"PATH": "/usr/bin"}).pop(homes.SUITES)
        assert homes.variables(beside, {"PATH": "/usr/bin"}) == {**prepared.variables, homes.SUITES: drivers}
        found.append(beside)
    assert homes.variables(found[0], {}) == {homes.SUITES: drivers}
    folder = Path(homes.variables(found[1], {"PATH": "/usr/bin"})["PATH"].split(":")[0])
    assert (folder / "php").readlink() == program
    (found[1] / "php.json").write_text((found[1] / "php.json").read_text().replace("1.2.0", "2.0.0"))
    assert [change.says for change in changes(*(homes.read(beside).versions for beside in found))] == ["now uses acme/box 2.0.0, was 1.2.0"]
    assert made.broken(found[0]) is None
    program.unlink()
    assert made.broken(found[0]) == f"{program} is gone"
    (found[0] / "php.json").write_text("{")
    with pytest.raises(StoreError, match="damaged"):
        homes.read(found[0])


def test_a_php_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match=r"no PHP 'php9\.9'"):
        _ = PhpHomes(PhpConfig("php9.9"), tmp_path, {"PATH": str(tmp_path)}).identity
