"""Large programs: what has to do with the change is looked at first, and everything where that does not explain it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from perfdiff import configuration, pipeline
from perfdiff.analysis.findings import Verdict
from perfdiff.collect.choosing import vicinity
from perfdiff.measuring.rounds import Rounds
from perfdiff.outcome import Outcome
from perfdiff.progress import Silent
from perfdiff.request import Request
from programs import git

pytestmark = pytest.mark.integration

MAIN = """
#include <pthread.h>
#include <stdlib.h>
long fill(long *cells, long n);
void *work(void *cells);
void *(*volatile chosen)(void *) = work;
int main(int argc, char **argv) {
    long cells[8] = {0}, n = atol(argv[1]);
    fill(cells, n);
    pthread_t other;
    pthread_create(&other, NULL, chosen, cells);
    return pthread_join(other, NULL);
}
"""
FILL = """
static volatile long sum;
long fill(long *cells, long n) {
    for (long i = 0; i < OWN * n; i++) sum += i;
    return cells[3] = HANDED * n;
}
"""
WORK = "static volatile long done;\nvoid *work(void *cells) { long n = ((long *)cells)[3]; while (n--) done += n; return 0; }\n"
FAR = "".join(f"long far{number}(long n) {{ return n + {number}; }}\n" for number in range(12))
TOML = """
build.command = "for unit in main fill work far; do gcc -O2 -c $unit.c || exit 1; done; gcc -pthread *.o -o program"
[[workload]]
name = "run"
command = "./program {n}"
parameters.n = [2000000, 8000000]
"""


@dataclass
class Stages(Silent):
    """A `Progress` that keeps which stages there were."""

    order: list[str] = field(default_factory=list)

    def stage(self, name: str, total: int | None) -> None:
        self.order.append(name)


@pytest.fixture
def compared(tmp_path: Path, shared_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], tuple[Outcome, Stages]]:
    """Compare the program with `fill` as it is and with these factors, as one of many functions."""
    monkeypatch.setattr(vicinity, "LARGE", 4)

    def compare(own: str, handed: str) -> tuple[Outcome, Stages]:
        folder = tmp_path / "project"
        folder.mkdir()
        git(folder, "init", "-q", "-b", "main")
        (folder / "perfdiff.toml").write_text(TOML)
        for name, text in {"main.c": MAIN, "work.c": WORK, "far.c": FAR}.items():
            (folder / name).write_text(text)
        for tag, factors in {"base": ("1", "1"), "head": (own, handed)}.items():
            (folder / "fill.c").write_text(FILL.replace("OWN", factors[0]).replace("HANDED", factors[1]))
            git(folder, "add", "-A")
            git(folder, "commit", "-q", "-m", tag)
            git(folder, "tag", tag)
        config = configuration.load(folder, environment={})
        environment = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
        progress = Stages()
        asked = Request(folder, ("base", "head"), config, shared_cache, environment)
        return pipeline.compare(asked, progress), progress

    return compare


def guilty(outcome: Outcome) -> str:
    return next(each.info.name for each in outcome.findings.functions if each.rank == 1)


def test_a_slow_down_near_the_change_is_found_without_probes_elsewhere(compared: Callable[[str, str], tuple[Outcome, Stages]]) -> None:
    outcome, progress = compared("3", "1")
    assert (outcome.findings.verdict, guilty(outcome)) == (Verdict.REGRESSION, "fill")
    assert progress.order.count("surveying") == 1
    assert {each.info.name for each in outcome.findings.functions} <= {"fill", "main"}


def test_a_change_whose_cost_arises_far_away_is_blamed_from_what_is_near(compared: Callable[[str, str], tuple[Outcome, Stages]]) -> None:
    outcome, _ = compared("1", "4")
    assert (outcome.findings.verdict, guilty(outcome)) == (Verdict.REGRESSION, "fill")


def test_everything_is_looked_at_where_nothing_near_explains_it(
    compared: Callable[[str, str], tuple[Outcome, Stages]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Rounds, "_is_unexplained", property(lambda _: True))
    outcome, progress = compared("1", "4")
    assert progress.order.count("surveying") == 2
    assert (outcome.findings.verdict, guilty(outcome)) == (Verdict.REGRESSION, "fill")
    assert "work" in {each.info.name for each in outcome.findings.functions}
