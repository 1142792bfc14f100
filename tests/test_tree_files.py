"""Which files of two trees are not the same."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from perfdiff.languages.tree_files import all_differing, regular
from python_sources import write

FILES = {"README.md": "a", "docs/a.txt": "a", ".git/HEAD": "a", "src/a.c": "a", "__pycache__/a.pyc": "a", "vendor/composer/a.json": "a"}


def _rewritten(tree: Path) -> str:
    (tree / "src/a.c").write_text("b")
    return "src/a.c"


def _run_by_nobody(tree: Path) -> str:
    (tree / "src/a.c").chmod(0o755)
    return "src/a.c"


def _gone(tree: Path) -> str:
    (tree / "src/a.c").unlink()
    return "src/a.c"


def _led_elsewhere(tree: Path) -> str:
    (tree / "link").unlink()
    (tree / "link").symlink_to("docs/a.txt")
    return "link"


def _in_the_place_of_a_link(tree: Path) -> str:
    (tree / "link").unlink()
    (tree / "link").write_text("a")
    return "link"


def _an_empty_folder(tree: Path) -> str:
    (tree / "more").mkdir()
    return "more"


def _a_pipe(tree: Path) -> str:
    os.mkfifo(tree / "pipe")
    return "pipe"


CHANGES = [_rewritten, _run_by_nobody, _gone, _led_elsewhere, _in_the_place_of_a_link, _an_empty_folder, _a_pipe]


@pytest.mark.parametrize("change", CHANGES)
def test_whatever_a_run_may_see_of_a_file_is_a_difference(change: Callable[[Path], str], tmp_path: Path) -> None:
    trees = [write(tmp_path / side, {**FILES, "src/b.c": ""}) for side in ("base", "head")]
    for tree in trees:
        (tree / "link").symlink_to("README.md")
    assert dict(all_differing(*trees)) == {}
    name = change(trees[1])
    assert list(dict(all_differing(*trees))) == [name]


def test_no_file_is_left_out_by_its_name_or_folder(tmp_path: Path) -> None:
    trees = [write(tmp_path / side, dict.fromkeys(FILES, side)) for side in ("base", "head")]
    assert dict(all_differing(*trees)).keys() == FILES.keys()


def test_only_files_that_both_sides_have_and_may_run_alike_are_compared(tmp_path: Path) -> None:
    sides = {"base": {"a": "1", "b": "1", "gone": "1"}, "head": {"a": "2", "b": "2"}}
    trees = [write(tmp_path / side, files) for side, files in sides.items()]
    for number, tree in enumerate(trees):
        (tree / "link").symlink_to("ab"[number])
        (tree / "b").chmod((0o644, 0o755)[number])
    differing = dict(all_differing(*trees))
    assert differing.keys() == {"a", "b", "gone", "link"}
    assert regular(differing) == {"a": (trees[0] / "a", trees[1] / "a")}
