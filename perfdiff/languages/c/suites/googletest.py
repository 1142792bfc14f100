"""Lists the tests of programs with GoogleTest; those of a parameter that is a number are one benchmark with points."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from perfdiff.languages.c.suites import programs
from perfdiff.languages.c.suites.attempts import Attempts, quoted, why
from perfdiff.languages.c.suites.cases import CaseOutcome, CaseProgram, CaseReport
from perfdiff.languages.c.suites.programs import BuiltProgram
from perfdiff.languages.listing import CALLS, CASES, Batch, Benchmark, SuiteListing, TriedCommand, Values

_FILTER = "--gtest_filter="
_QUIET = f"--gtest_repeat={CALLS} --gtest_brief=1 --gtest_shuffle=0 >/dev/null"
_SHORT_S = 5e-5  # a test that takes no whole millisecond: may it take nearly one, it still is called for no more than a second
_RAN = re.compile(r"\[ +(OK|FAILED|SKIPPED) +\] ([^\s,]+).*\((\d+) ms\)$", re.MULTILINE)
_STARTED = re.compile(r"\[ RUN +\] (\S+)$", re.MULTILINE)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_ENDED = "[==========]"


@dataclass(frozen=True, slots=True)
class ListedTest:
    """A test by its full name, and its parameter: a number, None where it has none."""

    name: str
    number: float | None


def listed(value: str) -> SuiteListing:
    """Return the tests of the programs that a value means, all of those in the current folder by ""."""
    return programs.listed(value, "googletest", "GoogleTest", _of_program)


def _of_program(program: BuiltProgram, attempts: Attempts, failures: dict[str, str]) -> tuple[Iterable[Benchmark], float]:
    listing = attempts.run([*program.words, "--gtest_list_tests"])
    tests = list(listed_tests(listing.output))
    if why(listing) or not tests:
        failures[program.path] = why(listing) or "has no tests"
        return (), 0.0
    start = attempts.start(f"{program.text} {_FILTER}nothing.here >/dev/null")
    runs = CaseProgram(program.path, _Runs(program, attempts).run, lambda: [test.name for test in tests])
    seconds = {name: outcome.seconds for name, outcome in runs.outcomes(attempts, failures).items()}
    return _benchmarks(program, tests, seconds), start.cpu_s


def listed_tests(text: str) -> Iterator[ListedTest]:
    """Yield the tests that `--gtest_list_tests` prints."""
    suite = ""
    for line in text.splitlines():
        name, _, comment = line.partition("#")
        if line.startswith("  ") and suite:
            value = comment.partition("=")[2].strip() if "GetParam()" in comment else ""
            test = suite + name.strip()
            yield ListedTest(test, (float(value) if "." in value else int(value)) if _NUMBER.fullmatch(value) else None)
        elif name.strip().endswith("."):
            suite = name.strip()


@dataclass(frozen=True, slots=True)
class _Runs:
    program: BuiltProgram
    attempts: Attempts

    def run(self, names: Sequence[str], longest_s: float) -> tuple[TriedCommand, CaseReport]:
        """Run tests in one process, and return what it prints of them."""
        tests = [_FILTER + ":".join(names)] if names else []
        attempt = self.attempts.run([*self.program.words, *tests, "--gtest_color=no", "--gtest_shuffle=0"], longest_s=longest_s)
        return attempt, read(attempt)


def read(attempt: TriedCommand) -> CaseReport:
    """Parse what a run of GoogleTest prints; it gives times in whole milliseconds."""
    ended = {name: (status, int(milliseconds)) for status, name, milliseconds in _RAN.findall(attempt.output)}
    reasons = {"OK": "", "FAILED": "fails", "SKIPPED": "is skipped"}
    outcomes = {name: CaseOutcome(number / 1000 or _SHORT_S, reasons[status]) for name, (status, number) in ended.items()}
    running = next((name for name in reversed(_STARTED.findall(attempt.output)) if name not in ended), "")
    return CaseReport(outcomes, running, attempt.output.count(_ENDED) > 1 and not running)


def _benchmarks(program: BuiltProgram, tests: Sequence[ListedTest], seconds: Mapping[str, float]) -> Iterator[Benchmark]:
    """Yield benchmarks: tests with numbers as parameters by the name that they share, others one by one."""
    families: dict[str, list[ListedTest]] = {}
    for test in tests:
        if test.name in seconds:
            families.setdefault(test.name.rpartition("/")[0] if test.number is not None else test.name, []).append(test)
    for name, family in families.items():
        numbers = {test.number: test.name for test in family if test.number is not None}
        if len(numbers) == len(family):
            yield _with_points(program, name, {number: (test, seconds[test]) for number, test in numbers.items()})
        else:
            yield from (_alone(program, test.name, seconds[test.name]) for test in family)


def _with_points(program: BuiltProgram, name: str, tests: Mapping[float, tuple[str, float]]) -> Benchmark:
    """Return tests of one function as points: their names end in the place of their value among all, which the shell finds."""
    ends = {number: test.removeprefix(name) for number, (test, _) in tests.items()}
    if all(end == f"/{number}" for number, end in ends.items()):
        end = "/{value}"
    else:
        end = f"$(case {{value}} in {' '.join(f'{number}) echo {quoted(text)};;' for number, text in ends.items())} esac)"
    points: dict[Values, tuple[float, bool]] = {(number,): (seconds, True) for number, (_, seconds) in tests.items()}
    return Benchmark(name, f"{program.text} {_FILTER}{quoted(name)}{end} {_QUIET}", "", ("value",), points)


def _alone(program: BuiltProgram, name: str, seconds: float) -> Benchmark:
    batch = Batch(f"{program.text} {_FILTER}{CASES} {_QUIET}", quoted(name), ":")
    return Benchmark(name, batch.command.replace(CASES, batch.case), points={(): (seconds, True)}, batch=batch)
