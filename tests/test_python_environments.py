"""Environments of Python projects: real interpreters and pip, with wheels that the tests make, so that no index is asked."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

import python_programs
from perfdiff.build.failures import read_failure
from perfdiff.config import BuildConfig, CompareConfig, Config
from perfdiff.errors import BuildError, StoreError
from perfdiff.languages.dependencies import changes, keep
from perfdiff.languages.protocol import Probe, Surroundings
from perfdiff.languages.python import backends, environments, installing, packages
from perfdiff.languages.python.environments import Environments, ProjectEnvironment
from perfdiff.languages.python.layout import Layout
from perfdiff.languages.python.pack import Python
from perfdiff.languages.python.projects import Project
from perfdiff.languages.python.requirements import Requirements
from perfdiff.languages.python.traits import PythonConfig
from perfdiff.records.schema import Note, Phase

BASE = Path(sys.base_prefix, "bin", f"python3.{sys.version_info.minor}")  # of the interpreter that runs the tests
SECOND_S = 1.0  # of CPU time, by far enough for a revision whose packages are there: 0.3 s were measured

PROJECT = """\
[build-system]
requires = ["{requires}"]
build-backend = "{backend}"
[project]
name = "the-pack"
version = "1.5"
dependencies = [{dependencies}]
[project.optional-dependencies]
Bench_Mark = ["other>=1"]
[project.scripts]
packed = "the_pack.tool:main"
[project.entry-points."the.plugins"]
one = "the_pack:one"
"""
# A back end in the tree, which knows what `pyproject.toml` does not say.
BACKEND = """\
import os, zipfile

def prepare_metadata_for_build_editable(folder, settings=None):
    os.makedirs(os.path.join(folder, "made-3.dist-info"))
    with open(os.path.join(folder, "made-3.dist-info", "METADATA"), "w") as file:
        file.write(METADATA)
    print("whatever back ends print")
    return "made-3.dist-info"

def build_editable(folder, settings=None, metadata=None):
    name = "made-3-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(folder, name), "w") as wheel:
        wheel.writestr("made.pth", os.path.join(os.getcwd(), "lib"))
        wheel.writestr("made-3.dist-info/METADATA", METADATA)
        wheel.writestr("made-3.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr("made-3.dist-info/RECORD", "")
    return name

METADATA = '''Metadata-Version: 2.1
Name: made
Version: 3
Requires-Dist: dep
Requires-Dist: missing; python_version < "3"
Requires-Dist: poetic (>=1,<2 || >=3) ; python_version < "3"
Requires-Dist: other; extra == "more"
'''
"""


class Ground:
    """A cache, an index of wheels, and revisions whose trees lie in builds of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.wheels = folder / "wheels"
        self.wheels.mkdir()
        self.cache = folder / "cache"
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": self.wheels.as_uri(),  # a list, in which spaces part
            "PIP_CONFIG_FILE": os.devnull,
        }

    def wheel(self, name: str, version: str, *, requires: str = "") -> None:
        """Put a wheel into the index, of a module that has its version, and of a script that prints its interpreter's prefix."""
        information = f"{name}-{version}.dist-info"
        requirement = f"Requires-Dist: {requires}\n" if requires else ""
        files = {
            f"{name}.py": f"import sys\nVERSION = {version!r}\ndef main(): print(sys.prefix)\n",
            f"{information}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requirement}",
            f"{information}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            f"{information}/entry_points.txt": f"[console_scripts]\n{name} = {name}:main\n",
        }
        with zipfile.ZipFile(self.wheels / f"{name}-{version}-py3-none-any.whl", "w") as archive:
            for file, text in {**files, f"{information}/RECORD": "".join(f"{file},,\n" for file in files)}.items():
                archive.writestr(file, text)

    def makes(self, config: PythonConfig | None = None, hook: str = "") -> Environments:
        return Environments(config or PythonConfig(str(BASE)), self.folder, self.environment, self.cache, hook)

    def revision(self, name: str, files: Mapping[str, str], makes: Environments | None = None) -> Revision:
        return Revision(self, self.folder / name, files, makes or self.makes())


