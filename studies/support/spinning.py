"""A program whose functions spin for a known time, in revisions that slow some of them down by a known share.

A round is a multiplication that waits for the one before, so that its time depends on neither alignment nor cache; how many make a
microsecond is measured once on this machine.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from perfdiff.config import WorkloadConfig
from studies.support.sizes import repository

NOMINAL_US = {"work_1us": 1, "work_10us": 10, "work_100us": 100, "work_1ms": 1_000, "work_10ms": 10_000}
CALLS = {"work_1us": 10_000, "work_10us": 1000, "work_100us": 150, "work_1ms": 15, "work_10ms": 3}  # a run, which makes one function work
FACTORS = (0.0, 0.02, 0.05, 0.10, 0.30)  # what head adds
SIZES = (50.0, 75.0, 100.0)  # n; the largest takes the nominal time
MAKEFILE = "CFLAGS ?= -O2 -g\n\nspin: spin.c\n\t$(CC) $(CFLAGS) -o $@ spin.c\n"
ROUND = '\t\t__asm__ volatile("" : "+r"(x));\n\t\tx = x * 33 + 1;\n'
CALIBRATION = f"""
#include <stdio.h>
#include <time.h>
int main(void) {{
	double least = 1e9;
	unsigned long x = 1;
	for (int i = 0; i < 200; i++) {{
		struct timespec a, b;
		clock_gettime(CLOCK_MONOTONIC, &a);
		for (long left = 100000; left > 0; left--) {{
{ROUND}		}}
		clock_gettime(CLOCK_MONOTONIC, &b);
		double ns = ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) / 100000;
		least = ns < least ? ns : least;
	}}
	printf("%f\\n", least);
	return x == 0;
}}
"""


def round_ns() -> float:
    """Return how long a round takes on this machine: the least of many trials."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "calibration.c"
        source.write_text(CALIBRATION)
        subprocess.run(["gcc", "-O2", source, "-o", source.with_suffix("")], check=True)
        return float(subprocess.run([source.with_suffix("")], check=True, capture_output=True, text=True).stdout)


def added(turn: int) -> dict[str, float]:
    """Return what head number `turn` adds to each function: every function meets every factor once in so many turns."""
    return {name: FACTORS[(place + turn) % len(FACTORS)] for place, name in enumerate(NOMINAL_US)}


def source(rounds: Mapping[str, float], extra: Mapping[str, float] | None) -> str:
    """Return the program; in head, where `extra` is given, each function's text differs, if only by a sum with 0."""
    parts = ["#include <stdio.h>\n#include <stdlib.h>\n\n"]
    for name, nominal in rounds.items():
        amount = f"{nominal:.0f}L" if extra is None else f"({nominal:.0f}L + {nominal * extra[name]:.0f}L)"
        parts.append(
            f"static unsigned long {name}(long n)\n{{\n\tunsigned long x = n;\n\tlong left;\n\n"
            f"\tfor (left = n * {amount} / 1000; left > 0; left--) {{\n{ROUND}\t}}\n\treturn x;\n}}\n\n"
        )
    parts.append("int main(int argc, char **argv)\n{\n\tint which = argc > 1 ? atoi(argv[1]) : 0;\n")
    parts.append("\tlong n = argc > 2 ? atol(argv[2]) : 100;\n\tunsigned long sum = 0;\n\tint i;\n\n\tswitch (which) {\n")
    parts += [
        f"\tcase {place}:\n\t\tfor (i = 0; i < {CALLS[name]}; i++)\n\t\t\tsum += {name}(n);\n\t\tbreak;\n"
        for place, name in enumerate(rounds)
    ]
    parts.append('\t}\n\tprintf("%s\\n", sum ? "done" : "nothing");\n\treturn 0;\n}\n')
    return "".join(parts)


def program(room: Path) -> Path:
    """Return a repository with `base`, and `head0` to `head4`, each with other functions slowed down."""
    checkout = room / "spin"
    if checkout.exists():
        return checkout
    ns = round_ns()
    rounds = {name: 1000 * us * 1000 / ns / SIZES[-1] for name, us in NOMINAL_US.items()}
    revisions = {"base": {"spin.c": source(rounds, None), "Makefile": MAKEFILE}}
    revisions |= {f"head{turn}": {"spin.c": source(rounds, added(turn))} for turn in range(len(FACTORS))}
    return repository(checkout, revisions)


def workload(runs: int) -> WorkloadConfig:
    """Return the workload with so many runs: each function alone, at three sizes."""
    return WorkloadConfig("spin", "./spin {which} {n}", {"which": tuple(map(float, range(len(NOMINAL_US)))), "n": SIZES}, runs=runs)
