"""Cases of suites: benchmarks and tests that all revisions have, how often a run calls them, and which run in one process."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from perfdiff.config import WorkloadConfig
from perfdiff.languages.listing import CALLS, CASES, LIMIT_S, Batch, Benchmark
from perfdiff.records.endless import LEAST_RATIO

LEAST_S = 0.05  # that the calls of a run take at the point where they take least: a start of Python with its imports takes about as long
MOST_S = 1.0  # that they take where they take most: a comparison makes ten runs and more of each point
_STEPS = (1, 2, 5)  # of the numbers of calls: small differences of the machine's speed lead to the same number
_MOST_BYTES = 60_000  # of names in a command, which is one argument of the shell: Linux allows 128 KiB for that


@dataclass(frozen=True, slots=True)
class SuiteCase:
    """A benchmark or test that all revisions have, as each of the `sides` tells it, or `size` tests that run in one process.

    A run takes `start_s` seconds of CPU time before the first call.
    """

    suite: WorkloadConfig
    sides: Sequence[Benchmark]
    start_s: float
    size: int = 1

    @property
    def name(self) -> str:
        """Return the name of its workload."""
        name = self.sides[-1].name
        return self.suite.name if self.suite.suite and name == self.suite.suite.what else name

    @property
    def batch(self) -> Batch | None:
        """Return how the case runs in one process with others, None if it cannot."""
        return self.sides[-1].batch

    @property
    def points(self) -> int:
        """Return at how many points it runs."""
        return len(self.sides[-1].points)

    @property
    def call_s(self) -> float:
        """Return how many seconds a call takes at its slowest point, on the slower side."""
        return max(seconds for side in self.sides for seconds, _ in side.points.values())

    @property
    def is_short(self) -> bool:
        """Return whether it is a test that is too short to be timed alone."""
        return self.batch is not None and self.call_s < LEAST_S

    @property
    def seems_slower(self) -> bool:
        """Return whether calls in head took more than twice as long when they were listed, and by what is no chance of a busy machine."""
        base, head = self.sides[0].points, self.sides[-1].points
        return any(head[point][0] - base[point][0] > max(LEAST_S, base[point][0]) for point in head)

    @property
    def calls(self) -> int:
        """Return how often it is called in a run that can be timed."""
        return calls(self.sides, self.start_s)

    @property
    def run_s(self) -> float:
        """Return how many seconds a run of each of its points takes, all together."""
        last = self.sides[-1]
        slowest = (max(side.points[point][0] for side in self.sides) for point in last.points)
        return sum(self.start_s + self.calls * seconds for seconds in slowest)

    def workload(self, number: int, least_limit_s: float = LIMIT_S) -> WorkloadConfig:
        """Return the workload that calls it `number` times in a run, which hangs where it takes far longer, and `least_limit_s` or more."""
        last = self.sides[-1]
        values = [tuple(dict.fromkeys(column)) for column in zip(*last.points, strict=True)]
        return replace(
            self.suite,
            name=self.name,
            command=last.command.replace(CALLS, str(number)),
            once=last.command.replace(CALLS, "1") if number > 1 and CALLS in last.command else None,
            setup=" && ".join(filter(None, (self.suite.setup, last.setup))) or None,
            parameters=dict(zip(last.parameters, values, strict=True)),
            suite=None,
            left_out=tuple(combination for combination in itertools.product(*values) if combination not in last.points),
            plain_timeout_s=max(least_limit_s, LEAST_RATIO * self.run_s),
        )


def together(cases: Sequence[SuiteCase], name: str) -> SuiteCase:
    """Return one case that runs several tests of a suite in one process; the tests must share the command of their batch."""
    first = cases[0]
    sides = [_one_process([case.sides[side] for case in cases], name) for side in range(len(first.sides))]
    return SuiteCase(first.suite, sides, first.start_s, sum(case.size for case in cases))


def in_processes(cases: Sequence[SuiteCase]) -> Iterator[list[SuiteCase]]:
    """Yield tests that run in one process together, as many as a command can name; others alone, in the order of the first ones."""
    groups: dict[tuple[str, ...], list[SuiteCase]] = {}
    for index, case in enumerate(cases):
        batch = case.batch
        again = all(
            again for side in case.sides for _, again in side.points.values()
        )  # what is run once keeps none from running more often
        alike = (str(index),) if batch is None else (case.suite.name, batch.command, case.sides[-1].setup, str(again))
        groups.setdefault(alike, []).append(case)
    for group in groups.values():
        ends = itertools.accumulate(len((case.batch.joint + case.batch.case).encode()) if case.batch else 0 for case in group)
        commands = itertools.groupby(zip(group, ends, strict=True), key=lambda reached: reached[1] // _MOST_BYTES)
        yield from ([case for case, _ in command] for _, command in commands)


def joined(cases: Sequence[SuiteCase]) -> Iterator[SuiteCase]:
    """Yield cases with short tests of one process together."""
    yield from (case for case in cases if not case.is_short)
    for tests in in_processes([case for case in cases if case.is_short]):
        yield tests[0] if len(tests) == 1 else together(tests, f"{tests[0].suite.name}: {len(tests)} tests")


def _one_process(tests: Sequence[Benchmark], name: str) -> Benchmark:
    points = [point for test in tests for point in test.points.values()]
    batches = [test.batch for test in tests if test.batch is not None]
    command = batches[0].command.replace(CASES, batches[0].joint.join(batch.case for batch in batches))
    return Benchmark(name, command, tests[0].setup, (), {(): (sum(seconds for seconds, _ in points), all(again for _, again in points))})


def calls(sides: Sequence[Benchmark], start_s: float) -> int:
    """Return how often a benchmark is called in a run: as often in each revision and at each point, so that growth can be seen.

    The calls take as long as a run needs to start, and `LEAST_S` at least, at the point where they take least; but no more than
    `MOST_S`, or that time, where they take most.
    """
    seconds = [point for benchmark in sides for point in benchmark.points.values()]
    if not all(again for _, again in seconds):
        return 1
    least = max(LEAST_S, start_s)
    shortest, longest = (max(choose(second for second, _ in seconds), 1e-9) for choose in (min, max))
    number = max(1.0, min(least / shortest, max(MOST_S, least) / longest))
    power = 10 ** math.floor(math.log10(number))
    return int(power * max(step for step in _STEPS if step * power <= number))
