"""Large systems' answers are held against the kept ones, and releases become the same commits each time."""

from __future__ import annotations

import json
from pathlib import Path

from studies import systems


def _function(name: str, verdict: str, rank: int | None) -> dict[str, object]:
    return {"name": name, "verdict": verdict, "rank": rank}


def test_what_is_kept_of_a_report_names_slower_functions_by_rank() -> None:
    functions = [
        _function("caller", "regression", 2),
        _function("idle", "unchanged", None),
        _function("guilty", "regression", 1),
        _function("better", "improvement", 3),
    ]
    stages = {"building (plain)": 61.6, "analysing": 0.2}
    answer = systems.answer({"verdict": "regression", "sentence": "Regression: …", "functions": functions, "stages": stages})
    assert answer["slower"] == ["guilty", "caller"]
    assert answer["stages"] == {"building (plain)": 62}


def test_answers_differ_by_verdict_and_by_the_first_function_alone() -> None:
    before = {"verdict": "regression", "slower": ["insert", "grow"]}
    assert systems.differences({"verdict": "regression", "slower": ["insert"]}, before) == []
    assert systems.differences({"verdict": "regression", "slower": ["grow"]}, before) == ["first came insert, and now grow"]
    assert systems.differences({"verdict": "none", "slower": []}, before) == [
        "the verdict was regression, and is none",
        "first came insert, and now none",
    ]


def test_releases_become_the_same_commits_at_each_time(tmp_path: Path) -> None:
    for release in ("tool-1.0", "tool-1.1"):
        (tmp_path / "sources" / release).mkdir(parents=True)
        (tmp_path / "sources" / release / "main.c").write_text(f"/* {release} */\n")
    logs = []
    for room in ("first", "second"):
        (tmp_path / room).mkdir()
        logs.append(systems.git(systems.repository(tmp_path / "sources", tmp_path / room), "log", "--format=%H %s"))
    assert logs[0] == logs[1]
    assert [line.partition(" ")[2] for line in logs[0].splitlines()] == ["tool-1.1", "tool-1.0"]


def test_each_system_has_one_slower_pair_and_each_kept_answer_a_system() -> None:
    names = systems.upstream.names(systems.SYSTEMS)
    for name in names:
        (pair,) = systems.upstream.project(systems.SYSTEMS / name).pairs
        assert pair.guilty
    assert set(json.loads(systems.KEPT.read_text(encoding="utf-8"))) <= set(names)
