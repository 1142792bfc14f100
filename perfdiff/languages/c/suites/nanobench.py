"""Lists programs with nanobench: each is one benchmark, as nothing tells or selects what is in it.

nanobench chooses iterations by time, so a slower function is called less often in a run that lasts as long. Where a program reads
`NANOBENCH_CONFIG`, as versions after 4.6 do, the number is set.
"""

from __future__ import annotations

from pathlib import Path

from perfdiff.languages.c.suites import programs
from perfdiff.languages.c.suites.attempts import Attempts, why
from perfdiff.languages.c.suites.programs import BuiltProgram, holds
from perfdiff.languages.listing import CALLS, Benchmark, SuiteListing

_TAKES_SETTINGS = (b"NANOBENCH_CONFIG",)
_SETTINGS = f"NANOBENCH_CONFIG=epochs=1,warmup=0,epochIterations={CALLS}"
_QUIET = "NANOBENCH_SUPPRESS_WARNINGS=1"


def listed(value: str) -> SuiteListing:
    """Return the programs that a value means, all of those in the current folder by ""."""
    return programs.listed(value, "nanobench", "nanobench", _of_program)


def _of_program(program: BuiltProgram, attempts: Attempts, failures: dict[str, str]) -> tuple[list[Benchmark], float]:
    benchmark = _tried(program, attempts)
    if isinstance(benchmark, str):
        failures[program.path] = benchmark
        return [], 0.0
    return [benchmark], 0.0


def _tried(program: BuiltProgram, attempts: Attempts) -> Benchmark | str:
    """Return the benchmark that a program is, or why it is none."""
    name = Path(program.path).name
    if holds(Path(program.path), _TAKES_SETTINGS):
        command = f"{_SETTINGS} {_QUIET} {program.text} >/dev/null"
        seconds = attempts.seconds_of_call(command, attempts.start(command.replace(CALLS, "1")))
        return seconds if isinstance(seconds, str) else Benchmark(name, command, points={(): (seconds, True)})
    command = f"{_QUIET} {program.text} >/dev/null"
    attempt = attempts.shell(command)
    return why(attempt) or Benchmark(name, command, points={(): (attempt.wall_s, False)})
