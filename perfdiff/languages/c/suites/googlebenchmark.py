"""Lists the benchmarks of programs with Google Benchmark, from 1.6 on.

What `Args` gave is part of a benchmark's name, `BM_sort/1000` or `BM_sort/n:1000`, and becomes parameters: those of one function and the
same parameters are one benchmark with points. From 1.8 on `--benchmark_min_time=100x` makes 100 iterations. Older versions choose their
number by time, and one iteration where the least time is none: they call the function again as a whole.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from perfdiff.languages.c.suites import programs
from perfdiff.languages.c.suites.attempts import Attempts, ProcessStart, quoted, why
from perfdiff.languages.c.suites.programs import BuiltProgram
from perfdiff.languages.listing import CALLS, CASES, Benchmark, SuiteListing, Values

_NOTHING = "--benchmark_filter=^nothing of this name$"
_QUIET = "--benchmark_format=json >/dev/null"  # without this format, the time of day stands on the standard error
_SUFFIX = re.compile(r"real_time|manual_time|process_time|(threads|iterations|repeats|min_time|min_warmup_time):.*")
_ARGUMENT = re.compile(r"(?:([A-Za-z_]\w*):)?(-?\d+)", re.ASCII)
_SPECIAL = re.compile(r"[\[.{(*+?^$|\\)]")  # of extended regular expressions, whichever library reads them
_PLACES = (CALLS.strip("{}"), CASES.strip("{}"))


@dataclass(frozen=True, slots=True)
class BenchmarkName:
    """The parts of a benchmark's name: `family`, names of the arguments ("" if they have none), their values, further settings."""

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
        """Return the names of the arguments as parameters of a workload."""
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


def listed(value: str) -> SuiteListing:
    """Return the benchmarks of the programs that a value means, all of those in the current folder by ""."""
    return programs.listed(value, "googlebenchmark", "Google Benchmark", _of_program)


def _of_program(program: BuiltProgram, attempts: Attempts, failures: dict[str, str]) -> tuple[Iterable[Benchmark], float]:
    listing = attempts.run([*program.words, "--benchmark_list_tests"])
    if why(listing):
        failures[program.path] = why(listing)
        return (), 0.0
    start = attempts.start(f"{program.text} {quoted(_NOTHING)} {_QUIET}")
    names = [BenchmarkName.read(line) for line in dict.fromkeys(listing.output.splitlines()) if line.strip()]
    return _Trial(program, attempts, start, _counts_iterations(program, attempts)).benchmarks(names, failures), start.cpu_s


@dataclass(frozen=True, slots=True)
class _Trial:
    """Tries the benchmarks of one program, which takes a number of iterations or does not."""

    program: BuiltProgram
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
                command = self._command(selecting, options)
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
        return reason or self.attempts.seconds_of_call(self._command(point.filter(point.values), options), self.start)

    def _command(self, selecting: str, options: str) -> str:
        return f"{self.program.text} {selecting} {options} {_QUIET}"

    def _reason(self, point: BenchmarkName, options: str) -> str:
        """Return why one call of a benchmark fails, "" where it does not."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "results.json")
            written = f"--benchmark_out={quoted(str(file))} --benchmark_out_format=json"
            once = self._command(point.filter(point.values), f"{options.replace(CALLS, '1')} {written}")
            reason = why(self.attempts.shell(once))
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


def _counts_iterations(program: BuiltProgram, attempts: Attempts) -> bool:
    """Return whether a program takes the number of iterations, which Google Benchmark does from 1.8 on."""
    attempt = attempts.run([*program.words, _NOTHING, "--benchmark_min_time=1x"])
    return not why(attempt) and "expected to be" not in attempt.errors


def _exact(text: str) -> str:
    return _SPECIAL.sub(lambda match: f"\\{match.group()}", text)
