"""What users of a project install, and builds of base and head do not follow: versions that files pin, files that are left out."""

from __future__ import annotations

import json
import os
import platform
import sys
import zipfile
from pathlib import Path

import pytest

from perfdiff import pipeline
from perfdiff.analysis.findings import Verdict
from perfdiff.languages.php import packages
from perfdiff.languages.python import distributions, pins, projects
from perfdiff.languages.python.environments import ProjectEnvironment
from perfdiff.languages.python.layout import Layout
from perfdiff.progress import Silent
from perfdiff.report.sentences.catalogue import say
from programs import by_whole_runs, first_two

UV = '[[package]]\nname = "Fast_Keys"\nversion = "{}"\n'
LISTED = "fast-keys[all]=={} ; python_version > '3' # why\nother>=1\n"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("uv.lock", UV),
        ("pylock.toml", UV.replace("package", "packages")),
        ("Pipfile.lock", '{{"_meta": {{}}, "default": {{"fast-keys": {{"version": "{}"}}, "own": {{"editable": true}}}}}}'),
        ("requirements-bench.txt", LISTED),
        ("requirements.lock", LISTED),
        ("environment.yml", "dependencies:\n  - python=3.11\n  - fast-keys={}=py_0\n  - pip:\n    - other>=1\n"),
    ],
)
def test_versions_are_read_from_each_kind_of_file(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text.format("1.2"))
    assert pins.pinned(tmp_path / name) == {"fast-keys": {"1.2"}} | ({"python": {"3.11"}} if name == "environment.yml" else {})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (".python-version", "{}\n"),
        (".tool-versions", "nodejs 20\npython {}\n"),
        ("runtime.txt", "python-{}\n"),
        ("environment.yaml", "dependencies:\n- python={}\n- numpy\n"),
        ("Dockerfile", "FROM docker.io/library/python:{}-slim AS build\nRUN make\n"),
    ],
)
def test_interpreters_are_read_from_each_kind_of_file(name: str, text: str, tmp_path: Path) -> None:
    files = tmp_path / "base", tmp_path / "head"
    for written, is_told in (("3.12", False), ("3.8", True)):
        files[0].write_text(f"# kept\n{text.format('3.12')}" if name != ".python-version" else text.format("3.12"))
        files[1].write_text(text.format(written))
        assert pins.interpreters({name: files}) == ((name,) if is_told else ())
    files[0].write_text("")
    assert pins.interpreters({name: files}) == ()


def test_several_versions_of_one_package_are_one_pin(tmp_path: Path) -> None:
    (tmp_path / "uv.lock").write_text(UV.format(1) + UV.format(2))
    assert pins.pinned(tmp_path / "uv.lock") == {"fast-keys": {"1", "2"}}


@pytest.mark.parametrize("text", ["[[package]\n", "[[package]]\nversion = [\n", "\0\udcff"])
def test_what_cannot_be_read_pins_nothing(text: str, tmp_path: Path) -> None:
    (tmp_path / "uv.lock").write_bytes(text.encode(errors="surrogateescape"))
    assert pins.pinned(tmp_path / "uv.lock") == {}


def unfollowed(
    room: Path, base: str, head: str, *, name: str = "uv.lock", runs_open: str | None = None, in_head: str = "1"
) -> tuple[str, ...]:
    """Return what is not followed, where base has version 1 of the package, and runs open a file, or are not known."""
    site = room / "site-packages"
    (site / "fast_keys-1.dist-info").mkdir(parents=True)
    (site / "fastkeys.py").touch()  # a finder of packages that other libraries bring leaves out what is not there
    (site / "fast_keys-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: fast-keys\nVersion: 1\n")
    (site / "fast_keys-1.dist-info" / "RECORD").write_text("fastkeys.py,,\nfast_keys-1.dist-info/METADATA,,\n")
    made = [ProjectEnvironment(room, Layout(room, site), None, (), "3.11.7", {"fast-keys": version}) for version in ("1", in_head)]
    for side, text in (("base", base), ("head", head)):
        (room / side).mkdir()
        (room / side / Path(name).name).write_text(text)
    places = {side: room / folder / Path(name).name for side, folder in enumerate(("base", "head"))}
    return pins.unfollowed({name: places}, made, None if runs_open is None else [str(site.resolve() / runs_open)])


