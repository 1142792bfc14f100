"""What Python projects say of themselves, and which interpreter runs them."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from perfdiff.errors import BuildError
from perfdiff.languages.python import interpreters, projects, requirements
from perfdiff.languages.python.requirements import Requirements

SETUPTOOLS = '[build-system]\nrequires = ["setuptools>=61", "wheel"]\nbuild-backend = "setuptools.build_meta"\n'
HATCHLING = '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
POETRY = '[build-system]\nrequires = ["poetry-core"]\nbuild-backend = "poetry.core.masonry.api"\n'
FLIT = '[build-system]\nrequires = ["flit_core >=3.2,<4"]\nbuild-backend = "flit_core.buildapi"\n'
PROJECT = '[project]\nname = "My.Pack"\nversion = "1.0"\ndependencies = ["a>=1"]\n'
DYNAMIC = '[project]\nname = "My.Pack"\ndynamic = ["version", "description"]\n'


def write(folder: Path, text: str, *files: str) -> Path:
    (folder / "pyproject.toml").write_text(text)
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text('__version__ = "2.5"\n')
    return folder


@pytest.mark.parametrize(
    ("text", "files", "roots"),
    [
        (SETUPTOOLS + PROJECT, ["my_pack/__init__.py", "tests/__init__.py"], ["."]),
        (SETUPTOOLS + PROJECT, ["src/my_pack/__init__.py"], ["src"]),
        (SETUPTOOLS + PROJECT, ["src/my_pack.py"], ["src"]),
        (SETUPTOOLS + PROJECT + '[tool.setuptools.packages.find]\nwhere = ["lib"]\n', ["lib/other/__init__.py"], ["lib"]),
        (SETUPTOOLS + PROJECT + '[tool.setuptools]\npackage-dir = {"" = "lib"}\n', ["lib/other/__init__.py"], ["lib"]),
        (SETUPTOOLS + PROJECT + '[tool.setuptools.package-data]\nx = ["*.txt"]\n[tool.ruff]\nx = 1\n', ["my_pack/__init__.py"], ["."]),
        (
            HATCHLING + PROJECT + '[tool.hatch.build.targets.wheel]\npackages = ["python/my_pack"]\n',
            ["python/my_pack/__init__.py"],
            ["python"],
        ),
        (POETRY + PROJECT + '[[tool.poetry.packages]]\ninclude = "x"\nfrom = "code"\n', ["code/x/__init__.py"], ["code"]),
        (FLIT + DYNAMIC, ["my_pack/__init__.py"], ["."]),
    ],
)
def test_a_project_whose_files_lie_as_they_are_installed_needs_no_back_end(
    tmp_path: Path, text: str, files: list[str], roots: list[str]
) -> None:
    project = projects.read(write(tmp_path, text, *files))
    assert project.lies_ready
    assert project.roots == tuple(tmp_path / root for root in roots)
    assert project.version == ("2.5" if "dynamic" in text else "1.0")


@pytest.mark.parametrize(
    "text",
    [
        PROJECT,  # setuptools by PEP 517, with ways of its own
        '[build-system]\nrequires = ["setuptools", "Cython"]\nbuild-backend = "setuptools.build_meta"\n' + PROJECT,
        '[build-system]\nrequires = ["setuptools", "setuptools_scm"]\nbuild-backend = "setuptools.build_meta"\n' + PROJECT,
        '[build-system]\nrequires = ["meson-python"]\nbuild-backend = "mesonpy"\n' + PROJECT,
        SETUPTOOLS.replace("meta", "own").replace('"\n', '"\nbackend-path = ["."]\n', 1) + PROJECT,
        SETUPTOOLS + PROJECT + "[[tool.setuptools.ext-modules]]\nname = 'x'\n",
        SETUPTOOLS + PROJECT + '[tool.setuptools]\npackage-dir = {my_pack = "lib"}\n',
        SETUPTOOLS + PROJECT + '[tool.setuptools]\npackage-dir = {"" = "../elsewhere"}\n',
        HATCHLING + PROJECT + "[tool.hatch.build.hooks.custom]\n",
        HATCHLING + PROJECT + '[tool.hatch.build.targets.wheel]\nsources = ["src"]\n',
        HATCHLING + PROJECT + '[tool.hatch.version]\nsource = "vcs"\n',
        POETRY + PROJECT + '[tool.poetry.build]\nscript = "build.py"\n',
        POETRY + '[tool.poetry]\nname = "x"\n',
        SETUPTOOLS + '[project]\nname = "x"\nversion = "1"\ndynamic = ["dependencies"]\n',
        SETUPTOOLS + DYNAMIC.replace("My.Pack", "unversioned"),
    ],
)
def test_what_a_back_end_may_generate_or_move_is_left_to_it(tmp_path: Path, text: str) -> None:
    project = projects.read(write(tmp_path, text, "my_pack/__init__.py"))
    assert project.is_packaged
    assert not project.lies_ready


@pytest.mark.parametrize("file", ["setup.py", "setup.cfg"])
def test_settings_of_setuptools_beside_the_project_are_left_to_it(tmp_path: Path, file: str) -> None:
    write(tmp_path, SETUPTOOLS + PROJECT, "my_pack/__init__.py")
    (tmp_path / file).write_text("[options]\n")
    assert not projects.read(tmp_path).lies_ready


def test_a_folder_of_scripts_is_no_package(tmp_path: Path) -> None:
    project = projects.read(write(tmp_path, "[tool.ruff]\nline-length = 100\n", "run.py"))
    assert (project.is_packaged, project.lies_ready, project.name) == (False, True, None)


def test_values_of_the_wrong_kind_are_as_if_they_were_not_there(tmp_path: Path) -> None:
    project = projects.read(
        write(tmp_path, '[project]\nname = 3\ndependencies = "a"\nscripts = [1]\n[build-system]\nrequires = [1, "b"]\n')
    )
    assert (project.name, project.requirements, project.build_requirements, project.lies_ready) == (None, (), ("b",), False)


def test_a_file_that_is_no_toml_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="cannot be read") as raised:
        projects.read(write(tmp_path, "[project\n"))
    assert raised.value.slug == "python-project"


def test_requirements_files_are_followed_and_the_project_is_not_required_of_itself(tmp_path: Path) -> None:
    write(tmp_path, SETUPTOOLS + PROJECT + '[project.optional-dependencies]\nbench = ["c"]\nTest_Me = ["d"]\n')
    (tmp_path / "needs").mkdir()
    (tmp_path / "vendored").mkdir()
    (tmp_path / "bench.txt").write_text(
        "# what benchmarks need\n-r needs/more.txt\nb==2 \\\n  --hash=sha256:00\n-e .[bench, test-me]\n--pre\n"
    )
    (tmp_path / "needs" / "more.txt").write_text("--requirement ../bench.txt\n-c limits.txt\n./vendored\nfile-like>=1  # why\n.\n")
    (tmp_path / "needs" / "limits.txt").write_text("b<3\n")
    found = requirements.wanted(tmp_path, projects.read(tmp_path), ["bench.txt", "e", ".[bench]"], ())
    vendored = str((tmp_path / "vendored").resolve())
    assert found == Requirements(("a>=1", vendored, "file-like>=1", "b==2 --hash=sha256:00", "c", "d", "--pre", "e"), ("b<3",), "my-pack")


GROUPS = """
[dependency-groups]
Bench_Marks = ["b>=2 ; python_version > '3'", {include-group = "data"}, "c[x]", {include-group = "data"}]
data = ["numpy", "My.Pack[Fast]"]
alone = []
mistaken = ["b", {include-group = "bench_mark"}]
round = [{include-group = "Table"}]
table = ["b", {include-group = "round"}]
path = ["./vendored"]
other = [{include = "data"}]
none = "numpy"

