"""`perfdiff record` of programs in Python, PHP and Java: parts of several runs of two revisions name the function that got slower."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import programs
from perfdiff import cli
from programs import JAVA, PHP, PYTHON, Case, cases

pytestmark = pytest.mark.integration
RUNS = 4
# Cached in base what head works out each time, so that a few runs tell.
USED = {
    "lost-lru-cache": (PYTHON, ("python", "driver.py", "4000")),
    "lost-static-cache": (PHP, ("php", "rota.php", "3000")),
    "lost-cache": (JAVA, ("java", "-cp", "build", "rota.Main", "40000")),
}


def perfdiff(*arguments: str) -> int:
    """Ask in this process, and return the exit code."""
    with pytest.raises(SystemExit) as left:
        cli.main(list(arguments))
    return int(left.value.code or 0)


def compared(case: Case, folder: Path, cache: Path, *command: str) -> dict[str, Any]:
    repository, to = programs.repository(case, folder / "program"), folder / "parts"
    given = ("--repo", str(repository), "--cache", str(cache), "--to", str(to), "--no-survey", "-q")
    for _ in range(RUNS):
        for side in ("base", "head"):
            assert perfdiff("record", side, *given, "--", *command) == 0
    report = folder / "report.json"
    assert perfdiff("compare", "--base", "base", "--head", "head", "--repo", str(repository), "-q", "-o", str(report), str(to)) == 1
    found: dict[str, Any] = json.loads(report.read_text())
    return found


@pytest.mark.parametrize("name", USED)
def test_parts_of_programs_in_use_name_the_function_that_got_slower(name: str, tmp_path: Path, shared_cache: Path) -> None:
    folder, command = USED[name]
    [case] = [case for case in cases(folder) if case.name == name]
    report = compared(case, tmp_path, shared_cache, *command)
    first = report["functions"][0]
    guilty = case.expected["guilty"]
    assert report["verdict"] == first["verdict"] == "regression", report["summary"]
    assert first["name"].partition("(")[0] in ([guilty] if isinstance(guilty, str) else guilty)
