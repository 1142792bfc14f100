"""What perfdiff says of each fixture program of a language: verdict, the guilty function's place, how its cost grows, how long it took."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from perfdiff import pipeline
from perfdiff.analysis.findings import Findings, FunctionFinding, Verdict
from perfdiff.progress import Silent
from perfdiff.report.sentences.catalogue import say
from programs import Case, cases
from studies.support import figures, inputs

NOTHING = "-"


def guilty(case: Case) -> list[str]:
    """Return the names of the functions that may be the guilty one, or that got faster, without parameters; none where nothing changed."""
    found = case.expected.get("guilty", case.expected.get("function", []))
    return [found] if isinstance(found, str) else list(found)


def rank(case: Case, findings: Findings) -> str:
    """Return the place of the guilty function among those that got slower, from 1."""
    slower = [_name(each) for each in findings.functions if each.verdict is Verdict.REGRESSION]
    places = [slower.index(name) + 1 for name in guilty(case) if name in slower]
    return str(min(places)) if places else NOTHING


def growth(case: Case, findings: Findings) -> dict[str, str]:
    """Return how the guilty function's cost is said to grow, by side."""
    found = next((each.metrics.get("wall_ns") for each in findings.functions if _name(each) in guilty(case)), None)
    told = {"base": found.base, "head": found.head} if found else {}
    return {side: annotation.growth.value for side, annotation in told.items() if annotation}


def is_right(case: Case, findings: Findings) -> bool:
    """Return whether verdict, guilty function, growth and cause are what they should be."""
    expected, told = case.expected, growth(case, findings)
    is_found = "guilty" not in expected or rank(case, findings) == "1"
    is_growing = all(told.get(side) == known for side, known in expected.get("class", {}).items())
    is_decided = findings.verdict == expected["verdict"] if "verdict" in expected else findings.verdict is not Verdict.REGRESSION
    return is_decided and is_found and is_growing and tells_cause(case, findings)


def tells_cause(case: Case, findings: Findings) -> bool:
    """Return whether the guilty function has the cause that is expected of it, if any is."""
    causes = [cause for each in findings.functions if _name(each) in guilty(case) for cause in each.causes]
    wanted, says = case.expected.get("cause"), case.expected.get("says", "")
    return wanted is None or any(cause.name == wanted and says in say(cause.says) for cause in causes)


def _name(finding: FunctionFinding) -> str:
    """Return a function's name as expectations have it: without parameters and, in C++, without its scope and template."""
    plain = finding.info.name.partition("(")[0]
    return plain.partition("<")[0].rpartition("::")[2] if "::" in plain else plain


def compare(title: str, folder: Path, language: str) -> None:
    """Compare all programs of a folder, or those that the command line names, and print a table; on the way, each verdict as it comes."""
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="programs (default: all)")
    parser.add_argument("--room", type=Path, help="keep repositories, builds and measurements in this folder")
    options = parser.parse_args()
    chosen = [case for case in cases(folder) if not options.only or case.name in options.only]
    columns = ("program", "expected", "verdict", "rung", "guilty", "its place", "growth", "expected growth", "s", "probes' cost")
    with tempfile.TemporaryDirectory() as passing, figures.printed(title, *columns) as table:
        right = 0
        for case in chosen:
            asked = inputs.request(case.name, options.room or Path(passing), "base", "head", language=language)
            findings = pipeline.compare(asked, Silent()).findings
            right += is_right(case, findings)
            print(f"{case.name}: {say(findings.sentence)}", file=sys.stderr, flush=True)
            expected, told = case.expected, growth(case, findings)
            cost = NOTHING if findings.overhead is None else f"{findings.overhead:.0%}"
            grows, should = (" → ".join(each.get(side, NOTHING) for side in ("base", "head")) for each in (told, expected.get("class", {})))
            names, place = " or ".join(guilty(case)) or NOTHING, rank(case, findings)
            seconds = f"{sum(findings.stages.values()):.0f}"
            verdict = expected.get("verdict", NOTHING)
            table.add(case.name, verdict, findings.verdict, findings.rung, names, place, grows, should, seconds, cost)
        table.remarks.append(f"Verdict, guilty function first and growth right: {right} of {len(chosen)}.")
