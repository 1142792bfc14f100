"""Heads that do less, and heads that do the same sooner, from git to verdict."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from perfdiff import configuration, pipeline
from perfdiff.analysis.findings import Findings, Verdict
from perfdiff.progress import Silent
from perfdiff.report.sentences.catalogue import say
from programs import by_whole_runs, git

pytestmark = pytest.mark.integration

PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
static unsigned __attribute__((noinline)) work(unsigned n) {
    unsigned sum = 1;
    __asm__ volatile("" : "+r"(sum));
    for (unsigned i = 0; i < n; i++) sum = sum * 1664525u + (i ^ sum);
    return sum;
}
static unsigned repeat(unsigned times, unsigned n) {
    unsigned sum = 0;
    for (unsigned k = 0; k < times; k++) sum |= work(n);
    return sum;
}
int run(unsigned n) { BODY }
int main(int argc, char **argv) { return argc < 2 ? 2 : run((unsigned)atoi(argv[1])); }
"""
SUM = 'unsigned sum = repeat({}, n); printf("sum of %s\\n", sum ? "items" : "none");'
MEASURED = 'printf("pid %d, %ld ticks\\n", (int)getpid(), (long)clock()); '
CONFIG = """
[build]
command = "cc -O1 -g -o program main.c"
[measure]
budget_s = 6
layouts = 1
[counters]
software = false
[[workload]]
name = "w"
command = "./program {n}"
exit_codes = [0, 1]
parameters = { n = [1000000] }
runs = 5
"""


def compared(tmp_path: Path, base: str, head: str, more: str = "") -> Findings:
    """Return the findings on a program whose `run` has one body, then the other; what it prints is flushed when it ends."""
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    git(checkout, "init", "-q")
    (checkout / "perfdiff.toml").write_text(CONFIG + more)
    for body in (base, head):
        (checkout / "main.c").write_text(PROGRAM.replace("BODY", body))
        git(checkout, "add", "-A")
        git(checkout, "commit", "-q", "-m", "program")
    config = configuration.load(checkout, environment={})
    request = pipeline.Request(checkout, ("HEAD~1", "HEAD"), config, tmp_path / "cache", dict(os.environ))
    return pipeline.compare(by_whole_runs(request), Silent()).findings


WHOLE = SUM.format(20) + " return 0;"


@pytest.mark.parametrize(
    ("base", "head", "says"),
    [
        (MEASURED + WHOLE, MEASURED + '(void)n; printf("error: no input\\n"); return 0;', "prints something else: 2 lines"),
        (WHOLE, '(void)n; printf("sum of items\\n"); return 1;', "exits 1 where base exits 0"),
        (
            WHOLE,
            'if (fork() == 0) { setsid(); repeat(200, n); _exit(0); } printf("sum of items\\n"); return 0;',
            "leaves processes (`program`) that work on when it has ended",
        ),
    ],
    ids=["error beside a pid", "exit code", "daemon"],
)
def test_a_head_that_does_less_is_no_improvement(tmp_path: Path, base: str, head: str, says: str) -> None:
    found = compared(tmp_path, base, head)
    assert found.verdict in (Verdict.INCONCLUSIVE, Verdict.REGRESSION)
    assert says in say(found.sentence)
    assert found.verdict is Verdict.REGRESSION or say(found.sentence).startswith("Inconclusive: head may do less work: it ")


@pytest.mark.parametrize(
    ("base", "head", "more"),
    [
        (MEASURED + 'printf("a 1\\nb 2\\n"); ' + WHOLE, MEASURED + 'printf("a 1\\nb 2\\n"); ' + SUM.format(8) + " return 0;", ""),
        (WHOLE, SUM.format(8) + ' printf("done\\n"); return 0;', 'check = "grep -q sum"\n'),
    ],
    ids=["times and pids", "checked"],
)
def test_a_head_that_does_the_same_sooner_is_an_improvement(tmp_path: Path, base: str, head: str, more: str) -> None:
    found = compared(tmp_path, base, head, more)
    assert found.verdict is Verdict.IMPROVEMENT
    assert ("; head prints something else: 2 lines" in say(found.sentence)) is bool(more)