class Revision:
    """A revision that was built: the variables of its build, and what was told."""

    def __init__(self, ground: Ground, beside: Path, files: Mapping[str, str], makes: Environments) -> None:
        self.beside, self.tree, self.ground = beside, beside / "source", ground
        write(self.tree, files)
        prepared = makes.prepare(beside, self.tree, self.tree, ground.environment)
        self.building, self.command = {**ground.environment, **prepared.variables}, prepared.command
        if self.command:
            subprocess.run(self.command, shell=True, cwd=self.tree, env=self.building, check=True, capture_output=True)
        self.notes: tuple[Note, ...] = makes.finish(beside, self.tree, self.tree, self.building)
        self.environment = environments.read(beside)

    def run(self, command: str, **variables: str) -> str:
        """Return what a command prints that runs as workloads do."""
        user = {**self.ground.environment, **variables}
        active = {**user, **environments.variables(self.environment.layout, user)}
        done = subprocess.run(command, shell=True, cwd=self.tree, env=active, check=True, capture_output=True, text=True)
        return done.stdout.strip()


def write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def project(*dependencies: str, backend: str = "setuptools.build_meta", requires: str = "setuptools", more: str = "") -> dict[str, str]:
    listed = ", ".join(f'"{each}"' for each in dependencies)
    return {
        "pyproject.toml": PROJECT.format(backend=backend, requires=requires, dependencies=listed) + more,
        "src/the_pack/__init__.py": "one = 1\n",
        "src/the_pack/tool.py": "import sys\ndef main(): print('packed', sys.prefix)\n",
    }


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path)


def error_of(call: Callable[[], object]) -> BuildError:
    with pytest.raises(BuildError) as raised:
        call()
    return raised.value


def test_scripts_run_in_an_environment_of_their_own(ground: Ground) -> None:
    revision = ground.revision(
        "base", {"show.py": "import os, sys\nprint(sys.prefix, os.environ['PYTHONHASHSEED'], 'stray' in ' '.join(sys.path))"}
    )
    assert revision.run("python show.py", PYTHONPATH="/stray", PYTHONHOME="/nowhere") == f"{revision.beside}/venv 0 False"
    assert revision.run("python3 show.py", PYTHONHASHSEED="7").split()[1] == "7"
    assert (revision.command, revision.notes, revision.environment.versions) == ("", (), {})


def test_modules_are_compiled_before_any_run_and_held_against_their_times(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "315532800")  # for which Python would hold them against digests
    revision = ground.revision(
        "base", {"a/b.py": "x = 1\n", "c.py": "import a.b\n", ".git/hook.py": "", "venv/pyvenv.cfg": "", "venv/d.py": ""}
    )
    made = sorted(path.relative_to(revision.tree).as_posix() for path in revision.tree.rglob("*.pyc"))
    tag = f"cpython-3{sys.version_info.minor}.pyc"
    assert made == [f"__pycache__/c.{tag}", f"a/__pycache__/b.{tag}"]
    compiled = (revision.tree / made[1]).read_bytes()
    assert int.from_bytes(compiled[4:8], "little") == 0, "held against a digest of the source at each start"
    revision.run("python c.py")
    assert (revision.tree / made[1]).read_bytes() == compiled


def test_byte_code_that_a_build_left_is_its_own_and_all_other_was_made_for_it(ground: Ground) -> None:
    left = f"__pycache__/own.cpython-3{sys.version_info.minor}.pyc"
    revision = ground.revision("base", {"own.py": "x = 1\n", left: "", "a/other.py": "x = 2\n"})
    [made] = revision.environment.byte_code
    assert made.startswith("a/__pycache__/other.")


def test_a_module_that_is_not_valid_is_told_and_stops_nothing(ground: Ground) -> None:
    revision = ground.revision("base", {"good.py": "print('good')", "bad.py": "x = 1\ndef f(:\n"})
    [note] = revision.notes
    assert note.slug == "python-syntax"
    assert "(bad.py, line 2: SyntaxError: invalid syntax)" in note.text
    assert revision.run("python good.py") == "good"


