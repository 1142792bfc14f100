"""Versions that files of a project pin, where environments of base and head have one and the same."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path

import pytest

from perfdiff import pipeline
from perfdiff.analysis.findings import Verdict
from perfdiff.languages.php import packages
from perfdiff.languages.python import pins
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
    ],
)
def test_versions_are_read_from_each_kind_of_file(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text.format("1.2"))
    assert pins.pinned(tmp_path / name) == {"fast-keys": {"1.2"}}


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


def test_an_interpreter_that_head_pins_otherwise_is_not_followed(tmp_path: Path) -> None:
    assert unfollowed(tmp_path, "3.11\n", "3.13\n", name=".python-version", runs_open="other.py") == (".python-version",)


@pytest.mark.parametrize(("in_head", "names"), [("1.0", ("composer.lock",)), ("2.0", ())])
def test_what_composer_locks_otherwise_and_both_have_alike_is_not_followed(in_head: str, names: tuple[str, ...], tmp_path: Path) -> None:
    places = {side: tmp_path / f"{side}.lock" for side in range(2)}
    for side, file in places.items():
        file.write_text(json.dumps({"packages": [{"name": "a/b", "version": f"{side + 1}.0"}]}))
    assert packages.unfollowed({"composer.lock": places}, [{"a/b": "1.0"}, {"a/b": in_head}]) == names


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
