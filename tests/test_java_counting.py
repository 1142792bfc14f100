"""What calls of Java methods do, counted without a clock: basic blocks, objects, and calls of what is not the project's, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import java_programs
import runtimes
from java_programs import Program
from perfdiff.languages.java import agent, counting, start
from perfdiff.records.plan import Entry, Mode
from perfdiff.records.recording import Recording

pytestmark = pytest.mark.integration

OWN = Entry(Mode.SAMPLE, reservoir=1000, own=True)


@dataclass(frozen=True, slots=True)
class Counted(Program):
    """A program all of whose classes count."""

    def attached(self, options: str) -> dict[str, str]:
        woven = counting.weave(self.jdk, self.tree, self.probes, runtimes.KEPT)
        library = agent.build_counting(self.jdk, runtimes.library(), "gcc", runtimes.KEPT)
        return start.counting(woven.sheet, woven.outside, library, options)


Make = Callable[..., Counted]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def made(files: str | Mapping[str, str], *methods: str) -> Counted:
        named = {"Main.java": files} if isinstance(files, str) else files
        program = java_programs.program(tmp_path, java_programs.jdk(), named, dict.fromkeys(methods, ()), "-g")
        return Counted(program.folder, program.jdk, program.probes)

    return made


def own(record: Recording, number: int, counter: str) -> list[int]:
    """Return what each call of a method counted itself, in the order of the calls."""
    samples = record.samples[number]
    return [int(samples.counters[counter][row]) for row in np.argsort(samples.call)]


MAIN = """
import java.util.*;
class Main {
    static int inner(int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) sum += i;
        return sum;
    }
    static int outer(int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) sum += inner(i) + helper(i);
        return sum;
    }
    static int helper(int n) { return n > 2 ? 1 : 0; }
    public static void main(String[] arguments) {
        for (String each : arguments) outer(Integer.parseInt(each));
        System.out.println("done");
    }
}
"""


def test_each_call_has_its_own_blocks(make: Make) -> None:
    program = make(MAIN, "Main inner (I)I", "Main outer (I)I")
    outcome = program.run("-cp", ".", "Main", "10", "3", mode=OWN)
    assert (outcome.output, outcome.said, outcome.notes) == ("done\n", "", ())
    # Blocks: the start, the condition once more than the body, the body, and the return.
    assert own(outcome.only, 1, "bytecode_blocks") == [3 + 2 * n for n in (*range(10), *range(3))]
    # Each step adds its helper's, which has no probe: the condition, one of its two sides, and the return.
    assert own(outcome.only, 2, "bytecode_blocks") == [3 + 2 * n + 3 * n for n in (10, 3)]