def test_many_modules_are_compiled_by_several_processes(ground: Ground) -> None:
    files = {f"m{number}.py": f"x = {number}" for number in range(150)} | {"bad.py": "("}
    revision = ground.revision("base", files)
    assert len(list(revision.tree.rglob("*.pyc"))) == 150
    assert [note.slug for note in revision.notes] == ["python-syntax"]


def test_a_project_is_imported_as_it_lies_with_version_scripts_and_plugins(ground: Ground) -> None:
    revision = ground.revision("base", project())
    assert revision.command == ""
    assert revision.run("packed") == f"packed {revision.beside}/venv"
    assert revision.run("cd / && python -c 'import the_pack; print(the_pack.__file__)'") == str(revision.tree / "src/the_pack/__init__.py")
    asked = "from importlib.metadata import *; print(version('the-pack'), [point.load() for point in entry_points(group='the.plugins')])"
    assert revision.run(f'python -c "{asked}"') == "1.5 [1]"
    assert "the-pack" in revision.run("pip list")
    assert revision.environment.versions == {}, "the project is no dependency of its own"


def test_revisions_that_ask_for_the_same_share_it(ground: Ground) -> None:
    ground.wheel("dep", "1.0", requires="other")
    ground.wheel("other", "2.0")
    base = ground.revision("base", project("dep"))
    shutil.rmtree(ground.wheels)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    head = ground.revision("head", {**project("dep"), "src/the_pack/new.py": ""})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < SECOND_S
    assert base.environment.packages == head.environment.packages
    assert base.environment.versions == head.environment.versions == {"dep": "1.0", "other": "2.0"}
    for revision in (base, head):
        assert revision.run("python -c 'import dep, other; print(dep.VERSION, other.VERSION)'") == "1.0 2.0"
        assert revision.run("dep") == f"{revision.beside}/venv", "scripts of packages run in the revision's environment"


def test_a_path_may_be_long_and_have_spaces(tmp_path: Path) -> None:
    folder = tmp_path / f"with a space {'x' * 100}"
    folder.mkdir()
    ground = Ground(folder)
    ground.wheel("dep", "1.0")
    revision = ground.revision("base", project("dep"))
    assert revision.run("dep") == f"{revision.beside}/venv"
    assert revision.run("packed") == f"packed {revision.beside}/venv"


def test_versions_that_differ_between_revisions_are_told(ground: Ground) -> None:
    for version in ("1.0", "2.0"):
        ground.wheel("dep", version)
    ground.wheel("other", "1")
    ground.wheel("lost", "1")
    base = ground.revision("base", project("dep<2", "lost"))
    head = ground.revision("head", project("dep", "other"))
    found = changes(environments.read(base.beside).versions, environments.read(head.beside).versions)
    assert [change.says for change in found] == [
        "now uses dep 2.0, was 1.0",
        "does without lost, was 1",
        "now uses other 1, which it did not before",
    ]
    assert changes(environments.read(base.beside).versions, environments.read(base.beside).versions) == ()


def test_pip_of_a_build_installs_into_the_revision_alone(ground: Ground) -> None:
    for version in ("1.0", "2.0"):
        ground.wheel("dep", version)
    base = ground.revision("base", project("dep<2"))
    subprocess.run("pip install 'dep==2.0'", shell=True, cwd=base.tree, env=base.building, check=True, capture_output=True)
    head = ground.revision("head", project("dep<2"))
    shown = "python -c 'import dep; print(dep.VERSION)'"
    assert (base.run(shown), head.run(shown)) == ("2.0", "1.0")


