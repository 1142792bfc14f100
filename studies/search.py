"""Print which inputs a search finds on which head does more: in programs with a hidden slow-down, and in those that are slower on none.

The programs are in `fixtures/search`. That their samples take the same, and how much slower head is on a known input, was measured by hand,
by `tests/search_truth.py`.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from perfdiff import configuration, searching
from perfdiff.analysis.findings import Verdict
from perfdiff.errors import PerfdiffError
from perfdiff.fuzzing.findings import SearchFindings, SlowInput
from perfdiff.fuzzing.search import SearchLimits
from perfdiff.progress import Silent
from perfdiff.report import slow_inputs
from perfdiff.request import Request
from programs import SEARCH, Case, cases, repository
from studies.support import figures

SIZE = 64 << 10


@dataclass(frozen=True, slots=True)
class _Answer:
    """What a search said of a program."""

    case: Case
    findings: SearchFindings

    @property
    def is_slower(self) -> bool:
        return self.findings.verdict is Verdict.REGRESSION

    @property
    def shown(self) -> SlowInput | None:
        return next((shown for shown in self.findings.inputs if shown.verdict is self.findings.verdict), None)

    @property
    def place(self) -> str:
        """Return the function that is named, by its growth, or for a changed line that ran most; "" where none is."""
        if self.shown is None:
            return ""
        if self.shown.trends and self.shown.trends.differences:
            return self.shown.trends.differences[0].place.function
        return self.shown.changed.function if self.shown.changed else ""

    @property
    def names_the_guilty(self) -> bool:
        """Return whether that is the function whose work grows, or one that changed."""
        guilty = self.case.expected["guilty"]
        names = [guilty] if isinstance(guilty, str) else guilty
        return any(name.rpartition("::")[2].rpartition(".")[2] in self.place for name in (*names, *self.case.expected["changed"]))

    @property
    def growth(self) -> str:
        """Return the class of head's growth, by lines or by CPU time."""
        if self.shown is None:
            return ""
        if self.shown.factor:
            return "exponential"
        differences = self.shown.trends.differences if self.shown.trends else ()
        law = differences[0].head if differences else self.shown.by_time
        return law.growth.value if law else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", nargs="+", metavar="NAME", help="programs (default: all)")
    parser.add_argument("--seconds", type=float, default=300.0, metavar="S", help="for each search (default: %(default)s)")
    options = parser.parse_args()
    chosen = [case for case in cases(SEARCH) if not options.only or case.name in options.only]
    columns = ("program", "expected", "answer", "input", "function", "growth", "whole runs", "inputs tried", "s")
    tally: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as room, figures.printed("Inputs that show it", *columns) as table:
        for case in chosen:
            try:
                answer = _Answer(case, searched(case, Path(room), options.seconds))
            except PerfdiffError as error:
                print(f"{case.name}: {error}", file=sys.stderr, flush=True)
                tally["without an answer"] += 1
                continue
            table.add(*_row(answer))
            print(f"{case.name}: {slow_inputs.answer(answer.findings)}", file=sys.stderr, flush=True)
            expected = case.expected["verdict"]
            tally[f"{expected}, told as slower"] += answer.is_slower
            tally["named"] += expected == "slower" and answer.is_slower and answer.names_the_guilty
            tally["growth"] += expected == "slower" and answer.is_slower and answer.growth == case.expected["growth"]
        hidden, harmless = (sum(case.expected["verdict"] == verdict for case in chosen) for verdict in ("slower", "unchanged"))
        table.remarks.append(
            f"{tally['slower, told as slower']} of {hidden} found, {tally['named']} with the function whose work grows or that changed, "
            f"{tally['growth']} with the growth; {tally['unchanged, told as slower']} of {harmless} harmless ones told as slower; "
            f"{tally['without an answer']} without an answer."
        )


def _row(answer: _Answer) -> tuple[str, ...]:
    shown, findings = answer.shown, answer.findings
    ratio = f"×{shown.run.ratio.value:.2f}" if shown and shown.run and shown.run.ratio else ""
    made_of = slow_inputs.described(shown.entry.family, shown.entry.times) if shown else ""
    expected = answer.case.expected["verdict"], findings.verdict.value
    return (answer.case.name, *expected, made_of, answer.place, answer.growth, ratio, f"{findings.tried}", f"{findings.seconds:.0f}")


def searched(case: Case, room: Path, seconds: float) -> SearchFindings:
    """Search a program for some seconds in a repository that is made for it in `room`, and return what was found."""
    folder = repository(case, room / case.name)
    config = configuration.load(folder, environment={})
    asked = Request(folder, ("base", "head"), config, room / "cache", dict(os.environ))
    return searching.search(asked, Silent(), SearchLimits(SIZE, seconds, seed=config.compare.seed), room / f"{case.name}-kept")
