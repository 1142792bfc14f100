"""Lists the benchmarks of programs with Google Benchmark, from 1.6 on.

What `Args` gave is part of a benchmark's name, `BM_sort/1000` or `BM_sort/n:1000`, and becomes parameters: those of one function and the
same parameters are one benchmark with points. From 1.8 on `--benchmark_min_time=100x` makes 100 iterations. Older versions choose their
number by time, and one iteration where the least time is none: they call the function again as a whole.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from perfdiff.languages.c.suites.attempts import Attempts, ProcessStart, quoted, why
from perfdiff.languages.c.suites.programs import TestProgram, selected, unique
from perfdiff.languages.c.suites.switches import with_switches
from perfdiff.languages.listing import CALLS, CASES, Benchmark, Listing, Values

TITLE = "Google Benchmark"
MARKS = (b"benchmark_list_tests", b"libbenchmark.so")
_NOTHING = "--benchmark_filter=^nothing of this name$"
_SUFFIX = re.compile(r"real_time|manual_time|process_time|(threads|iterations|repeats|min_time|min_warmup_time):.*")
_ARGUMENT = re.compile(r"(?:([A-Za-z_]\w*):)?(-?\d+)", re.ASCII)
_SPECIAL = re.compile(r"[\[.{(*+?^$|\\)]")  # of extended regular expressions, whichever library reads them
_PLACES = (CALLS.strip("{}"), CASES.strip("{}"))


@dataclass(frozen=True, slots=True)
class BenchmarkName:
    """A benchmark's name by its parts: the `family`, its arguments' names ("" where they have none), their values, and what else is set."""

    family: str
    arguments: tuple[str, ...]
    values: Values
    suffix: str

    @classmethod
    def read(cls, text: str) -> BenchmarkName:
        """Return the parts of a name."""
        parts = text.split("/")
        suffixes: list[str] = []
        arguments: list[tuple[str, str]] = []
        while len(parts) > 1 and _SUFFIX.fullmatch(parts[-1]):
            suffixes.insert(0, f"/{parts.pop()}")
        while len(parts) > 1 and (match := _ARGUMENT.fullmatch(parts[-1])):
            arguments.insert(0, (match[1] or "", match[2]))
            parts.pop()
        return cls("/".join(parts), tuple(name for name, _ in arguments), tuple(int(value) for _, value in arguments), "".join(suffixes))

    @property
    def parameters(self) -> tuple[str, ...]:
        """Return what the arguments are called as parameters."""
        counts = [self.arguments.count(name) for name in self.arguments]
        return tuple(
            name if name and count == 1 and name not in _PLACES else f"arg{place}"
            for place, (name, count) in enumerate(zip(self.arguments, counts, strict=True))
        )

    def filter(self, values: Sequence[object]) -> str:
        """Return the option for the shell that selects the benchmark with some values, or with places for them."""
        arguments = "".join(f"/{name}:{value}" if name else f"/{value}" for name, value in zip(self.arguments, values, strict=True))
        return f"{quoted(f'--benchmark_filter=^{_exact(self.family)}')}{arguments}{quoted(f'{_exact(self.suffix)}$')}"

    def has(self, setting: str) -> bool:
        """Return whether the benchmark sets something itself."""
        return f"/{setting}:" in self.suffix


def listed(value: str) -> Listing:
    """Return the benchmarks of the programs that a value means, all of those in the current folder by ""."""
    selection, attempts = selected(value, MARKS, TITLE), Attempts.within_limit()
    benchmarks: list[Benchmark] = []
    failures, start_s = dict(selection.failures), 0.0
    for program in selection.programs:
        listing = attempts.run([*program.words, "--benchmark_list_tests"])
        if why(listing):
            failures[program.path] = why(listing)
            continue
        trial = _Trial(program, attempts, attempts.start([*program.words, _NOTHING]), _counts_iterations(program, attempts))
        start_s = max(start_s, trial.start.cpu_s)
        names = [BenchmarkName.read(line) for line in dict.fromkeys(listing.output.splitlines()) if line.strip()]
        benchmarks += unique(trial.benchmarks(names, failures), benchmarks, program)
    return with_switches(Listing({benchmark.name: benchmark for benchmark in benchmarks}, failures, start_s))


@dataclass(frozen=True, slots=True)
class _Trial:
    """Tries the benchmarks of one program, which takes a number of iterations or does not."""

    program: TestProgram
    attempts: Attempts
    start: ProcessStart
    counts_iterations: bool

    def benchmarks(self, names: Sequence[BenchmarkName], failures: dict[str, str]) -> Iterator[Benchmark]:
        """Yield each function's benchmark with the points that run; add why others fail."""
        families: dict[BenchmarkName, list[BenchmarkName]] = {}
        for name in names:
            families.setdefault(replace(name, values=()), []).append(name)
        titles = [family.family + family.suffix for family in families]
        for (family, points), title in zip(families.items(), titles, strict=True):
            label = title if titles.count(title) == 1 or not family.arguments else f"{title} ({', '.join(family.parameters)})"
            options, is_repeatable = self._options(family)
            seconds = {point.values: self._seconds(point, options) for point in points}
            for values, reason in seconds.items():
                if isinstance(reason, str):
                    failures[f"{label} {'/'.join(map(str, values))}".strip()] = reason
            timed = {values: (second, is_repeatable) for values, second in seconds.items() if not isinstance(second, str)}
            if timed:
                selecting = family.filter([f"{{{parameter}}}" for parameter in family.parameters])
                command = f"{self.program.text} {selecting} {options} --benchmark_format=json >/dev/null"
                yield Benchmark(label, command, "", family.parameters, timed)

    def _options(self, family: BenchmarkName) -> tuple[str, bool]:
        """Return the options by which a benchmark is called a number of times, and whether they say how often."""
        if self.counts_iterations and not family.has("iterations"):
            return f"--benchmark_min_time={CALLS}x", True
        shortest = "" if self.counts_iterations else "--benchmark_min_time=0 "
        return (
            (f"{shortest}--benchmark_repetitions=1", False)
            if family.has("repeats")
            else (f"{shortest}--benchmark_repetitions={CALLS}", True)
        )

    def _seconds(self, point: BenchmarkName, options: str) -> float | str:
        """Return the seconds of a call, or why a benchmark cannot be compared."""
        own_times = ("min_warmup_time", *(() if self.counts_iterations or point.has("iterations") else ("min_time",)))
        if any(point.has(setting) for setting in own_times):
            return "sets for itself how long it runs: this version of Google Benchmark then counts no calls"
        reason = self._reason(point, options)
        words = [*self.program.words, _word(point)]
        return reason or self.attempts.seconds_of_call(
            lambda calls: self.attempts.run([*words, *options.replace(CALLS, str(calls)).split()]), self.start
        )

    def _reason(self, point: BenchmarkName, options: str) -> str:
        """Return why one call of a benchmark fails, "" where it does not."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "results.json")
            words = [*self.program.words, _word(point), *options.replace(CALLS, "1").split(), f"--benchmark_out={file}"]
            reason = why(self.attempts.run([*words, "--benchmark_out_format=json"]))
            if reason:
                return reason
            try:
                results = json.loads(file.read_text(errors="replace"))["benchmarks"]
                messages = [result.get("error_message") or result.get("skip_message") or "" for result in results]
            except (OSError, ValueError, KeyError, TypeError, AttributeError):
                return "no result of it was written"
        if not results:
            return "is no name of a benchmark"
        return next((f"skipped: {message}" for message in messages if message), "")


def _counts_iterations(program: TestProgram, attempts: Attempts) -> bool:
    """Return whether a program takes the number of iterations, which Google Benchmark does from 1.8 on."""
    attempt = attempts.run([*program.words, _NOTHING, "--benchmark_min_time=1x"])
    return not why(attempt) and "expected to be" not in attempt.errors


def _word(point: BenchmarkName) -> str:
    arguments = "".join(f"/{name}:{value}" if name else f"/{value}" for name, value in zip(point.arguments, point.values, strict=True))
    return f"--benchmark_filter=^{_exact(point.family)}{arguments}{_exact(point.suffix)}$"


def _exact(text: str) -> str:
    return _SPECIAL.sub(lambda match: f"\\{match.group()}", text)
