"""Growth over a real history: compiled, counted, checked, followed and bisected, from one cache."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import growing
import runtimes
from growing import CULPRIT
from programs import git
from test_annotate import perfdiff

pytestmark = pytest.mark.integration
WALKS = "while (last->next)"


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """Return a repository, with a cache beside it, and its commits by their subjects."""
    folder = tmp_path_factory.mktemp("growth") / "list"
    runtimes.lent_to(folder.parent / "cache")
    return folder, growing.make(folder)


@pytest.fixture(autouse=True)
def standing(history: tuple[Path, dict[str, str]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in the repository, with signal handlers of the test's own."""
    folder, _ = history
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PERFDIFF_CACHE", str(folder.parent / "cache"))
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)


def told(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def builds(folder: Path) -> int:
    return sum(1 for _ in (folder.parent / "cache" / "trees").iterdir())


def test_a_bisect_by_growth_names_the_commit_past_a_rename_and_one_that_does_not_build(
    history: tuple[Path, dict[str, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    folder, commits = history
    assert perfdiff("bisect", "good", "bad", "--metric", "growth", "-q", "--format", "json") == 1
    found = told(capsys)
    assert found["culprit"] == commits[CULPRIT]
    assert found["followed"]["function"] == "push_back"
    verdicts = {each["commit"]: each["verdict"] for each in found["measured"]}
    assert verdicts[commits[CULPRIT]] == "bad"
    assert verdicts[commits["finished"]] == "good"
    assert commits["document"] not in verdicts
    assert found["alike"] == [{"commit": commits["document"], "as": commits["finished"]}]
    assert {each["commit"] for each in found["skipped"]} <= {commits["not finished"]}
    assert found["report"]["sentence"].startswith("Regression: list.c:17, `while (last->next)` in push_back")
    assert (found["report"]["base"]["commit"], found["report"]["head"]["commit"]) == (commits["document"], commits[CULPRIT])

    before = builds(folder)
    assert perfdiff("bisect", "good", "bad", "--metric", "growth", "--function", "append", "--first-parent", "--path", "list.c") == 1
    assert capsys.readouterr().out.startswith(f"Culprit: {commits[CULPRIT][:10]} ({CULPRIT})\n")
    assert builds(folder) == before


def test_a_log_of_growth_tells_where_the_exponent_changed(history: tuple[Path, dict[str, str]], capsys: pytest.CaptureFixture[str]) -> None:
    _, commits = history
    shown = [commits[subject] for subject in ("rename", "not finished", "finished", CULPRIT)]
    assert perfdiff("log", "push_back", *shown, "--metric", "growth", "-q", "--format", "json") == 0
    renamed, broken, finished, culprit = told(capsys)["revisions"]
    assert "[build-failed]" in broken["reason"]
    assert renamed["metrics"]["growth"]["class"] == finished["metrics"]["growth"]["class"] == "linear"
    growth = culprit["metrics"]["growth"]
    assert growth["class"] == "quadratic"
    assert growth["change"]["since"] == commits["rename"]
    assert growth["change"]["ci"][0] > 0.5
    # The walk of n - 2 steps at most: each line of the loop runs once for each node before the last.
    assert growth["count"] > 640 * 638 / 2


def test_saved_trends_hold_until_a_commit_makes_a_line_steeper(
    history: tuple[Path, dict[str, str]], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    _, commits = history
    saved = tmp_path / "trends.json"
    assert perfdiff("trends", "good", "-q", "-o", saved) == 0
    assert perfdiff("check", saved, commits["sum in other words"], "-q") == 0
    assert capsys.readouterr().out.startswith("Nothing that was judged grows by a higher power on ")
    git(Path(), "checkout", "-q", "bad")
    assert perfdiff("check", saved, "-q", "-o", tmp_path / "check.json") == 1
    found = json.loads((tmp_path / "check.json").read_text())
    assert (found["schema"], found["verdict"], found["revision"]["rev"]) == ("perfdiff.check-trends/1", "violated", "working tree")
    assert [each["place"]["text"] for each in found["assertions"] if each["new"]] == [WALKS]


@pytest.mark.parametrize(
    ("arguments", "code", "slug"),
    [
        (["bisect", "good", "good~0", "--metric", "growth"], 2, "ends-alike"),
        (["bisect", "good", "bad", "--metric", "growth", "--format", "sarif"], 2, "format-unknown"),
        (["log", "main", "--metric", "growth", "--metric", "wall_ns"], 2, "growth-alone"),
        (["log", "maim", "good", "--metric", "growth"], 2, "unknown-function"),
        (["check", "trends.json", "good", "--plot", "p.svg"], 2, "format-unknown"),
        (["check", "trends.json", "good", "bad"], 2, "bad-specification"),
        (["check", "damaged.json"], 2, "trends-unreadable"),
    ],
)
def test_what_cannot_be_asked_of_growth_is_refused(
    arguments: list[str], code: int, slug: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "damaged.json").write_text('{"schema": "perfdiff.trends/1"}')
    if "trends.json" in arguments:
        assert perfdiff("trends", "good", "-q", "-o", tmp_path / "trends.json") == 0
    placed = [str(tmp_path / each) if each.endswith(".json") else each for each in arguments]
    assert perfdiff(*placed, "-q") == code
    assert f"[{slug}]" in capsys.readouterr().err