@pytest.mark.parametrize("tool", ["maker", "setuptools"])
def test_isolated_build_of_pip_has_what_it_asks_for_and_not_what_the_environment_has(ground: Ground, tool: str) -> None:
    """Both of packages that are required, and of setuptools, which up to Python 3.11 each environment has."""
    for name, version in (("maker", "1.0"), (tool, "99.0")):
        ground.wheel(name, version)
    revision = ground.revision("base", project("maker<2"))
    system = f'[build-system]\nrequires = ["{tool}>=99"]\nbuild-backend = "builds"\nbackend-path = ["."]\n'
    backend = f"import {tool}, os, pathlib\npathlib.Path(os.environ['SEEN']).write_text({tool}.VERSION)\n{BACKEND}"
    write(revision.tree / "isolated", {"pyproject.toml": system, "builds.py": backend, "lib/made.py": ""})
    seen = revision.tree / "seen"
    variables = {**revision.building, "SEEN": str(seen)}
    subprocess.run("pip install --no-deps -e ./isolated", shell=True, cwd=revision.tree, env=variables, check=True, capture_output=True)
    assert seen.read_text() == "99.0"
    assert revision.run("python -c 'import maker; print(maker.VERSION)'") == "1.0"


def test_a_package_that_cannot_be_had_is_an_error_with_what_pip_says(ground: Ground) -> None:
    error = error_of(lambda: ground.revision("base", project("dep>=3")))
    assert error.slug == "python-dependency"
    assert "No matching distribution found for dep>=3" in str(error)
    assert "Could not find a version" in error.detail
    ground.wheel("dep", "3.1")
    assert ground.revision("again", project("dep>=3")).environment.versions == {"dep": "3.1"}


def test_what_is_optional_and_cannot_be_had_is_left_out_and_told(ground: Ground) -> None:
    for name in ("dep", "first", "last"):
        ground.wheel(name, "1.0")
    makes = ground.makes(PythonConfig(str(BASE), optional=("first", "absent", "dep>=2", "last")))
    base = ground.revision("base", project("dep"), makes)
    assert base.environment.versions == {"dep": "1.0", "first": "1.0", "last": "1.0"}
    (note,) = base.notes
    assert note.slug == "requirements-left-out"
    assert "absent, dep>=2 cannot be installed" in note.text
    assert ground.revision("head", project("dep"), makes).environment.folders[1:] == base.environment.folders[1:]
    assert error_of(lambda: ground.revision("again", project("dep>=3"), makes)).slug == "python-dependency"


def test_what_the_tests_of_an_old_revision_alone_need_is_there(ground: Ground) -> None:
    for name, version in (("dep", "1.0"), ("dep", "2.0"), ("former", "3.0")):
        ground.wheel(name, version)
    old = {**project(), "requirements/tests.txt": "dep<2\nformer[fast]>=2; python_version > '3'\n./folder\n"}
    declared = PythonConfig(str(BASE), optional=("dep",))
    assert ground.revision("base", old, ground.makes(declared)).environment.versions == {"dep": "2.0", "former": "3.0"}
    assert ground.revision("head", old, ground.makes(PythonConfig(str(BASE)))).environment.versions == {}


def test_what_cannot_be_had_among_many_costs_few_attempts() -> None:
    attempts: list[Sequence[str]] = []

    def install(lines: Sequence[str], _: float = 0.0) -> None:
        attempts.append(lines)
        if "absent" in lines:
            raise BuildError("no", slug="python-dependency")

    optional = [*(f"some{number}" for number in range(20)), "absent", *(f"more{number}" for number in range(11))]
    assert packages._install_all(install, Requirements(("dep",), optional=tuple(optional))) == ["absent"]
    assert attempts[-1] == ["dep", *(name for name in optional if name != "absent")]
    assert len(attempts) == 2 + 2 * 5


