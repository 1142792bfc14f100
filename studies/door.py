"""Print what perfdiff says of projects that it has no configuration of: what it finds to run, how soon it answers, and what.

The projects and their revisions are in `fixtures/doors.toml`. Clones lie in a folder, each under its project's name; nothing is fetched.
Each is compared once, with an empty cache, its report and what perfdiff said meanwhile are left in a folder if one is named.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from studies import FIXTURES
from studies.support import figures

DOORS = FIXTURES / "doors.toml"
COLUMNS = (
    "project", "kind", "found", "plain builds, s", "whole runs judged after them, s", "answer after them, s", "CPU, s", "answer",
    "first function", "changed functions that ran",
)  # fmt: skip
WITHIN_S = 180.0  # after the plain builds, in which there is to be an answer
LONGEST_S = 1800.0
_FOUND = re.compile(r"^perfdiff: note: (.*(?:reach(?:es)? the change|can be run).*?); `perfdiff init`", re.MULTILINE)
_BUILT, _JUDGED = "building (plain)", "comparing whole runs"  # stages
ANSWERED = (0, 1, 4)  # exit codes of a comparison that was made


@dataclass(frozen=True, slots=True)
class Door:
    """A project, what it has to run, and two of its revisions."""

    name: str
    kind: str
    repository: str
    base: str
    head: str


def doors() -> list[Door]:
    """Return all projects."""
    return [Door(**table) for table in tomllib.loads(DOORS.read_text(encoding="utf-8"))["door"]]


def compared(door: Door, checkout: Path, cache: Path, left_in: Path | None) -> tuple[str, ...]:
    """Return the cells of a project's row."""
    report = cache.parent / f"{door.name}.json"
    words = [sys.executable, "-m", "perfdiff", door.base, door.head, "--repo", str(checkout), "--cache", str(cache)]
    started, cpu_s = time.monotonic(), _cpu_s()
    try:
        done = subprocess.run([*words, "-v", "-o", str(report)], capture_output=True, text=True, timeout=LONGEST_S, check=False)
    except subprocess.TimeoutExpired:
        return door.name, door.kind, "-", "-", "-", f"none within {LONGEST_S:.0f}", "-", "-", "-", "-"
    wall_s, cpu_s = time.monotonic() - started, _cpu_s() - cpu_s
    if left_in is not None:
        (left_in / f"{door.name}.txt").write_text(done.stderr, encoding="utf-8")
    if done.returncode not in ANSWERED or not report.exists():
        return door.name, door.kind, "-", "-", "-", f"none ({wall_s:.0f})", "-", done.stderr.strip().splitlines()[-1][:200], "-", "-"
    if left_in is not None:
        shutil.copy(report, left_in)
    told: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))
    built_s = told["stages"][_BUILT]
    found = next((match[1] for match in _FOUND.finditer(done.stderr)), "-")
    ranked = [function for function in told["functions"] if function["rank"] == 1]
    changed = told["changed"] or {}
    ran = f"{changed.get('ran', '-')} of {changed.get('functions', '-')}"
    first = ranked[0]["name"] if ranked else "-"
    times = (f"{built_s:.0f}", _judged_s(told["stages"]), f"{wall_s - built_s:.0f}", f"{cpu_s:.0f}")
    return door.name, door.kind, found, *times, told["verdict"], first, ran


def _judged_s(stage_s: dict[str, float]) -> str:
    """Return how long after the plain builds whole runs had been judged for the first time, which logs tell from then on."""
    names = list(stage_s)
    if _JUDGED not in names:
        return "-"
    return f"{sum(stage_s[name] for name in names[: names.index(_JUDGED) + 1] if name != _BUILT):.0f}"


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Compare all projects, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="the folder of the clones")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="projects (default: all)")
    parser.add_argument("--to", type=Path, metavar="FOLDER", help="where reports and logs are left")
    options = parser.parse_args()
    if options.to is not None:
        options.to.mkdir(parents=True, exist_ok=True)
    chosen = [door for door in doors() if not options.only or door.name in options.only]
    with tempfile.TemporaryDirectory() as room, figures.printed("Projects without a configuration", *COLUMNS) as table:
        rows = []
        for door in chosen:
            rows.append(compared(door, options.folder / door.name, Path(room) / "cache", options.to))
            table.add(*rows[-1])
            print(*rows[-1], sep=" | ", file=sys.stderr, flush=True)
        answers = [float(row[5]) for row in rows if row[3] != "-"]
        soon = sum(seconds <= WITHIN_S for seconds in answers)
        table.remarks.append(f"Answered: {len(answers)} of {len(chosen)}; within {WITHIN_S:.0f} s of the plain builds: {soon}.")
