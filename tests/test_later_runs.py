"""Workloads whose later runs find what earlier ones left: their answer speaks of first runs and of later ones."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

import runtimes
from perfdiff import configuration, pipeline
from perfdiff.analysis.findings import Findings, Verdict
from perfdiff.progress import Silent
from perfdiff.request import Request
from test_accesses import committed

TOML = """
measure.budget_s = 4
[[workload]]
name = "job"
command = "python job.py {n}"
parameters.n = [300, 600]
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


def compared(room: Path, head: Mapping[str, str]) -> Findings:
    """Compare a job that removes its lock with what `head` has in its place."""
    project = room / "project"
    committed(project, ({"job.py": JOB, "perfdiff.toml": TOML}, head))
    config = configuration.load(project, environment={})
    request = Request(project, ("v0", "v1"), config, runtimes.lent_to(room / "cache"), os.environ)
    return pipeline.compare(request, Silent()).findings


@pytest.mark.integration
def test_what_makes_later_runs_slower_alone_is_a_regression(tmp_path: Path) -> None:
    found = compared(tmp_path, {"job.py": JOB.replace('    os.remove("lock")\n', "")})
    assert found.verdict is Verdict.REGRESSION
    slower = {end.point.workload for end in found.end_to_end if end.low > 1}
    assert slower == {"job again"}
    assert "later-runs-differ" in {note.slug for note in found.notes}


@pytest.mark.integration
def test_runs_that_find_nothing_of_earlier_ones_are_first_runs_alone(tmp_path: Path) -> None:
    found = compared(tmp_path, {"job.py": JOB.replace('"lock"', '"held"')})
    assert {point.workload for point in found.points} == {"job"}
    assert "later-runs-differ" not in {note.slug for note in found.notes}
