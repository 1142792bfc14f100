#!/usr/bin/env python3
"""Print what perfdiff says of projects that it has no configuration of: what it finds to run, how soon it answers, and what.

The projects and their revisions are in `fixtures/doors.toml`. Clones lie in a folder, each under its project's name; nothing is fetched.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import figures

DOORS = Path(__file__).parent.parent / "fixtures" / "doors.toml"
COLUMNS = ("project", "kind", "found", "plain builds, s", "answer after them, s", "answer", "first function", "changed functions that ran")
WITHIN_S = 180.0  # after the plain builds, in which there is to be an answer
LONGEST_S = 1800.0
_FOUND = re.compile(r"^perfdiff: (.*(?:reach(?:es)? the change|there (?:is|are) ).*)$", re.MULTILINE)
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


def compared(door: Door, checkout: Path, cache: Path) -> tuple[str, ...]:
    """Return the cells of a project's row."""
    report = cache.parent / f"{door.name}.json"
    words = [sys.executable, "-m", "perfdiff", door.base, door.head, "--repo", str(checkout), "--cache", str(cache), "-o", str(report)]
    started = time.monotonic()
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=LONGEST_S, check=False)
    except subprocess.TimeoutExpired:
        return door.name, door.kind, "-", "-", f"none within {LONGEST_S:.0f}", "-", "-", "-"
    wall_s = time.monotonic() - started
    if done.returncode not in ANSWERED or not report.exists():
        return door.name, door.kind, "-", "-", f"none ({wall_s:.0f})", done.stderr.strip().splitlines()[-1][:200], "-", "-"
    told: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))
    built_s = told["stages"]["building (plain)"]
    found = next((match[1] for match in _FOUND.finditer(done.stderr)), "-")
    ranked = [function for function in told["functions"] if function["rank"] == 1]
    changed = told["changed"] or {}
    ran = f"{changed.get('ran', '-')} of {changed.get('functions', '-')}"
    first = ranked[0]["name"] if ranked else "-"
    return door.name, door.kind, found, f"{built_s:.0f}", f"{wall_s - built_s:.0f}", told["verdict"], first, ran


def main() -> None:
    """Compare all projects, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="the folder of the clones")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="projects (default: all)")
    options = parser.parse_args()
    chosen = [door for door in doors() if not options.only or door.name in options.only]
    with tempfile.TemporaryDirectory() as room, figures.printed("Projects without a configuration", *COLUMNS) as table:
        rows = [compared(door, options.folder / door.name, Path(room) / "cache") for door in chosen]
        for row in rows:
            table.add(*row)
        answers = [float(row[4]) for row in rows if row[3] != "-"]
        soon = sum(seconds <= WITHIN_S for seconds in answers)
        table.remarks.append(f"Answered: {len(answers)} of {len(chosen)}; within {WITHIN_S:.0f} s of the plain builds: {soon}.")


if __name__ == "__main__":
    main()