def test_files_that_pin_other_versions_of_what_both_have_alike_are_not_followed(tmp_path: Path) -> None:
    assert unfollowed(tmp_path, UV.format(1), UV.format(2)) == ("uv.lock",)


@pytest.mark.parametrize("runs_open", ["fastkeys.py", "__pycache__/fastkeys.cpython-311.pyc"])
def test_packages_that_runs_open_are_used(runs_open: str, tmp_path: Path) -> None:
    assert unfollowed(tmp_path, UV.format(1), UV.format(2), runs_open=runs_open) == ("uv.lock",)


@pytest.mark.parametrize("runs_open", ["other.py", "fast_keys-1.dist-info/METADATA"])
def test_packages_that_no_run_imports_leave_the_news_good(runs_open: str, tmp_path: Path) -> None:
    assert unfollowed(tmp_path, UV.format(1), UV.format(2), runs_open=runs_open) == ()


def test_environments_that_differ_as_the_files_do_have_followed(tmp_path: Path) -> None:
    assert unfollowed(tmp_path, UV.format(1), UV.format(2), in_head="2") == ()


@pytest.mark.parametrize(
    ("name", "base", "head"),
    [
        ("uv.lock", UV.format(1), UV.format(1) + "# checked\n"),
        ("docs/uv.lock", UV.format(1), UV.format(2)),
        ("uv.txt", LISTED, LISTED + "x==1\n"),
    ],
)
def test_files_that_pin_the_same_or_that_nobody_installs_from_are_left_out(name: str, base: str, head: str, tmp_path: Path) -> None:
    assert unfollowed(tmp_path, base, head, name=name) == ()


@pytest.mark.parametrize(("in_head", "names"), [("1.0", ("composer.lock",)), ("2.0", ())])
def test_what_composer_locks_otherwise_and_both_have_alike_is_not_followed(in_head: str, names: tuple[str, ...], tmp_path: Path) -> None:
    places = {side: tmp_path / f"{side}.lock" for side in range(2)}
    for side, file in places.items():
        file.write_text(json.dumps({"packages": [{"name": "a/b", "version": f"{side + 1}.0"}]}))
    assert packages.unfollowed({"composer.lock": places}, [{"a/b": "1.0"}, {"a/b": in_head}]) == names


PROJECT = "[build-system]\nrequires = ['{backend}']\n[tool.{tool}]\n{settings}\n"


@pytest.mark.parametrize(
    ("backend", "tool", "settings"),
    [
        ("setuptools", "setuptools.package-data", "app = ['table.json']"),
        ("hatchling", "hatch.build.targets.wheel", "exclude = ['table.json']"),
        ("poetry-core", "poetry", "exclude = ['table.json']"),
    ],
)
def test_settings_of_files_that_are_installed_are_not_followed_in_a_tree(backend: str, tool: str, settings: str, tmp_path: Path) -> None:
    for side, own in enumerate((settings, "")):
        (tmp_path / str(side)).mkdir()
        (tmp_path / str(side) / "pyproject.toml").write_text(PROJECT.format(backend=backend, tool=tool, settings=own))
    places = {"pyproject.toml": {side: tmp_path / str(side) / "pyproject.toml" for side in range(2)}}
    assert projects.otherwise_installed(places) == ("pyproject.toml",)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("setup.py", "from setuptools import setup\nsetup(name='app', package_data={{'app': ['{}']}})\n"),
        ("setup.cfg", "[options]\npackages = app\n[options.package_data]\napp = {}\n"),
        ("setup.cfg", "[options]\ninclude_package_data = {}\n"),
    ],
)
def test_settings_of_setuptools_are_read_from_its_own_files(name: str, text: str, tmp_path: Path) -> None:
    for side, own in enumerate(("1", "0")):
        (tmp_path / str(side)).mkdir()
        (tmp_path / str(side) / name).write_text(text.format(own))
    places = {side: tmp_path / str(side) / name for side in range(2)}
    assert projects.otherwise_installed({name: places}) == (name,)
    places[1].write_text(text.format("1") + "\n# checked\n")
    assert projects.otherwise_installed({name: places}) == ()