def test_packages_of_the_users_own_serve_where_none_can_be_installed(ground: Ground) -> None:
    ground.wheel("dep", "1.0", requires="other>=2; python_version > '3'")
    ground.wheel("other", "2.0")
    own = ground.revision("own", project("dep"))
    subprocess.run(
        "pip install dep", shell=True, cwd=own.tree, env={**own.building, "PIP_IGNORE_INSTALLED": "1"}, check=True, capture_output=True
    )
    shutil.rmtree(ground.wheels)
    shutil.rmtree(ground.cache)
    makes = ground.makes(PythonConfig(str(own.environment.layout.python)))
    revision = ground.revision("base", project("dep>=1"), makes)
    assert [note.slug for note in revision.notes] == ["python-packages"]
    assert revision.run("python -c 'import dep; print(dep.VERSION, dep.__file__)'") == f"1.0 {own.environment.layout.site_packages}/dep.py"
    assert error_of(lambda: ground.revision("head", project("dep>=2"), makes)).slug == "python-dependency"


def test_a_project_that_only_its_back_end_knows_is_installed_by_it(ground: Ground) -> None:
    ground.wheel("dep", "1.0")
    ground.wheel("other", "2.0")
    system = '[build-system]\nrequires = []\nbuild-backend = "builds"\nbackend-path = ["own"]\n'
    files = {"pyproject.toml": system, "own/builds.py": BACKEND, "lib/made.py": "import dep, other"}
    revision = ground.revision("base", files, ground.makes(PythonConfig(str(BASE), (".[more]",))))
    assert revision.command == "python -m pip install --no-deps --no-build-isolation --editable ."
    assert revision.run("cd / && python -c 'import made; print(made.__file__)'") == str(revision.tree / "lib/made.py")
    assert revision.environment.versions == {"dep": "1.0", "other": "2.0"}


@pytest.mark.parametrize(
    ("backend", "editable", "command"),
    [
        ("mesonpy", None, "--config-settings=build-dir=build/perfdiff ."),
        ("mesonpy", True, "--config-settings=build-dir=build/perfdiff --editable ."),
        ("scikit_build_core.build", None, "--config-settings=build-dir=build/perfdiff --editable ."),
        ("scikit_build_core.build", False, "--config-settings=build-dir=build/perfdiff ."),
        ("setuptools.build_meta", None, "--editable ."),
    ],
)
def test_back_ends_that_compile_elsewhere_are_told_a_folder_of_the_tree(backend: str, editable: bool | None, command: str) -> None:
    """And what would be built again at each start of a program is not installed so unless asked."""
    made = Project(name="made", version="1", requirements=(), roots=None, backend=backend)
    assert backends.installation(made, is_prepared=False, is_editable=editable) == f"python -m pip install {command}"
    prepared = backends.installation(made, is_prepared=True, is_editable=editable)
    assert prepared == f"python -m pip install --no-deps --no-build-isolation {command}"


def test_a_back_end_that_tells_nothing_is_prepared_where_the_files_of_the_project_tell_all(ground: Ground) -> None:
    """As meson-python, which has none of the hooks that would tell what the project is."""
    ground.wheel("other", "2.0")
    start, _, rest = BACKEND.partition("def prepare_metadata_for_build_editable")
    silent = start + "def build_editable" + rest.partition("def build_editable")[2]
    system = '[build-system]\nrequires = []\nbuild-backend = "builds"\nbackend-path = ["own"]\n'
    tree = ground.folder / "base" / "source"
    write(tree, {"pyproject.toml": f'{system}[project]\nname = "made"\nversion = "1"\n', "own/builds.py": silent})
    prepared = ground.makes().prepare(tree.parent, tree, tree, ground.environment)
    assert prepared.command == "python -m pip install --no-deps --no-build-isolation --editable ."


def test_copies_of_compiled_modules_lead_back_to_the_tree(tmp_path: Path) -> None:
    """So that they are what is linked in other layouts; others stay."""
    tree, installed = tmp_path / "source", tmp_path / "venv/lib/site-packages"
    write(tree, {"build/a.so": "code", "build/b.so": "codes"})
    write(installed, {"a.so": "code", "b.so": "other", "words/a.so": "code"})
    installing.lead_back(Layout(tmp_path / "venv", installed), tree)
    assert (installed / "a.so").resolve() == (installed / "words/a.so").resolve() == tree / "build/a.so"
    assert not (installed / "b.so").is_symlink()


