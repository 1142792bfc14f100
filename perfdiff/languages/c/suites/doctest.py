"""Lists the test cases of programs with doctest."""

from __future__ import annotations

from collections.abc import Sequence

from perfdiff.languages.c.suites import programs
from perfdiff.languages.c.suites.attempts import Attempts, quoted
from perfdiff.languages.c.suites.cases import CaseOutcome, CaseProgram, CaseReport, elements, run_with_report
from perfdiff.languages.c.suites.programs import BuiltProgram
from perfdiff.languages.listing import CASES, Batch, Benchmark, SuiteListing, TriedCommand

_ALIKE = ("--case-sensitive=true", "--order-by=file")
_REPORT = ("--reporters=xml", "--duration=true")
_QUIET = f"{' '.join(_ALIKE)} --out=/dev/null"
_FILTER = "--test-case="


def listed(value: str) -> SuiteListing:
    """Return the test cases of the programs that a value means, all of those in the current folder by ""."""
    return programs.listed(value, "doctest", "doctest", _of_program)


def _of_program(program: BuiltProgram, attempts: Attempts, failures: dict[str, str]) -> tuple[list[Benchmark], float]:
    start = attempts.start(f"{program.text} {quoted(f'{_FILTER}nothing of this name')} {_QUIET}")
    outcomes = _cases(program, attempts).outcomes(attempts, failures)
    return [_benchmark(program, name, outcome) for name, outcome in outcomes.items()], start.cpu_s


def _cases(program: BuiltProgram, attempts: Attempts) -> CaseProgram:
    def run(names: Sequence[str], longest_s: float) -> tuple[TriedCommand, CaseReport]:
        tests = [_FILTER + ",".join(map(_escaped, names))] if names else []
        return run_with_report(attempts, [*program.words, *tests, *_ALIKE, *_REPORT], "--out=", longest_s, read)

    def names() -> Sequence[str]:
        _, report = run_with_report(attempts, [*program.words, "--list-test-cases", "--reporters=xml"], "--out=", attempts.left_s, read)
        return list(report.outcomes)

    return CaseProgram(program.path, run, names)


def read(text: str) -> CaseReport:
    """Parse doctest's report of a run."""
    outcomes: dict[str, CaseOutcome] = {}
    running, is_complete = "", False
    for event, element in elements(text):
        if event == "start" and element.tag == "TestCase":
            running = element.get("name", "")
        elif event == "end" and element.tag == "TestCase":
            result = element.find("OverallResultsAsserts")
            values = result.attrib if result is not None else {}
            if element.get("skipped") != "true":
                passes = values.get("test_case_success", "true") == "true" and values.get("failures", "0") == "0"
                outcomes[running] = CaseOutcome(float(values.get("duration", "0")), "" if passes else "fails")
            running = ""
        elif event == "end" and element.tag == "doctest":
            is_complete = True
    return CaseReport(outcomes, running, is_complete)


def _benchmark(program: BuiltProgram, name: str, outcome: CaseOutcome) -> Benchmark:
    batch = Batch(f"{program.text} {_FILTER}{CASES} {_QUIET}", quoted(_escaped(name)), ",")
    return Benchmark(name, batch.command.replace(CASES, batch.case), points={(): (outcome.seconds, False)}, batch=batch)


def _escaped(name: str) -> str:
    return name.replace(",", "\\,")
