"""Runs all test cases of a program in one process, and goes on after those that end it."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from perfdiff.languages.c.suites.attempts import Attempts, why
from perfdiff.languages.listing import UNTRIED, TriedCommand

_MOST_ENDS = 10  # of a program before its last test: of more, each of which may take long, none is waited for
_MOST_BYTES = 60_000  # of names in a command: Linux allows 128 KiB for one argument
NOT_RUN = "was not tried: tests before it end the program"


@dataclass(frozen=True, slots=True)
class CaseOutcome:
    """What came of a test case: how long it took, the `reason` why it is not compared ("" where it is), and its benchmarks.

    `sample_s` is what one sample of all its benchmarks takes, None where it has none.
    """

    seconds: float
    reason: str = ""
    sample_s: float | None = None


@dataclass(frozen=True, slots=True)
class CaseReport:
    """What a process told of its test cases: how they ended, and which one runs still; `is_complete` where there is no more to tell."""

    outcomes: Mapping[str, CaseOutcome] = field(default_factory=dict)
    running: str = ""
    is_complete: bool = False


@dataclass(frozen=True, slots=True)
class CaseProgram:
    """A program with test cases: `run` those of some names, all without any, in a number of seconds; `names` are all there are."""

    path: str
    run: Callable[[Sequence[str], float], tuple[TriedCommand, CaseReport]]
    names: Callable[[], Sequence[str]]

    def outcomes(self, attempts: Attempts, failures: dict[str, str]) -> dict[str, CaseOutcome]:
        """Return the outcomes of all cases that pass; add the reasons of the others to `failures`."""
        outcomes: dict[str, CaseOutcome] = {}
        left: list[str] = []
        for _ in range(_MOST_ENDS):
            names = list(_in_a_command(left))
            attempt, report = self.run(names, attempts.left_s / 2)  # what hangs leaves time for others
            outcomes.update(report.outcomes)
            if not report.is_complete and report.running:
                outcomes[report.running] = CaseOutcome(0.0, why(attempt) or "ends the program")
            if not outcomes and not left:
                if not report.is_complete:
                    failures[self.path] = why(attempt) or "told nothing of its test cases"
                return {}
            if report.is_complete and len(names) == len(left):
                left = []
                break
            left = [name for name in left or self.names() if name not in outcomes]
            if not left or (not report.outcomes and not report.running):
                break
        failures.update(dict.fromkeys(left, NOT_RUN if attempts.left_s else UNTRIED))
        failures.update({name: outcome.reason for name, outcome in outcomes.items() if outcome.reason})
        return {name: outcome for name, outcome in outcomes.items() if not outcome.reason}


def run_with_report(
    attempts: Attempts, words: Sequence[str], option: str, longest_s: float, read: Callable[[str], CaseReport]
) -> tuple[TriedCommand, CaseReport]:
    """Run a program that writes a report to the file which an option names, such as `--out=`, and return what `read` takes from it."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "report.xml")
        attempt = attempts.run([*words, f"{option}{file}"], longest_s=longest_s)
        report = read(file.read_text(errors="replace")) if file.is_file() else CaseReport()
    if attempt.code is None or attempt.code < 0:
        report = CaseReport(report.outcomes, report.running)
    return attempt, report


def elements(text: str) -> Iterator[tuple[str, Element]]:
    """Yield the starts and ends of the elements of XML that may end anywhere."""
    parser: Any = ElementTree.XMLPullParser(events=("start", "end"))
    with contextlib.suppress(ElementTree.ParseError):
        parser.feed(text)
        yield from parser.read_events()


def _in_a_command(names: Sequence[str]) -> Iterator[str]:
    """Yield the first names, as many as a command can hold."""
    size = 0
    for name in names:
        size += 2 * len(name.encode()) + 1  # each character may be escaped
        if size > _MOST_BYTES:
            return
        yield name