def test_what_requires_the_project_brings_no_other_version_of_it(ground: Ground) -> None:
    ground.wheel("dep", "1.0", requires="made")
    ground.wheel("made", "9.0")
    ground.wheel("other", "2.0")
    system = '[build-system]\nrequires = []\nbuild-backend = "builds"\nbackend-path = ["own"]\n'
    files = {"pyproject.toml": system, "own/builds.py": BACKEND, "lib/made.py": ""}
    revision = ground.revision("base", files)
    assert revision.run("cd / && python -c 'import dep, made; print(made.__file__)'") == str(revision.tree / "lib/made.py")
    asked = "from importlib.metadata import *; print([each.version for each in distributions(name='made')])"
    assert revision.run(f'python -c "{asked}"') == "['3']"
    assert revision.environment.versions == {"dep": "1.0"}
    shared = ground.revision("user", project("dep"))
    assert shared.environment.versions == {"dep": "1.0", "made": "9.0"}, "another project's revisions have it"


def test_a_back_end_that_fails_is_left_to_the_build_to_tell(ground: Ground) -> None:
    tree = ground.folder / "base" / "source"
    write(tree, {"pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "nosuch"\n'})
    makes = ground.makes()
    prepared = makes.prepare(tree.parent, tree, tree, ground.environment)
    assert prepared.command == "python -m pip install --editable ."


def test_a_hook_is_followed_at_each_start(ground: Ground) -> None:
    revision = ground.revision("base", {"a.py": "print(hooked)"}, ground.makes(hook="import builtins; builtins.hooked = 'hooked'\n"))
    assert revision.run("python a.py") == "hooked"


def test_an_environment_whose_packages_are_gone_is_known(ground: Ground) -> None:
    ground.wheel("dep", "1.0")
    base = ground.revision("base", project("dep"))
    makes = ground.makes()
    assert makes.broken(base.beside) is None
    shutil.rmtree(ground.cache)
    assert "are not as they were installed" in (makes.broken(base.beside) or "")
    (base.beside / "environment.json").write_text("{}")
    with pytest.raises(StoreError, match="is damaged"):
        makes.broken(base.beside)


def test_an_environment_that_was_copied_to_another_place_is_known(ground: Ground) -> None:
    base = ground.revision("base", {"a.py": ""})
    copied = ground.folder / "copied"
    shutil.copytree(base.beside, copied, symlinks=True)
    assert ground.makes().broken(base.beside) is None
    assert f"was made in {base.beside}" in (ground.makes().broken(copied) or "")


def test_what_a_build_depends_on_names_interpreter_and_settings(ground: Ground) -> None:
    plain = ground.makes().identity
    assert sys.version in plain
    assert plain == ground.makes().identity
    assert len({plain, ground.makes(PythonConfig(str(BASE), ("dep",))).identity, ground.makes(hook="x").identity}) == 3


@pytest.mark.parametrize("minor", [10, 11, 12, 13])
def test_every_supported_interpreter_has_environments(ground: Ground, minor: int) -> None:
    name = f"python3.{minor}"
    program = shutil.which(name)
    if program is None or subprocess.run([program, "--version"], capture_output=True, check=False).returncode != 0:
        pytest.skip(f"no {name} here")
    ground.wheel("dep", "1.0")
    revision = ground.revision("base", project("dep"), ground.makes(PythonConfig(name)))
    assert revision.run("python -c 'import sys, dep, the_pack; print(*sys.version_info[:2])'") == f"3 {minor}"
    assert revision.run("packed") == f"packed {revision.beside}/venv"


def test_probes_are_budgeted_by_how_the_interpreter_is_followed(tmp_path: Path) -> None:
    pack = Python(Config(BuildConfig("true"), ()), Surroundings(tmp_path, tmp_path, {"PATH": ""}))
    costs = {}
    for release in ("3.11.7", "3.12.1"):
        (tmp_path / release).mkdir()
        keep(tmp_path / release / "environment.json", ProjectEnvironment(tmp_path, Layout(tmp_path, tmp_path), None, (), release, {}))
        costs[release] = pack.probe_costs(SimpleNamespace(beside=tmp_path / release))
    evaluated, monitored = costs["3.11.7"], costs["3.12.1"]
    # The interpreter's own monitoring is a call of two functions of ours; an evaluator lets calls pass by a jump.
    assert evaluated.passed_ns < evaluated.counted_ns < evaluated.timed_ns < monitored.timed_ns
    assert monitored.passed_ns > evaluated.counted_ns


@pytest.mark.parametrize(
    ("module", "cause", "remedy"),
    [
        ("pkg_resources", "setuptools has had no pkg_resources since release 82", "pip install 'setuptools<82'"),
        ("distutils", "Python has had no module 'distutils' since 3.12", "an older `interpreter`"),
        ("Cython.Build", "Python found no module 'Cython.Build'", "--no-build-isolation"),
    ],
)
def test_which_module_a_build_lacks_is_read_off_its_log(tmp_path: Path, module: str, cause: str, remedy: str) -> None:
    log = tmp_path / "log"
    log.write_text(f"first\n  File \"setup.py\", line 9, in <module>\nModuleNotFoundError: No module named '{module}'\nlast\n")
    found = read_failure(log, tmp_path)
    assert found.cause == cause
    assert remedy in found.remedy
    assert module in found.excerpt


def test_a_module_that_a_script_does_without_is_not_why_a_build_failed(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("ModuleNotFoundError: No module named 'docs'\nbuilding without documents\na.c:3: error: expected ';'\n")
    assert read_failure(tmp_path / "log", tmp_path).cause == "a.c:3: error: expected ';'"


def test_environments_are_alike_but_for_where_they_lie(ground: Ground) -> None:
    def made(name: str, *plugins: str) -> Path:
        more = "".join(f'{plugin} = "the_pack:{plugin}"\n' for plugin in plugins)
        return ground.revision(name, project(more=more)).beside

    base = made("base", "two", "three")
    assert [environments.are_alike(base, made(*names)) for names in (("same", "two", "three"), ("head", "three", "two"))] == [True, False]


def test_what_a_back_end_installs_is_alike_but_for_where_it_lies(ground: Ground) -> None:
    ground.wheel("dep", "1.0")
    files = {
        "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "back"\nbackend-path = ["."]\n',
        "back.py": BACKEND,
        "lib/made.py": "",
    }
    base, same = (ground.revision(name, files).beside for name in ("base", "same"))
    head = ground.revision("head", {**files, "back.py": BACKEND.replace("Version: 3", "Version: 3\nSummary: more")}).beside
    assert [environments.are_alike(base, other) for other in (same, head)] == [True, False]


@pytest.mark.parametrize(("memory", "slowdown"), [(None, 4.0), (0.1, 12.0)])
def test_memory_is_followed_to_the_end_where_it_is_asked_after(
    memory: float | None, slowdown: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = Config(BuildConfig("true"), (), compare=CompareConfig(memory=memory))
    pack = Python(config, Surroundings(tmp_path, tmp_path, {"PATH": ""}))
    keep(tmp_path / "environment.json", ProjectEnvironment(tmp_path, Layout(tmp_path, tmp_path), None, (), "3.11.7", {}))
    monkeypatch.setattr("perfdiff.languages.python.extension.build_counting", lambda *_: tmp_path / "module")
    monkeypatch.setattr("perfdiff.languages.c.runtime_library.below", lambda *_: tmp_path)
    monkeypatch.setattr(pack, "_places", lambda *_: None)
    (tmp_path / "main.py").write_text("def f(): pass\n")
    function = python_programs.definition(tmp_path, "main.py", "f", ())
    built = SimpleNamespace(beside=tmp_path, tree=tmp_path, commands=())
    variables = pack.attach(Phase.COUNTED, built, [Probe(1, function, (), ())], tmp_path)
    assert (variables.get("PERFDIFF_LASTING"), pack.slowdown) == (memory and "1", slowdown)