def test_other_settings_are_of_no_file_that_is_installed(tmp_path: Path) -> None:
    for side in range(2):
        (tmp_path / str(side)).mkdir()
        (tmp_path / str(side) / "pyproject.toml").write_text(
            f"[project]\nname = 'app'\nversion = '{side}'\n[tool.ruff]\nline-length = {side}\n"
        )
    places = {"pyproject.toml": {side: tmp_path / str(side) / "pyproject.toml" for side in range(2)}}
    assert projects.otherwise_installed(places) == ()
    assert projects.otherwise_installed({**places, "MANIFEST.in": {1: tmp_path / "1" / "MANIFEST.in"}}) == ("MANIFEST.in",)


JOB = "import sys\nimport fastkeys\nprint(sum(fastkeys.distinct(int(sys.argv[1]))))\n"
TOML = """
measure.budget_s = 3
counters.software = false
python.requirements = ["fast-keys"]
[[workload]]
name = "job"
command = "python job.py {n}"
parameters.n = [10000, 100000]
"""


@pytest.mark.integration
def test_a_lock_file_that_no_environment_follows_leaves_the_answer_open(tmp_path: Path) -> None:
    for version, body in (("1", "return range(n)"), ("2", "return [i for i in range(n) for _ in range(9)][::9]")):
        files = {
            "fastkeys.py": f"def distinct(n):\n    {body}\n",
            f"fast_keys-{version}.dist-info/METADATA": f"Metadata-Version: 2.1\nName: fast-keys\nVersion: {version}\n",
            f"fast_keys-{version}.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        }
        with zipfile.ZipFile(tmp_path / f"fast_keys-{version}-py3-none-any.whl", "w") as archive:
            for file, text in {**files, f"fast_keys-{version}.dist-info/RECORD": "".join(f"{file},,\n" for file in files)}.items():
                archive.writestr(file, text)
    variables = {**os.environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": tmp_path.as_uri(), "PIP_CONFIG_FILE": os.devnull}
    history = ({"job.py": JOB, "uv.lock": UV.format(1), "perfdiff.toml": TOML}, {"uv.lock": UV.format(2)})
    found = pipeline.compare(by_whole_runs(first_two(tmp_path, history, variables)), Silent()).findings
    assert found.verdict is Verdict.INCONCLUSIVE, say(found.sentence)
    assert "`uv.lock` pins other versions in head" in say(found.sentence)


DATA = """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"
[project]
name = "app"
version = "1"
[tool.setuptools]
packages = ["app"]
"""


@pytest.mark.parametrize(
    ("base", "head", "command", "is_told"),
    [
        ("app.cli:main", "app.cli:slow", "python -m app {n}", True),
        ("app.cli:main", "app.cli:main", "python -m app {n}", False),
        ("app.cli:main", "app.cli:slow", "app {n}", False),  # it is run, and timed
        ("app.cli:main", "app.cli:slow", "app-old {n}", True),
        ("app.cli:begin", "app.cli:slow", "python -m app {n}", False),  # head has renamed it
        ("app:main", "app.cli:slow", "python -m app {n}", True),
        ("app.old:main", "app.cli:main", "python -m app {n}", False),
    ],
)
def test_commands_that_start_another_function_than_base_s_which_is_still_there(
    base: str, head: str, command: str, is_told: bool, tmp_path: Path
) -> None:
    (tmp_path / "src/app").mkdir(parents=True)
    (tmp_path / "src/app/__init__.py").write_text("from app.cli import main, slow\n")
    (tmp_path / "src/app/cli.py").write_text("def main():\n    pass\n\n\nslow = main\n")
    for side, start in (("base", base), ("head", head)):
        information = tmp_path / side / "app-1.dist-info"
        information.mkdir(parents=True)
        (information / "METADATA").write_text("Metadata-Version: 2.1\nName: app\nVersion: 1\n")
        (information / "entry_points.txt").write_text(f"[console_scripts]\napp = {start}\n[app.plugins]\nfast = app:{side}\n")
    offered = distributions.otherwise_started([tmp_path / "base"], [tmp_path / "head"], tmp_path, [command])
    assert offered == (("app",) if is_told else ())


PACKAGE = """
import pathlib
FILE = pathlib.Path(__file__).with_name("table.txt")
TABLE = FILE.read_text().split() if FILE.exists() else [str(sum(range(i))) for i in range(2000)]
"""


@pytest.mark.integration
def test_data_that_head_leaves_out_of_its_installation_leaves_the_answer_open(tmp_path: Path) -> None:
    toml = TOML.replace('python.requirements = ["fast-keys"]\n', "").replace("job.py", "bench/job.py")
    files = {
        "app/__init__.py": PACKAGE,
        "app/table.txt": " ".join(str(sum(range(i))) for i in range(2000)),
        "bench/job.py": "import sys\nimport app\nprint(sum(len(app.TABLE[i % 2000]) for i in range(int(sys.argv[1]))))\n",
        "pyproject.toml": DATA + "package-data = { app = ['table.txt'] }\n",
        "perfdiff.toml": toml,
    }
    found = pipeline.compare(by_whole_runs(first_two(tmp_path, (files, {"pyproject.toml": DATA}))), Silent()).findings
    assert found.verdict is Verdict.INCONCLUSIVE, say(found.sentence)
    assert "say otherwise in `pyproject.toml` which files users get" in say(found.sentence)


@pytest.mark.integration
@pytest.mark.parametrize(("settings", "verdict"), [("", Verdict.INCONCLUSIVE), ("python.interpreter = '{}'\n", Verdict.UNCHANGED)])
def test_an_interpreter_that_head_alone_asks_for_leaves_the_answer_open_unless_it_is_named(
    settings: str, verdict: Verdict, tmp_path: Path
) -> None:
    toml = settings.format(sys.executable) + TOML.replace('python.requirements = ["fast-keys"]\n', "")
    files = {"job.py": "import sys\nprint(sum(range(int(sys.argv[1]))))\n", ".python-version": "3.11\n", "perfdiff.toml": toml}
    variables = {**os.environ, "PYENV_VERSION": platform.python_version()}
    found = pipeline.compare(by_whole_runs(first_two(tmp_path, (files, {".python-version": "3.12\n"}), variables)), Silent()).findings
    assert found.verdict is verdict, say(found.sentence)
    assert ("ask for other interpreters in `.python-version`" in say(found.sentence)) == (not settings)


@pytest.mark.integration
def test_a_command_of_users_that_starts_another_function_leaves_the_answer_open(tmp_path: Path) -> None:
    toml = TOML.replace('python.requirements = ["fast-keys"]\n', "")
    scripts = DATA + "[project.scripts]\napp = 'app:main'\n"
    package = (
        "def run(n):\n    print(sum(i % 7 for i in range(100 * n)))\n\ndef main():\n    run(9)\n\ndef twice():\n    main()\n    main()\n"
    )
    job = "import sys\nimport app\napp.run(int(sys.argv[1]))\n"
    files = {"app/__init__.py": package, "job.py": job, "pyproject.toml": scripts, "perfdiff.toml": toml}
    found = pipeline.compare(
        by_whole_runs(first_two(tmp_path, (files, {"pyproject.toml": scripts.replace("main", "twice")}))), Silent()
    ).findings
    assert found.verdict is Verdict.INCONCLUSIVE, say(found.sentence)
    assert "`app`, which users call, starts another function" in say(found.sentence)
