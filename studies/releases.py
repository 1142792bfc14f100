"""Print what perfdiff says of pairs of releases of packages: the verdict, the guilty function's place, and how long it took.

The pairs are in `fixtures/releases`, each with a program that runs the package. Their sources come from the registries.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from perfdiff import configuration, pipeline
from perfdiff.analysis.findings import Findings, Verdict
from perfdiff.progress import Silent
from perfdiff.request import Request
from programs import environment
from releases import Pair, pairs, repository
from studies.support import figures

COLUMNS = ("package", "base", "head", "expected", "verdict", "guilty", "its place", "s", "CPU, s", "probes' cost")


def place(pair: Pair, findings: Findings) -> str:
    """Return the place of the first guilty function among those that got slower, from 1."""
    slower = [each for each in findings.functions if each.verdict is Verdict.REGRESSION and each.info.name in pair.guilty]
    return str(min((each.rank for each in slower if each.rank is not None), default="-"))


def main() -> None:
    """Compare all pairs, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="+", metavar="NAME", help="pairs (default: all)")
    options = parser.parse_args()
    chosen = [pair for pair in pairs() if not options.only or pair.name in options.only]
    with tempfile.TemporaryDirectory() as room, figures.printed("Releases of packages", *COLUMNS) as table:
        right = 0
        for pair in chosen:
            checkout = repository(pair, Path(room) / pair.name)
            started, used = time.monotonic(), figures.cpu_s()
            config = configuration.load(checkout, environment={})
            findings = pipeline.compare(Request(checkout, ("base", "head"), config, Path(room) / "cache", environment()), Silent()).findings
            wall_s, cpu_s = time.monotonic() - started, figures.cpu_s() - used
            its_place = place(pair, findings)
            right += findings.verdict == pair.verdict and (not pair.guilty or its_place == "1")
            cost = "-" if findings.overhead is None else f"{findings.overhead:.0%}"
            told = (pair.verdict, findings.verdict, ", ".join(pair.guilty) or "-", its_place)
            table.add(pair.package, pair.base, pair.head, *told, f"{wall_s:.0f}", f"{cpu_s:.0f}", cost)
        table.remarks.append(f"Right, and the guilty function first: {right} of {len(chosen)}.")
