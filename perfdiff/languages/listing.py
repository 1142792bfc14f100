"""What a program that lists a suite tells: a file of JSON, which perfdiff reads.

Drivers that run in the interpreter of a project write it themselves, as their language's pack says. A framework whose programs tell what is
in them by their own options is listed by a function of the pack, which `command` makes perfdiff's own interpreter call in the built tree.

    {"benchmarks": [{"name", "command", "setup", "parameters": {NAME: VALUES}, "points": [[VALUES, SECONDS, REPEATABLE], …], "batch"}, …],
     "failures": {NAME: WHY}, "start_s": SECONDS, "whole": whether all was tried in its time, "untried": [NAMES of failures]}

A `command` has the place `{calls}` for how often the benchmark is called in a run, and one for each parameter; what cannot be called again
within a process is not REPEATABLE. SECONDS are those of one call, `start_s` is the CPU time of a process before its first call. `batch`
says how several short tests run in one process: null, or {"command", with the place `{cases}`, "case", "joint" between cases}.
"""

from __future__ import annotations

import json
import os
import resource
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from perfdiff.languages.installed import loaded

LISTED_TO = "PERFDIFF_LISTING"  # the variable that names the file
LISTING_S = "PERFDIFF_LISTING_S"  # the variable that says in how many seconds a listing has to end
LIKELY = "PERFDIFF_LISTING_LIKELY"  # the variable with words of what changed: what is named by them is tried before all else
LONGEST_S = "PERFDIFF_LISTING_LONGEST_S"  # the variable that says how many seconds a benchmark may take, where it is not as usual
CALLS, CASES = "{calls}", "{cases}"  # places in commands
LIMIT_S = 60.0  # where nobody says it
UNTRIED = "was not tried: the time for the listing was over"  # why a benchmark is not listed that need not fail

Values = tuple[float | str, ...]


@dataclass(frozen=True, slots=True)
class Batch:
    """How a test runs together with others of the same `command` in one process: as its `case`, with `joint` between two."""

    command: str
    case: str
    joint: str

    @property
    def is_of_commands(self) -> bool:
        """Return whether cases are commands of their own, which a shell runs one after the other."""
        return self.command == CASES


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A benchmark or a test in one revision: `points` are the seconds of a call, and whether it can be made again, by parameters' values.

    The command runs it as often as the number in its place `{calls}` says; `setup` comes before the runs of a point.
    """

    name: str
    command: str
    setup: str = ""
    parameters: tuple[str, ...] = ()
    points: Mapping[Values, tuple[float, bool]] = field(default_factory=dict)
    batch: Batch | None = None


@dataclass(frozen=True, slots=True)
class SuiteListing:
    """What a suite has in one revision, why others fail, by name, and the CPU time in seconds that a run takes before its first call.

    One that is not `whole` ran out of time, and has more whose names it does not know. Of the failures, `untried` ones had no time.
    """

    benchmarks: Mapping[str, Benchmark] = field(default_factory=dict)
    failures: Mapping[str, str] = field(default_factory=dict)
    start_s: float = 0.0
    whole: bool = True
    untried: frozenset[str] = frozenset()

    @classmethod
    def read(cls, text: str) -> SuiteListing:
        """Parse a listing's JSON; raise ValueError, KeyError or TypeError if it is none."""
        table = json.loads(text)
        benchmarks = {
            entry["name"]: Benchmark(
                entry["name"],
                entry["command"],
                entry["setup"],
                tuple(entry["parameters"]),
                {tuple(values): (float(seconds), bool(again)) for values, seconds, again in entry["points"]},
                Batch(**entry["batch"]) if entry.get("batch") else None,
            )
            for entry in table["benchmarks"]
        }
        untried = frozenset(map(str, table.get("untried", ())))
        return cls(benchmarks, dict(table["failures"]), float(table["start_s"]), bool(table.get("whole", True)), untried)

    def written(self) -> str:
        """Return the JSON of the listing."""
        benchmarks = [
            {**asdict(benchmark), "points": [[list(values), *point] for values, point in benchmark.points.items()]}
            for benchmark in self.benchmarks.values()
        ]
        untried = sorted(self.untried.union(name for name, why in self.failures.items() if why == UNTRIED))
        beside = {"failures": self.failures, "start_s": self.start_s, "whole": self.whole, "untried": untried}
        return json.dumps({"benchmarks": benchmarks, **beside})


@dataclass(frozen=True, slots=True)
class TriedCommand:
    """A command that was run: its exit code (None: it was ended, as it took too long), what it printed, and what it took."""

    code: int | None
    output: str
    errors: str
    wall_s: float
    cpu_s: float


def command(function: str, *words: str) -> str:
    """Return the shell command by which perfdiff's own interpreter lists a suite: `function` is `module:name`, called with `words`."""
    return shlex.join([sys.executable, "-P", "-m", __name__, function, *words])


def limit_s() -> float:
    """Return in how many seconds the listing has to end; what is not tried by then is told as a failure."""
    return float(os.environ.get(LISTING_S, LIMIT_S))


def longest_s(usual: float) -> float:
    """Return how many seconds one benchmark may take: as the environment says, else `usual`."""
    return float(os.environ.get(LONGEST_S, usual))


def tried(words: Sequence[str], timeout_s: float, directory: Path | None = None) -> TriedCommand:
    """Run a command without a shell, and return what came of it; one that cannot be started has the shell's code for that.

    One that takes too long is ended with all that it started.
    """
    before, started = _cpu_s(), time.perf_counter()
    code: int | None
    try:
        with subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=directory, start_new_session=True
        ) as process:
            try:
                output, errors = process.communicate(timeout=timeout_s)
                code = process.returncode
            except subprocess.TimeoutExpired as error:
                os.killpg(process.pid, signal.SIGKILL)
                code, output, errors = None, error.stdout or b"", error.stderr or b""
    except OSError as error:
        code, output, errors = 127, b"", (error.strerror or str(error)).encode()
    seconds = time.perf_counter() - started
    return TriedCommand(code, output.decode(errors="replace"), errors.decode(errors="replace"), seconds, _cpu_s() - before)


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main(words: Sequence[str]) -> None:
    """Call a function of a pack, and write the listing that it returns."""
    function, *rest = words
    lists: Callable[..., SuiteListing] = loaded(function)
    Path(os.environ.get(LISTED_TO, "/dev/stderr")).write_text(lists(*rest).written(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