[project.optional-dependencies]
fast = ["d", "my-pack[Faster]"]
faster = ["e", "my_pack[fast]"]
"""


@pytest.mark.parametrize("option", ["-f ", "--find-links ", "--find-links="])
def test_folders_of_packages_are_those_beside_the_file_that_names_them(option: str, tmp_path: Path) -> None:
    (tmp_path / "needs" / "wheels").mkdir(parents=True)
    (tmp_path / "needs" / "bench.txt").write_text(f"{option}wheels\n{option}https://host/wheels\n")
    wanted = requirements.wanted(tmp_path, projects.read(tmp_path), ["needs/bench.txt"], ())
    assert wanted.lines == (f"--find-links {tmp_path.resolve()}/needs/wheels", f"{option}https://host/wheels")


@pytest.mark.parametrize(
    ("configured", "lines"),
    [
        (["group:bench-marks"], ("b>=2 ; python_version > '3'", "numpy", "d", "e", "c[x]")),
        (["b<2", "group: DATA"], ("b<2", "numpy", "d", "e")),
        (["group:alone"], ()),
        (["my-pack"], ()),
        ([".[faster]"], ("e", "d")),
    ],
)
def test_groups_of_dependencies_are_required_with_what_they_include(tmp_path: Path, configured: list[str], lines: tuple[str, ...]) -> None:
    write(tmp_path, SETUPTOOLS + PROJECT + GROUPS)
    assert requirements.wanted(tmp_path, projects.read(tmp_path), configured, ()).lines == ("a>=1", *lines)


def test_groups_need_no_project_that_can_be_installed(tmp_path: Path) -> None:
    write(tmp_path, "[dependency-groups]\nbench = ['b']\n")
    (tmp_path / "requirements.txt").write_text("a\n")
    assert requirements.wanted(tmp_path, projects.read(tmp_path), ["group:bench"], ()).lines == ("b",)


@pytest.mark.parametrize(
    ("text", "group", "says"),
    [
        (GROUPS, "bench-mark", "requirements; did you mean 'Bench_Marks'?"),
        (GROUPS, "mistaken", "has no group 'bench_mark', which 'mistaken' includes"),
        (GROUPS, "xyz", "requirements; there are Bench_Marks, data, alone"),
        (GROUPS, "round", "has groups that include each other: round → table → round"),
        (GROUPS, "path", "has './vendored' in the group 'path', which is neither a requirement nor"),
        (GROUPS, "other", "has {'include': 'data'} in the group 'other'"),
        (GROUPS, "none", "has a group 'none' that is no list"),
        ("[dependency-groups]\na-b = []\nA_b = []\n", "a-b", "has two groups 'a-b' and 'A_b'"),
        ("", "bench", "has no group 'bench'; correct it"),
    ],
)
def test_a_group_that_cannot_be_required_is_an_error_that_says_why(tmp_path: Path, text: str, group: str, says: str) -> None:
    write(tmp_path, SETUPTOOLS + PROJECT + text)
    with pytest.raises(BuildError) as raised:
        requirements.wanted(tmp_path, projects.read(tmp_path), [f"group:{group}"], ())
    assert raised.value.slug == "python-group"
    assert says in str(raised.value)


def test_scripts_have_the_requirements_that_lie_beside_them(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("a\n")
    scripts = projects.read(tmp_path)
    assert requirements.wanted(tmp_path, scripts, [], ()).lines == ("a",)
    assert requirements.wanted(tmp_path, scripts, ["b"], ()).lines == ("b",)
    assert requirements.wanted(write(tmp_path, SETUPTOOLS + PROJECT), projects.read(tmp_path), [], ()).lines == ("a>=1",)


def test_a_requirements_file_that_is_not_there_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match=r"needs/bench\.txt cannot be read in this revision's tree \(No such file") as raised:
        requirements.wanted(tmp_path, projects.read(tmp_path), ["needs/bench.txt"], ())
    assert raised.value.slug == "python-requirements"


def test_what_workloads_are_run_by_is_required_unless_a_requirement_says_more(tmp_path: Path) -> None:
    commands = ["N=1 pytest -k bench", "python3.11 -m asv run", "python bench.py -m pytest.py", "./pytest.sh", "pytest 'open"]
    assert requirements.runners(commands) == ("asv", "pytest")
    scripts = projects.read(tmp_path)
    assert requirements.wanted(tmp_path, scripts, ["PyTest[x]<8"], ("asv", "pytest")).lines == ("PyTest[x]<8", "asv")


def described(folder: Path, **changed: object) -> str:
    """Return the path of a program that says what interpreters say."""
    says: dict[str, object] = {
        "executable": sys.executable,
        "implementation": "CPython",
        "version": [3, 11, 7],
        "says": "3.11.7",
        "is_free_threaded": False,
        "site_packages": "lib/python3.11/site-packages",
        "own_packages": [],
        "pip": None,
        "wheels": None,
        "include": [],
    }
    return program(folder, f"echo '{json.dumps({**says, **changed})}'")


def program(folder: Path, line: str) -> str:
    path = folder / "python3"
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"version": [3, 9, 18]}, "CPython 3.9.18"),
        ({"version": [3, 15, 0]}, "CPython 3.15.0"),
        ({"version": [3, 15, 0], "is_free_threaded": True}, "CPython 3.15.0"),
        ({"implementation": "PyPy"}, "PyPy 3.11.7"),
        ({"is_free_threaded": True}, "a free-threaded CPython 3.11.7"),
    ],
)
def test_an_interpreter_that_cannot_be_measured_is_named(tmp_path: Path, changed: dict[str, object], what: str) -> None:
    with pytest.raises(BuildError) as raised:
        interpreters.find(described(tmp_path, **changed), tmp_path, {})
    assert raised.value.slug == "python-unsupported"
    assert f"is {what}; " in str(raised.value)


def test_the_interpreter_on_path_is_taken_unless_one_is_named(tmp_path: Path) -> None:
    described(tmp_path, says="the one on PATH")
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    assert interpreters.find(None, tmp_path, environment).says == "the one on PATH"
    assert interpreters.find("./python3", tmp_path, {"PATH": ""}).says == "the one on PATH"
    assert interpreters.find(sys.executable, tmp_path, {}).says == sys.version
    assert interpreters.find(sys.executable, tmp_path, {}).executable.is_relative_to(sys.base_prefix)


@pytest.mark.parametrize(
    ("line", "says"), [("exit 3", "does not say what it is (exit code 3)"), ("echo Python 2.7", "does not say what it is (exit code 0)")]
)
def test_what_is_no_interpreter_is_told(tmp_path: Path, line: str, says: str) -> None:
    with pytest.raises(BuildError) as raised:
        interpreters.find(program(tmp_path, line), tmp_path, {})
    assert raised.value.slug == "no-interpreter"
    assert says in str(raised.value)


@pytest.mark.parametrize(
    ("named", "says"), [("python3.99", "was found on PATH; install it"), ("/no/python", "'/no/python' was found; install it")]
)
def test_an_interpreter_that_is_not_there_is_told(tmp_path: Path, named: str, says: str) -> None:
    with pytest.raises(BuildError) as raised:
        interpreters.find(named, tmp_path, dict(os.environ))
    assert raised.value.slug == "no-interpreter"
    assert says in str(raised.value)
