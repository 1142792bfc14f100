"""Programs that a clock ends: what they repeat tells, or nothing does."""

from __future__ import annotations

from pathlib import Path

import pytest

from perfdiff import pipeline
from perfdiff.analysis.findings import Verdict
from perfdiff.progress import Silent
from perfdiff.report.sentences.catalogue import say
from programs import first_two

MAKEFILE = "prog: prog.c\n\t$(CC) -O2 -o prog prog.c\n"
TOML = 'measure.budget_s = 3\n[[workload]]\nname = "rate"\ncommand = "./prog"\nruns = 5\n'
# It is its own CPU time that ends it, which no machine lengthens.
RATE = """#include <stdio.h>
#include <time.h>
static unsigned mixed = 1;
__attribute__((noinline)) static void mix(int n) { for (int i = 0; i < n; i++) mixed = mixed * 31 + (mixed >> 3) + i; }
int main(void)
{
    long times = 0;
    while (clock() < CLOCKS_PER_SEC / 12) { mix(STEPS); times++; }
    puts(times > 1 ? "done" : "slow");
}
"""


@pytest.mark.integration
def test_larger_steps_of_a_program_that_a_clock_ends_are_not_called_harmless(tmp_path: Path) -> None:
    base, head = (RATE.replace("STEPS", steps) for steps in ("20000", "34000"))
    request = first_two(tmp_path, ({"prog.c": base, "Makefile": MAKEFILE, "perfdiff.toml": TOML}, {"prog.c": head}))
    found = pipeline.compare(request, Silent()).findings
    assert found.verdict is not Verdict.IMPROVEMENT
    assert found.verdict is not Verdict.UNCHANGED, say(found.sentence)
