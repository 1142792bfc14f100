"""Workloads whose later runs find what earlier ones left: their answer speaks of first runs and of later ones."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from perfdiff import pipeline
from perfdiff.analysis.findings import Findings, Verdict
from perfdiff.progress import Silent
from perfdiff.report.sentences.catalogue import noted
from programs import by_whole_runs, first_two

TOML = """
measure.budget_s = 4
counters.software = false
[[workload]]
name = "job"
command = "python job.py {n}"
parameters.n = [300, 600]
runs = 2
"""
JOB = """
import os, sys, time

def work(n):
    return sum(i * i % 7 for i in range(500 * n))

def main(n):
    if os.path.exists("lock"):
        time.sleep(0.1)
    open("lock", "w").close()
    print(work(n))
    os.remove("lock")

main(int(sys.argv[1]))
"""


KEEPING = """
import os, sys

def work(n):
    return sum(i * i % 7 for i in range(2000 * n))

def main(n):
    if os.path.exists("kept"):
        print(open("kept").read())
        return
    result = work(n)
    if os.path.exists("asked"):
        open("kept", "w").write(str(result))
    open("asked", "w").close()
    print(result)

main(int(sys.argv[1]))
"""


def compared(room: Path, head: Mapping[str, str], base: Mapping[str, str] = {}) -> Findings:
    """Compare a job that removes its lock, or what `base` has in its place, with what `head` has."""
    request = first_two(room, ({"job.py": JOB, "perfdiff.toml": TOML, **base}, head))
    return pipeline.compare(by_whole_runs(request), Silent()).findings


@pytest.mark.integration
def test_what_makes_later_runs_slower_alone_is_a_regression(tmp_path: Path) -> None:
    found = compared(tmp_path, {"job.py": JOB.replace('    os.remove("lock")\n', "")})
    assert found.verdict is Verdict.REGRESSION
    slower = {end.point.workload for end in found.end_to_end if end.low > 1}
    assert slower == {"job again"}
    assert "later-runs-differ" in {note.slug for note in map(noted, found.notes)}


@pytest.mark.integration
@pytest.mark.parametrize(
    "setup",
    ["", 'setup = "echo ready > state"\n', 'prepare = "mkdir -p out"\n'],
    ids=["nothing else", "a setup", "a prepare"],
)
def test_what_is_kept_when_it_is_asked_for_again_is_missed_by_the_run_behind_two(setup: str, tmp_path: Path) -> None:
    forgetful = KEEPING.replace('        open("kept", "w").write(str(result))', "        pass")
    found = compared(tmp_path, {"job.py": forgetful}, {"job.py": KEEPING, "perfdiff.toml": TOML + setup})
    assert found.verdict is Verdict.REGRESSION
    assert {end.point.workload for end in found.end_to_end if end.low > 1} == {"job again"}


@pytest.mark.integration
@pytest.mark.parametrize(
    ("kept", "condition"),
    [("kept", "n > 500"), ("kept", "n == 400"), (".git/kept", "True")],
    ids=["at the last point alone", "between the ends alone", "where git keeps its own"],
)
def test_what_is_kept_of_some_inputs_or_anywhere_in_the_tree_is_missed(kept: str, condition: str, tmp_path: Path) -> None:
    keeping = (
        KEEPING.replace('    open("asked", "w").close()\n', "").replace('"kept"', f'"{kept}"').replace('os.path.exists("asked")', condition)
    )
    toml = TOML.replace("[300, 600]", "[300, 400, 600]")
    forgetful = keeping.replace(f'        open("{kept}", "w").write(str(result))', "        pass")
    found = compared(tmp_path, {"job.py": forgetful}, {"job.py": keeping, "perfdiff.toml": toml})
    assert found.verdict is Verdict.REGRESSION
    assert {end.point.workload for end in found.end_to_end if end.low > 1} == {"job again"}


@pytest.mark.integration
def test_runs_that_find_nothing_of_earlier_ones_are_first_runs_alone(tmp_path: Path) -> None:
    found = compared(tmp_path, {"job.py": JOB.replace('"lock"', '"held"')})
    assert {point.workload for point in found.points} == {"job"}
    assert "later-runs-differ" not in {note.slug for note in map(noted, found.notes)}
