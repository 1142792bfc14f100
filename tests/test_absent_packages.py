"""Packages that the user's interpreter has and environments of revisions have not: who uses them where there are any runs otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from perfdiff.languages.python.absent import absent, listed_otherwise

TAKES = (
    "def total(n):\n    try:\n        import fast\n        return fast.total(n)\n    except ImportError:\n        return sum(range(n))\n"
)


def of(room: Path, files: Mapping[str, str], name: str = "main.py", head: str = "def total(n):\n    return 0\n") -> tuple[str, ...]:
    """Return what is absent where `main.py` or another file differs, and other files lie where they are named."""
    trees = [room / "base", room / "head"]
    for path, text in {f"base/{name}": TAKES, f"head/{name}": head, **files}.items():
        (room / path).parent.mkdir(parents=True, exist_ok=True)
        (room / path).write_text(text)
    return absent({name: {side: tree / name for side, tree in enumerate(trees)}}, trees, [room / "venv"], [room / "own"])


@pytest.mark.parametrize("name", ["fast/__init__.py", "fast.py", "fast.cpython-311-x86_64-linux-gnu.so"])
def test_what_the_user_has_and_runs_have_not_is_absent(tmp_path: Path, name: str) -> None:
    assert of(tmp_path, {f"own/{name}": ""}) == ("fast",)


@pytest.mark.parametrize("files", [{}, {"venv/fast.py": ""}, {"base/fast.py": ""}, {"head/src/fast/__init__.py": ""}])
def test_what_nobody_has_or_all_have_is_not(tmp_path: Path, files: Mapping[str, str]) -> None:
    own = {"own/fast.py": ""} if files else {}
    assert of(tmp_path, {**own, **files}) == ()


@pytest.mark.parametrize("text", ["import fast.inner", "from fast import total", "from fast.inner import total"])
def test_imports_are_known_by_their_first_name(tmp_path: Path, text: str) -> None:
    assert of(tmp_path, {"own/fast.py": "", "own/inner.py": ""}, head=text) == ("fast",)


@pytest.mark.parametrize("head", ["import sys, os", "from . import own", "def broken(:"])
def test_the_standard_library_and_what_cannot_be_read_name_nothing(tmp_path: Path, head: str) -> None:
    assert of(tmp_path, {"own/sys.py": "", "own/own.py": "", "own/os.py": ""}, head=head) == ()


@pytest.mark.parametrize(
    ("name", "base", "head", "is_told"),
    [
        ("requirements/prod.txt", "click\nFast==1.2\n", "click\n", True),
        ("requirements-prod.txt", "fast[simd]>=1\n", "", True),
        ("pyproject.toml", "speed = ['fast']\n", "speed = []\n", True),
        ("setup.cfg", "speed =\n    fast\n", "speed =\n", True),
        ("Dockerfile", "RUN pip install fast\n", "RUN pip install .\n", True),
        ("requirements/prod.txt", "python-fast==1.2\n", "click\n", True),
        ("environment.yml", "dependencies:\n  - PyFast\n", "dependencies: []\n", True),
        ("requirements/prod.txt", "click\nbreakfast\n", "click\n", False),
        ("requirements/prod.txt", "click\nfast==1.2\n", "click\nfast==1.3\n", False),  # it would be there in both
        ("requirements/dev.txt", "fast\npytest\n", "fast\n", False),  # no source that runs imports it
        ("requirements/prod.txt", "fast\n# faster\n", "fast\n# fast\n", False),
        ("notes.txt", "fast\n", "\n", False),
        (".github/workflows/ci.yml", "pip install fast\n", "\n", False),
    ],
)
@pytest.mark.parametrize("is_there", [False, True])
def test_lists_that_name_a_package_on_one_side_alone_which_sources_import_and_nobody_has(  # noqa: PLR0917 (what they say, and who has it)
    name: str, base: str, head: str, is_told: bool, is_there: bool, tmp_path: Path
) -> None:
    trees = [tmp_path / "base", tmp_path / "head"]
    for tree, text in zip(trees, (base, head), strict=True):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
        (tree / "main.py").write_text(TAKES)
    (tmp_path / "venv").mkdir()
    if is_there:
        (tmp_path / "venv/fast.py").write_text("")
    sources = [tree / "main.py" for tree in trees]
    told = listed_otherwise({name: (trees[0] / name, trees[1] / name)}, sources, trees, [tmp_path / "venv"])
    assert told == ((name,) if is_told and not is_there else ())
