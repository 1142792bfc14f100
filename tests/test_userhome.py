"""The home that builds and runs find: by links what the user's has, and what is new stays with the build."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from perfdiff import pipeline
from perfdiff.analysis.findings import Verdict
from perfdiff.build import userhome
from perfdiff.progress import Silent
from programs import by_whole_runs, first_two


@pytest.fixture
def user(tmp_path: Path) -> Path:
    """Return a home with a file, a cache of one program, and a folder."""
    home = tmp_path / "user"
    (home / ".cache" / "tool").mkdir(parents=True)
    (home / ".cache" / "tool" / "words").write_text("one")
    (home / ".profile").write_text("here")
    (home / "work").mkdir()
    return home


@pytest.fixture
def beside(tmp_path: Path) -> Path:
    """Return the folder of a build."""
    folder = tmp_path / "build"
    folder.mkdir()
    return folder


def test_a_home_has_what_the_users_has_and_keeps_what_is_new(user: Path, beside: Path) -> None:
    userhome.lay_out(beside, {"HOME": str(user)})
    home = beside / userhome.NAME
    assert (home / ".profile").read_text() == "here"
    assert (home / ".cache" / "tool" / "words").read_text() == "one"
    assert not (home / ".cache").is_symlink()
    assert userhome.is_untouched(beside)
    (home / ".cache" / "new").write_text("")
    assert not userhome.is_untouched(beside)
    assert sorted(path.name for path in (user / ".cache").iterdir()) == ["tool"]


def test_a_home_and_its_copy_get_what_the_user_has_got_since(user: Path, beside: Path) -> None:
    (beside / userhome.COPY).mkdir()
    userhome.lay_out(beside, {"HOME": str(user)})
    (user / ".cache" / "later").mkdir()
    userhome.lay_out(beside, {"HOME": str(user)})
    assert all((beside / name / ".cache" / "later").is_dir() for name in (userhome.NAME, userhome.COPY))


def test_a_cache_that_is_a_link_holds_links_as_well(user: Path, beside: Path, tmp_path: Path) -> None:
    (user / ".cache").rename(tmp_path / "large")
    (user / ".cache").symlink_to(tmp_path / "large")
    userhome.lay_out(beside, {"HOME": str(user)})
    assert not (beside / userhome.NAME / ".cache").is_symlink()
    assert (beside / userhome.NAME / ".cache" / "tool" / "words").read_text() == "one"


def test_variables_lead_to_the_home_and_packages_are_not_loaded_anew(user: Path, beside: Path) -> None:
    environment = {"HOME": str(user), "XDG_CACHE_HOME": f"{user}/.cache", "XDG_DATA_HOME": "/elsewhere", "CARGO_HOME": "/cargo"}
    userhome.lay_out(beside, environment)
    variables = userhome.variables(beside / userhome.NAME, environment)
    assert variables["HOME"] == str(beside / userhome.NAME)
    assert variables["XDG_CACHE_HOME"] == str(beside / userhome.NAME / ".cache")
    assert variables["PIP_CACHE_DIR"] == str(user / ".cache" / "pip")
    assert not {"XDG_DATA_HOME", "CARGO_HOME"} & variables.keys()


@pytest.mark.parametrize("home", [None, "", "/", "/nonexistent", "relative"])
def test_who_has_no_home_gets_none(home: str | None, beside: Path) -> None:
    environment = {} if home is None else {"HOME": home}
    userhome.lay_out(beside, environment)
    assert not (beside / userhome.NAME).exists()
    assert userhome.variables(beside / userhome.NAME, environment) == {}


TOML = """
build.command = "sh build.sh"
measure.budget_s = 3
counters.software = false
[[workload]]
name = "job"
command = "python job.py {n}"
parameters.n = [100, 200]
runs = 2
"""
GENERATE = """
mkdir -p ~/.cache/generator
test -e ~/.cache/generator/times || cp times ~/.cache/generator/times
cp ~/.cache/generator/times times.made
"""
JOB = """
import os, sys

def work(n):
    return sum(i * i % 7 for i in range(2000 * n))

print(work(int(sys.argv[1]) * int(open("times.made").read())) % 1)
"""
KEEP = """
import os, sys

def work(n):
    return sum(i * i % 7 for i in range(2000 * n))

kept = os.path.expanduser(f"~/.kept-{sys.argv[1]}")
if not os.path.exists(kept):
    open(kept, "w").write(str(work(int(sys.argv[1]) * TIMES) % 1))
print(open(kept).read())
"""
GENERATED = ({"build.sh": GENERATE, "job.py": JOB, "times": "1"}, {"times": "4"})
KEPT = ({"build.sh": ":", "job.py": KEEP.replace("TIMES", "1")}, {"job.py": KEEP.replace("TIMES", "4")})


@pytest.mark.integration
@pytest.mark.parametrize(("base", "head"), [GENERATED, KEPT], ids=["what a build generates", "what a run keeps"])
def test_caches_in_the_home_of_one_side_do_not_serve_the_other(
    base: Mapping[str, str], head: Mapping[str, str], user: Path, tmp_path: Path
) -> None:
    history = ({"perfdiff.toml": TOML, **base}, head)
    request = first_two(tmp_path, history, {**os.environ, "HOME": str(user)})
    found = pipeline.compare(by_whole_runs(request), Silent()).findings
    assert found.verdict is Verdict.REGRESSION
    assert not [path for path in user.rglob("*") if "generator" in path.name or "kept" in path.name]
