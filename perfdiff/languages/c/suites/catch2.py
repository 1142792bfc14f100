"""Lists the test cases of programs with Catch2, versions 2 and 3: tests, and those with `BENCHMARK`.

Catch2 chooses the iterations of a sample by the clock: of a body that takes less than about 25 µs there are more than one. It first
measures the clock for 0.3 to 2 s, which is part of what a process takes before its first call.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from perfdiff.languages.c.suites import programs
from perfdiff.languages.c.suites.attempts import Attempts, quoted
from perfdiff.languages.c.suites.cases import CaseOutcome, CaseProgram, CaseReport, elements, run_with_report
from perfdiff.languages.c.suites.programs import BuiltProgram
from perfdiff.languages.listing import CALLS, CASES, Batch, Benchmark, SuiteListing, TriedCommand

_REPORT = ("--reporter", "xml", "--durations", "yes", "--rng-seed", "1")
_BENCHMARKS = ("--benchmark-warmup-time", "0", "--benchmark-no-analysis", "--benchmark-samples")
_HIDDEN = "[!benchmark]"  # the tag of benchmarks that run only when they are asked for
_QUIET = "--rng-seed 1 --out /dev/null"
_SPECIAL = re.compile(r'[\\,\[\]*"~]')  # of Catch2's expressions for tests
_NOTHING = "nothing of this name"


def listed(value: str) -> SuiteListing:
    """Return the test cases of the programs that a value means, all of those in the current folder by ""."""
    return programs.listed(value, "catch2", "Catch2", _of_program)


def _of_program(program: BuiltProgram, attempts: Attempts, failures: dict[str, str]) -> tuple[list[Benchmark], float]:
    start = attempts.start(f"{program.text} {quoted(_NOTHING)} {_QUIET} || true")
    outcomes = _cases(program, program.arguments, attempts).outcomes(attempts, failures)
    if all(word.startswith("-") for word in program.arguments):
        outcomes |= _cases(program, (*program.arguments, _HIDDEN), attempts).outcomes(attempts, failures)
    timed = [name for name, outcome in outcomes.items() if outcome.sample_s is not None]
    benchmarks = [_benchmark(program, name, outcome) for name, outcome in outcomes.items()]
    return benchmarks, max(start.cpu_s, _clock_s(program, timed[0], attempts) if timed else 0.0)


def _cases(program: BuiltProgram, arguments: Sequence[str], attempts: Attempts) -> CaseProgram:
    path = BuiltProgram(program.path).words

    def run(names: Sequence[str], longest_s: float) -> tuple[TriedCommand, CaseReport]:
        tests = [",".join(map(_escaped, names))] if names else arguments
        return run_with_report(attempts, [*path, *tests, *_REPORT, *_BENCHMARKS, "1"], "--out=", longest_s, read)

    def names() -> Sequence[str]:
        listing = attempts.run([*path, *arguments, "--list-tests", "--verbosity", "quiet"])
        old = attempts.run([*path, *arguments, "--list-test-names-only"]) if not listing.output.strip() else listing
        return [line.strip() for line in old.output.splitlines() if line.strip()]

    return CaseProgram(program.path, run, names)


def read(text: str) -> CaseReport:
    """Parse Catch2's report of a run."""
    outcomes: dict[str, CaseOutcome] = {}
    running, is_complete, sample_s = "", False, None
    for event, element in elements(text):
        if event == "start" and element.tag == "TestCase":
            running, sample_s = element.get("name", "").strip(), None
        elif event == "end" and element.tag == "BenchmarkResults":
            mean = element.find("mean")
            nanoseconds = float(mean.get("value", "0")) if mean is not None else 0.0
            sample_s = (sample_s or 0.0) + nanoseconds * 1e-9 * int(element.get("iterations", "1"))
        elif event == "end" and element.tag == "TestCase":
            result = element.find("OverallResult")
            outcomes[running], running = _outcome(result.attrib if result is not None else {}, sample_s), ""
        elif event == "end" and element.tag in ("Catch2TestRun", "Catch"):
            is_complete = True
    return CaseReport(outcomes, running, is_complete)


def _outcome(result: dict[str, str], sample_s: float | None) -> CaseOutcome:
    reason = "fails" if result.get("success") != "true" else "is skipped" if int(result.get("skips", "0")) else ""
    return CaseOutcome(float(result.get("durationInSeconds", "0")), reason, sample_s)


def _benchmark(program: BuiltProgram, name: str, outcome: CaseOutcome) -> Benchmark:
    path, case = BuiltProgram(program.path).text, quoted(_escaped(name))
    if outcome.sample_s is not None:
        command = f"{path} {case} {' '.join(_BENCHMARKS)} {CALLS} {_QUIET}"
        return Benchmark(name, command, points={(): (outcome.sample_s, True)})
    batch = Batch(f"{path} {CASES} {_QUIET}", case, ",")
    return Benchmark(name, batch.command.replace(CASES, case), points={(): (outcome.seconds, False)}, batch=batch)


def _clock_s(program: BuiltProgram, name: str, attempts: Attempts) -> float:
    """Return the CPU time of a process with a benchmark that makes one sample: measuring the clock takes nearly all of it."""
    once = f"{BuiltProgram(program.path).text} {quoted(_escaped(name))} {' '.join(_BENCHMARKS)} 1 {_QUIET}"
    return attempts.shell(once).cpu_s


def _escaped(name: str) -> str:
    return _SPECIAL.sub(lambda match: f"\\{match.group()}", name)
