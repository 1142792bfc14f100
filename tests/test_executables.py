"""Builds with probes are made of the programs that runs use, where looking for these takes little beside building."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from perfdiff import pipeline
from perfdiff.analysis.findings import Verdict
from perfdiff.measuring import executables
from perfdiff.progress import Silent
from perfdiff.records.schema import Phase
from programs import first_two

SLOW = """
long slow(long n)
{
	long sum = 0;

	for (long i = 0; i < ROUNDS * n; i++)
		sum += i ^ sum >> 3;
	return sum;
}
"""
MAIN = """
#include <stdio.h>
#include <stdlib.h>
long slow(long);
int main(int argc, char **argv) { printf("%d\\n", slow(atol(argv[1])) == 7); }
"""
BUILD = """
all: prog lib.so
prog: main.o slow.o
\t$(CC) -o $@ main.o slow.o
lib.so: slow.c
\t$(CC) -O1 -fPIC -c -o own.o slow.c
\t$(CC) -shared -o $@ own.o
"""
TOML = """
build.command = "make CFLAGS=-O1"
[[workload]]
name = "slow"
command = "./prog {n}"
parameters.n = [200000, 800000]
runs = 6
"""


class Stages(Silent):
    """Keeps the names of the stages."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def stage(self, name: str, total: int | None) -> None:
        self.names.append(name)


@pytest.mark.integration
@pytest.mark.parametrize("share", [math.inf, 0.0])
def test_builds_with_probes_are_made_of_what_runs_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, share: float) -> None:
    monkeypatch.setattr(executables, "_SHARE", share)
    base = {"main.c": MAIN, "slow.c": SLOW.replace("ROUNDS", "40"), "Makefile": BUILD, "perfdiff.toml": TOML}
    request, stages = first_two(tmp_path, [base, {"slow.c": SLOW.replace("ROUNDS", "100")}]), Stages()
    findings = pipeline.compare(request, stages).findings
    assert findings.verdict is Verdict.REGRESSION
    assert findings.functions[0].info.name == "slow"
    orders = [json.loads(order.read_text()) for order in request.cache.glob("trees/*/build/order.json")]
    mine = [order for order in orders if str(tmp_path) in order["plain"]]
    assert {tuple(order["used"]) for order in mine} == {("prog",) if share else ()}
    assert ("looking which programs runs use" in stages.names) == (share > 0)
    assert f"building ({Phase.TIMED})" in stages.names
