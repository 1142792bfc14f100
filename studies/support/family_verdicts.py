"""What perfdiff says of each program of a family, beside what may be said of it, and how long that took."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import families
from perfdiff.analysis.findings import Findings, Verdict
from perfdiff.errors import PerfdiffError
from perfdiff.report.sentences.catalogue import say
from programs import Case, cases
from studies.support import figures

NO_ANSWER = "no answer"


def compare(title: str, folder: Path) -> None:
    """Compare all programs of a folder, or those that the command line names, and print a table with counts; on the way, each answer."""
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="programs (default: all)")
    parser.add_argument("--cache", type=Path, help="keep builds and measurements in this folder")
    parser.add_argument("--budget", type=float, default=families.BUDGET_S, metavar="S", help="for whole runs (default: %(default)s)")
    parser.add_argument("--counted", action="store_true", help="count as well (default: time alone)")
    options = parser.parse_args()
    chosen = [case for case in cases(folder) if not options.only or case.name in options.only]
    answers: list[tuple[Case, str]] = []
    with tempfile.TemporaryDirectory() as room, figures.printed(title, "program", "expected", "head / base", "answer", "", "s") as table:
        for case in chosen:
            begun = time.perf_counter()
            cache = options.cache or Path(room) / "cache"
            answer, sentence = _answer(partial(families.compared, case, Path(room), cache, options.budget, counted=options.counted))
            print(f"{case.name}: {sentence}", file=sys.stderr, flush=True)
            answers.append((case, answer))
            seconds = f"{time.perf_counter() - begun:.0f}"
            table.add(case.name, case.expected["verdict"], case.expected["ratio"], answer, _remark(case, answer), seconds)
        table.remarks += _counts(answers)


def _answer(compared: Callable[[], Findings]) -> tuple[str, str]:
    """Return the verdict of a comparison and its sentence; where there is none, why."""
    try:
        findings = compared()
    except PerfdiffError as error:
        return NO_ANSWER, str(error)
    return findings.verdict, say(findings.sentence)


def _remark(case: Case, answer: str) -> str:
    if answer == NO_ANSWER:
        return ""
    return "" if families.is_allowed(case, Verdict(answer)) else "**wrong**"


def _counts(answers: Sequence[tuple[Case, str]]) -> list[str]:
    """Say of each kind of case how often which answer was given, and how often a wrong one."""
    remarks = []
    for expected in families.ALLOWED:
        of_kind = [(case, answer) for case, answer in answers if case.expected["verdict"] == expected]
        if of_kind:
            counts = ", ".join(f"{count} {answer}" for answer, count in Counter(answer for _, answer in of_kind).most_common())
            wrong = sum(_remark(case, answer) != "" for case, answer in of_kind)
            remarks.append(f"{expected}: {len(of_kind)} programs, {wrong} answered wrong ({counts}).")
    return remarks
