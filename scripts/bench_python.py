#!/usr/bin/env python3
"""Print what perfdiff says of each fixture program in Python: the verdict, the guilty function's place, and how long it took.

The programs are in `fixtures/python`, each a pair of revisions with one known change, or with none that costs anything.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import figures
import inputs

from perfdiff import configuration, pipeline
from perfdiff.analysis.findings import Findings, Verdict
from perfdiff.progress import Silent
from perfdiff.request import Request
from programs import PYTHON, Case, cases, repository


def rank(case: Case, findings: Findings) -> str:
    """Return the place of the guilty function among those that got slower, from 1."""
    slower = [each.info.name for each in findings.functions if each.verdict is Verdict.REGRESSION]
    guilty = case.expected.get("guilty")
    return str(slower.index(guilty) + 1) if guilty in slower else "-"


def main() -> None:
    """Compare all programs, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="+", metavar="NAME", help="programs (default: all)")
    options = parser.parse_args()
    chosen = [case for case in cases(PYTHON) if not options.only or case.name in options.only]
    environment = inputs.environment()
    columns = ("program", "expected", "verdict", "rung", "guilty", "its place", "s", "probes' cost")
    with tempfile.TemporaryDirectory() as room, figures.printed("Fixture programs in Python", *columns) as table:
        right = 0
        for case in chosen:
            started = time.monotonic()
            checkout = repository(case, Path(room) / case.name)
            config = configuration.load(checkout, environment={})
            asked = Request(checkout, ("base", "head"), config, Path(room) / "cache", environment)
            findings = pipeline.compare(asked, Silent()).findings
            place, expected = rank(case, findings), case.expected["verdict"]
            right += findings.verdict == expected and ("guilty" not in case.expected or place == "1")
            cost = "-" if findings.overhead is None else f"{findings.overhead:.0%}"
            guilty = case.expected.get("guilty", "-")
            table.add(case.name, expected, findings.verdict, findings.rung, guilty, place, f"{time.monotonic() - started:.0f}", cost)
        table.remarks.append(f"Right, and the guilty function first: {right} of {len(chosen)}.")


if __name__ == "__main__":
    main()
